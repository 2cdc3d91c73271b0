"""`council cortex`: bring the index up to date, ask it, see what it holds."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import indent
from typing import Annotated, Any

import typer

from council.cli.context import AsJson, print_notes, state, tell
from council.desk.cortex_index import ask_index, state_of_index, update_index
from council.ids import local_times
from council.knowledge.cortex.cortex import Scope
from council.knowledge.cortex.index import Status
from council.lines_and_pages import spelled
from council.safety.untrusted import clean

app = typer.Typer(no_args_is_help=True)


@app.command()
def index(
    ctx: typer.Context,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild the index instead of reading only changes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index what has changed. Queries also index; indexing first makes them faster."""
    done = update_index(state(ctx).desk(), rebuild=rebuild)
    told, lines = {}, []
    for scope, update in done.items():
        refresh = update.refresh
        told[scope] = asdict(refresh) | _held(update.status)
        told[scope] |= {} if update.embedded is None else {"embedded": update.embedded}
        meanings = "" if update.embedded is None else f"; {update.embedded} embedded now"
        changes = f"{refresh.added} added, {refresh.changed} changed, {refresh.removed} removed, {refresh.read} read"
        lines.append(f"{scope:<7} {changes}; {_holds(update.status)}{meanings}")
    tell(told, lines, as_json=as_json)
    if not as_json:
        print_notes(*(note for update in done.values() for note in update.refresh.notes))


@app.command()
def query(
    ctx: typer.Context,
    question: Annotated[
        str, typer.Argument(help="What to look for, in words; with `embedding_model` set, meanings count too.")
    ],
    scope: Annotated[Scope, typer.Option(help="The home's files, or the agents' archived memory.")] = "files",
    limit: Annotated[int, typer.Option(min=1, max=50, help="How many passages at most.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Print the passages of the present files that match a question best."""
    answer = ask_index(state(ctx).desk(), question, scope, limit)
    blocks = []
    for hit in answer.hits:
        own = "  (the council's own artifact, not a source)" if hit.own_artifact else ""
        under = f"  {hit.heading}" if hit.heading else ""
        head = f"{spelled(hit.path, hit.first_line, hit.last_line)}{own}{under}\n  sha256 {hit.sha256}"
        blocks.append(f"{head}\n\n{indent(clean(hit.quotation), '    ')}")
    told = {"question": question, "scope": scope, "hits": list(map(asdict, answer.hits)), "notes": list(answer.notes)}
    tell(told, ["\n\n".join(blocks) or "No passage matches."], as_json=as_json)
    if not as_json:
        print_notes(*answer.notes)


@app.command()
def status(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Print what the index contains, and how many files have changed since."""
    desk = state(ctx).desk()
    shown, writer = state_of_index(desk)
    lines = []
    for scope, held in shown.items():
        refreshed = local_times(held.refreshed, desk.zone) or "never"
        since = f"{held.pending} changed since, refreshed {refreshed}, {held.index_bytes:,} bytes"
        lines += [f"{scope:<7} {_holds(held)}", f"        {since}"]
    lines += [f"process {writer.get('pid', '?')} is indexing"] if writer is not None else []
    tell({"writer": writer} | {scope: _held(held) for scope, held in shown.items()}, lines, as_json=as_json)
    if not as_json:
        print_notes(*(note for held in shown.values() for note in held.notes))


def _holds(status: Status) -> str:
    skipped = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in status.skipped.items())
    return f"holds {status.files} files, {status.passages} passages" + (f"; left out: {skipped}" if skipped else "")


def _held(status: Status) -> dict[str, Any]:
    return {key: value for key, value in asdict(status).items() if key != "notes" or value}
