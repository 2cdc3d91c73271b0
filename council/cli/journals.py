"""`council replay`, `diff`, `journal`, `cassette`: what the journals of runs hold."""

from __future__ import annotations

import difflib
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from council.cli.context import AsJson, CliState, Run, columns, print_notes, state
from council.cli.given_files import from_home, require_new
from council.desk.replays import imported, questions_of, replayed, tape_of
from council.desk.run_lookup import find_any, find_ended, journal_of, require_journal
from council.errors import EXIT_FAILED, UsageError
from council.ids import escape_unseen, readable_json
from council.llm.cassette import MAX_CASSETTE_BYTES, SUFFIX, CassetteCall
from council.markup import equal_at_start
from council.reports.cassette_export import Tape
from council.reports.diff import diff as compare
from council.reports.diff import text_of, words_of
from council.reports.journal_terminal import show
from council.safety.untrusted import clean
from council.storage.files import read_limited, write_atomic

_MAX_IMPORT_BYTES = 1 << 30
_CONTEXT_LINES = 3
_MAX_COMPARED_LINES = 2_000  # on each side, behind what is equal: difflib is quadratic
_MAX_SHOWN_LINES = 60
_NOT_KEPT = "the prompt contained the agents' memory at that time, which is not kept."


def replay(
    ctx: typer.Context,
    run: Run = "last",
    check: Annotated[bool, typer.Option("--check", help="Only say whether the page on disk is the same.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the page in it.")] = False,
) -> None:
    desk = state(ctx).desk()
    again = replayed(desk, find_ended(desk, run))
    shown, found, same = again.shown, again.found, again.found is not None
    if as_json:
        told = {"run_id": again.run_id, "artifact": found or shown, "same": same}
        typer.echo(readable_json(told | {"page": again.page.decode("utf-8", "replace")}))
        return
    if not check:
        sys.stdout.buffer.write(again.page)
        return
    if found in (None, shown):
        differs = "differs from the journal: it was edited, or another version of Council wrote it"
        differs = differs if again.is_here else "of this run is not here; only its journal is"
        typer.echo(f"{shown} {'matches the journal' if same else differs}.")
    else:
        typer.echo(f"{shown} belongs to a later run now; {found}, kept from before, matches the journal.")
    raise typer.Exit(0 if same else EXIT_FAILED)


def diff(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(help="A run's id or its first characters.")],
    second: Annotated[str, typer.Argument(help="Another run's id, its first characters, or `last`.")],
    as_json: AsJson = False,
) -> None:
    cli = state(ctx)
    desk = cli.desk()
    one, other = (journal_of(desk, find_ended(desk, given)) for given in (first, second))
    questions = questions_of(desk, one, other)
    found = compare(one, other, questions.alike)
    names, step = (first, second), found.first_step
    known = step in questions.first and step in questions.second
    why_not = "" if known else questions.why_not or _NOT_KEPT
    if as_json:
        told = {**asdict(found), "sentence": found.sentence}
        if found.kind == "question":
            told["first_prompt"] = _prompt(questions.first.get(step))
            told["second_prompt"] = _prompt(questions.second.get(step))
            told["why_not"] = why_not
        typer.echo(readable_json(told))
        return
    typer.echo(found.sentence)
    if found.kind == "question" and known:
        before, after = (text_of(asked[step]) for asked in (questions.first, questions.second))
        typer.echo("")
        show_difference(cli, names, (before, after))
    elif found.kind == "question":
        typer.echo(f"The prompts cannot be shown: {why_not}")
    if found.first_answer or found.second_answer:
        answers = (found.first_answer, found.second_answer)
        before, after = map(words_of, answers)
        if before == after and found.kind == "answer":  # what differs is beside the words
            before, after = (readable_json(json.loads(answer), indent=2) for answer in answers)
        if before == after:
            typer.echo("\nBoth got the same answer.")
        else:
            typer.echo("\nWhat came back:\n")
            show_difference(cli, names, (before, after))


def _prompt(call: CassetteCall | None) -> dict[str, object] | None:
    if call is None:
        return None
    messages = [{"role": message.role, "text": message.text} for message in call.messages or ()]
    return {"system": call.system, "messages": messages}


