"""A document → a validated command, or an error that says what, where (line, column, field) and how to fix it. Pure."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from council.commands.file_formats import MAX_PROBLEMS, Document, Loc, NotACommand, Problem, invalid, read_document
from council.commands.models import PATTERNS_IN_WORDS, CommandBase
from council.commands.types import CommandTypes, tag_of
from council.errors import CommandInvalid
from council.proposals import nearest
from council.settings.model_names import NotAModel


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
    """The command that a document holds. Raises CommandInvalid with the first problems."""
    value = document.value
    if not isinstance(value, dict):
        fix = "write one object with the keys task_description and output_artifact_path"
        raise invalid([Problem(f"must be one object with keys, not {_kind(value)}", fix, "", *document.locate(()))])
    tag = tag_of(value)
    if tag not in types:
        near = nearest(tag, types.names)
        fix = f"did you mean {near!r}?" if near else "use one of them"
        said = repr(tag) if value.get("type") == tag else _kind(value["type"])
        message = f"is {said}; known types: {', '.join(types.names)}"
        raise invalid([Problem(message, fix, "type", *document.locate(("type",)))])
    try:
        return types.union.validate_python(value)
    except ValidationError as error:
        model = types[tag].model
        found = error.errors()[: MAX_PROBLEMS + 1]
        raise invalid([_problem(document, model, detail) for detail in found]) from None


_EXPECTED = {
    "int_type": "a whole number without quotes",
    "int_parsing": "a whole number",
    "string_type": "text in quotes",
    "tuple_type": "a list in brackets",
    "list_type": "a list in brackets",
    "dict_type": "an object with keys",
    "model_type": "an object with keys",
    "model_attributes_type": "an object with keys",
    "bool_type": "true or false",
    "float_type": "a number without quotes",
    "float_parsing": "a number",
    "finite_number": "a finite number",
}
_LISTS = {"config.agents": 'a list: ["COORDINATOR", "AUDITOR"]', "input_artifacts": 'a list: ["a.md", "b.md"]'}


def _problem(document: Document, model: type[CommandBase], detail: ErrorDetails) -> Problem:
    loc: Loc = detail["loc"][1:]  # the first is the tag of the union
    field = ".".join(str(part) for part in loc)
    kind, given = detail["type"], detail.get("input")
    message, fix = fault_in_words(detail)
    match kind:
        case "missing":
            lacks_its_text = document.text_is_task and loc == ("task_description",)
            fix = "write the task below the front matter" if lacks_its_text else f'add "{loc[-1]}"'
            loc = loc[:-1]
        case "extra_forbidden":
            fix = _instead_of(str(loc[-1]), model, loc[:-1])
        case "string_pattern_mismatch" if field == "session":
            lane = re.sub(r"[^a-z0-9_]+", "-", str(given).lower()).strip("-_")[:63]
            fix = f'write "{lane}"' if lane else fix
        case "tuple_type" if field in _LISTS:
            message = f"must be {_LISTS[field]}, not {_kind(given)}"
            if isinstance(given, str) and given.strip() and len(given) <= _MAX_ECHOED_CHARS:
                fix = f"put it in brackets: {json.dumps([given], ensure_ascii=False)}"
        case "value_error" if field.endswith("model"):
            fix = "`council models list` shows what there is"
            error = detail["ctx"]["error"]
            if isinstance(error, NotAModel) and error.meant:
                message, fix = error.plain, f"did you mean {error.meant}? Otherwise, {fix}"
            message = f"is {given!r}: {message}"
    return Problem(message, fix, field, *document.locate(loc))


def fault_in_words(detail: ErrorDetails) -> tuple[str, str]:
    """The fault of a value, as it stands behind the name of its field, and the fix. The value is quoted where the detail
    holds its `input`."""
    kind, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    is_shown = "input" in detail
    message, fix = detail["msg"].removeprefix("Value error, "), "correct the value"
    match kind:
        case "missing":
            message, fix = "is missing", "add it"
        case "extra_forbidden":
            message, fix = "is not a known key", "leave it out"
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            word, bound = _BOUNDS[kind]
            is_so = f"is {given}, but " if is_shown else ""
            message, fix = f"{is_so}must be {word} {context[bound]}", f"write a number that is {word} {context[bound]}"
        case "literal_error":
            allowed = _QUOTED.findall(str(context.get("expected", "")))
            near = nearest(given, allowed) if isinstance(given, str) else ""
            message = f"is {_kind(given) if is_shown else 'not known'}; known: {', '.join(allowed)}"
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
        case "string_unicode":
            message, fix = (
                "holds half of a character (a single surrogate)",
                "write the whole character, or leave it out",
            )
        case "string_pattern_mismatch":
            message = PATTERNS_IN_WORDS.get(context["pattern"], f"must match {context['pattern']}")
            fix = "use only those characters" if message.startswith("must") else "write something there"
        case "value_error" if len(context["error"].args) > 1:  # ours: it brings its fix along
            message, fix = context["error"].args
        case _ if kind in _EXPECTED:
            but = f", not {_kind(given)}" if is_shown else ""
            message, fix = f"must be {_EXPECTED[kind]}{but}", _as_expected(kind, given)
    return message, fix


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
        if kind in {"int_type", "float_type", "float_parsing"} and (number := _NUMBER.fullmatch(given)):
            return f"write {number[1]}"
        if kind == "bool_type" and given.lower() in {"true", "false"}:
            return f"write {given.lower()}"
    return "correct the value"


def _instead_of(word: str, model: Any, loc: Loc) -> str:
    if word == "schedule":
        return "put a file with it into commands/recurring/, where the daemon looks at schedules, or remove the key"
    for part in loc:
        if isinstance(part, str):
            field = getattr(model, "model_fields", {}).get(part)
            model = _object_in(field.annotation) if field is not None else None
    fields = getattr(model, "model_fields", {})
    for name, field in fields.items():
        if word in getattr(_object_in(field.annotation), "model_fields", {}):
            return f"put it into `{name}`"
    known = [field.alias or name for name, field in fields.items()]
    stem = word.lower().rstrip("s")
    parts = [key for key in known if stem in key.split("_")]
    near = nearest(word, known) or (parts[0] if len(parts) == 1 else "")
    if near:
        return f"did you mean `{near}`? Otherwise, remove it"
    return f"remove it; known keys: {', '.join(f'`{key}`' for key in known)}" if known else "remove it"


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
