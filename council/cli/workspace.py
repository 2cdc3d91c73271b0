"""`council workspace`: what a person sees of organizations, projects, tasks, notes and events, and changes directly.

Each command stands for one function of the workspace; its arguments and options are those of that function.
"""

from __future__ import annotations

import getpass
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from council.cli.context import REQUIRED, AsJson, User, aligned, state, tell, with_parameters
from council.cli.groups import SectionedGroup
from council.desk.workspace_desk import change, look
from council.errors import UsageError
from council.redaction import Secret
from council.safety.untrusted import plain_line
from council.workspace.functions import ACTIONS, Verb

if TYPE_CHECKING:
    from council.workspace.transaction import Change

app = typer.Typer(no_args_is_help=True)

_Note = Annotated[str, typer.Argument(help="The note's id.")]
_MAX_CELL_CHARS, _MAX_LAST_CHARS = 60, 500
_MAX_INPUT_CHARS = 20_001  # one more than a note may have
_HELP = {
    "orgs": "Organizations: see, create and join them.",
    "members": "Members: invite and remove them, set their roles and capabilities.",
    "projects": "Projects and the permissions of their collaborators.",
    "tasks": "Tasks of projects.",
    "notes": "Notes, and their locks.",
    "events": "Events of organizations.",
    "comments": "Comments on tasks and events.",
    "notifications": "Notifications and reminders.",
}


