"""The explanation of a run in a terminal."""

from __future__ import annotations

import io

import pytest

from council.reports.explain import AgentShare, Tokens
from council.reports.explain_terminal import agents_table, barred, print_all, section, stances_table
from council.turns.account import StanceEntry

BUSY = AgentShare("COORDINATOR", "D", 12, 1, 2, Tokens(123_456, 34_567, 12_345, 23_456), 1.25, 75.0, 1.0, ())


@pytest.mark.parametrize("columns", [50, 58, 66, 74])
def test_a_narrow_terminal_shows_the_names_of_agents_whole(columns: int) -> None:
    out = io.StringIO()
    print_all([section("Who spent what", [agents_table([BUSY], columns)])], out, columns=columns, coloured=False)
    head, _, row = out.getvalue().splitlines()[-3:]
    assert row.strip().startswith("COORDINATOR (D)  12 (1 failed)")
    assert {"agent", "calls", "cost"} <= set(head.split())
    assert len(row) <= columns


@pytest.mark.parametrize("columns", [50, 60, 70])
def test_where_they_stood_names_agents_whole_and_breaks_no_word(columns: int) -> None:
    position, evidence = "Move the booking database to managed hosting", ("E1", "E2", "E3")
    stances = [StanceEntry(role, 1, "k", position, 0.8, evidence, advocate=True) for role in ("COORDINATOR", "AUDITOR")]
    out = io.StringIO()
    print_all([section("They stood", [stances_table(stances, columns)])], out, columns=columns, coloured=False)
    assert {"COORDINATOR,", "AUDITOR,", "advocate", *position.split(), "E1,"} <= set(out.getvalue().split())
    assert max(map(len, out.getvalue().splitlines())) <= columns


@pytest.mark.parametrize("columns", range(36, 60))
def test_a_bar_takes_no_room_from_the_name_before_it(columns: int) -> None:
    table = barred(("agent", ">calls", ">time"), [("COORDINATOR", "4", "0.05 s")], [1.0], columns)
    out = io.StringIO()
    print_all([section("Who spent what", [table])], out, columns=columns, coloured=False)
    [row] = out.getvalue().splitlines()[-1:]
    assert row.split()[:2] == ["COORDINATOR", "4"]
    assert len(row) <= columns
