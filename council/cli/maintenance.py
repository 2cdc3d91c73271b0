"""`council doctor`, `repair`, `prune`, `backup` and `restore`: looking after what a home keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import AsJson, Yes, print_json, state
from council.errors import EXIT_CONFIG, EXIT_FAILED, UsageError
from council.ids import STEWARD, SystemClock
from council.storage.reader import is_older, require_brought_over
from council.upkeep.copies import copies_of, copy_database, require_whole, taken_back
from council.upkeep.doctor import examine, ping
from council.upkeep.older_home import bring_over
from council.upkeep.repair import Flaw
from council.upkeep.repair import repair as mend
from council.upkeep.retention import Retention, bounds_of

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
_SHOWN = 10
_AUDITED = 500  # run ids in one record
_COLOURS = {"mended": "green", "waits": "cyan", "left": "yellow"}
_CHECK_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def repair(ctx: typer.Context, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    cli = state(ctx)
    desk = cli.desk()
    home = desk.home
    findings: list[Flaw] = []
    if home.runtime.is_dir():
        with desk.held(), desk.safe() as safe:
            if is_older(home.runtime):
                what = "an older version made this home: its runs are in files"
                if dry_run:
                    findings.append(Flaw(what, "mended", "to be moved into the database"))
                else:
                    done = bring_over(home, safe.store)
                    runs = f"runs {done.runs}, of them unfinished {done.unfinished}"
                    findings.append(
                        Flaw(what, "mended", f"moved into the database: {runs}; calls to models {done.calls:,}")
                    )
                    lost = [f".council/{name} could not be read" for name in done.unread]
                    findings += [Flaw(each, "left", "restore it from a backup") for each in lost]
            findings += mend(home, safe.store, dry_run=dry_run)
    counts = {outcome: sum(finding.outcome == outcome for finding in findings) for outcome in _COLOURS}
    if as_json:
        told = {"dry_run": dry_run, **counts, "findings": [asdict(finding) for finding in findings]}
        print_json(told)
    elif not findings:
        typer.echo("Everything is in order.")
    else:
        words = {"mended": "to fix" if dry_run else "fixed", "waits": "waits", "left": "left"}
        for finding in findings:
            word = cli.styled(f"{words[finding.outcome]:<7}", fg=_COLOURS[finding.outcome])
            typer.echo(f"{word}  {finding.what}\n{'':9}{finding.note}")
        said = {"mended": words["mended"], "waits": "for the next start", "left": "for a person"}
        summary = ", ".join(f"{count} {said[outcome]}" for outcome, count in counts.items() if count)
        typer.echo(f"\n{summary}")
    if counts["left"]:
        raise typer.Exit(EXIT_FAILED)


# ── prune ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def prune(ctx: typer.Context, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    desk = state(ctx).desk()
    bounds = bounds_of(desk.settings)
    if dry_run:  # takes no lock: nothing is changed, and a daemon may run
        retention = Retention(desk.store, bounds, SystemClock(), desk.tables)
        gone, removed = retention.due(), retention.surplus()
        kept = retention.kept() - len(gone)
    else:
        with desk.held(), desk.safe() as safe:
            retention = Retention(safe.store, bounds, SystemClock(), desk.tables)
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
    as_json: AsJson = False,
) -> None:
    if file.exists():
        raise UsageError(f"{file} already exists.", fix="name another file, or move that one away")
    desk = state(ctx).desk()
    require_brought_over(desk.home.runtime)
    if desk.settings.database_url is not None:
        raise UsageError("this home's database is in PostgreSQL.", fix="use pg_dump, or the server's own backups")
    copy_database(desk.home, file.absolute())
    told = {"file": str(file), "bytes": file.stat().st_size}
    typer.echo(json.dumps(told) if as_json else f"{file} holds the database ({told['bytes']:,} bytes).")


def restore(
    ctx: typer.Context,
    copy: Annotated[Path | None, typer.Argument(help="The copy to restore. Default: the newest daily copy.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    desk = state(ctx).desk()
    home = desk.home
    if desk.settings.database_url is not None:
        raise UsageError("this home's database is in PostgreSQL.", fix="restore it with the server's own tools")
    found = copies_of(home)
    if copy is None and not found:
        raise UsageError("there is no daily copy here.", fix="name a file that `council backup` made")
    chosen = copy if copy is not None else found[0]
    require_whole(chosen)
    if not yes:
        typer.confirm(f"Replace the database with {chosen}?", abort=True, err=True)
    with desk.held():
        aside, unknown = taken_back(home, chosen.absolute())
        with desk.safe() as safe, safe.trail.log().transaction() as transaction:  # the audit of the copy ends before it
            detail = {"copy": chosen.name, "runs": list(unknown.runs[:_AUDITED]), "calls": unknown.calls}
            detail |= {"ended": list(unknown.ended[:_AUDITED])} if unknown.ended else {}
            transaction.record("effect", "database_restored", STEWARD.id, detail)
    if as_json:
        told = {"copy": str(chosen), "set_aside": str(aside), **asdict(unknown)}
        print_json(told)
        return
    typer.echo(f"{chosen.name} is the database now; the previous one is {aside.relative_to(home.root)}.")
    if not unknown.told:
        typer.echo("The previous database can no longer say which runs and calls the copy lacks.")
    if unknown.unfinished:
        typer.echo(
            f"Unfinished in the copy: {_listed(unknown.unfinished)}. They continue at the next start, even if they have "
            "ended since. To prevent that, remove their command files."
        )
    if unknown.ended:
        typer.echo(f"Unfinished in the copy, ended since, and kept as ended: {_listed(unknown.ended)}.")
    if unknown.runs:
        typer.echo(f"The copy lacks {_listed(unknown.runs)}")
    if unknown.calls:
        typer.echo(f"The copy lacks {unknown.calls:,} calls to models ({unknown.tokens:,} tokens).")
    typer.echo("`council audit verify` names the records after the copy; `council audit renew` accepts their loss.")


def doctor(
    ctx: typer.Context,
    online: Annotated[bool, typer.Option("--online", help="Also ask the model one tiny question.")] = False,
    model: Annotated[str | None, typer.Option(help="As for `council run`.")] = None,
    as_json: AsJson = False,
) -> None:
    cli = state(ctx)
    desk = cli.desk(model=model)
    checks = examine(desk.home, desk.keys, desk.commands, flags=desk.flags, environ=desk.environ, clock=SystemClock())
    if online and not any(check.name == "settings" and check.status == "fail" for check in checks):
        checks.append(asyncio.run(ping(desk.home, desk.settings, desk.keys)))
    redact = desk.keys.redactor.redact
    checks = [replace(check, message=redact(check.message), fix=redact(check.fix)) for check in checks]
    if as_json:
        worst = next(status for status in ("fail", "warn", "ok") if any(check.status == status for check in checks))
        print_json({"status": worst, "checks": [asdict(check) for check in checks]})
    else:
        width = max(len(check.name) for check in checks)
        lines = [f"home: {desk.home.root}", ""]
        for check in checks:
            word = cli.styled(f"{check.status:<4}", fg=_CHECK_COLOURS[check.status])
            lines.append(f"{word}  {check.name:<{width}}  {check.message}")
            if check.fix:
                lines.append(f"{'':6}{'':<{width}}  fix: {check.fix}")
        counts = {status: sum(check.status == status for check in checks) for status in _CHECK_COLOURS}
        lines += ["", ", ".join(f"{count} {status}" for status, count in counts.items() if count)]
        typer.echo("\n".join(lines))
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(EXIT_CONFIG)


def _listed(runs: Sequence[str]) -> str:
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}: {', '.join(runs[:_SHOWN])}"
