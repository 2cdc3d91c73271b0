"""Asking a model as a step of a run: what is recorded, what is raised, what is never asked twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from council.budgets.budget import BudgetSpent
from council.budgets.metering import CALL_CUT_OFF
from council.engine.records import Waiting
from council.engine.runs import Run, RunPause
from council.errors import Drift, ModelError, ReplayMiss
from council.llm.base import Message, ToolCall, TurnInfo
from council.turns.asker import Asker, Postponement, ask_model, attempt
from council.turns.result import CallPurpose, TurnResult
from tests.rehearsal import MODEL, TASK, ListeningModel, Rehearsal, Shelf, equipment, says, speaker

QUESTION = (Message("user", "What now?"),)
TURN = TurnInfo("AUDITOR", "turn", 1, 2, TASK)
CLOSING = TurnInfo("AUDITOR", "synthesis", 2, 2, TASK)
SPENT = BudgetSpent("command", "calls", 3, 3)
TOMORROW = BudgetSpent("day", "calls", 3, 3, needs=1)


def raises(error: BaseException) -> ListeningModel:
    def fail(info: TurnInfo) -> None:
        raise error

    return says(default="never said", before=fail)


def asker(run: Run, model: ListeningModel | None = None, **keys: Any) -> Asker:
    return Asker(run, equipment(model, **keys), lambda: None)


async def ask(one: Asker, info: TurnInfo = TURN, purpose: CallPurpose = "turn", **keys: Any) -> TurnResult:
    return await one.ask("round/1/AUDITOR", speaker(), QUESTION, info, purpose, **keys)


# ── what is recorded ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_reply_is_recorded_and_a_resumed_run_asks_nobody(played: Rehearsal) -> None:
    model = says("It holds.")
    first = await ask(asker(played.run, model))
    again = await ask(asker(played.resumed()))
    assert first == again == TurnResult("It holds.", MODEL)
    assert len(model.heard) == 1
    assert played.steps() == ["round/1/AUDITOR"]


async def test_another_question_under_the_same_step_is_drift(played: Rehearsal) -> None:
    await ask(asker(played.run, says("It holds.")))
    with pytest.raises(Drift):
        await asker(played.resumed()).ask("round/1/AUDITOR", speaker(), (Message("user", "And now?"),), TURN)


async def test_the_model_is_told_the_system_text_the_messages_and_the_schema(played: Rehearsal) -> None:
    model = says("{}")
    await ask(asker(played.run, model), CLOSING, "closing", schema={"type": "object"})
    [heard] = model.heard
    assert (heard.system, heard.messages, heard.options["schema"]) == (
        "You are AUDITOR.",
        QUESTION,
        {"type": "object"},
    )


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("<think>Hm, {maybe}.</think>\n\nIt holds.", "It holds."),
        ("Hm.\n</think>\nIt holds.", "It holds."),
        ("It holds.\n\n<thinking>Or not?</thinking>\n\nSo be it.", "It holds.\n\nSo be it."),
        ("It\u200b holds.\U000e0041", "It holds."),
    ],
)
async def test_thoughts_and_what_nobody_sees_are_never_recorded(played: Rehearsal, reply: str, kept: str) -> None:
    result = await ask(asker(played.run, says(reply)))
    assert result.text == kept
    assert result.thoughts is ("hink" in reply)


@pytest.mark.parametrize(("finish", "kind"), [("stop", "empty"), ("length", "length")])
async def test_a_reply_of_thoughts_alone_is_a_failure(played: Rehearsal, finish: str, kind: str) -> None:
    result = await ask(asker(played.run, says({"text": "<think>Hm, hm.", "finish": finish})))
    assert result.failure is not None
    assert (result.text, result.failure.kind) == ("", kind)


@pytest.mark.parametrize("kind", ["overload", "server", "timeout", "network", "protocol", "empty", "blocked", "length"])
async def test_an_error_that_may_pass_is_the_recorded_result(played: Rehearsal, kind: str) -> None:
    model = says({"error": {"kind": kind, "message": "no luck"}})
    result = await ask(asker(played.run, model))
    assert result.failure is not None
    assert (result.failure.kind, result.was_asked) == (kind, True)
    assert "no luck" in result.failure.message
    assert await ask(asker(played.resumed())) == result


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        ((ToolCall("READ_FILE", {"path": "a.md"}),), "Let me see.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]"),
        ((ToolCall("READ_FILE", {"path": "a.md"}),) * 2, "Let me see.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]"),
        ((), "Let me see."),
    ],
)
async def test_a_native_call_stands_in_the_text_as_one_request(
    played: Rehearsal, calls: tuple[ToolCall, ...], text: str
) -> None:
    model = says("Let me see.")
    model.calls = calls
    result = await ask(asker(played.run, model))
    assert (result.text, result.finish) == (text, "stop")


# ── what is raised ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["auth", "billing", "not_found", "request"])
async def test_a_fatal_error_is_raised_noted_and_asked_again_by_a_resumed_run(played: Rehearsal, kind: str) -> None:
    failing = asker(played.run, says({"error": {"kind": kind, "message": "no key"}}))
    with pytest.raises(ModelError):
        await ask(failing)
    [refused] = failing.refused
    assert (refused.step, refused.role, refused.round, refused.purpose) == ("round/1/AUDITOR", "AUDITOR", 1, "turn")
    assert played.steps() == ["round/1/AUDITOR/refused/1"]
    resumed = asker(played.resumed(), says("It holds."))
    assert (await ask(resumed)).text == "It holds."
    assert resumed.refused == []


@pytest.mark.parametrize(
    ("purpose", "info", "round_no"),
    [("turn", TURN, 1), ("repair", TURN, 1), ("closing", CLOSING, 0), ("closing repair", CLOSING, 0)],
)
async def test_an_ended_run_tells_of_the_last_call_that_was_refused(
    played: Rehearsal, purpose: CallPurpose, info: TurnInfo, round_no: int
) -> None:
    for words in ("first", "second"):
        with pytest.raises(ModelError):
            await ask(asker(played.resumed(), says({"error": {"kind": "auth", "message": words}})), info, purpose)
    told = asker(played.resumed(ended=True))
    with pytest.raises(BaseException, match="round/1/AUDITOR"):
        await ask(told, info, purpose)
    [refused] = told.refused
    assert (refused.purpose, refused.round) == (purpose, round_no)
    assert refused.result.failure is not None
    assert "second" in refused.result.failure.message


@pytest.mark.parametrize(
    ("kind", "retry_after_s", "seconds"), [("rate", None, 60.0), ("rate", 7.5, 7.5), ("overload", 30.0, 30.0)]
)
async def test_a_provider_that_asks_for_a_pause_parks_the_run(
    played: Rehearsal, kind: str, retry_after_s: float | None, seconds: float
) -> None:
    model = says({"error": {"kind": kind, "retry_after_s": retry_after_s}})
    with pytest.raises(RunPause) as parked:
        await ask(asker(played.run, model))
    assert (parked.value.reason, parked.value.seconds) == ("provider", seconds)
    assert played.steps() == []


async def test_a_missing_network_is_waited_for_with_pauses_that_grow_and_end_with_an_answer(played: Rehearsal) -> None:
    pauses = []
    for _ in range(9):
        with pytest.raises(RunPause) as parked:
            await ask(asker(played.run, says({"error": {"kind": "unreachable"}})))
        assert parked.value.reason == "network"
        pauses.append(parked.value.seconds)
        await played.run.journal.wait(Waiting("network", "2026-01-01T00:00:00Z", parked.value.seconds, ""))
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    await ask(asker(played.run, says("It holds.")))
    assert played.run.journal.waits == []


async def test_a_spent_budget_is_raised_from_a_turn(played: Rehearsal) -> None:
    with pytest.raises(BudgetSpent):
        await ask(asker(played.run, raises(SPENT)))
    assert played.steps() == []


@pytest.mark.parametrize("purpose", ["closing", "closing repair"])
async def test_a_spent_budget_is_the_recorded_failure_of_another_call(played: Rehearsal, purpose: CallPurpose) -> None:
    result = await ask(asker(played.run, raises(SPENT)), CLOSING, purpose)
    assert result.failure is not None
    assert (result.failure.kind, result.was_asked, result.model) == ("budget", False, MODEL)
    assert await ask(asker(played.resumed()), CLOSING, purpose) == result


@pytest.mark.parametrize("info", [TURN, CLOSING])
async def test_a_budget_that_a_new_day_renews_parks_the_run(played: Rehearsal, info: TurnInfo) -> None:
    with pytest.raises(RunPause) as parked:
        await ask(asker(played.run, raises(TOMORROW), seconds_to_midnight=lambda: 42.0), info)
    assert (parked.value.reason, parked.value.seconds) == ("budget", 42.0)


async def test_a_cassette_without_the_reply_notes_no_call(played: Rehearsal) -> None:
    one = asker(played.run, raises(ReplayMiss("nothing recorded", fix="", model=MODEL)))
    with pytest.raises(ReplayMiss):
        await ask(one)
    assert (one.refused, played.steps()) == ([], [])


@pytest.mark.parametrize(
    ("reason", "under_way", "noted"), [("somebody", True, True), ("somebody", False, False), ("", True, False)]
)
async def test_a_persons_cancel_notes_the_call_that_it_cut_off_and_no_other(
    played: Rehearsal, reason: str, under_way: bool, noted: bool
) -> None:
    cancelled = asyncio.CancelledError()
    if under_way:
        cancelled.add_note(CALL_CUT_OFF)
    played.run.cancel_reason = reason
    one = asker(played.run, raises(cancelled))
    with pytest.raises(asyncio.CancelledError):
        await ask(one)
    assert [refused.was_cut_off for refused in one.refused] == [True] * noted
    assert played.steps() == ["round/1/AUDITOR/refused/1"] * noted


# ── what is offered and heard ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("native", "info", "names"), [(True, TURN, ["READ_FILE"]), (True, CLOSING, []), (False, TURN, [])]
)
async def test_tools_are_offered_as_functions_to_turns_of_models_that_take_them(
    played: Rehearsal, native: bool, info: TurnInfo, names: list[str]
) -> None:
    model = says("It holds.")
    functions = {"functions": Shelf().registry().specs} if native else {}
    await ask(asker(played.run, model, **functions), info)
    assert [tool.name for tool in model.heard[0].options["tools"]] == names


@pytest.mark.parametrize(
    ("streams", "purpose", "told"), [(True, "turn", True), (True, "other", False), (False, "turn", False)]
)
async def test_who_watches_hears_a_turn_come_where_text_is_streamed(
    played: Rehearsal, streams: bool, purpose: Any, told: bool
) -> None:
    one = asker(played.run, says("It holds."), streams=streams)
    await ask(one, TurnInfo("AUDITOR", purpose, 1, 2, TASK))
    heard = "".join(event.values()["text"] for event in played.events if event.kind == "text")
    assert heard == ("It holds." if told else "")
    assert one.hearings == []


async def test_who_watches_hears_no_record_that_was_asked_for_but_json_amid_a_speech(played: Rehearsal) -> None:
    reply = 'Here it is:\n\n```json\n{"answer": "words in it"}\n```\n\nI hope that it helps.'
    for info, schema in ((TURN, None), (CLOSING, {"required": ["answer"]})):
        await asker(played.run, says(reply), streams=True).ask(info.purpose, speaker(), QUESTION, info, schema=schema)
    heard = "".join(event.values()["text"] for event in played.events if event.kind == "text")
    assert heard == f"{reply}Here it is:\n\n"


async def test_a_turn_is_announced_when_its_model_is_asked_and_not_when_it_is_read_again(played: Rehearsal) -> None:
    await ask(asker(played.run, says("It holds.")))
    await ask(asker(played.resumed()))
    assert played.kinds().count("turn_started") == 1


# ── the call that no run is lost over ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelError("auth", "no key"), "auth"),
        (ModelError("rate", "slowly"), "rate"),
        (ModelError("timeout", "too late"), "timeout"),
        (SPENT, "budget"),
        (TOMORROW, "budget"),
    ],
)
async def test_whatever_goes_wrong_with_an_attempt_is_its_result(error: Exception, kind: str) -> None:
    result = await attempt(raises(error), system="", messages=QUESTION, info=TURN)
    assert result.failure is not None
    assert result.failure.kind == kind


async def test_an_attempt_that_a_cassette_has_no_reply_for_is_raised() -> None:
    with pytest.raises(ReplayMiss):
        await attempt(raises(ReplayMiss("nothing", fix="", model=MODEL)), system="", messages=QUESTION, info=TURN)


async def test_a_call_to_a_busy_provider_can_be_made_later() -> None:
    with pytest.raises(Postponement) as busy:
        await ask_model(raises(ModelError("rate", "slowly", retry_after_s=3)), system="", messages=QUESTION, info=TURN)
    assert busy.value.error.retry_after_s == 3
