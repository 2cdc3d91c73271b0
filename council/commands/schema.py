"""JSON Schema of command files and of recurring ones, for editors: completion, ranges, unknown keys. Pure.

Draft 7, because that is what editors' JSON and YAML services know in full. The union is written as one `if` per type,
the default type last. An editor then names every known type, and reports a wrong key on the branch that is meant.
"""

from __future__ import annotations

import json
from typing import Any

from council.commands.types import DEFAULT_TYPE, CommandTypes

DRAFT = "http://json-schema.org/draft-07/schema#"
SCHEMA_FOLDER = ".schema"  # in commands/; the inbox never looks into sub-folders
COMMAND_SCHEMA_NAME = "command.schema.json"
RECURRING_SCHEMA_NAME = "recurring.schema.json"

_ROOT = "#/definitions"

_SCHEDULE: dict[str, Any] = {
    "title": "Schedule",
    "description": "When: a cron expression of five fields, read in UTC, or an object with `cron` and `zone`.",
    "examples": ["0 7 * * 1-5"],
    "oneOf": [
        {"type": "string", "description": "minute, hour, day of month, month, day of week; in UTC"},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["cron"],
            "properties": {
                "cron": {"type": "string", "description": "minute, hour, day of month, month, day of week"},
                "zone": {"type": "string", "description": "An IANA time zone: Europe/Berlin.", "default": "UTC"},
            },
        },
    ],
}


def command_schema(types: CommandTypes) -> dict[str, Any]:
    """The schema of one file in `commands/`."""
    said = "A command file: drop it into commands/, and a run begins."
    return _schema("Council command", said, types, _definitions(types))


def recurring_schema(types: CommandTypes) -> dict[str, Any]:
    """The schema of one file in `commands/recurring/`: a command that becomes a run, and its `schedule`; its ids
    are made."""
    types = CommandTypes(type_ for type_ in types if not type_.is_control)
    definitions = _definitions(types)
    for type_ in types:
        branch = definitions[type_.model.__name__]
        del branch["properties"]["id"]
        branch["properties"]["schedule"] = {"$ref": f"{_ROOT}/Schedule"}
        branch["required"] = [*branch.get("required", ()), "schedule"]
    definitions["Schedule"] = _SCHEDULE
    said = "Dropped into commands/ whenever its schedule is due."
    return _schema("Council recurring command", said, types, definitions)


def schema_files(types: CommandTypes) -> dict[str, bytes]:
    """Every schema by the name that it has in `commands/.schema/`."""
    schemas = {COMMAND_SCHEMA_NAME: command_schema(types), RECURRING_SCHEMA_NAME: recurring_schema(types)}
    return {name: as_text(schema).encode() for name, schema in schemas.items()}


def as_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema(title: str, description: str, types: CommandTypes, definitions: dict[str, Any]) -> dict[str, Any]:
    branches = {type_.name: type_.model.__name__ for type_ in types}
    schema: dict[str, Any] = {"$ref": f"{_ROOT}/{branches[DEFAULT_TYPE]}"}
    for name in reversed([name for name in types.names if name != DEFAULT_TYPE]):
        asked = {"properties": {"type": {"const": name}}, "required": ["type"]}
        schema = {"if": asked, "then": {"$ref": f"{_ROOT}/{branches[name]}"}, "else": schema}
    type_ = {  # the branches themselves do not list its values: that would hide the others
        "description": "What kind of command this is.",
        "default": DEFAULT_TYPE,
        "enum": list(types.names),
        "enumDescriptions": [definitions[branch]["description"] for branch in branches.values()],
    }
    return {
        "$schema": DRAFT,
        "title": title,
        "description": description,
        "type": "object",
        "properties": {"type": type_},
        **schema,
        "definitions": definitions,
    }


def _definitions(types: CommandTypes) -> dict[str, Any]:
    schema = types.union.json_schema(by_alias=True, ref_template=f"{_ROOT}/{{model}}")
    definitions: dict[str, Any] = _draft_7(schema["$defs"])
    for type_ in types:
        definitions[type_.model.__name__]["properties"]["type"] = {"title": "Type"}
    return definitions


def _draft_7(part: Any) -> Any:
    """Rewrites a schema for draft 7, where nothing beside a `$ref` counts: what stands beside one moves around it."""
    if isinstance(part, list):
        return [_draft_7(entry) for entry in part]
    if not isinstance(part, dict):
        return part
    moved = {key: _draft_7(value) for key, value in part.items()}
    if "$ref" in moved and len(moved) > 1:
        moved["allOf"] = [{"$ref": moved.pop("$ref")}]
    return moved
