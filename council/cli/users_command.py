"""`council users`, `prefs`, `keys` and `ui`: people, what they prefer, and how they and their programs get in."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import webbrowser
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from council.cli.context import AsJson, aligned, print_notes, state, tell
from council.cli.waiting import obey, print_receipt
from council.commands.models import USER_PATTERN
from council.desk.credentials import expiry_of
from council.desk.window import sign_in_link
from council.errors import UsageError
from council.ids import STEWARD, local_times
from council.safety.untrusted import spelled_out
from council.users import api_keys
from council.users.enrolment import add_user, change_roles
from council.users.people import User, all_users, require_user

users = typer.Typer(no_args_is_help=True)

_Id = Annotated[str, typer.Argument(help="The user's id, such as anna.")]


class RoleName(StrEnum):
    user = "user"
    administrator = "administrator"


@users.command()
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
        user = add_user(safe.trail.log(), user_id, name, [entry.value for entry in role or [RoleName.user]])
    _print([user], as_json=as_json)


@users.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Print all users and their roles."""
    _print(all_users(state(ctx).desk().store), as_json=as_json)


@users.command()
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
            user = change_roles(safe.trail.log(), user_id, grant or [], revoke or [])
    else:
        user = desk.store.read(lambda tx: require_user(tx, user_id))
    _print([user], as_json=as_json)


def _print(people: list[User], *, as_json: bool) -> None:
    lines = [f"{user.user_id:<24} {', '.join(user.roles) or 'no role':<24} {user.name}" for user in people]
    lines = lines or ["No user yet: every command acts as the steward."]
    tell({"users": [asdict(user) for user in people]}, lines, as_json=as_json)


prefs = typer.Typer(no_args_is_help=True)

_Whose = Annotated[str, typer.Option("--user", help="Whose preferences; else the steward's.", show_default=False)]
_Name = Annotated[str, typer.Argument(help="language, verbosity, tone, style, humor or long_term_memory.")]


@prefs.command("show", help="Show your preferences, and the facts that you let agents remember.")
def show_preferences(ctx: typer.Context, user: _Whose = "", as_json: AsJson = False) -> None:
    from council.conductor.preferences import preferences_of  # not at the top: `council --help` needs none

    found = preferences_of(state(ctx).desk().store, user or STEWARD.id)
    lines = [*aligned(list(found.values.items())), *(f"remembered: {fact}" for fact in found.facts)]
    lines = [*map(spelled_out, lines)] or ["Nothing is set. `council prefs set tone dry` sets the tone."]
    tell({"preferences": found.values, "facts": list(found.facts)}, lines, as_json=as_json)


@prefs.command("set", help="Set a preference; it counts from the next request on.")
def set_preference(
    ctx: typer.Context, name: _Name, value: Annotated[str, typer.Argument(help="Its value.")], user: _Whose = ""
) -> None:
    print_receipt(obey(state(ctx).desk(), "prefs", user, action="set", name=name, value=value))


@prefs.command("forget", help="Forget a preference, `facts` for all facts, or everything.")
def forget_preference(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name. Default: everything.")] = "",
    user: _Whose = "",
) -> None:
    print_receipt(obey(state(ctx).desk(), "prefs", user, action="forget", **({"name": name} if name else {})))


keys = typer.Typer(no_args_is_help=True)


def ui(
    ctx: typer.Context,
    user: Annotated[str, typer.Option(help="Who is signed in.")] = STEWARD.id,
    show: Annotated[
        bool, typer.Option("--print", help="Print the link for a browser elsewhere, and open none.")
    ] = False,
) -> None:
    link = sign_in_link(state(ctx).desk(), user)
    has_screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if has_screen and not show:
        with contextlib.suppress(webbrowser.Error):
            if webbrowser.open(link):
                typer.echo("The pages open in your browser. Press “Sign in” there.")
                return
    typer.echo(link)
    print_notes("open it in a browser; it works once, for five minutes")


@keys.command("add")
def add_key(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(help="Whose key it is.")] = STEWARD.id,
    expires: Annotated[
        str, typer.Option(help="When it expires: 2027-01-31, or an RFC 3339 time.", show_default=False)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Make a key for a person's programs, and print it once."""
    with state(ctx).desk().safe() as safe:
        key = api_keys.add_key(safe.trail.log(), user, expiry_of(expires))
    tell({"user": user, "key": key}, [key], as_json=as_json)
    if not as_json:
        print_notes(f"it acts as {user}; it is kept as a hash only, so this is the one time that you see it")


@keys.command("list")
def list_keys(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the keys, without the keys themselves."""
    desk = state(ctx).desk()
    found = api_keys.keys_of_people(desk.store)
    ends = [f"revoked {key.revoked}" if key.revoked else key.expires and f"until {key.expires}" for key in found]
    rows = [
        [local_times(cell, desk.zone) for cell in (key.key_id, key.owner, key.created, end)]
        for key, end in zip(found, ends, strict=True)
    ]
    lines = aligned(rows) or ["No key yet: `council keys add` makes one."]
    tell({"keys": list(map(asdict, found))}, lines, as_json=as_json)


@keys.command("revoke")
def revoke_keys(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(help="A key's id, as `council keys list` shows it, or a user: all their keys.")],
    as_json: AsJson = False,
) -> None:
    """End a key, or all keys of a user. That person is also signed out of all browsers."""
    with state(ctx).desk().safe() as safe:
        user, count = api_keys.revoke_keys(safe.trail.log(), key)
    revoked = "1 key is revoked" if count == 1 else f"{count} keys are revoked"
    tell({"user": user, "keys": count}, [f"{revoked}, and {user} is signed out of all browsers."], as_json=as_json)
