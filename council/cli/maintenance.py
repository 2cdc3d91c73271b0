"""`council doctor`, `repair`, `prune`, `backup` and `restore`: looking after what a home keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import AsJson, Yes, print_json, require_yes, state
from council.desk.housekeeping import back_up, checks_of, chosen_copy, prune_home, repair_home, take_back
from council.errors import EXIT_CONFIG, EXIT_FAILED

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
_SHOWN = 10
_COLOURS = {"mended": "green", "waits": "cyan", "left": "yellow"}
_CHECK_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def repair(ctx: typer.Context, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    cli = state(ctx)
    findings = repair_home(cli.desk(), dry_run=dry_run)
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


def prune(ctx: typer.Context, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    pruning = prune_home(state(ctx).desk(), dry_run=dry_run)
    gone, bounds = pruning.gone, pruning.bounds
    freed = sum(one.bytes for one in gone)
    if as_json:
        told = {"dry_run": dry_run, "pruned": [asdict(one) for one in gone], "bytes": freed}
        typer.echo(json.dumps(told | {"removed": pruning.removed, "failed": [], "kept": pruning.kept}, indent=2))
        return
    for one in gone:
        typer.echo(f"{one.run_id}  ended {one.finished}  {one.bytes:>12,} bytes  {one.by}")
    for run_id in pruning.removed:
        typer.echo(f"{run_id}  receipt {'would be removed' if dry_run else 'removed'}")
    limits = (("keep_days", bounds.days), ("keep_runs", bounds.runs), ("keep_bytes", bounds.total_bytes))
    shown = ", ".join(f"{name} {'unset' if value is None else f'{value:,}'}" for name, value in limits)
    runs = f"{'Would prune' if dry_run else 'Pruned'} {len(gone)} run{'s' if len(gone) != 1 else ''}"
    typer.echo(f"{runs} ({freed:,} bytes); {pruning.kept:,} kept ({shown}).")


def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to put the copy.", dir_okay=False)],
    as_json: AsJson = False,
) -> None:
    told = {"file": str(file), "bytes": back_up(state(ctx).desk(), file)}
    typer.echo(json.dumps(told) if as_json else f"{file} holds the database ({told['bytes']:,} bytes).")


def restore(
    ctx: typer.Context,
    copy: Annotated[
        Path | None, typer.Argument(help="The copy to restore. Default: the newest daily copy.", dir_okay=False)
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    desk = state(ctx).desk()
    chosen = chosen_copy(desk, copy)
    require_yes(f"Replace the database with {chosen}?", given=yes)
    aside, unknown = take_back(desk, chosen)
    if as_json:
        told = {"copy": str(chosen), "set_aside": str(aside), **asdict(unknown)}
        print_json(told)
        return
    typer.echo(f"{chosen.name} is the database now; the previous one is {aside.relative_to(desk.home.root)}.")
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
        typer.echo(f"The copy lacks {_listed(unknown.runs)}.")
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
    checks = checks_of(desk, online=online)
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
    more = f" … and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}: {', '.join(runs[:_SHOWN])}{more}"
