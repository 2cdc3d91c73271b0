"""`council replay`, `council diff`: what the journals of ended runs say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_FAILED, CouncilError, RunNotFound
from council.ids import readable_json

if TYPE_CHECKING:
    from council.engine.journal import FileJournal
    from council.engine.receipts import Receipt
    from council.reports.diff import Divergence, Questions
    from council.reports.requests import AskedCall
    from council.settings import Home


def replay(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="A run's id, the beginning of one, or `last`.")] = "last",
    check: Annotated[bool, typer.Option("--check", help="Only say whether the artifact on disk is the same.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the page in it.")] = False,
) -> None:
    """Render an ended run's artifact again from its journal, with no model call."""
    from council.cli.runs import find_run, read_receipt

    cli = state(ctx)
    home = cli.home()
    receipt = read_receipt(home, find_run(home, run))
    page = rendered_again(cli, receipt.run_id)
    shown = receipt.artifact.path if receipt.artifact else "the artifact"
    found = _found(home, receipt, page)
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


def _found(home: Home, receipt: Receipt, page: bytes) -> str | None:
    """Where the page stands: at its place, or in the run's folder, kept when another run's page took that place."""
    if receipt.artifact is None:
        return None
    kept = sorted((home.runs / receipt.run_id).glob("artifact*.md"))
    places = [home.root / receipt.artifact.path, *kept]
    return next(
        (str(path.relative_to(home.root)) for path in places if path.is_file() and path.read_bytes() == page), None
    )


def diff(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(help="A run's id, or the beginning of one.")],
    second: Annotated[str, typer.Argument(help="Another run's id, the beginning of one, or `last`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say where two runs part: the first step asked or answered differently, with both prompts side by side."""
    from dataclasses import asdict

    from council.cli.runs import find_run
    from council.reports.diff import diff as compare

    cli = state(ctx)
    home = cli.home()
    one, other = (journal_of(home, find_run(home, given)) for given in (first, second))
    questions = _questions(cli, one, other)
    found = compare(one, other, questions.alike)
    if as_json:
        told = {**asdict(found), "sentence": found.sentence}
        if found.kind == "question":
            told |= _prompts(questions, found.first_step)
        typer.echo(readable_json(told))
        return
    typer.echo(found.sentence)
    if found.kind == "question":
        _show_prompts(cli, (first, second), questions, found.first_step)
    if found.first_answer or found.second_answer:
        _show_answers(cli, (first, second), found)


def _questions(cli: CliState, first: FileJournal, second: FileJournal) -> Questions:
    """What both runs asked; a run that cannot be rendered again says why."""
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


def _show_prompts(cli: CliState, names: tuple[str, str], questions: Questions, step: str) -> None:
    from council.cli.side_by_side import show_difference
    from council.reports.diff import text_of, without_marks

    if step not in questions.first or step not in questions.second:
        typer.echo(f"The prompts cannot be shown: {questions.why_not or _NOT_KEPT}")
        return
    texts = [without_marks(text_of(asked[step])) for asked in (questions.first, questions.second)]
    typer.echo("")
    show_difference(names, (texts[0], texts[1]), colour=cli.coloured)


def _show_answers(cli: CliState, names: tuple[str, str], found: Divergence) -> None:
    from council.cli.side_by_side import show_difference
    from council.reports.diff import words_of

    one, other = words_of(found.first_answer), words_of(found.second_answer)
    if one == other:
        typer.echo("\nBoth got the same answer.")
        return
    typer.echo("\nWhat came back:\n")
    show_difference(names, (one, other), colour=cli.coloured)


def journal_of(home: Home, run_id: str) -> FileJournal:
    """Raises RunNotFound with what became of it."""
    from council.engine.journal import FileJournal

    return FileJournal.read(journal_path(home, run_id))


def journal_path(home: Home, run_id: str) -> Path:
    """Where the run's journal is. Raises RunNotFound with what became of it."""
    from council.cli.runs import read_receipt
    from council.engine.journal import JOURNAL
    from council.engine.receipts import why_no_journal

    path = home.runs / run_id / JOURNAL
    if path.exists():
        return path
    receipt = read_receipt(home, run_id)
    aside = home.runtime / "damaged" / run_id
    if aside.exists():
        raise RunNotFound(
            f"the run {run_id} was set aside as damaged.", fix=f"its folder is {aside}; its artifact stays"
        )
    fix = f"`council show {run_id}` prints what stays"
    if receipt.pruned is not None:
        fix += f"; a larger {receipt.pruned.by} keeps more runs"
    raise RunNotFound(f"the run {run_id} {why_no_journal(receipt)}.", fix=fix)


def rendered_again(cli: CliState, run_id: str) -> bytes:
    """The run's page, from its journal. Built with the offline model, which is not asked either: a replay needs no key.

    Raises RunNotFound where the journal is gone, with what became of it.
    """
    import asyncio

    from council.app import build_app
    from council.reports.replay import replay as render_again

    journal = journal_of(cli.home(), run_id)
    settings = cli.settings().settings.model_copy(update={"model": "offline"})
    app = build_app(cli.home(), settings, cli.keys(), environ=cli.environ)

    async def work() -> bytes:
        try:
            return await render_again(journal, app.handlers)
        finally:
            await app.aclose()

    return asyncio.run(work())
