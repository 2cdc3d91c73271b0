"""`council schedule`: the recurring commands, when they are due, and holding one back for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

import typer

from council.cli.context import aligned, print_json, state
from council.commands.documents import NotACommand
from council.commands.recurring import RecurringCommand
from council.daemon.recurring_folder import RecurringFolder, find_file, load_sightings
from council.desk.desk import Desk
from council.errors import CommandInvalid
from council.ids import SystemClock, timestamp
from council.storage.files import FileLock
from council.storage.paths import ConfinedRoot

app = typer.Typer(no_args_is_help=True)

File = Annotated[str, typer.Argument(help="A file in commands/recurring/; its name without ending is enough.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show each recurring command: its last and next time."""
    desk = state(ctx).desk()
    with _folder(desk) as folder:
        rows = _rows(desk, folder, SystemClock().now())
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("No recurring commands: put one into commands/recurring/ (docs/schedules.md shows how).")
    cells = [("FILE", "SCHEDULE", "NEXT", "LAST")]
    for row in (row for row in rows if row["error"] is None):
        due = "paused" if row["paused"] else row["next"] or "never"
        last = f"{row['last']} {row['last_status']}" if row["last"] else "-"
        cells.append((row["file"], f"{row['cron']} {row['zone']}", due, last))
    for line in aligned(cells) if len(cells) > 1 else ():
        typer.echo(line)
    for row in rows:
        if row["error"] is not None:
            typer.echo(f"{row['file']}: {row['error']}")
    if any(row["next"] for row in rows) and FileLock.holder(desk.home.lock_file) is None:
        typer.echo("\nNo daemon is running in this home: nothing is dropped until `council run` is started.")


@app.command("next")
def next_(
    ctx: typer.Context,
    file: File,
    count: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show when a recurring command is due next, in its own zone.

    This ignores a pause.
    """
    with _folder(state(ctx).desk()) as folder:
        listing = folder.list()
        name = find_file(listing, file)
        command = _read(folder, name, listing.files[name])
    moments = list(islice(command.schedule.after(SystemClock().now()), count))
    if as_json:
        rows = [
            {"at": _local(command, moment), "utc": timestamp(moment), "id": command.id_at(moment)} for moment in moments
        ]
        print_json(rows)
    else:
        typer.echo("\n".join(f"{command.schedule.local(moment):%a %Y-%m-%d %H:%M %Z}" for moment in moments))


@app.command()
def pause(ctx: typer.Context, file: File) -> None:
    """Pause a recurring command until you resume it.

    A run under way continues.
    """
    with _folder(state(ctx).desk()) as folder:
        name = find_file(folder.list(), file)
        folder.pause(name, SystemClock().now())
    typer.echo(f"{name} is paused; `council schedule resume {name}` resumes it.")


@app.command()
def resume(ctx: typer.Context, file: File) -> None:
    """Resume a recurring command from now on.

    What was due during the pause is not run later.
    """
    with _folder(state(ctx).desk()) as folder:
        name = find_file(folder.list(), file)
        if not folder.is_paused(name):
            typer.echo(f"{name} is not paused.")
            return
        folder.resume(name, SystemClock().now())
    typer.echo(f"{name} is resumed; `council schedule next {name}` shows when it is due.")


@contextmanager
def _folder(desk: Desk) -> Iterator[RecurringFolder]:
    with ConfinedRoot(desk.home.root) as root:
        max_bytes = desk.settings.max_command_bytes
        yield RecurringFolder(desk.home, root, desk.commands, max_bytes=max_bytes, admits=desk.admission_of)


def _read(folder: RecurringFolder, name: str, status: os.stat_result) -> RecurringCommand:
    """Raises CommandInvalid, for a file that is no command at all too."""
    try:
        return folder.read(name, status).command
    except NotACommand:
        raise CommandInvalid(
            f"{name} has no front matter of a command.", fix="see `docs/schedules.md` for what one looks like"
        ) from None
    except FileNotFoundError:
        raise CommandInvalid(f"{name} is gone.", fix="list the folder again") from None


def _rows(desk: Desk, folder: RecurringFolder, now: datetime) -> list[dict[str, Any]]:
    receipts, sightings = desk.receipts, load_sightings(desk.store)
    rows = []
    for name, status in sorted(folder.list().files.items()):
        row: dict[str, Any] = {"file": name, "paused": folder.is_paused(name), "error": None}
        row |= dict.fromkeys(("cron", "zone", "next", "last", "last_status"))
        rows.append(row)
        try:
            command = _read(folder, name, status)
        except CommandInvalid as error:
            problems = error.data.get("problems")
            row["error"] = str(problems[0]) if isinstance(problems, list) else error.message
            continue
        row |= {"cron": command.schedule.cron, "zone": command.schedule.zone}
        following = None if row["paused"] else next(command.schedule.after(now), None)
        row["next"] = _local(command, following) if following else None
        if (sighting := sightings.get(name)) is not None and sighting.last_fire:
            bound = receipts.bound(command.id_at(sighting.last_fire))
            receipt = receipts.read(bound.run_id) if bound is not None else None
            row["last"] = _local(command, sighting.last_fire)
            row["last_status"] = receipt.status if receipt is not None else "dropped"
    return rows


def _local(command: RecurringCommand, moment: datetime) -> str:
    return command.schedule.local(moment).isoformat(timespec="minutes")
