"""Who runs when: admission, lanes, slots, and the order in which a run ends.

    admit → (lane) → execute → finish → stage → commit record → renames → receipt → file taken

Everything up to the commit record can be repeated from the journal; everything after it only rolls forward. The engine
knows no command type and no file format: handlers do.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from council.commands.models import (
    ControlCommand,
    ResumeCommand,
    RetryCommand,
    RunCommand,
    canonical_hash,
    dump,
    hash_of_dump,
)
from council.engine.auditing import AUDIT_HEAD, Audit, Unaudited, actor_of, record_commit
from council.engine.commit import Output, roll_forward, stage
from council.engine.folders import RunFolders
from council.engine.journal import FINISH, Exhausted, FileJournal, Handback, committed_in, read_header
from council.engine.lanes import Lanes
from council.engine.ledger import Ledger, entry_of_header
from council.engine.outputs import OutputFile, OutputLedger, keep_artifact
from council.engine.receipts import (
    ArtifactRef,
    ErrorRef,
    IdBinding,
    Receipt,
    Receipts,
    not_resumable,
    require_reopenable,
)
from council.engine.records import (
    EPOCH,
    FORGOTTEN,
    CommitFile,
    Committed,
    Ended,
    FileIdentity,
    Reopened,
    RunHeader,
    RunStatus,
    StepDone,
    Waiting,
)
from council.engine.runs import PROVIDER, Admission, Execution, Finish, Handler, Outcome, Parked, Run
from council.errors import CouncilError, Drift, JournalDamaged, PathRefused, StorageFailed
from council.events import Events
from council.ids import STEWARD, Clock, new_run_id, timestamp
from council.logs import log_context
from council.redaction import Redactor
from council.storage.files import fsync_dir
from council.storage.paths import ConfinedRoot

log = logging.getLogger(__name__)

_SECRET_BYTES = 32
_TEXTS = frozenset({"task_description", "answers"})  # keys of commands that hold what a person wrote
MAX_WAIT = "max_wait"  # how a run ends that waited too long


@dataclass(frozen=True)
class EnginePaths:
    """Where the engine keeps its own files, all below the home's run-time folder."""

    runs: Path
    active: Path
    outputs: Path

    @classmethod
    def under(cls, runtime: Path) -> EnginePaths:
        return cls(runtime / "runs", runtime / "active", runtime / "outputs")

    def make(self) -> None:
        for folder in (self.runs, self.active, self.outputs):
            folder.mkdir(parents=True, exist_ok=True)


