"""`council validate` and `council schema`: the daemon's verdict on a command file, and the schemas for editors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_USAGE, CommandInvalid, CouncilError, HomeNotFound, PathRefused, UsageError
from council.ids import readable_json

if TYPE_CHECKING:
    from council.commands.documents import Document, Problem
    from council.commands.models import CommandBase
    from council.deliberation.commands import DeliberateCommand
    from council.settings import Home

Result = TypeVar("Result")
_DEFAULT_MAX_BYTES = 262_144  # where there is no home to ask
_RECURRING = "recurring"


@dataclass
class Verdict:
    """`problems` keep a file from becoming a run; `warnings` do not."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    type: str = ""
    output: str = ""


def validate(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="The command file; in a folder recurring/, a recurring one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what the daemon would say of a command file, without dropping it."""
    from council.commands.documents import Problem

    cli = state(ctx)
    try:
        home: Home | None = cli.home()
    except HomeNotFound:
        if cli.home_flag is not None or cli.environ.get("COUNCIL_HOME"):
            raise
        home = None
    max_bytes = cli.settings().settings.max_command_bytes if home is not None else _DEFAULT_MAX_BYTES
    try:
        with file.open("rb") as stream:
            data = stream.read(max_bytes + 1)  # one byte more than a command may have is enough to know
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix="name a command file") from None
    verdict = Verdict()
    parsed = _parsed(file, data, max_bytes, verdict)
    if parsed is not None:
        verdict.type = parsed[1].type
        if home is not None:
            _admit(cli, *parsed, verdict)
        else:
            message = "there is no home here, so its paths are not checked"
            verdict.warnings.append(Problem(message, "name one with --home"))
    if as_json:
        shown: dict[str, Any] = {"file": str(file), "valid": not verdict.problems, **asdict(verdict)}
        typer.echo(readable_json(shown, indent=2))
    else:
        typer.echo(told(str(file), verdict))
    if verdict.problems:
        raise typer.Exit(EXIT_USAGE)


def schema(
    ctx: typer.Context,
    recurring: Annotated[bool, typer.Option("--recurring", help="That of commands/recurring/.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write both into commands/.schema/ of the home.")] = False,
) -> None:
    """Print the JSON Schema of command files."""
    from council.commands.schema import COMMAND_SCHEMA_NAME, RECURRING_SCHEMA_NAME, schema_files
    from council.upkeep.house import COMMANDS

    if write:
        for path in write_schemas(state(ctx).home().root):
            typer.echo(f"  + {path}")
        return
    typer.echo(schema_files(COMMANDS)[RECURRING_SCHEMA_NAME if recurring else COMMAND_SCHEMA_NAME].decode(), nl=False)


def write_schemas(home: Path) -> list[Path]:
    """Puts the schemas into `commands/.schema/`: generated files, replaced when they differ.

    Returns the written ones. Raises StorageFailed.
    """
    from council.commands.schema import SCHEMA_FOLDER, schema_files
    from council.storage.files import as_storage_failed, write_atomic
    from council.upkeep.house import COMMANDS

    folder = home / "commands" / SCHEMA_FOLDER
    written = []
    with as_storage_failed(f"Cannot write into {folder}"):
        folder.mkdir(exist_ok=True)
        for name, data in schema_files(COMMANDS).items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                write_atomic(path, data, mode=0o644)
                written.append(path)
    return written


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────


def judged(cli: CliState, name: str, data: bytes) -> Verdict:
    """The verdict on a deliberate command before it is dropped under `name`. Of a control command only the form is
    judged: what it may act on is decided at its drop."""
    from council.deliberation.commands import DeliberateCommand

    verdict = Verdict()
    parsed = _parsed(Path(name), data, cli.settings().settings.max_command_bytes, verdict)
    if parsed is not None and isinstance(parsed[1], DeliberateCommand):
        _admit(cli, *parsed, verdict)
    return verdict


def _parsed(file: Path, data: bytes, max_bytes: int, verdict: Verdict) -> tuple[Document, CommandBase] | None:
    """The document and its command. A recurring file is checked as such, and its command of this moment goes on."""
    from council.commands.documents import NotACommand, Problem, read_document
    from council.commands.parsing import validate
    from council.commands.recurring import parse_recurring
    from council.storage.drop import is_command_name
    from council.upkeep.house import COMMANDS

    if not is_command_name(file.name):
        fix = "use a plain file name ending in .json, .yaml, .yml or .md"
        verdict.problems.append(Problem(f"{file.name} is a name that is never read as a command", fix))
    if len(data) > max_bytes:
        fix = "put long text into an input artifact, or raise max_command_bytes"
        verdict.problems.append(Problem(f"the file is larger than {max_bytes} bytes", fix))
    if verdict.problems:
        return None
    try:
        if file.resolve().parent.name == _RECURRING:
            recurring = parse_recurring(COMMANDS, file.name, data)
            return recurring.document, recurring.command_at(datetime.now(UTC))
        document = read_document(file.name, data)
        return document, validate(COMMANDS, document)
    except NotACommand:
        fix = "begin it with ---, the keys output_artifact_path, config, …, and ---; the text below is the task"
        verdict.problems.append(Problem("is no command: its front matter holds none of a command's keys", fix))
    except CommandInvalid as error:
        verdict.problems += problems_of(error)
    return None


