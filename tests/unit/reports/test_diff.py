"""The place where two runs part, by what their rows say of each step."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from council.engine.records import EPOCH, FileIdentity, Part, Record, RunHeader, StepResult, StepStart
from council.engine.run_records import FINISH, RunRecords
from council.reports.diff import diff

HEADER = RunHeader(
    "r", EPOCH, "2026-11-20T22:00:00Z", "main", "deliberate", {}, "h", FileIdentity("c", 1, 2, "s"), "00"
)


def journal(said: Mapping[str, tuple[str, str]]) -> RunRecords:
    """A run with these steps: the kind of each, and its answer."""
    records: list[Record] = []
    for name, (kind, answer) in said.items():
        records += [StepStart(name, 1, Part(kind)), StepResult(name, "", msgspec.Raw(msgspec.json.encode(answer)))]
    return RunRecords(HEADER, records)


def test_what_a_run_begins_with_is_not_compared_whatever_its_step_is_called() -> None:
    first = journal({"any": ("start", "a memory"), "round/1": ("turn", "yes"), FINISH: ("", "now")})
    second = journal({"any": ("start", "another"), "round/1": ("turn", "yes"), FINISH: ("", "later")})
    assert diff(first, second).sentence == "The runs do not differ: 1 equal step."


def test_a_step_of_another_kind_is_compared_though_it_is_called_start() -> None:
    found = diff(journal({"start": ("turn", "yes")}), journal({"start": ("turn", "no")}))
    assert (found.kind, found.first_step, found.same_steps) == ("answer", "start", 0)


def test_two_answers_are_told_whole_as_their_rows_have_them() -> None:
    found = diff(journal({"round/1": ("turn", "yes")}), journal({"round/1": ("turn", "no")}))
    assert (found.first_answer, found.second_answer) == ('"yes"', '"no"')
