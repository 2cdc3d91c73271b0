"""What a closing reply is, and whose a dissent is, as pure functions."""

from __future__ import annotations

import json

import pytest

from council.deliberation.names import Names
from council.deliberation.quotations.lookup import Quotations
from council.deliberation.quotations.passages import Passage
from council.deliberation.record import SHAPE, Claim, DecisionRecord, answer_in, has_an_answer, is_attempt, problems
from council.llm.structured import parse

ROLES = ("COORDINATOR", "DATA_STEWARD", "AUDITOR")
BY_ROLE = Names()
BY_LETTER = Names({"COORDINATOR": "C", "DATA_STEWARD": "A", "AUDITOR": "B"})


@pytest.mark.parametrize(
    "reply",
    [
        '{"decision": "Wait.", "claims": []}',
        '```json\n{"decision": "Wait."}\n```',
        '[{"answer": "Wait."}]',
        "{answer: 'Wait.', claims: [], confidence: 0.5}",
        'Here it is:\n{"answer": "Wait."}',
        'We looked at all that was given to us, and this is what we found in it:\n{"answer": "Wait.", "confidence": 1}',
        '{"answer": "Wa',
        "{}",
        "```json\n```",
        "null",
        "…",
        "<think>hm</think>\n{}",
    ],
)
def test_an_object_however_damaged_and_nothing_at_all_are_attempts(reply: str) -> None:
    assert is_attempt(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "Wait.",
        "42",
        "Our answer: wait {or not}.",
        "[E1] says that it must wait.",
        "[Wait](https://a.example) for it.",
        '{"cache": 3} is what the file of the settings needs, and nothing else in it has to be changed for this answer.'[
            13:
        ],
        'Set the size of the cache, which is what the material asks for, so:\n```json\n{"cache": 3}\n```',
        "<think>{}</think>\nWait.",
    ],
)
def test_prose_is_no_attempt(reply: str) -> None:
    assert not is_attempt(reply)
    assert has_an_answer(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "{}",
        "[]",
        "null",
        "```json\n```",
        '{"answer": "", "claims": [], "confidence": 0.5}',
        '{"answer": "…", "claims": [{"text": "…", "evidence": ["E1"]}], "open_questions": [], "confidence": 0.5}',
        "<think>The answer is to wait.</think>",
        "<think>The answer is to wait.",
    ],
)
def test_keys_ids_numbers_and_thoughts_are_no_answer(reply: str) -> None:
    assert not has_an_answer(reply)


@pytest.mark.parametrize("reply", ['{"answer": "Wa', '{"decision": "Wait."}', '[{"x": "Wait."}]'])
def test_words_in_a_damaged_object_are_an_answer(reply: str) -> None:
    assert has_an_answer(reply)


def test_the_example_of_the_closing_call_is_no_record() -> None:
    parsed = parse(SHAPE, DecisionRecord, complete=True)
    assert parsed.value is None
    assert "answer" in {problem.path for problem in parsed.problems}


def test_an_entry_of_a_list_without_a_word_is_no_entry() -> None:
    reply = {
        "answer": "Wait.", "confidence": 0.5, "agrees_with": [""], "open_questions": ["", "Who pays?", "…", None],
        "claims": [{"text": "It is old.", "evidence": ["E1", ""]}, {"text": "", "evidence": []}, {}],
        "dissent": [{"view": "", "held_by": "", "evidence": [""]}],
    }  # fmt: skip
    parsed = parse(json.dumps(reply), DecisionRecord, complete=True)
    assert parsed.problems == ()
    assert parsed.value == DecisionRecord(
        answer="Wait.",
        confidence=0.5,
        claims=(Claim(text="It is old.", evidence=("E1",)),),
        open_questions=("Who pays?",),
    )


@pytest.mark.parametrize(
    ("ref", "kept"),
    [("E1", "E1"), ("[E1: docs/a.md:3]", "E1: docs/a.md:3"), ("docs/a.md:3", "docs/a.md:3"), ("[docs/a.md]", "docs/a.md"),
     ("the budget", None), ("E1000000", None)],
)  # fmt: skip
def test_evidence_is_an_id_or_a_place_in_any_form_that_a_citation_may_have(ref: str, kept: str | None) -> None:
    said = json.dumps({"answer": "Wait.", "claims": [{"text": "It is old.", "evidence": [ref]}], "confidence": 0.5})
    found = parse(said, DecisionRecord, complete=True)
    assert (found.value and found.value.claims[0].evidence) == (kept and (kept,))
    assert ["must name evidence, as in E1" in problem.told for problem in found.problems] == [True] * (kept is None)


