"""The control commands that act on a run: `cancel`, `resume`, `retry`: what is checked before they are
obeyed, and their handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, StrictBool, StrictStr

from council.commands.models import RunControl
from council.commands.types import Admission, CommandType
from council.engine import statements as sql
from council.engine.journal import Journal, Recording, load_journal
from council.engine.ledger import Ledger
from council.engine.open_questions import ANSWERING, ActiveRuns
from council.engine.outputs import keep_artifact
from council.engine.queue import MAX_WAIT
from council.engine.receipts import Receipt
from council.engine.records import Continuation, FileIdentity
from council.engine.reopening import not_resumable, require_resumable, require_retryable
from council.engine.run_records import FINISH
from council.engine.runs import PROVIDER, ControlAnswer, Premises
from council.errors import CommandInvalid
from council.ids import STEWARD, Clock, Principal, timestamp
from council.settings.model_names import model_spelling
from council.storage.paths import ConfinedRoot
from council.storage.store import Store, Tx

T = TypeVar("T")

_MOST_REMEMBERED = 1_000  # drops, while the store takes nothing


class CancelCommand(RunControl):
    """Ends a run that is queued, running or waiting. Its page keeps what was said until then."""

    type: Annotated[Literal["cancel"], Field(description="What kind of command this is.")]


class Reopening(RunControl):
    """The key of a command that lets an ended run go on."""

    model: Annotated[
        StrictStr | None,
        Field(description="The model that the run continues with. Unset: its own."),
        AfterValidator(lambda value: None if value is None else model_spelling(value)),
    ] = None


class ResumeCommand(Reopening):
    """Continues a run that waits, failed or was cancelled, at its first step without a record."""

    type: Annotated[Literal["resume"], Field(description="What kind of command this is.")]
    accept_drift: Annotated[
        StrictBool,
        Field(description="Continue even if the model or Council's prompts have changed since the run began."),
    ] = False


class RetryCommand(Reopening):
    """Repeats an ended run with a new budget: all of it, or from one recorded step on."""

    type: Annotated[Literal["retry"], Field(description="What kind of command this is.")]
    from_: Annotated[
        StrictStr,
        Field(
            alias="from",
            max_length=200,
            description="The recorded step to start again from. Unset: the first.",
        ),
    ] = ""


def foresee_cancel(command: CancelCommand, premises: Premises) -> None:
    """Raises CommandInvalid for a run that is not active."""
    if not _is_unfinished(command.run, premises):
        raise _not_active(command.run)


def admit_resume(command: ResumeCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for an ended run that cannot go on, StorageFailed."""
    if not _is_unfinished(command.run, premises):
        require_resumable(premises.store, command.run, accept_drift=accepts_drift(command))
    return acting_on(command)


def foresee_resume(command: ResumeCommand, premises: Premises) -> None:
    """Raises CommandInvalid for a run that goes on by itself, or that is to have another model before it has ended."""
    if _is_unfinished(command.run, premises):
        if command.model is not None:
            raise _keeps_its_model(command)
        if not Ledger(premises.store).journal(command.run).waits:
            raise _goes_on(command.run)


