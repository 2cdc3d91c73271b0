"""`council cassette`: the model traffic of an ended run as a file that works in place of a model."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import AsJson, print_notes, state
from council.cli.outfile import require_new
from council.desk.lookup import find_ended
from council.desk.retelling import tape_of
from council.errors import UsageError
from council.ids import readable_json
from council.llm.cassette import MAX_CASSETTE_BYTES, SUFFIX
from council.reports.tape import Tape
from council.storage.files import write_atomic


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
    as_json: AsJson = False,
) -> None:
    desk = state(ctx).desk()
    run_ids = list(dict.fromkeys(find_ended(desk, run) for run in runs or ["last"]))
    if str(output) == "-":
        tape = tape_of(desk, run_ids)
        if as_json:
            raise UsageError("--json and the cassette cannot both go to standard output.", fix="name a file with -o")
        sys.stdout.buffer.write(tape.data)
        _print_warnings(tape)
        return
    path = output or Path(f"{run_ids[0]}{SUFFIX}")
    require_new(path)
    tape = tape_of(desk, run_ids)
    if len(tape.data) > MAX_CASSETTE_BYTES:
        raise UsageError(
            f"the run's prompts come to {len(tape.data):,} bytes, and a cassette holds {MAX_CASSETTE_BYTES:,}.",
            fix="record a run with fewer rounds or smaller documents",
        )
    write_atomic(path, tape.data)  # for its owner alone
    if as_json:
        told = {"run_id": run_ids[0], "file": str(path), "model": tape.model, "calls": tape.calls}
        told |= {"run_ids": run_ids} if len(run_ids) > 1 else {}
        told |= {"unrendered": tape.unrendered, "forgotten": tape.forgotten, "redacted": tape.redacted}
        typer.echo(readable_json(told))
        return
    calls = f"{tape.calls} call{'s' if tape.calls != 1 else ''}"
    who = f"run {run_ids[0]}" if len(run_ids) == 1 else f"{len(run_ids)} runs"
    typer.echo(f"{path} holds the {calls} that {who} made to {tape.model}.")
    _print_warnings(tape)
    if path.resolve().is_relative_to(desk.home.root) and not path.name.endswith(SUFFIX):
        print_notes(f"agents of this home can read it; named *{SUFFIX} they cannot")
    where = os.path.relpath(path.resolve(), desk.home.root)
    print_notes(f"`council run --model cassette:{where}` answers from it; docs/cassettes.md says more")


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
    print_notes(*notes)
