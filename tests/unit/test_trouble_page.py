"""docs/trouble.md tells of every error that Council raises on purpose and of everything that a run waits for."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import council
from council.engine.execution import MAX_ATTEMPTS
from council.engine.queue import MAX_WAIT
from council.errors import CouncilError, ModelErrorKind, ReplayMiss
from council.plans.applying import NOT_SENT, UNKNOWN
from council.plans.approval import PlanCode
from council.specialists.creation_gates import Gate
from council.specialists.outside_plans import FAILED
from council.web.problems import WebCode
from council.workspace.transaction import WorkspaceCode
from council.world.world_store import WorldCode

PAGE = (Path(__file__).parents[2] / "docs" / "trouble.md").read_text(encoding="utf-8")
OF_EVALUATIONS = {"questions_invalid", "evaluation_changed", "council_failed"}  # docs/evaluation.md
NO_END = {"waiting"}  # told by its reasons
TABLES = (PlanCode, WorkspaceCode, WorldCode, Gate, WebCode)


def codes(base: type[CouncilError]) -> set[str]:
    here = {base.code} if base.__module__.startswith("council.") else set()
    return here.union(*(codes(child) for child in base.__subclasses__()))


def raised() -> set[str]:
    """Every code of a refusal and of a run's end: by the classes of errors, and by the tables of those with many codes."""
    for module in pkgutil.walk_packages(council.__path__, "council."):  # every room defines its errors
        if not module.name.endswith(".__main__"):
            import_module(module.name)
    ends = {MAX_WAIT, MAX_ATTEMPTS, NOT_SENT, UNKNOWN, FAILED, ReplayMiss("", fix="", model="").code}
    of_models = {f"model_{kind}" for kind in get_args(ModelErrorKind)}
    return codes(CouncilError).union(ends, of_models, *map(get_args, TABLES)) - OF_EVALUATIONS - NO_END


def rows() -> set[str]:
    """The codes that begin the rows of the tables of codes."""
    tables = re.findall(r"^\| code \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    firsts = (row.split("|")[1] for table in tables for row in table.splitlines())
    return {code for first in firsts for code in re.findall(r"`(\w+)`", first)}


def test_every_code_has_a_row() -> None:
    assert sorted(raised() - rows()) == []


def test_no_row_is_of_a_code_that_nothing_raises() -> None:
    assert sorted(rows() - raised()) == []


@pytest.mark.parametrize("reason", ["provider", "network", "storage", "budget", "index", "answer"])
def test_the_page_has_every_wait(reason: str) -> None:
    assert re.search(rf"^\| `{reason}` \|", PAGE, re.MULTILINE)
