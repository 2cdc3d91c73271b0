"""Forms of pages: the fields of a model with their descriptions, what a person typed, and what is wrong beside it.

A form sends `was.<name>` with each field: what stood there at first. What a person left as it was is not sent on, and what
somebody else changed meanwhile is not overwritten unseen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from starlette.datastructures import FormData

from council.commands.file_formats import Problem, problems_of
from council.errors import CouncilError

Kind = Literal[
    "line", "text", "lines", "number", "numbers", "moment", "day", "choice", "choices", "tick", "secret", "hidden"
]
_KINDS: Mapping[str, Kind] = {"date": "moment", "dueDate": "day"}  # by name: to JSON they are texts
_LONG_CHARS = 300  # from here on a text may have several lines, unless it is a path


@dataclass(frozen=True)
class FormField:
    """One field. `value` is its text; of several there is one on each line, and of a tick it is "true" or empty. `was`: what
    stood there at first. `suggestions` help who types, `options` are all that may be chosen."""

    name: str
    label: str
    kind: Kind
    hint: str = ""
    value: str = ""
    was: str = ""
    needed: bool = False
    options: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """A form that is sent to `action`. `back` is the page that it came from. `notes` stand above it. `is_danger`: what it does
    cannot be taken back."""

    title: str
    action: str
    button: str
    fields: tuple[FormField, ...]
    back: str
    notes: tuple[str, ...] = ()
    is_danger: bool = False


def texts_of(sent: FormData) -> dict[str, str]:
    """The fields that were sent, without files; several values of one name are lines."""
    texts = {name: [one for one in sent.getlist(name) if isinstance(one, str)] for name in sent}
    return {name: "\n".join(values).replace("\r\n", "\n") for name, values in texts.items()}


def faults_of(error: CouncilError, fields: Collection[str]) -> dict[str, list[Problem]]:
    """The faults, by the field that it stands beside; under the empty name all the rest."""
    found: dict[str, list[Problem]] = {}
    for problem in problems_of(error):
        name = problem.field or str(error.data.get("field", "")) or getattr(error, "field", "")
        beside = next((field for field in fields if name == field or name.startswith(f"{field}.")), "")
        found.setdefault(beside, []).append(problem)
    return found


def fields_of(
    model: type[BaseModel],
    shown: Mapping[str, str],
    was: Mapping[str, str] | None = None,
    *,
    leave_out: Collection[str] = (),
    options: Mapping[str, Sequence[str]] | None = None,
    suggestions: Mapping[str, Sequence[str]] | None = None,
    prefix: str = "",
) -> tuple[FormField, ...]:
    """The fields of a model, needed ones first. `shown` is what stands in them; else what `was`, else the default."""
    found = []
    for plain, told, kind in _kinds(model):
        name = f"{prefix}{plain}"
        if plain in leave_out:
            continue
        chosen, helped = tuple((options or {}).get(name, ())), tuple((suggestions or {}).get(name, ()))
        first = (was or {}).get(name, as_text(told.get("default")))
        if chosen:
            kind = "choices" if kind == "lines" else "choice"
        hint = "" if chosen and plain == "userId" else re.sub(r"; null [^.]*", "", told.get("description", ""))
        value, needed = shown.get(name, first), plain in model.model_json_schema().get("required", ())
        offered = chosen or tuple(told.get("enum", ()))
        found.append(FormField(name, worded(plain), kind, hint, value, first, needed, offered, helped))
    return tuple(sorted(found, key=lambda one: (not one.needed, one.kind == "choices")))


def values_of(model: type[BaseModel], sent: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """The changed fields and those that are needed, in the types of JSON. An empty text takes away what may be absent."""
    values: dict[str, Any] = {}
    needed = model.model_json_schema().get("required", ())
    for plain, told, kind in _kinds(model):
        name = f"{prefix}{plain}"
        text = sent.get(name, "")
        is_as_it_was = text == sent.get(f"was.{name}", "") and not (text and plain in needed)
        if (name not in sent and kind != "tick") or is_as_it_was:
            continue
        if kind == "tick":
            values[plain] = bool(text)
        elif not text.strip() and told.get("anyOf"):
            values[plain] = None
        elif kind == "lines":
            values[plain] = [line.strip() for line in text.split("\n") if line.strip()]
        elif kind == "numbers":
            values[plain] = [_number(one) for one in re.split(r"[,;\s]+", text) if one]
        else:
            values[plain] = _number(text.strip()) if kind == "number" else text
    return values


def stands_otherwise(now: Mapping[str, Any], sent: Mapping[str, str]) -> dict[str, str]:
    """The fields in which something else stands now than when the form was shown, as a field shows it."""
    texts = {name: as_text(value).replace("\r\n", "\n").replace("\r", "\n") for name, value in now.items()}
    return {name: text for name, text in texts.items() if sent.get(f"was.{name}", text) != text}


def as_text(value: object) -> str:
    """A value as a field shows it."""
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, list | tuple):
        return (", " if all(isinstance(one, int) for one in value) else "\n").join(map(str, value))
    return "" if value is None else str(value)


def worded(name: str) -> str:
    """`assignedToId` and `max_rounds` as words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("Id")).replace("_", " ").lower()
    return f"{words[:1].upper()}{words[1:]}"


def is_of_a_row(name: str) -> bool:
    """True for the id of a row, which the page knows. People are chosen by name."""
    return name.endswith("Id") and name not in ("userId", "assignedToId")


def _number(text: str) -> int | str:
    """The number; other text as it is, so that the model says what is wrong."""
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else text


def _kinds(model: type[BaseModel]) -> Iterator[tuple[str, Mapping[str, Any], Kind]]:
    """Each field with its schema and kind. Of one that may be null the schema is that of its value, too."""
    for name, field in model.model_json_schema()["properties"].items():
        if "$ref" in field:
            continue
        told = field | next((kind for kind in field.get("anyOf", ()) if kind.get("type") != "null"), {})
        of_type: dict[str, Kind] = {"boolean": "tick", "integer": "number", "array": "lines"}
        if told.get("items", {}).get("type") == "integer":
            of_type["array"] = "numbers"
        is_long = told.get("maxLength", 0) > _LONG_CHARS and not name.endswith("_path")
        kind: Kind = of_type.get(told.get("type", ""), "text" if is_long else "line")
        kind = "hidden" if is_of_a_row(name) else _KINDS.get(name, "choice" if "enum" in told else kind)
        yield name, told, kind
