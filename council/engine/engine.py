"""The engine: which commands become runs, and what a door may do to a run. It knows no command type and no file format:
handlers do.

    admit → (`queue`: lane, slot) → (`execution`: work, commit) → ended
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import msgspec

from council.audit.trail import Trail
from council.commands.models import CommandBase, RunBase, canonical_hash
from council.commands.types import Admission, CommandTypes
from council.engine import statements as sql
from council.engine.admission import Grant, admission, answered
from council.engine.control_commands import Reopener, RunSteering, remember
from council.engine.execution import Executor
from council.engine.journal import Journal, Recording, admit, load_journal, nothing_new
from council.engine.ledger import end_of, entry_of
from council.engine.open_questions import AnswerHandler
from council.engine.outputs import OutputFile
from council.engine.queue import RunQueue
from council.engine.receipts import ErrorRef, IdBinding, Receipt, Receipts, answer, bind
from council.engine.records import EPOCH, NOT_KEPT, FileIdentity, RunHeader, RunStatus
from council.engine.run_records import FINISH
from council.engine.runs import ActiveRun, ControlAnswer, ControlHandler, Finish, Handler, Premises, Runs
from council.errors import CouncilError, JournalDamaged, StorageFailed
from council.events import Events, RunAdmission, RunEnd, RunFailure, RunRecovery
from council.ids import Clock, new_run_id, timestamp
from council.redaction import Redactor
from council.storage.store import Store, Tx

log = logging.getLogger(__name__)

_SECRET_BYTES = 32


class Engine:
    """Runs commands of the types that have handlers."""

    def __init__(
        self,
        store: Store,
        premises: Premises,
        commands: CommandTypes,
        handlers: Mapping[str, Handler],
        events: Events,
        clock: Clock,
        *,
        audit: Trail,
        redactor: Redactor,
        on_ended: Callable[[ActiveRun, RunStatus], None],
        controls: Mapping[str, ControlHandler],
        before_asking_again: Callable[[], None] = lambda: None,
        run_secret: Callable[[RunBase], bytes | None] = lambda command: None,
        recorded_day: Callable[[str], str | None] = lambda run_secret: None,
        informed: Callable[[], Awaitable[None]] = nothing_new,
    ) -> None:
        """`on_ended` takes the command file of a run whose receipt answers. `controls` are the handlers beside the engine's own.
        `before_asking_again` is told of a run that somebody lets ask its provider now. A cassette, or a test that compares
        two runs, gives the `run_secret` of a command. `recorded_day` is the day of the run that a cassette was recorded from.
        No record holds a secret of `redactor`, which is `informed` before each.
        """
        settings = premises.settings
        self._store = store
        self._redactor = redactor
        self._premises = replace(premises, redactor=self._redactor)
        self._commands = commands
        self._receipts = Receipts(store)
        self._events = events
        self._clock = clock
        self._run_secret = run_secret
        self._recorded_day = recorded_day
        self._runs = Runs(handlers, self.wake)
        self._executor = Executor(
            store, premises.root, self._runs, commands.audited_as, clock, audit, settings.max_attempts, on_ended,
            premises.home.require_own_places,
        )  # fmt: skip
        self._queue = RunQueue(
            self._execute, self._executor.finish, clock, slots=settings.max_parallel_runs,
            max_wait_s=settings.max_wait_s, storage_retry_s=settings.storage_retry_s,
        )  # fmt: skip
        self._recording = Recording(self._redactor, informed, clock, self._queue.stopping.is_set)
        self._last_order = 0
        self._refused: dict[str, RunHeader] = {}  # admissions that the store refused, by their drops
        self._cancels: dict[str, str] = {}  # runs that are cancelled, by the drops that are not answered yet
        self.lost: list[Receipt] = []  # of runs that failed at the start, with the record of their commands
        self._holds = False
        self.active = self._runs.active
        reopener = Reopener(
            store, premises.root, clock, self._recording, before_asking_again,
            take_up=lambda journal: self._take_up(self._adopt(journal)),
        )  # fmt: skip
        self._answering = AnswerHandler(self)
        steering = RunSteering(self, self._cancels, reopener)
        self._controls: dict[str, ControlHandler] = {
            "cancel": steering.cancel, "resume": steering.resume, "retry": steering.retry, "answer": self._answering,
            **controls,
        }  # fmt: skip

    async def admit(self, command: RunBase, file: FileIdentity) -> ActiveRun | Receipt:
        """A new run whose record 0 is on disk, or the receipt that already answers this command's id.

        Raises CommandInvalid, PathRefused or IdConflict when it cannot become a run; StorageFailed when it cannot now.
        """
        premises = replace(self._premises, drop=file.drop)
        granted = await asyncio.to_thread(admission, self._commands, premises, command)
        if isinstance(granted, Receipt):
            return granted
        if granted.terms.answers:
            receipt, _ = await self._obey(command, granted, file)
            return receipt
        header = self._refused.get(file.drop) or self._header(command, file, granted.terms)
        run = await self._create(header, command.id, file.drop)
        run.publish(RunAdmission(title=header.title, file=file.name, output=header.output_path))
        self._queue.join(run)
        self._queue.ask_for(run)
        return run

    def run_in_progress(self, command: RunBase) -> ActiveRun | None:
        """The run with this command's id that is under way: its receipt will answer."""
        bound = self._receipts.bound(command.id, command.user) if command.id is not None else None
        return self.active.get(bound.run_id) if bound is not None else None

    def gathering(self) -> AbstractContextManager[None]:
        """Admits without starting: the highest priority of all that is admitted meanwhile goes first."""
        return self._queue.gathering()

    def ask_for(self, run: ActiveRun) -> None:
        """Holds neither this run any longer nor those that come before it, in its lane or at its output path."""
        self._queue.ask_for(run)

    def _header(self, command: RunBase, file: FileIdentity, admission: Admission) -> RunHeader:
        now = self._clock.now()
        # Nanoseconds since the epoch, but never less than before: a clock set back does not change the order.
        self._last_order = max(self._last_order + 1, int(now.timestamp() * 1_000_000_000))
        secret = (self._run_secret(command) or secrets.token_bytes(_SECRET_BYTES)).hex()
        recorded = self._recorded_day(secret)
        return RunHeader(
            run_id=new_run_id(now),
            epoch=EPOCH,
            created=timestamp(now),
            lane=admission.lane or command.session,
            type=command.type,
            command=self._commands[command.type].recorded(command, admission, self._redactor),
            command_hash=canonical_hash(command) if admission.keeps_hashes else NOT_KEPT,
            file=file if admission.keeps_hashes else msgspec.structs.replace(file, sha256=NOT_KEPT),
            secret=secret,
            output_path=admission.output_path,
            title=self._redactor.redact(command.title or admission.title),
            order=self._last_order,
            priority=command.priority,
            day=self._premises.settings.day_of(now) if recorded is None else recorded,
            model=self._premises.settings.model,
        )

    async def _create(self, header: RunHeader, id_: str | None, drop: str) -> ActiveRun:
        """A drop whose admission was refused comes again as the same run. It may be there after all, when a connection was lost
        at its commit."""

        def write(tx: Tx) -> int:
            there = tx.execute(sql.HEADER, (header.run_id,)).fetchone() if drop in self._refused else None
            if there is not None:
                return int(there[0])
            if id_ is not None:
                bind(tx, IdBinding(id_, header.command_hash, header.run_id, header.command.get("user")))
            return admit(tx, header)

        try:
            run = await self._store.write(write)
        except StorageFailed:
            remember(self._refused, drop, header)
            raise
        self._refused.pop(drop, None)
        return self._adopt(Journal(header, run, self._store, recording=self._recording))

    def _adopt(self, journal: Journal) -> ActiveRun:
        header = journal.header
        path = header.output_path
        output = OutputFile(self._premises.root, self._store, path, header.run_id) if path else None
        run = self.active[header.run_id] = ActiveRun(journal, self._events, output, self._runs)
        return run

    def recover(self, *, hold: bool = False) -> list[ActiveRun]:
        """Takes up every run that had not ended, or whose command file was not taken yet, in the order of admission.

        `hold`: they are known, but none is executed, and none that is reopened either. One goes on when a run that is admitted
        must wait for it (`ask_for`). This is for a door that drains its own drop and leaves. A run whose journal is damaged
        fails alone. Raises StorageFailed.
        """
        lost: dict[str, JournalDamaged] = {}

        def look(tx: Tx) -> list[Journal]:
            journals = []
            for run_id, ended_ns in tx.execute(sql.OPEN).fetchall():
                try:
                    ended = ended_ns is not None
                    load = partial(load_journal, ended=ended, whole=ended, recording=self._recording)
                    journals.append(load(tx, run_id, self._store))
                except JournalDamaged as error:
                    lost[run_id] = error
            return journals

        self._holds = hold
        recovered = [self._adopt(journal) for journal in self._store.read(look)]
        for run in recovered:
            if run.journal.damage is not None:
                run.journal.note(FINISH, self._executor.finish(_told(run.journal.damage)), type=Finish)
        for run_id, error in lost.items():
            log.error("run %s: %s", run_id, error)
            receipt = self._store.write_now(partial(self._fail, run_id=run_id, error=error))
            self.lost.append(receipt)
            self._events.publish(_end_of(receipt))
        self._last_order = max((run.header.order for run in recovered), default=0)
        with self._queue.gathering():
            for run in recovered:
                self._take_up(run)
        return recovered

    def _fail(self, tx: Tx, run_id: str, error: JournalDamaged) -> Receipt:
        """Ends a run that not even record 0 tells of. Its receipt, which does not know what its command file held."""
        entry = entry_of(tx, run_id)
        file, now = FileIdentity(entry.file, 0, 0, ""), timestamp(self._clock.now())
        receipt = Receipt(
            run_id, "failed", entry.type, file, "", "", entry.created, now,
            lane=entry.lane, title=entry.title, error=_told(error),
        )  # fmt: skip
        if entry.ended_ns is None:
            tx.execute(sql.END, end_of(receipt, text_bytes=entry.text_bytes, ended_ns=time.time_ns()))
        tx.execute(sql.TAKEN, (run_id,))
        return receipt

    def _take_up(self, run: ActiveRun) -> None:
        run.publish(RunRecovery(title=run.header.title, steps=len(run.steps())))
        self._queue.join(run, hold=self._holds)

    async def _execute(self, run: ActiveRun) -> None:
        receipt = await self._executor.execute(run)
        self.active.pop(run.id, None)
        self._queue.release(run)
        self._events.publish(_end_of(receipt))

    async def cancel(self, run_id: str, reason: str) -> bool:
        """Ends a run as soon as it can be, and a restart does not change that. False when it is not active, or past its
        point of no return. Raises StorageFailed: it ends, but a restart might not know of it yet."""
        run = self.active.get(run_id)
        if run is None or run.journal.committed is not None:
            return False
        if run.journal.recorded(FINISH):
            self._wake_cancelled(run)
            return bool(run.cancel_reason)
        if not run.cancel_reason:
            run.cancel_reason = reason
            if run.task is None:
                self._queue.start_to_end(run)
            elif run.status == "running":  # NOTE: a task that has not begun would never begin
                run.task.cancel()
        # Before somebody is told so.
        await run.journal.put(FINISH, self._executor.finish(cancelled_by=run.cancel_reason), type=Finish)
        self._wake_cancelled(run)
        return True

    def _wake_cancelled(self, run: ActiveRun) -> None:
        """It may wait for a store that has taken this."""
        if run.cancel_reason:
            self._queue.wake(run)

    def wake(self, run: ActiveRun) -> None:
        """Lets a run that waits go on now."""
        self._queue.wake(run)

    async def obey(self, command: CommandBase, file: FileIdentity) -> tuple[Receipt, str]:
        """Does at once what a control command asks. Its receipt, which is all that it leaves, or the one that already answers
        its id; and the run that it acted on, if on one. Raises CommandInvalid when it cannot be done, IdConflict,
        JournalDamaged, StorageFailed."""
        premises = replace(self._premises, drop=file.drop)
        granted = await asyncio.to_thread(admission, self._commands, premises, command)
        if isinstance(granted, Receipt):
            return granted, granted.details.get("acted_on", "")
        return await self._obey(command, granted, file)

    async def _obey(self, command: CommandBase, granted: Grant, file: FileIdentity) -> tuple[Receipt, str]:
        terms = granted.terms
        if terms.answers:
            await self._answering.record(terms.run_id, terms.answers, granted.principal, file.drop)
            said = ControlAnswer((f"It answers the question of run {terms.run_id}.",))
        else:
            said = await self._controls[command.type](command, granted.principal, file)
        receipt = answered(
            command, file, "succeeded", self._clock.now(),
            title=self._redactor.redact(terms.title),
            notes=tuple(map(self._redactor.redact, said.notes)),
            details={
                **said.details,
                **({"acted_on": terms.run_id} if terms.run_id else {}),  # for who is told again after a crash
                **({"answered": terms.run_id} if terms.answers else {}),
            },
        )  # fmt: skip

        def write(tx: Tx) -> None:
            if command.id is not None:
                bind(tx, IdBinding(command.id, receipt.command_hash, receipt.run_id, command.user))
            answer(tx, receipt, time.time_ns())

        await self._store.write(write)
        self._cancels.pop(file.drop, None)
        self._runs.wake(terms.run_id)  # it may wait for this very word
        return receipt, terms.run_id

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

    def begin_nothing(self) -> None:
        """From now on no run starts and no step begins. Those that are under way go on."""
        self._queue.stop()

    async def stop(self) -> None:
        """Lets each turn in flight end, then hands the runs back: they resume at the next start."""
        self.begin_nothing()
        while tasks := [run.task for run in self.active.values() if run.task is not None]:
            await asyncio.wait(tasks)  # again: one that is cancelled meanwhile has a task to end in


def _end_of(receipt: Receipt) -> RunEnd:
    error = receipt.error
    return RunEnd(
        run_id=receipt.run_id,
        status=receipt.status,
        artifact=receipt.artifact.path if receipt.artifact else "",
        error=RunFailure(error.code, error.message, error.fix) if error else None,
        notes=receipt.notes,
        title=receipt.title,
        calls=receipt.calls,
        file=receipt.command_file.name,
    )


def _told(error: CouncilError) -> ErrorRef:
    return ErrorRef(error.code, error.message, error.fix)
