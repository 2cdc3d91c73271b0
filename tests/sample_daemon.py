"""`python -m tests.sample_daemon …` is `council …` in a house with two systems more: the samples."""

from __future__ import annotations

import sys

from council.cli.main import main
from council.desk.house import house
from tests.sample_pages import PAGES
from tests.sample_system import SAMPLE

if __name__ == "__main__":
    sys.argv = ["council", *sys.argv[1:]]
    main(lambda: (*house(), SAMPLE, PAGES))
