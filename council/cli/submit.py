"""`council submit`: the command line's way to drop a command file."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from council.cli.context import AsJson, state
from council.cli.given_files import beginning_of, require_no_question
from council.cli.run_control import print_answer
from council.cli.validate import findings
from council.cli.waiting import require_own_model, wait_for
from council.commands.file_formats import Problem
from council.desk.desk import Desk
from council.desk.drop_and_wait import Errand
from council.desk.validation import ASK_ABOUT, FileVerdict, judge
from council.errors import EXIT_REFUSED, EXIT_USAGE, STATUS_EXIT, GuardrailBlocked, UsageError
from council.ids import readable_json
from council.settings.home import path_in_home
from council.storage.command_drop import drop, lying_there, require_command_name
from council.storage.files import FileLock

_MAX_BYTES = 1 << 20  # no home can be set to take a larger command
_TASK_NAME = "task.json"
_ASKED = {"task_description": "--task", "input_artifacts": "FILE", "output_artifact_path": "--output"}
_DEFAULT_OUTPUT = "artifacts/"  # ends in a slash: a page named after the task


def submit(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="The command file; - reads JSON from standard input. With --task: the documents to read, as many as you like.",
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TEXT", help="Instead of a command file: the question for the council."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="With --task: where the decision goes. Default: in artifacts/."
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=100, help="With --task: at most this many rounds.")] = None,
    name: Annotated[str | None, typer.Option(help="The name to drop it under. Default: its own.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end and print the answer.")] = False,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="How long --wait waits, in seconds.")] = 3600.0,
    model: Annotated[str | None, typer.Option(help="With --wait and no daemon: the model to use.")] = None,
    as_json: AsJson = False,
) -> None:
    desk = state(ctx).desk(model=model)
    home = desk.home
    if task is not None:
        command: dict[str, Any] = {
            "task_description": task,
            "input_artifacts": [path_in_home(document, home.root) for document in files or []],
            "output_artifact_path": _DEFAULT_OUTPUT if output is None else path_in_home(output, home.root),
        }
        if rounds is not None:
            command["config"] = {"max_rounds": rounds}
        data = (json.dumps(command, indent=2, ensure_ascii=False) + "\n").encode()
        shown, own_name = "", _TASK_NAME  # nobody wrote that file
    elif output is not None or rounds is not None:
        raise UsageError("--output and --rounds go with --task.", fix="write them into the command file")
    else:
        shown, own_name, data = _read(files or [])
    name = name or own_name
    verdict = _require_command(desk, shown, name, data, as_json, readable=task is not None)
    there = lying_there(home.commands, Path(shown), data) if (task, name) == (None, own_name) else None
    if wait:
        require_own_model(desk, model)
        (asked, *_) = desk.settings.chain("", (), verdict.model)
        if desk.commands[verdict.type].asks_no_model:
            asked = "offline"
        elif desk.ledger.unfinished():  # one before it may need the home's own
            asked = desk.settings.model
        receipt = wait_for(desk, Errand(desk, name, data, there), timeout_s, quiet=as_json, model=asked)
        if as_json:
            typer.echo(readable_json(msgspec.to_builtins(receipt)))
        else:
            typer.echo("", err=True)  # between how it went and the answer
            print_answer(state(ctx), receipt)
        refused = receipt.error is not None and receipt.error.code == GuardrailBlocked.code
        raise typer.Exit(EXIT_REFUSED if refused else STATUS_EXIT[receipt.status])
    holder = FileLock.holder(home.lock_file)
    dropped = there or drop(home.commands, name, data)
    if as_json:
        typer.echo(json.dumps({"file": str(dropped.path), "sha256": dropped.sha256, "daemon": holder}))
        return
    place = os.path.relpath(dropped.path)
    typer.echo(f"Dropped {place}." if there is None else f"{place} is already in the inbox.")
    if holder is None or holder.get("leaves"):
        typer.echo("No daemon is running in this home: it waits there until you start `council run`.")
    else:
        typer.echo(f"The daemon (pid {holder.get('pid', '?')}) will run it; see `council status`.")


def _read(files: list[str]) -> tuple[str, str, bytes]:
    """The one command file: its name in messages, the name to drop it under, and its bytes. Raises UsageError."""
    require_no_question(files)
    if len(files) == 1 and os.path.isdir(files[0]):
        raise UsageError(
            f"{files[0]} is a folder.",
            fix=f'name one command file in it, or ask about its documents: `council submit --task "…" {files[0].rstrip("/")}/*`',
        )
    if len(files) != 1:
        message = "more than one command file is named." if files else "no command file is named."
        fix = '`council submit FILE`, or `council submit --task "…" DOCUMENT …` to do without one'
        raise UsageError(message, fix=fix)
    if files[0] == "-":
        return "standard input", "command.json", sys.stdin.buffer.read(_MAX_BYTES + 1)
    return files[0], Path(files[0]).name, beginning_of(Path(files[0]), _MAX_BYTES, "name a command file")


def _require_command(desk: Desk, shown: str, name: str, data: bytes, as_json: bool, *, readable: bool) -> FileVerdict:
    """Says at once what the daemon would say. A fault that may be mended until its turn, such as an input that is not
    there yet, is a warning; with `readable` it is a problem. Raises PathRefused, typer.Exit."""
    require_command_name(name, f". {ASK_ABOUT}")
    judgement = judge(desk.commands, desk, Path(name), data, form_of_controls=True)
    redact = desk.keys.redactor.redact
    if readable:
        named = enumerate(json.loads(data)["input_artifacts"])
        fields = {f"input_artifacts.{index}" for index, wanted in named if wanted in judgement.missing}
        unreadable = tuple(each for each in judgement.warnings if each.field in fields)
        others = tuple(each for each in judgement.warnings if each.field not in fields)
        problems = tuple(map(_as_asked, (*judgement.problems, *unreadable)))
        judgement = replace(judgement, problems=problems, warnings=tuple(map(_as_asked, others)))
    if said := findings(shown, judgement):
        typer.echo(redact(said), err=True)
    if judgement.problems:
        if as_json:
            told = {"file": shown, "dropped": False, "problems": [asdict(each) for each in judgement.problems]}
            typer.echo(redact(json.dumps(told)))
        else:
            typer.echo("Nothing was dropped.", err=True)
        raise typer.Exit(EXIT_USAGE)
    return judgement


def _as_asked(problem: Problem) -> Problem:
    """A fault of the command in the words of the command line; what is said of a single document names it."""
    is_document = problem.field.startswith("input_artifacts.")
    field = "" if is_document else _ASKED.get(problem.field, problem.field)
    return replace(problem, field=field, line=None, column=None)
