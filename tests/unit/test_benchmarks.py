"""What the command of the benchmarks answers before it measures anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.warm import REPOSITORY


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [("--help", 0, "world, window, routing."), ("turn", 2, "there is no benchmark turn; known: ")],
)
def test_help_and_an_unknown_name_are_answered_at_once_with_the_names_there_are(
    word: str, code: int, said: str
) -> None:
    asked = [sys.executable, "-m", "benchmarks", word]
    done = subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
