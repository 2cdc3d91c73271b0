"""Golden questions: what a folder asks, and which answers count as right. See docs/evaluation.md for the format.

A folder holds `questions*.yaml` or `questions*.jsonl` and the documents that they name. Everything in it is checked
before the first call; each mistake is told with its file, line and field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from council.commands.file_formats import Document, Problem, read_document
from council.deliberation.stance import MAX_POSITION_CHARS, folded
from council.errors import EXIT_USAGE, CommandInvalid, CouncilError, PathRefused, StorageFailed
from council.ids import sha256_hex
from council.knowledge.library import Library
from council.proposals import nearest
from council.safety.untrusted import plain_line
from council.storage.files import read_limited

MAX_QUESTIONS = 2_000
MAX_FILES = 20
MAX_JSONL_BYTES = 16 << 20
MAX_YAML_BYTES = 1 << 20  # PyYAML takes three seconds over it
_MAX_QUESTION_CHARS = 20_000
_MAX_DOCUMENTS = 16
_MAX_PROBLEMS = 20  # told at once
_NAME = re.compile(r"questions[^/]*\.(?:ya?ml|jsonl)", re.IGNORECASE)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,15}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,30})(?:\.[0-9]{1,30})?")
_ORNAMENTS = " \t\r\n\"'`*“”"  # around an answer, never a part of it

Match = Literal["text", "exact", "number"]


class QuestionsInvalid(CouncilError):
    """A folder whose questions cannot be asked as they stand."""

    code = "questions_invalid"
    exit_code = EXIT_USAGE
    http_status = 422


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    question: Annotated[str, Field(min_length=1, max_length=_MAX_QUESTION_CHARS)]
    choices: dict[str, Annotated[str, Field(min_length=1, max_length=MAX_POSITION_CHARS)]] | None = None
    answer: str | None = None
    accept: Annotated[list[str | int | float] | None, Field(min_length=1, max_length=50)] = None
    match: Match = "text"
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    documents: Annotated[list[str], Field(max_length=_MAX_DOCUMENTS)] = []
    split: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "test"
    why: Annotated[str, Field(max_length=4_000)] = ""


@dataclass(frozen=True)
class Question:
    """One question. With `choices` (label to text) the answer is the label that is `right`; without them it is compared, as
    `match` says, with every text in `right`. No model is shown `why` and `right`."""

    id: str
    text: str
    right: tuple[str, ...]
    choices: dict[str, str] = field(default_factory=dict)
    match: Match = "text"
    tolerance: Decimal = Decimal(0)
    documents: tuple[str, ...] = ()
    split: str = "test"
    why: str = ""

    @cached_property
    def ref(self) -> str:
        """A name for files and lanes that says nothing of the question."""
        return f"q-{sha256_hex(self.id)[:12]}"

    @cached_property
    def task(self) -> str:
        """The question in words, the same for every arm. Names no right answer and no id, which may hint at one."""
        parts = [self.text.strip()]
        form = "the answer in as few words as can be, without a sentence around it"
        if self.choices:
            choices = [f"{label}: {' '.join(text.split())}" for label, text in self.choices.items()]
            parts.append("Choices:\n" + "\n".join(choices))
            form = "the label of one choice, and nothing else"
        elif self.match == "number":
            form = "one number in digits, without a unit and without words"
        return "\n\n".join([*parts, _FORM.format(what=form), f"(Reference: {self.ref})"])

    @cached_property
    def asked(self) -> str:
        """A hash of what is asked and of the names of its documents; labels are no part of it."""
        return sha256_hex("\n".join([self.task, *self.documents]))

    def read(self, said: str) -> str | None:
        """The whole of `said` in the one spelling that is compared and counted; None when it is no answer."""
        bare = said.strip(_ORNAMENTS)
        if self.choices:
            return self._spellings.get(folded(bare))
        if self.match == "number":
            number = as_number(bare)
            return None if number is None else format(number.normalize(), "f")
        return (bare if self.match == "exact" else folded(bare)) or None

    def is_right(self, answer: str | None) -> bool:
        """True when an answer (as `read` gives it) is the right one."""
        if answer is None:
            return False
        if self.match == "number" and not self.choices:
            return any(abs(Decimal(answer) - Decimal(right)) <= self.tolerance for right in self.right)
        return answer in self.right

    @cached_property
    def _spellings(self) -> dict[str, str]:
        return {spelling: label for label, text in self.choices.items() for spelling in spellings_of(label, text)}


_FORM = (
    "Your answer is {what}: as `position` of a stance, and as `answer` of a decision or of a reply in JSON. Reasons belong "
    "elsewhere. State as `confidence`, from 0 to 1, how probable it is that this answer is right."
)


def spellings_of(label: str, text: str) -> set[str]:
    marked = (label, f"({label})", f"{label})", f"{label}:")
    return {
        folded(each)
        for each in (text.strip(_ORNAMENTS), *marked, *(f"{mark} {text}" for mark in (*marked, f"{label}.")))
    }


def as_number(text: str) -> Decimal | None:
    """`1,250.5` as a number; None for what is not one number alone."""
    bare = text.strip().rstrip(".")
    return Decimal(bare.replace(",", "")) if _NUMBER.fullmatch(bare) else None


def load_folder(folder: Path, library: Library) -> list[Question]:
    """All questions in the order of the files. Raises QuestionsInvalid with every problem (the first twenty)."""
    if not folder.is_dir():
        fix = "`council eval --init FOLDER` makes one with an example"
        raise QuestionsInvalid(f"{folder} is not a folder.", fix=fix)
    files = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    if not files:
        fix = "`council eval --init FOLDER` makes a folder with an example"
        raise QuestionsInvalid(f"{folder} has neither questions.yaml nor questions.jsonl.", fix=fix)
    if len(files) > MAX_FILES:
        raise _invalid([f"{folder} has {len(files)} files of questions; at most {MAX_FILES} are read"])
    problems: list[str] = []
    found: dict[str, Question] = {}
    for path in files:
        for entry in _entries(path, problems):
            question = entry.question(problems)
            if question is None:
                continue
            problems += entry.documents_that_fail(question, library)
            if question.id in found:
                problems.append(entry.said(f"is {question.id!r}, which is also the id of another question", "id"))
            found[question.id] = question
        if len(found) > MAX_QUESTIONS:
            raise _invalid([f"{path.name}: there are more than {MAX_QUESTIONS} questions"])
    if not found and not problems:
        problems.append(f"{folder} has no question")
    if problems:
        raise _invalid(problems)
    return list(found.values())


def _invalid(problems: Sequence[str]) -> QuestionsInvalid:
    shown = problems[:_MAX_PROBLEMS]
    left = len(problems) - len(shown)
    told = "\n  ".join([*shown, *([f"and {left} more"] if left else [])])
    return QuestionsInvalid(
        told if len(problems) == 1 else f"{len(problems)} problems:\n  {told}",
        fix="correct the file; docs/evaluation.md has the format",
        problems=list(problems),
    )


@dataclass(frozen=True)
class _PlacedEntry:
    """An entry that knows its place: `value` lies at `loc` of a document whose first line is `first_line` of the file."""

    file: str
    value: Any
    document: Document
    loc: tuple[int | str, ...]
    first_line: int = 1

    def said(self, message: str, *within: int | str) -> str:
        line, column = self.document.locate((*self.loc, *within))
        line = None if line is None else line + self.first_line - 1
        name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in within).removeprefix(".")
        return f"{self.file}: {Problem(message, '', plain_line(name, 100), line, column)}"

    def question(self, problems: list[str]) -> Question | None:
        """Reads a question. None with its problems noted."""
        if not isinstance(self.value, dict):
            problems.append(self.said("a question is an object with the keys id, question and answer or accept"))
            return None
        # YAML reads `yes`, `no` and `1` as something else, and says so in words that help nobody.
        no_text = "which YAML does not read as text: put it in quotes"
        choices, answer = self.value.get("choices"), self.value.get("answer")
        labels = [label for label in choices if not isinstance(label, str)] if isinstance(choices, dict) else []
        mistyped = [self.said(f"has the label {label!r}, {no_text}", "choices") for label in labels]
        if answer is not None and not isinstance(answer, str):
            mistyped.append(self.said(f"is {answer!r}, {no_text}", "answer"))
        if mistyped:
            problems += mistyped
            return None
        try:
            entry = _Entry.model_validate(self.value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                loc = tuple(part for part in detail["loc"] if part not in ("str", "int", "float", "[key]"))
                message = f"does not fit: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
                if detail["type"] == "missing":
                    loc, message = loc[:-1], f"`{loc[-1]}` is missing"
                elif detail["type"] == "extra_forbidden":
                    near = nearest(loc[-1], _Entry.model_fields)
                    hint = f"did you mean {near!r}?" if near else f"known keys: {', '.join(_Entry.model_fields)}"
                    message = f"is not a known key; {hint}"
                problems.append(self.said(message, *loc))
            return None
        faults = list(self._faults(entry))
        problems += faults
        if faults:
            return None
        question = Question(
            id=entry.id,
            text=entry.question,
            right=(),
            choices=entry.choices or {},
            match=entry.match,
            tolerance=Decimal(str(entry.tolerance)),
            documents=tuple(dict.fromkeys(path.removeprefix("./") for path in entry.documents)),
            split=entry.split,
            why=entry.why,
        )
        given = [entry.answer or ""] if entry.choices else [str(right) for right in entry.accept or ()]
        right = tuple(answer for answer in map(question.read, given) if answer is not None)
        return replace(question, right=right)

    def _faults(self, entry: _Entry) -> Iterator[str]:
        if not entry.question.strip():
            yield self.said("is blank", "question")
        if (entry.choices is None) == (entry.accept is None):
            yield self.said("has either `choices` with an `answer`, or `accept`")
        elif entry.choices is not None:
            labels = ", ".join(entry.choices)
            if not 2 <= len(entry.choices) <= 26:
                yield self.said(f"has {len(entry.choices)} choices; 2 to 26 are allowed", "choices")
            for label in entry.choices:
                if not _LABEL.fullmatch(label):
                    yield self.said(f"has the label {label[:40]!r}; a label is a short word such as A", "choices")
            if entry.answer is None:
                yield self.said("`answer` is missing: the label of the right choice")
            elif entry.answer not in entry.choices:
                yield self.said(f"is {entry.answer[:40]!r}, which is none of the labels {labels}", "answer")
            if entry.match != "text" or entry.tolerance:
                yield self.said(
                    "goes with `accept`, not with `choices`", "match" if entry.match != "text" else "tolerance"
                )
            seen: dict[str, str] = {}
            for label, text in entry.choices.items():
                for spelling in spellings_of(label, text):
                    if seen.setdefault(spelling, label) != label:
                        yield self.said(
                            f"cannot be told apart: {spelling[:40]!r} names both {seen[spelling]} and {label}",
                            "choices",
                        )
        elif entry.accept is not None:
            if entry.answer is not None:
                yield self.said("goes with `choices`; `accept` lists the right answers", "answer")
            if entry.tolerance and entry.match != "number":
                yield self.said("goes with `match: number`", "tolerance")
            for at, right in enumerate(entry.accept):
                text = str(right)
                if entry.match == "number" and as_number(text) is None:
                    yield self.said(f"is {text[:40]!r}, which is not a number", "accept", at)
                elif not text.strip(_ORNAMENTS) or len(text) > MAX_POSITION_CHARS:
                    yield self.said(f"must be from 1 to {MAX_POSITION_CHARS} characters", "accept", at)

    def documents_that_fail(self, question: Question, library: Library) -> Iterator[str]:
        for at, path in enumerate(question.documents):
            try:
                library.read(path)
            except (PathRefused, StorageFailed) as error:
                yield self.said(f"is {path[:100]!r}: {error.message}", "documents", at)


def _entries(path: Path, problems: list[str]) -> Iterator[_PlacedEntry]:
    is_lines = path.suffix.lower() == ".jsonl"
    try:
        data = read_limited(path, MAX_JSONL_BYTES if is_lines else MAX_YAML_BYTES)
    except StorageFailed as error:
        fix = "" if is_lines else " Write a large set as questions.jsonl, one question a line."
        problems.append(f"{path.name}: {error.message}{fix}")
        return
    if is_lines:
        for number, line in enumerate(data.split(b"\n"), start=1):
            if line.strip():
                yield from _parsed(path.name, "line.json", line, number, problems)
    else:
        yield from _parsed(path.name, path.name, data, 1, problems)


def _parsed(file: str, kind: str, data: bytes, first_line: int, problems: list[str]) -> Iterator[_PlacedEntry]:
    try:
        document = read_document(kind, data)
    except CommandInvalid as error:
        for each in cast(list[Problem], error.data["problems"]):
            line = None if each.line is None else each.line + first_line - 1
            hint = "" if kind == "line.json" else f" ({each.fix})"
            problems.append(f"{file}: {Problem(each.message, '', each.field, line, each.column)}{hint}")
        return
    if kind == "line.json":
        yield _PlacedEntry(file, document.value, document, (), first_line)
    elif not isinstance(document.value, list):
        problems.append(f"{file}: line 1: the file must be a list of questions, each beginning with `- id: …`")
    else:
        for at, value in enumerate(document.value):
            yield _PlacedEntry(file, value, document, (at,), first_line)
