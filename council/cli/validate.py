"""`council validate`, `check` and `schema`: a file judged before anything is run, and the schemas for editors."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from council.agents.manifest import DEFAULT_TOOLS
from council.cli.context import AsJson, state, tell
from council.cli.given_files import beginning_of, require_no_question
from council.commands.schema import COMMAND_SCHEMA_NAME, RECURRING_SCHEMA_NAME, SCHEMA_FOLDER, schema_files
from council.commands.types import CommandTypes
from council.desk.desk import Desk
from council.desk.guardrail_check import CheckedKind, check_text
from council.desk.validation import FileVerdict, judge, max_command_bytes
from council.errors import EXIT_FAILED, EXIT_REFUSED, EXIT_USAGE, HomeNotFound, UsageError
from council.ids import readable_json
from council.safety.untrusted import plain_line
from council.storage.files import as_storage_failed, write_atomic


def validate(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="The command file; in a folder recurring/, a recurring one.")],
    as_json: AsJson = False,
) -> None:
    cli = state(ctx)
    desk: Desk | None = None
    try:
        desk = cli.desk()
    except HomeNotFound:
        if cli.home_flag is not None or cli.environ.get("COUNCIL_HOME"):
            raise
    require_no_question([str(file)])
    judgement = judge(cli.commands, desk, file, beginning_of(file, max_command_bytes(desk), "name a command file"))
    if as_json:
        verdict = {"file": str(file), "valid": not judgement.problems, **asdict(judgement)}
        typer.echo(cli.redact(readable_json(verdict, indent=2)))
    else:
        typer.echo(cli.redact(told(str(file), judgement)))
    if judgement.problems:
        raise typer.Exit(EXIT_USAGE)
    if judgement.missing or judgement.code:
        raise typer.Exit(EXIT_FAILED)


def schema(
    ctx: typer.Context,
    recurring: Annotated[bool, typer.Option("--recurring", help="The schema of recurring commands.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Write both schemas into commands/.schema/ of the home.")
    ] = False,
) -> None:
    cli = state(ctx)
    if write:
        for path in write_schemas(cli.commands, cli.desk().home.root):
            typer.echo(f"  + {path}")
        return
    name = RECURRING_SCHEMA_NAME if recurring else COMMAND_SCHEMA_NAME
    typer.echo(schema_files(cli.commands)[name].decode(), nl=False)


def write_schemas(types: CommandTypes, home: Path) -> list[Path]:
    """Into `commands/.schema/`, where they differ. Raises StorageFailed."""
    folder = home / "commands" / SCHEMA_FOLDER
    written = []
    with as_storage_failed(f"Cannot write into {folder}"):
        folder.mkdir(exist_ok=True)
        for name, data in schema_files(types).items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                write_atomic(path, data, mode=0o644)
                written.append(path)
    return written


def told(file: str, judgement: FileVerdict) -> str:
    """The findings, and what the exit code says of a file with no error among them."""
    lines = [findings(file, judgement)]
    if not judgement.problems:
        inputs = len(judgement.missing)
        lacks = f"{'an input' if inputs == 1 else f'{inputs} inputs'} cannot be read now" if inputs else ""
        why = "the run would fail" if judgement.code else lacks
        output = f", writes {judgement.output}" if judgement.output else ""
        lines.append(f"{file}: {'not ready' if why else 'ok'} ({judgement.type}{output}){': ' if why else ''}{why}")
    return "\n".join(line for line in lines if line)


def findings(file: str, judgement: FileVerdict) -> str:
    """One `file:line:column: error: …` per finding, as compilers write it: editors make it a link. Without a file the place
    is left out."""
    lines = []
    for kind, problems in (("error", judgement.problems), ("warning", judgement.warnings)):
        for problem in problems:
            place = f"{file}:{problem.line}:{problem.column}: " if problem.line else f"{file}: " if file else ""
            lines += [f"{place}{kind}: {problem.sentence}", f"    fix: {problem.fix}" if problem.fix else ""]
    return "\n".join(line for line in lines if line)


_MAX_BYTES = 1 << 20


def check(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Python code, a persona or agent spec, a command, or any text.")],
    kind: Annotated[CheckedKind, typer.Option("--as", help="How to judge it; auto decides by the file.")] = "auto",
    as_json: AsJson = False,
) -> None:
    if os.path.exists(file) and not file.is_file():  # Path.exists raises for a name that is too long
        raise UsageError(f"{file} is not a regular file.", fix="name a text file")
    data = beginning_of(file, _MAX_BYTES, "name a text file")
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{file} is larger than {_MAX_BYTES} bytes.", fix="split it")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 (byte {error.start}).", fix="save it as UTF-8") from None
    cli = state(ctx)
    try:
        desk = cli.desk()
        scope, tools = tuple(desk.settings.scope_topics), desk.reading_tools
    except HomeNotFound:
        if cli.home_flag is not None:
            raise
        scope, tools = (), lambda: DEFAULT_TOOLS  # outside of any home everything is in scope
    judged_as, findings = check_text(file, text, kind, scope, tools)
    blocked = any(finding.blocks for finding in findings)
    told = {"file": str(file), "as": judged_as, "passed": not blocked}
    first = f"{plain_line(str(file), 300)}: {'refused' if blocked else 'ok'} (as {judged_as})"
    lines = [first, *(f"  {finding.line}" for finding in findings)]
    tell(told | {finding.by: finding.told for finding in findings}, lines, as_json=as_json)
    if blocked:
        raise typer.Exit(EXIT_REFUSED)
