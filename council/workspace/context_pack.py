"""The context pack: what code reads for an agent before it is asked, through the agent's own read tools.

It is read in the asker's name and scope. With a project in scope only that project's data is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from council.errors import ToolRefused
from council.ids import readable_json
from council.tools.registry import ToolRegistry
from council.tools.tokens import Request
from council.tools.tool import ToolContext, ToolResult

MAX_SHOWN_CHARS = 24_000  # of one reading in a prompt: some two hundred tasks
_PEOPLE = ("authorId", "assignedToId")  # keys that hold the id of a user
_NAMED = ("taskId", "noteId", "eventId", "userId")  # each beside the title or name of its own row

NOTE_READING = "getNoteContentIfUnlocked"
Row = dict[str, Any]


class PackReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of a read tool and its answer, as one JSON value on each line. `error` says why there is none."""

    tool: str
    arguments: dict[str, Any] = {}
    text: str = ""
    error: str = ""
    error_code: str = ""

    @property
    def rows(self) -> list[Row]:
        """All rows of the answer."""
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def shown(self) -> list[str]:
        """The lines that a prompt holds: whole rows, as many as fit. Of a first row that is too long, its longest values are
        halved until it fits."""
        lines, size = self.text.splitlines(), 0
        for count, line in enumerate(lines):
            size += len(line)
            if size > MAX_SHOWN_CHARS and count:
                return lines[:count]
            if size > MAX_SHOWN_CHARS:
                row = json.loads(line)
                while len(readable_json(row)) > MAX_SHOWN_CHARS:
                    longest = max(row, key=lambda key: len(readable_json(row[key])))
                    value = row[longest]
                    row = {**row, longest: value[: len(value) // 2] if isinstance(value, str | list) else ""}
                return [readable_json(row)]
        return lines

    @property
    def left_out(self) -> str:
        """The rows that a prompt does not hold, in words; empty where it holds all."""
        lines, shown = self.text.splitlines(), self.shown
        rest = len(lines) - len(shown)
        told = [f"{rest} row{'s' if rest > 1 else ''}"] if rest else []
        return " and ".join([*told, *(["part of a long row"] if lines[:1] != shown[:1] else [])])


@dataclass(frozen=True)
class ContextPack:
    """All that was read for one reply. Its ids are those that an agent was shown: no other may stand in a reply."""

    readings: tuple[PackReading, ...] = ()
    drafts: tuple[str, ...] = ()  # open drafts of this conversation, as their person sees them

    def with_more(self, readings: Sequence[PackReading]) -> ContextPack:
        return ContextPack((*self.readings, *readings), self.drafts)

    @cached_property
    def ids(self) -> Mapping[str, frozenset[str]]:
        """The ids that were shown, by the name of the argument that takes them: `taskId`, `userId`, …"""
        found: dict[str, set[str]] = {}
        for row in self.rows():
            for key, value in _entries(row):
                kind = "userId" if key in _PEOPLE else key
                if kind.endswith("Id") and isinstance(value, str) and value:
                    found.setdefault(kind, set()).add(value)
        return {kind: frozenset(values) for kind, values in found.items()}

    def rows(self, tool: str = "", *, all_of_them: bool = False) -> list[Row]:
        """The rows that were shown; of one tool, where it is named. `all_of_them`: also those that no prompt holds."""
        readings = [one for one in self.readings if tool in ("", one.tool)]
        if all_of_them:
            return [row for reading in readings for row in reading.rows]
        return [json.loads(line) for reading in readings for line in reading.shown]

    def row_of(self, row_id: str) -> str:
        """The words of the rows that hold this id, as one text; empty where none does."""
        return "\n".join(readable_json(row) for row in self.rows() if row_id in [value for _, value in _entries(row)])

    def name_of(self, row_id: str) -> str:
        """The title or name that a person knows a row by; its id, where no row with that id was read."""
        named = (row for row in _objects(self.rows(all_of_them=True)) if row_id in [row.get(key) for key in _NAMED])
        return next((name for row in named if (name := row.get("title") or row.get("name"))), row_id)


async def read(
    tools: ToolRegistry, allowed: Sequence[str], name: str, arguments: Mapping[str, Any], asker: str
) -> PackReading:
    """A reading by one of the `allowed` tools, in the name of `asker`. A refusal is a reading with its `error`."""
    tool = tools.get(name)
    fields = tuple(tool.arguments.model_fields) if tool is not None else ()
    given = {key: value for key, value in arguments.items() if value not in (None, "")}
    whole = json.dumps(given, ensure_ascii=False) if given else ""
    argument = str(given.get(fields[0], "")) if len(fields) == 1 else whole
    request = Request(name, argument, name, 0, honoured=True)
    try:
        result = await tools.call(request, allowed=allowed, context=ToolContext(memory=False, asker=asker))
    except ToolRefused as refused:
        result = ToolResult.refused(refused.code, str(refused))
    if not result.ok:
        return PackReading(name, given, error=result.error, error_code=result.error_code)
    found = json.loads(result.text)
    rows = found if isinstance(found, list) else [found]
    return PackReading(name, given, "\n".join(map(readable_json, rows)))


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Each key with its value, at whatever depth."""
    for one in _objects(value):
        yield from one.items()


def _objects(value: Any) -> Iterator[Row]:
    """Each object, at whatever depth."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)
