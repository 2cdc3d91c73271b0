"""Finds the JSON object in a model's reply: behind its thoughts, in a fence, amid prose. Nothing is parsed or repaired,
except that one whole object is told from two. Time is linear in the reply."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from council.markup import BLANK, Fence, fences, without_fences, without_thoughts

Wrapping = Literal["none", "fences", "prose", "think"]  # of several, the last is named

BLOCK_TAG = "council"
_JSON_TAGS = frozenset({"", "json", "json5", "jsonc"})
_OPENING_BRACE = re.compile(r"^[ \t]*\{", re.MULTILINE)
_ON_ONE_LINE = re.compile(  # possessive: a run of spaces or backticks costs no square of its length
    r"(?m)^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+\w*+[ \t]*+(?=\{[^`\n]*$)"  # an object behind an opening fence
    r"|^(?![ \t]*+(?:```|~~~)).*\}[ \t]*+(?=(?:`{3,}+|~{3,}+)[ \t\r]*+$)"  # or before a closing one
)


@dataclass(frozen=True)
class Extract:
    """The text of an object, empty where there is none, and the reply around it without thoughts. `several`: more than
    one object stands there, and which of them is meant cannot be told."""

    text: str
    before: str = ""
    after: str = ""
    wrapping: Wrapping = "none"
    several: bool = False


def extract(reply: str, keys: Collection[str]) -> Extract:
    """The one object of a reply that was asked for nothing else; `keys` tell it from an example beside it."""
    body = without_thoughts(reply)
    blocks = [] if body.startswith("{") else [block for block in _blocks(body) if "{" in block.text]
    if len(blocks) > 1:
        blocks = [block for block in blocks if names_keys(block.text, keys)] or blocks
    if blocks:
        found = _fenced(body, blocks[-1])
        beside = "{" in found.before + found.after and names_keys(found.before + found.after, keys)
        found = replace(found, wrapping="fences", several=len(blocks) > 1 or beside)
    else:
        found = _bare(body)
    return found if body == reply.strip(BLANK) else replace(found, wrapping="think")


def extract_block(reply: str, keys: Collection[str]) -> Extract:
    """The last block of the right shape in a reply of prose. A fence tagged BLOCK_TAG is one whatever it holds, a fence
    of JSON if it names half of the `keys`. Without either it is an object with such keys that starts a line and ends
    the reply."""
    body = without_thoughts(reply)
    blocks = [
        block
        for block in _blocks(body)
        if block.tag == BLOCK_TAG
        or (
            block.tag in _JSON_TAGS
            and block.text.lstrip(BLANK)[:1] in ("{", "/", "#")  # with a comment, at worst
            and names_keys(block.text, keys)
        )
    ]
    found = _fenced(body, blocks[-1]) if blocks else _trailing(body, keys)
    return found if body == reply.strip(BLANK) else replace(found, wrapping="think")


def _bare(body: str) -> Extract:
    """The text from the first brace to the last: less could be a part of what was meant."""
    first, last = body.find("{"), body.rfind("}")
    if first < 0:
        return Extract("", before=body)
    if body[:first].rstrip(BLANK).endswith("["):
        first = body.rindex("[", 0, first)
    end = last + 1 if last > first else len(body)
    if "{" in body[end:] or '":' in body[end:] or body[end:].lstrip(BLANK).startswith((",", ":", "]", '"')):
        end = len(body)  # what follows is no prose
    text, before, after = body[first:end], body[:first].strip(BLANK), body[end:].strip(BLANK)
    return Extract(text, before, after, "prose" if before or after else "none", _more_than_one(text))


def _trailing(body: str, keys: Collection[str]) -> Extract:
    fenced = [range(fence.start, fence.end) for fence in fences(body)] if "{" in body else []
    for brace in _OPENING_BRACE.finditer(body):
        at = brace.start()
        if any(at in each for each in fenced):
            continue
        if names_keys(without_fences(body[at:]), keys):
            return replace(_bare(body[at:]), before=body[:at].rstrip(BLANK), wrapping="prose")
        break
    return Extract("", before=body)


def _more_than_one(text: str) -> bool:
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return "{" in text[end:]


def names_keys(text: str, keys: Collection[str]) -> bool:
    """True where half of the keys stand before a colon."""
    found = sum(1 for key in keys if re.search(rf"(?<!\w){re.escape(key)}[\"']?\s*:", text))
    return 2 * found >= max(1, len(keys))


def _blocks(body: str) -> list[Fence]:
    """The fenced blocks. A fence may share its line with the beginning or the end of an object: to be found it gets a line
    of its own, and the places are those in the body as it is."""
    breaks = [found.end() for found in _ON_ONE_LINE.finditer(body)]
    text = "\n".join(body[start:end] for start, end in pairwise((0, *breaks, len(body))))
    added = [at + number for number, at in enumerate(breaks)]

    def place(at: int) -> int:
        return at - bisect_left(added, at)

    found = (fence for fence in fences(text) if not fence.prefix.strip())
    return [replace(fence, start=place(fence.start), end=place(fence.end)) for fence in found]


def _fenced(body: str, fence: Fence) -> Extract:
    text = fence.text.strip(BLANK)
    before, after = body[: fence.start].rstrip(BLANK), body[fence.end :].strip(BLANK)
    return Extract(text, before, after, several=_more_than_one(text))
