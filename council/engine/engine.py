"""The engine: which commands become runs, and what a door may do to a run. It knows no command type and no file format:
handlers do.

    admit → (`queue`: lane, slot) → (`execution`: work, commit) → ended
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

import msgspec

from council.audit.trail import Trail
from council.commands.models import (
    ControlCommand,
    ResumeCommand,
    RetryCommand,
    RunCommand,
    canonical_hash,
    dump,
    hash_of_dump,
)
from council.engine import statements as sql
from council.engine.execution import Executor
from council.engine.journal import FINISH, Journal, admit, load_journal
from council.engine.outputs import OutputFile, keep_artifact
from council.engine.queue import MAX_WAIT, RunQueue
from council.engine.receipts import IdBinding, Receipt, Receipts, answer, bind
from council.engine.records import EPOCH, FORGOTTEN, FileIdentity, Reopened, RunHeader, RunStatus
from council.engine.reopening import not_resumable, require_reopenable
from council.engine.runs import PROVIDER, Admission, Finish, Handler, Run
from council.errors import StorageFailed
from council.events import Events, RunAdmission, RunEnd, RunFailure, RunRecovery
from council.ids import Clock, new_run_id, timestamp
from council.redaction import Redactor
from council.storage.paths import ConfinedRoot
from council.storage.store import Store, Tx

_SECRET_BYTES = 32
_MOST_REFUSED = 1_000  # admissions that are remembered while the store takes none
_TEXTS = frozenset({"task_description", "answers"})  # keys of commands that hold what a person wrote


class Engine:
    """Runs commands of the types it has handlers for."""

    def __init__(
        self,
        store: Store,
        root: ConfinedRoot,
        handlers: Mapping[str, Handler],
        events: Events,
        clock: Clock,
        *,
        max_parallel_runs: int,
        max_wait_s: float,
        max_attempts: int,
        storage_retry_s: float,
        audit: Trail | None = None,
        require_authority: Callable[[RunCommand], None] = lambda command: None,
        run_secret: Callable[[RunCommand], bytes | None] = lambda command: None,
        redactor: Redactor | None = None,
    ) -> None:
        """`audit` None: nothing is recorded. `require_authority` raises CommandInvalid for who may not ask this.
        `run_secret`: that of a command's run, where it is given: by a cassette, or by a test that compares two runs. What
        is kept of a run holds no secret that `redactor` knows."""
        self._store = store
        self._root = root
        self._receipts = Receipts(store)
        self._handlers = handlers
        self._events = events
        self._clock = clock
        self._require_authority = require_authority
        self._run_secret = run_secret
        self._redactor = redactor or Redactor()
        self._executor = Executor(
            store,
            root,
            handlers,
            clock,
            audit,
            max_attempts=max_attempts,
            on_ended=lambda run, status: self.on_ended(run, status),
        )
        self._queue = RunQueue(
            self._execute,
            self._executor.finish,
            clock,
            slots=max_parallel_runs,
            max_wait_s=max_wait_s,
            storage_retry_s=storage_retry_s,
        )
        self._last_order = 0
        self._refused: dict[str, RunHeader] = {}  # admissions that the store refused, by their drops
        self._holds = False
        self.active: dict[str, Run] = {}
        self.on_ended: Callable[[Run, RunStatus], None] = lambda run, status: None
        self.before_asking_again: Callable[[], None] = lambda: None

    # ── admission ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def admit(self, command: RunCommand, file: FileIdentity) -> Run | Receipt:
        """A new run whose record 0 is on disk, or the receipt that already answers this command's id.

        Raises CommandInvalid, PathRefused or IdConflict when it cannot become a run; StorageFailed when it cannot now.
        """
        if command.id is not None:
            is_active = self.active.__contains__
            answered = self._receipts.answering(command.id, canonical_hash(command), is_active)
            if answered is not None:
                return answered
        self._require_authority(command)
        admission = self._handlers[command.type].admit(command)
        header = self._refused.get(file.drop) or self._header(command, file, admission)
        run = await self._create(header, command.id, file.drop)
        run.publish(RunAdmission(title=header.title, file=file.name, output=header.output_path))
        self._queue.join(run)
        self._queue.ask_for(run)
        return run

    def run_in_progress(self, command: RunCommand) -> Run | None:
        """The run with this command's id that is under way: its receipt will answer."""
        bound = self._receipts.bound(command.id) if command.id is not None else None
        return self.active.get(bound.run_id) if bound is not None else None

    def ask_for(self, run: Run) -> None:
        """Holds neither this run any longer nor those that come before it, in its lane or at its output path."""
        self._queue.ask_for(run)

    def _header(self, command: RunCommand, file: FileIdentity, admission: Admission) -> RunHeader:
        now = self._clock.now()
        dumped = dump(command)
        recorded = dumped if admission.recorded is None else admission.recorded
        # Nanoseconds since the epoch, but never less than before: a clock set back does not change the order.
        self._last_order = max(self._last_order + 1, int(now.timestamp() * 1_000_000_000))
        return RunHeader(
            run_id=new_run_id(now),
            epoch=EPOCH,
            created=timestamp(now),
            lane=command.session,
            type=command.type,
            # Texts of a person are redacted; names and paths are what they are.
            command={
                key: self._redactor.in_texts(value) if key in _TEXTS else value for key, value in recorded.items()
            },
            command_hash=hash_of_dump(dumped) if admission.keeps_hashes else FORGOTTEN,
            file=file if admission.keeps_hashes else msgspec.structs.replace(file, sha256=FORGOTTEN),
            secret=(self._run_secret(command) or secrets.token_bytes(_SECRET_BYTES)).hex(),
            output_path=admission.output_path,
            title=self._redactor.redact(admission.title),
            order=self._last_order,
            priority=command.priority,
        )

    async def _create(self, header: RunHeader, id_: str | None, drop: str) -> Run:
        """A drop whose admission was refused comes again as the same run: it may be there after all, when a connection was
        lost at its commit."""

        def write(tx: Tx) -> int:
            there = tx.execute(sql.HEADER, (header.run_id,)).fetchone() if drop in self._refused else None
            if there is not None:
                return int(there[0])
            if id_ is not None:
                bind(tx, IdBinding(id_, header.command_hash, header.run_id))
            return admit(tx, header)

        try:
            run = await self._store.write(write)
        except StorageFailed:
            while len(self._refused) >= _MOST_REFUSED:
                del self._refused[next(iter(self._refused))]
            self._refused[drop] = header
            raise
        self._refused.pop(drop, None)
        return self._adopt(Journal(header, (), run, self._store))

    def _adopt(self, journal: Journal) -> Run:
        header = journal.header
        journal.redactor = self._redactor
        journal.stopping = lambda: self._queue.stopping
        journal.now_ms = lambda: int(self._clock.now().timestamp() * 1000)
        path = header.output_path
        output = OutputFile(self._root, self._store, path, header.run_id) if path else None
        run = self.active[header.run_id] = Run(journal, self._events, output)
        return run

    # ── recovery ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def recover(self, *, hold: bool = False) -> list[Run]:
        """Takes up every run that had not ended when the process last stopped, or whose command file was not taken yet, in
        the order of their admission.

        `hold`: they are known, but none is executed, and none that is reopened either, unless a run that is admitted
        must wait for it (`ask_for`): for a door that drains its own drop and leaves. Raises StorageFailed, JournalDamaged.
        """

        def look(tx: Tx) -> list[Journal]:
            rows = tx.execute(sql.OPEN).fetchall()
            return [load_journal(tx, run_id, self._store, ended=ended_ns is not None) for run_id, ended_ns in rows]

        self._holds = hold
        recovered = [self._adopt(journal) for journal in self._store.read(look)]
        self._last_order = max((run.header.order for run in recovered), default=0)
        for run in recovered:
            self._take_up(run)
        return recovered

    def _take_up(self, run: Run) -> None:
        run.publish(RunRecovery(title=run.header.title, steps=run.journal.step_count))
        self._queue.join(run, hold=self._holds)

    # ── execution ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _execute(self, run: Run) -> None:
        receipt = await self._executor.execute(run)
        self.active.pop(run.id, None)
        self._queue.release(run)
        error = receipt.error
        run.publish(
            RunEnd(
                status=receipt.status,
                artifact=receipt.artifact.path if receipt.artifact else "",
                error=RunFailure(error.code, error.message, error.fix) if error else None,
                notes=receipt.notes,
                title=receipt.title,
                calls=receipt.calls,
                file=run.header.file.name,
            )
        )

    def stillness(self) -> AbstractAsyncContextManager[None]:
        """See `Executor.stillness`."""
        return self._executor.stillness()

    # ── from outside ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self, run_id: str, reason: str) -> bool:
        """Ends a run as soon as it can be, and a restart does not change that; False when it is not active, or past its
        point of no return. Raises StorageFailed: it ends, but a restart might not know of it yet."""
        run = self.active.get(run_id)
        if run is None or run.journal.committed is not None:
            return False
        if run.journal.recorded(FINISH):
            return bool(run.cancel_reason)
        if not run.cancel_reason:
            run.cancel_reason = reason
            if run.task is None:
                self._queue.start_to_end(run)
            elif run.status == "running":  # NOTE: a task that has not begun would never begin
                run.task.cancel()
        # Before somebody is told so.
        await run.journal.put(FINISH, self._executor.finish(cancelled_by=run.cancel_reason), type=Finish)
        return True

    async def resume(self, command: ResumeCommand, file: FileIdentity) -> None:
        """Lets a run go on: one that waits, now, and asks again whom it waits for; one that failed or was cancelled, at its
        first unrecorded step. Raises CommandInvalid when it cannot, JournalDamaged or StorageFailed when its journal does
        not allow it."""
        run = self.active.get(command.run)
        if run is None:
            await self._reopen(command, file)
        elif run.journal.reopened_by == file.drop:
            return  # the process died before it could say so
        elif run.is_waiting:
            if run.journal.waits and run.journal.waits[-1].reason == PROVIDER:
                self.before_asking_again()
            self._queue.wake(run)
        else:
            raise not_resumable(
                run.id, f"is {run.status}", "it goes on by itself; `council status` shows how far it is"
            )

    async def retry(self, command: RetryCommand, file: FileIdentity) -> None:
        """Does an ended run's work again from `command.from_` on. Raises as `resume`."""
        run = self.active.get(command.run)
        if run is None:
            await self._reopen(command, file)
        elif run.journal.reopened_by != file.drop:
            raise not_resumable(
                run.id, f"is {run.status}", f"`council cancel {run.id}` ends it; then it can be retried"
            )

    async def _reopen(self, command: ResumeCommand | RetryCommand, file: FileIdentity) -> None:
        run_id = command.run
        receipt = require_reopenable(self._store, command)
        if receipt.error is not None and receipt.error.code == MAX_WAIT:
            self.before_asking_again()
        journal = self._store.read(lambda tx: load_journal(tx, run_id, self._store, ended=True))
        if journal.reopened_by == file.drop and journal.committed is not None:
            return  # it was done, and has ended since: only the file could not be taken
        if receipt.artifact is not None:
            keep_artifact(self._root, self._store, run_id, receipt.artifact.path, receipt.artifact.sha256)
        at = timestamp(self._clock.now())
        if isinstance(command, ResumeCommand):
            reopened = Reopened(at, command.accept_drift, by=file.drop)
        else:
            first = command.from_ or journal.first_step
            reopened = Reopened(at, accept_drift=False, retry_from=first, by=file.drop)
        await journal.reopen(reopened)
        self._take_up(self._adopt(journal))

    async def answer_control(self, command: ControlCommand, file: FileIdentity) -> Receipt:
        """The receipt of a control command: all it leaves."""
        now = self._clock.now()
        receipt = Receipt(
            run_id=new_run_id(now),
            status="succeeded",
            type=command.type,
            id=command.id,
            command_file=file,
            command_sha256=file.sha256,
            command_hash=canonical_hash(command),
            created=timestamp(now),
            finished=timestamp(now),
            title=f"{command.type} {command.run}",
        )
        await self._store.write(lambda tx: answer(tx, receipt, time.time_ns()))
        return receipt

    def redact(self, text: str) -> str:
        """`text` without the secrets that are known."""
        return self._redactor.redact(text)

    def receipt(self, run_id: str) -> Receipt | None:
        return self._receipts.read(run_id)

    @property
    def running(self) -> int:
        return self._queue.running

    @property
    def at_work(self) -> bool:
        """True while runs remain that this process is to end."""
        return len(self.active) > self._queue.held

    @property
    def only_waiting(self) -> bool:
        """True when runs remain and all of them wait, or stand behind one that does."""
        return self.at_work and self._queue.running == 0

    async def stop(self) -> None:
        """Lets each turn in flight end, then hands the runs back: they resume at the next start."""
        self._queue.stop()
        while tasks := [run.task for run in self.active.values() if run.task is not None]:
            await asyncio.wait(tasks)  # again: one that is cancelled meanwhile has a task to end in
