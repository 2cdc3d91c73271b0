"""`council repair`, `prune`, `restore` and `backup`: mending, thinning out and taking back what a home keeps."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_FAILED, UsageError
from council.ids import STEWARD, SystemClock, readable_json

if TYPE_CHECKING:
    from council.settings import Home
    from council.storage.store import Store

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_SHOWN = 10
_AUDITED = 500  # run ids in one record
_COLOURS = {"mended": "green", "waits": "cyan", "left": "yellow"}


def repair(
    ctx: typer.Context,
    dry_run: _DryRun = False,
    as_json: _Json = False,
) -> None:
    """Mend what a crash or a hand left inconsistent beside the database: memory, left-over files."""
    from council.storage.reader import is_older
    from council.upkeep.older_home import bring_over
    from council.upkeep.repair import Flaw
    from council.upkeep.repair import repair as mend

    cli = state(ctx)
    home = cli.home()
    findings: list[Flaw] = []
    if home.runtime.is_dir():
        with _opened(cli) as store:
            if is_older(home.runtime):
                what = "the home was kept by an older version: its runs lie in files"
                if dry_run:
                    findings.append(Flaw(what, "mended", "to be brought over into the database"))
                else:
                    done = bring_over(home, store)
                    runs = f"runs {done.runs}, of them unfinished {done.unfinished}"
                    findings.append(Flaw(what, "mended", f"brought over: {runs}; calls to models {done.calls:,}"))
                    lost = [f".council/{name} could not be read" for name in done.unread]
                    findings += [Flaw(each, "left", "restore it from a backup") for each in lost]
            findings += mend(home, store, dry_run=dry_run)
    counts = {outcome: sum(finding.outcome == outcome for finding in findings) for outcome in _COLOURS}
    if as_json:
        told = {"dry_run": dry_run, **counts, "findings": [asdict(finding) for finding in findings]}
        typer.echo(readable_json(told, indent=2))
    elif not findings:
        typer.echo("Everything is in order.")
    else:
        words = {"mended": "to mend" if dry_run else "mended", "waits": "waits", "left": "left"}
        for finding in findings:
            word = cli.styled(f"{words[finding.outcome]:<7}", fg=_COLOURS[finding.outcome])
            typer.echo(f"{word}  {finding.what}\n{'':9}{finding.note}")
        said = {"mended": words["mended"], "waits": "for the next start", "left": "for a person"}
        summary = ", ".join(f"{count} {said[outcome]}" for outcome, count in counts.items() if count)
        typer.echo(f"\n{summary}")
    if counts["left"]:
        raise typer.Exit(EXIT_FAILED)


# ── prune ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def prune(ctx: typer.Context, dry_run: _DryRun = False, as_json: _Json = False) -> None:
    """Let go of the oldest ended runs beyond keep_days, keep_runs and keep_bytes, as the daemon does each hour."""
    from council.upkeep.retention import Retention, bounds_of

    cli = state(ctx)
    bounds = bounds_of(cli.settings().settings)
    if dry_run:  # takes no lock: nothing is changed, and a daemon may run
        retention = Retention(cli.store(), bounds, SystemClock())
        gone, removed = retention.due(), retention.surplus()
        kept = retention.kept() - len(gone)
    else:
        with _opened(cli) as store:
            retention = Retention(store, bounds, SystemClock())
            gone = list(retention.prune(retention.due()))
            removed, kept = list(retention.tidy()), retention.kept()
    freed = sum(one.bytes for one in gone)
    if as_json:
        told = {"dry_run": dry_run, "pruned": [asdict(one) for one in gone], "bytes": freed}
        typer.echo(json.dumps(told | {"removed": removed, "failed": [], "kept": kept}, indent=2))
        return
    for one in gone:
        typer.echo(f"{one.run_id}  ended {one.finished}  {one.bytes:>12,} bytes  {one.by}")
    for run_id in removed:
        typer.echo(f"{run_id}  receipt {'would be removed' if dry_run else 'removed'}")
    limits = (("keep_days", bounds.days), ("keep_runs", bounds.runs), ("keep_bytes", bounds.total_bytes))
    shown = ", ".join(f"{name} {'unset' if value is None else f'{value:,}'}" for name, value in limits)
    runs = f"{'Would prune' if dry_run else 'Pruned'} {len(gone)} run{'s' if len(gone) != 1 else ''}"
    typer.echo(f"{runs} ({freed:,} bytes); {kept:,} kept ({shown}).")


# ── copies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to put the copy.", dir_okay=False)],
    as_json: _Json = False,
) -> None:
    """Copy the home's database, whole and consistent, also while the daemon works. Files are copied with any tool."""
    from council.app.safekeeping import open_store
    from council.storage.reader import require_brought_over

    cli = state(ctx)
    if file.exists():
        raise UsageError(f"{file} is there already.", fix="name another file, or move that one away")
    require_brought_over(cli.home().runtime)
    with contextlib.closing(open_store(cli.home(), cli.settings().settings)) as store:
        store.copy_to(file.absolute())
    told = {"file": str(file), "bytes": file.stat().st_size}
    typer.echo(json.dumps(told) if as_json else f"{file} holds the database ({told['bytes']:,} bytes).")


