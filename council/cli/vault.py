"""`council vault`: encrypted credentials. No command prints one; values come on standard input or at a prompt."""

from __future__ import annotations

import getpass
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from council.cli.context import AsJson, Yes, print_notes, require_yes, state, tell
from council.desk.credentials import expiry_of, own_vault, removable_keys, stored_credentials
from council.desk.desk import Desk
from council.errors import EXIT_FAILED, UsageError
from council.ids import STEWARD, local_times
from council.keys.key_sources import all_home_keys, keys_folder
from council.redaction import Secret, is_recognisable
from council.users.people import require_user, user_of
from council.vault.contract import StoredCredential
from council.vault.fernet import read_rows
from council.vault.sealing import place_of

app = typer.Typer(no_args_is_help=True)

_MAX_INPUT_BYTES = 70_000  # more than a value may have; what is larger is refused
_Key = Annotated[str, typer.Argument(help="The credential's name, such as GEMINI_API_KEY.")]
_User = Annotated[str, typer.Option(help="Whose it is.")]
_Role = Annotated[str, typer.Option(help="The only role that may read it. Default: no role.")]


@app.command("set")
def set_(
    ctx: typer.Context,
    key: _Key,
    user: _User = "steward",
    role: _Role = "",
    expires: Annotated[
        str, typer.Option(help="When it expires: 2027-01-31, or an RFC 3339 time.", show_default=False)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Store a value from standard input; a terminal asks for it and does not show it."""
    place, ends, desk = place_of(user, role, key), expiry_of(expires), state(ctx).desk()
    if user != STEWARD.id:
        desk.store.read(lambda tx: require_user(tx, user))
    try:
        asked = sys.stdin.isatty()
        given = getpass.getpass("value: ").strip() if asked else sys.stdin.buffer.read(_MAX_INPUT_BYTES).decode()
    except UnicodeDecodeError:
        raise UsageError("the value is not UTF-8.", fix="give bytes in Base64: `base64 -w0 file | council …`") from None
    value = Secret(given.rstrip("\r\n"))
    if not value:
        raise UsageError("the value is empty.", fix="give it on standard input: `council vault set NAME < file`")
    with desk.safe() as safe:
        _print(desk, [safe.vault().set(place, value, expires_at=ends)], as_json=as_json)
    if not is_recognisable(value.reveal()):
        print_notes(f"{place} is too short, or a plain word: redaction cannot tell it from other text.")


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List all credentials, without their values."""
    desk = state(ctx).desk()
    _print(desk, stored_credentials(desk), as_json=as_json)


@app.command()
def rm(ctx: typer.Context, key: _Key, user: _User = "steward", role: _Role = "") -> None:
    """Remove a credential permanently."""
    place = place_of(user, role, key)
    with state(ctx).desk().safe() as safe:
        safe.vault().remove(place)
    typer.echo(f"{place} is gone.")


@app.command()
def rotate(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Encrypt everything with a new key and retire the old ones. This also completes an interrupted rotation."""
    with own_vault(state(ctx).desk()) as built:
        done = built.rotate()
    retired = f" Retired: {', '.join(done.retired)}." if done.retired else ""
    line = f"{done.resealed} encrypted again; everything now uses the key {done.kid}.{retired}"
    tell({"key": done.kid, "resealed": done.resealed, "retired": list(done.retired)}, [line], as_json=as_json)


@app.command()
def verify(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Check every credential without showing it. Names those that were changed, put back or removed, or have lost their key."""
    with own_vault(state(ctx).desk()) as built:
        failed = built.verify()
        count = len(built.list())
    told = [{**_plain(entry), "problem": problem} for entry, problem in failed]
    standing = sum(bool(entry.kid) for entry, _ in failed)  # the others are gone
    lines = [*(problem for _, problem in failed), f"{count - standing} of {count} credentials are as they were set."]
    tell({"ok": not failed, "credentials": count, "failed": told}, lines, as_json=as_json)
    if failed:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def keys(
    ctx: typer.Context,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Set the key file of this id aside, if its home is not found; may be given again."
        ),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """List the key files of this user's homes; set aside those whose home is not found."""
    folder = keys_folder(state(ctx).environ)
    found, aside = all_home_keys(folder), list[Path]()
    if remove:
        wanted = {id_: removable_keys(found, id_) for id_ in remove}
        require_yes(
            "A home that was moved looks as if it were gone. Without its keys, nobody can verify its audit or open its vault. "
            "Set these keys aside?",
            given=yes,
        )
        aside = [each.set_aside() for each in wanted.values()]
        found = all_home_keys(folder)
    told = [{"id": each.id, "file": str(each.path), "home": each.home, "in_use": each.in_use} for each in found]
    lines = []
    for each in found:
        gone = f"not found at {each.home}: it is gone, or was moved" if each.home else "home unknown"
        lines.append(f"{each.id}  {f'in use by {each.home}' if each.in_use else gone}")
    lines.append(f"{len(found)} key file{'' if len(found) == 1 else 's'} in {folder}.")
    lines += [f"Set aside: {path}. Delete it when you are sure that its home is gone." for path in aside]
    tell({"folder": str(folder), "keys": told, "set_aside": list(map(str, aside))}, lines, as_json=as_json)


@app.command("import")
def import_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Rows of an original `user_credentials` table, as a JSON list or CSV.")],
    key_variable: Annotated[
        str, typer.Option(help="The variable that holds the key they were encrypted with.")
    ] = "CREDENTIAL_ENCRYPTION_KEY",
    as_json: AsJson = False,
) -> None:
    """Import rows that were encrypted with Fernet: all of them or none."""
    cli = state(ctx)
    key = Secret(cli.environ.get(key_variable, "").strip())
    if not key:
        raise UsageError(f"{key_variable} is not set.", fix="set it to the key that encrypted the rows")
    rows = read_rows(file, key)
    desk = cli.desk()
    with desk.safe() as safe:
        _print(desk, safe.vault().set_all(rows), as_json=as_json)
    for user in sorted({row.place.user for row in rows} - {STEWARD.id}):
        if user_of(desk.store, user) is None:
            told = f"there is no user {user}: their rows are kept, and `council users add {user}` makes one"
            typer.echo(f"warning: {told}", err=True)


def _print(desk: Desk, entries: Any, *, as_json: bool) -> None:
    lines = []
    for entry in entries:
        created, ends = (local_times(at, desk.zone) for at in (entry.created_at, entry.expires_at))
        expiry = f"until {ends}" if ends else ""
        lines.append(f"{entry.place!s:<40} version {entry.version:<4} {created}  {entry.kid} {expiry}".rstrip())
    tell({"credentials": list(map(_plain, entries))}, lines or ["The vault is empty."], as_json=as_json)


def _plain(entry: StoredCredential) -> dict[str, Any]:
    told = {"version": entry.version, "created_at": entry.created_at, "expires_at": entry.expires_at}
    return asdict(entry.place) | told | {"encryption_key_id": entry.kid}
