"""A visit to the workspace: one principal, one moment, one transaction; and what a change comes to before it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Executable, Row, Table, delete, update

from council.errors import EXIT_REFUSED, CouncilError
from council.ids import Principal, new_run_id
from council.tools.preview import Difference, Inverse, Preview
from council.users.notifications import notice

WorkspaceCode = Literal[
    "already_invited", "already_member", "ambiguous", "changed_meanwhile", "forbidden", "last_administrator", "locked",
    "no_administrator", "no_member", "no_such_time", "no_such_user", "not_found", "not_invited", "not_locked",
    "one_subject", "own_standing", "short_secret", "too_many_tries", "unchanged", "wrong_secret",
]  # fmt: skip


class WorkspaceRefused(CouncilError):
    """A change or a look that the workspace does not allow. `code` says why: forbidden, not_found, locked, …"""

    exit_code = EXIT_REFUSED
    http_status = 403

    def __init__(self, code: WorkspaceCode, message: str, *, fix: str, **data: object) -> None:
        super().__init__(message, fix=fix, **data)
        self.code = code


@dataclass(frozen=True)
class Visit:
    """`zone`: the one of this home, for an event that names none."""

    connection: Connection
    principal: Principal
    now_ms: int
    zone: str = "UTC"

    def new_id(self) -> str:
        return new_run_id(datetime.fromtimestamp(self.now_ms / 1000, UTC))

    def notice(self, user_id: str | None, text: str) -> tuple[Executable, ...]:
        """The statements that tell a user; none where there is nobody to tell, or it is the principal."""
        if user_id in (None, self.principal.id):
            return ()
        return (notice(self.new_id(), str(user_id), text, self.now_ms),)


@dataclass(frozen=True)
class Change:
    """A change that its principal may make. Nothing of it is written yet: `statements` do that.

    `summary` tells it in a sentence, without ids. `state` stands for the rows that it touches, as they are now. `row_id` is
    the id of what it creates or changes. `before`: what it replaces, by the names of the arguments. `is_guarded`: its words
    stand behind a lock, so no plan keeps them.
    """

    summary: str
    statements: tuple[Executable, ...]
    row_id: str
    differences: tuple[Difference, ...] = ()
    affects: tuple[str, ...] = ()
    inverse: Inverse | None = None
    state: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    is_guarded: bool = False

    @property
    def preview(self) -> Preview:
        return Preview(self.summary, self.differences, self.affects, self.inverse is not None, self.state)

    def write(self, connection: Connection) -> None:
        for statement in self.statements:
            connection.execute(statement)


def edited(
    table: Table,
    row: Row[Any],
    called: str,
    values: Mapping[str, Any],
    inverse: Inverse | None = None,
    *,
    shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    affects: tuple[str, ...] = (),
    also: tuple[Executable, ...] = (),
) -> Change:
    """The change of what is given; the rest of the row stays. `shown` tells values as a person reads them. Raises
    WorkspaceRefused where the row is so already."""
    before = {name: getattr(row, name) for name in values}
    if values == before:
        raise WorkspaceRefused("unchanged", f"{called} is so already.", fix="give another value")
    (key,) = table.primary_key
    row_id, told = getattr(row, key.name), differences(shown(before), shown(values))
    version = {"version": table.c.version + 1} if "version" in table.c else {}
    changed = update(table).where(key == row_id).values(**values, **version)
    state, replaced = str(row.version) if version else "", inverse.arguments if inverse else before
    return Change(f"{called} is changed.", (changed, *also), row_id, told, affects, inverse, state, replaced)


def deleted(table: Table, row: Row[Any], called: str, state: str, affects: tuple[str, ...] = ()) -> Change:
    """The row goes for good, and with it what hangs on it."""
    (key,) = table.primary_key
    row_id, title = getattr(row, key.name), (Difference("title", row.title),)
    return Change(f"{called} is deleted.", (delete(table).where(key == row_id),), row_id, title, affects, state=state)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The fields that differ, by their names, as a person reads them."""
    told = ((name, _text(before.get(name)), _text(after.get(name))) for name in after)
    return tuple(Difference(name, old, new) for name, old, new in told if old != new)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
