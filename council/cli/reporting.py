"""`council runs`, `stats`, `explain`, `report`: all runs, their sums, the course of one."""

from __future__ import annotations

import contextlib
import sys
import webbrowser
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from council.cli.context import AsJson, Run, columns, print_notes, state, table, tell
from council.cli.given_files import checked
from council.desk.replays import explained
from council.desk.run_lookup import find_all, first_moment
from council.errors import UsageError
from council.ids import escape_unseen, local_times
from council.reports.explain_terminal import show as show_explanation
from council.reports.html_report import render_html
from council.reports.stats import stats as sum_up
from council.reports.stats_terminal import show as show_sums
from council.safety.untrusted import plain_line
from council.storage.files import write_atomic
from council.turns.costs import told_cost

_SUFFIX = ".report.html"  # files so named are never read by agents: they would take their own past words for evidence
_MAX_PATH_CHARS, _MAX_TITLE_CHARS = 200, 100
_Since = Annotated[
    str,
    typer.Option(metavar="WHEN", help="Only runs admitted since then: 7d, 24h, 4w, or a date (in the home's zone)."),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object; docs/explain.md has its keys.")]


def explain(ctx: typer.Context, run: Run = "last", as_json: _AsJson = False) -> None:
    cli = state(ctx)
    found = explained(cli.desk(), run)
    if as_json:
        typer.echo(escape_unseen(msgspec.json.encode(found.explanation).decode()))
        return
    show_explanation(found.explanation, sys.stdout, columns=columns(), coloured=cli.coloured, zone=cli.desk().zone)


def report(
    ctx: typer.Context,
    run: Run = "last",
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The output file. Default: <run>.report.html in this folder. `-`: standard output.",
        ),
    ] = "",
    out: Annotated[str, typer.Option("--out", hidden=True, help="The same as --output.")] = "",
    show_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    html: Annotated[bool, typer.Option("--html", hidden=True, help="The only format; may be left out.")] = True,
    as_json: AsJson = False,
) -> None:
    output = output or out
    if output == "-" and as_json:
        raise UsageError("standard output takes the page or the JSON object, not both.", fix="leave -o - or --json out")
    if output == "-" and show_it:
        raise UsageError("a page on standard output cannot be opened.", fix="name a file with -o, or leave --open out")
    desk = state(ctx).desk()
    place = checked(Path(output)) if output not in ("", "-") else None
    found = explained(desk, run)
    page = render_html(found).encode("utf-8", "replace")
    if output == "-":
        sys.stdout.buffer.write(page)
        return
    target = place or checked(Path(f"{found.explanation.run_id}{_SUFFIX}"))
    write_atomic(target, page, sync=False, mode=0o644)
    address = target.resolve().as_uri()
    told = {"run_id": found.explanation.run_id, "file": str(target), "bytes": len(page), "address": address}
    tell(told, [f"{target} ({len(page):,} bytes) explains run {found.explanation.run_id}."], as_json=as_json)
    if target.resolve().is_relative_to(desk.home.root) and not target.name.endswith(_SUFFIX):
        print_notes(f"agents of this home can read this file, unless its name ends in {_SUFFIX}")
    if not show_it:
        if not as_json:
            typer.echo(f"Open it in a browser: {address}")
        return
    opened = False
    with contextlib.suppress(webbrowser.Error):
        opened = webbrowser.open(address)
    if not opened:
        print_notes(f"no browser could be started; open {address} in one.")


def runs(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Only runs that have every word in title, path, file, id, type or status."),
    ] = None,
    since: _Since = "",
    lane: Annotated[str, typer.Option(help="Only runs of this lane (the key `session` of their commands).")] = "",
    count: Annotated[int, typer.Option("-n", min=1, help="At most this many, those admitted last.")] = 50,
    as_json: AsJson = False,
) -> None:
    desk = state(ctx).desk()
    found = find_all(desk, words or (), since=since, lane=lane)
    kept = ("run_id", "title", "type", "lane", "status", "created", "finished", "cost_usd", "artifact", "file")
    told = {"runs": [{key: getattr(entry, key) for key in kept} for entry in found[:count]], "all": len(found)}
    rows = []
    for entry in found[:count]:
        admitted = local_times(entry.created, desk.zone)
        cost = told_cost(entry.cost_usd if entry.calls else 0.0) if entry.finished else ""
        page, title = plain_line(entry.artifact, _MAX_PATH_CHARS), plain_line(entry.title, _MAX_TITLE_CHARS)
        rows.append((entry.run_id, admitted, entry.status, cost, page, title))
    nothing = "No run matches; `council runs` lists all." if words or since or lane else "No run yet."
    lines = table(("RUN", "ADMITTED", "STATUS", "COST", "PAGE", "TITLE"), rows, nothing)
    if sys.stdout.isatty():  # else a program reads whole lines
        lines = [line if len(line) <= columns() else f"{line[: columns() - 1]}…" for line in lines]
    tell(told, lines, as_json=as_json)
    if len(found) > count and not as_json:
        older = len(found) - count
        are = "run is" if older == 1 else "runs are"
        print_notes(f"{older} older {are} not shown; `-n {len(found)}` shows all")


def stats(ctx: typer.Context, since: _Since = "", as_json: _AsJson = False) -> None:
    cli = state(ctx)
    desk = cli.desk()
    first = first_moment(since, datetime.now(UTC), desk.zone)
    found = sum_up(desk.ledger.since(first), first, UTC if as_json else desk.zone)
    if as_json:
        typer.echo(escape_unseen(msgspec.json.encode(found).decode()))
        return
    show_sums(found, sys.stdout, columns=columns(), coloured=cli.coloured, plots=sys.stdout.isatty(), zone=desk.zone)
