"""The daemon's judgement of a command file, before it is dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from council.app.reading import build_library
from council.commands.documents import Document, NotACommand, Problem, read_document
from council.commands.models import CommandBase
from council.commands.parsing import validate
from council.commands.recurring import parse_recurring
from council.deliberation.commands import DeliberateCommand
from council.desk.desk import Desk
from council.engine.outputs import written_at
from council.errors import CommandInvalid, CouncilError, PathRefused
from council.knowledge.library import split_range
from council.knowledge.meant import better_fix
from council.storage.drop import is_command_name
from council.storage.paths import ConfinedRoot
from council.upkeep.house import COMMANDS, admission_of

Result = TypeVar("Result")
_DEFAULT_MAX_BYTES = 262_144  # where there is no home to ask
_RECURRING = "recurring"


@dataclass(frozen=True)
class FileVerdict:
    """`problems` keep a file from becoming a run; `warnings` do not. `type` and `output` are empty while unknown."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    type: str = ""
    output: str = ""


def max_command_bytes(desk: Desk | None) -> int:
    """The largest command that the home takes. Raises ConfigError."""
    return _DEFAULT_MAX_BYTES if desk is None else desk.settings.max_command_bytes


def judge(desk: Desk | None, file: Path, data: bytes, *, only_deliberations: bool = False) -> FileVerdict:
    """Judges what `file` holds; without a home only its form. A recurring file is judged as such, with its command of
    this moment. `only_deliberations`: of any other command the form alone is judged, as its drop decides the rest."""
    judging = _Judging(desk, data)
    parsed = judging.parse(file, max_command_bytes(desk))
    if parsed is not None and (isinstance(parsed[1], DeliberateCommand) or not only_deliberations):
        judging.admit(*parsed)
    return FileVerdict(tuple(judging.problems), tuple(judging.warnings), judging.type, judging.output)


def problems_of(error: CouncilError) -> list[Problem]:
    """All problems that an error carries, or the error as one."""
    problems = error.data.get("problems")
    if isinstance(problems, list) and all(isinstance(problem, Problem) for problem in problems):
        return problems
    place = (error.line, error.column) if isinstance(error, CommandInvalid) else (None, None)
    return [Problem(error.message, error.fix, "", *place)]


class _Judging:
    """The findings of one file so far. `type` and `output` are those of `FileVerdict`."""

    def __init__(self, desk: Desk | None, data: bytes) -> None:
        self._desk = desk
        self._data = data
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.type = ""
        self.output = ""

    def parse(self, file: Path, max_bytes: int) -> tuple[Document, CommandBase] | None:
        """The document and its command, None where a problem is in the way."""
        if not is_command_name(file.name):
            fix = "use a plain file name ending in .json, .yaml, .yml or .md"
            self.problems.append(Problem(f"{file.name} is a name that is never read as a command", fix))
        if len(self._data) > max_bytes:
            fix = "put long text into an input artifact, or raise max_command_bytes"
            self.problems.append(Problem(f"the file is larger than {max_bytes} bytes", fix))
        if self.problems:
            return None
        try:
            if file.resolve().parent.name == _RECURRING:
                recurring = parse_recurring(COMMANDS, file.name, self._data)
                document, command = recurring.document, recurring.command_at(datetime.now(UTC))
            else:
                document = read_document(file.name, self._data)
                command = validate(COMMANDS, document)
        except NotACommand:
            fix = "begin it with ---, the keys output_artifact_path, config, …, and ---; the text below is the task"
            self.problems.append(Problem("is no command: its front matter holds none of a command's keys", fix))
            return None
        except CommandInvalid as error:
            self.problems += problems_of(error)
            return None
        self.type = command.type
        return document, command

    def admit(self, document: Document, command: CommandBase) -> None:
        """Makes the checks that only the home can answer, the same as admission does."""
        desk = self._desk
        if desk is None:
            message = "there is no home here, so its paths are not checked"
            self.warnings.append(Problem(message, "name one with --home"))
            return
        admission = self._ask(document, lambda: admission_of(desk.home, desk.store, desk.settings, command))
        self.output = admission.output_path if admission is not None else ""
        if isinstance(command, DeliberateCommand):
            self._check_paths(desk, document, command)

    def _ask(self, document: Document, check: Callable[[], Result]) -> Result | None:
        """The result of the check; None where it refuses, and then the reason is among the problems."""
        try:
            return check()
        except CommandInvalid as error:
            place = document.locate(tuple(error.field.split("."))) if error.field else (None, None)
            message = error.message.removeprefix(f"`{error.field}`").lstrip(": ")
            self.problems.append(Problem(message, error.fix, error.field, *place))
        except CouncilError as error:
            self.problems += problems_of(error)
        return None

    def _check_paths(self, desk: Desk, document: Document, command: DeliberateCommand) -> None:
        """Warns of inputs that cannot be read now, and of a file at the output that no run would replace."""
        with ConfinedRoot(desk.home.root) as root:
            library = build_library(root, desk.settings)
            unreadable = 0
            for index, wanted in enumerate(command.input_artifacts):
                path, first, last = split_range(wanted)
                try:
                    library.read(path, first_line=first, last_line=last)
                except PathRefused as error:
                    unreadable += 1
                    place = document.locate(("input_artifacts", index))
                    fix = better_fix(library, path, error)
                    self.warnings.append(Problem(error.message, fix, f"input_artifacts.{index}", *place))
            if unreadable and unreadable == len(command.input_artifacts):
                message, place = (
                    "no input can be read now, and then the run fails",
                    document.locate(("input_artifacts",)),
                )
                fix = "create one of them, or correct the paths"
                self.warnings.append(Problem(message, fix, "input_artifacts", *place))
            try:
                current = root.sha256(self.output) if self.output else None
            except PathRefused:
                return  # what is there is no file; admission has said what it has to say
        if current is None:
            return
        written = written_at(desk.store, self.output)
        if written is None or current not in written.sha256s:
            message = f"{self.output} is there already, and not as a run left it"
            fix = "it stays as it is, and the decision goes beside it; name another path for one of its own"
            place = document.locate(("output_artifact_path",))
            self.warnings.append(Problem(message, fix, "output_artifact_path", *place))
