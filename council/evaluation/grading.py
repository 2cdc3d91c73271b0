"""Answers against labels: what was recorded of a question becomes a row of figures. Pure; no model is asked.

Labels are looked at here and nowhere before, so that a corrected one regrades an evaluation without a call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from council.evaluation.council_arm import CouncilAnswer
from council.evaluation.meter import Expense
from council.evaluation.questions import Question
from council.evaluation.self_consistency import Ballot, majority
from council.evaluation.statistics import MarkedAnswer, QuestionRow


@dataclass(frozen=True)
class AnsweredQuestion:
    """Everything recorded of one question. The first ballot is the single answer, too."""

    question: Question
    decided: CouncilAnswer
    ballots: tuple[Ballot, ...]
    single_spent: Expense
    vote_spent: Expense
    council_spent: Expense

    @property
    def vote(self) -> Ballot:
        return majority(self.ballots)


def row_of(answered: AnsweredQuestion) -> QuestionRow:
    question, decided = answered.question, answered.decided
    first = {each.role: each for each in reversed(decided.held)}
    last = {each.role: each for each in decided.held}
    changes: Counter[str] = Counter()
    for role, began in first.items():
        was, is_now = question.is_right(began.answer or None), question.is_right(last[role].answer or None)
        if was != is_now:
            changes["good" if is_now else "bad"] += 1
        else:
            changes["kept" if was or began.answer == last[role].answer else "other"] += 1
    ballots = [Ballot(each.answer, each.confidence) for each in decided.held if each.round == 1]
    return QuestionRow(
        id=question.id,
        arms={
            "single": _marked(question, answered.ballots[0], answered.single_spent),
            "vote": _marked(question, answered.vote, answered.vote_spent),
            "council": _marked(question, decided.answer, answered.council_spent, failed=decided.status == "failed"),
        },
        **{kind: changes[kind] for kind in ("good", "bad", "other", "kept")},
        first_round=question.is_right(majority(ballots).answer or None) if ballots else None,
    )


def _marked(question: Question, ballot: Ballot, spent: Expense, *, failed: bool = False) -> MarkedAnswer:
    return MarkedAnswer(question.is_right(ballot.answer or None), ballot.confidence, bool(ballot.answer), spent, failed)
