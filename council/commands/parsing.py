"""A document → a validated command, or an error that says what, where (line, column, field) and how to fix it. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from council.commands.documents import Document, Loc, NotACommand, Problem, Unparsable, invalid, read_document
from council.commands.models import COMMAND_TYPES, COMMANDS, MODELS, AnyCommand, command_type
from council.errors import CommandInvalid

__all__ = ["NotACommand", "Problem", "Unparsable", "parse_command", "seems_to_forget", "validate"]

_FORGET_TYPE = re.compile(rb"""["']?type["']?\s*:\s*["']?forget\b""")


def parse_command(name: str, data: bytes) -> AnyCommand:
    """The command in `data`, read by the ending of `name`. Raises Unparsable, CommandInvalid or NotACommand."""
    return validate(read_document(name, data))


def seems_to_forget(name: str, data: bytes) -> bool:
    """Whether this is a forget command, were it valid or only readable."""
    try:
        value = read_document(name, data).value
    except (CommandInvalid, NotACommand):
        bare = data.replace(b"\0", b"")  # of UTF-16 what is ASCII
        return _FORGET_TYPE.search(bare) is not None and b"task_description" not in bare
    tag = value.get("type") if isinstance(value, dict) else None
    return isinstance(tag, str) and bool(difflib.get_close_matches(tag.strip().lower(), ["forget"]))


def validate(document: Document) -> AnyCommand:
    """The command that a document holds. Raises CommandInvalid with every problem found."""
    value = document.value
    if not isinstance(value, dict):
        fix = "write one object with the keys task_description and output_artifact_path"
        raise invalid([Problem(f"must be one object with keys, is {_kind(value)}", fix, "", *document.locate(()))])
    tag = command_type(value)
    if tag not in COMMAND_TYPES:
        near = difflib.get_close_matches(tag, COMMAND_TYPES, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "use one of them"
        message = f"is {tag!r}; known types: {', '.join(COMMAND_TYPES)}"
        raise invalid([Problem(message, fix, "type", *document.locate(("type",)))])
    try:
        return COMMANDS.validate_python(value)
    except ValidationError as error:
        raise invalid([_problem(document, tag, detail) for detail in error.errors()]) from None


_EXPECTED = {
    "int_type": "a whole number without quotes",
    "string_type": "text in quotes",
    "tuple_type": 'a list: ["a.md", "b.md"]',
    "model_type": "an object with keys",
    "string_too_short": "longer: it is empty",
}


def _problem(document: Document, tag: str, detail: ErrorDetails) -> Problem:
    loc: Loc = tuple(detail["loc"][1:] if detail["loc"][:1] == (tag,) else detail["loc"])
    field = ".".join(str(part) for part in loc)
    kind = detail["type"]
    context = detail.get("ctx", {})
    place = document.locate(loc[:-1] if kind == "missing" else loc)
    if kind == "missing":
        return Problem("is missing", f'add "{loc[-1]}"', field, *place)
    if kind == "extra_forbidden":
        return Problem("is not a known key", _advice(str(loc[-1]), _keys_at(tag, loc[:-1])), field, *place)
    if kind in {"greater_than_equal", "less_than_equal"}:
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return Problem(f"is {detail['input']}, must be {bound}", "choose a number in that range", field, *place)
    if kind in {"string_too_long", "too_long"}:
        unit = "characters" if kind == "string_too_long" else "entries"
        return Problem(f"must be at most {context['max_length']} {unit}", "shorten it", field, *place)
    if kind == "string_too_short" and context["min_length"] > 1:
        return Problem(f"must be at least {context['min_length']} characters", "lengthen it", field, *place)
    if kind == "string_pattern_mismatch":
        return Problem(f"must match {context['pattern']}", "use only those characters", field, *place)
    if kind in _EXPECTED:
        shown = f", is {_kind(detail.get('input'))}" if kind.endswith("_type") else ""
        return Problem(f"must be {_EXPECTED[kind]}{shown}", "correct the value", field, *place)
    return Problem(detail["msg"].removeprefix("Value error, "), "correct the value", field, *place)


def _keys_at(tag: str, loc: Loc) -> Sequence[str]:
    """The keys that the object at `loc` may have; none where it is no object of ours."""
    model: Any = MODELS[tag]
    for part in loc:
        if isinstance(part, str):
            field = getattr(model, "model_fields", {}).get(part)
            model = _object_in(field.annotation) if field is not None else None
    return [field.alias or name for name, field in getattr(model, "model_fields", {}).items()]


def _object_in(annotation: Any) -> Any:
    """The model inside `X | None`, `tuple[X, ...]` and the like."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((found for part in get_args(annotation) if (found := _object_in(part)) is not None), None)


def _advice(word: str, known: Sequence[str]) -> str:
    part = word.lower().rstrip("s")
    near = difflib.get_close_matches(word, known, n=1) or [key for key in known if part in key.split("_")]
    if len(near) == 1:
        return f'did you mean "{near[0]}"? Else remove it'
    return f"remove it; known keys: {', '.join(known)}" if known else "remove it"


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