def problems_of(error: CouncilError) -> list[Problem]:
    """All problems that an error carries, or the error as one."""
    from council.commands.documents import Problem

    problems = error.data.get("problems")
    if isinstance(problems, list) and all(isinstance(problem, Problem) for problem in problems):
        return problems
    place = (error.line, error.column) if isinstance(error, CommandInvalid) else (None, None)
    return [Problem(error.message, error.fix, "", *place)]


def _admit(cli: CliState, document: Document, command: CommandBase, verdict: Verdict) -> None:
    """Makes the checks that only the home can answer, the same as admission does."""
    from council.deliberation.commands import DeliberateCommand
    from council.upkeep.house import admission_of

    settings = cli.settings().settings
    admission = _asked(verdict, document, lambda: admission_of(cli.home(), cli.store(), settings, command))
    verdict.output = admission.output_path if admission is not None else ""
    if isinstance(command, DeliberateCommand):
        _check_paths(cli, document, command, verdict)


def _asked(verdict: Verdict, document: Document, check: Callable[[], Result]) -> Result | None:
    """The result of the check; None where it refuses, and then the reason is among the problems."""
    from council.commands.documents import Problem

    try:
        return check()
    except CommandInvalid as error:
        place = document.locate(tuple(error.field.split("."))) if error.field else (None, None)
        message = error.message.removeprefix(f"`{error.field}`").lstrip(": ")
        verdict.problems.append(Problem(message, error.fix, error.field, *place))
    except CouncilError as error:
        verdict.problems += problems_of(error)
    return None


def _check_paths(cli: CliState, document: Document, command: DeliberateCommand, verdict: Verdict) -> None:
    """Warns of inputs that cannot be read now, and of a file at the output that no run would replace."""
    from council.app.reading import build_library
    from council.commands.documents import Problem
    from council.engine.outputs import written_at
    from council.knowledge.library import split_range
    from council.knowledge.meant import better_fix
    from council.storage.paths import ConfinedRoot

    with ConfinedRoot(cli.home().root) as root:
        library = build_library(root, cli.settings().settings)
        unreadable = 0
        for index, wanted in enumerate(command.input_artifacts):
            path, first, last = split_range(wanted)
            try:
                library.read(path, first_line=first, last_line=last)
            except PathRefused as error:
                unreadable += 1
                place = document.locate(("input_artifacts", index))
                fix = better_fix(library, path, error)
                verdict.warnings.append(Problem(error.message, fix, f"input_artifacts.{index}", *place))
        if unreadable and unreadable == len(command.input_artifacts):
            message, place = "no input can be read now, and then the run fails", document.locate(("input_artifacts",))
            fix = "create one of them, or correct the paths"
            verdict.warnings.append(Problem(message, fix, "input_artifacts", *place))
        try:
            current = root.sha256(verdict.output) if verdict.output else None
        except PathRefused:
            return  # what is there is no file; admission has said what it has to say
    if current is None:
        return
    written = written_at(cli.store(), verdict.output)
    if written is None or current not in written.sha256s:
        message = f"{verdict.output} is there already, and not as a run left it"
        fix = "it stays as it is, and the decision goes beside it; name another path for one of its own"
        place = document.locate(("output_artifact_path",))
        verdict.warnings.append(Problem(message, fix, "output_artifact_path", *place))


# ── how it is told ───────────────────────────────────────────────────────────────────────────────────────────────────


def told(file: str, verdict: Verdict) -> str:
    """The findings, and the good news when there is no error among them."""
    lines = [findings(file, verdict)]
    if not verdict.problems:
        output = f", writes {verdict.output}" if verdict.output else ""
        lines.append(f"{file}: ok ({verdict.type}{output})")
    return "\n".join(line for line in lines if line)


def findings(file: str, verdict: Verdict) -> str:
    """One `file:line:column: error: …` per finding, as compilers write it: editors make it a link."""
    lines = []
    for kind, problems in (("error", verdict.problems), ("warning", verdict.warnings)):
        for problem in problems:
            place = f"{file}:{problem.line}:{problem.column}" if problem.line else file
            name = f"`{problem.field}` " if problem.field else ""
            lines += [f"{place}: {kind}: {name}{problem.message}", f"    fix: {problem.fix}" if problem.fix else ""]
    return "\n".join(line for line in lines if line)