class Engine:
    """Runs commands of the types it has handlers for."""

    def __init__(
        self,
        paths: EnginePaths,
        root: ConfinedRoot,
        receipts: Receipts,
        ledger: Ledger,
        handlers: Mapping[str, Handler],
        events: Events,
        clock: Clock,
        *,
        max_parallel_runs: int,
        max_wait_s: float,
        max_attempts: int,
        storage_retry_s: float,
        audit: Audit | None = None,
        require_authority: Callable[[RunCommand], None] = lambda command: None,
        run_secret: Callable[[RunCommand], bytes | None] = lambda command: None,
        redactor: Redactor | None = None,
    ) -> None:
        """`audit` None: nothing is recorded. `require_authority` raises CommandInvalid for who may not ask this.
        `run_secret`: that of a command's run, where it is given: by a cassette, or by a test that compares two runs. What
        is kept of a run holds no secret that `redactor` knows."""
        self._paths = paths
        self._root = root
        self._receipts = receipts
        self._runs_ledger = ledger
        self._handlers = handlers
        self._events = events
        self._clock = clock
        self._slots = max_parallel_runs
        self._max_wait_s = max_wait_s
        self._max_attempts = max_attempts
        self._storage_retry_s = storage_retry_s
        self._audit = audit or Unaudited()
        self._require_authority = require_authority
        self._run_secret = run_secret
        self._redactor = redactor or Redactor()
        self._written = OutputLedger(paths.outputs)
        self._folders = RunFolders(paths.runs)
        self._lanes: Lanes[Run] = Lanes()
        self._running = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stopping = False
        self._last_order = 0
        self._changed = asyncio.Event()
        self.active: dict[str, Run] = {}
        self._holds = False
        self.on_ended: Callable[[Run, RunStatus], None] = lambda run, status: None
        self.before_asking_again: Callable[[], None] = lambda: None
        paths.make()

    # ── admission ────────────────────────────────────────────────────────────────────────────────────────────────────

    def admit(self, command: RunCommand, file: FileIdentity) -> Run | Receipt:
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
        header = self._header(command, file, admission)
        run = self._create(header, command.id)
        self._events.publish("run_queued", run.id, title=header.title, file=file.name, output=header.output_path)
        self._enqueue(run)
        self.ask_for(run)
        return run

    def run_in_progress(self, command: RunCommand) -> Run | None:
        """The run with this command's id that is under way: its receipt will answer."""
        bound = self._receipts.bound(command.id) if command.id is not None else None
        return self.active.get(bound.run_id) if bound is not None else None

    def _header(self, command: RunCommand, file: FileIdentity, admission: Admission) -> RunHeader:
        now = self._clock.now()
        dumped = dump(command)
        return RunHeader(
            run_id=new_run_id(now),
            epoch=EPOCH,
            created=timestamp(now),
            lane=command.session,
            type=command.type,
            command=self._without_secrets(dumped if admission.recorded is None else admission.recorded),
            command_hash=hash_of_dump(dumped) if admission.keeps_hashes else FORGOTTEN,
            file=file if admission.keeps_hashes else msgspec.structs.replace(file, sha256=FORGOTTEN),
            secret=(self._run_secret(command) or secrets.token_bytes(_SECRET_BYTES)).hex(),
            output_path=admission.output_path,
            title=self._redactor.redact(admission.title),
            order=self._next_order(),
            priority=command.priority,
        )

    def _without_secrets(self, command: dict[str, Any]) -> dict[str, Any]:
        """A command as record 0 keeps it: texts of a person are redacted; names and paths are what they are."""
        return {key: self._redactor.in_texts(value) if key in _TEXTS else value for key, value in command.items()}

    def _next_order(self) -> int:
        """Nanoseconds since the epoch, but never less than before: a clock set back does not change the order."""
        self._last_order = max(self._last_order + 1, int(self._clock.now().timestamp() * 1_000_000_000))
        return self._last_order

    def _create(self, header: RunHeader, id_: str | None) -> Run:
        if id_ is not None:
            self._receipts.bind(IdBinding(id_, header.command_hash, header.run_id))
        return self._adopt(self._folders.begin(header))

    def _adopt(self, journal: FileJournal) -> Run:
        header = journal.header
        journal.redactor = self._redactor
        journal.stopping = lambda: self._stopping
        journal.now_ms = lambda: int(self._clock.now().timestamp() * 1000)
        run = Run(journal, self._events, self._output(header) if header.output_path else None)
        self.active[run.id] = run
        return run

    def _output(self, header: RunHeader) -> OutputFile:
        return OutputFile(self._root, self._written, self._paths.runs, header.output_path, header.run_id)

    # ── recovery ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def recover(self, *, hold: bool = False) -> list[Run]:
        """Takes up every run that had not ended when the process last stopped, in the order of their admission.

        `hold`: they are known, but none is executed, and none that is reopened either, unless a run that is admitted
        must wait for it (`ask_for`): for a door that drains its own drop and leaves. Raises StorageFailed when the disk
        does not give a journal.
        """
        self._holds = hold
        self._folders.discard()
        self._folders.prepare()
        found = [self._recover_one(marker) for marker in list(self._paths.active.iterdir())]
        recovered = sorted((run for run in found if run is not None), key=lambda run: (run.header.order, run.id))
        self._last_order = max((run.header.order for run in recovered), default=0)
        for run in recovered:
            self._take_up(run)
        return recovered

    def _take_up(self, run: Run) -> None:
        self._events.publish("run_recovered", run.id, title=run.header.title, steps=run.journal.step_count)
        if self._holds:
            self._lanes.hold(run)
        self._enqueue(run)

    def ask_for(self, run: Run) -> None:
        """Holds neither this run any longer nor those that come before it, in its lane or at its output path."""
        self._lanes.ask_for(run)
        self._pump()

    def _recover_one(self, marker: Path) -> Run | None:
        path = self._folders.journal(marker.name)
        try:
            return self._adopt(FileJournal.load(path))
        except (JournalDamaged, StorageFailed) as error:
            if not path.exists() or error.data.get("records") == 0:
                marker.unlink()  # the process died before record 0 was whole: the command file is there and runs anew
                return None
            log.error("run %s: %s", marker.name, error)
            self._events.publish("run_damaged", marker.name, error=error.message, fix=error.fix)
            if isinstance(error, StorageFailed):  # its command file would be taken for a new one, and paid for twice
                raise StorageFailed(
                    f"the journal of the unfinished run {marker.name} cannot be read: {error.message}",
                    fix=f"give this user access to {path}, then start again",
                    errno=error.data.get("errno"),
                ) from error
            try:
                return self._adopt(self._readable(path, error))
            except (JournalDamaged, StorageFailed) as again:
                log.error("run %s is left alone: %s", path.parent.name, again)
                return None

    def _readable(self, path: Path, error: JournalDamaged) -> FileJournal:
        """What a damaged journal still says: that of a run which has its receipt or its commit ends as these say, any other
        one as failed. Raises JournalDamaged when nobody can say what it was, StorageFailed."""
        run_id = path.parent.name
        receipt = self._receipts.read(run_id)
        if receipt is not None:
            committed = Committed(receipt.status, (), msgspec.Raw(msgspec.json.encode(receipt)))
            return FileJournal.sealed_as(path, committed)
        found = committed_in(path)
        if found is not None:
            return FileJournal.sealed_as(path, found)
        self._output(read_header(path)).keep()
        fix = f"the whole of it is in .council/runs/{run_id}; `council retry {run_id}` does the work again"
        finish = self._finish(ErrorRef(error.code, error.message, fix))
        return FileJournal.salvage(path, StepDone(FINISH, "", msgspec.Raw(msgspec.json.encode(finish))))

    # ── lanes and slots ──────────────────────────────────────────────────────────────────────────────────────────────

    def _enqueue(self, run: Run) -> None:
        # After the admission, which somebody waits for, and before the run's task, which is created after this.
        loop = asyncio.get_running_loop()
        loop.call_soon(self._mark_active, run)
        loop.call_soon(self._folders.prepare)
        self._lanes.join(run)
        run.journal.rest()  # thousands may wait in line, and a process has 1,024 descriptors
        self._pump()

    def _mark_active(self, run: Run) -> None:
        """A crash before this costs nothing: no step has begun, the command file is there, and runs anew."""
        try:
            self._mark(run)
        except StorageFailed as error:
            log.error("run %s is not marked yet: %s", run.id, error)

    def _mark(self, run: Run) -> None:
        """Makes the run one that a restart finds. Raises StorageFailed."""
        self._touch(run.id)
        fsync_dir(self._paths.runs / run.id)
        fsync_dir(self._paths.runs)
        run.marked = True
        self._runs_ledger.put(entry_of_header(run.header, "queued"))

    def _touch(self, run_id: str) -> None:
        """Raises StorageFailed."""
        try:
            (self._paths.active / run_id).touch()
        except OSError as error:
            raise StorageFailed(
                f"cannot mark run {run_id} as active: {error.strerror}.", fix="make room on the disk", errno=error.errno
            ) from error

    def _unmark(self, run: Run) -> None:
        """Raises StorageFailed."""
        try:
            (self._paths.active / run.id).unlink(missing_ok=True)
        except OSError as error:
            raise StorageFailed(
                f"cannot remove the mark of run {run.id}: {error.strerror}.",
                fix="give this user access to .council/active; the run ends by itself then",
                errno=error.errno,
            ) from error

    def _pump(self) -> None:
        """Starts whatever may start, while there are slots."""
        while not self._stopping and self._running < self._slots:
            run = self._lanes.next()
            if run is None:
                break
            self._start(run)
        self._changed.set()

    def _start(self, run: Run) -> None:
        """Until the task has begun the run is `queued`, and then `running`."""
        assert run.task is None, f"run {run.id} is being executed already"
        self._running += 1
        run.status = "queued"
        run.waiting_for = ""
        with log_context(run_id=run.id):  # which the task takes along
            run.task = asyncio.get_running_loop().create_task(self._execute(run), name=run.id)

    # ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _execute(self, run: Run) -> None:
        run.status = "running"
        cut_off = False
        try:
            if not run.marked:  # the disk refused it before; without it a crash would pay for every step again
                self._mark(run)
            run.journal.secure()
            if run.journal.committed is None:
                run.journal.attempt()
                self._commit(run, await self._work(run))
            await self._complete(run)
        except Handback:
            self._note_handback(run)
            run.status = "queued"
            run.publish("run_handed_back")
        except Parked as parked:
            cut_off = await self._wait_for(run, parked)
        except (StorageFailed, PathRefused) as error:  # refused: a folder of the commit became something else
            log.error("run %s: %s", run.id, error)
            self._park(run, Parked("storage", self._storage_retry_s, error))
        except asyncio.CancelledError:
            if not run.cancel_reason:
                raise
            cut_off = True  # beside its work, while the audit was asked: it ends in a task of its own
        except Exception:
            log.exception("run %s met a defect while it ended; it is tried again at the next start", run.id)
            run.status = "waiting"
            run.waiting_for = "restart"
        finally:
            self._running -= 1
            run.task = None
            if cut_off:
                self._start_to_end(run)
            self._pump()

    async def _work(self, run: Run) -> Callable[[], Outcome]:
        """Does the work; what is returned renders what it leaves, for wherever the artifact goes."""
        if run.journal.accepts_drift:
            await self._audit.approved(run.id, "drift_accepted", "drift_accepted", STEWARD.id, {"run": run.id})
        execution = self._handlers[run.header.type].begin(run)
        run.publish("run_started", title=run.header.title, attempt=run.journal.attempts, file=run.header.file.name)
        if run.cancel_reason:
            run.journal.put(FINISH, self._finish(cancelled_by=run.cancel_reason), type=Finish)
        elif error := _other_epoch(run) or self._too_many_attempts(run):
            run.journal.put(FINISH, self._finish(error), type=Finish)
        run.journal.closed = run.journal.recorded(FINISH)
        finish = await self._finish_of(run, execution)
        finish = run.journal.put(FINISH, finish, type=Finish)
        if not run.journal.closed and finish.error is not None and finish.error.code == Drift.code:
            run.journal.closed = True  # once more, for what was said until then
            execution = self._handlers[run.header.type].begin(run)
            await self._finish_of(run, execution)
        await self._note_audit_head(run)
        run.state = "PRODUCING_ARTIFACT"
        run.publish("state", state=run.state)
        return partial(execution.conclude, finish)

    async def _note_audit_head(self, run: Run) -> None:
        if not run.journal.recorded(AUDIT_HEAD):
            run.journal.put(AUDIT_HEAD, await self._record_refusals(run), type=str)

    async def _record_refusals(self, run: Run) -> str:
        return await self._audit.record_refusals(run.id, actor_of(run.header), run.refusals)

    def _too_many_attempts(self, run: Run) -> ErrorRef | None:
        attempts = run.journal.fruitless_attempts
        if attempts <= self._max_attempts:
            return None
        return ErrorRef(
            "max_attempts",
            f"{self._max_attempts} attempts in a row ended with the process and brought no step.",
            f"see the log for what ends it, then `council resume {run.id}`",
        )

    def _note_handback(self, run: Run) -> None:
        try:
            run.journal.hand_back()
        except StorageFailed as error:  # then it counts as an attempt, one of several
            log.warning("run %s: %s", run.id, error)

    async def _finish_of(self, run: Run, execution: Execution) -> Finish:
        try:
            await execution.work()
        except (Parked, StorageFailed):
            raise
        except Exhausted:
            pass  # a recorded end: the journal holds no step beyond this one
        except asyncio.CancelledError:
            if not run.cancel_reason:
                raise Handback from None
            return self._finish(cancelled_by=run.cancel_reason)
        except CouncilError as error:
            return self._finish(ErrorRef(error.code, error.message, error.fix))
        except Exception as error:
            log.exception("run %s met a defect", run.id)
            return self._finish(
                ErrorRef("internal", f"internal error ({type(error).__name__}).", "see the log, and report it")
            )
        return self._finish()

    def _finish(self, error: ErrorRef | None = None, *, cancelled_by: str = "") -> Finish:
        return Finish(timestamp(self._clock.now()), error, bool(cancelled_by), cancelled_by)

    def _commit(self, run: Run, conclude: Callable[[], Outcome]) -> None:
        try:
            self._commit_outcome(run, self._settled(run, conclude))
        except PathRefused as error:  # the folder of the artifact became something else in mid-run
            if not run.output_path:
                raise StorageFailed(error.message, fix=error.fix) from error
            log.warning("run %s: %s", run.id, error)
            run.output.step_aside(f"cannot be written ({error.message})", f"artifacts/{run.id}.md")
            try:
                self._commit_outcome(run, conclude())
            except PathRefused as again:  # not the artifact's folder alone: waited for, as for a full disk
                raise StorageFailed(again.message, fix=again.fix) from again

    def _settled(self, run: Run, conclude: Callable[[], Outcome]) -> Outcome:
        """The outcome, rendered for the place where it goes: a person may have edited the page meanwhile."""
        if run.output_path:
            run.output.settle()
        return conclude()

    def _commit_outcome(self, run: Run, outcome: Outcome) -> None:
        artifact = [self._claim(run, outcome.artifact)] if outcome.artifact is not None else []
        files = stage(self._root, [*artifact, *outcome.outputs], run.id)
        reference = ArtifactRef(artifact[0].path, files[0].sha256) if artifact else None
        receipt = self._receipt(run, outcome, reference)
        displaced = run.output.displaced if run.output_path else ""
        encoded = msgspec.Raw(msgspec.json.encode(receipt))
        run.journal.commit(Committed(outcome.status, files, encoded, displaced))

    def _claim(self, run: Run, artifact: bytes) -> Output:
        final, replaces, otherwise = run.output.claim(artifact)
        return Output(final, artifact, replaces, otherwise)

    def _receipt(self, run: Run, outcome: Outcome, artifact: ArtifactRef | None) -> Receipt:
        finish = run.journal.put(FINISH, self._finish(), type=Finish)
        return Receipt(
            run_id=run.id,
            status=outcome.status,
            type=run.header.type,
            lane=run.header.lane,
            id=run.header.command.get("id"),
            command_file=run.header.file,
            command_sha256=run.header.file.sha256,
            command_hash=run.header.command_hash,
            created=run.header.created,
            finished=finish.at,
            title=run.header.title,
            artifact=artifact,
            error=outcome.error,
            notes=outcome.notes,
            rounds=outcome.rounds,
            model=outcome.model,
            calls=outcome.calls,
            tokens=outcome.tokens,
            cost_usd=outcome.cost_usd,
            attempts=run.journal.attempts,
            took_ms=_took_ms(run),
            audit_head=run.audit_head,
        )

    async def _complete(self, run: Run) -> None:
        """Everything after the point of no return; safe to repeat."""
        committed = run.journal.committed
        assert committed is not None
        finals = roll_forward(self._root, committed.files)
        if (
            committed.files or not run.journal.sealed
        ):  # else the receipt is all that is left, and that came after the audit
            await record_commit(self._audit, run.header, committed, finals)
        receipt = msgspec.json.decode(committed.receipt, type=Receipt)
        if receipt.artifact is not None and committed.files:
            receipt = _placed(receipt, finals[0], committed.files[0])
        self._receipts.write(receipt)
        run.status = committed.status
        run.journal.end(Ended(committed.status))
        if not run.journal.reopened:  # the file of a reopened run was taken when it ended first
            self.on_ended(run, committed.status)
        run.journal.close()  # gives back its room: once the marker is gone, nobody looks at it again
        self._unmark(run)
        self.active.pop(run.id, None)
        self._lanes.release(run)
        artifact = receipt.artifact.path if receipt.artifact else ""
        error = msgspec.to_builtins(receipt.error) if receipt.error else None
        run.publish(
            "run_ended",
            status=committed.status,
            artifact=artifact,
            error=error,
            notes=list(receipt.notes),
            title=receipt.title,
            calls=receipt.calls,
            file=run.header.file.name,
        )

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _wait_for(self, run: Run, parked: Parked) -> bool:
        """Parks the run; True when it was cancelled before that."""
        try:
            if run.refusals:  # the wait may be long, and the audit is asked meanwhile
                await self._record_refusals(run)
            self._park(run, parked)
        except asyncio.CancelledError:
            if not run.cancel_reason:
                raise
            return True
        except StorageFailed as error:  # the wait cannot be noted: then it is the disk that is waited for
            log.error("run %s: %s", run.id, error)
            self._park(run, Parked("storage", self._storage_retry_s, error))
        return False

    def _park(self, run: Run, parked: Parked) -> None:
        seconds = max(1.0, parked.seconds)
        if parked.reason != "storage":
            waited_s = self._waited_s(run)
            if waited_s + seconds > self._max_wait_s:
                self._give_up(run, parked, waited_s, seconds)
                return
            run.journal.wait(Waiting(parked.reason, timestamp(self._clock.now()), seconds, parked.message))
        run.status = "waiting"
        run.waiting_for = parked.reason
        run.journal.rest()
        until = timestamp(self._clock.now() + timedelta(seconds=seconds))
        run.publish("run_waiting", reason=parked.reason, seconds=seconds, until=until, error=parked.message)
        loop = asyncio.get_running_loop()
        self._timers[run.id] = loop.call_later(seconds, self._wake, run)

    def _waited_s(self, run: Run) -> float:
        """By the clock, since the run first waited for what it has not got yet; however often it asked meanwhile."""
        if not run.journal.waits:
            return 0.0
        since = datetime.fromisoformat(run.journal.waits[0].since)
        return max(0.0, (self._clock.now() - since).total_seconds())

    def _give_up(self, run: Run, parked: Parked, waited_s: float, seconds: float) -> None:
        error = ErrorRef(
            MAX_WAIT,
            f"waited {waited_s:.0f} s for {parked.reason}, and {seconds:.0f} s more would be longer than max_wait_s "
            f"({self._max_wait_s:.0f} s) allows; {parked.message}",
            f"`council resume {run.id}` asks again; the setting `max_wait_s` says how long a run may wait",
        )
        run.journal.put(FINISH, self._finish(error), type=Finish)
        run.status = "queued"
        self._lanes.go_on(run)

    def _wake(self, run: Run) -> None:
        """Lets a run that waits go on as soon as there is a slot; once, however often it is asked for."""
        self._drop_timer(run)
        if run.status == "waiting" and not self._stopping:
            run.status = "queued"
            run.waiting_for = ""
            self._lanes.go_on(run)
            self._pump()

    def _drop_timer(self, run: Run) -> None:
        timer = self._timers.pop(run.id, None)
        if timer is not None:
            timer.cancel()

    # ── from outside ─────────────────────────────────────────────────────────────────────────────────────────────────

    def cancel(self, run_id: str, reason: str) -> bool:
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
                self._start_to_end(run)
            elif run.status == "running":  # NOTE: a task that has not begun would never begin
                run.task.cancel()
        run.journal.put(FINISH, self._finish(cancelled_by=run.cancel_reason), type=Finish)  # before somebody is told so
        return True

    def _start_to_end(self, run: Run) -> None:
        """Out of turn and without a slot: a run that is cancelled calls nobody."""
        self._drop_timer(run)
        self._lanes.leave(run)
        if run.output_path and self._lanes.is_anothers(run.output_path, run):
            run.output.step_aside("is being written by another run")
        self._start(run)

    def resume(self, command: ResumeCommand, file: FileIdentity) -> None:
        """Lets a run go on: one that waits, now, and asks again whom it waits for; one that failed or was cancelled, at its
        first unrecorded step. Raises CommandInvalid when it cannot, JournalDamaged or StorageFailed when its journal does
        not allow it."""
        run = self.active.get(command.run)
        if run is None:
            self._reopen(command, file)
        elif run.journal.reopened_by == file.drop:
            return  # the process died before it could say so
        elif run.is_waiting:
            if run.journal.waits and run.journal.waits[-1].reason == PROVIDER:
                self.before_asking_again()
            self._wake(run)
        else:
            raise not_resumable(
                run.id, f"is {run.status}", "it goes on by itself; `council status` shows how far it is"
            )

    def retry(self, command: RetryCommand, file: FileIdentity) -> None:
        """Does an ended run's work again from `command.from_` on. Raises as `resume`."""
        run = self.active.get(command.run)
        if run is None:
            self._reopen(command, file)
        elif run.journal.reopened_by != file.drop:
            raise not_resumable(
                run.id, f"is {run.status}", f"`council cancel {run.id}` ends it; then it can be retried"
            )

    def _reopen(self, command: ResumeCommand | RetryCommand, file: FileIdentity) -> None:
        """May be cut off anywhere: the same drop, read again, completes it."""
        run_id = command.run
        folder = self._paths.runs / run_id
        receipt = require_reopenable(self._receipts, folder, command)
        if receipt.error is not None and receipt.error.code == MAX_WAIT:
            self.before_asking_again()
        journal = FileJournal.load(self._folders.journal(run_id))  # before anything is changed: it may not verify
        if journal.reopened_by == file.drop and journal.committed is not None:
            journal.close()  # it was done, and has ended since: only the file could not be taken
            return
        try:
            if journal.reopened_by != file.drop:
                if receipt.artifact is not None:
                    keep_artifact(self._root, folder, receipt.artifact.path, receipt.artifact.sha256)
                journal.reopen(_reopened(command, journal, timestamp(self._clock.now()), file.drop))
            self._touch(run_id)
            self._receipts.withdraw(run_id, folder)
        except StorageFailed:
            journal.close()
            raise
        self._take_up(self._adopt(journal))

    def answer_control(self, command: ControlCommand, file: FileIdentity) -> Receipt:
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
        self._receipts.write(receipt)
        return receipt

    def redact(self, text: str) -> str:
        """`text` without the secrets that are known."""
        return self._redactor.redact(text)

    def receipt(self, run_id: str) -> Receipt | None:
        return self._receipts.read(run_id)

    @property
    def running(self) -> int:
        return self._running

    @property
    def at_work(self) -> bool:
        """True while runs remain that this process is to end."""
        return len(self.active) > self._lanes.held

    @property
    def only_waiting(self) -> bool:
        """True when runs remain and all of them wait, or stand behind one that does."""
        return self.at_work and self._running == 0

    async def changed(self) -> None:
        """Returns after the next start or end of a run."""
        self._changed.clear()
        await self._changed.wait()

    async def stop(self) -> None:
        """Lets each turn in flight end, then hands the runs back: they resume at the next start."""
        self._stopping = True
        await asyncio.sleep(0)  # what `_enqueue` put off to the next turn of the loop
        for timer in self._timers.values():
            timer.cancel()
        while tasks := [run.task for run in self.active.values() if run.task is not None]:
            await asyncio.wait(tasks)  # again: one that is cancelled meanwhile has a task to end in
        for run in self.active.values():
            run.journal.close()
        self._folders.discard()


