"""The records of one run, to be read: its rows in the table `steps`, and what they say together. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from council.engine import statements as sql
from council.engine.records import (
    OWN,
    RESTORE,
    Commit,
    Continuation,
    Part,
    Record,
    Retry,
    RunHeader,
    StepResult,
    StepStart,
    Waiting,
)
from council.errors import JournalDamaged
from council.storage.store import Tx
from council.typed_json import decode_json, json_decoder

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoder = json_decoder(Record)
ATTEMPT = "attempt"  # such a `begin` is no step: an execution began
HANDBACK = "handback"  # … or ended because the process did
FINISH = "finish"  # the step that records how the work ended
AUDIT_HEAD = "audit_head"  # the step that records the end of the audit's chain as it was before the commit
ENDING = (FINISH, AUDIT_HEAD)  # what a run records of its end, and again when it goes on after all


class JournalEnd(BaseException):
    """A step was asked for that is not recorded, and nothing more is to be done: the end of the run is."""


@dataclass(frozen=True)
class RecordedStep:
    """A step as it was recorded: what was asked, as a hash, the answer as JSON, and its part in the run."""

    name: str
    request: str
    answer: bytes
    part: Part = OWN


class JournalRow(NamedTuple):
    """A record as it lies in the table `steps`. `out` is JSON: a step's result, of other kinds the record."""

    kind: str
    name: str
    request: str
    at_ms: int
    out: str


def row_of(record: Record) -> JournalRow:
    match record:
        case StepStart():
            return JournalRow("begin", record.name, "", record.at, _encoder.encode(record.part).decode())
        case StepResult():
            return JournalRow("done", record.name, record.request, record.at, bytes(record.out).decode())
        case _:
            return JournalRow(type(record).__struct_config__.tag, "", "", 0, _encoder.encode(record).decode())  # type: ignore[arg-type]


def record_of(row: JournalRow, run_id: str) -> Record:
    """Raises JournalDamaged for a row that no version wrote."""
    try:
        if row.kind == "done":
            return StepResult(row.name, row.request, decode_json(row.out, msgspec.Raw), row.at_ms)
        if row.kind == "begin":  # older versions left `out` empty
            return StepStart(row.name, row.at_ms, decode_json(row.out or "{}", Part))
        record: Record = _decoder.decode(row.out)
        return record
    except msgspec.MsgspecError as error:
        what = f"the step {row.name}" if row.kind == "done" else f"a row of kind {row.kind!r}"
        raise JournalDamaged(f"{what} of run {run_id} cannot be read ({error}).", fix=RESTORE) from error


def rows_of(tx: Tx, run: int, *, after: int = 0) -> list[tuple[int, JournalRow]]:
    """The rows of one run with their numbers, in order; those with a number above `after`."""
    return [(found[0], JournalRow(*found[1:])) for found in tx.execute(sql.STEPS, (run, after)).fetchall()]


def header_of(encoded: str, run_id: str) -> RunHeader:
    """Record 0. Raises JournalDamaged."""
    try:
        return decode_json(encoded, RunHeader)
    except msgspec.MsgspecError as error:
        raise JournalDamaged(f"record 0 of run {run_id} cannot be read ({error}).", fix=RESTORE) from error


class RunRecords:
    """The sum of the records of one run."""

    def __init__(self, header: RunHeader, records: Iterable[Record] = ()) -> None:
        """`records` are those after `header`, in their order."""
        self.header = header
        self._steps: dict[str, StepResult] = {}
        self._parts: dict[str, Part] = {}
        self.committed: Commit | None = None
        self.waits: list[Waiting] = []  # since the last step
        self.attempts = 0
        self.begun = False  # since it was admitted or told to go on
        self.fruitless_attempts = 0  # the last ones in a row that recorded nothing, the present one included
        self.retries = 0
        self.text_bytes = 0
        self.reopened_by: str | None = None
        self.accepts_drift = False  # True: it goes on although the model or Council's prompts changed
        self.named_model = ""  # when it was told to go on; empty: it keeps the one that it began with
        for record in records:
            self._remember(record)

    def steps(self) -> list[RecordedStep]:
        return [
            RecordedStep(step.name, step.request, bytes(step.out), self._parts.get(step.name, OWN))
            for step in self._steps.values()
        ]

    def recorded(self, name: str) -> bool:
        return name in self._steps

    def value(self, name: str, type: type[T]) -> T | None:
        """The recorded result of a step, None when there is none."""
        return self.result(name, type) if name in self._steps else None

    def result(self, name: str, type: type[T]) -> T:
        """The result of a step that is recorded. Raises JournalDamaged."""
        try:
            return decode_json(self._steps[name].out, type)
        except msgspec.MsgspecError as error:
            told = f"the step {name} of run {self.header.run_id} does not hold what it should ({error})."
            raise JournalDamaged(told, fix=RESTORE) from error

    @property
    def model(self) -> str:
        """The spelling of the model that the run asks; empty where an older version did not note it."""
        return self.named_model or self.header.model

    def ended_ms(self, name: str) -> int | None:
        """The end of a recorded step, in milliseconds since the epoch; None where an older version did not note it."""
        return self._steps[name].at or None

    def _remember(self, record: Record) -> None:
        if not isinstance(record, StepStart | Retry) or (isinstance(record, StepStart) and record.name == HANDBACK):
            self.fruitless_attempts = 0
        if isinstance(record, StepResult):
            self._steps[record.name] = record
            self.text_bytes += len(record.out)
            self.waits.clear()
        elif isinstance(record, StepStart):
            self._parts[record.name] = record.part
            self.attempts += record.name == ATTEMPT
            self.begun = True
            self.fruitless_attempts += record.name == ATTEMPT
        elif isinstance(record, Commit):
            self.committed = record
        elif isinstance(record, Continuation):
            self.reopened_by, self.accepts_drift = record.by, self.accepts_drift or record.accept_drift
            self.named_model = record.model or self.named_model
            self.committed, self.begun = None, False
            self.waits.clear()
            for step in ENDING:
                self._steps.pop(step, None)
            if record.retry_from:
                self.retries += 1
                names = list(self._steps)
                for name in names[names.index(record.retry_from) :] if record.retry_from in self._steps else ():
                    del self._steps[name]
        elif isinstance(record, Waiting):
            self.waits.append(record)
