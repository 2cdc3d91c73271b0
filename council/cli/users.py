"""`council users`: on whose behalf a command may act."""

from __future__ import annotations

import re
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from council.cli.context import AsJson, print_json, state
from council.commands.models import USER_PATTERN
from council.errors import UsageError
from council.users.people import User, all_users, require_user

app = typer.Typer(no_args_is_help=True)

_Id = Annotated[str, typer.Argument(help="The user's id, as commands name it: anna.")]


class RoleName(StrEnum):
    user = "user"
    administrator = "administrator"


@app.command()
def add(
    ctx: typer.Context,
    user_id: _Id,
    name: Annotated[str, typer.Option(help="The person's name.")] = "",
    role: Annotated[list[RoleName] | None, typer.Option(help="A role; may be given again.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a user."""
    if not re.fullmatch(USER_PATTERN, user_id):
        raise UsageError(f"{user_id[:80]!r} is not a valid user id.", fix="use letters, digits, . _ @ -, at most 64")
    if len(name) > 200 or not name.isprintable():
        raise UsageError("the name must be one line of at most 200 characters.", fix="shorten it")
    with state(ctx).desk().safe() as safe:
        user = safe.users().add(user_id, name, [entry.value for entry in role or [RoleName.user]])
    _print([user], as_json=as_json)


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Print all users and their roles."""
    _print(all_users(state(ctx).desk().store), as_json=as_json)


@app.command()
def roles(
    ctx: typer.Context,
    user_id: _Id,
    grant: Annotated[list[RoleName] | None, typer.Option(help="A role to grant; may be given again.")] = None,
    revoke: Annotated[list[RoleName] | None, typer.Option(help="A role to revoke; may be given again.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a user's roles; grant or revoke some."""
    desk = state(ctx).desk()
    if grant or revoke:
        with desk.safe() as safe:
            user = safe.users().change_roles(user_id, grant or [], revoke or [])
    else:
        user = desk.store.read(lambda tx: require_user(tx, user_id))
    _print([user], as_json=as_json)


def _print(users: list[User], *, as_json: bool) -> None:
    if as_json:
        print_json({"users": [asdict(user) for user in users]})
        return
    for user in users:
        typer.echo(f"{user.user_id:<24} {', '.join(user.roles) or 'no role':<24} {user.name}")
    if not users:
        typer.echo("No user yet: every command acts as the steward.")
