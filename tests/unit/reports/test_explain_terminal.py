"""The explanation of a run in a terminal."""

from __future__ import annotations

import io

import pytest

from council.reports.explain_terminal import barred, print_all, section


@pytest.mark.parametrize("columns", range(36, 60))
def test_a_bar_takes_no_room_from_the_name_before_it(columns: int) -> None:
    table = barred(("agent", ">calls", ">time"), [("COORDINATOR", "4", "0.05 s")], [1.0], columns)
    out = io.StringIO()
    print_all([section("Who spent what", [table])], out, columns=columns, coloured=False)
    [row] = out.getvalue().splitlines()[-1:]
    assert row.split()[:2] == ["COORDINATOR", "4"]
    assert len(row) <= columns
