"""`council doctor`, `repair`, `prune`, `backup` and `restore`: looking after a home."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import AsJson, Yes, first_of, print_notes, require_yes, state, tell
from council.desk.housekeeping import back_up, checks_of, chosen_copy, prune_home, repair_home, take_back
from council.errors import EXIT_CONFIG, EXIT_FAILED
from council.ids import local_times

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
_COLOURS = {"mended": "green", "waits": "cyan", "left": "yellow"}
_CHECK_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def repair(ctx: typer.Context, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    cli = state(ctx)
    findings = repair_home(cli.desk(), dry_run=dry_run)
    counts = {outcome: sum(finding.outcome == outcome for finding in findings) for outcome in _COLOURS}
    words, lines = {"mended": "to fix" if dry_run else "fixed", "waits": "waits", "left": "left"}, []
    for finding in findings:
        word = cli.styled(f"{words[finding.outcome]:<7}", fg=_COLOURS[finding.outcome])
        lines += [f"{word}  {finding.what}", f"{'':9}{finding.note}"]
    said = {"mended": words["mended"], "waits": "for the next start", "left": "for a person"}
    lines += ["", ", ".join(f"{count} {said[outcome]}" for outcome, count in counts.items() if count)]
    told = {"dry_run": dry_run, **counts, "findings": list(map(asdict, findings))}
    tell(told, lines if findings else ["Everything is in order."], as_json=as_json)
    if counts["left"]:
        raise typer.Exit(EXIT_FAILED)


def prune(ctx: typer.Context, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    desk = state(ctx).desk()
    pruning = prune_home(desk, dry_run=dry_run)
    gone, settings = pruning.gone, desk.settings
    freed = sum(one.bytes for one in gone)
    told = {"dry_run": dry_run, "pruned": list(map(asdict, gone)), "bytes": freed}
    told |= {"removed": pruning.removed, "failed": [], "kept": pruning.kept}
    lines = [
        f"{one.run_id}  ended {local_times(one.finished, desk.zone)}  {one.bytes:>12,} bytes  {one.by}" for one in gone
    ]
    removed = "would be removed" if dry_run else "removed"
    lines += [f"{run_id}  receipt {removed}" for run_id in pruning.removed]
    days = "unset" if settings.keep_days is None else f"{settings.keep_days:,}"
    shown = f"keep_days {days}, keep_runs {settings.keep_runs:,}, keep_bytes {settings.keep_bytes:,}"
    runs = f"{'Would prune' if dry_run else 'Pruned'} {len(gone)} run{'s' if len(gone) != 1 else ''}"
    tell(told, [*lines, f"{runs} ({freed:,} bytes); {pruning.kept:,} kept ({shown})."], as_json=as_json)


def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to put the copy.", dir_okay=False)],
    as_json: AsJson = False,
) -> None:
    told = {"file": str(file), "bytes": back_up(state(ctx).desk(), file)}
    tell(told, [f"{file} holds the database ({told['bytes']:,} bytes)."], as_json=as_json)


def restore(
    ctx: typer.Context,
    copy: Annotated[
        Path | None, typer.Argument(help="The copy to restore. Default: the newest whole daily copy.", dir_okay=False)
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    desk = state(ctx).desk()
    chosen, flaws = chosen_copy(desk, copy)
    print_notes(*flaws)
    require_yes(f"Replace the database with {chosen}?", given=yes)
    aside, unknown = take_back(desk, chosen)
    before = f"the previous one is {aside.relative_to(desk.home.root)}" if aside else "there was none before"
    lines = [f"{chosen.name} is the database now; {before}."]
    if not unknown.told:
        lines.append("It is not known which runs and calls the copy lacks.")
    if unknown.unfinished:
        lines.append(
            f"Unfinished in the copy: {_listed(unknown.unfinished)}. They continue at the next start, even if they have "
            "ended since. To prevent that, remove their command files."
        )
    if unknown.ended:
        lines.append(f"Unfinished in the copy, ended since, and kept as ended: {_listed(unknown.ended)}.")
    if unknown.runs:
        lines.append(f"The copy lacks {_listed(unknown.runs)}.")
    if unknown.calls:
        lines.append(f"The copy lacks {unknown.calls:,} calls to models ({unknown.tokens:,} tokens).")
    if unknown.records:
        lines.append("The audit of the copy ends at record {}; its head was at record {}.".format(*unknown.records))
    lines.append("`council audit verify` names the records after the copy; `council audit renew` accepts their loss.")
    tell({"copy": str(chosen), "set_aside": str(aside) if aside else None, **asdict(unknown)}, lines, as_json=as_json)


def doctor(
    ctx: typer.Context,
    online: Annotated[bool, typer.Option("--online", help="Also ask the model one tiny question.")] = False,
    model: Annotated[str | None, typer.Option(help="As for `council run`.")] = None,
    as_json: AsJson = False,
) -> None:
    cli = state(ctx)
    desk = cli.desk(model=model)
    checks = checks_of(desk, online=online)
    width, lines = max(len(check.name) for check in checks), [f"home: {desk.home.root}", ""]
    for check in checks:
        word = cli.styled(f"{check.status:<4}", fg=_CHECK_COLOURS[check.status])
        lines.append(f"{word}  {check.name:<{width}}  {check.message}")
        lines += [f"{'':6}{'':<{width}}  fix: {check.fix}"] if check.fix else []
    found = Counter[str](check.status for check in checks)
    lines += ["", ", ".join(f"{found[status]} {status}" for status in _CHECK_COLOURS if found[status])]
    worst = next(status for status in reversed(_CHECK_COLOURS) if found[status])
    tell({"status": worst, "checks": list(map(asdict, checks))}, lines, as_json=as_json)
    if worst == "fail":
        raise typer.Exit(EXIT_CONFIG)


def _listed(runs: Sequence[str]) -> str:
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}: {first_of(runs)}"
