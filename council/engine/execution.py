"""One run's execution: its work, its commit, its files put into their places. A worker process could run this.

    work → finish → stage → commit record → renames → receipt → file taken

Everything up to the commit record can be repeated from the journal; everything after it only rolls forward. Knows no lane
and no slot.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from council.audit.trail import Trail
from council.engine import statements as sql
from council.engine.auditing import RunAudit
from council.engine.commit import roll_forward, stage
from council.engine.journal import Handback
from council.engine.ledger import end_of
from council.engine.outputs import point_on
from council.engine.receipts import ArtifactRef, ErrorRef, Receipt
from council.engine.records import DECIDED, EPOCH, Commit, RunStatus
from council.engine.run_records import AUDIT_HEAD, FINISH, JournalEnd
from council.engine.runs import ActiveRun, Execution, Finish, Outcome, RunPause, Runs, UnknownType
from council.errors import CouncilError, Drift, JournalDamaged, PathRefused, StorageFailed
from council.events import RunStart, RunState
from council.ids import Clock, timestamp
from council.storage.paths import ConfinedRoot
from council.storage.store import Store, Tx
from council.typed_json import decode_json

if TYPE_CHECKING:
    from council.audit.log import Transaction

log = logging.getLogger(__name__)

MAX_ATTEMPTS = "max_attempts"  # how a run ends at which the process died again and again


@dataclass(frozen=True)
class NoWork:
    """The work of a run that nobody here can do or read, as one that an older version began: it fails and leaves a receipt
    alone."""

    error: UnknownType | JournalDamaged

    async def work(self) -> None:
        raise self.error

    def conclude(self, finish: Finish) -> Outcome:
        return Outcome("cancelled" if finish.cancelled else "failed", None, error=finish.error)


class Executor:
    """Executes runs of the types that have handlers."""

    def __init__(
        self,
        store: Store,
        root: ConfinedRoot,
        runs: Runs,
        audited_as: Callable[[str], str],
        clock: Clock,
        audit: Trail,
        max_attempts: int,
        on_ended: Callable[[ActiveRun, RunStatus], None],
        require_places: Callable[[str], None],
    ) -> None:
        """`audited_as` is the audit's word for the end of a run of a type. `on_ended` takes the command file of a run
        whose receipt answers. `require_places` raises where the home's own files lie elsewhere: a run whose memory would
        go there fails."""
        self._store = store
        self._root = root
        self._runs = runs
        self._clock = clock
        self._audit = RunAudit(store, audit, audited_as)
        self._max_attempts = max_attempts
        self._on_ended = on_ended
        self._require_places = require_places

    async def execute(self, run: ActiveRun) -> Receipt:
        """The receipt of the run, whose files are in their places. Raises RunPause when it is to go on later, Handback when the
        process is about to stop. Raises StorageFailed and PathRefused when the disk or a folder does not allow its end."""
        execution = None
        if run.journal.committed is None:
            await run.journal.attempt()
            try:
                execution = await self._work(run)
            except RunPause:
                await self._audit.refused(run.header, run.refusals)  # the wait may be long
                raise
        async with self._runs.endings:
            if execution is not None:
                await self._commit(run, execution)
            return await self._complete(run)

    def finish(self, error: ErrorRef | None = None, *, cancelled_by: str = "") -> Finish:
        """The end of a run, as of now."""
        return Finish(timestamp(self._clock.now()), error, bool(cancelled_by), cancelled_by)

    async def _work(self, run: ActiveRun) -> Execution:
        """Does the work; what is returned renders what it leaves, for wherever the artifact goes."""
        journal, header = run.journal, run.header
        if journal.accepts_drift:
            await self._audit.drift_accepted(run.id)
        try:
            execution = self._runs.begin(run)
        except (UnknownType, JournalDamaged) as error:
            execution = NoWork(error)
        run.publish(RunStart(title=header.title, attempt=journal.attempts, file=header.file.name))
        if run.cancel_reason:
            journal.note(FINISH, self.finish(cancelled_by=run.cancel_reason), type=Finish)
        elif header.epoch != EPOCH and not journal.accepts_drift:
            message = f"a version of Council with journal epoch {header.epoch} began the run, but this one has {EPOCH}."
            fix = f"`council resume {run.id} --accept-drift` continues anyway; or drop the command again"
            journal.note(FINISH, self.finish(ErrorRef(Drift.code, message, fix)), type=Finish)
        elif journal.fruitless_attempts > self._max_attempts:
            message = f"{self._max_attempts} attempts in a row died with the process, without a new step."
            fix = f"see the log for the reason, then `council resume {run.id}`"
            journal.note(FINISH, self.finish(ErrorRef(MAX_ATTEMPTS, message, fix)), type=Finish)
        journal.closed = journal.recorded(FINISH)
        finish = journal.note(FINISH, await self._finish_of(run, execution), type=Finish)
        if not journal.closed and finish.error is not None and finish.error.code == Drift.code:
            journal.closed = True  # once more, for what was said until then
            execution = self._runs.begin(run)
            await self._finish_of(run, execution)
        journal.note(AUDIT_HEAD, self._audit.trail.head(), type=str)
        run.state = "PRODUCING_ARTIFACT"
        run.publish(RunState(state=run.state))
        return execution

    async def _finish_of(self, run: ActiveRun, execution: Execution) -> Finish:
        try:
            await execution.work()
            self._require_places(run.header.lane)
        except (RunPause, StorageFailed):
            raise
        except JournalEnd:
            pass  # a recorded end: the journal holds no step beyond this one
        except asyncio.CancelledError:
            if not run.cancel_reason:
                raise Handback from None
            return self.finish(cancelled_by=run.cancel_reason)
        except CouncilError as error:
            return self.finish(ErrorRef(error.code, error.message, error.fix))
        except Exception as error:
            log.exception("run %s met a defect", run.id)
            return self.finish(
                ErrorRef("internal", f"internal error ({type(error).__name__}).", "see the log, and report it")
            )
        return self.finish()

    async def _commit(self, run: ActiveRun, execution: Execution) -> None:
        """Renders the outcome for the place where it goes: a person may have edited the page meanwhile. It goes beside that
        place where the folder of the artifact became something else. A run whose other files are refused fails."""
        journal = run.journal
        try:
            await self._commit_outcome(run, execution)
            return
        except PathRefused as error:
            refusal = error
        if run.output_path:
            log.warning("run %s: %s", run.id, refusal)
            run.output.step_aside(f"cannot be written ({refusal.message})", f"artifacts/{run.id}.md")
            try:
                await self._commit_outcome(run, execution)
                return
            except PathRefused as error:
                refusal = error
        if not journal.closed:
            journal.note_again(FINISH, self.finish(ErrorRef(refusal.code, refusal.message, refusal.fix)), type=Finish)
        try:
            await self._commit_outcome(run, execution)
        except PathRefused as error:  # not even a page can be written: waited for, as for a full disk
            raise StorageFailed(error.message, fix=error.fix) from error

    async def _commit_outcome(self, run: ActiveRun, execution: Execution) -> None:
        """The end of a run is one transaction. It holds the last steps, what is committed, the receipt, what is then written
        where, and the audit's records."""
        finish = run.journal.result(FINISH, Finish)
        standing = run.output.settle() if run.output_path else None  # first: the page says where it goes, and why
        restored = None
        if standing and (finish.cancelled or finish.error is not None):
            because = "was cancelled" if finish.cancelled else "failed"
            restored = run.output.keep_earlier_decision(standing, because)
            standing = run.output.settle()
        outcome = execution.conclude(finish)
        claim = run.output.claim(outcome.artifact, standing) if outcome.artifact is not None else None
        claims = [each for each in (claim, restored) if each is not None]
        outputs = [*(each.output for each in claims), *outcome.outputs]
        files = await asyncio.to_thread(stage, self._root, outputs, run.id)
        receipt = self._receipt(run, outcome, ArtifactRef(claim.output.path, files[0].sha256) if claim else None)
        displaced = run.journal.redactor.redact(run.output.displaced) if run.output_path else ""
        audited: list[Transaction] = []

        def seal(tx: Tx) -> Commit:
            committed = Commit(outcome.status, files, msgspec.Raw(msgspec.json.encode(receipt)), displaced)
            done = self._audit.end(tx, run.header, committed, run.refusals)
            audited.append(done)
            outcome.closing(done)
            for each in claims:
                each.note(tx)
            for one in outcome.kept:
                tx.execute(sql.KEEP, (one.owner, one.name, one.data))
            sealed = msgspec.structs.replace(receipt, audit_head=str(done.head))
            return msgspec.structs.replace(committed, receipt=msgspec.Raw(msgspec.json.encode(sealed)))

        await run.journal.commit(seal)
        self._audit.trail.settle(audited[-1])

    def _receipt(self, run: ActiveRun, outcome: Outcome, artifact: ArtifactRef | None) -> Receipt:
        header = run.header
        finish = run.journal.note(FINISH, self.finish(), type=Finish)
        ended_ms = run.journal.ended_ms(FINISH)
        receipt = Receipt(
            run_id=run.id,
            status=outcome.status,
            type=header.type,
            lane=header.lane,
            id=header.command.get("id"),
            command_file=header.file,
            command_sha256=header.file.sha256,
            command_hash=header.command_hash,
            created=header.created,
            finished=finish.at,
            title=header.title,
            artifact=artifact,
            error=outcome.error,
            notes=outcome.notes,
            rounds=outcome.rounds,
            model=outcome.model,
            calls=outcome.calls,
            tokens=outcome.tokens,
            cost_usd=outcome.cost_usd,
            details=dict(outcome.details),
            attempts=run.journal.attempts,
            took_ms=None if ended_ms is None else max(0, ended_ms - header.admitted_ms),
        )
        # A path is no text: under another name nobody would find the file.
        return msgspec.structs.replace(run.journal.redactor.redacted(receipt, Receipt), artifact=artifact)

    async def _complete(self, run: ActiveRun) -> Receipt:
        """Everything after the point of no return; safe to repeat."""
        committed = run.journal.committed
        assert committed is not None
        receipt = decode_json(committed.receipt, Receipt)
        if not run.journal.ended:
            finals = await roll_forward(self._root, committed.files)
            for file, final in zip(committed.files, finals, strict=True):
                if final != file.final:
                    await self._audit.displaced(run.header, file.final, final, file.sha256)
            if receipt.artifact is not None and committed.files and finals[0] != committed.files[0].final:
                first, final = committed.files[0], finals[0]
                note = (
                    f"`{first.final}` was edited just before the decision was written, so it was not changed. "
                    f"The decision is in `{final}`."
                )
                reference = ArtifactRef(final, first.sha256)
                receipt = msgspec.structs.replace(receipt, artifact=reference, notes=(*receipt.notes, note))
            if receipt.artifact is not None:  # a run that ended elsewhere before, or grew there, has one page now
                places, has_decision = [*finals, receipt.artifact.path], committed.status in DECIDED
                for path, sha256 in run.output.superseded(places, has_decision=has_decision).items():
                    await self._audit.taken_away(run.header, path, sha256)
                    with suppress(PathRefused):  # it became something else: then it is a person's
                        self._root.unlink(path)
                point_on(self._root, self._store, run.id, run.header.output_path, receipt.artifact.path)
            ended_ns = max(time.time_ns(), run.header.order)
            end = end_of(receipt, text_bytes=run.journal.text_bytes, ended_ns=ended_ns)
            await self._store.write(lambda tx: tx.execute(sql.END, end), durable=False)
            run.journal.ended = True
        run.status = committed.status
        if not run.is_reopened:  # the file of a reopened run was taken when it ended first
            self._on_ended(run, committed.status)
        self._store.defer(lambda tx: tx.execute(sql.TAKEN, (run.id,)))
        return receipt
