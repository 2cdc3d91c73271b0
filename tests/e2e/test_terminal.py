"""docs/terminal.md shows what a run prints today, line by line."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_recorded_terminal_is_that_of_a_run_today_but_for_ids() -> None:
    made = runpy.run_path(str(DOCS / "make_terminal.py"))
    same = made["without_what_varies"]
    recorded, today = (DOCS / "terminal.md").read_text(), made["page"](made["said_by_demo"]())
    assert same(recorded) == same(today), "stale: python docs/make_terminal.py"
    assert recorded.count("\n--- ROUND ") == 1
