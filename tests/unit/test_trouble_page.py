"""docs/trouble.md tells of every error that Council raises on purpose and of everything that a run waits for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import council.app
import council.upkeep.forget  # noqa: F401  every room defines its errors
from council.desk.all_systems import house
from council.errors import FATAL, CouncilError

PAGE = (Path(__file__).parents[2] / "docs" / "trouble.md").read_text(encoding="utf-8")
OF_EVALUATIONS = {"questions_invalid", "evaluation_changed", "council_failed"}  # docs/evaluation.md
NO_END = {"waiting", "budget"}  # told by their reasons


def codes(base: type[CouncilError]) -> set[str]:
    here = {base.code} if base.__module__.startswith("council.") else set()
    return here.union(*(codes(child) for child in base.__subclasses__()))


def test_the_page_has_every_code() -> None:
    house()  # loads every system, and so its errors
    known = codes(CouncilError) - OF_EVALUATIONS - NO_END | {f"model_{kind}" for kind in FATAL}
    assert sorted(code for code in known if f"`{code}`" not in PAGE) == []


@pytest.mark.parametrize("reason", ["provider", "network", "storage", "budget", "index", "answer"])
def test_the_page_has_every_wait(reason: str) -> None:
    assert re.search(rf"^\| `{reason}` \|", PAGE, re.MULTILINE)
