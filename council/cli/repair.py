"""`council repair` and `council prune`: mending and thinning out `.council/`, while no daemon holds the home."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_FAILED

if TYPE_CHECKING:
    from council.engine.ledger import Ledger
    from council.engine.receipts import Receipts
    from council.settings import Home
    from council.upkeep.repair import Finding

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def repair(
    ctx: typer.Context,
    dry_run: _DryRun = False,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="Move runs with a damaged journal to .council/damaged/.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Mend what a crash or a hand left inconsistent: the run ledger, receipts, ids, left-over files."""
    from council.upkeep.repair import Repair

    with _held(state(ctx)) as (home, receipts, ledger):
        findings = list(Repair(home, receipts, ledger, dry_run=dry_run, set_aside=set_aside).findings())
    left = [finding for finding in findings if not finding.done]
    if as_json:
        typer.echo(json.dumps({"dry_run": dry_run, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        typer.echo("\n".join(_line(finding, dry_run) for finding in findings) or "Everything is in order.")
    if left:
        raise typer.Exit(EXIT_FAILED)


def prune(ctx: typer.Context, dry_run: _DryRun = False, as_json: _Json = False) -> None:
    """Let go of the oldest ended runs beyond keep_days, keep_runs and keep_bytes, as the daemon does each hour."""
    from council.ids import SystemClock
    from council.upkeep.retention import bounds_of, over
    from council.upkeep.retention import prune as let_go

    cli = state(ctx)
    with _held(cli) as (home, receipts, ledger):
        due = over(ledger.ended(), bounds_of(cli.settings().settings), SystemClock().now())
        ids = [entry.run_id for entry in due] if dry_run else let_go(home, ledger, receipts, due)
    freed = sum(entry.bytes for entry in due if entry.run_id in set(ids))
    if as_json:
        typer.echo(json.dumps({"dry_run": dry_run, "pruned": ids, "bytes": freed}))
    else:
        typer.echo(f"{'Would prune' if dry_run else 'Pruned'} {len(ids)} runs ({freed:,} bytes).")


@contextlib.contextmanager
def _held(cli: CliState) -> Iterator[tuple[Home, Receipts, Ledger]]:
    """The home, its lock taken. Raises DaemonRunning when somebody has it."""
    from council.app import build_ledger, build_receipts
    from council.engine.engine import EnginePaths
    from council.storage.files import FileLock

    home = cli.home()
    home.ensure_runtime()
    lock = FileLock(home.lock_file)
    lock.acquire()
    try:
        EnginePaths.under(home.runtime).make()
        ledger = build_ledger(home)
        try:
            yield home, build_receipts(home, ledger), ledger
        finally:
            ledger.close()
    finally:
        lock.release()


def _line(finding: Finding, dry_run: bool) -> str:
    if finding.done:
        return f"{'would mend' if dry_run else 'mended'}  {finding.what}: {finding.done}"
    return f"left    {finding.what}\n        fix: {finding.fix}"
