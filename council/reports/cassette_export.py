"""A cassette made of an ended run: what it asked, rendered again, beside what was answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec

from council import __version__
from council.engine.run_records import FINISH, RecordedStep, RunRecords
from council.engine.runs import Finish
from council.errors import FATAL, ModelErrorKind, RunNotFound
from council.ids import canonical_json, sha256_hex
from council.llm import cassette
from council.llm.base import GUARDIAN, Message
from council.redaction import Redactor
from council.reports.timeline import value_in
from council.safety.second_opinion import Opinion
from council.turns.result import TurnResult
from council.typed_json import convert, decode_json

_KINDS = frozenset(get_args(ModelErrorKind))
_NOT_KEPT = "(what was said is not kept)"  # of an opinion that was none


class _Start(msgspec.Struct):
    """The part of a run's `start` that is of use here."""

    model: str
    meanings: str | None = None


class _NestedAnswer(msgspec.Struct):
    result: TurnResult


@dataclass(frozen=True)
class Tape:
    """A cassette, and what is to be said of it. `models` asked the calls. `unrendered` are steps whose words are not kept,
    `forgotten` ones in which words were forgotten since."""

    cassette: cassette.Cassette
    models: tuple[str, ...]
    unrendered: tuple[str, ...]
    forgotten: tuple[str, ...]

    def data(self) -> bytes:
        return cassette.encode(self.cassette.header, self.cassette.calls)


def record(
    journal: RunRecords, task: str, asked: Iterable[cassette.CassetteCall], status: str, redactor: Redactor
) -> Tape:
    """Raises RunNotFound for a run in which no model was asked, JournalDamaged for a record that cannot be read."""
    steps = {step.name: step for step in journal.steps()}
    known = {call.step: call for call in asked}
    answers = {name: value_in(step.answer, Opinion) for name, step in steps.items()}
    opinions = {name: opinion for name, opinion in answers.items() if opinion is not None}
    calls = [
        call
        for name, step in steps.items()
        if name not in opinions and (call := _call(step, known.get(name))) is not None
    ]
    error = decode_json(steps[FINISH].answer, Finish).error if FINISH in steps else None
    fatal = {f"model_{kind}": kind for kind in FATAL}
    if error is not None and error.code in fatal:  # it ended the run, and the calls under way with it
        failed = cassette.CassetteFailure(fatal[error.code], error.message, error.fix)
        calls += [msgspec.structs.replace(call, failed=failed) for call in known.values() if call.step not in steps]
    calls += [call for name, said in opinions.items() if (call := _opined(name, said, known.get(name))) is not None]
    header = journal.header
    if not calls:
        raise RunNotFound(f"run {header.run_id} asked no model.", fix="`council show` says what it did")
    cleaned = [redacted_call(call, redactor) for call in calls]
    redacted = sum(after != before for before, after in zip(calls, cleaned, strict=True))
    start = decode_json(steps["start"].answer, _Start)
    window = decode_json(steps["window"].answer, int) if "window" in steps else 0
    run = cassette.RecordedRun(
        run_id=header.run_id,
        run_secret=header.secret,
        task_sha256=sha256_hex(task),
        window_chars=window,
        status=status,
        opinions=next((opinion.model for opinion in opinions.values()), ""),
        day=header.day,
    )
    head = cassette.Header(
        cassette=cassette.FORMAT,
        council=__version__,
        epoch=header.epoch,
        model=start.model,
        runs=(run,),
        redacted=redacted,
        meanings=start.meanings or "",
    )
    unrendered = tuple(call.step for call in cleaned if call.messages is None)
    hashes = {name: opinions[name].asked if name in opinions else step.request for name, step in steps.items()}
    rendered = [call for call in calls if call.step in known]
    forgotten = tuple(call.step for call in rendered if hashes.get(call.step) not in (None, call.request))
    return Tape(cassette.Cassette(head, tuple(cleaned)), (start.model,), unrendered, forgotten)


def spliced(tapes: Sequence[Tape]) -> Tape:
    """The tapes of several runs as one."""
    return Tape(
        cassette.joined([tape.cassette for tape in tapes]),
        tuple(dict.fromkeys(model for tape in tapes for model in tape.models)),
        tuple(step for tape in tapes for step in tape.unrendered),
        tuple(step for tape in tapes for step in tape.forgotten),
    )


def _opined(step: str, opinion: Opinion, asked: cassette.CassetteCall | None) -> cassette.CassetteCall | None:
    """The call that an opinion came of; None for one that the budget refused."""
    if opinion.failure not in (*_KINDS, ""):
        return None
    call = asked or cassette.CassetteCall(step, opinion.asked, role=GUARDIAN)
    call = msgspec.structs.replace(call, model=opinion.model, usage=opinion.usage)
    if opinion.failure in ("length", "empty") and opinion.usage is not None:  # there were thoughts, and nothing else
        return msgspec.structs.replace(call, thoughts=True, finish="length" if opinion.failure == "length" else "stop")
    if opinion.failure == "protocol":
        return msgspec.structs.replace(call, text=_NOT_KEPT)
    if opinion.failure:
        kind = convert(opinion.failure, ModelErrorKind)
        return msgspec.structs.replace(call, failed=cassette.CassetteFailure(kind, "no second opinion"))
    said = {"outcome": opinion.outcome, "law": opinion.law, "posture": opinion.posture or "none"}
    return msgspec.structs.replace(call, text=canonical_json(said).decode())


def _call(step: RecordedStep, asked: cassette.CassetteCall | None) -> cassette.CassetteCall | None:
    """The call of a step. None for one that asked no model: a tool's, or a call that the budget refused."""
    if asked is None and not step.request:
        return None
    result = value_in(step.answer, TurnResult) or decode_json(step.answer, _NestedAnswer).result
    if result.failure is not None and result.failure.kind not in _KINDS:
        return None
    call = asked or cassette.CassetteCall(step.name, step.request)
    if result.failure is not None:
        failed = convert(result.failure, cassette.CassetteFailure, from_attributes=True)
        return msgspec.structs.replace(call, failed=failed)
    return msgspec.structs.replace(
        call,
        text=result.text,
        finish=result.finish,
        model=result.model,
        usage=result.usage,
        replaced=result.replaced,
        thoughts=result.thoughts,
    )


def redacted_call(call: cassette.CassetteCall, redactor: Redactor) -> cassette.CassetteCall:
    """A secret that stood in a document is not carried out of the home: that prompt is then not the one that was sent."""
    clean = redactor.redact
    messages = call.messages and tuple(Message(message.role, clean(message.text)) for message in call.messages)
    failed = call.failed and msgspec.structs.replace(call.failed, message=clean(call.failed.message))
    replaced = tuple(msgspec.structs.replace(model, message=clean(model.message)) for model in call.replaced)
    return msgspec.structs.replace(
        call, system=clean(call.system), messages=messages, text=clean(call.text), failed=failed, replaced=replaced
    )
