"""The daemon's word on a command before anything of it begins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from council.commands.models import CommandBase, RunControl, canonical_hash, dump
from council.commands.types import Admission, CommandTypes
from council.engine.ledger import Ledger
from council.engine.receipts import Receipt, Receipts
from council.engine.records import NOT_KEPT, FileIdentity, RunStatus
from council.engine.runs import Premises
from council.errors import CommandInvalid, CouncilError, StorageFailed
from council.ids import STEWARD, Principal, new_run_id, timestamp
from council.redaction import Redactor
from council.storage.reader import Looking
from council.users.people import NoPrincipal, user_of


@dataclass(frozen=True)
class Grant:
    """A command that may be: on whose behalf it acts, and its terms."""

    principal: Principal
    terms: Admission


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Makes CommandInvalid of each error for which a command file is set aside; its code stays. A database that takes nothing now
    is tried again."""
    try:
        yield
    except (CommandInvalid, StorageFailed):
        raise
    except CouncilError as error:
        refused = CommandInvalid(error.message, fix=error.fix)
        refused.code = error.code
        raise refused from error


@refusing()
def admission(types: CommandTypes, premises: Premises, command: CommandBase) -> Grant | Receipt:
    """The word on a command, for the engine and for everyone who asks before: its id, who gives it, then its type. A receipt
    answers one whose id is known.

    Reads the database; needs no model and no key. Raises CommandInvalid or IdConflict, and StorageFailed.
    """
    type_, store = types[command.type], premises.store
    if command.id is not None:
        _require_no_secret("id", command.id, premises.redactor)
        unfinished = Ledger(store).unfinished()
        answered = Receipts(store).answering(command.id, command.user, canonical_hash(command), unfinished.__contains__)
        if answered is not None:
            return answered
    principal = _principal_of(types, store, command)
    owner_of = Ledger(store).user_of
    if isinstance(command, RunControl) and principal.kind == "user" and owner_of(command.run) != principal.id:
        message = f"{principal.id} has no run {command.run!r}."
        fix = "let the person do it whose run it is, or the steward"
        raise CommandInvalid(message, fix=fix, field="user", refused=True)
    terms = type_.admit(command, premises)
    if not type_.is_control:  # no record is made of one
        recorded = dump(command) if terms.recorded is None else terms.recorded
        for key in sorted(type_.keys_of_names & recorded.keys()):
            _require_no_secret(key, recorded[key], premises.redactor)
        _require_no_secret("output_artifact_path", terms.output_path, premises.redactor)
    return Grant(principal, terms)


def _require_no_secret(key: str, name: Any, redactor: Redactor) -> None:
    if redactor.in_texts(name) != name:
        raise CommandInvalid(f"`{key}` has a secret in it.", fix="choose a name without it", field=key)


def answered(command: CommandBase, file: FileIdentity, status: RunStatus, now: datetime, **told: Any) -> Receipt:
    """The receipt of what never becomes a run: a control command, an occurrence that is skipped. Only an `id` needs hashes: words
    that are forgotten later could be guessed from them."""
    keeps_hashes = command.id is not None
    file = file if keeps_hashes else replace(file, sha256=NOT_KEPT)
    return Receipt(
        run_id=new_run_id(now),
        status=status,
        type=command.type,
        id=command.id,
        command_file=file,
        command_sha256=file.sha256,
        command_hash=canonical_hash(command) if keeps_hashes else NOT_KEPT,
        created=timestamp(now),
        finished=timestamp(now),
        **told,
    )


def _principal_of(types: CommandTypes, store: Looking, command: CommandBase) -> Principal:
    """The one on whose behalf a command acts: it can do what that person may. Raises CommandInvalid."""
    if command.user is None:
        return STEWARD

    def refused(why: str, fix: str, code: str = NoPrincipal.code) -> CommandInvalid:
        error = CommandInvalid(f"`user` is {command.user!r}, {why}", fix=fix, field="user", refused=True)
        error.code = code
        return error

    user = user_of(store, command.user)
    if user is None:
        raise refused(
            "but there is no such user here.",
            f"`council users add {command.user}` makes one; without `user` the command acts as the steward",
        )
    roles = f"`council users roles {command.user} --grant"
    if not user.roles:
        raise refused("who has no role here any more.", f"{roles} user`, or leave `user` out")
    if types[command.type].given_by == "administrator" and user.principal.kind != "administrator":
        raise refused(
            f"who is not an administrator and may not give {command.type} commands.",
            f"let the steward give it, without `user`; {roles} administrator` allows it, too",
            CommandInvalid.code,
        )
    return user.principal
