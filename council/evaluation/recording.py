"""An evaluation's whole model traffic as one cassette: the runs of its council, and the calls that are no part of a
run.

The runs are rendered from their journals, as `council cassette` does it. Ballots, and the calls that ask for an answer
again, are noted as they are made, behind retries and stand-ins: `traffic.jsonl`. Ballots differ in nothing but their
number, so only the first one's prompt is kept whole; of each, its hash is what answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Unpack

import msgspec

from council.app import App
from council.errors import ModelError, UsageError
from council.evaluation.meter import BALLOT
from council.evaluation.questions import Question
from council.evaluation.results_folder import Results
from council.evaluation.self_consistency import NO_ANSWER
from council.ids import sha256_hex
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, TurnInfo, request_hash
from council.llm.cassette import MAX_CASSETTE_BYTES, Cassette, CassetteCall, CassetteFailure, asked_call, encode, joined
from council.redaction import Redactor
from council.reports.cassette_export import record, redacted_call
from council.reports.past_run import requests_of
from council.storage.files import append_line
from council.typed_json import decode_json

_ANEW = "start a new evaluation, which keeps all its calls"


class RecordingModel(ModelAround):
    """A model whose calls are noted, one line each, appended to `traffic` (unsynced: a power cut may cost the last ones).
    Noted are replies, and failures that are the question's own. Others are asked again."""

    def __init__(self, inner: Model, traffic: Path, redactor: Redactor) -> None:
        super().__init__(inner)
        self._traffic = traffic
        self._redactor = redactor

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        info = asked.get("info") or TurnInfo()
        system = asked["system"]
        keeps = info.role != BALLOT or info.round <= 1 or len(messages) > 2  # a repair says what was wrong, too
        step = _step(info.task, info.role, info.round)
        call = asked_call(step, request_hash(self.name, system, messages), system, messages, info)
        if not keeps:
            call = msgspec.structs.replace(call, system="", messages=None)
        try:
            reply = await self._inner.generate(messages, **asked)
        except ModelError as error:
            if error.kind in NO_ANSWER:
                failed = CassetteFailure(error.kind, error.message, error.fix)
                self._note(msgspec.structs.replace(call, failed=failed))
            raise
        call = msgspec.structs.replace(call, text=reply.text, finish=reply.finish, model=reply.model, usage=reply.usage)
        self._note(call)
        return reply

    def _note(self, call: CassetteCall) -> None:
        append_line(self._traffic, msgspec.json.encode(redacted_call(call, self._redactor)))


def _step(task: str, role: str, number: int) -> str:
    return f"{sha256_hex(task)[:12]}/{role.lower()}/{number}"


async def cassette_of(results: Results, app: App, questions: Iterable[Question], redactor: Redactor) -> bytes:
    """All that was answered, as a cassette. `app` is one on the evaluation's home, whose own model is not asked. Raises
    UsageError when nothing is answered yet, or some calls are not kept; CannotRender, JournalDamaged."""
    answered = {step.name for step in results.journal.steps()}
    # Each once, as it was answered last: what a kill cut off was asked again, and only that answer counts.
    noted: dict[tuple[str, str, int], CassetteCall] = {}
    for line in results.traffic.read_bytes().split(b"\n") if results.traffic.exists() else ():
        with contextlib.suppress(msgspec.MsgspecError):  # empty, or torn by a power cut
            call = decode_json(line, CassetteCall)
            noted[call.request, call.role, call.round] = call
    kept = {call.step for call in noted.values()}
    runs: list[Cassette] = []
    for question in questions:
        if f"{question.id}/council" not in answered:
            continue
        ballots = sum(name.startswith(f"{question.id}/ballot/") for name in answered)
        if not kept.issuperset(_step(question.task, BALLOT, number) for number in range(1, ballots + 1)):
            raise UsageError(f"some calls of the evaluation {results.id} are not kept.", fix=_ANEW)
        bound = app.receipts.bound(question.ref)
        receipt = app.receipts.read(bound.run_id) if bound is not None else None
        if receipt is None:
            raise UsageError(f"{question.id}: the receipt of its run is gone.", fix=_ANEW)
        journal = app.ledger.journal(receipt.run_id)
        asked = await requests_of(journal, app.handlers_asking)
        runs.append(record(journal, question.task, asked, receipt.status, redactor).cassette)
    if not runs:
        raise UsageError(f"the evaluation {results.id} has no answer yet.", fix="continue with --resume")
    every = joined(runs)
    data = encode(every.header, [*every.calls, *(redacted_call(call, redactor) for call in noted.values())])
    if len(data) > MAX_CASSETTE_BYTES:
        message = f"the calls come to {len(data):,} bytes, but a cassette may have {MAX_CASSETTE_BYTES:,}."
        fix = "record fewer questions (--limit), or smaller documents"
        raise UsageError(message, fix=fix)
    return data
