"""Whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from council.engine.lanes import Lanes
from council.engine.records import FileIdentity, RunHeader


@dataclass(frozen=True)
class Standing:
    """A run as the lanes know it."""

    id: str
    header: RunHeader


@pytest.fixture
def lanes() -> Lanes[Standing]:
    return Lanes()


def run(order: int, lane: str = "main", *, output: str = "", priority: int = 0) -> Standing:
    header = RunHeader(
        run_id=f"run-{order}",
        epoch=1,
        created="2026-01-01T00:00:00Z",
        lane=lane,
        type="deliberate",
        command={},
        command_hash="",
        file=FileIdentity("command.json", 0, 0, ""),
        secret="",
        output_path=output or f"artifacts/{order}.md",
        order=order,
        priority=priority,
    )
    return Standing(header.run_id, header)


def told(lanes: Lanes[Standing]) -> list[int]:
    """The orders of all that may go on now."""
    found = []
    while (following := lanes.next()) is not None:
        found.append(following.header.order)
    return found


def test_runs_of_one_lane_are_serial_and_lanes_go_side_by_side(lanes: Lanes[Standing]) -> None:
    first, second, other = run(1), run(2), run(3, "other")
    for joined in (first, second, other):
        lanes.join(joined)
    assert told(lanes) == [1, 3]
    lanes.release(other)
    assert told(lanes) == []
    lanes.release(first)
    assert told(lanes) == [2]


def test_priority_chooses_between_lanes_and_not_within_one(lanes: Lanes[Standing]) -> None:
    for joined in (run(1), run(2, priority=9), run(3, "other", priority=5), run(4, "third")):
        lanes.join(joined)
    assert told(lanes) == [3, 1, 4]


def test_an_output_path_is_one_runs_at_a_time(lanes: Lanes[Standing]) -> None:
    first, second = run(1, "a", output="artifacts/x.md"), run(2, "b", output="artifacts/x.md")
    lanes.join(first)
    lanes.join(second)
    assert told(lanes) == [1]
    assert lanes.is_anothers("artifacts/x.md", second)
    assert not lanes.is_anothers("artifacts/x.md", first)
    lanes.release(first)
    assert told(lanes) == [2]


def test_a_run_that_waited_keeps_its_turn_and_goes_on_by_its_precedence(lanes: Lanes[Standing]) -> None:
    waited, behind, other = run(1), run(2), run(3, "other", priority=1)
    lanes.join(waited)
    assert told(lanes) == [1]
    lanes.join(behind)
    lanes.join(other)
    lanes.go_on(waited)
    assert told(lanes) == [3, 1]


def test_what_is_held_is_told_to_go_on_when_it_is_asked_for_and_so_is_what_comes_before_it(
    lanes: Lanes[Standing],
) -> None:
    before, unrelated = run(1, "a", output="artifacts/x.md"), run(2, "b")
    first, asked, behind = run(3, "c"), run(4, "c", output="artifacts/x.md"), run(5, "c")
    for standing in (before, unrelated, first, asked, behind):
        lanes.hold(standing)
        lanes.join(standing)
    assert told(lanes) == []
    lanes.ask_for(asked)
    assert (lanes.held, told(lanes)) == (2, [1, 3])
    lanes.release(before)
    lanes.release(first)
    assert told(lanes) == [4]
    lanes.release(asked)
    assert told(lanes) == []


def test_who_leaves_its_line_is_told_nothing_and_those_behind_it_are(lanes: Lanes[Standing]) -> None:
    gone, behind, held, woken = run(1), run(2), run(3, "other"), run(4, "third")
    lanes.hold(held)
    for joined in (gone, behind, held):
        lanes.join(joined)
    lanes.leave(gone)
    lanes.leave(held)
    lanes.join(woken)
    assert (lanes.held, told(lanes)) == (0, [2, 4])
    lanes.go_on(woken)
    lanes.leave(woken)
    assert told(lanes) == []
    for ended in (gone, behind, held, woken):
        lanes.release(ended)
    lanes.join(run(5))
    assert told(lanes) == [5]


def test_only_what_may_start_is_chosen_and_the_others_keep_their_places(lanes: Lanes[Standing]) -> None:
    first, beside = run(1, priority=5), run(2, "plans")
    lanes.join(first)
    lanes.join(beside)
    assert lanes.next(lambda one: one.header.lane == "plans") == beside
    assert lanes.next(lambda one: one.header.lane == "plans") is None
    assert lanes.next() == first