def admit_retry(command: RetryCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for a run that has not ended, or whose work cannot be done again; JournalDamaged."""
    if not _is_unfinished(command.run, premises):
        require_retryable(premises.store, command.run, command.from_)
    elif Ledger(premises.store).journal(command.run).reopened_by != premises.drop:
        raise _under_way(command.run)
    return acting_on(command)


def _is_unfinished(run_id: str, premises: Premises) -> bool:
    row = premises.store.read(lambda tx: tx.execute(sql.ENDED_NS, (run_id,)).fetchone())
    return row is not None and row[0] is None


def accepts_drift(command: ResumeCommand) -> bool:
    """True also where another model is named: whoever names one accepts that it differs."""
    return command.accept_drift or command.model is not None


def acting_on(command: RunControl) -> Admission:
    """Names the run, and nothing else is asked."""
    with_model = f" with {command.model}" if isinstance(command, Reopening) and command.model else ""
    return Admission(f"{command.type} {command.run}{with_model}", run_id=command.run)


def _not_active(run_id: str) -> CommandInvalid:
    fix = "`council status` lists the active runs"
    return CommandInvalid(f"the run {run_id!r} is not active.", fix=fix, field="run")


def _goes_on(run_id: str) -> CommandInvalid:
    return not_resumable(run_id, "does not wait", "it continues by itself; `council status` shows how far it is")


def _keeps_its_model(command: ResumeCommand) -> CommandInvalid:
    fix = (
        f"`council cancel {command.run}` ends it; `council resume {command.run} --model {command.model}` then continues"
    )
    return not_resumable(command.run, "has not ended, so it keeps its model", fix)


def _under_way(run_id: str) -> CommandInvalid:
    return not_resumable(run_id, "has not ended", f"`council cancel {run_id}` ends it; then it can be retried")


CONTROLS = (
    CommandType(CancelCommand, lambda command, premises: acting_on(command), foresee=foresee_cancel),
    CommandType(ResumeCommand, admit_resume, foresee=foresee_resume),
    CommandType(RetryCommand, admit_retry),
    ANSWERING,
)


@dataclass(frozen=True)
class Reopener:
    """Lets ended runs go on. `take_up` puts one into the queue; `before_asking_again` is told of a run that may ask its
    provider now."""

    store: Store
    root: ConfinedRoot
    clock: Clock
    recording: Recording
    before_asking_again: Callable[[], None]
    take_up: Callable[[Journal], None]

    async def reopen(
        self,
        ended: Callable[[], Receipt],
        command: Reopening,
        file: FileIdentity,
        *,
        accept_drift: bool = False,
        retry_from: str | None = "",
    ) -> None:
        """`ended` finds the receipt of the run, or refuses. `retry_from` empty: at the first step that is not recorded; None:
        from the very first. A file that let the run go on before comes again where nobody was told so: the run has ended since
        and only the file could not be taken, or the connection was lost at its commit, and it goes on now."""
        run_id, model = command.run, command.model

        def look(tx: Tx) -> Journal | None:
            row = tx.execute(sql.ENDED_NS, (run_id,)).fetchone()
            if row is None or tx.execute(sql.HEADER, (run_id,)).fetchone() is None:
                return None
            return load_journal(tx, run_id, self.store, ended=row[0] is not None, recording=self.recording)

        journal = await asyncio.to_thread(self.store.read, look)
        if journal is not None and journal.reopened_by == file.drop:
            if not journal.ended:
                self.take_up(journal)
            return
        receipt = await asyncio.to_thread(ended)
        assert journal is not None, "who has none is refused"
        if receipt.error is not None and receipt.error.code == MAX_WAIT:
            self.before_asking_again()
        if receipt.artifact is not None:
            path, sha256 = receipt.artifact.path, receipt.artifact.sha256
            await asyncio.to_thread(keep_artifact, self.root, self.store, run_id, path, sha256)
        first = next((step.name for step in journal.steps()), FINISH) if retry_from is None else retry_from
        at = timestamp(self.clock.now())
        if model is None and not journal.model:  # an older version did not note it; its receipt has the name
            model = receipt.model
        reopened = Continuation(at, accept_drift=accept_drift, retry_from=first, by=file.drop, model=model or "")
        await journal.reopen(reopened)
        self.take_up(journal)


@dataclass(frozen=True)
class RunSteering:
    """Obeys `cancel`, `resume` and `retry`. `unanswered` are the runs that are cancelled, by drops whose receipts are not
    written yet."""

    runs: ActiveRuns
    unanswered: dict[str, str]
    reopener: Reopener

    async def cancel(self, command: CancelCommand, principal: Principal, file: FileIdentity) -> ControlAnswer:
        """A drop whose cancel or answer the store refused comes again: its run may have ended by it meanwhile."""
        is_again = file.drop in self.unanswered
        remember(self.unanswered, file.drop, command.run)
        by = "the steward" if principal == STEWARD else principal.id
        if not await self.runs.cancel(command.run, f"by {by}") and not is_again:
            del self.unanswered[file.drop]
            if command.run not in self.runs.active:
                raise _not_active(command.run)
            fix = "`council status` says what it waits for, if it does"
            raise CommandInvalid(f"the run {command.run!r} has done its work and is ending.", fix=fix, field="run")
        return ControlAnswer()

    async def resume(self, command: ResumeCommand, principal: Principal, file: FileIdentity) -> ControlAnswer:
        """Lets a run go on: one that waits asks again now, another goes on at its first unrecorded step."""
        run = self.runs.active.get(command.run)
        if run is None:
            drifts = accepts_drift(command)
            ended = partial(require_resumable, self.reopener.store, command.run, accept_drift=drifts)
            await self.reopener.reopen(ended, command, file, accept_drift=drifts)
        elif run.journal.reopened_by == file.drop:
            pass  # it is at work
        elif command.model is not None:
            raise _keeps_its_model(command)
        elif run.is_waiting:
            if run.journal.waits and run.journal.waits[-1].reason == PROVIDER:
                self.reopener.before_asking_again()
            self.runs.wake(run)
        else:
            raise _goes_on(run.id)
        return ControlAnswer()

    async def retry(self, command: RetryCommand, principal: Principal, file: FileIdentity) -> ControlAnswer:
        """Does an ended run's work again from `command.from_` on."""
        run = self.runs.active.get(command.run)
        if run is None:
            ended = partial(require_retryable, self.reopener.store, command.run, command.from_)
            await self.reopener.reopen(ended, command, file, retry_from=command.from_ or None)
        elif run.journal.reopened_by != file.drop:
            raise _under_way(run.id)
        return ControlAnswer()


def remember(known: dict[str, T], drop: str, value: T) -> None:
    """Notes what a drop is about, and lets go of the oldest beyond so many."""
    while len(known) >= _MOST_REMEMBERED:
        del known[next(iter(known))]
    known[drop] = value
