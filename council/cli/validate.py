"""`council validate` and `council schema`: the daemon's judgement of a command file, and the schemas for editors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import AsJson, state
from council.cli.given_files import beginning_of
from council.commands.schema import COMMAND_SCHEMA_NAME, RECURRING_SCHEMA_NAME, SCHEMA_FOLDER, schema_files
from council.commands.types import CommandTypes
from council.desk.desk import Desk
from council.desk.validation import FileVerdict, judge, max_command_bytes
from council.errors import EXIT_FAILED, EXIT_USAGE, HomeNotFound
from council.ids import readable_json
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
    typer.echo(
        schema_files(cli.commands)[RECURRING_SCHEMA_NAME if recurring else COMMAND_SCHEMA_NAME].decode(), nl=False
    )


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
    """The findings, and the good news when there is no error among them."""
    lines = [findings(file, judgement)]
    if not judgement.problems:
        inputs = len(judgement.missing)
        missing = "" if not inputs else f", but {'an input' if inputs == 1 else f'{inputs} inputs'} cannot be read now"
        output = f", writes {judgement.output}" if judgement.output else ""
        lines.append(f"{file}: ok ({judgement.type}{output}){missing}")
    return "\n".join(line for line in lines if line)


def findings(file: str, judgement: FileVerdict) -> str:
    """One `file:line:column: error: …` per finding, as compilers write it: editors make it a link."""
    lines = []
    for kind, problems in (("error", judgement.problems), ("warning", judgement.warnings)):
        for problem in problems:
            place = f"{file}:{problem.line}:{problem.column}" if problem.line else file
            lines += [f"{place}: {kind}: {problem.sentence}", f"    fix: {problem.fix}" if problem.fix else ""]
    return "\n".join(line for line in lines if line)
