"""`council cassette`: the model traffic of an ended run as a file that works in place of a model."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import state
from council.errors import UsageError
from council.ids import readable_json

if TYPE_CHECKING:
    from council.cli.context import CliState
    from council.engine.journal import Journal
    from council.engine.receipts import Receipt
    from council.reports.recorded_requests import AskedCall
    from council.reports.tape import Tape


def cassette(
    ctx: typer.Context,
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs by their ids, the beginnings of them, or `last`.", show_default="last"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The file; else <run>.cassette.jsonl in this folder; `-`: standard output."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write all that ended runs asked their models, and what these answered, as a file that answers in their place."""
    from council.cli.runs import find_run, read_receipt
    from council.llm.cassette import MAX_CASSETTE_BYTES, SUFFIX
    from council.reports.tape import spliced
    from council.storage.files import write_atomic

    cli = state(ctx)
    home = cli.home()
    receipts = {
        receipt.run_id: receipt for run in runs or ["last"] if (receipt := read_receipt(cli, find_run(cli, run)))
    }
    if str(output) == "-":
        tape = spliced([_tape_of(cli, receipt) for receipt in receipts.values()])
        if as_json:
            raise UsageError("--json and the cassette cannot both go to standard output.", fix="name a file with -o")
        sys.stdout.buffer.write(tape.data)
        _print_warnings(tape)
        return
    path = output or Path(f"{next(iter(receipts))}{SUFFIX}")
    if path.exists():
        raise UsageError(f"{path} is there already.", fix="name another file, or remove it")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}.", fix="make it, or name another one")
    tape = spliced([_tape_of(cli, receipt) for receipt in receipts.values()])
    if len(tape.data) > MAX_CASSETTE_BYTES:
        raise UsageError(
            f"the run's prompts come to {len(tape.data):,} bytes, and a cassette holds {MAX_CASSETTE_BYTES:,}.",
            fix="record a run with fewer rounds or smaller documents",
        )
    write_atomic(path, tape.data)  # for its owner alone
    if as_json:
        told = {"run_id": next(iter(receipts)), "file": str(path), "model": tape.model, "calls": tape.calls}
        told |= {"run_ids": list(receipts)} if len(receipts) > 1 else {}
        told |= {"unrendered": tape.unrendered, "forgotten": tape.forgotten, "redacted": tape.redacted}
        typer.echo(readable_json(told))
        return
    calls = f"{tape.calls} call{'s' if tape.calls != 1 else ''}"
    who = f"run {next(iter(receipts))}" if len(receipts) == 1 else f"{len(receipts)} runs"
    typer.echo(f"{path} holds the {calls} that {who} made to {tape.model}.")
    _print_warnings(tape)
    if path.resolve().is_relative_to(home.root) and not path.name.endswith(SUFFIX):
        typer.echo(f"note: agents of this home can read it; named *{SUFFIX} they cannot", err=True)
    where = os.path.relpath(path.resolve(), home.root)
    typer.echo(f"note: `council run --model cassette:{where}` answers from it; docs/cassettes.md says more", err=True)


def _tape_of(cli: CliState, receipt: Receipt) -> tuple[Tape, str]:
    """A run's calls, and the words of its task."""
    from council.cli.reports import journal_of
    from council.reports.tape import record

    journal = journal_of(cli, receipt.run_id)
    tape = record(journal, requests_asked(cli, journal), receipt.status, cli.keys().redactor)
    return tape, str(journal.header.command.get("task_description", ""))


def requests_asked(cli: CliState, journal: Journal) -> list[AskedCall]:
    """The calls of a recorded run; nobody is asked again. Raises CannotRender, JournalDamaged."""
    from council.app import handlers_asking
    from council.reports.recorded_requests import requests_of

    return cli.read_offline(lambda app: requests_of(journal, lambda model: handlers_asking(app, model)))


def _print_warnings(tape: Tape) -> None:
    notes = [
        "it holds every prompt whole: personas, memory, and all that the agents read; give it only to those who may see these"
    ]
    if tape.redacted:
        notes.append(
            f"a key stood in {tape.redacted} of the calls and was left out; there the words differ from those sent"
        )
    if tape.unrendered:
        notes.append(
            f"of {', '.join(tape.unrendered)} the reply is kept and the prompt is not: it was made of a memory that has changed"
        )
    if tape.forgotten:
        notes.append(
            f"words were forgotten since in {len(tape.forgotten)} of the prompts; what stands there is what is left of them"
        )
    for note in notes:
        typer.echo(f"note: {note}", err=True)
