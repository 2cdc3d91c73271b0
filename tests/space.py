"""A workspace over a store of its own: people of every kind, an organization, a project, and one of each thing in it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, insert, select

from council.ids import Principal
from council.redaction import Secret
from council.storage.store import Store
from council.users.people import principal_in
from council.users.tables import notifications, roles, users
from council.workspace import notes, tables
from council.workspace.arguments import OfNote
from council.workspace.functions import ACTIONS, visit_of
from council.workspace.system import WORKSPACE
from council.workspace.transaction import Change, Visit
from tests.planning import Planning

T = TypeVar("T")

PEOPLE = {  # everybody but the steward: the names, and the role in this home
    "hana": "administrator",
    "ada": "user",
    "alan": "user",
    "mia": "user",
    "nora": "user",
    "gus": "user",
    "otto": "user",
    "inga": "user",
}
SECRET = Secret("open sesame")


def unlocked(visit: Visit, note: OfNote, secret: Secret = SECRET) -> Change:
    """As the desk does it, but in one transaction."""
    lock = notes.count_try(visit, note)
    lock.require(secret)
    return notes.unlock_note(visit, note, lock, 900_000)


LOCKS: dict[str, Callable[[Visit, OfNote], Change]] = {
    "lockNote": lambda visit, note: notes.lock_note(visit, note, notes.NoteLock.of(SECRET)),
    "unlockNote": unlocked,
    "removeLock": notes.remove_lock,
}


class Space:
    """`do` makes a change, `come_to` only asks for one. `ids` are those of `furnish`."""

    def __init__(self, store: Store, runtime: Path) -> None:
        self.store = store
        self.planning = Planning(store, runtime, system=WORKSPACE)
        self.ids: dict[str, str] = {}

        def people(connection: Connection) -> None:
            for user_id, role in PEOPLE.items():
                connection.execute(insert(users).values(user_id=user_id, name=user_id.title(), created="2026-11-22"))
                connection.execute(insert(roles).values(user_id=user_id, role=role))

        store.write_now(lambda tx: people(tx.core))

    def furnish(self) -> Space:
        """`ada` and `alan` administer an organization, `mia` and `nora` are members, `gus` is a guest, `inga` is invited,
        `otto` is nobody there. `nora` wrote the note and the comments."""
        ids, rows = _furnished()
        self.ids.update(ids)

        def copy(connection: Connection) -> None:
            for table in tables.tasks.metadata.sorted_tables:
                if rows.get(table.name):
                    connection.execute(insert(table), rows[table.name])

        self.store.write_now(lambda tx: copy(tx.core))
        return self

    def furnish_by_hand(self) -> Space:
        """The same through each function: 30 ms."""
        org = self.ids["org"] = self.do("ada", "createOrganization", name="Garden")
        for who, role in {"alan": "administrator", "mia": "member", "nora": "member", "gus": "guest"}.items():
            self.do("ada", "inviteMember", orgId=org, userId=who, role=role)
            self.do(who, "acceptInvitation", orgId=org)
        self.do("ada", "inviteMember", orgId=org, userId="inga")
        project = self.ids["project"] = self.do("steward", "createProject", orgId=org, name="Herbs")
        self.ids["task"] = self.do("ada", "createTask", projectId=project, title="Sow basil")
        self.do("ada", "setProjectPermission", projectId=project, userId="nora", permission="edit_notes")
        self.ids["note"] = self.do("nora", "createNote", projectId=project, content="Basil hates frost.", title="Frost")
        self.do("ada", "setProjectPermission", projectId=project, userId="nora", permission="edit_notes", granted=False)
        self.ids["own"] = self.do("nora", "createNote", content="Mine alone.")
        self.ids["event"] = self.do("ada", "createEvent", orgId=org, title="Open day", date="2026-12-20T10:00")
        self.ids["comment"] = self.do("nora", "addComment", taskId=self.ids["task"], content="Soon.")
        return self

    def principal(self, who: str) -> Principal:
        return self.store.read(lambda tx: principal_in(tx, who))

    def come_to(self, who: str, name: str, /, **arguments: Any) -> Any:
        """What the function reads, or its Change, of which nothing is written."""
        return self.visiting(who, lambda visit: self._call(visit, name, arguments))

    def do(self, who: str, name: str, /, **arguments: Any) -> str:
        """The id of what was changed."""

        def work(visit: Visit) -> str:
            change: Change = self._call(visit, name, arguments)
            change.write(visit.connection)
            return change.row_id

        return self.visiting(who, work)

    def rows(self, table: Table) -> list[dict[str, Any]]:
        return self.store.read(lambda tx: [dict(row) for row in tx.core.execute(select(table)).mappings()])

    def everything(self) -> Mapping[str, list[dict[str, Any]]]:
        """The rows of all tables of the workspace."""
        found = [value for value in vars(tables).values() if isinstance(value, Table)]
        return {table.name: self.rows(table) for table in found}

    def visiting(self, who: str, work: Callable[[Visit], T]) -> T:
        """What `work` returns, in a transaction of that principal."""
        return self.store.write_now(lambda tx: work(visit_of(tx.core, principal_in(tx, who), self.planning.clock)))

    def _call(self, visit: Visit, name: str, arguments: dict[str, Any]) -> Any:
        if name in LOCKS:
            return LOCKS[name](visit, OfNote.model_validate(arguments))
        return ACTIONS[name](visit, ACTIONS[name].arguments.model_validate(arguments))


@cache
def _furnished() -> tuple[dict[str, str], Mapping[str, list[dict[str, Any]]]]:
    """The ids and rows of a furnished workspace."""
    with tempfile.TemporaryDirectory() as folder, closing(Store.open(Path(folder))) as store:
        space = Space(store, Path(folder)).furnish_by_hand()
        return space.ids, {**space.everything(), notifications.name: space.rows(notifications)}