@pytest.mark.parametrize(
    ("key", "entry"),
    [("claims", {"text": "", "evidence": ["E1"]}), ("dissent", {"view": "", "held_by": "AUDITOR"}), ("next_steps", 0)],
)
def test_an_entry_that_says_half_of_something_is_asked_about(key: str, entry: object) -> None:
    reply = {"answer": "Wait.", "confidence": 0.5, "claims": [], key: [entry]}
    assert parse(json.dumps(reply), DecisionRecord, complete=True).value is None


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"answer": "Wait.", "claims": [], "confidence": 2}', "Wait."),
        ("{'decision': 'Wait.', 'reasons': None}", "Wait."),
        ("```json\n{'answer': 'Wait.', 'claims': [],}\n```", "Wait."),
        ('{"answer": "Wait.", "claims": [{"text": "It is o', "Wait."),
        ('[{"answer": "So\n\\"answer\\": wait."}]', 'So\n"answer": wait.'),
        ('{"answer": "Wa', ""),
        ('{"answer": "Wait."} {"answer": "Go."}', ""),
        ('{"answer": "\\ud800"}', ""),
        ('{"answer": "…"}', ""),
        ('{"answer": ["Wait."]}', ""),
    ],
)
def test_the_answer_of_a_damaged_record_is_told_where_there_is_one_that_is_whole(reply: str, answer: str) -> None:
    assert answer_in(reply) == answer


@pytest.mark.parametrize(
    ("held_by", "shown"),
    [
        ("AUDITOR", "AUDITOR"),
        ("the auditor", "the AUDITOR"),
        ("Data Steward and AUDITOR (in round 2)", "DATA_STEWARD and AUDITOR (in round 2)"),
        ("AUDITOR, as devil's advocate", "AUDITOR, as devil's advocate"),
    ],
)
def test_members_are_known_by_their_roles(held_by: str, shown: str) -> None:
    assert BY_ROLE.shown(held_by, ROLES) == shown


@pytest.mark.parametrize(
    ("held_by", "shown"),
    [
        ("Member B", "AUDITOR (B)"),
        ("member b", "AUDITOR (B)"),
        ("B", "AUDITOR (B)"),
        ("Members A and C", "DATA_STEWARD (A) and COORDINATOR (C)"),
        ("Member A (round 1), Member B", "DATA_STEWARD (A) (round 1), AUDITOR (B)"),
        ("Member A, Member B and Member C", "DATA_STEWARD (A), AUDITOR (B) and COORDINATOR (C)"),
        ("A & B (in round 2)", "DATA_STEWARD (A) & AUDITOR (B) (in round 2)"),
        ("A and Member B", "DATA_STEWARD (A) and AUDITOR (B)"),
        ("AUDITOR", "AUDITOR (B)"),
        ("AUDITOR (Member B)", "AUDITOR (B)"),
        ("Member B (Auditor)", "AUDITOR (B)"),
        ("AUDITOR (B)", "AUDITOR (B)"),
        ("AUDITOR (C)", "AUDITOR (B) (C)"),
        ("Members A und C", "DATA_STEWARD (A) und COORDINATOR (C)"),
        ("Membres A et B", "DATA_STEWARD (A) et AUDITOR (B)"),
        ("A y C", "DATA_STEWARD (A) y COORDINATOR (C)"),
        ("Mitglied B", "AUDITOR (B)"),
        ("leden A en B", "DATA_STEWARD (A) en AUDITOR (B)"),
    ],
)
def test_members_are_known_by_their_letters(held_by: str, shown: str) -> None:
    assert BY_LETTER.shown(held_by, ROLES) == shown