def _command(action: Verb) -> Callable[..., None]:
    fields = action.arguments.model_fields
    spelled = {name: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Id")).lower() for name in fields}
    spelled |= {"userId": "member"} if "userId" in fields else {}  # `--user` says who asks

    def run(ctx: typer.Context, user: str = "steward", as_json: bool = False, **given: Any) -> None:
        values = {name: given[spelled[name]] for name in fields if given[spelled[name]] is not None}
        for name, value in values.items():  # an empty text takes away what may be absent; `-` stands for standard input
            if value == "-":
                values[name] = sys.stdin.read(_MAX_INPUT_CHARS).removesuffix("\n")
            elif value == [""] or (value == "" and fields[name].default is None):
                values[name] = [] if value else None
        desk = state(ctx).desk()
        if action.effect == "read":
            _show(look(desk, action.name, user, values), as_json=as_json)
            return
        _tell(change(desk, action.name, user, values), as_json=as_json)

    parameters: dict[str, tuple[Any, Any]] = {}
    for name, field in sorted(fields.items(), key=lambda item: not item[1].is_required()):
        kind, told = _typed(field.annotation), (field.description or "").replace("null for", '"" for')
        if field.is_required():
            parameters[spelled[name]] = Annotated[kind, typer.Argument(help=told)], REQUIRED
        else:
            option = typer.Option(help=told, show_default=False)
            parameters[spelled[name]] = Annotated[kind | None, option], None
    return with_parameters(run, parameters | {"user": (User, "steward"), "as_json": (AsJson, False)})


def _typed(annotation: Any) -> Any:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _typed(get_args(annotation)[0])
    if origin in (types.UnionType,) or type(None) in get_args(annotation):
        return _typed(next(kind for kind in get_args(annotation) if kind is not type(None)))
    if origin is list:
        return list[_typed(get_args(annotation)[0])]  # type: ignore[misc]
    return annotation if origin is Literal or annotation in (int, bool) else str


_GROUPS = {group: typer.Typer(no_args_is_help=group != "notifications") for group in _HELP}
for _group, _app in _GROUPS.items():
    app.add_typer(_app, name=_group, cls=SectionedGroup, help=_HELP[_group])
for _action in ACTIONS.values():
    _group, _, _verb = _action.spelled.partition(" ")
    _told = re.sub(r"(\A|\bor )(\w+)s\b", r"\1\2", _action.description)  # `council` is told to do it
    _told = _told.replace("the person's", "your").replace("the person sees", "you see")
    _told = f"{_told[:1].upper()}{_told[1:]}."
    _GROUPS[_group].command(_verb, help=_told)(_command(_action))


@_GROUPS["notes"].command()
def lock(ctx: typer.Context, note: _Note, user: User = "steward", as_json: AsJson = False) -> None:
    """Lock your note with a secret, asked for at the terminal; else read from standard input."""
    made = change(state(ctx).desk(), "lockNote", user, {"noteId": note}, _secret(twice=True))
    _tell(made, as_json=as_json)


@_GROUPS["notes"].command()
def unlock(ctx: typer.Context, note: _Note, user: User = "steward", as_json: AsJson = False) -> None:
    """Unlock a note with its secret, for this user and for `unlock_ttl_s`."""
    desk = state(ctx).desk()
    made = change(desk, "unlockNote", user, {"noteId": note}, _secret())
    _tell(made, f" It stays open to {user} for {desk.settings.unlock_ttl_s:g} seconds.", as_json=as_json)


@_GROUPS["notes"].command("remove-lock")
def remove_lock(ctx: typer.Context, note: _Note, user: User = "steward", as_json: AsJson = False) -> None:
    """Remove the lock of a note that you have unlocked: your own, or as an administrator that of somebody who has left."""
    _tell(change(state(ctx).desk(), "removeLock", user, {"noteId": note}), as_json=as_json)


@_GROUPS["notifications"].callback(invoke_without_command=True)
def notifications(ctx: typer.Context, user: User = "steward", as_json: AsJson = False) -> None:
    """Notifications and reminders: lists yours."""
    if ctx.invoked_subcommand is None:
        _show(look(state(ctx).desk(), "listNotifications", user), as_json=as_json)


def _secret(*, twice: bool = False) -> Secret:
    if not sys.stdin.isatty():
        return Secret(sys.stdin.readline().rstrip("\r\n"))
    secret = getpass.getpass("secret: ")
    if twice and getpass.getpass("again: ") != secret:
        raise UsageError("the two secrets differ.", fix="try again; nothing was changed")
    return Secret(secret)


def _show(found: Any, *, as_json: bool) -> None:
    told = found if isinstance(found, dict) else {"rows": found}
    tell(told, _table(found) if isinstance(found, list) else _lines(found), as_json=as_json)


def _tell(made: Change, more: str = "", *, as_json: bool) -> None:
    summary = f"{made.summary}{more}"
    tell({"summary": summary, "id": made.row_id}, [plain_line(summary, 500), f"id: {made.row_id}"], as_json=as_json)


def _lines(found: Mapping[str, Any]) -> list[str]:
    """A line for each value; a text of several lines, and what belongs to it, stand indented below their name."""
    lines: list[str] = []
    for name, value in found.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{_worded(name)}:", *(f"  {line}" for line in _table(value))]
        elif isinstance(value, str) and "\n" in value:
            lines += [f"{_worded(name)}:", *(f"  {plain_line(line, 500)}" for line in value.split("\n"))]
        elif value not in ("", [], {}):
            lines.append(f"{_worded(name)}: {_cell(value, 500)}")
    return lines


def _table(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["Nothing to show."]
    names = [name for name in rows[0] if any(row[name] not in ("", [], {}, False) for row in rows)]
    widths = [*([_MAX_CELL_CHARS] * (len(names) - 1)), _MAX_LAST_CHARS]
    cells = [[_cell(row[name], width) for name, width in zip(names, widths, strict=True)] for row in rows]
    return aligned([[_worded(name) for name in names], *cells])


def _cell(value: Any, max_chars: int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{name} {count}" for name, count in value.items()]
    if isinstance(value, list):
        value = str(len(value)) if value and isinstance(value[0], dict) else ", ".join(map(str, value))
    return plain_line(str(value), max_chars)


def _worded(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("ToId") + "To" * name.endswith("ToId")).lower()
