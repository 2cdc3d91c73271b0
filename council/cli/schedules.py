"""`council schedule`: the recurring commands, when they are due, and holding one back for a while."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from shlex import quote
from typing import Annotated

import typer

from council.cli.context import aligned, state, tell
from council.desk.desk import Desk
from council.desk.recurring_folder import (
    NEVER_PAUSED,
    Pause,
    find_file,
    load_pauses,
    recurring_command,
    recurring_folder,
    recurring_states,
    save_pause,
    to_the_minute,
)
from council.ids import SystemClock, timestamp
from council.storage.files import FileLock

app = typer.Typer(no_args_is_help=True)

File = Annotated[str, typer.Argument(help="A file in commands/recurring/; its name without ending is enough.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show each recurring command: its last and next time."""
    desk = state(ctx).desk()
    rows = recurring_states(desk, SystemClock().now())
    cells = []
    for row in (row for row in rows if row.error is None):
        due = "paused" if row.paused else row.next or "never"
        last = f"{row.last} {row.last_status}" if row.last else "-"
        cells.append((row.file, f"{row.cron} {row.zone}", due, last))
    lines = aligned([("FILE", "SCHEDULE", "NEXT", "LAST"), *cells]) if cells else []
    lines += [f"{row.file}: {row.error}" for row in rows if row.error is not None]
    if any(row.next for row in rows) and FileLock.holder(desk.home.lock_file) is None:
        lines += ["", "No daemon is running in this home: nothing is dropped until `council run` is started."]
    lines = lines or ["No recurring commands: put one into commands/recurring/ (docs/schedules.md shows how)."]
    tell(list(map(asdict, rows)), lines, as_json=as_json)


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
    with recurring_folder(state(ctx).desk()) as folder:
        listing = folder.list()
        name = find_file(listing, file)
        command = recurring_command(folder, name, listing.files[name])
    moments = list(islice(command.schedule.after(SystemClock().now()), count))
    local = command.schedule.local
    told = [{"at": to_the_minute(local(at)), "utc": timestamp(at), "id": command.id_at(at)} for at in moments]
    tell(told, [f"{local(moment):%a %Y-%m-%d %H:%M %Z}" for moment in moments], as_json=as_json)


@app.command()
def pause(ctx: typer.Context, file: File) -> None:
    """Pause a recurring command until you resume it.

    A run under way continues.
    """
    name, _ = _hold(state(ctx).desk(), file, holds=True)
    typer.echo(f"{name} is paused; `council schedule resume {quote(name)}` resumes it.")


@app.command()
def resume(ctx: typer.Context, file: File) -> None:
    """Resume a recurring command from now on.

    What was due during the pause is not run later.
    """
    name, has_changed = _hold(state(ctx).desk(), file, holds=False)
    told = f"is resumed; `council schedule next {quote(name)}` shows when it is due" if has_changed else "is not paused"
    typer.echo(f"{name} {told}.")


def _hold(desk: Desk, file: str, *, holds: bool) -> tuple[str, bool]:
    """Makes the pause of a recurring command hold, or end; its file's name, and whether that changed anything."""
    with recurring_folder(desk) as folder:
        name = find_file(folder.list(), file)
    with desk.safe() as safe:
        if load_pauses(safe.store).get(name, NEVER_PAUSED).holds == holds:
            return name, False
        safe.store.write_now(lambda tx: save_pause(tx, name, Pause(holds, SystemClock().now())))
    return name, True
