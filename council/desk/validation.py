"""The daemon's judgement of a command file, before it is dropped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from council.app.knowledge_tools import build_library, build_texts
from council.budgets.metering import Calibration
from council.commands.file_formats import Document, NotACommand, Problem, located, of_field, problems_of, read_document
from council.commands.models import CommandBase, RunBase
from council.commands.parsing import validate
from council.commands.recurring import parse_recurring
from council.commands.types import CommandType, CommandTypes
from council.desk.desk import Desk
from council.engine.admission import Grant, admission, refusing
from council.engine.outputs import written_at
from council.errors import CommandInvalid, ConfigError, CouncilError, InputUnreadable, PathRefused
from council.knowledge.library import Library, LibraryDocument, better_fix
from council.lines_and_pages import spelled, split_range, unit_of
from council.llm.base import mode_of
from council.storage.command_drop import is_command_name
from council.storage.files import FileLock
from council.turns.model_building import build_model, overruled

_DEFAULT_MAX_BYTES = 262_144  # where there is no home to ask
_RECURRING = "recurring"
ASK_ABOUT = 'To ask about a document, use `council submit --wait --task "…" FILE`'


@dataclass(frozen=True)
class FileVerdict:
    """`problems` keep a file from becoming a run; `warnings` do not. `missing`: the inputs that cannot be read now. `code`:
    of the error with which the daemon would refuse the file, or its run fail as things are. Empty: not known. `model`: the one
    that it names for all agents."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    type: str = ""
    output: str = ""
    missing: tuple[str, ...] = ()
    code: str = ""
    model: str | None = None


def max_command_bytes(desk: Desk | None) -> int:
    """The largest command that the home takes. Raises ConfigError."""
    return _DEFAULT_MAX_BYTES if desk is None else desk.settings.max_command_bytes


def judge(
    types: CommandTypes, desk: Desk | None, file: Path, data: bytes, *, form_of_controls: bool = False
) -> FileVerdict:
    """Judges what `file` holds; without a home only its form. A recurring file is judged as such, with its command of
    this moment. `form_of_controls`: of a control command the form alone is judged, for its handler refuses it, and the audit
    tells."""
    if not is_command_name(file.name):
        fix = f"use a plain file name ending in .json, .yaml, .yml or .md. {ASK_ABOUT}"
        return FileVerdict((Problem(f"{file.name} can never be the name of a command file", fix),))
    if len(data) > (max_bytes := max_command_bytes(desk)):
        fix = "put long text into an input artifact, or raise max_command_bytes"
        return FileVerdict((Problem(f"the file is larger than {max_bytes} bytes", fix),), code=CommandInvalid.code)
    try:
        if file.resolve().parent.name == _RECURRING:
            recurring = parse_recurring(types, file.name, data)
            document, command = recurring.document, recurring.command_at(datetime.now(UTC))
        else:
            document = read_document(file.name, data)
            command = validate(types, document)
    except NotACommand:
        fix = f"begin it with ---, the keys output_artifact_path, config, …, and ---, then the task. {ASK_ABOUT}"
        wrong = "this is not a command file: no front matter with a command's keys begins it"
        return FileVerdict((Problem(wrong, fix),))
    except CommandInvalid as error:
        return FileVerdict(tuple(problems_of(error)), code=error.code)
    if desk is not None and desk.keys.redactor.redact(file.name) != file.name:
        problem = Problem("the file's name has a secret in it", "rename it")
        return FileVerdict((problem,), type=command.type, code=CommandInvalid.code)
    if form_of_controls and types[command.type].is_control:
        return FileVerdict(type=command.type)
    if desk is None:
        unchecked = Problem("there is no home here, so its paths are not checked", "name one with --home")
        return FileVerdict(warnings=(unchecked,), type=command.type)
    verdict = _foreseen(desk, document, command)
    missing: list[str] = []
    type_ = types[command.type]
    warnings = (*verdict.warnings, *_warnings(desk, document, type_, command, verdict, missing))
    lacks_all = missing and type_.output and len(missing) == len(getattr(command, type_.inputs))
    code = verdict.code or (InputUnreadable.code if lacks_all else "")
    named = command.asked_model if isinstance(command, RunBase) else None
    return replace(verdict, warnings=warnings, missing=tuple(missing), code=code, model=named)


def _foreseen(desk: Desk, document: Document, command: CommandBase) -> FileVerdict:
    """The word of the admission, then that of the handler; of a run that would fail a warning."""
    type_, output, failure = desk.commands[command.type], "", None
    try:
        with desk.premises() as premises:
            granted = admission(desk.commands, premises, command)
            if isinstance(granted, Grant):
                output = granted.terms.output_path
                try:
                    type_.foresee(command, premises)
                except CouncilError as error:
                    failure = error
            if failure is not None and type_.is_control:
                with refusing():
                    raise failure
    except CouncilError as error:
        problems = problems_of(error)
        if isinstance(error, CommandInvalid) and error.field and "problems" not in error.data:
            problems = [of_field(error)]
        return FileVerdict(tuple(located(problems, document)), type=type_.name, output=output, code=error.code)
    if failure is None:
        return FileVerdict(type=type_.name, output=output)
    if (key := failure.data.get("missing_key")) and FileLock.holder(desk.home.lock_file) is not None:
        fix = f"without it the run fails: {failure.fix}"
        warning = Problem(f"{key} is not set here, but the daemon may have it", fix)
        return FileVerdict(warnings=(warning,), type=type_.name, output=output)
    warning = Problem(f"as things are, the run would fail: {failure.message}", failure.fix)
    return FileVerdict(warnings=(warning,), type=type_.name, output=output, code=failure.code)


