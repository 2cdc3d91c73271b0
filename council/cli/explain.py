"""`council explain`, `council report`: the course of a run, in the terminal, as JSON, or as a page."""

from __future__ import annotations

import contextlib
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from council.cli.context import Run, columns, print_notes, state
from council.cli.outfile import checked
from council.desk.retelling import explained
from council.errors import UsageError
from council.ids import escape_unseen
from council.reports.explain_terminal import show
from council.reports.html_report import render_html
from council.storage.files import write_atomic

_SUFFIX = ".report.html"  # files so named are never read by agents: they would take their own past words for evidence


def explain(
    ctx: typer.Context,
    run: Run = "last",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; docs/explain.md has its keys.")
    ] = False,
) -> None:
    cli = state(ctx)
    found = explained(cli.desk(), run)
    if as_json:
        typer.echo(escape_unseen(msgspec.json.encode(found.explanation).decode()))
        return
    show(found.explanation, sys.stdout, columns=columns(), coloured=cli.coloured)


def report(
    ctx: typer.Context,
    run: Run = "last",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where it goes, else <run>.report.html here; `-`: standard output."
        ),
    ] = "",
    show_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    html: Annotated[bool, typer.Option("--html", hidden=True, help="The one form there is; may be left out.")] = True,
) -> None:
    if output == "-" and show_it:
        raise UsageError(
            "what goes to standard output is no page to open.", fix="name a file with -o, or leave --open out"
        )
    desk = state(ctx).desk()
    place = checked(Path(output)) if output not in ("", "-") else None
    found = explained(desk, run)
    page = render_html(found).encode("utf-8", "replace")
    if output == "-":
        sys.stdout.buffer.write(page)
        return
    target = place or checked(Path(f"{found.explanation.run_id}{_SUFFIX}"))
    write_atomic(target, page, sync=False, mode=0o644)
    typer.echo(f"{target} ({len(page):,} bytes) explains run {found.explanation.run_id}.")
    if target.resolve().is_relative_to(desk.home.root) and not target.name.endswith(_SUFFIX):
        print_notes(f"agents of this home can read it; named *{_SUFFIX} they cannot")
    address = target.resolve().as_uri()
    if not show_it:
        typer.echo(f"Open it in a browser: {address}")
        return
    opened = False
    with contextlib.suppress(webbrowser.Error):
        opened = webbrowser.open(address)
    if not opened:
        print_notes(f"no browser could be started; open {address} in one.")
