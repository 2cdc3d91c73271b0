"""Bytes of a command file → plain values that know their place: JSON, YAML, Markdown with front matter.

Pure. `Unparsable` marks bytes that may yet become a document (half-written, empty). Does not know what a command is,
except to tell a Markdown command from any other Markdown file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import yaml

from council.commands.json_faults import fix_of
from council.errors import CommandInvalid

Loc = tuple[int | str, ...]
Place = tuple[int | None, int | None]

_FENCE = re.compile(r"\A---[ \t]*\n")
_CLOSING_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
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
        name = f"`{' '.join(self.field.split())[:100]}` " if self.field else ""
        return f"{place}{name}{self.message}"


class Unparsable(CommandInvalid):
    """The bytes are not (yet) a document: the inbox waits for more before it gives up."""


class NotACommand(Exception):
    """A Markdown file without a command's front matter: never a command, never an error."""


@dataclass(frozen=True)
class Document:
    """`locate(loc)`: line and column, from 1, of the value at `loc`, or of its nearest parent. `text_is_task`: Markdown
    that may have its task below the front matter, and has nothing there."""

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
        raise unparsable("the file is UTF-16", "save it as UTF-8", 1, 1)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise unparsable("the file is empty", "write into it, or remove it", 1, 1)
    if b"\0" in data:
        raise unparsable("the file is binary (it holds a NUL byte)", "write a text file", 1, 1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise unparsable(
            f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8", line, column
        ) from None


def invalid(problems: Sequence[Problem]) -> CommandInvalid:
    """All problems as one error."""
    message, data = _said(problems)
    return CommandInvalid(message, **data)


def unparsable(message: str, fix: str, line: int | None, column: int | None) -> Unparsable:
    said, data = _said([Problem(message, fix, line=line, column=column)])
    return Unparsable(said, **data)


def _said(problems: Sequence[Problem]) -> tuple[str, dict[str, Any]]:
    first = problems[0]
    return "; ".join(str(problem) for problem in problems), {
        "fix": "; ".join(dict.fromkeys(problem.fix for problem in problems)),
        "line": first.line,
        "column": first.column,
        "field": first.field,
        "problems": list(problems),
    }


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NO_VALUE = re.compile(r"NaN|-?Infinity")


def _read_json(text: str) -> Document:
    try:
        value = json.loads(text, object_pairs_hook=partial(_unique, text), parse_constant=partial(_no_constant, text))
    except RecursionError:
        raise invalid([Problem("is nested too deeply", "three levels are enough")]) from None
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise unparsable(message, fix_of(text, error), error.lineno, error.colno) from None
    except ValueError as error:  # an integer of more than 4,300 digits
        raise invalid([Problem(f"not usable JSON: {error}", "use ordinary numbers")]) from None
    return Document(value, lambda loc: _locate_json(text, loc))


def _unique(text: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            places = [found for found in _JSON_STRING.finditer(text) if found[0] == json.dumps(key)]
            place = _place(text, places[-1].start()) if places else (None, None)
            raise invalid([Problem("stands twice", "keep one of them", key, *place)])
        result[key] = value
    return result


def _no_constant(text: str, name: str) -> Any:
    bare = _JSON_STRING.sub(lambda found: " " * len(found[0]), text)
    found = _NO_VALUE.search(bare)
    place = _place(text, found.start()) if found else (None, None)
    fix = "use a number, text, true, false or null"
    raise invalid([Problem(f"{name} is not a JSON value", fix, "", *place)])


def _locate_json(text: str, loc: Loc) -> Place:
    decoder = json.JSONDecoder()
    position = _skip(text, 0)
    for part in loc:
        found = _child(decoder, text, position, part)
        if found is None:
            break
        position = found
    return _place(text, position)


def _place(text: str, position: int) -> Place:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _child(decoder: json.JSONDecoder, text: str, position: int, part: int | str) -> int | None:
    opening = text[position : position + 1]
    if opening not in ("{", "["):
        return None
    index = 0
    position = _skip(text, position + 1)
    while position < len(text) and text[position] not in "}]":
        key: object = index
        if opening == "{":
            key, position = decoder.raw_decode(text, position)
            position = _skip(text, _skip(text, position) + 1)  # past the colon
        if key == part:
            return position
        _, position = decoder.raw_decode(text, position)
        position = _skip(text, position)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        index += 1
    return None


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Loader(yaml.SafeLoader):
    """Safe YAML without timestamps (an id like 2026-11-20 is text), aliases and repeated keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # aliases can make a small file huge, and a command needs none
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "an alias (*name) is not allowed", mark)
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read_yaml(text: str, lines_before: int) -> Document:
    try:
        loader = _Loader(text)
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
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line, column = (mark.line + 1 + lines_before, mark.column + 1) if mark else (None, None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        fix = "indent with spaces, put text with : or # into quotes"
        raise unparsable(f"not YAML: {problem}", fix, line, column) from None
    except RecursionError:
        raise invalid([Problem("is nested too deeply", "three levels are enough")]) from None
    except (ValueError, LookupError, AttributeError, TypeError):  # PyYAML's constructors trust the text of a tag
        place = _locate_yaml(node, (), lines_before)
        raise invalid(
            [Problem("not YAML: a value does not fit its tag or number", "put it into quotes", "", *place)]
        ) from None
    finally:
        loader.dispose()
    return Document(value, lambda loc: _locate_yaml(node, loc, lines_before))


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


def _locate_yaml(node: yaml.Node | None, loc: Loc, lines_before: int) -> Place:
    if node is None:
        return 1 + lines_before, 1
    for part in loc:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            found = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
        if found is None:
            break
        node = found
    return node.start_mark.line + 1 + lines_before, node.start_mark.column + 1


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_markdown(data: bytes) -> Document:
    try:
        text = decode(data)
    except Unparsable:
        raise NotACommand from None
    text = text.replace("\r\n", "\n")
    opening = _FENCE.match(text)
    if opening is None or not _TELLING_LINE.search(text):
        raise NotACommand
    closing = _CLOSING_FENCE.search(text, opening.end())
    if closing is None:
        raise unparsable("the front matter is not closed", "end it with a line of ---", 1, 1)
    head = text[opening.end() : closing.start()]
    if not _TELLING_LINE.search(head):
        raise NotACommand
    document = _read_yaml(head, 1)
    if not isinstance(document.value, dict):
        return document
    return _with_body(document, text[closing.end() :], text[: closing.end()].count("\n") + 2)


def _with_body(document: Document, body: str, body_line: int) -> Document:
    """The body is the task: either there or in the front matter, not in both."""
    if not body.strip():
        return replace(document, text_is_task=True)
    if "task_description" in document.value:
        place = document.locate(("task_description",))
        fix = "keep it in one place: the body is the task"
        raise invalid([Problem("stands in the front matter and there is a body", fix, "task_description", *place)])
    value = {**document.value, "task_description": body.strip()}

    def locate(loc: Loc) -> Place:
        return (body_line, 1) if loc[:1] == ("task_description",) else document.locate(loc)

    return Document(value, locate)
