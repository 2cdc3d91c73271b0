"""`python -m tests.sample_daemon …` is `council …` in a house with two systems more: the samples."""

from __future__ import annotations

import sys

from council.cli.main import main
from council.desk.all_systems import house
from council.systems import System
from tests.sample_pages import PAGES
from tests.sample_system import SAMPLE


def systems() -> tuple[System, ...]:
    """The house's own, and the samples."""
    return (*house(), SAMPLE, PAGES)


if __name__ == "__main__":
    sys.argv = ["council", *sys.argv[1:]]
    main(systems)
