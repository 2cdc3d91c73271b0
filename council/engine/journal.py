"""The journal of one run: numbered rows of the store, one synced transaction per step.

A `step` records a result once. An `effect` makes a change in the same transaction as its record. Of an `ephemeral` step, whose
words must not be written down, only a small typed outcome is kept. A step that is recorded is never run again, and is on
the disk before another one begins. The run's one owner counts `seq`: a second process that went on with the same run fails
on the key, with its whole transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypedDict, TypeVar

import msgspec

from council.engine import statements as sql
from council.engine.auditing import AUDIT_HEAD
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
from council.errors import CouncilError, Drift, JournalDamaged, StorageFailed
from council.ids import Clock, SystemClock
from council.redaction import Redactor
from council.storage.store import Store, Tx
from council.typed_json import decode_json, json_decoder

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoder = json_decoder(Record)
ATTEMPT = "attempt"  # such a `begin` is no step: an execution began
HANDBACK = "handback"  # … or ended because the process did
FINISH = "finish"  # the step that records how the work ended
ENDING = (FINISH, AUDIT_HEAD)  # what a run records of its end, and again when it goes on after all
MAX_EPHEMERAL_BYTES = 1 << 10  # an outcome, not a text
MAX_RETRY_CHARS = 300  # of a provider's words about one failed try

_in_step: ContextVar[str] = ContextVar("step", default="")  # what the code that runs now is a step of; per task


class Handback(BaseException):
    """The process is about to stop: the run goes back to the queue at a step boundary. Not an Exception: no `except
    Exception` and no retry may swallow it."""


class JournalEnd(BaseException):
    """The journal is closed (its end is recorded) and a step was asked for that it does not hold."""


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


async def nothing_new() -> None:
    """For a redactor that knows all from the beginning."""


@dataclass(frozen=True)
class Recording:
    """The manner in which a journal records. No record, and nothing that a step returns, holds a secret of `redactor`,
    which is `informed` before of what it did not know. While the process is `stopping`, no step begins."""

    redactor: Redactor = field(default_factory=Redactor)
    informed: Callable[[], Awaitable[None]] = nothing_new
    clock: Clock = field(default_factory=SystemClock)
    stopping: Callable[[], bool] = lambda: False


AS_IT_IS = Recording()


def rows_of(tx: Tx, run: int, *, after: int = 0) -> list[tuple[int, JournalRow]]:
    """The rows of one run with their numbers, in order; those with a number above `after`."""
    return [(found[0], JournalRow(*found[1:])) for found in tx.execute(sql.STEPS, (run, after)).fetchall()]


def header_of(encoded: str, run_id: str) -> RunHeader:
    """Record 0. Raises JournalDamaged."""
    try:
        return decode_json(encoded, RunHeader)
    except msgspec.MsgspecError as error:
        raise JournalDamaged(f"record 0 of run {run_id} cannot be read ({error}).", fix=RESTORE) from error


def admit(tx: Tx, header: RunHeader) -> int:
    """A new run: its number."""
    row = (
        header.run_id, header.type, header.lane, header.title, header.created, header.file.name,
        header.command.get("id") or "", header.order, _encoder.encode(header).decode(),
    )  # fmt: skip
    return int(tx.execute(sql.ADMIT, row).fetchone()[0])


def load_journal(
    tx: Tx,
    run_id: str,
    store: Store | None = None,
    *,
    ended: bool = False,
    whole: bool = True,
    recording: Recording = AS_IT_IS,
) -> Journal:
    """The journal of a run that has one; `store` None: only to be read. `whole` False: up to its first damaged row, see
    `Journal.damage`. Raises JournalDamaged."""
    run, encoded = tx.execute(sql.HEADER, (run_id,)).fetchone()
    header = header_of(encoded, run_id)
    try:
        bytes.fromhex(header.secret)
    except ValueError:
        raise JournalDamaged(f"record 0 of run {run_id} has no secret.", fix=RESTORE) from None
    journal = Journal(header, (), run, store, recording=recording)
    for seq, row in rows_of(tx, run):
        journal.take(seq, row)
    journal.ended = ended
    if whole and journal.damage is not None:
        raise journal.damage
    return journal


class StepOptions(TypedDict, total=False):
    """The options of `Journal.step`."""

    request: str
    durable: bool
    part: Part


class Journal:
    """One run's records, in memory and in the store."""

    def __init__(
        self,
        header: RunHeader,
        records: Iterable[tuple[int, Record]],
        run: int = 0,
        store: Store | None = None,
        *,
        recording: Recording = AS_IT_IS,
    ) -> None:
        """`store` None: only to be read."""
        self.header = header
        self.run = run
        self._store = store
        self._seq = 0
        self._steps: dict[str, StepResult] = {}
        self._parts: dict[str, Part] = {}
        # What the store does not hold (yet: it may have refused), by step: request and answer.
        self._unsaved: dict[str, tuple[str, Any]] = {}
        self._noted: list[StepResult] = []  # known here, and written with the commit
        self._refused: dict[str, int] = {}  # numbers of rows that were refused, by what they hold: see `look_again`
        self.committed: Commit | None = None
        self.waits: list[Waiting] = []  # since the last step
        self.attempts = 0
        self.begun = False  # since it was admitted or told to go on
        self.fruitless_attempts = 0  # the last ones in a row that recorded nothing, the present one included
        self.retries = 0
        self.text_bytes = 0
        self.reopened_by: str | None = None
        self.accepts_drift = False  # True: it goes on although a persona, a prompt or the model changed
        self.named_model = ""  # when it was told to go on; empty: it keeps the one that it began with
        self.closed = False  # True: only recorded steps answer, whatever they were asked
        self.stopping = recording.stopping
        self._clock = recording.clock
        self.redactor = recording.redactor
        self._informed = recording.informed
        self.damage: JournalDamaged | None = None
        for seq, record in records:
            self._seq = max(self._seq, seq)
            self._remember(record)
        self.ended = False  # True: its receipt is there: only its command file may not be taken yet

    def take(self, seq: int, row: JournalRow) -> None:
        """Remembers the next row that the store holds. Nothing counts that was recorded after a damaged one."""
        self._seq = seq
        try:
            record = record_of(row, self.header.run_id)
        except JournalDamaged as error:
            self.damage = self.damage or error
        if self.damage is None:
            self._remember(record)

    def steps(self) -> list[RecordedStep]:
        return [
            RecordedStep(step.name, step.request, bytes(step.out), self._parts.get(step.name, OWN))
            for step in self._steps.values()
        ]

    async def step(
        self,
        name: str,
        fn: Callable[[], Awaitable[T]],
        *,
        type: type[T],
        request: str = "",
        durable: bool = True,
        part: Part = OWN,
    ) -> T:
        """The recorded result of step `name`, else what `fn` returns, without secrets, on the disk before this returns.

        `name` is unique in its run and stable across restarts; `request` is the hash of what is asked. `durable` False: it
        is written with the next record, before what depends on it begins, and nobody waits for that. This is for what can be
        found out again and nobody paid for.

        What `fn` raises is not recorded: the step runs again on resume. Raises Drift when the recorded step
        was asked something else and the journal is not closed, StorageFailed when a record cannot be written. Then the answer
        is kept in memory, and the next try of the same step writes it without asking again.
        """
        known = self._found(name)
        if known is not None:
            return self._known(known, type, request)
        if name not in self._unsaved or self._unsaved[name][0] != request:
            await self._begin(name, part)
            inside = _in_step.set(name)
            try:
                self._unsaved[name] = (request, await fn())
            finally:
                _in_step.reset(inside)
        await self._informed()
        answer: T
        answer, encoded = self.redactor.encoded(self._unsaved[name][1], type)
        record = StepResult(name, request, msgspec.Raw(encoded), self._now_ms())
        if durable:
            await self._append(record)
        else:
            self._defer(record)
        self._unsaved.pop(name, None)
        return answer

    async def effect(self, name: str, fn: Callable[[Tx], T], *, type: type[T], request: str = "") -> T:
        """A step that changes something in the store, once, whatever dies when: the change and its record are one
        transaction. `fn` only executes statements; what it raises undoes both."""
        known = self._found(name)
        if known is not None:
            return self._known(known, type, request)
        await self._begin(name)
        seq = self._refused.get(name) or self._next_seq()  # the same: should it be there after all, it fails on the key

        def change(tx: Tx) -> tuple[StepResult, T]:
            value, encoded = self.redactor.encoded(fn(tx), type)
            record = StepResult(name, request, msgspec.Raw(encoded), self._now_ms())
            _insert(tx, self.run, seq, row_of(record))
            return record, value

        done = await self._write(name, seq, change, then=lambda result: self._remember(result[0]))
        return done[1]

    async def ephemeral(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], part: Part = OWN) -> T:
        """A step of which only its outcome is kept: `fn` returns a small typed value without prompt text, and that is
        what replay returns. Raises ValueError for an outcome beyond MAX_EPHEMERAL_BYTES."""

        async def small() -> T:
            outcome = await fn()
            if len(_encoder.encode(outcome)) > MAX_EPHEMERAL_BYTES:
                raise ValueError(f"the outcome of the ephemeral step {name} is larger than {MAX_EPHEMERAL_BYTES} bytes")
            return outcome

        return await self.step(name, small, type=type, part=part)

    async def put(self, name: str, value: T, *, type: type[T], part: Part = OWN) -> T:
        """The recorded result of `name`, else `value` without secrets, now on the disk: a step whose work is done already.
        Raises StorageFailed."""
        known = self._found(name)
        if known is not None:
            return self._result(known, type)
        if part != OWN:
            self._defer(StepStart(name, self._now_ms(), part))
        value, encoded = self.redactor.encoded(value, type)
        record = StepResult(name, "", msgspec.Raw(encoded), self._now_ms())
        self._steps[name] = record  # at once: who comes meanwhile finds this one
        try:
            await self._append(record)
        except CouncilError:  # not where the waiter is cancelled: it is written all the same
            self._steps.pop(name, None)
            raise
        return value

    def note(self, name: str, value: T, *, type: type[T]) -> T:
        """Records like `put`, but with the commit, which is what makes it true."""
        known = self._steps.get(name)
        if known is not None:
            return self._result(known, type)
        value, encoded = self.redactor.encoded(value, type)
        record = StepResult(name, "", msgspec.Raw(encoded), self._now_ms())
        self._noted.append(record)
        self._steps[name] = record
        return value

    def note_again(self, name: str, value: T, *, type: type[T]) -> T:
        """Notes another value in the place of one that no commit has made true."""
        self._noted = [record for record in self._noted if record.name != name]
        self._steps.pop(name, None)
        return self.note(name, value, type=type)

    def ended_ms(self, name: str) -> int | None:
        """The end of a recorded step, in milliseconds since the epoch; None where an older version did not note it."""
        return self._steps[name].at or None

    async def attempt(self) -> None:
        """Records that an execution begins, before anything that may end the process. Raises StorageFailed."""
        await self._append(StepStart(ATTEMPT, self._now_ms()), durable=False)

    def hand_back(self) -> None:
        """Notes that an execution ended because the process does: as an attempt it counts for nothing."""
        self._defer(StepStart(HANDBACK, self._now_ms()))

    def recorded(self, name: str) -> bool:
        return name in self._steps

    def value(self, name: str, type: type[T]) -> T | None:
        """The recorded result of a step, None when there is none."""
        known = self._steps.get(name)
        return None if known is None else self._result(known, type)

    def result(self, name: str, type: type[T]) -> T:
        """The result of a step that is recorded."""
        return self._result(self._steps[name], type)

    @property
    def model(self) -> str:
        """The spelling of the model that the run asks; empty where an older version did not note it."""
        return self.named_model or self.header.model

    @property
    def first_step(self) -> str:
        """The name of the first recorded step, `finish` when there is none."""
        return next(iter(self._steps), FINISH)

    @property
    def step_count(self) -> int:
        return len(self._steps)

    def retried(self, kind: str, error: str, attempt: int, wait_s: float) -> None:
        """Notes that a try of the call in the present step failed and comes again after `wait_s`."""
        step = _in_step.get()
        self._defer(Retry(step, self._now_ms(), attempt, wait_s, kind, error[:MAX_RETRY_CHARS]))

    async def wait(self, record: Waiting) -> None:
        """Raises StorageFailed."""
        await self._append(record)

    async def commit(self, seal: Callable[[Tx], Commit]) -> None:
        """The point of no return: from here the run only rolls forward. `seal` writes what belongs to the end in the same
        transaction, and says what is committed, without secrets. Raises StorageFailed: then nothing of it is there."""
        noted = list(self._noted)
        seqs = [self._next_seq() for _ in range(len(noted) + 1)]

        def end(tx: Tx) -> Commit:
            for seq, record in zip(seqs, noted, strict=False):
                _insert(tx, self.run, seq, row_of(record))
            committed = seal(tx)
            _insert(tx, self.run, seqs[-1], row_of(committed))
            tx.execute(sql.COMMIT, (bytes(committed.receipt).decode(), self.run))
            return committed

        def known(committed: Commit) -> None:
            self._noted = [record for record in self._noted if record not in noted]
            self._remember(committed)

        await self._write("commit", seqs[-1], end, then=known)

    def look_again(self) -> None:
        """Remembers what was committed though nobody heard of it: a connection may be lost at that very moment. To be asked
        before what was refused is tried again. Raises StorageFailed, also when another process goes on with this run."""
        if not self._refused:
            return
        names = {seq: name for name, seq in self._refused.items()}
        for seq, row in self._open_store().read(partial(rows_of, run=self.run)):
            if seq not in names:
                continue
            if names[seq] != (row.name if row.kind == "done" else row.kind):
                raise StorageFailed(
                    f"another process has continued run {self.header.run_id}.", fix="end one of the two"
                )
            del self._refused[names[seq]]
            self._remember(record_of(row, self.header.run_id))

    async def reopen(self, record: Continuation) -> None:
        """Lets an ended run go on: see `Continuation`. Raises StorageFailed."""
        await self._append(record, also=lambda tx: tx.execute(sql.REOPEN, (self.run,)))

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _found(self, name: str) -> StepResult | None:
        if name in self._refused:
            self.look_again()
        return self._steps.get(name)

    def _known(self, known: StepResult, type: type[T], request: str) -> T:
        if known.request and known.request != request and not (self.accepts_drift or self.closed):
            raise Drift(
                f"step {known.name} was recorded with another request (persona, prompt or model changed).",
                fix=f"`council resume {self.header.run_id} --accept-drift` continues anyway; or drop the command again",
                step=known.name,
            )
        return self._result(known, type)

    def _result(self, record: StepResult, type: type[T]) -> T:
        try:
            return decode_json(record.out, type)
        except msgspec.MsgspecError as error:
            told = f"the step {record.name} of run {self.header.run_id} does not hold what it should ({error})."
            raise JournalDamaged(told, fix=RESTORE) from error

    async def _begin(self, name: str, part: Part = OWN) -> None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            await asyncio.sleep(0)  # what was held back while a record was written
        if self.closed:
            raise JournalEnd(name)
        if self.stopping():
            raise Handback
        self._defer(StepStart(name, self._now_ms(), part))

    def _defer(self, record: Record) -> None:
        """Goes along with what is written next: a call's reservation, or the step itself."""
        record = self._redacted(record)
        self._open_store().defer(partial(_insert, run=self.run, seq=self._next_seq(), row=row_of(record)))
        self._remember(record)

    async def _append(
        self, record: Record, *, durable: bool = True, also: Callable[[Tx], object] = lambda tx: None
    ) -> None:
        record = self._redacted(record)
        name = record.name if isinstance(record, StepResult) else row_of(record).kind
        seq = self._next_seq()

        def write(tx: Tx) -> None:
            _insert(tx, self.run, seq, row_of(record))
            also(tx)

        await self._write(name, seq, write, durable=durable, then=lambda _: self._remember(record))

    async def _write(
        self, name: str, seq: int, work: Callable[[Tx], T], *, durable: bool = True, then: Callable[[T], None]
    ) -> T:
        try:
            written: _RecordWrite[T] = _RecordWrite()
            self._open_store().write(work, durable=durable, then=then, future=written)
            done = await written.unbroken()
        except StorageFailed:
            self._refused[name] = seq
            raise
        self._refused.pop(name, None)
        return done

    def _redacted(self, record: T) -> T:
        """Results were redacted before; a begun step holds no text."""
        if isinstance(record, StepStart | StepResult):
            return record
        return self.redactor.redacted(record, Record)  # type: ignore[arg-type]

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _open_store(self) -> Store:
        if self._store is None:
            raise StorageFailed(
                f"the journal of run {self.header.run_id} was opened to be read.",
                fix="report it: a record came too late",
            )
        return self._store

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
            self.committed, self.ended, self.begun = None, False, False
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


class _RecordWrite(asyncio.Future[T]):
    """NOTE: what is being recorded is heard of by who asked for it: a cancellation meanwhile comes at that task's next await.
    Else a journal would know of a step that its run has never seen."""

    def cancel(self, msg: Any = None) -> bool:
        return False

    async def unbroken(self) -> T:
        task = asyncio.current_task()
        assert task is not None
        try:
            return await self
        except asyncio.CancelledError:
            task.uncancel()
            task.cancel()
            return self.result()


def _insert(tx: Tx, run: int, seq: int, row: JournalRow) -> None:
    tx.execute(sql.APPEND, (run, seq, *row))
