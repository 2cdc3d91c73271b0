"""A bracket of JSON that stands twice where it should stand once → the same text without it. Pure.

Only what cannot mean anything else: the two stand side by side, the text has just this one bracket too many, and without
it the text is JSON. That a bracket of the other side was lost instead is no other reading where no list holds a list
(`lists_hold_lists`): what a lost `{` leaves is no JSON with either bracket, and a lost `[` or `]` that leaves two of the
other side beside one another stood between lists. Nothing is ever added, so nothing that was cut off is completed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_CHARS = 64 * 1024  # of a text that is looked at
_MAX_PAIRS = 32  # each is one more reading of the whole text

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_PAIRS = {bracket: re.compile(rf"(?={re.escape(bracket) * 2})") for bracket in "{}[]"}
_OTHER = {"{": "}", "}": "{", "[": "]", "]": "["}


def without_doubled(text: str) -> Iterator[str]:
    """Each text that `text` may be without its doubled bracket, few or none. `text`: JSON but for that bracket."""
    if len(text) > MAX_CHARS:
        return
    bare = _TEXT.sub(lambda found: " " * len(found[0]), text)
    over = [bracket for bracket, other in _OTHER.items() if bare.count(bracket) == bare.count(other) + 1]
    balanced = [bracket for bracket, other in _OTHER.items() if bare.count(bracket) == bare.count(other)]
    if len(over) != 1 or len(balanced) != 2:
        return
    places = [found.start() for found in _PAIRS[over[0]].finditer(bare)]
    if len(places) <= _MAX_PAIRS:
        yield from (text[:at] + text[at + 1 :] for at in places)


def lists_hold_lists(schema: Mapping[str, Any]) -> bool:
    """Whether some list in a JSON Schema may hold a list: then a doubled square bracket may be meant."""
    definitions = schema.get("$defs", {})

    def arrays(part: Any) -> Iterator[Mapping[str, Any]]:
        if isinstance(part, list):
            for entry in part:
                yield from arrays(entry)
        elif isinstance(part, Mapping):
            if part.get("type") == "array":
                yield part
            for entry in part.values():
                yield from arrays(entry)

    def may_be_list(part: Any, depth: int = 0) -> bool:
        if not isinstance(part, Mapping) or depth > 16:
            return True
        if "$ref" in part:
            return may_be_list(definitions.get(part["$ref"].rpartition("/")[2]), depth + 1)
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in part:
                return any(may_be_list(entry, depth + 1) for entry in part[choice])
        if "const" in part or "enum" in part:
            return False
        return bool(part.get("type", "array") == "array")

    return any(may_be_list(entry) for array in arrays(schema) for entry in _entries(array))


def _entries(array: Mapping[str, Any]) -> list[Any]:
    """The schemas of what a list holds; None for anything at all."""
    return [*array.get("prefixItems", []), *([array["items"]] if "items" in array else [])] or [None]
