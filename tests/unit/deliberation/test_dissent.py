"""Positions that a decision passes over: which of them its dissent names, and what is said of the others."""

from __future__ import annotations

import pytest

from council.deliberation.decision import passed_over
from council.deliberation.names import Names
from council.deliberation.record import DecisionRecord, Dissent
from council.deliberation.stance import Stance
from council.deliberation.transcript import Transcript, Turn
from council.turns.evidence import Evidence
from council.turns.result import TurnResult
from tests.rehearsal import MODEL, TASK

ALPHA, BETA = "Take alpha.", "Take beta."


def turn(role: str, position: str, *evidence: str) -> Turn:
    stance = Stance(position=position, confidence=0.5, evidence=evidence, would_change="")
    return Turn(role, 1, TurnResult(f"Word of {role}.", MODEL), stance)


def left_out(minority: Turn, *dissent: Dissent) -> list[str]:
    """What is said of the AUDITOR's position where the others decide for alpha."""
    turns = [turn("COORDINATOR", ALPHA, "E1"), turn("STRATEGIST", ALPHA, "E1"), minority]
    record = DecisionRecord(answer=ALPHA, claims=(), dissent=dissent, confidence=0.5)
    read = [Evidence("STEWARD", 0, "", id=name, path=f"{name}.md") for name in ("E1", "E2")]
    return list(passed_over(record, (), Transcript(TASK, read, list(turns), []), "COORDINATOR", Names()))


def by(held_by: str, *evidence: str, view: str = "Beta is better.") -> Dissent:
    return Dissent(view=view, held_by=held_by, evidence=evidence)


@pytest.mark.parametrize(
    ("cites", "dissent"),
    [
        (("E2",), by("AUDITOR", "E2: b.md:3")),
        (("E2",), by("the auditor", view="Beta is better [E2].")),
        ((), by("AUDITOR")),
    ],
    ids=["by its source", "by a source in its words", "a position without a source"],
)
def test_a_position_whose_holder_and_source_the_dissent_names_is_not_left_out(
    cites: tuple[str, ...], dissent: Dissent
) -> None:
    assert left_out(turn("AUDITOR", BETA, *cites), dissent) == []


@pytest.mark.parametrize(
    "dissent",
    [(), (by("STRATEGIST", "E2"),), (by("AUDITOR", "E1"),), (by("all except the Auditor", "E2"),)],
    ids=["none", "another's", "another source", "all others'"],
)
def test_a_position_that_the_dissent_does_not_name_is_told_with_its_holder_and_its_source(
    dissent: tuple[Dissent, ...],
) -> None:
    [said] = left_out(turn("AUDITOR", BETA, "E2"), *dissent)
    assert said.startswith(f"AUDITOR, left out by the writer: {BETA} Evidence: ")
    assert "E2" in said
