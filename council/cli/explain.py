"""`council explain`, `council report`: the course of a run, in the terminal, as JSON, or as a page."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import CliState, state
from council.cli.outfile import checked
from council.errors import UsageError
from council.ids import escape_unseen

if TYPE_CHECKING:
    from council.reports.explain import ExplainedRun

_SUFFIX = ".report.html"  # files so named are never read by agents: they would take their own past words for evidence
RunArgument = Annotated[str, typer.Argument(help="A run's id, the beginning of one, or `last`.")]


def explain(
    ctx: typer.Context,
    run: RunArgument = "last",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; docs/explain.md has its keys.")
    ] = False,
) -> None:
    """Explain how a run came about: times, tokens and cost per agent, what was read, who changed its mind, why it
    stopped."""
    found = explained(state(ctx), run)
    if as_json:
        import msgspec

        typer.echo(escape_unseen(msgspec.json.encode(found.explanation).decode()))
        return
    from council.reports.explain_terminal import show

    show(found.explanation, sys.stdout, columns=columns(), coloured=state(ctx).coloured)


def report(
    ctx: typer.Context,
    run: RunArgument = "last",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where it goes, else <run>.report.html here; `-`: standard output."
        ),
    ] = "",
    show_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    html: Annotated[bool, typer.Option("--html", hidden=True, help="The one form there is; may be left out.")] = True,
) -> None:
    """Write an HTML page about a run: what `explain` says, with charts, the decision and the transcript."""
    if output == "-" and show_it:
        raise UsageError(
            "what goes to standard output is no page to open.", fix="name a file with -o, or leave --open out"
        )
    from council.reports.html_report import render_html
    from council.storage.files import write_atomic

    cli = state(ctx)
    place = checked(Path(output)) if output not in ("", "-") else None
    found = explained(cli, run)
    page = render_html(found).encode("utf-8", "replace")
    if output == "-":
        sys.stdout.buffer.write(page)
        return
    target = place or checked(Path(f"{found.explanation.run_id}{_SUFFIX}"))
    write_atomic(target, page, sync=False, mode=0o644)
    typer.echo(f"{target} ({len(page):,} bytes) explains run {found.explanation.run_id}.")
    if target.resolve().is_relative_to(cli.home().root) and not target.name.endswith(_SUFFIX):
        typer.echo(f"note: agents of this home can read it; named *{_SUFFIX} they cannot", err=True)
    address = target.resolve().as_uri()
    if not show_it:
        typer.echo(f"Open it in a browser: {address}")
        return
    import webbrowser

    opened = False
    with contextlib.suppress(webbrowser.Error):
        opened = webbrowser.open(address)
    if not opened:
        typer.echo(f"note: no browser could be started; open {address} in one.", err=True)


def explained(cli: CliState, given: str) -> ExplainedRun:
    """Raises RunNotFound for a run that is unknown or whose journal is gone, with what became of it; JournalDamaged."""
    from council.cli.reports import require_journal
    from council.cli.runs import find_any_run, status_view
    from council.reports.explain import Live
    from council.reports.explain import explain as explain_run

    run_id = find_any_run(cli, given)
    require_journal(cli, run_id)
    view = status_view(cli)
    known = {run["run_id"]: run["status"] for run in view["runs"]}
    live = Live(None if view["daemon"] is None else known.get(run_id, "queued"))
    receipt = cli.receipts().read(run_id)  # NOTE: after `live`, so an end is not missed
    return cli.read_offline(lambda app: explain_run(app.store, run_id, receipt, live, app.handlers))


def columns() -> int:
    """The width of tables: COLUMNS, else the terminal's, else 110; never less than 80."""
    return min(160, max(80, shutil.get_terminal_size((110, 40)).columns))
