"""Rounds and protocols: who speaks when, who hears whom, when it ends, and what a resumed run sees."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from council.budgets.budget import BudgetSpent
from council.deliberation.commands import DeliberateConfig
from council.deliberation.deliberate import CouncilSilent, Deliberation
from council.deliberation.members import StartView
from council.deliberation.transcript import Transcript
from council.engine.runs import Run
from council.errors import ModelError
from council.events import EndOfRounds
from council.llm.base import TurnInfo
from council.safety.verdict import Verdict
from council.turns.run_guardrails import Guard
from tests.rehearsal import MODEL, TASK, TRIAD, Heard, ListeningModel, Rehearsal, Shelf, equipment, says, speaker

TEXTS = {"a.md": "alpha is first\n", "b.md": "beta is second\n"}
PROTOCOLS = ("triad", "independent", "review")
RECORD = json.dumps({"answer": "Take alpha [E1: a.md:1].", "claims": [{"text": "It is first.", "evidence": ["E1"]}],
                     "confidence": 0.5})  # fmt: skip
CLOSING = {"purpose": "synthesis", "times": 0, "text": RECORD}


def held(position: str, *evidence: str) -> str:
    stance = {"position": position, "confidence": 0.5, "evidence": evidence, "would_change": "rain"}
    return f"Words of mine.\n\n```council\n{json.dumps(stance)}\n```"


def turn(role: str, round_no: int, text: str, purpose: str = "turn") -> dict[str, Any]:
    return {"role": role, "round": round_no, "purpose": purpose, "text": text, "times": 0}


def council(
    run: Run,
    model: ListeningModel | None,
    protocol: Any = "triad",
    rounds: int = 1,
    *,
    roles: Sequence[str] = TRIAD,
    early_stop: bool = False,
    verdict: Verdict | None = None,
    memory: str = "",
    **keys: Any,
) -> Deliberation:
    start = StartView(tuple(speaker(role, memory=memory) for role in roles), MODEL, guard=Guard("off"))
    config = DeliberateConfig(protocol=protocol, max_rounds=rounds, early_stop=early_stop)
    return Deliberation(
        run, equipment(model, TEXTS, **keys), start, TASK, config, lambda: None, *([verdict] if verdict else [])
    )


def spoke(transcript: Transcript) -> list[tuple[int, str]]:
    return [(one.round, one.role) for one in transcript.turns()]


def of(model: ListeningModel, role: str, round_no: int) -> Heard:
    """What this member was asked in that round."""
    [heard] = [
        one for one in model.heard if (one.info.role, one.info.round, one.info.purpose) == (role, round_no, "turn")
    ]
    return heard


# ── who speaks, and who hears whom ───────────────────────────────────────────────────────────────────────────────────


async def test_a_triad_speaks_in_turn_and_each_hears_all_before(played: Rehearsal) -> None:
    model = says(CLOSING, *(turn(role, number, f"Word {number} of {role}.") for role in TRIAD for number in (1, 2)))
    one = council(played.run, model, rounds=2)
    await one.deliberate([])
    assert spoke(one.transcript) == [(number, role) for number in (1, 2) for role in TRIAD]
    assert "Word 1 of" not in of(model, "COORDINATOR", 1).text
    assert "Word 1 of COORDINATOR." in of(model, "STRATEGIST", 1).text
    assert "Word 1 of AUDITOR." in of(model, "COORDINATOR", 2).text
    assert all(f"Word 2 of {role}." in model.heard[-1].text for role in TRIAD)


@pytest.mark.parametrize("protocol", ["independent", "review"])
async def test_a_blind_round_shows_nobody_anothers_answer_and_later_ones_no_names(
    played: Rehearsal, protocol: str
) -> None:
    model = says(CLOSING, *(turn(role, 1, f"Word of the {role}.") for role in TRIAD), default="Words.")
    one = council(played.run, model, protocol, 2)
    await one.deliberate([])
    assert all("Word of" not in of(model, role, 1).text for role in TRIAD)
    second = next(heard for heard in model.heard if heard.info.round == 2)
    discussion = second.messages[1].text
    assert all(f"Member {letter}" in discussion for letter in "ABC")
    assert not any(role in discussion for role in TRIAD)


async def test_an_independent_council_has_another_advocate_in_each_critique(played: Rehearsal) -> None:
    positions = [turn(role, number, held("Take alpha.")) for role in TRIAD for number in range(1, 5)]
    one = council(played.run, says(CLOSING, *positions), "independent", 4)
    await one.deliberate([])
    advocates = [each.role for each in one.transcript.turns() if each.advocate]
    assert len(advocates) == len(set(advocates)) == 3
    openers = [next(each.role for each in one.transcript.turns() if each.round == number) for number in (2, 3, 4)]
    assert openers == advocates


async def test_members_who_disagree_after_a_critique_are_asked_for_evidence(played: Rehearsal) -> None:
    positions = [turn(role, number, held(f"Take {role}.")) for role in TRIAD for number in (1, 2, 3)]
    model = says(CLOSING, *positions)
    await council(played.run, model, "independent", 3).deliberate([])
    assert all("You disagree." in of(model, role, 3).text for role in TRIAD)


@pytest.mark.parametrize(("rounds", "silent"), [(1, ()), (2, ("STRATEGIST", "AUDITOR"))])
async def test_a_review_ranks_nothing_with_one_round_or_one_answer(
    played: Rehearsal, rounds: int, silent: tuple[str, ...]
) -> None:
    failing = [{"role": role, "error": {"kind": "timeout"}, "times": 0} for role in silent]
    one = council(played.run, says(CLOSING, *failing, default="An answer."), "review", rounds)
    await one.deliberate([])
    assert {each.round for each in one.transcript.turns()} == {1}


async def test_an_answer_to_a_request_reaches_the_next_speaker_and_everyone_after(played: Rehearsal) -> None:
    model = says(CLOSING, turn("COORDINATOR", 1, "So:\n\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]"), default="Words.")
    one = council(played.run, model)
    await one.deliberate(["b.md"])
    assert [item.id for item in one.transcript.evidence()] == ["E1", "E2"]
    for heard in (of(model, "STRATEGIST", 1), of(model, "AUDITOR", 1), model.heard[-1]):
        assert "alpha is first" in heard.text
        assert [source.id for source in heard.messages[1].sources] == ["E2"]


async def test_requests_of_turns_taken_at_once_are_answered_in_the_order_of_members(played: Rehearsal) -> None:
    asking = [
        turn("AUDITOR", 1, "So:\n\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]"),
        {**turn("COORDINATOR", 1, "So:\n\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"), "delay_s": 0.01},
    ]
    one = council(played.run, says(CLOSING, *asking, default="Words."), "independent")
    await one.deliberate([])
    assert [(item.asked_by, item.path) for item in one.transcript.evidence()] == [
        ("COORDINATOR", "b.md"),
        ("AUDITOR", "a.md"),
    ]


async def test_a_request_made_beside_anothers_is_no_echo_of_what_that_one_brings(played: Rehearsal) -> None:
    wants = {"COORDINATOR": "a.md", "STRATEGIST": "b.md"}
    asks = [turn(role, 1, f"[ORCHESTRATOR_REQUEST: READ_FILE({path})]") for role, path in wants.items()]
    shelf = Shelf({"a.md": "[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]\n", "b.md": "beta is second\n"})
    one = council(played.run, says(CLOSING, *asks, default="Words."), "independent", tools=shelf.registry())
    await one.deliberate([])
    assert [(item.asked_by, item.error_code) for item in one.transcript.evidence()] == [(role, "") for role in wants]


async def test_an_agent_is_told_its_memory_the_task_its_documents_and_how_to_treat_them(played: Rehearsal) -> None:
    model = says(CLOSING, default="Words.")
    verdict = Verdict("warn", "risky", "it is risky", "warn_proceed")
    await council(played.run, model, memory="We took beta.", verdict=verdict).deliberate(["a.md", "gone.md"])
    first = of(model, "COORDINATOR", 1).messages[0].text
    places = [
        first.index(words)
        for words in ("We took beta.", TASK, "# How to treat it", "alpha is first", "`gone.md` could not be read")
    ]
    assert places == sorted(places)
    assert {heard.messages[0].text for heard in model.heard} == {first}


# ── stances ──────────────────────────────────────────────────────────────────────────────────────────────────────────


# ── when it ends ─────────────────────────────────────────────────────────────────────────────────────────────────────


def ends_told(played: Rehearsal) -> list[str]:
    """Why no further round took place, as whoever listens is told."""
    return [event.reason for event in played.events if isinstance(event, EndOfRounds)]


async def test_a_council_that_agrees_on_evidence_after_the_advocate_stops_early(played: Rehearsal) -> None:
    agreeing = [turn(role, number, held("Take alpha.", "E1")) for role in TRIAD for number in (1, 2, 3)]
    one = council(played.run, says(CLOSING, *agreeing), rounds=3, early_stop=True)
    await one.deliberate(["a.md"])
    assert one.transcript.ending is not None
    assert (one.transcript.ending.why, one.transcript.ending.calls_saved) == ("unanimity", 6)
    assert ends_told(played) == [one.transcript.ending.sentence]
    assert len(one.transcript.turns()) == 3


async def test_rounds_that_none_may_stop_are_all_taken(played: Rehearsal) -> None:
    agreeing = [turn(role, number, held("Take alpha.", "E1")) for role in TRIAD for number in (1, 2, 3)]
    one = council(played.run, says(CLOSING, *agreeing), rounds=3)
    await one.deliberate(["a.md"])
    assert one.transcript.ending is None
    assert len(one.transcript.turns()) == 9


async def test_a_council_that_disagrees_to_the_end_says_so(played: Rehearsal) -> None:
    positions = [turn(role, number, held(f"Take {role}.", "E1")) for role in TRIAD for number in (1, 2)]
    one = council(played.run, says(CLOSING, *positions), rounds=2, early_stop=True)
    await one.deliberate(["a.md"])
    assert one.transcript.ending is not None
    assert (one.transcript.ending.why, "3 positions are still open" in one.transcript.ending.sentence) == ("cap", True)


def spent_at(role: str, round_no: int, *, tomorrow: bool = False) -> Callable[[TurnInfo], None]:
    def check(info: TurnInfo) -> None:
        if (info.role, info.round, info.purpose) == (role, round_no, "turn"):
            raise BudgetSpent("day" if tomorrow else "command", "calls", 3, 3, needs=1 if tomorrow else 9)

    return check


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_spent_budget_ends_the_rounds_and_the_closing_call_follows(played: Rehearsal, protocol: str) -> None:
    model = says(CLOSING, default="Words.", before=spent_at("STRATEGIST", 1))
    one = council(played.run, model, protocol, 3)
    await one.deliberate([])
    transcript = one.transcript
    assert "STRATEGIST" not in [role for _, role in spoke(transcript)]
    assert transcript.stopped
    assert transcript.ending is not None
    assert transcript.ending.why == "budget"
    assert ends_told(played) == [transcript.stopped]
    assert transcript.synthesis is not None
    again = council(played.resumed(), None, protocol, 3)  # with more to spend it ends at the same step
    await again.deliberate([])
    assert (spoke(again.transcript), again.transcript.stopped) == (spoke(transcript), transcript.stopped)


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────────


def fails(role: str | None = None, kind: str = "timeout", **keys: Any) -> Mapping[str, Any]:
    return {"role": role, "error": {"kind": kind, "message": "no luck"}, "times": 0, **keys}


async def test_an_agent_that_fails_is_missing_and_the_others_go_on(played: Rehearsal) -> None:
    model = says(CLOSING, fails("STRATEGIST"), default="Words.")
    one = council(played.run, model)
    await one.deliberate([])
    assert [each.result.failure is None for each in one.transcript.turns()] == [True, False, True]
    assert "**STRATEGIST** did not answer." in of(model, "AUDITOR", 1).text


@pytest.mark.parametrize(("protocol", "turns"), [("triad", 3), ("independent", 3)])
async def test_a_council_of_which_nobody_answers_is_silent(played: Rehearsal, protocol: str, turns: int) -> None:
    one = council(played.run, says(fails()), protocol, 3)
    with pytest.raises(CouncilSilent):
        await one.deliberate([])
    assert len(one.transcript.turns()) == turns


async def test_a_budget_that_forbids_the_closing_call_is_not_asked_again_for_other_members(played: Rehearsal) -> None:
    def check(info: TurnInfo) -> None:
        if info.purpose == "synthesis":
            raise BudgetSpent("command", "calls", 3, 3, needs=9)

    one = council(played.run, says(default="Words.", before=check))
    await one.deliberate([])
    assert [(each.role, each.result.was_asked) for each in one.transcript.closings] == [("COORDINATOR", False)]


async def test_a_fatal_error_ends_the_run_with_what_was_said(played: Rehearsal) -> None:
    one = council(played.run, says(fails("AUDITOR", "auth"), default="Words."))
    with pytest.raises(ModelError):
        await one.deliberate([])
    assert len(one.transcript.turns()) == 2
    assert [refused.role for refused in one.asker.refused] == ["AUDITOR"]


ASKING = {"purpose": "synthesis", "text": "Let me look.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"}


ASKING_TYPED = {**ASKING, "text": RECORD.replace("Take alpha [E1: a.md:1].", "[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]")}


DAMAGED = {**ASKING, "text": RECORD.replace("0.5", '"high"')}
PROSE = {**ASKING, "text": "Take alpha."}
THINKING = {**ASKING, "text": "<think>[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]</think> Take alpha."}
ASKING_DAMAGED = {**ASKING_TYPED, "text": ASKING_TYPED["text"].replace("0.5", '"high"')}


@pytest.mark.parametrize("first", [ASKING, ASKING_TYPED])
@pytest.mark.parametrize(
    ("later", "record", "text", "fault"),
    [
        ([CLOSING], True, "", ""),
        ([PROSE], False, "Take alpha.", ""),
        ([THINKING], False, "Take alpha.", ""),
        ([DAMAGED, CLOSING], True, "", ""),
        ([ASKING, CLOSING], True, "", ""),
        ([ASKING, DAMAGED], False, DAMAGED["text"], "`confidence`"),
        ([DAMAGED, DAMAGED], False, DAMAGED["text"], "`confidence`"),
        ([DAMAGED, ASKING], False, DAMAGED["text"], "asks for more"),
        ([DAMAGED, ASKING_DAMAGED], False, DAMAGED["text"], "asks for more"),
        ([ASKING, ASKING], False, ASKING["text"], "asks for more"),
    ],
)
async def test_a_closing_reply_that_asks_for_more_is_no_decision_where_an_answer_follows(
    played: Rehearsal, first: dict[str, Any], later: list[dict[str, Any]], record: bool, text: str, fault: str
) -> None:
    model = says(first, *later, default="Words.")
    one = council(played.run, model)
    await one.deliberate(["a.md"])
    settled = one.transcript.settled
    assert settled is not None
    assert (settled.record is not None, settled.text) == (record, text)
    assert fault in settled.fault
    assert bool(settled.fault) is bool(fault)
    assert (len(settled.repairs), settled.repair) == (len(later), f"turn_{len(later)}")
    assert any("no request is fulfilled any more" in heard.text for heard in model.heard)


async def test_prose_after_two_requests_is_the_answer(played: Rehearsal) -> None:
    model = says(ASKING, ASKING, PROSE, default="Words.")
    one = council(played.run, model)
    await one.deliberate(["a.md"])
    settled = one.transcript.settled
    assert settled is not None
    assert (settled.text, settled.fault, len(settled.repairs)) == ("Take alpha.", "", 2)
    assert "there is no JSON object in the reply" in model.heard[-1].text


async def test_a_damaged_record_whose_repairs_ask_for_more_is_shown_and_not_they(played: Rehearsal) -> None:
    one = council(played.run, says(DAMAGED, ASKING_TYPED, ASKING, default="Words."))
    await one.deliberate(["a.md"])
    settled = one.transcript.settled
    assert settled is not None
    assert (settled.record, settled.text, len(settled.repairs)) == (None, DAMAGED["text"], 2)
    assert "asks for more" in settled.fault


async def test_a_damaged_record_whose_repairs_are_prose_is_no_decision_of_that_prose(played: Rehearsal) -> None:
    sorry = [{**PROSE, "text": text} for text in ("Sorry, I have corrected it.", "I cannot write it any other way.")]
    one = council(played.run, says(DAMAGED, *sorry, default="Words."))
    await one.deliberate(["a.md"])
    settled = one.transcript.settled
    assert settled is not None
    assert "no JSON object" in settled.fault
    assert "Take alpha" in settled.text


# ── a resumed run ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("calls", range(1, 8))
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_run_that_died_after_any_call_ends_as_one_that_never_did(
    played: Rehearsal, protocol: str, calls: int
) -> None:
    def script() -> list[Any]:
        said = "My word.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"
        ballots = [turn(role, 2, '```council\n{"ranking": ["B", "A", "C"]}\n```') for role in TRIAD]
        turns = [turn(role, number, f"{role} {number}. {said}") for role in TRIAD for number in (1, 2)]
        return [CLOSING, *(ballots if protocol == "review" else []), *turns]

    class Died(BaseException):
        pass

    def die(info: TurnInfo) -> None:
        if len(model.heard) > calls:
            raise Died

    model = says(*script(), before=die)
    with pytest.raises(Died) if calls < 7 else contextlib.nullcontext():
        await council(played.run, model, protocol, 2).deliberate(["a.md"])
    one = council(played.resumed(), says(*script()), protocol, 2)
    await one.deliberate(["a.md"])
    whole = council(played.resumed(ended=True), None, protocol, 2)
    await whole.deliberate(["a.md"])
    assert whole.transcript == one.transcript
    assert len(one.transcript.turns()) == 6
    assert [item.id for item in one.transcript.evidence()][:2] == ["E1", "E2"]
    assert len(played.steps()) == len(set(played.steps()))
