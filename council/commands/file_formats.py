"""Bytes of a command file → plain values that know their place: JSON, YAML, Markdown with front matter.

Pure. `Unparsable` marks bytes that may yet become a document (half-written, empty). Does not know what a command is,
except to tell a Markdown command from any other Markdown file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import yaml

from council.commands.json_faults import fault_of, fix_of
from council.errors import CommandInvalid, CouncilError
from council.markup import front_matter

Loc = tuple[int | str, ...]
Place = tuple[int | None, int | None]
_MAX_DEPTH = 64  # commands have a few levels; PyYAML's work for one more grows with those around it
MAX_PROBLEMS = 20  # told of one file; more than that nobody corrects before trying again

# A Markdown file is a command when its front matter holds one of these; any other front matter is someone's notes.
_TELLING_KEYS = ("task_description", "input_artifacts", "output_artifact_path")  # `type` stands in many notes
_TELLING_LINE = re.compile(rf"^({'|'.join(_TELLING_KEYS)})[ \t]*:", re.MULTILINE)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a command. `line` and `column` count from 1, None when unknown."""

    message: str
    fix: str
    field: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.sentence}"

    @property
    def sentence(self) -> str:
        """The field and what it does, or a colon and what is said of it."""
        between = ": " if self.message[:1].isupper() else " "
        return f"`{' '.join(self.field.split())[:100]}`{between}{self.message}" if self.field else self.message


class Unparsable(CommandInvalid):
    """The bytes are not (yet) a document: the inbox waits for more before it gives up."""


class NotACommand(Exception):
    """A Markdown file without a command's front matter: never a command, never an error."""


@dataclass(frozen=True)
class Document:
    """Plain values and their places.

    `locate(loc)`: line and column, from 1, of the value at `loc`, or of its nearest parent. `text_is_task`: Markdown
    that may have its task below the front matter, and has nothing there.
    """

    value: Any
    locate: Callable[[Loc], Place]
    text_is_task: bool = False


def read_document(name: str, data: bytes) -> Document:
    """The document in `data`, read by the ending of `name`. Raises Unparsable, CommandInvalid or NotACommand."""
    ending = name[name.rfind(".") :].lower()
    if ending == ".md":
        return _read_markdown(data)
    text = decode(data)
    return _read_yaml(text, 0) if ending in (".yaml", ".yml") else _read_json(text)


