"""`council repair` and `council prune`: mending and thinning out `.council/`, while no daemon holds the home."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_FAILED
from council.ids import readable_json

if TYPE_CHECKING:
    from council.engine.ledger import Ledger
    from council.settings import Home
    from council.upkeep.repair.site import Finding
    from council.upkeep.retention import Bounds, Due, Retention

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_COLOURS = {"mended": "green", "waits": "cyan", "left": "yellow"}


def repair(
    ctx: typer.Context,
    dry_run: _DryRun = False,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="Move runs with a damaged journal to .council/damaged/.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Mend what a crash or a hand left inconsistent: the run ledger, receipts, ids, left-over files."""
    from council.upkeep.repair.repair import repair as mend

    cli = state(ctx)
    home = cli.home()
    with _held(home):
        findings = mend(home, dry_run=dry_run, set_aside=set_aside) if home.runtime.is_dir() else []
    counts = {outcome: sum(finding.outcome == outcome for finding in findings) for outcome in _COLOURS}
    if as_json:
        told = {"dry_run": dry_run, **counts, "findings": [asdict(finding) for finding in findings]}
        typer.echo(readable_json(told, indent=2))
    else:
        typer.echo(_repair_text(cli, findings, counts, dry_run))
    if counts["left"]:
        raise typer.Exit(EXIT_FAILED)


def _repair_text(cli: CliState, findings: list[Finding], counts: dict[str, int], dry_run: bool) -> str:
    if not findings:
        return "Everything is in order."
    words = {"mended": "to mend" if dry_run else "mended", "waits": "waits", "left": "left"}
    lines = []
    for finding in findings:
        word = cli.styled(f"{words[finding.outcome]:<7}", fg=_COLOURS[finding.outcome])
        lines += [f"{word}  {finding.what}", f"{'':9}{finding.note}"]
    said = {"mended": words["mended"], "waits": "for the next start", "left": "for a person"}
    lines += ["", ", ".join(f"{count} {said[outcome]}" for outcome, count in counts.items() if count)]
    return "\n".join(lines)


# ── prune ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def prune(ctx: typer.Context, dry_run: _DryRun = False, as_json: _Json = False) -> None:
    """Let go of the oldest ended runs beyond keep_days, keep_runs and keep_bytes, as the daemon does each hour."""
    from council.upkeep.retention import bounds_of

    cli = state(ctx)
    home, bounds = cli.home(), bounds_of(cli.settings().settings)
    told = _would_prune(home, bounds) if dry_run else _prune(home, bounds)
    typer.echo(json.dumps(told, indent=2) if as_json else _prune_text(told, bounds))
    if told["failed"]:
        raise typer.Exit(EXIT_FAILED)


def _would_prune(home: Home, bounds: Bounds) -> dict[str, Any]:
    """Takes no lock: nothing is changed, and a daemon may run."""
    from council.engine.ledger import Ledger

    path = home.runtime / "ledger.sqlite"
    if not path.exists():
        return _told([], [], [], 0, dry_run=True)
    with contextlib.closing(Ledger(path, read_only=True)) as ledger:
        retention = _retention(home, ledger, bounds)
        due = retention.due()
        removed = [home.receipts / f"{run_id}.json" for run_id in retention.surplus_receipts()]
        names = [str(path.relative_to(home.root)) for path in [*retention.stale_logs(), *removed]]
        return _told(due, names, [], ledger.kept()[0] - len(due), dry_run=True)


def _prune(home: Home, bounds: Bounds) -> dict[str, Any]:
    from council.app.safekeeping import build_ledger

    home.ensure_runtime()
    with _held(home), contextlib.closing(build_ledger(home)) as ledger:
        retention = _retention(home, ledger, bounds)
        gone = [one for one in retention.prune(retention.due()) if one is not None]
        names = [str(path.relative_to(home.root)) for path in retention.tidy()]
        return _told(gone, names, retention.failures, ledger.kept()[0], dry_run=False)


def _retention(home: Home, ledger: Ledger, bounds: Bounds) -> Retention:
    from council.app.safekeeping import build_receipts
    from council.ids import SystemClock
    from council.upkeep.retention import Retention

    return Retention(home, ledger, build_receipts(home), bounds, SystemClock())


def _told(due: list[Due], removed: list[str], failed: list[str], kept: int, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "pruned": [asdict(one) for one in due],
        "bytes": sum(one.bytes for one in due),
        "removed": removed,
        "failed": failed,
        "kept": kept,
    }


def _prune_text(told: dict[str, Any], bounds: Bounds) -> str:
    verb = "Would prune" if told["dry_run"] else "Pruned"
    lines = [
        f"{one['run_id']}  ended {one['finished']}  {one['bytes']:>12,} bytes  {one['by']}" for one in told["pruned"]
    ]
    lines += [f"{name}  {'would be ' if told['dry_run'] else ''}removed" for name in told["removed"]]
    lines += told["failed"]
    limits = (("keep_days", bounds.days), ("keep_runs", bounds.runs), ("keep_bytes", bounds.total_bytes))
    shown = ", ".join(f"{name} {'unset' if value is None else f'{value:,}'}" for name, value in limits)
    count = len(told["pruned"])
    lines.append(
        f"{verb} {count} run{'s' if count != 1 else ''} ({told['bytes']:,} bytes); {told['kept']:,} kept ({shown})."
    )
    return "\n".join(lines)


@contextlib.contextmanager
def _held(home: Home) -> Iterator[None]:
    """The home's lock. Raises DaemonRunning when somebody has it."""
    from council.storage.files import FileLock

    if not home.runtime.is_dir():  # nothing ran here yet, and nothing needs to begin for a look
        yield
        return
    lock = FileLock(home.lock_file)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
