"""`council ui` opens the pages in a browser; `council keys`: by what people's programs call over HTTP."""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser
from dataclasses import asdict
from typing import Annotated

import typer

from council.cli.context import AsJson, aligned, print_json, print_notes, state
from council.desk.credentials import expiry_of
from council.desk.window import sign_in_link
from council.ids import STEWARD

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


@keys.command()
def add(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(help="Whose key it is.")] = STEWARD.id,
    expires: Annotated[
        str, typer.Option(help="When it expires: 2027-01-31, or an RFC 3339 time.", show_default=False)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Make a key for a person's programs, and print it once."""
    with state(ctx).desk().safe() as safe:
        key = safe.api_keys().add_key(user, expiry_of(expires))
    if as_json:
        print_json({"user": user, "key": key})
        return
    typer.echo(key)
    print_notes(f"it acts as {user}; it is kept as a hash only, so this is the one time that you see it")


@keys.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the keys, without the keys themselves."""
    from council.users.api_keys import keys_of_people  # not at the top: sqlalchemy

    found = keys_of_people(state(ctx).desk().store)
    if as_json:
        print_json({"keys": list(map(asdict, found))})
        return
    for line in aligned([
        (key.key_id, key.owner, key.created, f"revoked {key.revoked}" if key.revoked else key.expires and f"until {key.expires}")
        for key in found
    ]) if found else ["No key yet: `council keys add` makes one."]:  # fmt: skip
        typer.echo(line)


@keys.command()
def revoke(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(help="A key's id, as `council keys list` shows it, or a user: all their keys.")],
    as_json: AsJson = False,
) -> None:
    """End a key, or all keys of a user. That person is also signed out of all browsers."""
    with state(ctx).desk().safe() as safe:
        user, count = safe.api_keys().revoke(key)
    if as_json:
        print_json({"user": user, "keys": count})
    else:
        revoked = "1 key is revoked" if count == 1 else f"{count} keys are revoked"
        typer.echo(f"{revoked}, and {user} is signed out of all browsers.")
