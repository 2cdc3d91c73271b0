"""Golden questions: what a folder asks, and which answers count as right. See docs/evaluation.md for the format.

A folder holds `questions*.yaml` or `questions*.jsonl` and the documents that they name. Everything in it is checked
before the first call; each mistake is told with its file, question and field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from council.commands.file_formats import problems_of, read_document
from council.commands.parsing import fault_in_words
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


def _text(value: object) -> object:
    if not isinstance(value, str):  # `yes`, `no` and `1`
        raise ValueError(f"is {value!r}, which YAML does not read as text: put it in quotes")
    return value


_Text = Annotated[str, BeforeValidator(_text)]


class Question(BaseModel):
    """One question. With `choices` (label to text) the right `answer` is a label; without them an answer is compared, as
    `match` says, with every text in `accept`. No model is shown these and `why`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    question: Annotated[str, Field(min_length=1, max_length=_MAX_QUESTION_CHARS)]
    choices: dict[_Text, Annotated[str, Field(min_length=1, max_length=MAX_POSITION_CHARS)]] | None = None
    answer: _Text | None = None
    accept: Annotated[list[str | int | float] | None, Field(min_length=1, max_length=50)] = None
    match: Match = "text"
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    documents: Annotated[list[str], Field(max_length=_MAX_DOCUMENTS)] = []
    split: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "test"
    why: Annotated[str, Field(max_length=4_000)] = ""

    @field_validator("documents")
    @classmethod
    def _once_each(cls, documents: list[str]) -> list[str]:
        return list(dict.fromkeys(path.removeprefix("./") for path in documents))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if faults := "; ".join(self._faults()):
            raise ValueError(faults)
        return self

    def _faults(self) -> Iterator[str]:
        if not self.question.strip():
            yield "`question` is blank"
        if (self.choices is None) == (self.accept is None):
            yield "has either `choices` with an `answer`, or `accept`"
        elif self.choices is not None:
            if not 2 <= len(self.choices) <= 26:
                yield f"`choices` has {len(self.choices)} choices; 2 to 26 are allowed"
            for label in self.choices:
                if not _LABEL.fullmatch(label):
                    yield f"`choices` has the label {label[:40]!r}; a label is a short word such as A"
            if self.answer is None:
                yield "`answer` is missing: the label of the right choice"
            elif self.answer not in self.choices:
                yield f"`answer` is {self.answer[:40]!r}, which is none of the labels {', '.join(self.choices)}"
            if self.match != "text" or self.tolerance:
                yield f"`{'match' if self.match != 'text' else 'tolerance'}` goes with `accept`, not with `choices`"
            seen: dict[str, str] = {}
            for label, text in self.choices.items():
                for spelling in spellings_of(label, text):
                    if (other := seen.setdefault(spelling, label)) != label:
                        yield f"`choices` cannot be told apart: {spelling[:40]!r} names both {other} and {label}"
        elif self.accept is not None:
            if self.answer is not None:
                yield "`answer` goes with `choices`; `accept` lists the right answers"
            if self.tolerance and self.match != "number":
                yield "`tolerance` goes with `match: number`"
            for at, text in enumerate(map(str, self.accept)):
                if self.match == "number" and as_number(text) is None:
                    yield f"`accept[{at}]` is {text[:40]!r}, which is not a number"
                elif not text.strip(_ORNAMENTS) or len(text) > MAX_POSITION_CHARS:
                    yield f"`accept[{at}]` must be from 1 to {MAX_POSITION_CHARS} characters"

    @cached_property
    def right(self) -> tuple[str, ...]:
        """The right answers, spelled as `read` gives them."""
        given = [self.answer or ""] if self.choices else [str(right) for right in self.accept or ()]
        return tuple(answer for answer in map(self.read, given) if answer is not None)

    @cached_property
    def ref(self) -> str:
        """A name for files and lanes that says nothing of the question."""
        return f"q-{sha256_hex(self.id)[:12]}"

    @cached_property
    def task(self) -> str:
        """The question in words, the same for every arm. Names no right answer and no id, which may hint at one."""
        parts = [self.question.strip()]
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
            tolerance = Decimal(str(self.tolerance))
            return any(abs(Decimal(answer) - Decimal(right)) <= tolerance for right in self.right)
        return answer in self.right

    @cached_property
    def _spellings(self) -> dict[str, str]:
        choices = (self.choices or {}).items()
        return {spelling: label for label, text in choices for spelling in spellings_of(label, text)}


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
        for place, entry in _entries(path, problems):
            try:
                question = Question.model_validate(entry)
            except ValidationError as error:
                problems += [f"{place}: {_told(detail)}" for detail in error.errors(include_url=False)]
                continue
            for at, document in enumerate(question.documents):
                try:
                    library.read(document)
                except (PathRefused, StorageFailed) as error:
                    problems.append(f"{place}: `documents[{at}]` is {document[:100]!r}: {error.message}")
            if question.id in found:
                problems.append(f"{place}: `id` is {question.id!r}, which is also the id of another question")
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


def _entries(path: Path, problems: list[str]) -> Iterator[tuple[str, object]]:
    """Each entry of a file with its place. Notes what cannot be read."""
    is_lines = path.suffix.lower() == ".jsonl"
    try:
        data = read_limited(path, MAX_JSONL_BYTES if is_lines else MAX_YAML_BYTES)
    except StorageFailed as error:
        fix = "" if is_lines else " Write a large set as questions.jsonl, one question a line."
        problems.append(f"{path.name}: {error.message}{fix}")
        return
    if is_lines:
        for number, line in enumerate(data.split(b"\n"), start=1):
            place = f"{path.name}: line {number}"
            try:
                if line.strip():
                    entry = read_document("line.json", line).value
                    yield f"{place}{_id_of(entry)}", entry
            except CommandInvalid as error:
                problems += [f"{place}, column {each.column}: {each.sentence}" for each in problems_of(error)]
        return
    try:
        entries = read_document(path.name, data).value
    except CommandInvalid as error:
        problems += [f"{path.name}: {each} ({each.fix})" for each in problems_of(error)]
        return
    if not isinstance(entries, list):
        problems.append(f"{path.name}: line 1: the file must be a list of questions, each beginning with `- id: …`")
        return
    for number, entry in enumerate(entries, start=1):
        yield f"{path.name}: question {number}{_id_of(entry)}", entry


def _id_of(entry: object) -> str:
    id_ = entry.get("id") if isinstance(entry, dict) else None
    return f" ({plain_line(id_, 64)})" if isinstance(id_, str) else ""


def _told(detail: ErrorDetails) -> str:
    kinds = ("str", "int", "float", "[key]")
    loc = [part for part in detail["loc"] if part not in kinds and not isinstance(part, bool)]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")
    message, _ = fault_in_words(detail)
    if detail["type"] == "extra_forbidden":
        near = nearest(loc[-1], Question.model_fields)
        message += f"; did you mean {near!r}?" if near else f"; known keys: {', '.join(Question.model_fields)}"
    return f"`{plain_line(name, 100)}` {message}" if name else message
