"""A document → a validated command, or an error that says what, where (line, column, field) and how to fix it. Pure."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from council.commands.file_formats import Document, Loc, NotACommand, Problem, first_problems, invalid, read_document
from council.commands.models import ID_PATTERN, LANE_PATTERN, TITLE_PATTERN, USER_PATTERN, CommandBase
from council.commands.types import CommandTypes, tag_of
from council.errors import CommandInvalid
from council.proposals import nearest


def parse_command(types: CommandTypes, name: str, data: bytes) -> CommandBase:
    """The command in `data`, read by the ending of `name`. Raises Unparsable, CommandInvalid or NotACommand."""
    return validate(types, read_document(name, data))


def is_kept(types: CommandTypes, name: str, data: bytes) -> bool:
    """False for a command of a type whose failed files are not kept, were it valid or only readable."""
    unkept = [type_.name for type_ in types if not type_.keeps_failed_file]
    if not unkept:
        return True
    try:
        value = read_document(name, data).value
    except (CommandInvalid, NotACommand):
        bare = data.replace(b"\0", b"")  # of UTF-16 what is ASCII
        says_so = rf"""["']?type["']?\s*:\s*["']?({"|".join(unkept)})\b"""
        return re.search(says_so.encode(), bare) is None or b"task_description" in bare
    tag = value.get("type") if isinstance(value, dict) else None
    return not (isinstance(tag, str) and difflib.get_close_matches(tag.strip().lower(), unkept))


def validate(types: CommandTypes, document: Document) -> CommandBase:
    """The command that a document holds. Raises CommandInvalid with the first problems and the number of the others."""
    value = document.value
    if not isinstance(value, dict):
        fix = "write one object with the keys task_description and output_artifact_path"
        raise invalid([Problem(f"must be one object with keys, not {_kind(value)}", fix, "", *document.locate(()))])
    tag = tag_of(value)
    if tag not in types:
        near = nearest(tag, types.names)
        fix = f"did you mean {near!r}?" if near else "use one of them"
        message = f"is {tag!r}; known types: {', '.join(types.names)}"
        raise invalid([Problem(message, fix, "type", *document.locate(("type",)))])
    try:
        return types.union.validate_python(value)
    except ValidationError as error:
        model = types[tag].model
        raise invalid(first_problems(error.errors(), lambda detail: _problem(document, model, detail))) from None


_EXPECTED = {
    "int_type": "a whole number without quotes",
    "string_type": "text in quotes",
    "tuple_type": 'a list: ["a.md", "b.md"]',
    "model_type": "an object with keys",
    "bool_type": "true or false",
    "float_type": "a number without quotes",
    "float_parsing": "a number without quotes",
    "finite_number": "a finite number",
}
_LIST_OF_AGENTS = 'a list: ["COORDINATOR", "AUDITOR"]'


def _problem(document: Document, model: type[CommandBase], detail: ErrorDetails) -> Problem:
    loc: Loc = detail["loc"][1:]  # the first is the tag of the union
    field = ".".join(str(part) for part in loc)
    kind, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    message, fix = detail["msg"].removeprefix("Value error, "), "correct the value"
    match kind:
        case "missing":
            lacks_its_text = document.text_is_task and loc == ("task_description",)
            message = "is missing"
            fix = "write the task below the front matter" if lacks_its_text else f'add "{loc[-1]}"'
            loc = loc[:-1]
        case "extra_forbidden":
            message, fix = "is not a known key", _instead_of(str(loc[-1]), model, loc[:-1])
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            word, bound = _BOUNDS[kind]
            message, fix = f"is {given}, but must be {word} {context[bound]}", "choose a number in that range"
        case "literal_error":
            allowed = _QUOTED.findall(str(context.get("expected", "")))
            near = nearest(given, allowed) if isinstance(given, str) else ""
            message = f"is {_kind(given)}; known: {', '.join(allowed)}"
            fix = f'did you mean "{near}"?' if near else "use one of them"
        case "string_too_long":
            message, fix = f"must be at most {context['max_length']} characters", "shorten it"
        case "too_long":
            message, fix = f"must be at most {context['max_length']} entries", "shorten it"
        case "string_too_short" if context["min_length"] > 1:
            message, fix = f"must be at least {context['min_length']} characters", "lengthen it"
        case "string_too_short":
            message, fix = "is empty", "write something there"
        case "too_short":
            message, fix = "is empty", "name one, or leave the key out"
        case "string_pattern_mismatch":
            lane = re.sub(r"[^a-z0-9_]+", "-", str(given).lower()).strip("-_")[:63]
            message = _IN_WORDS.get(context["pattern"], f"must match {context['pattern']}")
            fix = f'write "{lane}"' if field == "session" and lane else "use only those characters"
        case _ if kind in _EXPECTED:
            expected = _LIST_OF_AGENTS if field == "config.agents" else _EXPECTED[kind]
            message, fix = f"must be {expected}, not {_kind(given)}", _as_expected(kind, given)
        case _ if field.endswith("model"):
            message, fix = f"is {given!r}: {message}", "`council models list` shows what there is"
    return Problem(message, fix, field, *document.locate(loc))


_IN_WORDS = {
    LANE_PATTERN: "must be 1 to 64 small letters, digits, `-` and `_`, and begin with a letter or digit",
    USER_PATTERN: "must be 1 to 64 letters, digits, `.`, `_`, `@` and `-`, and begin with a letter or digit",
    ID_PATTERN: "must be letters, digits, blanks and `. _ : @ / + -`, and begin with a letter or digit",
    TITLE_PATTERN: "must be one line of text, without tabs or other control characters, and not blank",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_QUOTED = re.compile(r"'([^']*)'")
_NUMBER = re.compile(r"\s*(-?\d{1,12}(?:\.\d{1,12})?)\s*")
_MAX_ECHOED_CHARS = 80


def _as_expected(kind: str, given: object) -> str:
    if isinstance(given, str) and len(given) <= _MAX_ECHOED_CHARS:
        if kind == "tuple_type" and given.strip():
            return f"put it in brackets: {json.dumps([given], ensure_ascii=False)}"
        if kind in {"int_type", "float_type", "float_parsing"} and (number := _NUMBER.fullmatch(given)):
            return f"write {number[1]}"
        if kind == "bool_type" and given.lower() in {"true", "false"}:
            return f"write {given.lower()}"
    return "correct the value"


def _instead_of(word: str, model: Any, loc: Loc) -> str:
    if word == "schedule":
        return "move the file into commands/recurring/, where the daemon looks at schedules, or remove the key"
    for part in loc:
        if isinstance(part, str):
            field = getattr(model, "model_fields", {}).get(part)
            model = _object_in(field.annotation) if field is not None else None
    known = [field.alias or name for name, field in getattr(model, "model_fields", {}).items()]
    stem = word.lower().rstrip("s")
    parts = [key for key in known if stem in key.split("_")]
    near = nearest(word, known) or (parts[0] if len(parts) == 1 else "")
    if near:
        return f'did you mean "{near}"? Otherwise, remove it'
    return f"remove it; known keys: {', '.join(known)}" if known else "remove it"


def _object_in(annotation: Any) -> Any:
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((found for part in get_args(annotation) if (found := _object_in(part)) is not None), None)


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