def decode(data: bytes) -> str:
    """UTF-8 text, a byte order mark tolerated. Raises Unparsable for anything else, naming the encoding if it shows."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise unparsable("the text is UTF-16", "write it in UTF-8", 1, 1)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise unparsable("the text is empty", "write a command there", 1, 1)
    if b"\0" in data:
        raise unparsable("the text is binary (it contains a NUL byte)", "write plain text", 1, 1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise unparsable(f"byte 0x{data[error.start]:02x} is not UTF-8", "write it in UTF-8", line, column) from None


def invalid(problems: Sequence[Problem]) -> CommandInvalid:
    """All problems as one error, in the order of the file. It tells the first MAX_PROBLEMS, and says so where there are more."""
    # What is missing has no place of its own: it comes last of its line.
    in_order = sorted(problems, key=lambda one: (one.line or 0, one.message == "is missing", one.column or 0))
    message, data = _summary(in_order)
    return CommandInvalid(message, **data)


def problems_of(error: CouncilError) -> list[Problem]:
    """The problems that `invalid` told of; of any other error itself as one."""
    if isinstance(problems := error.data.get("problems"), list):
        return problems
    place = (error.line, error.column) if isinstance(error, CommandInvalid) else (None, None)
    return [Problem(error.message, error.fix, "", *place)]


def of_field(error: CommandInvalid) -> Problem:
    """An error of one field as a problem of it."""
    message = error.message.removeprefix(f"`{error.field}`").lstrip(": ")
    if message == error.message:  # a sentence of its own
        message = f"is refused: {message}"
    return Problem(message, error.fix, error.field)


def located(problems: Iterable[Problem], document: Document) -> list[Problem]:
    """The problems, each with the place of its field in the file."""
    placed = []
    for one in problems:
        is_lost = one.field and one.line is None
        line, column = document.locate(tuple(one.field.split("."))) if is_lost else (one.line, one.column)
        placed.append(replace(one, line=line, column=column))
    return placed


def unparsable(message: str, fix: str, line: int | None, column: int | None) -> Unparsable:
    said, data = _summary([Problem(message, fix, line=line, column=column)])
    return Unparsable(said, **data)


def _summary(problems: Sequence[Problem]) -> tuple[str, dict[str, Any]]:
    first, told = problems[0], list(problems[:MAX_PROBLEMS])
    if len(problems) > MAX_PROBLEMS:
        told.append(Problem("and more", "correct these first, then try again"))
    return "; ".join(str(problem) for problem in told), {
        "fix": "; ".join(dict.fromkeys(problem.fix for problem in told)),
        "line": first.line,
        "column": first.column,
        "field": first.field,
        "problems": told,
    }


@dataclass
class _Spot:
    place: Place
    inside: dict[int | str, _Spot] = field(default_factory=dict)


def _locator(find_spots: Callable[[], _Spot]) -> Callable[[Loc], Place]:
    """`Document.locate`: the text is gone through once, when the first place is asked for."""
    found = cache(find_spots)

    def locate(loc: Loc) -> Place:
        spot = found()
        for part in loc:
            if part not in spot.inside:
                break
            spot = spot.inside[part]
        return spot.place

    return locate


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


_STRING = r'"(?>(?:[^"\\]++|\\.)*)"?'  # one that is not closed reaches to the end: nothing is looked at twice
_JSON_STRING = re.compile(_STRING, re.DOTALL)
_NO_VALUE = re.compile(rf"{_STRING}|(NaN|-?Infinity)", re.DOTALL)
_JSON_TOKEN = re.compile(rf"{_STRING}|[\n\[\]{{}},:]|[^\s\"\[\]{{}},:]++", re.DOTALL)


def _read_json(text: str) -> Document:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                spelled = json.dumps(key)
                starts = [found.start() for found in _JSON_STRING.finditer(text) if found[0] == spelled]
                place = _place(text, starts[-1]) if starts else (None, None)
                raise invalid([Problem("stands twice", "keep one of them", key, *place)])
            result[key] = value
        return result

    def no_constant(name: str) -> Any:
        start = next((found.start() for found in _NO_VALUE.finditer(text) if found[1]), None)
        place = _place(text, start) if start is not None else (None, None)
        fix = "use a number, text, true, false or null"
        raise invalid([Problem(f"{name} is not a JSON value", fix, "", *place)])

    try:
        depth = 0
        for found in _JSON_TOKEN.finditer(text):
            depth += (found[0] in "[{") - (found[0] in "]}")
            if depth > _MAX_DEPTH:
                raise _too_deep(*_place(text, found.start()))
        value = json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise unparsable(f"not JSON: {fault_of(text, error)}", fix_of(text, error), error.lineno, error.colno) from None
    except ValueError as error:  # an integer of more than 4,300 digits
        raise invalid([Problem(f"not usable JSON: {error}", "use ordinary numbers")]) from None
    return Document(value, _locator(partial(_json_spots, text)))


def _too_deep(line: int | None, column: int | None) -> CommandInvalid:
    return invalid([Problem("the command is nested too deeply", f"use at most {_MAX_DEPTH} levels", "", line, column)])


def _place(text: str, position: int) -> Place:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _json_spots(text: str) -> _Spot:
    outermost = _Spot((1, 1))
    opened = [(outermost, False)]  # what is open, and whether it is an object
    key: str | None = None
    line, line_start = 1, 0
    for found in _JSON_TOKEN.finditer(text):
        piece = found[0]
        above, in_object = opened[-1]
        if piece == "\n":
            line, line_start = line + 1, found.end()
        elif piece in ("]", "}"):
            opened.pop()
        elif in_object and key is None and piece != ",":
            key = json.loads(piece)
        elif piece not in (",", ":"):
            spot = _Spot((line, found.start() - line_start + 1))
            above.inside[len(above.inside) if key is None else key] = spot
            key = None
            if piece in ("[", "{"):
                opened.append((spot, piece == "{"))
    return outermost.inside[0]


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MAX_NUMBER_CHARS = 100
_MAX_YAML_VALUES = 2_000  # keys included; a command has some dozens, and PyYAML takes a second for 40,000


_ALIAS = "an alias (*name) is not allowed"
_TAG = "a tag (a word after !) is not allowed"
_FIXES = {
    _ALIAS: "write the value out",
    _TAG: "remove it, or put the value in quotes",
    "but found another document": "put one command into each file",
}


class _TooManyValues(yaml.composer.ComposerError):
    """The document holds more than a command or a persona could need."""


class _TooDeep(yaml.composer.ComposerError):
    """A value has more levels than a command needs."""


class PlainYaml(yaml.SafeLoader):
    """Safe YAML without timestamps (2026-11-20 is text), aliases, repeated keys, and depths or numbers without end."""

    _depth = 0
    _count = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # aliases can make a small file huge, and a command needs none
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, _ALIAS, mark)
        if self._depth >= _MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise _TooDeep(None, None, f"more than {_MAX_DEPTH} levels", mark)
        self._count += 1
        if self._count > _MAX_YAML_VALUES:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise _TooManyValues(None, None, f"more than {_MAX_YAML_VALUES:,} keys and values", mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        # PyYAML's sums over `9:9:9…` and over hexadecimal digits make numbers that Python refuses to write down.
        if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER_CHARS:
            problem = f"a number of more than {_MAX_NUMBER_CHARS} characters"
            raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
        return node


PlainYaml.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read_yaml(text: str, lines_before: int) -> Document:
    try:
        loader = PlainYaml(text)
    except yaml.reader.ReaderError as error:
        line, column = _place(text, error.position)
        message = f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        raise unparsable(
            message, "remove it, or write it as an escape in double quotes", (line or 1) + lines_before, column
        ) from None
    node = None
    try:
        node = loader.get_single_node()
        repeated = _repeated_key(node) if node is not None else None
        if repeated is not None:
            mark = repeated.start_mark
            place = (mark.line + 1 + lines_before, mark.column + 1)
            raise invalid([Problem("stands twice", "keep one of them", str(repeated.value), *place)])
        value = loader.construct_document(node) if node is not None else None
    except (_TooManyValues, _TooDeep) as error:
        mark = error.problem_mark
        place = (mark.line + 1 + lines_before, mark.column + 1) if mark else (None, None)
        if isinstance(error, _TooDeep):
            raise _too_deep(*place) from None
        fix = "put the material into files and name them as input_artifacts"
        raise invalid([Problem(f"the command holds {error.problem}", fix, "", *place)]) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line, column = (mark.line + 1 + lines_before, mark.column + 1) if mark else (None, None)
        problem = yaml_fault(error)
        fix = _FIXES.get(problem, "indent with spaces, and put text with : or # in quotes")
        raise unparsable(f"not YAML: {problem.removeprefix('but ')}", fix, line, column) from None
    except (ValueError, LookupError, AttributeError, TypeError):  # PyYAML's constructors trust the text of a tag
        place = _yaml_spots(node, lines_before).place
        raise invalid(
            [Problem("not YAML: a value does not fit its tag or number", "put it in quotes", "", *place)]
        ) from None
    finally:
        loader.dispose()
    return Document(value, _locator(partial(_yaml_spots, node, lines_before)))


def yaml_fault(error: yaml.YAMLError) -> str:
    """The problem in PyYAML's words; not those for a tag, which name Python's insides."""
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return _TAG if problem.startswith("could not determine a constructor") else problem


def _repeated_key(node: yaml.Node) -> yaml.ScalarNode | None:
    children: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    return key
                seen.add(key.value)
            children.append(value)
    elif isinstance(node, yaml.SequenceNode):
        children = node.value
    return next((found for child in children if (found := _repeated_key(child)) is not None), None)


def _yaml_spots(node: yaml.Node | None, lines_before: int) -> _Spot:
    if node is None:
        return _Spot((1 + lines_before, 1))
    spot = _Spot((node.start_mark.line + 1 + lines_before, node.start_mark.column + 1))
    if isinstance(node, yaml.MappingNode):
        parts = [(key.value, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
    else:
        parts = list(enumerate(node.value)) if isinstance(node, yaml.SequenceNode) else []
    spot.inside.update((part, _yaml_spots(value, lines_before)) for part, value in parts)
    return spot


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_markdown(data: bytes) -> Document:
    try:
        text = decode(data)
    except Unparsable:
        raise NotACommand from None
    text = text.replace("\r\n", "\n")
    if text.partition("\n")[0].rstrip(" \t") != "---" or not _TELLING_LINE.search(text):
        raise NotACommand
    parts = front_matter(text)
    if parts is None:
        raise unparsable("the front matter is not closed", "end it with a line of ---", 1, 1)
    head, body = parts
    if not _TELLING_LINE.search(head):
        raise NotACommand
    document = _read_yaml(head, 1)
    body_line = text.count("\n") - body.count("\n") + 1
    if not isinstance(document.value, dict):
        return document
    if not body.strip():
        return replace(document, text_is_task=True)
    if "task_description" in document.value:
        place = document.locate(("task_description",))
        fix = "keep it in one place: the body is the task"
        raise invalid([Problem("is in the front matter, but there is also a body", fix, "task_description", *place)])

    def locate(loc: Loc) -> Place:
        return (body_line, 1) if loc[:1] == ("task_description",) else document.locate(loc)

    return Document({**document.value, "task_description": body.strip()}, locate)