def _warnings(
    desk: Desk, document: Document, type_: CommandType, command: CommandBase, verdict: FileVerdict, missing: list[str]
) -> Iterator[Problem]:
    """Warns of inputs that cannot be read now (they go into `missing`), whose pages cannot all be read, or that are more than
    a model's window holds, and of a file at the output that would stay."""
    output, sizes_chars = verdict.output, dict[str, int]()
    inputs: tuple[str, ...] = getattr(command, type_.inputs) if type_.inputs else ()
    with desk.premises() as premises:
        library = build_library(build_texts(premises.root, desk.settings), desk.settings)
        for index, wanted in enumerate(inputs):
            path, first, last = split_range(wanted)
            place = document.locate((type_.inputs, index))
            try:
                found = library.read(path, first_line=first, last_line=last)
                sizes_chars[wanted] = len(found.text)
                if found.note and unit_of(path) == "page":
                    fix = "to have all of it read, run text recognition (OCR) over it, or save it again in its program"
                    yield Problem(f"`{path}`: {found.note}", fix, f"{type_.inputs}.{index}", *place)
                if found.cut:
                    yield Problem(*_cut_off(library, found, last), f"{type_.inputs}.{index}", *place)
            except PathRefused as error:
                missing.append(wanted)
                message = error.message
                if len(missing) == len(inputs) and type_.output:  # an `ask` goes on without
                    message = f"{message.rstrip('.')}. Without any input, the run would fail"
                yield Problem(message, better_fix(library, path, error), f"{type_.inputs}.{index}", *place)
        if sizes_chars and not (verdict.problems or verdict.code):
            calibration, windows = Calibration(desk.store), list[tuple[int, str]]()
            for spelling in type_.readers(command, premises):
                if mode_of(spelling) == "language-model":
                    try:
                        model = build_model(desk.home, desk.settings, desk.keys, spelling)
                    except ConfigError:  # a key is not here: the daemon may have it, or be given another model
                        continue
                    windows.append((calibration.chars(model.name, model.context_tokens), spelling))
            window_chars, spelling = min(windows, default=(sys.maxsize, ""))
            if (given_chars := sum(sizes_chars.values())) > window_chars:
                message = (
                    f"the inputs have about {given_chars:,} characters, but the window of {spelling} holds about "
                    f"{window_chars:,}. The provider cuts off or refuses what does not fit"
                )
                fix = (
                    "give fewer files or parts of them; or serve the model with a larger context, and set context_tokens "
                    f"in [providers.{spelling.partition(':')[0]}] to what it holds"
                )
                yield Problem(message, fix, type_.inputs, *document.locate((type_.inputs,)))
        asked = command.asked_model if isinstance(command, RunBase) else None
        if told := overruled(asked, desk.settings.chain("", (), asked)):
            fix = "set another `model` in this home, or leave `config.model` out"
            yield Problem(told, fix, "config.model", *document.locate(("config", "model")))
        try:
            current = premises.root.sha256(output) if output else None
        except PathRefused:
            return  # what is there is no file; admission has said what it has to say
    written = written_at(desk.store, output)
    if current is not None and (written is None or current not in written.sha256s):
        message = f"{output} already exists, but not as a run wrote it"
        fix = "it stays unchanged, and the decision goes beside it; to avoid that, name another path"
        yield Problem(message, fix, type_.output, *document.locate((type_.output,)))


def _cut_off(library: Library, found: LibraryDocument, last: int | None) -> tuple[str, str]:
    """Says of an input that is longer than what one may bring what fits, and names a further part that fits as well."""
    path, fix = found.path, "raise max_context_bytes_per_request"
    if found.cut_in_line:
        cut = f"line {found.last_line} of `{path}` is too long: its rest, and all behind it, is cut off"
        return cut, f"break it into lines; or {fix}"
    unit, end = unit_of(path), min(last or found.total_lines, found.total_lines)
    begin = found.last_line + (unit == "line")  # a page may be cut in its middle
    following = library.read(path, first_line=begin, last_line=last)
    whole = following.last_line - (following.cut and (unit == "page" or following.cut_in_line))
    if whole >= begin:
        fix = f"name a part that fits, such as `{spelled(path, begin, whole)}`, as one more input; or {fix}"
    return f"{unit}s {found.first_line} to {found.last_line} of `{path}` fit; the rest, up to {end}, is cut off", fix
