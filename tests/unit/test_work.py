"""No input stops the daemon: ten times the nasty text is at most fifteen times the work, for every parser of outside text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.work import PARSERS


@pytest.mark.parametrize("parser", PARSERS)
def test_ten_times_the_text_is_at_most_fifteen_times_the_work(parser: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.work", parser],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr[-2000:]) == (0, "", "")