def journal(
    ctx: typer.Context,
    run: Run = "last",
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per record, whole.")] = False,
    import_: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Import a run that --jsonl printed, to replay it here."),
    ] = None,
) -> None:
    cli = state(ctx)
    desk = cli.desk()
    if import_ is not None:
        source = ctx.get_parameter_source("run")
        if as_jsonl or (source is not None and source.name == "COMMANDLINE"):
            fix = "leave them out: the file names its run"
            raise UsageError("--import goes with neither RUN nor --jsonl.", fix=fix)
        fix = "name a file that `council journal --jsonl` printed"
        try:
            data = read_limited(import_, _MAX_IMPORT_BYTES)
        except FileNotFoundError:
            what = "--import cannot read standard input" if str(import_) == "-" else f"{import_} does not exist"
            raise UsageError(f"{what}.", fix=fix) from None
        header = imported(desk, data, time.time_ns())
        typer.echo(f"Run {header.run_id} is imported: `council replay {header.run_id}` renders its page.")
        return
    run_id = find_any(desk, run)
    require_journal(desk, run_id)
    records = desk.ledger.records(run_id)
    if not as_jsonl:
        show(records, sys.stdout, columns=columns(), coloured=cli.coloured, zone=desk.zone)
        return
    for record in records:  # byte for byte as they were recorded, but harmless on a terminal
        line = msgspec.json.encode(record)
        if sys.stdout.isatty():
            line = escape_unseen(line.decode()).encode()
        sys.stdout.buffer.write(line + b"\n")


def cassette(
    ctx: typer.Context,
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs by their ids or first characters, or `last`.", show_default="last"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The output file. Default: <run>.cassette.jsonl in this folder. `-`: standard output.",
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
        sys.stdout.buffer.write(tape.data())
        _print_warnings(tape)
        return
    path = output or Path(f"{run_ids[0]}{SUFFIX}")
    require_new(path)
    tape = tape_of(desk, run_ids)
    data, models, count = tape.data(), ", ".join(tape.models), len(tape.cassette.calls)
    if len(data) > MAX_CASSETTE_BYTES:
        fix = "record a run with fewer rounds or smaller documents"
        size = f"{len(data):,} bytes, and a cassette holds {MAX_CASSETTE_BYTES:,}"
        raise UsageError(f"the run's prompts come to {size}.", fix=fix)
    write_atomic(path, data)  # for its owner alone
    if as_json:
        told = {"run_id": run_ids[0], "file": str(path), "model": models, "calls": count}
        told |= {"run_ids": run_ids} if len(run_ids) > 1 else {}
        told |= {"unrendered": tape.unrendered, "forgotten": tape.forgotten, "redacted": tape.cassette.header.redacted}
        typer.echo(readable_json(told))
        return
    calls = f"{count} call{'s' if count != 1 else ''}"
    who = f"run {run_ids[0]}" if len(run_ids) == 1 else f"{len(run_ids)} runs"
    typer.echo(f"{path} holds the {calls} that {who} made to {models}.")
    _print_warnings(tape)
    if path.resolve().is_relative_to(desk.home.root) and not path.name.endswith(SUFFIX):
        print_notes(f"agents of this home can read this file, unless its name ends in {SUFFIX}")
    model = f"cassette:{from_home(path, desk.home.root)}"
    print_notes(f"`council run --model {model}` answers from it; docs/cassettes.md says more")


def _print_warnings(tape: Tape) -> None:
    notes = [
        "it contains every full prompt: personas, memory and all that agents read. Give it only to people who may see these"
    ]
    if redacted := tape.cassette.header.redacted:
        notes.append(f"a key was removed from {redacted} of the calls; their words differ from those that were sent")
    if tape.unrendered:
        notes.append(f"for {', '.join(tape.unrendered)} only the reply is kept: the memory in the prompt has changed")
    if tape.forgotten:
        count = len(tape.forgotten)
        notes.append(f"words were forgotten in {count} of the prompts since then; the rest of these prompts is kept")
    print_notes(*notes)


def show_difference(cli: CliState, names: tuple[str, str], texts: tuple[str, str]) -> None:
    """Prints what `diff -u` would, from where the two begin to differ."""
    olds, news = (clean(text).split("\n") for text in texts)
    start = max(0, equal_at_start(olds, news) - _CONTEXT_LINES)
    olds, news = (text[start : start + _MAX_COMPARED_LINES] for text in (olds, news))
    lines = list(difflib.unified_diff(olds, news, *names, n=_CONTEXT_LINES, lineterm=""))
    for line in lines[:_MAX_SHOWN_LINES]:
        typer.echo(cli.difference(line, line))
    if len(lines) > _MAX_SHOWN_LINES:
        typer.echo(f"… and {len(lines) - _MAX_SHOWN_LINES} more lines; --json has both prompts whole")
