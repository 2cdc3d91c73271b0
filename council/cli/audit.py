"""`council audit`: the chain of records of effects, approvals, secret reads and refusals."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import AsJson, Yes, require_yes, state, tell
from council.desk.audit_verification import FileState, audit_of, chain_report, record_json, renewable, report_of_export
from council.desk.audit_verification import accept as accept_files
from council.desk.audit_verification import renew as renew_chain
from council.errors import EXIT_FAILED
from council.ids import TO_THE_SECOND, local_times
from council.safety.untrusted import plain_line

app = typer.Typer(no_args_is_help=True)

_MAX_SHOWN = 10_000


@app.command()
def tail(
    ctx: typer.Context,
    count: Annotated[int, typer.Option("-n", min=1, max=_MAX_SHOWN, help="How many records.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Print the last records, oldest first."""
    desk = state(ctx).desk()
    with audit_of(desk) as log:
        records = log.tail(count) if log is not None else []
    lines = []
    for record in records:
        where = f"  run {record.run_id}" if record.run_id else ""
        detail = "[forgotten]" if record.detail is None else plain_line(record.detail, 400)
        action = f"{record.kind:<11} {record.action:<20} {record.actor}"
        lines.append(f"{record.seq:>6}  {local_times(record.at, desk.zone, TO_THE_SECOND)}  {action}{where}  {detail}")
    tell({"records": list(map(record_json, records))}, lines or ["No record yet."], as_json=as_json)


@app.command()
def verify(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="An export to check instead of this home's chain.", show_default=False)
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help="An `audit_head` that an artifact shows: the chain must still hold it.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every record, the end of the chain, and each file that the records name.

    The end must match the head file, receipts, pages and --head. A file is as recorded, growing (its run is under way),
    accepted (`council audit accept`), changed or missing. The exit code is 1 after the last two and after any finding.
    """
    desk = state(ctx).desk()
    if file is not None:
        verdict = report_of_export(desk, file, head or [])
    else:
        with audit_of(desk) as log:
            verdict = chain_report(desk, log, head or [])
    strange = [each for each in verdict.files if not each.is_known]
    forgotten = f", the words of {verdict.forgotten} are forgotten" if verdict.forgotten else ""
    holds = "1 record is intact" if verdict.records == 1 else f"{verdict.records} records are intact"
    lines = [f"{finding.code}: {finding.message}" for finding in verdict.findings]
    end = "" if lines else f" Head: {verdict.head}"
    for each in strange:
        writer = f", which run {each.run_id} wrote" if each.run_id else ""
        lines.append(f"{each.told}: {plain_line(each.path, 400)}{writer}")
    states = Counter(each.state for each in verdict.files)
    counted = ", ".join(f"{states[word]} {word}" for word in _STATES if states[word])
    lines += [f"{holds}{forgotten}.{end}", *([f"Files: {counted}."] if counted else [])]
    lines += ["If you know about the changes: `council audit accept PATH …`"] if strange else []
    tell(asdict(verdict), lines, as_json=as_json)
    if not verdict.ok:
        raise typer.Exit(EXIT_FAILED)


_STATES: tuple[FileState, ...] = ("as recorded", "growing", "accepted", "changed", "missing")


@app.command()
def accept(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files as `council audit verify` names them.")],
) -> None:
    """Accept files that you changed or removed, as they are now. The audit records this."""
    desk = state(ctx).desk()
    with audit_of(desk, writes=True) as log:
        accepted = accept_files(desk, log, paths)
    for file in accepted:
        typer.echo(f"Accepted as {'gone' if file.state == 'missing' else 'it is now'}: {plain_line(file.path, 400)}")
    if not accepted:
        typer.echo("Nothing to accept: these files are as recorded.")


@app.command()
def export(ctx: typer.Context) -> None:
    """Print the chain as JSON lines: its head, then every record. `council audit verify FILE` checks it anywhere."""
    with audit_of(state(ctx).desk()) as log:
        for line in log.export() if log is not None else ():
            sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


@app.command()
def renew(ctx: typer.Context, yes: Yes = False) -> None:
    """Accept a chain that was replaced. Older receipts are then no longer findings. The audit records this."""
    desk = state(ctx).desk()
    with audit_of(desk, writes=True) as log:
        chain, findings = renewable(desk, log)
        typer.echo("\n".join(f"{finding.code}: {finding.message}" for finding in findings))
        require_yes("Do you know why, and accept it from now on?", given=yes)
        renew_chain(desk, chain)
    typer.echo("Recorded. Nothing here vouches for what came before.")
