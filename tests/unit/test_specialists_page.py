"""docs/specialists.md tells of specialists what the code says: keys, who takes part, gates, commands, tools, tables."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import get_args

from sqlalchemy import inspect
from typer.main import get_command

from council.cli.specialists import app
from council.specialists.creation_gates import MAX_CORRECTIONS
from council.specialists.creation_prompts import SPEAKERS
from council.specialists.deprecation import DAY_MS, IDLE_MS, NOTICE_MS
from council.specialists.lifecycle import EXAMINED_MS, LIFECYCLE, MIN_SUCCESS_PERCENT, MIN_SUITE_CONFIDENCE, MIN_USES
from council.specialists.specialist_registry import ApprovalState, Status
from council.specialists.specialist_spec import SpecialistSpec
from council.specialists.suites import MIN_CASES, MIN_CONFIDENCE
from council.storage.store import Store

PAGE = (Path(__file__).parents[2] / "docs" / "specialists.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def firsts(title: str) -> list[str]:
    """The names in the first cells of the tables of a section."""
    cells = re.findall(r"^\| ([^|]+) \|", section(title), re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_page_has_every_key_of_a_spec() -> None:
    assert sorted(firsts("What it is")) == sorted(SpecialistSpec.__struct_fields__)


def test_the_page_names_who_takes_part_and_each_state_of_an_approval() -> None:
    named = firsts("How one is made")
    assert {speaker.lower() for speaker in SPEAKERS} <= set(named)
    assert set(get_args(ApprovalState)) <= set(named)
    numbers = {3: "three times"}
    assert f"at most {numbers[MAX_CORRECTIONS]}" in section("How one is made")
    assert f"at least {MIN_CASES} cases" in section("How one is made")
    assert f"on average {MIN_CONFIDENCE:.2f} of the expected fields" in section("How one is made")


def test_the_page_tells_the_gates_of_its_life() -> None:
    life = section("Its life")
    gates = f"at least {MIN_USES} uses, {MIN_SUCCESS_PERCENT} % of them good, and {MIN_SUITE_CONFIDENCE:.2f} in the latest suite"
    assert gates in life
    assert (
        f"after {IDLE_MS // DAY_MS} days without use or training, announced {NOTICE_MS // DAY_MS} days before" in life
    )
    assert EXAMINED_MS == DAY_MS
    assert "within a day" in life
    assert all(status in life for status in get_args(Status))
    assert all(f"`{tool}`" in life for tool in LIFECYCLE.tools)


def test_the_page_has_every_command() -> None:
    commands = set(get_command(app).commands)  # type: ignore[attr-defined]
    assert set(re.findall(r"council specialists ([a-z-]+)", PAGE)) == commands


def test_the_page_has_every_table_with_its_columns() -> None:
    told = {
        row[0]: row[1:]
        for line in section("Tables").splitlines()
        if (row := re.findall(r"`(\w+)`", line)) and line[0] == "|"
    }
    with closing(Store.memory()) as store, store.reading() as tx:
        found = inspect(tx.core)
        names = [*found.get_table_names(), *found.get_view_names()]
        ours = [name for name in names if name.startswith(("dynamic_", "specialist_", "task_telemetry"))]
        assert told == {name: [column["name"] for column in found.get_columns(name)] for name in ours}
