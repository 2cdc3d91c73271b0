"""`council replay`, `council diff`, `council journal`: reading the journals of runs."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_FAILED, CouncilError, RunNotFound, UsageError
from council.ids import escape_unseen, readable_json

_MAX_IMPORT_BYTES = 1 << 30
if TYPE_CHECKING:
    from council.engine.journal import Journal
    from council.reports.diff import Questions
    from council.reports.recorded_requests import AskedCall


def replay(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="A run's id, the beginning of one, or `last`.")] = "last",
    check: Annotated[bool, typer.Option("--check", help="Only say whether the artifact on disk is the same.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the page in it.")] = False,
) -> None:
    """Render an ended run's artifact again from its journal, with no model call."""
    from council.cli.runs import find_run, read_receipt
    from council.engine.outputs import kept_data, kept_names

    cli = state(ctx)
    receipt = read_receipt(cli, find_run(cli, run))
    page = rendered_again(cli, receipt.run_id)
    shown, found = "the artifact", None
    if receipt.artifact is not None:
        shown = receipt.artifact.path
        path, store, run_id = cli.home().root / shown, cli.store(), receipt.run_id
        if path.is_file() and path.read_bytes() == page:
            found = shown
        else:  # kept when another run's page took its place
            found = next((name for name in kept_names(store, run_id) if kept_data(store, run_id, name) == page), None)
    same = found is not None
    if as_json:
        told = {
            "run_id": receipt.run_id,
            "artifact": found or shown,
            "same": same,
            "page": page.decode("utf-8", "replace"),
        }
        typer.echo(readable_json(told))
        return
    if not check:
        sys.stdout.buffer.write(page)
        return
    if found in (None, shown):
        typer.echo(f"{shown} {'is what the journal says' if same else 'differs from what the journal says'}.")
    else:
        typer.echo(f"{shown} is a later run's by now; {found}, kept from before, is what the journal says.")
    raise typer.Exit(0 if same else EXIT_FAILED)


def diff(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(help="A run's id, or the beginning of one.")],
    second: Annotated[str, typer.Argument(help="Another run's id, the beginning of one, or `last`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say where two runs part: the first step asked or answered differently, with both prompts side by side."""
    from dataclasses import asdict

    from council.cli.runs import find_run
    from council.cli.side_by_side import show_difference
    from council.reports.diff import diff as compare
    from council.reports.diff import text_of, without_marks, words_of

    cli = state(ctx)
    one, other = (journal_of(cli, find_run(cli, given)) for given in (first, second))
    questions = _questions(cli, one, other)
    found = compare(one, other, questions.alike)
    if as_json:
        told = {**asdict(found), "sentence": found.sentence}
        if found.kind == "question":
            told |= _prompts(questions, found.first_step)
        typer.echo(readable_json(told))
        return
    typer.echo(found.sentence)
    names, step = (first, second), found.first_step
    if found.kind == "question" and step in questions.first and step in questions.second:
        before, after = (without_marks(text_of(asked[step])) for asked in (questions.first, questions.second))
        typer.echo("")
        show_difference(names, (before, after), colour=cli.coloured)
    elif found.kind == "question":
        typer.echo(f"The prompts cannot be shown: {questions.why_not or _NOT_KEPT}")
    if found.first_answer or found.second_answer:
        before, after = words_of(found.first_answer), words_of(found.second_answer)
        if before == after:
            typer.echo("\nBoth got the same answer.")
        else:
            typer.echo("\nWhat came back:\n")
            show_difference(names, (before, after), colour=cli.coloured)


def _questions(cli: CliState, first: Journal, second: Journal) -> Questions:
    """The questions of both runs; a run that cannot be rendered again says why."""
    from council.cli.cassette import requests_asked
    from council.reports.diff import Questions, by_step

    asked: list[dict[str, AskedCall]] = []
    reasons: list[str] = []
    for journal in (first, second):
        try:
            asked.append(by_step(requests_asked(cli, journal)))
        except CouncilError as error:
            asked.append({})
            reasons.append(error.message)
    return Questions(asked[0], asked[1], " ".join(dict.fromkeys(reasons)))


_NOT_KEPT = "what was asked there was made of the agents' memory as it was then, and is not kept."


def _prompts(questions: Questions, step: str) -> dict[str, object]:
    def prompt(call: AskedCall | None) -> dict[str, object] | None:
        if call is None:
            return None
        messages = [{"role": message.role, "text": message.text} for message in call.messages]
        return {"system": call.system, "messages": messages}

    known = step in questions.first and step in questions.second
    return {
        "first_prompt": prompt(questions.first.get(step)),
        "second_prompt": prompt(questions.second.get(step)),
        "why_not": "" if known else questions.why_not or _NOT_KEPT,
    }


def journal(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="A run's id, the beginning of one, or `last`.")] = "last",
    as_jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help="Print one JSON object per record, whole."),
    ] = False,
    import_: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Bring in a run that --jsonl printed, to replay it here."),
    ] = None,
) -> None:
    """Print a run's journal, record by record; also of a run that has not ended."""
    import msgspec

    from council.app.safekeeping import open_store
    from council.cli.explain import columns
    from council.cli.runs import find_any_run
    from council.engine.bringing import import_journal
    from council.reports.journal_terminal import show
    from council.storage.files import read_limited

    cli = state(ctx)
    if import_ is not None:
        fix = "name a file that `council journal --jsonl` printed"
        try:
            data = read_limited(import_, _MAX_IMPORT_BYTES)
        except FileNotFoundError:
            raise UsageError(f"{import_} is not there.", fix=fix) from None
        with contextlib.closing(open_store(cli.home(), cli.settings().settings)) as store:
            header = import_journal(store, data, time.time_ns())
        typer.echo(f"Run {header.run_id} is here now: `council replay {header.run_id}` renders its page.")
        return
    run_id = find_any_run(cli, run)
    require_journal(cli, run_id)
    records = cli.ledger().records(run_id)
    if not as_jsonl:
        show(records, sys.stdout, columns=columns(), coloured=cli.coloured)
        return
    for record in records:  # byte for byte as they were recorded, but harmless on a terminal
        line = msgspec.json.encode(record)
        if sys.stdout.isatty():
            line = escape_unseen(line.decode()).encode()
        sys.stdout.buffer.write(line + b"\n")


def journal_of(cli: CliState, run_id: str) -> Journal:
    """Raises RunNotFound with what became of it."""
    require_journal(cli, run_id)
    return cli.ledger().journal(run_id)


def require_journal(cli: CliState, run_id: str) -> None:
    """Raises RunNotFound for a run without a journal, with what became of it."""
    from council.cli.runs import read_receipt
    from council.engine.reopening import why_no_journal

    if cli.ledger().has_journal(run_id):
        return
    receipt = read_receipt(cli, run_id)
    fix = f"`council show {run_id}` prints what stays"
    if receipt.pruned is not None:
        fix += f"; a larger {receipt.pruned.by} keeps more runs"
    raise RunNotFound(f"the run {run_id} {why_no_journal(receipt)}.", fix=fix)


def rendered_again(cli: CliState, run_id: str) -> bytes:
    """The run's page, from its journal. Raises RunNotFound where the journal is gone, with what became of it."""
    from council.reports.past_run import replay as render_again

    journal = journal_of(cli, run_id)
    return cli.read_offline(lambda app: render_again(journal, app.handlers))