@pytest.mark.parametrize(
    "held_by",
    [
        "the Board of Directors",
        "nobody",
        "all except AUDITOR",
        "alle außer AUDITOR",
        "tous sauf AUDITOR",
        "todos excepto AUDITOR",
        "tutti tranne AUDITOR",
        "allen behalve AUDITOR",
        "Member D",
        "Member B",
        "…",
    ],
)
def test_whoever_else_is_marked(held_by: str) -> None:
    assert BY_ROLE.shown(held_by, ROLES) == f"{held_by} (no such member)"


@pytest.mark.parametrize(
    ("held_by", "roles"),
    [
        *((f"COORDINATOR {join} AUDITOR", ["COORDINATOR", "AUDITOR"]) for join in (
            "or", "as well as", "und", "oder", "et", "ou", "y", "o", "e", "en", "of", "+", "and possibly")),
        ("not only the AUDITOR, but also the COORDINATOR", ["COORDINATOR", "AUDITOR"]),
        ("nicht nur AUDITOR, sondern auch COORDINATOR", ["COORDINATOR", "AUDITOR"]),
        ("Nobody except the AUDITOR", ["AUDITOR"]),
        ("no one but the AUDITOR", ["AUDITOR"]),
        ("niemand außer AUDITOR", ["AUDITOR"]),
        ("das Mitglied AUDITOR", ["AUDITOR"]),
        ("the AUDITOR's position", ["AUDITOR"]),
        ("AUDITOR, in part", ["AUDITOR"]),
        ("Partially the AUDITOR", ["AUDITOR"]),
        ("AUDITOR, not convinced by the COORDINATOR", ["AUDITOR"]),
        ("AUDITOR [E1]", ["AUDITOR"]),
        ("AUDITOR and the Board", ["AUDITOR"]),
        ("AUDITOR (and the external counsel)", ["AUDITOR"]),
        ("AUDITOR und der Vorstand", ["AUDITOR"]),
    ],
)  # fmt: skip
def test_other_words_beside_members_stay_and_cost_no_repair(held_by: str, roles: list[str]) -> None:
    assert BY_ROLE.shown(held_by, ROLES) == held_by
    assert BY_ROLE.roles_in(held_by, ROLES) == roles
    record = DecisionRecord(answer="Wait.", claims=(), confidence=1, agrees_with=(held_by,))
    assert list(problems(Quotations([], []), ROLES, BY_ROLE, record)) == []


@pytest.mark.parametrize("held_by", ["Member D", "A consultant", "a board", "The Board", "A" + ", " * 60 + "x"])
def test_a_letter_that_nobody_has_or_an_article_is_nobody(held_by: str) -> None:
    assert BY_LETTER.shown(held_by, ROLES) == f"{held_by} (no such member)"


@pytest.mark.parametrize(
    ("held_by", "shown"),
    [
        ("the member a consultant hired", "the member a consultant hired"),
        ("everybody but the\nauditor", "everybody but the AUDITOR (B)"),
    ],
)
def test_words_that_except_or_name_no_member_are_marked_and_asked_about(held_by: str, shown: str) -> None:
    assert BY_LETTER.shown(held_by, ROLES) == f"{shown} (no such member)"
    record = DecisionRecord(answer="Wait.", claims=(), confidence=1, agrees_with=(held_by,))
    [problem] = problems(Quotations([], []), ROLES, BY_LETTER, record)
    assert problem.message.startswith("names one who is no member of this council")


@pytest.mark.parametrize(
    ("path", "cited", "told"),
    [
        ("docs/E9 offer.md", "docs/E9 offer.md:99", ""),
        ("docs/E9 offer.md", "E2: docs/E9 offer.md:99", "; E2 is docs/E9 offer.md, lines 1-2"),
        ("docs/offer.md", "docs/offer.md:99", ""),
        ("docs/offer.md", "E2, line 99", "; E2 is docs/offer.md, lines 1-2"),
    ],
)
def test_a_place_that_does_not_exist_is_told_with_what_its_id_holds(path: str, cited: str, told: str) -> None:
    record = DecisionRecord(answer=f"So it is [{cited}].", claims=(), confidence=1)
    [problem] = problems(Quotations([Passage("E2", path, 1, "a\nb\n")], ["E2"]), ROLES, BY_ROLE, record)
    assert problem.message.partition(" is no place in what was read")[2] == told
