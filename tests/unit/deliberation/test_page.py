"""The page of a deliberation, its status and its account: pure functions of what was said and of how the run ended."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from council.artifacts.page import Page
from council.artifacts.render import render
from council.budgets.prices import Price
from council.deliberation.council_account import account_of
from council.deliberation.decision_page import attendance, build_page, notes_of
from council.deliberation.names import Names
from council.deliberation.page_state import PageState, status_of
from council.deliberation.record import ClosingRecord, DecisionRecord
from council.deliberation.stance import Stance
from council.deliberation.transcript import Closing, Ending, Transcript, Turn, calls_of
from council.engine.receipts import ErrorRef
from council.engine.records import FileIdentity, RunHeader
from council.engine.runs import Finish
from council.ids import sha256_hex
from council.llm.base import AbsentModel, Usage
from council.llm.embeddings import EmbeddingCall
from council.safety.verdict import Verdict
from council.turns.evidence import Evidence
from council.turns.result import Failure, ModelCall, TurnResult
from council.turns.run_guardrails import Judgement
from tests.rehearsal import MODEL, TRIAD

HEADER = RunHeader(
    "20260101-000000-storage", 3, "2026-01-01T00:00:00Z", "main", "deliberate", {}, "h",
    FileIdentity("c.json", 1, 1, "ab" * 32), "07" * 32, "artifacts/out.md", "Storage",
)  # fmt: skip
ENDED = Finish("2026-01-01T00:05:00Z")
TEXT = "alpha is first\n"
RECORD = DecisionRecord.model_validate_json(
    json.dumps({"answer": "Take alpha [E1: a.md:1].", "claims": [{"text": "It is first.", "evidence": ["E1"]}],
                "confidence": 0.5})
)  # fmt: skip
TIMEOUT = Failure("timeout", "too late")


def evidence(name: str = "E1", **keys: Any) -> Evidence:
    return Evidence(**{"asked_by": "AUDITOR", "round": 1, "request": "[…]", "action": "READ_FILE", "argument": "a.md",
                       "id": name, "title": "`a.md`", "path": "a.md", "sha256": sha256_hex(TEXT), "text": TEXT,
                       **keys})  # fmt: skip


def stance(position: str = "Take alpha.") -> Stance:
    return Stance(position=position, confidence=0.5, evidence=("E1",), would_change="")


def turn(role: str, round_no: int = 1, **keys: Any) -> Turn:
    result = TurnResult(f"Word of {role}.", MODEL, usage=Usage(100, 10))
    return Turn(**{"role": role, "round": round_no, "result": result, "stance": stance(), **keys})


def closing(role: str = "COORDINATOR", **keys: Any) -> Closing:
    step = "synthesis" if role == "COORDINATOR" else f"synthesis/{role}"
    result = TurnResult("{…}", MODEL, usage=Usage(300, 30))
    return Closing(**{"step": step, "role": role, "result": result, "record": ClosingRecord(RECORD), **keys})


def whole(*entries: Turn | Evidence, closings: Sequence[Closing] | None = None, **keys: Any) -> Transcript:
    """A transcript in which nothing is missing, but for what is given here."""
    return Transcript(
        "Choose.",
        [evidence(asked_by="STEWARD", round=0)],
        list(entries) or [turn(role) for role in TRIAD],
        [closing()] if closings is None else list(closings),
        **keys,
    )


def state(transcript: Transcript | None = None, finish: Finish | None = ENDED, **keys: Any) -> PageState:
    free = Price(Decimal(0), Decimal(0))
    return PageState(
        **{"header": HEADER, "transcript": transcript or whole(), "roles": TRIAD, "model": MODEL, "finish": finish,
           "prices": {MODEL: free}, **keys}
    )  # fmt: skip


def page(**keys: Any) -> Page:
    return build_page(state(**keys))


# ── status ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deliberation_in_which_nothing_is_missing_succeeded() -> None:
    assert state().status == "succeeded"


def failed(**keys: Any) -> TurnResult:
    return TurnResult("", MODEL, failure=TIMEOUT, **keys)


@pytest.mark.parametrize(
    "transcript",
    [
        lambda: whole(turn("A"), turn("B", result=failed(), stance=None)),
        lambda: whole(turn("A", stance=None, fault="no JSON", repairs=(failed(),))),
        lambda: whole(turn("A", stance=None, ballot=("A", "B"), fault="no JSON")),
        lambda: whole(turn("A", result=TurnResult("cut o", MODEL, "length"))),
        lambda: whole(turn("A", result=TurnResult("x", "m2", replaced=(AbsentModel(MODEL, "timeout", "late"),)))),
        lambda: whole(closings=[]),
        lambda: whole(closings=[closing(result=failed(), record=None), closing("AUDITOR")]),
        lambda: whole(closings=[closing(record=ClosingRecord(None, fault="no JSON", text="Prose."))]),
        lambda: whole(closings=[closing(record=ClosingRecord(RECORD, repairs=(failed(),)))]),
        lambda: whole(closings=[closing(result=TurnResult("cut o", MODEL, "length"), record=ClosingRecord(None))]),
        lambda: whole(stopped="no more calls"),
    ],
    ids=[
        "a turn failed", "a repair failed", "no ballot was read", "a turn was cut off", "another model answered",
        "nobody closed", "a closing call failed", "the record was not read", "its repair failed",
        "a closing without a record was cut off", "a budget ended the rounds",
    ],
)  # fmt: skip
def test_it_is_degraded_when_something_is_missing(transcript: Callable[[], Transcript]) -> None:
    assert state(transcript()).status == "degraded"
    assert "**Degraded.**" in notes_of(state(transcript()))[0]


def test_the_head_of_a_degraded_page_begins_with_what_is_missing_and_only_then_says_who_answered() -> None:
    lines = [turn("COORDINATOR"), turn("STRATEGIST", result=failed(), stance=None), turn("AUDITOR")]
    echo = evidence("", asked_by="AUDITOR", argument="b.md", error="refused", error_code="echoed")
    notes = notes_of(state(whole(*lines, echo, evidence("E2", argument="b.md"))))
    assert notes[:2] == [
        "**Degraded.** STRATEGIST did not answer in round 1 (timeout): too late",
        "Answered: COORDINATOR in 1 turn; STRATEGIST in no turn; AUDITOR in 1 turn.",
    ]
    assert notes[-1].endswith("Another agent's request for it was answered.")
    transcript = whole()
    transcript.inputs.append(
        evidence("", asked_by="STEWARD", round=0, argument="b.md", error="gone", error_code="gone")
    )
    warned = ClosingRecord(RECORD.model_copy(update={"answer": "Take beta [E9]."}))
    transcript.closings[:] = [closing(record=warned)]
    head, _, warning, *_ = notes_of(state(transcript))
    assert head == "**Degraded.** An input could not be read: `b.md`: gone"
    assert "E9" in warning


def test_a_footnote_mark_behind_words_that_are_cut_off_stays_whole() -> None:
    transcript = whole()
    transcript.inputs.append(evidence(asked_by="STEWARD", round=0, title=f"`a.md` {'x' * 3_000}"))
    page = render(build_page(state(transcript)), "artifacts/out.md")
    [given] = [line for line in page.splitlines() if line.startswith("- `a.md` ")]
    assert given.endswith("…[^E1]")
    assert len(given) < 1_100


def test_who_cancelled_is_told_beside_it() -> None:
    assert notes_of(state(finish=Finish("t", cancelled=True)))[0].startswith("**Cancelled.** ")
    assert notes_of(state(finish=Finish("t", cancelled=True, cancelled_by="Ana")))[0].startswith(
        "**Cancelled** (Ana). "
    )


def test_a_refused_echo_is_told_once_with_everybody_who_asked_for_it() -> None:
    def echo(role: str, round_no: int, argument: str = "a.md") -> Evidence:
        return evidence("", asked_by=role, round=round_no, argument=argument, error="refused", error_code="echoed")

    echoes = [*map(echo, ("AUDITOR", "AUDITOR", "AUDITOR", "STRATEGIST"), (1, 1, 2, 2)), echo("AUDITOR", 2, "b.md")]
    told = [note for note in notes_of(state(whole(turn("AUDITOR"), *echoes))) if "echo" in note]
    assert [note.partition(" refused as an echo")[0] for note in told] == [
        "**Degraded.** A request of AUDITOR in round 2 was",
        "Requests of AUDITOR in rounds 1 and 2 and STRATEGIST in round 2 were",
    ]


def test_one_ballot_that_was_read_ranks_the_answers() -> None:
    ballots = (turn("A", stance=None, ballot=("A", "B"), ranking=("B", "A")),
               turn("B", stance=None, ballot=("A", "B"), fault="no JSON"))  # fmt: skip
    assert [note for note in notes_of(state(whole(*ballots))) if "ranking could be read" in note] == []
    assert [note for note in notes_of(state(whole(ballots[1]))) if "ranking could be read" in note]


def test_a_call_that_failed_at_its_token_limit_is_told_once() -> None:
    notes = notes_of(state(whole(turn("A", result=msgspec.structs.replace(failed(), finish="length"), stance=None))))
    assert [note for note in notes if "is cut off" in note] == []


@pytest.mark.parametrize(
    "transcript",
    [
        lambda: whole(turn("A", stance=None)),
        lambda: whole(turn("A", stance=None, fault="no JSON", repairs=(TurnResult("Hm.", MODEL),))),
        lambda: whole(turn("A"), evidence("", error_code="denied", error="not to be read")),
        lambda: whole(closings=[closing(result=TurnResult("{…}", MODEL, "length"))]),
        lambda: whole(ending=Ending("unanimity", "all agree", 3)),
    ],
    ids=["no stance", "an unreadable stance", "a refused request", "a whole record that was cut behind", "early stop"],
)
def test_it_is_not_degraded_by_what_agents_are_free_to_do(transcript: Callable[[], Transcript]) -> None:
    assert state(transcript()).status == "succeeded"


def test_an_input_that_cannot_be_read_degrades() -> None:
    transcript = whole()
    transcript.inputs.append(evidence("", error_code="not_found", error="gone", asked_by="STEWARD", round=0))
    assert state(transcript).status == "degraded"


@pytest.mark.parametrize(
    ("finish", "status"),
    [
        (Finish("t", cancelled=True), "cancelled"),
        (Finish("t", ErrorRef("internal", "a defect")), "failed"),
        (Finish("t", ErrorRef("internal", "a defect"), cancelled=True), "cancelled"),
    ],
)
def test_a_run_that_was_ended_is_never_degraded(finish: Finish, status: str) -> None:
    for transcript in (whole(), whole(closings=[])):
        assert status_of(transcript, [], finish) == status


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("keys", "heading", "status"),
    [
        ({}, "Decision", "succeeded"),
        ({"finish": None}, "In progress", "in_progress"),
        ({"finish": None, "looked_up": state().decision}, "Decision", "in_progress"),
        ({"finish": None, "transcript": whole(closings=[])}, "In progress", "in_progress"),
        ({"transcript": whole(closings=[])}, "No decision", "degraded"),
        ({"transcript": whole(closings=[]), "finish": Finish("t", cancelled=True)}, "Cancelled", "cancelled"),
        ({"transcript": whole(closings=[]), "finish": Finish("t", ErrorRef("x", "y"))}, "No decision", "failed"),
        ({"model": "offline"}, "Extract", "succeeded"),
        ({"transcript": whole(turn("AUDITOR", result=failed(), stance=None))}, "Answer", "degraded"),
    ],
    ids=[
        "decided",
        "closing",
        "closing, looked up",
        "under way",
        "nobody wrote",
        "cancelled",
        "failed",
        "offline",
        "nobody had spoken",
    ],
)
def test_the_word_decision_stands_only_over_one(keys: dict[str, Any], heading: str, status: str) -> None:
    shown = page(**keys)
    assert (shown.heading, shown.front_matter["status"]) == (heading, status)


def test_a_page_tells_who_said_what_in_which_round_and_what_it_rests_on() -> None:
    asked = evidence("E2", argument="b.md", title="`b.md`", path="b.md")
    refused = evidence("", error_code="denied", error="it is not to be read")
    shown = page(transcript=whole(turn("COORDINATOR"), asked, refused, turn("AUDITOR", 2)))
    assert [(each.number, [type(entry).__name__ for entry in each.entries]) for each in shown.rounds] == [
        (1, ["PageSpeech", "PageRequest", "PageRequest"]),
        (2, ["PageSpeech"]),
    ]
    assert [(note.id, note.how) for note in shown.footnotes] == [
        ("E1", "Given with the command."),
        ("E2", "Asked for by AUDITOR, round 1."),
    ]
    assert shown.byline.startswith(f"Synthesis by COORDINATOR ({MODEL}) of 2 turns.")


def test_a_page_that_grows_shows_who_is_speaking_and_an_ended_one_does_not() -> None:
    speaking = [("STRATEGIST", 2, "I would s"), ("AUDITOR", 2, ""), ("AUDITOR", 3, " \n")]
    growing = page(finish=None, speaking=speaking)
    assert [(each.number, len(each.entries)) for each in growing.rounds] == [(1, 3), (2, 1)]
    assert len(page(speaking=speaking).rounds) == 1


def test_members_without_names_are_told_beside_the_decision() -> None:
    shown = page(names=Names({"COORDINATOR": "B", "STRATEGIST": "A", "AUDITOR": "C"}))
    assert "Member B is COORDINATOR. Member A is STRATEGIST. Member C is AUDITOR." in shown.byline


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ((False,), "No agent answered."),
        ((False, False), "No agent answered."),
        ((True, False), "COORDINATOR, STRATEGIST and AUDITOR each answered in 1 of 2 turns."),
    ],
)
def test_the_page_counts_the_turns_in_which_nobody_answered_in_plain_words(rounds: tuple[bool, ...], said: str) -> None:
    turns = [
        turn(role, number) if answers else turn(role, number, result=failed())
        for number, answers in enumerate(rounds, start=1)
        for role in TRIAD
    ]
    assert attendance(whole(*turns), TRIAD) == said


def test_a_decision_in_place_of_another_says_whose_call_failed() -> None:
    transcript = whole(closings=[closing(result=failed(), record=None), closing("AUDITOR")])
    notes = notes_of(state(transcript))
    assert notes[0] == "**Degraded.** The closing call of COORDINATOR failed (timeout): too late"
    assert "The decision was written by AUDITOR instead." in notes
    assert "instead of COORDINATOR" in page(transcript=transcript).byline


def test_a_model_that_answered_for_another_is_named_once_with_where_it_did() -> None:
    late, stood_in = (
        TurnResult("x", "m2", replaced=(AbsentModel(MODEL, kind, said),))
        for kind, said in (("timeout", "late"), ("unreachable", "no way"))
    )
    turns = [turn(role, number, result=stood_in) for number in (1, 2) for role in ("A", "B", "C")]
    record = ClosingRecord(RECORD, "turn_1", repairs=(stood_in, late))
    closings = [closing(result=failed(), record=None), closing("B", record=record)]
    notes = notes_of(state(whole(*turns, turn("B", 3, result=stood_in), closings=closings)))
    assert [note for note in notes if "instead of scripted" in note] == [
        "**Degraded.** A, B and C in rounds 1 and 2; B in round 3; the closing call of B: m2 answered instead of "
        f"{MODEL} (unreachable): no way",
        f"The closing call of B: m2 answered instead of {MODEL} (timeout): late",
    ]


def test_a_refused_call_is_what_a_failed_run_ended_with() -> None:
    refused = ModelCall("round/2/AUDITOR", "AUDITOR", 2, failed())
    error = Finish("t", ErrorRef("model_auth", "no key", "set one"))
    shown = state(whole(closings=[]), error, refused=[refused])
    assert "It ended with the call of AUDITOR in round 2." in notes_of(shown)
    assert "To fix it: set one." in build_page(shown).answer


def test_a_failed_page_says_the_reason_and_the_fix_of_its_end_once_and_others_too() -> None:
    refused, dropped = Failure("network", "refused.", "start it"), Failure("network", "dropped", "start it")
    silent = [turn(role, result=TurnResult("", MODEL, failure=why)) for role, why in (("A", refused), ("B", dropped))]
    error = Finish("t", ErrorRef("council_silent", "2 turns gave no answer; the last: dropped.", "start it; ask again"))
    notes = notes_of(state(whole(*silent, closings=[]), error))
    assert notes[-2:] == ["A did not answer in round 1 (network): refused.", "B did not answer in round 1 (network)."]
    notes = notes_of(state(whole(*silent)))
    assert notes[-1] == "B did not answer in round 1 (network): dropped. To fix it: start it."


@pytest.mark.parametrize(("stage", "heading"), [("task", "Declined"), ("decision", "Withheld")])
def test_what_a_guardrail_stopped_is_not_on_the_page(stage: Any, heading: str) -> None:
    judged = Judgement(stage, "It", Verdict("block", "weapon", "it is a weapon"))
    shown = page(finish=Finish("t", ErrorRef("guardrail_blocked", "declined")), judged=[judged])
    assert shown.heading == heading
    if stage == "decision":
        assert (shown.rounds, shown.sections, shown.tables) == ((), (), ())
        assert "Take alpha" not in render(shown, "artifacts/out.md")


def test_the_same_state_gives_the_same_bytes() -> None:
    assert render(page(), "artifacts/out.md") == render(page(), "artifacts/out.md")


def test_a_citation_of_a_path_with_any_punctuation_is_a_link() -> None:
    record = RECORD.model_copy(update={"answer": "Take alpha [E1:1]."})
    odd = whole(closings=[closing(record=ClosingRecord(record))])
    odd.inputs[:] = [evidence(asked_by="STEWARD", round=0, path="docs/Minutes, 1.12 [final].md")]
    link = "[[E1 docs/Minutes, 1.12 (final).md:1](../docs/Minutes%2C%201.12%20%5Bfinal%5D.md#L1)]"
    assert f"Take alpha {link}." in render(page(transcript=odd), "artifacts/out.md")


@pytest.mark.parametrize(("many", "told"), [(399, False), (401, True)])
def test_a_decision_with_too_many_figures_says_that_the_last_ones_were_not_calculated(many: int, told: bool) -> None:
    said = "".join(f"It is {number} EUR [E1:1]. " for number in range(5_000, 5_000 + many))
    record = RECORD.model_copy(update={"answer": f"{said}."})
    shown = page(transcript=whole(closings=[closing(record=ClosingRecord(record))]))
    assert any("whether the last ones follow from cited ones" in note for note in shown.notes) is told


UNREAD = ClosingRecord(None, fault="`confidence`: input should be less than or equal to 1; it is 2")


def test_of_a_record_that_cannot_be_read_the_answer_is_shown_and_looked_up() -> None:
    reply = '{"answer": "Take alpha [E1:1], “alpha is last” [E1].", "claims": [], "confidence": 2}'
    unread = closing(result=TurnResult(reply, MODEL), record=dataclasses.replace(UNREAD, text=reply))
    shown = page(transcript=whole(closings=[unread]))
    assert shown.answer == "Take alpha [E1: a.md:1], “alpha is last” [unverified] [E1]."
    [note] = [note for note in shown.notes if "could not be read" in note]
    assert note.startswith("**Degraded.** Only the decision's answer is shown.")
    assert "input should be less than or equal to 1" in note
    assert "plain text" not in shown.byline


def test_a_reply_that_is_shown_as_it_was_written_has_no_links_and_the_page_says_that_nothing_was_looked_up() -> None:
    for reply in ('{"verdict": "Take alpha [E1:1]."}', '```json\n{"verdict": "Take alpha [E1:1]."}\n```'):
        unread = closing(result=TurnResult(reply, MODEL), record=dataclasses.replace(UNREAD, text=reply))
        shown = page(transcript=whole(closings=[unread]))
        assert '```json\n{"verdict": "Take alpha [E1:1]."}\n```' in render(shown, "artifacts/out.md")
        assert any("nothing in it was looked up" in note for note in shown.notes)
        assert "plain text" not in shown.byline


def test_citations_in_code_are_no_links() -> None:
    record = RECORD.model_copy(
        update={"answer": "Write `say [E1:1]` as in\n\n```text\n[E1: a.md:1]\n```\n\nand [E1:1]."}
    )
    text = render(page(transcript=whole(closings=[closing(record=ClosingRecord(record))])), "artifacts/out.md")
    assert "Write `say [E1:1]` as in\n\n```text\n[E1: a.md:1]\n```\n\nand [[E1 a.md:1](../a.md#L1)]." in text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["1. Do it - or 2. not", "2. Tell all"], "1. Do it - or 2. not\n2. Tell all"),
        (["1) Do it"], "1. Do it"),
        (["- Do it", "* Tell all", "# Wait"], "1. Do it\n2. Tell all\n3. Wait"),
        (["15. Mai: sign it", "Tell all"], "1. 15\\. Mai: sign it\n2. Tell all"),
        (["1. Mai: sign it"], "1. 1\\. Mai: sign it"),
        (["- 5 % of it"], "1. \\- 5 % of it"),
        (["-5 % of it", "1.5 of it", "*All* of it"], "1. -5 % of it\n2. 1.5 of it\n3. *All* of it"),
    ],
)
def test_items_that_their_writer_numbered_or_marked_are_listed_once(given: list[str], shown: str) -> None:
    record = RECORD.model_copy(update={"next_steps": tuple(given)})
    text = render(page(transcript=whole(closings=[closing(record=ClosingRecord(record))])), "artifacts/out.md")
    assert f"### Next steps\n\n{shown}\n\n### Confidence" in text


# ── calls and what they cost ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_call_is_counted_once_with_its_step_and_what_it_was_for() -> None:
    repaired = turn("AUDITOR", repairs=(TurnResult("r", MODEL),))
    found = evidence("E2", embeddings=(EmbeddingCall("e", Usage(5)), EmbeddingCall("e")))
    spent = TurnResult("", MODEL, failure=Failure("budget", "spent"))
    closings = [
        closing(result=failed(), record=None),
        closing("AUDITOR", record=ClosingRecord(RECORD, repairs=(failed(),))),
    ]
    transcript = whole(repaired, found, turn("STRATEGIST", 2, result=spent), closings=closings)
    beside = [ModelCall("memory/summary", "", 0, TurnResult("s", MODEL), "memory summary")]
    refused = [ModelCall("round/2/AUDITOR", "AUDITOR", 2, failed())]
    assert [(call.step, call.purpose) for call in calls_of(transcript, refused, beside)] == [
        ("round/1/AUDITOR", "turn"),
        ("round/1/AUDITOR/repair/1", "repair"),
        ("synthesis", "closing"),
        ("synthesis/AUDITOR", "closing"),
        ("synthesis/AUDITOR/repair/1", "closing repair"),
        ("memory/summary", "memory summary"),
        ("round/1/AUDITOR/request/1", "embedding"),
        ("round/1/AUDITOR/request/1/embedding/1", "embedding"),
        ("round/2/AUDITOR", "turn"),
    ]


@pytest.mark.parametrize(
    ("model", "price", "usage", "told"),
    [
        ("gemini:g", Price(Decimal(1), Decimal(10)), Usage(100_000, 10_000), "0.80 USD"),
        ("gemini:g", Price(Decimal(1), Decimal(10)), None, "unknown"),
        ("gemini:g", None, Usage(100_000, 10_000), "unknown"),
        ("cassette:gemini:g", None, Usage(100_000, 10_000), "none"),
    ],
    ids=["priced", "not counted", "no price", "from a cassette"],
)
def test_the_front_matter_counts_money_and_never_guesses(
    model: str, price: Price | None, usage: Usage | None, told: str
) -> None:
    result = TurnResult("x", model, usage=usage)
    transcript = whole(*(turn(role, result=result) for role in TRIAD), closings=[closing(result=result)])
    assert page(transcript=transcript, model=model, prices={model: price}).front_matter["cost"] == told


def test_an_account_tells_what_the_page_is_made_of() -> None:
    mended = turn("STRATEGIST", repair="turn_1", repairs=(TurnResult("r", MODEL),))
    found = evidence("E2")
    account = account_of(state(whole(turn("COORDINATOR"), mended, found, turn("AUDITOR", stance=stance("Wait.")))), 3)
    assert [call.step for call in account.calls][:2] == ["round/1/COORDINATOR", "round/1/STRATEGIST"]
    assert [(read.step, read.id) for read in account.reads] == [("input/1", "E1"), ("round/1/AUDITOR/request/1", "E2")]
    assert [each.position for each in account.stances] == ["Take alpha.", "Take alpha.", "Wait."]
    assert [(each.step, each.what, each.calls) for each in account.mended] == [("round/1/STRATEGIST", "stance", 1)]
    assert (account.written_by, account.max_rounds, account.page) == ("COORDINATOR", 3, build_page(state(
        whole(turn("COORDINATOR"), mended, found, turn("AUDITOR", stance=stance("Wait."))))))  # fmt: skip


def test_a_withheld_decision_takes_the_positions_with_it() -> None:
    judged = Judgement("decision", "It", Verdict("block", "weapon", "it is a weapon"))
    shown = state(finish=Finish("t", ErrorRef("guardrail_blocked", "withheld")), judged=[judged])
    told = msgspec.json.encode(account_of(shown, 1).stances).decode()
    assert "Take alpha" not in told
    assert "(position 1, withheld)" in told
