"""Answers against labels: what was recorded of a question becomes a row of figures. Pure; no model is asked.

Labels are looked at here and nowhere before, so that a corrected one regrades an evaluation without a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from council.evaluation.ballots import Ballot, majority
from council.evaluation.deliberations import Decided, Held
from council.evaluation.figures import Marked, Row
from council.evaluation.meter import Spent
from council.evaluation.questions import Question


@dataclass(frozen=True)
class Answered:
    """Everything recorded of one question. The first ballot is the single answer, too."""

    question: Question
    decided: Decided
    ballots: tuple[Ballot, ...]
    single_spent: Spent
    vote_spent: Spent
    council_spent: Spent

    @property
    def vote(self) -> Ballot:
        return majority(self.ballots)


def row_of(answered: Answered) -> Row:
    question, decided = answered.question, answered.decided
    first, last = _ends(decided.held)
    changes = Counter(_change(question, first[role], last[role]) for role in first)
    return Row(
        id=question.id,
        arms={
            "single": _marked(question, answered.ballots[0], answered.single_spent),
            "vote": _marked(question, answered.vote, answered.vote_spent),
            "council": _marked(question, decided.answer, answered.council_spent, failed=decided.status == "failed"),
        },
        good=changes["good"],
        bad=changes["bad"],
        other=changes["other"],
        kept=changes["kept"],
        first_round=_first_round(question, decided.held),
    )


def _marked(question: Question, ballot: Ballot, spent: Spent, *, failed: bool = False) -> Marked:
    return Marked(question.is_right(ballot.answer or None), ballot.confidence, bool(ballot.answer), spent, failed)


def _ends(held: Sequence[Held]) -> tuple[dict[str, Held], dict[str, Held]]:
    """By role, the first and the last position."""
    first: dict[str, Held] = {}
    for each in held:
        first.setdefault(each.role, each)
    return first, {each.role: each for each in held}


def _change(question: Question, first: Held, last: Held) -> str:
    was, is_now = question.is_right(first.answer or None), question.is_right(last.answer or None)
    if was == is_now:
        return "kept" if was or first.answer == last.answer else "other"
    return "good" if is_now else "bad"


def _first_round(question: Question, held: Sequence[Held]) -> bool | None:
    ballots = [Ballot(each.answer, each.confidence) for each in held if each.round == 1]
    return question.is_right(majority(ballots).answer or None) if ballots else None
