"""The journal of one run: numbered rows of the store, one synced transaction per step.

A `step` records a result once. An `effect` makes a change in the same transaction as its record. A step that is recorded is
never run again, and is on the disk before another one begins. The run's one owner counts `seq`: a second process that went on
with the same run fails on the key, with its whole transaction. Who only reads a run has its `RunRecords`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

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
from council.engine.run_records import (
    ATTEMPT,
    HANDBACK,
    JournalEnd,
    JournalRow,
    RunRecords,
    header_of,
    record_of,
    row_of,
    rows_of,
)
from council.errors import CouncilError, Drift, JournalDamaged, StorageFailed
from council.ids import Clock, SystemClock
from council.redaction import Redactor
from council.storage.store import Store, Tx

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
MAX_RETRY_CHARS = 300  # of a provider's words about one failed try

_in_step: ContextVar[str] = ContextVar("step", default="")  # what the code that runs now is a step of; per task


class Handback(BaseException):
    """The process is about to stop: the run goes back to the queue at a step boundary. Not an Exception: no `except
    Exception` and no retry may swallow it."""


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


def admit(tx: Tx, header: RunHeader) -> int:
    """A new run: its number."""
    row = (
        header.run_id, header.type, header.lane, header.title, header.created, header.file.name,
        header.command.get("id") or "", header.order, _encoder.encode(header).decode(),
    )  # fmt: skip
    return int(tx.execute(sql.ADMIT, row).fetchone()[0])


def load_journal(
    tx: Tx, run_id: str, store: Store, *, ended: bool = False, whole: bool = True, recording: Recording = AS_IT_IS
) -> Journal:
    """The journal of a run that has one, to go on with. `whole` False: up to its first damaged row, its
    `damage`. Raises JournalDamaged."""
    run, encoded = tx.execute(sql.HEADER, (run_id,)).fetchone()
    header = header_of(encoded, run_id)
    try:
        bytes.fromhex(header.secret)
    except ValueError:
        raise JournalDamaged(f"record 0 of run {run_id} has no secret.", fix=RESTORE) from None
    journal = Journal(header, run, store, recording=recording)
    for seq, row in rows_of(tx, run):
        journal.take(seq, row)
    journal.ended = ended
    if whole and journal.damage is not None:
        raise journal.damage
    return journal


class Journal(RunRecords):
    """One run's records, to go on with: what is recorded is remembered here, and written to the store."""

    def __init__(self, header: RunHeader, run: int, store: Store, *, recording: Recording = AS_IT_IS) -> None:
        """`run` is its number in the store."""
        super().__init__(header)
        self.run = run
        self._store = store
        self._seq = 0
        # What the store does not hold (yet: it may have refused), by step: request and answer.
        self._unsaved: dict[str, tuple[str, Any]] = {}
        self._noted: list[StepResult] = []  # known here, and written with the commit
        self._refused: dict[str, int] = {}  # numbers of rows that were refused, by what they hold: see `look_again`
        self.ended = False  # its receipt is there, and only its command file may not be taken yet
        self.closed = False  # True: only recorded steps answer, whatever they were asked
        self.stopping = recording.stopping
        self._clock = recording.clock
        self.redactor = recording.redactor
        self._informed = recording.informed
        self.damage: JournalDamaged | None = None  # what was recorded after it does not count

    def take(self, seq: int, row: JournalRow) -> None:
        """Remembers the next row that the store holds. Nothing counts that was recorded after a damaged one."""
        self._seq = seq
        try:
            if self.damage is None:
                self._remember(record_of(row, self.header.run_id))
        except JournalDamaged as error:
            self.damage = error

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
        if self._recalls(name, request):
            return self.result(name, type)
        if name not in self._unsaved or self._unsaved[name][0] != request:
            await self._begin(name, part)
            inside = _in_step.set(name)
            try:
                self._unsaved[name] = (request, await fn())
            finally:
                _in_step.reset(inside)
        await self._informed()
        answer: T
        answer, record = self._result_of(name, self._unsaved[name][1], type, request)
        if durable:
            await self._append(record)
        else:
            self._defer(record)
        self._unsaved.pop(name, None)
        return answer

    async def effect(self, name: str, fn: Callable[[Tx], T], *, type: type[T]) -> T:
        """A step that changes something in the store, once, whatever dies when: the change and its record are one
        transaction. `fn` only executes statements; what it raises undoes both."""
        if self._recalls(name):
            return self.result(name, type)
        await self._begin(name)
        seq = self._refused.get(name) or self._next_seq()  # the same: should it be there after all, it fails on the key

        def change(tx: Tx) -> tuple[StepResult, T]:
            value, record = self._result_of(name, fn(tx), type)
            _insert(tx, self.run, seq, record)
            return record, value

        done = await self._write(name, seq, change, then=lambda result: self._remember(result[0]))
        return done[1]

    async def put(self, name: str, value: T, *, type: type[T], part: Part = OWN) -> T:
        """The recorded result of `name`, else `value` without secrets, now on the disk: a step whose work is done already.
        Raises StorageFailed."""
        if self._recalls(name):
            return self.result(name, type)
        if part != OWN:
            self._defer(StepStart(name, self._now_ms(), part))
        value, record = self._result_of(name, value, type)
        self._steps[name] = record  # at once: who comes meanwhile finds this one
        try:
            await self._append(record)
        except CouncilError:  # not where the waiter is cancelled: it is written all the same
            self._steps.pop(name, None)
            raise
        return value

    def note(self, name: str, value: T, *, type: type[T]) -> T:
        """Records like `put`, but with the commit, which is what makes it true."""
        if self.recorded(name):
            return self.result(name, type)
        value, record = self._result_of(name, value, type)
        self._noted.append(record)
        self._steps[name] = record
        return value

    def note_again(self, name: str, value: T, *, type: type[T]) -> T:
        """Notes another value in the place of one that no commit has made true."""
        self._noted = [record for record in self._noted if record.name != name]
        self._steps.pop(name, None)
        return self.note(name, value, type=type)

    async def attempt(self) -> None:
        """Records that an execution begins, before anything that may end the process. Raises StorageFailed."""
        await self._append(StepStart(ATTEMPT, self._now_ms()), durable=False)

    def hand_back(self) -> None:
        """Notes that an execution ended because the process does: as an attempt it counts for nothing."""
        self._defer(StepStart(HANDBACK, self._now_ms()))

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
                _insert(tx, self.run, seq, record)
            committed = seal(tx)
            _insert(tx, self.run, seqs[-1], committed)
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
        for seq, row in self._store.read(partial(rows_of, run=self.run)):
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
        self.ended = False

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _recalls(self, name: str, request: str | None = None) -> bool:
        """True for a recorded step. Raises Drift for one that was asked something else than `request`, if that is given."""
        if name in self._refused:
            self.look_again()
        known = self._steps.get(name)
        is_other = known is not None and request is not None and known.request not in ("", request)
        if is_other and not (self.accepts_drift or self.closed):
            raise Drift(
                f"step {name} was recorded with another request (the model or Council's prompts changed).",
                fix=f"`council resume {self.header.run_id} --accept-drift` continues anyway; or drop the command again",
                step=name,
            )
        return known is not None

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
        self._store.defer(partial(_insert, run=self.run, seq=self._next_seq(), record=record))
        self._remember(record)

    async def _append(
        self, record: Record, *, durable: bool = True, also: Callable[[Tx], object] = lambda tx: None
    ) -> None:
        record = self._redacted(record)
        name = record.name if isinstance(record, StepResult) else row_of(record).kind
        seq = self._next_seq()

        def write(tx: Tx) -> None:
            _insert(tx, self.run, seq, record)
            also(tx)

        await self._write(name, seq, write, durable=durable, then=lambda _: self._remember(record))

    async def _write(
        self, name: str, seq: int, work: Callable[[Tx], T], *, durable: bool = True, then: Callable[[T], None]
    ) -> T:
        try:
            written: _RecordWrite[T] = _RecordWrite()
            self._store.write(work, durable=durable, then=then, future=written)
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

    def _result_of(self, name: str, value: T, type: type[T], request: str = "") -> tuple[T, StepResult]:
        value, encoded = self.redactor.encoded(value, type)
        return value, StepResult(name, request, msgspec.Raw(encoded), self._now_ms())

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq


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


def _insert(tx: Tx, run: int, seq: int, record: Record) -> None:
    tx.execute(sql.APPEND, (run, seq, *row_of(record)))
