"""Stances, changes of mind, early ends and counts, as pure functions over a transcript."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from council.agents.turn import Failure, TurnResult
from council.deliberation.flips import flips
from council.deliberation.names import Names
from council.deliberation.ranking import Ranking, borda, exactly
from council.deliberation.stance import Stance, only_issued
from council.deliberation.stopping import agree, reason_to_end
from council.deliberation.transcript import Evidence, Transcript, Turn
from council.llm.structured import parse_block

ROLES = ("A_ROLE", "B_ROLE", "AUDITOR")


def stance(position: str, *evidence: str) -> Stance:
    return Stance(position=position, confidence=0.5, evidence=evidence, would_change="")


def turn(role: str, round_no: int, held: Stance | None = None, words: str = "", *, fails: bool = False) -> Turn:
    failure = Failure("timeout", "too late") if fails else None
    result = TurnResult(words or f"{role} {round_no}", "m", failure=failure)
    return Turn(role, round_no, result, held, advocate=role == "AUDITOR")


def evidence(name: str, round_no: int, asked_by: str = "A_ROLE") -> Evidence:
    return Evidence(asked_by, round_no, "", id=name, title=name, text=name)


def transcript(*entries: Turn | Evidence, inputs: Sequence[str] = ("E1",)) -> Transcript:
    return Transcript("task", [evidence(name, 0) for name in inputs], list(entries))


def block(**keys: object) -> str:
    body = {"position": "Wait.", "confidence": 0.5, "evidence": [], "would_change": "rain", **keys}
    return f"Words.\n\n```council\n{json.dumps(body)}\n```"


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "keys",
    [
        {"position": " . "},
        {"position": ""},
        {"position": "x" * 401},
        {"confidence": 1.01},
        {"confidence": "0.5"},
        {"confidence": True},
        {"evidence": "E1"},
        {"evidence": ["E2"]},
        {"evidence": ["[E1: a.md:1]"]},
        {"mood": "good"},
    ],
    ids=str,
)
def test_a_stance_that_does_not_fit_is_a_problem_and_no_stance(keys: dict[str, object]) -> None:
    parsed = parse_block(block(**keys), Stance, complete=True, check=only_issued(["E1"]))
    assert parsed.found
    assert parsed.value is None
    assert parsed.problems


def test_the_words_of_a_turn_are_never_taken_for_a_stance() -> None:
    for words in ("I disagree.", "I agree with the position: wait.", "```python\nposition = {}\n```", "{position}"):
        assert not parse_block(words, Stance, complete=True).found


def test_positions_are_the_same_by_their_spelling_alone() -> None:
    assert stance("Buy a disk.").key == stance(" buy  a DISK ").key
    assert stance("Use C++").key != stance("Use C").key
    assert stance("Buy no disk.").key != stance("Buy a disk.").key


# ── changes of mind ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_evidence_that_an_agent_asked_for_in_its_last_turn_is_new_to_it() -> None:
    said = transcript(
        turn("A_ROLE", 1, stance("Yes", "E1")),
        evidence("E2", 1),
        turn("B_ROLE", 1, stance("Yes", "E2")),
        turn("A_ROLE", 2, stance("No", "E1", "E2")),
        turn("B_ROLE", 2, stance("No", "E2")),
        turn("B_ROLE", 3, stance("no.", "E2")),
    )
    assert [(flip.role, flip.round, flip.evidence) for flip in flips(said)] == [
        ("A_ROLE", 2, ("E2",)),
        ("B_ROLE", 2, ()),
    ]


def test_a_turn_without_a_stance_is_no_change_of_mind() -> None:
    said = transcript(
        turn("A_ROLE", 1, stance("Yes")), turn("A_ROLE", 2), evidence("E2", 2), turn("A_ROLE", 3, stance("No", "E2"))
    )
    [flip] = flips(said)
    assert (flip.round, flip.before, flip.after, flip.evidence) == (3, "Yes", "No", ("E2",))


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def a_round(round_no: int, *held: Stance | None, words: str = "") -> list[Turn]:
    return [turn(role, round_no, each, words) for role, each in zip(ROLES, held, strict=True)]


def test_unanimity_needs_everybody_and_evidence_from_each() -> None:
    yes = stance("Yes", "E1")
    assert reason_to_end(transcript(*a_round(1, yes, yes, yes)), ROLES)[0] == "unanimity"  # type: ignore[index]
    assert reason_to_end(transcript(*a_round(1, yes, yes, stance("Yes"))), ROLES) is None
    assert reason_to_end(transcript(*a_round(1, yes, yes, None)), ROLES) is None
    assert reason_to_end(transcript(*a_round(1, yes, yes, stance("No", "E1"))), ROLES) is None
    assert reason_to_end(transcript(turn("A_ROLE", 1, yes), turn("AUDITOR", 1, yes)), ROLES) is None


def test_nothing_ends_before_the_devils_advocate_has_spoken() -> None:
    yes = stance("Yes", "E1")
    others = [turn("A_ROLE", 1, yes, "same"), turn("B_ROLE", 1, yes, "same"), turn("A_ROLE", 2, yes, "same")]
    assert reason_to_end(transcript(*others), ROLES) is None
    assert reason_to_end(transcript(*others, turn("AUDITOR", 2, fails=True)), ROLES) is None
    assert reason_to_end(transcript(*others, turn("AUDITOR", 2, yes)), ROLES) is not None


def test_a_round_without_news_ends_the_rounds_and_one_with_news_does_not() -> None:
    yes, no = stance("Yes", "E1"), stance("No", "E1")
    first = a_round(1, yes, no, no)
    assert reason_to_end(transcript(*first), ROLES) is None
    assert reason_to_end(transcript(*first, *a_round(2, yes, no, no)), ROLES)[0] == "no_new_information"  # type: ignore[index]
    for news in ([stance("Maybe", "E1"), no, no], [stance("Yes", "E1", "E2"), no, no], [None, no, no]):
        said = transcript(*first, *a_round(2, *news), inputs=("E1", "E2"))
        assert reason_to_end(said, ROLES) is None
    asked = transcript(*first, *a_round(2, yes, no, no), evidence("E2", 2))
    assert reason_to_end(asked, ROLES) is None


def test_a_repeated_turn_is_the_same_agents_with_the_same_stance() -> None:
    auditor = turn("AUDITOR", 1)
    same = transcript(auditor, turn("A_ROLE", 1, words="Buy a disk"), turn("A_ROLE", 2, words="buy  a disk."))
    assert reason_to_end(same, ROLES)[0] == "repeated_turn"  # type: ignore[index]
    others = transcript(auditor, turn("A_ROLE", 1, words="Buy"), turn("B_ROLE", 1, words="Buy"))
    assert reason_to_end(others, ROLES) is None
    moved = transcript(
        auditor, turn("A_ROLE", 1, stance("Yes"), words="Buy"), turn("A_ROLE", 2, stance("No"), words="Buy")
    )
    assert reason_to_end(moved, ROLES) is None


def test_members_agree_when_all_stated_the_same_last() -> None:
    yes, no = stance("Yes"), stance("No")
    assert agree(transcript(*a_round(1, yes, no, yes), *a_round(2, yes, yes, yes)), ROLES)
    assert not agree(transcript(*a_round(1, yes, yes, yes), *a_round(2, yes, yes, None)), ROLES)


# ── names and counts ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_colleagues_role_is_hidden_where_it_is_spelled_out() -> None:
    names = Names({"AUDITOR": "B", "A_ROLE": "A"})
    assert names.text("As the AUDITOR and A_ROLE: the auditor's AUDITORIUM.") == (
        "As the Member B and Member A: the auditor's AUDITORIUM."
    )
    assert Names().text("AUDITOR") == "AUDITOR"


def test_borda_gives_a_point_for_each_answer_ranked_below_and_settles_a_tie_by_letter() -> None:
    ballots = ("BAC", "BCA", "ACB")
    said = transcript(
        *(
            Turn(role, 2, TurnResult("", "m"), ballot=tuple("ABC"), ranking=tuple(ballot))
            for role, ballot in zip(ROLES, ballots, strict=True)
        )
    )
    counted = [(count.letter, count.points, count.firsts) for count in borda(said, "ABC")]
    assert counted == [("B", 4, 2), ("A", 3, 1), ("C", 2, 0)]
    assert [count.letter for count in borda(transcript(), "BA")] == ["A", "B"]


@pytest.mark.parametrize("ranking", [("A", "B"), ("A", "B", "B"), ("A", "B", "C", "D"), ("A", "B", "c"), ()])
def test_a_ballot_names_each_answer_once(ranking: tuple[str, ...]) -> None:
    assert list(exactly("ABC")(Ranking(ranking=ranking)))
    assert not list(exactly("ABC")(Ranking(ranking=("C", "A", "B"))))
