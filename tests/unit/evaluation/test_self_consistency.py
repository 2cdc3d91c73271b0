"""How ballots become a vote, and how many of them a council's tokens pay for."""

from __future__ import annotations

import pytest

from council.evaluation.council_arm import CouncilAnswer, MemberAnswer
from council.evaluation.grading import AnsweredQuestion, row_of
from council.evaluation.meter import Expense
from council.evaluation.questions import Question
from council.evaluation.self_consistency import MAX_BALLOTS, Ballot, majority, more_ballots


def ballots(*given: tuple[str, float]) -> list[Ballot]:
    return [Ballot(answer, confidence) for answer, confidence in given]


def test_the_answer_of_most_ballots_wins_and_others_lessen_its_confidence() -> None:
    vote = majority(ballots(("A", 0.9), ("B", 1.0), ("A", 0.6)))
    assert (vote.answer, vote.said) == ("A", "2 of 3 ballots")
    assert vote.confidence == pytest.approx(1.5 / 3)


def test_among_equals_the_surer_answer_wins_and_then_the_first() -> None:
    assert majority(ballots(("A", 0.5), ("B", 0.6))).answer == "B"
    assert majority(ballots(("B", 0.5), ("A", 0.5))).answer == "B"
    assert majority(ballots(("B", 0.1), ("B", 0.2), ("A", 0.3), ("A", 0.0))).answer == "B"


def test_ballots_that_cannot_be_read_do_not_vote() -> None:
    vote = majority([Ballot(fault="cut"), Ballot("A", 0.8), Ballot(fault="cut")])
    assert (vote.answer, vote.confidence) == ("A", 0.8)
    assert majority([Ballot(fault="cut")]).answer == ""


@pytest.mark.parametrize(
    ("budget", "tokens", "cast", "more"),
    [
        (1000, 0, 0, 1),
        (1000, 100, 1, 9),
        (1049, 1000, 10, 0),  # one more would be farther away
        (1051, 1000, 10, 1),
        (900, 1000, 10, 0),
        (0, 100, 1, 0),
        (10**9, 100, 1, MAX_BALLOTS - 1),
    ],
)
def test_ballots_are_cast_until_another_would_not_bring_the_tokens_nearer(
    budget: int, tokens: int, cast: int, more: int
) -> None:
    assert more_ballots(budget, Expense(cast, tokens), cast) == more


def test_members_flips_are_counted_from_their_first_position_to_their_last() -> None:
    question = Question(id="q", question="Which?", choices={"A": "one", "B": "two", "C": "three"}, answer="A")
    held = [
        *(MemberAnswer(role, 1, answer, 0.5) for role, answer in zip("WXYZ", ("A", "B", "B", "C"), strict=True)),
        *(MemberAnswer(role, 2, answer, 0.5) for role, answer in zip("WXYZ", ("B", "A", "B", "B"), strict=True)),
        MemberAnswer("W", 3, "C", 0.5),
        MemberAnswer("Y", 3, "", 0.5),
    ]
    decided = CouncilAnswer("run", "succeeded", Ballot("B", 0.7), tuple(held))
    row = row_of(AnsweredQuestion(question, decided, (Ballot("A", 0.5),), Expense(), Expense(), Expense()))
    assert (row.good, row.bad, row.other, row.kept) == (1, 1, 2, 0)
    assert row.first_round is False  # two of four said B
    assert (row.arms["single"].right, row.arms["vote"].right, row.arms["council"].right) == (True, True, False)
