"""No input stops the daemon: ten times the nasty text is at most fifteen times the work, for every parser of outside text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import run_cli
from tests.work import PARSERS


@pytest.mark.parametrize("parser", PARSERS)
def test_ten_times_the_text_is_at_most_fifteen_times_the_work(parser: str) -> None:
    done = run_cli(parser, module="tests.work", cwd=Path(__file__).parents[2], timeout_s=300)
    assert (done.returncode, done.stdout, done.stderr[-2000:]) == (0, "", "")
