"""The workspace as a door asks for it: a reading, or a person's own change with its audit record, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from council.desk.desk import Desk
from council.errors import UsageError
from council.ids import SystemClock
from council.plans.register import conceal
from council.storage.versions import has_table
from council.tools.tool import Arguments
from council.users.people import principal_in
from council.workspace.arguments import OfNote
from council.workspace.catalogue import ACTIONS, Verb, visit_of

if TYPE_CHECKING:
    from council.redaction import Secret
    from council.storage.store import Tx
    from council.workspace.visit import Change, Visit

_CLOCK = SystemClock()


def look(desk: Desk, name: str, user: str, values: Mapping[str, Any]) -> Any:
    """The rows that the user sees, as plain values. Raises UsageError, WorkspaceRefused, NoPrincipal, StorageFailed."""
    action = ACTIONS[name]
    arguments = _arguments(action, values)

    def reading(tx: Tx) -> Any:
        if not has_table(tx, "workspace_organizations"):  # an older version kept this database
            raise UsageError("This home has no workspace yet.", fix="`council workspace orgs add NAME` begins one")
        return action(visit_of(tx.core, principal_in(tx, user), _CLOCK), arguments)

    return desk.store.read(reading)


def change(desk: Desk, name: str, user: str, values: Mapping[str, Any]) -> Change:
    """The change as it was made by the user. Raises as `look`, KeysRefused; each refusal is recorded, too."""
    action = ACTIONS[name]
    arguments = _arguments(action, values)
    return _changed(desk, name, user, arguments, partial(_come_to, action, arguments))


def change_lock(desk: Desk, name: str, user: str, note_id: str, secret: Secret | None = None) -> Change:
    """`lockNote`, `unlockNote` or `removeLock`, which no tool does. Raises as `change`."""
    arguments = OfNote.model_validate({"noteId": note_id})
    ttl_ms = int(desk.settings.unlock_ttl_s * 1000)

    def come_to(visit: Visit) -> Change:
        from council.workspace import notes  # not at the top: sqlalchemy

        if secret is None:
            return notes.remove_lock(visit, arguments)
        if name == "lockNote":
            return notes.lock_note(visit, arguments, secret)
        return notes.unlock_note(visit, arguments, secret, ttl_ms)

    return _changed(desk, name, user, arguments, come_to)


def _come_to(action: Verb, arguments: Any, visit: Visit) -> Change:
    found: Change = action(visit, arguments)
    return found


def _changed(desk: Desk, name: str, user: str, arguments: Arguments, come_to: Callable[[Visit], Change]) -> Change:
    from council.workspace.visit import WorkspaceRefused  # not at the top: it is loaded with the rest of the room

    ids = {key: value for key, value in arguments.model_dump(exclude_unset=True).items() if key.endswith("Id")}
    asked = {"action": name, "ids": ids}  # no words: a record outlives them
    with desk.safe() as safe:
        try:
            with safe.trail.log().transaction() as done:
                visit = visit_of(done.tx.core, principal_in(done.tx, user), _CLOCK)
                made = come_to(visit)
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


def _arguments(action: Verb, values: Mapping[str, Any]) -> Any:
    try:
        return action.arguments.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        told = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"`{where}`: {told}.", fix="`--help` tells what it takes") from None