def restore(
    ctx: typer.Context,
    copy: Annotated[Path | None, typer.Argument(help="A copy; the newest daily one, if none is named.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: _Json = False,
) -> None:
    """Put a copy in the place of the database, which is set aside. Says which runs and what spending the copy lacks."""
    from council.upkeep.copies import copies_of, require_whole, taken_back

    cli = state(ctx)
    home = cli.home()
    if cli.settings().settings.database_url is not None:
        raise UsageError("this home's database is a PostgreSQL.", fix="restore it with the server's own tools")
    found = copies_of(home)
    if copy is None and not found:
        raise UsageError("there is no daily copy here.", fix="name a file that `council backup` made")
    chosen = copy if copy is not None else found[0]
    require_whole(chosen)
    if not yes:
        typer.confirm(f"Put {chosen} in the place of the database?", abort=True, err=True)
    with _held(home):
        aside, unknown = taken_back(home, chosen.absolute())
        with cli.trail() as trail, trail.log().transaction() as transaction:  # the audit of the copy ends before it
            detail = {"copy": chosen.name, "runs": list(unknown.runs[:_AUDITED]), "calls": unknown.calls}
            transaction.record("effect", "database_restored", STEWARD.id, detail)
    if as_json:
        told = {"copy": str(chosen), "set_aside": str(aside), **asdict(unknown)}
        typer.echo(readable_json(told, indent=2))
        return
    typer.echo(f"{chosen.name} is the database now; the one before is {aside.relative_to(home.root)}.")
    if not unknown.told:
        typer.echo("The database before does not say any more which runs and calls the copy lacks.")
    if unknown.runs:
        count = f"{len(unknown.runs)} run{'s' if len(unknown.runs) != 1 else ''}"
        typer.echo(f"The copy lacks {count}: {', '.join(unknown.runs[:_SHOWN])}")
    if unknown.calls:
        typer.echo(f"The copy lacks {unknown.calls:,} calls to models ({unknown.tokens:,} tokens).")
    typer.echo("`council audit verify` tells what came after the copy; `council audit renew` accepts that it is gone.")


@contextlib.contextmanager
def _opened(cli: CliState) -> Iterator[Store]:
    """The home's store, while nobody else works in it. Raises DaemonRunning when somebody does."""
    from council.app.safekeeping import open_store

    home = cli.home()
    home.ensure_runtime()
    with _held(home), contextlib.closing(open_store(home, cli.settings().settings)) as store:
        yield store


@contextlib.contextmanager
def _held(home: Home) -> Iterator[None]:
    """The home's lock. Raises DaemonRunning when somebody has it."""
    from council.storage.files import FileLock

    lock = FileLock(home.lock_file)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
