"""The `forget` command, and upkeep as a system: its work is loaded when somebody forgets."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictStr, field_validator, model_validator

from council.commands.models import LINE_PATTERN, RunBase, dump
from council.commands.types import Admission, CommandType
from council.engine.ledger import Ledger, RunEntry
from council.engine.runs import Premises
from council.errors import CommandInvalid
from council.safety.untrusted import clean
from council.systems import LateHandler, System

MIN_FORGOTTEN_CHARS = 4  # shorter ones stand in half of all words
MAX_FORGOTTEN_CHARS = 10_000
FORGOTTEN_MARK = "[forgotten {}]"  # what stands in the place of a forgotten text; a path may hold it, too


def beyond_forget(*, is_server: bool) -> str:
    """Says in a sentence where no `forget` reaches. `is_server`: the database is a PostgreSQL."""
    server = ", nor the log and the backups of the PostgreSQL server" if is_server else ""
    return f"It does not reach files of `council backup` or other copies{server}."


class ForgetCommand(RunBase):
    """Removes a text, or everything about one run, from all that Council keeps: memory, archive, index, journals, receipts,
    logs, its artifacts. It cannot be undone."""

    type: Annotated[Literal["forget"], Field(description="What kind of command this is.")]
    text: Annotated[
        StrictStr | None,
        Field(
            min_length=MIN_FORGOTTEN_CHARS,
            max_length=MAX_FORGOTTEN_CHARS,
            description="The text in its exact words; white space does not count. It is not recorded anywhere.",
        ),
    ] = None
    run: Annotated[
        StrictStr | None,
        Field(
            min_length=1,
            max_length=64,
            pattern=LINE_PATTERN,
            description="The id of an ended run to forget completely.",
        ),
    ] = None
    salt: Annotated[
        StrictStr | None,
        Field(
            min_length=16,
            max_length=200,
            description="Random characters. With them, nobody can guess a short text from the hashes in the receipt. Unset: "
            "the receipt has no hashes.",
        ),
    ] = None

    @field_validator("text")
    @classmethod
    def _can_be_forgotten(cls, value: str | None) -> str | None:
        if value is not None and len(value.strip()) < MIN_FORGOTTEN_CHARS:
            raise ValueError(f"must be at least {MIN_FORGOTTEN_CHARS} characters beside white space", "give more of it")
        if value is not None and value.strip() in FORGOTTEN_MARK:
            raise ValueError("is part of the mark that would replace it", "give more of it")
        return value

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.text is None and self.run is None:
            raise ValueError("must name a `text` or a `run`", "add one of them")
        if self.id is not None and self.text is not None and self.salt is None:
            message = "needs a `salt` beside its `id`: a hash is kept with the id"
            raise ValueError(message, "add a `salt`, or leave `id` out; a recurring command always has one")
        return self


def admit_forget(command: ForgetCommand, premises: Premises) -> Admission:
    """Record 0 keeps everything of the command but its text and its salt. Raises CommandInvalid for an unknown run."""
    if command.run is not None and _run(command.run, premises) is None:
        fix = "`council runs` lists all runs"
        raise CommandInvalid(f"`run` is {command.run!r}, which is not known here.", fix=fix, field="run")
    if command.text is not None and len(clean(command.text).strip()) < MIN_FORGOTTEN_CHARS:
        fix = "give more of the text; invisible and control characters do not count"
        raise CommandInvalid(f"`text` has fewer than {MIN_FORGOTTEN_CHARS} visible characters.", fix=fix, field="text")
    what = [] if command.text is None else ["a text"]
    what += [] if command.run is None else [f"run {command.run}"]
    recorded = {**dump(command), "text": None if command.text is None else "", "salt": None}
    guessable = command.text is not None and command.salt is None
    return Admission(f"Forget {' and '.join(what)}", recorded=recorded, keeps_hashes=not guessable)


def foresee_forget(command: ForgetCommand, premises: Premises) -> None:
    """Raises CannotForget for a run that has not ended."""
    run = _run(command.run, premises) if command.run else None
    if run is not None and run.ended_ns is None:
        from council.upkeep.text_removal import unended  # not at the top: a door that drops needs none of it

        raise unended(run.run_id)


def _run(run_id: str, premises: Premises) -> RunEntry | None:
    found = Ledger(premises.store).starting_with(run_id, 1)
    return found[0] if found and found[0].run_id == run_id else None


FORGETTING = System(
    "forgetting",
    commands=(
        CommandType(
            ForgetCommand,
            admit_forget,
            names=frozenset({"run"}),
            given_by="administrator",
            audited_as="text_forgotten",
            keeps_failed_file=False,  # its text would lie there
            writes_anywhere=True,
            foresee=foresee_forget,
        ),
    ),
    handlers=lambda core: {"forget": LateHandler("council.upkeep.forget:Forgetting", core)},
)
