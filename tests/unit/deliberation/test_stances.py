"""Stances, changes of mind, early ends and counts, as pure functions over a transcript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import msgspec
import pytest

from council.deliberation.early_stopping import is_unanimous, reason_to_end
from council.deliberation.names import Names
from council.deliberation.ranking import Ranking, ballot_problems, borda
from council.deliberation.stance import Stance, stance_problems
from council.deliberation.stances_page import sources
from council.deliberation.transcript import Transcript, Turn, flips
from council.llm.structured import parse_block
from council.turns.evidence import Evidence
from council.turns.result import Failure, TurnResult

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
        {"position": "…"},
        {"position": "?"},
        {"position": "Position not stated."},
        {"position": "x" * 401},
        {"confidence": 1.01},
        {"confidence": "0.5"},
        {"confidence": True},
        {"evidence": "E1"},
        {"evidence": ["E2"]},
        {"evidence": ["E2: a.md:1"]},
        {"evidence": ["a.md:1"]},
        {"mood": "good"},
    ],
    ids=str,
)
def test_a_stance_that_does_not_fit_is_a_problem_and_no_stance(keys: dict[str, object]) -> None:
    parsed = parse_block(block(**keys), Stance, complete=True, check=partial(stance_problems, ["E1"]))
    assert parsed.found
    assert parsed.value is None
    assert parsed.problems


@pytest.mark.parametrize("name", ["E1", "e1", "E1: a.md:2", "[E1: docs/a.md:2-9]", "[E1]", " E1 "])
def test_evidence_may_be_named_as_it_is_cited(name: str) -> None:
    parsed = parse_block(block(evidence=[name, "E1"]), Stance, complete=True, check=partial(stance_problems, ["E1"]))
    assert parsed.value is not None
    assert parsed.value.ids == ("E1",)


def test_an_entry_that_names_nothing_is_no_evidence() -> None:
    parsed = parse_block(
        block(evidence=["", " - ", "E1"]), Stance, complete=True, check=partial(stance_problems, ["E1"])
    )
    assert parsed.value is not None
    assert parsed.value.ids == ("E1",)


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        (["E1"], "[E1: a.md:1-13]"),
        (["E1:5"], "[E1: a.md:5]"),
        (["E1: a.md:5-6", "E1", "[E2]"], "[E1: a.md:5-6], [E2: b, c.md:3-4]"),
        (["E1, lines 2-3", "E2: b, c.md:4"], "[E1: a.md:2-3], [E2: b, c.md:4]"),
        (["E1:99", "E2: a.md:3", "E3:1"], "[E1: a.md:1-13], [E2: b, c.md:3-4], E3"),
        (["E1:1", "E1:3", "E1:5", "E1:7"], "[E1: a.md:1-13]"),
        (["E1:1", "E2", "E3", "E4"], "[E1], [E2], E3, [E4]"),
        ([], "none named"),
    ],
)
def test_the_sources_of_a_position_keep_the_lines_that_were_named(named: list[str], shown: str) -> None:
    def read(name: str, path: str, first: int, last: int) -> Evidence:
        return msgspec.structs.replace(evidence(name, 0), path=path, first_line=first, last_line=last)

    said = transcript(inputs=())
    said.inputs += [read("E1", "a.md", 1, 13), read("E2", "b, c.md", 3, 4), evidence("E3", 0), read("E4", "d.md", 1, 1)]
    assert sources(stance("Wait.", *named).evidence, said) == shown


def test_the_words_of_a_turn_are_never_taken_for_a_stance() -> None:
    for words in ("I disagree.", "I agree with the position: wait.", "```python\nposition = {}\n```", "{position}"):
        assert not parse_block(words, Stance, complete=True).found


def test_positions_are_the_same_by_their_spelling_alone() -> None:
    assert stance("Buy a disk.").key == stance(" buy  a DISK ").key
    assert stance("Use C++").key != stance("Use C").key
    assert stance("Buy no disk.").key != stance("Buy a disk.").key
    assert stance("10 kB").key != stance("1 0 kB").key
    assert stance("x²").key != stance("x2").key


@pytest.mark.parametrize(
    "said",
    ["Don\u2019t wait \u2013 caf\u00e9", "Don't wait - cafe\u0301.", "don\u2018t\u200b wait \u2014 caf\u00e9\u3002"],
)
def test_what_a_keyboard_decides_makes_no_other_position(said: str) -> None:
    assert stance(said).key == stance("Don't wait - café").key


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
    assert (flip.round, flip.before.position, flip.after.position, flip.evidence) == (3, "Yes", "No", ("E2",))


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


def test_repeated_turns_end_the_rounds_only_where_everybody_repeats_itself() -> None:
    first = [turn(role, 1, words="Buy a disk") for role in ROLES]
    again = [turn(role, 2, words="buy  a disk.") for role in ROLES]
    assert reason_to_end(transcript(*first, *again), ROLES)[0] == "repeated_turn"  # type: ignore[index]
    assert reason_to_end(transcript(*first, *again[:2]), ROLES) is None
    assert reason_to_end(transcript(*first, *again[:2], turn("AUDITOR", 2, words="Wait")), ROLES) is None
    failed = transcript(*first, *again[1:], turn("A_ROLE", 2, fails=True))
    assert reason_to_end(failed, ROLES)[0] == "repeated_turn"  # type: ignore[index]
    yes, no = stance("Yes"), stance("No")
    moved = transcript(*a_round(1, yes, yes, yes, words="Buy"), *a_round(2, yes, yes, no, words="Buy"))
    assert reason_to_end(moved, ROLES) is None


def test_turns_of_nothing_but_a_kept_position_are_no_repeated_turns() -> None:
    held = [stance("Yes", "E1"), stance("No", "E1"), stance("Perhaps", "E1")]
    kept = [
        turn(role, number, each, each.position) for number in (1, 2) for role, each in zip(ROLES, held, strict=True)
    ]
    assert reason_to_end(transcript(*kept, evidence("E2", 2)), ROLES) is None


def test_a_dispute_is_not_over_before_its_evidence_round() -> None:
    held = [stance("Yes", "E1"), stance("No", "E1"), stance("No", "E1")]
    said = transcript(*a_round(1, *held, words="Same."), *a_round(2, *held, words="Same."))
    assert reason_to_end(said, ROLES, evidence_round_due=True) is None
    assert reason_to_end(said, ROLES) is not None
    yes = stance("Yes", "E1")
    agreed = transcript(*a_round(1, yes, yes, yes))
    assert reason_to_end(agreed, ROLES, evidence_round_due=True)[0] == "unanimity"  # type: ignore[index]


def test_a_unanimity_that_an_unexplained_change_brought_ends_nothing() -> None:
    yes, no = stance("Yes", "E1"), stance("No", "E1")
    gave_in = [*a_round(1, yes, yes, no), *a_round(2, yes, yes, yes)]
    assert reason_to_end(transcript(*gave_in), ROLES) is None
    by_evidence = [*a_round(1, yes, yes, no), evidence("E2", 1), *a_round(2, yes, yes, stance("Yes", "E2"))]
    assert reason_to_end(transcript(*by_evidence), ROLES)[0] == "unanimity"  # type: ignore[index]
    later = [*gave_in, evidence("E2", 2), *a_round(3, yes, yes, stance("Yes", "E2"))]
    assert reason_to_end(transcript(*later), ROLES)[0] == "unanimity"  # type: ignore[index]


def test_one_member_alone_is_no_unanimity() -> None:
    alone = transcript(turn("AUDITOR", 1, stance("Yes", "E1")))
    assert reason_to_end(alone, ("AUDITOR",)) is None


def test_a_position_stays_with_its_round_until_another_is_stated() -> None:
    yes, no = stance("Yes", "E1"), stance("No", "E1")
    said = transcript(*a_round(1, yes, no, None), *a_round(2, None, yes, None), turn("B_ROLE", 3, fails=True))
    held = {role: (each.stance.position, each.round, each.restated) for role, each in said.positions().items()}
    assert held == {"A_ROLE": ("Yes", 1, False), "B_ROLE": ("Yes", 2, False)}


def test_members_are_unanimous_when_all_stated_the_same_last() -> None:
    yes = stance("Yes", "E1")
    assert is_unanimous(transcript(*a_round(1, yes, None, yes), *a_round(2, yes, yes, yes)), ROLES)
    assert not is_unanimous(transcript(*a_round(1, yes, yes, yes), *a_round(2, yes, yes, None)), ROLES)


# ── names and counts ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_colleagues_role_is_hidden_where_it_is_spelled_out() -> None:
    names = Names({"AUDITOR": "B", "A_ROLE": "A"})
    assert names.text("As the AUDITOR and A_ROLE: an AUDITORIUM.") == "As Member B and Member A: an AUDITORIUM."
    assert names.text("I, the Auditor of this council, and a role.") == "I, Member B of this council, and Member A."
    assert names.text('a.md says “the auditor must sign” to the "Auditor".') == (
        'a.md says “the auditor must sign” to the "Member B".'
    )
    assert names.text('A 5" disk, says the auditor, of 3" width') == 'A 5" disk, says Member B, of 3" width'
    assert Names().text("AUDITOR") == "AUDITOR"


def test_whom_a_text_names_is_read_from_roles_and_letters() -> None:
    names = Names({"AUDITOR": "B", "A_ROLE": "A", "B_ROLE": "C"})
    roles = list(names.letters)
    assert names.roles_in("member b", roles) == ["AUDITOR"]
    assert names.roles_in("Members A and C", roles) == ["A_ROLE", "B_ROLE"]
    assert names.roles_in("the Auditor; a-role", roles) == ["AUDITOR", "A_ROLE"]
    assert names.roles_in("a board member and an Auditorium", roles) == []
    assert names.roles_in("A consultant, B", roles) == []
    assert names.roles_in("Member B", ["A_ROLE"]) == []
    assert names.roles_in("A_ROLE and B_ROLE, not AUDITOR", roles) == ["A_ROLE", "B_ROLE"]
    assert Names().roles_in("Member B", roles) == []


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


@pytest.mark.parametrize("ranking", [("A", "B"), ("A", "B", "B"), ("A", "B", "C", "D"), ("A", "B", "c or so"), ()])
def test_a_ballot_names_each_answer_once(ranking: tuple[str, ...]) -> None:
    assert list(ballot_problems("ABC", Ranking(ranking=ranking)))
    assert not list(ballot_problems("ABC", Ranking(ranking=("C", "A", "B"))))
    assert Ranking(ranking=("Member C", "b", " member A")).ranking == ("C", "B", "A")
