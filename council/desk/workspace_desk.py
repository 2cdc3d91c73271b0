"""The workspace as a door asks for it: a reading, or a person's own change with its audit record, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from council.commands.file_formats import Problem
from council.commands.parsing import fault_in_words
from council.desk.desk import Desk
from council.errors import CouncilError, UsageError
from council.ids import SystemClock
from council.plans.register import conceal
from council.redaction import Secret
from council.users.people import principal_in
from council.workspace.arguments import OfEvent, OfNote, OfTask
from council.workspace.functions import ACTIONS, RULES, Verb, visit_of

if TYPE_CHECKING:
    from council.audit.log import AuditLog
    from council.storage.store import Tx
    from council.workspace.rights import Spot
    from council.workspace.transaction import Change, Visit

_CLOCK = SystemClock()
_LAST_RECORDS = 200  # of the audit, in which the last change of a row is looked for


def look(desk: Desk, name: str, user: str, values: Mapping[str, Any] = {}) -> Any:
    """The rows that the user sees, as plain values. Raises UsageError, WorkspaceRefused, NoPrincipal, StorageFailed."""
    action = ACTIONS[name]
    arguments = _arguments(action, values)
    return desk.store.read(lambda tx: action(_visit(tx, user), arguments))


def allowed(desk: Desk, user: str, values: Mapping[str, Any]) -> frozenset[str]:
    """The functions, locks among them, that the user may use on the row that `values` name by its id. Raises as `look`."""
    words = _place(desk, user, values)[1]
    return frozenset(name for name, opens in RULES.items() if opens & words)


def project_of(desk: Desk, user: str, values: Mapping[str, Any]) -> str:
    """The project that `values` or their row name. Empty where the user sees none. Raises NoPrincipal, StorageFailed."""
    from council.workspace.transaction import WorkspaceRefused  # not at the top: SQLAlchemy

    try:
        spot, words = _place(desk, user, values)
    except WorkspaceRefused:  # no such row
        return ""
    return spot.project_id if words & RULES["getProjectDetail"] else ""


def _place(desk: Desk, user: str, values: Mapping[str, Any]) -> tuple[Spot, frozenset[str]]:
    from council.workspace.agenda import event_row  # not at the top: SQLAlchemy
    from council.workspace.notes import note_row
    from council.workspace.organizations import project_row
    from council.workspace.rights import Spot, standing
    from council.workspace.tasks import task_row

    def reading(tx: Tx) -> tuple[Spot, frozenset[str]]:
        visit = _visit(tx, user)
        match dict(values):
            case {"noteId": id}:
                spot = note_row(visit, OfNote.model_construct(noteId=id))[1]
            case {"taskId": id}:
                spot = task_row(visit, OfTask.model_construct(taskId=id))[1]
            case {"eventId": id}:
                spot = event_row(visit, OfEvent.model_construct(eventId=id))[1]
            case {"projectId": id}:
                spot = Spot(project_row(visit, id).org_id, id)
            case _:
                spot = Spot(values.get("orgId", ""))
        return spot, standing(visit, spot)

    return desk.store.read(reading)


def change(
    desk: Desk,
    name: str,
    user: str,
    values: Mapping[str, Any],
    secret: Secret | None = None,
    *,
    unlike: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda before: {},
) -> Change:
    """The change as it was made by the user. `secret` is for `lockNote` and `unlockNote`, which no tool does. `unlike` gets what
    the change replaces, and returns the part that the user did not see: words of somebody else are not overwritten. Raises as
    `look`, KeysRefused; each refusal is recorded, too."""
    from council.workspace import notes  # not at the top: they load SQLAlchemy
    from council.workspace.transaction import WorkspaceRefused

    arguments = _arguments(ACTIONS.get(name), values)
    ttl_ms = int(desk.settings.unlock_ttl_s * 1000)
    given = secret or Secret("")
    ids = {key: value for key, value in arguments.model_dump(exclude_unset=True).items() if key.endswith("Id")}
    asked = {"action": name, "ids": ids}  # no words: a record outlives them
    action: Callable[[Visit, Any], Change]
    with desk.safe() as safe:
        try:
            if name == "lockNote":
                action = partial(notes.lock_note, lock=notes.NoteLock.of(given))
            elif name == "unlockNote":
                with safe.trail.log().transaction() as done:
                    visit = visit_of(done.tx.core, principal_in(done.tx, user), _CLOCK)
                    lock = notes.count_try(visit, arguments)
                lock.require(given)
                action = partial(notes.unlock_note, lock=lock, ttl_ms=ttl_ms)
            else:
                action = notes.remove_lock if name == "removeLock" else ACTIONS[name]
            with safe.trail.log().transaction() as done:
                visit = visit_of(done.tx.core, principal_in(done.tx, user), _CLOCK, desk.settings.timezone)
                made: Change = action(visit, arguments)
                if stands := unlike(made.before):
                    raise _changed_meanwhile(safe.trail.log(), made, stands)
                made.write(done.tx.core)
                if name == "lockNote":
                    conceal(done.tx, made.row_id, made.summary)
                fields = [difference.field for difference in made.differences]
                detail = {**asked, "row": made.row_id, "fields": fields}
                done.record("effect", "workspace_changed", visit.principal.id, detail)
        except WorkspaceRefused as refused:
            safe.trail.refuse("workspace_refused", user, {**asked, "code": refused.code})
            raise
    return made


def _changed_meanwhile(log: AuditLog, made: Change, stands: Mapping[str, str]) -> CouncilError:
    """The refusal of a change whose person saw other values. `stands`: those of now, by the names of the arguments."""
    from council.workspace.transaction import WorkspaceRefused  # not at the top: SQLAlchemy

    who = "Somebody else"
    for record in reversed(log.tail(_LAST_RECORDS, kind="effect")):
        if record.action.startswith("plan_") or record.detail is None:
            break  # it may have changed the row, and names none
        if json.loads(record.detail).get("row") == made.row_id:
            who = f"{record.actor}, at {record.at},"
            break
    names = " and ".join(stands)
    message = f"{who} changed {names} while you wrote. Nothing of yours is saved yet."
    fix = "compare the two, then save again: what you wrote replaces what stands there"
    return WorkspaceRefused("changed_meanwhile", message, fix=fix, field=next(iter(stands)), stands=dict(stands))


def _visit(tx: Tx, user: str) -> Visit:
    return visit_of(tx.core, principal_in(tx, user), _CLOCK)


def _arguments(action: Verb | None, values: Mapping[str, Any]) -> Any:
    try:
        return (OfNote if action is None else action.arguments).model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message, fix = fault_in_words(first)
        if first["type"] == "value_error":  # a sentence of its own
            message = f"{message[:1].upper()}{message[1:]}"
        found = Problem(message, fix, ".".join(map(str, first["loc"])))
        raise UsageError(f"{found.sentence}.", fix=fix, field=found.field) from None
