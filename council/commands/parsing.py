"""Bytes of a command file → a validated command, or an error that says what, where (line, column, field) and how to fix it.

Pure. `Unparsable` marks bytes that may yet become a command (half-written, empty); every other CommandInvalid is final.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from council.commands.models import COMMAND_TYPES, COMMANDS, CancelCommand, DeliberateCommand, command_type
from council.errors import CommandInvalid

Loc = tuple[int | str, ...]


class Unparsable(CommandInvalid):
    """The bytes are not (yet) a document: the inbox waits for more before it gives up."""


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
        name = f"`{self.field}` " if self.field else ""
        return f"{place}{name}{self.message}"


def parse_command(name: str, data: bytes) -> DeliberateCommand | CancelCommand:
    """The command in `data`, read by the ending of `name`. Raises Unparsable or CommandInvalid."""
    text = decode(data)
    value = _load_json(text)
    if not isinstance(value, dict):
        raise _invalid(
            [
                Problem(
                    f"must be one JSON object, is {_kind(value)}",
                    'write {"task_description": …} with its keys',
                    line=1,
                    column=1,
                )
            ]
        )
    tag = command_type(value)
    if tag not in COMMAND_TYPES:
        line, column = locate_json(text, ("type",))
        nearest = _nearest(tag, COMMAND_TYPES)
        raise _invalid(
            [Problem(f"is {tag!r}; known types: {', '.join(COMMAND_TYPES)}", f"use {nearest!r}", "type", line, column)]
        )
    try:
        return COMMANDS.validate_python(value)
    except ValidationError as error:
        raise _invalid([_problem(text, tag, detail) for detail in error.errors()]) from None


def decode(data: bytes) -> str:
    """UTF-8 text, a byte order mark tolerated. Raises Unparsable for anything else, naming the encoding if it shows."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _unparsable("the file is UTF-16", "save it as UTF-8", 1, 1)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise _unparsable("the file is empty", "write the command into it, or remove it", 1, 1)
    if b"\0" in data:
        raise _unparsable("the file is binary (it holds a NUL byte)", "a command is a text file", 1, 1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise _unparsable(
            f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8", line, column
        ) from None


def _load_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise _DuplicateKey(key)
            result[key] = value
        return result

    def no_constant(name: str) -> Any:
        raise _invalid([Problem(f"{name} is not a JSON value", "use a number, text, true, false or null")])

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except _DuplicateKey as error:
        raise _invalid([Problem("stands twice", "keep one of them", error.key)]) from None
    except RecursionError:
        raise _invalid([Problem("is nested too deeply", "a command is at most three levels deep")]) from None
    except json.JSONDecodeError as error:
        raise _unparsable(
            f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}", _json_fix(text, error), error.lineno, error.colno
        ) from None
    except ValueError as error:  # an integer of more than 4,300 digits
        raise _invalid([Problem(f"not usable JSON: {error}", "use ordinary numbers")]) from None


class _DuplicateKey(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _json_fix(text: str, error: json.JSONDecodeError) -> str:
    if error.pos >= len(text.rstrip()):
        return "the file ends too early; finish it, or remove it and drop it whole (write elsewhere, then rename)"
    near = text[max(0, error.pos - 1) : error.pos + 1]
    if "'" in near:
        return 'JSON strings stand in double quotes: "like this"'
    before = text[: error.pos].rstrip()
    if before.endswith(",") or (text[error.pos] in "}]"):
        return "remove the comma before the closing bracket"
    if "delimiter" in error.msg:
        return "put a comma between two entries (the end of the line before may miss one)"
    return "correct the text at that place; an editor with JSON support marks it"


def _problem(text: str, tag: str, detail: ErrorDetails) -> Problem:
    loc = tuple(part for part in detail["loc"] if part != tag) if detail["loc"][:1] == (tag,) else tuple(detail["loc"])
    field = ".".join(str(part) for part in loc)
    kind = detail["type"]
    context = detail.get("ctx", {})
    line, column = locate_json(text, loc[:-1] if kind == "missing" else loc)
    given = _kind(detail.get("input"))
    if kind == "missing":
        return Problem("is missing", f'add "{loc[-1]}"', field, line, column)
    if kind == "extra_forbidden":
        nearest = _nearest(str(loc[-1]), _keys_at(tag, loc[:-1]))
        return Problem("is not a known key", f'did you mean "{nearest}"? Else remove it', field, line, column)
    if kind in {"greater_than_equal", "less_than_equal"}:
        low_high = "at least " + str(context["ge"]) if "ge" in context else "at most " + str(context["le"])
        return Problem(
            f"is {detail['input']}, must be {low_high}", "choose a number in that range", field, line, column
        )
    expected = {
        "int_type": "a whole number without quotes",
        "string_type": "text in double quotes",
        "tuple_type": 'a list: ["a.md", "b.md"]',
        "model_type": "an object: {…}",
        "string_too_short": "longer: it is empty",
        "string_too_long": f"at most {context.get('max_length')} characters",
        "too_long": f"at most {context.get('max_length')} entries",
        "literal_error": f"one of {context.get('expected')}",
        "string_pattern_mismatch": "letters, digits, spaces and . _ : @ / + - only, beginning with a letter or digit",
    }
    if kind in expected:
        shown = "" if kind.startswith(("string_too", "too_long", "string_pattern")) else f", is {given}"
        return Problem(f"must be {expected[kind]}{shown}", "correct the value", field, line, column)
    message = detail["msg"].removeprefix("Value error, ")
    return Problem(f"{message}", "correct the value", field, line, column)


def _keys_at(tag: str, loc: Loc) -> Sequence[str]:
    model: Any = {"deliberate": DeliberateCommand, "cancel": CancelCommand}[tag]
    for part in loc:
        model = model.model_fields[str(part)].annotation
    return [field.alias or name for name, field in model.model_fields.items()]


def _nearest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.0)
    return close[0] if close else known[0]


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'the text "{value[:40]}"'
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a list" if isinstance(value, (list, tuple)) else "an object"


def _invalid(problems: list[Problem]) -> CommandInvalid:
    first = problems[0]
    return CommandInvalid(
        "; ".join(str(problem) for problem in problems),
        fix="; ".join(dict.fromkeys(problem.fix for problem in problems)),
        line=first.line,
        column=first.column,
        field=first.field,
        problems=problems,
    )


def _unparsable(message: str, fix: str, line: int, column: int) -> Unparsable:
    problem = Problem(message, fix, line=line, column=column)
    return Unparsable(str(problem), fix=fix, line=line, column=column, problems=[problem])


_WHITESPACE = " \t\r\n"


def locate_json(text: str, loc: Loc) -> tuple[int | None, int | None]:
    """Line and column (from 1) of the value at `loc` in a JSON text that parses; of its nearest parent if it is absent."""
    decoder = json.JSONDecoder()
    position = _skip(text, 0)
    for part in loc:
        found = _child(decoder, text, position, part)
        if found is None:
            break
        position = found
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _WHITESPACE:
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
