"""The control commands that act on a run: `cancel`, `resume`, `retry`; what is checked before they are obeyed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictStr

from council.commands.models import ControlBase
from council.commands.types import Admission, CommandType
from council.engine import statements as sql
from council.engine.ledger import Ledger
from council.engine.reopening import not_resumable, require_resumable, require_retryable
from council.engine.runs import Premises
from council.errors import CommandInvalid
from council.settings.model_names import model_spelling


class RunControl(ControlBase):
    """The key of a command that acts on one run."""

    run: Annotated[StrictStr, Field(min_length=1, max_length=64, description="The run's id.")]


class CancelCommand(RunControl):
    """Ends a run that is queued, running or waiting; it leaves its partial artifact."""

    type: Annotated[Literal["cancel"], Field(description="What kind of command this is.")]


class Reopening(RunControl):
    """The key of a command that lets an ended run go on."""

    model: Annotated[
        StrictStr | None,
        Field(description="The model that the run goes on with. Unset: its own."),
        AfterValidator(lambda value: None if value is None else model_spelling(value)),
    ] = None


class ResumeCommand(Reopening):
    """Lets a run go on at its first step that is not recorded: one that waits, or one that failed or was cancelled."""

    type: Annotated[Literal["resume"], Field(description="What kind of command this is.")]
    accept_drift: Annotated[
        StrictBool, Field(description="Go on although persona, prompt or model changed since the run began.")
    ] = False


class RetryCommand(Reopening):
    """Does an ended run's work again, with a new budget: all of it, or from one recorded step on."""

    type: Annotated[Literal["retry"], Field(description="What kind of command this is.")]
    from_: Annotated[
        StrictStr,
        Field(
            alias="from",
            max_length=200,
            description="The recorded step to begin again at, with all that were recorded after it; unset: the first.",
        ),
    ] = ""


def admit_cancel(command: CancelCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for a run that is not active. Of a file that is dropped the engine says so: that file itself may
    have ended the run."""
    if not premises.drop and not _is_unfinished(command.run, premises):
        fix = "see `council status` for the runs that are"
        raise CommandInvalid(f"the run {command.run!r} is not active.", fix=fix, field="run")
    return _acting_on(command)


def admit_resume(command: ResumeCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for an ended run that cannot go on, StorageFailed."""
    if not _is_unfinished(command.run, premises):
        require_resumable(premises.store, command.run, accept_drift=accepts_drift(command))
    return _acting_on(command)


def admit_retry(command: RetryCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for a run that has not ended, or whose work cannot be done again; JournalDamaged."""
    if not _is_unfinished(command.run, premises):
        require_retryable(premises.store, command.run, command.from_)
    elif not premises.drop or Ledger(premises.store).journal(command.run).reopened_by != premises.drop:
        fix = f"`council cancel {command.run}` ends it; then it can be retried"
        raise not_resumable(command.run, "has not ended", fix)
    return _acting_on(command)


def _is_unfinished(run_id: str, premises: Premises) -> bool:
    row = premises.store.read(lambda tx: tx.execute(sql.ENDED_NS, (run_id,)).fetchone())
    return row is not None and row[0] is None


def accepts_drift(command: ResumeCommand) -> bool:
    """True also where another model is named: whoever names one accepts that it differs."""
    return command.accept_drift or command.model is not None


def _acting_on(command: RunControl) -> Admission:
    with_model = f" with {command.model}" if isinstance(command, Reopening) and command.model else ""
    return Admission(f"{command.type} {command.run}{with_model}", run_id=command.run)


CONTROLS = (
    CommandType(CancelCommand, admit_cancel),
    CommandType(ResumeCommand, admit_resume),
    CommandType(RetryCommand, admit_retry),
)