def _placed(receipt: Receipt, final: str, file: CommitFile) -> Receipt:
    """`receipt` with the place where the artifact went: somebody may have written to the other one after the commit."""
    receipt = msgspec.structs.replace(receipt, artifact=ArtifactRef(final, file.sha256))
    if final == file.final:
        return receipt
    note = f"`{file.final}` was edited just before the decision took its place, and was left as it is: that is in `{final}`."
    return msgspec.structs.replace(receipt, notes=(*receipt.notes, note))


def _reopened(command: ResumeCommand | RetryCommand, journal: FileJournal, at: str, by: str) -> Reopened:
    if isinstance(command, ResumeCommand):
        return Reopened(at, command.accept_drift, by=by)
    return Reopened(at, accept_drift=False, retry_from=command.from_ or journal.first_step, by=by)


def _took_ms(run: Run) -> int | None:
    ended_ms = run.journal.ended_ms(FINISH)
    return None if ended_ms is None else max(0, ended_ms - run.header.admitted_ms)


def _other_epoch(run: Run) -> ErrorRef | None:
    """The end of a run whose steps mean something else to this version."""
    header = run.header
    if header.epoch == EPOCH or run.journal.accepts_drift:
        return None
    return ErrorRef(
        Drift.code,
        f"the run was begun by a version of Council with journal epoch {header.epoch}; this one has {EPOCH}.",
        f"`council resume {header.run_id} --accept-drift` goes on all the same; or drop the command again",
    )
