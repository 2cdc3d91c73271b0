"""Where the JSON object stands in a model's reply: behind its thoughts, in a fence, amid prose. Pure.

Only places are looked for here; nothing is parsed or repaired, except that one whole object is told from two. Time is
linear in the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

Wrapping = Literal["none", "fences", "prose", "think"]
_WRAPPINGS: tuple[Wrapping, ...] = ("none", "fences", "prose", "think")  # of several, the last is named

BLANK = " \t\r\n\f\v\u00a0\ufeff\u200b"
BLOCK_TAG = "council"
_JSON_TAGS = frozenset({"", "json", "json5", "jsonc"})


@dataclass(frozen=True)
class Extract:
    """The text of an object, and the reply around it without thoughts. `text` is empty where there is none.

    `several`: more than one object stands there, and which of them is meant cannot be told.
    """

    text: str
    before: str = ""
    after: str = ""
    wrapping: Wrapping = "none"
    several: bool = False


def extract(reply: str, keys: Collection[str]) -> Extract:
    """The one object that a reply is or holds, for a model that was asked for nothing else. `keys`: those it must have,
    by which it is told from an example beside it."""
    body, thought = _without_thoughts(reply)
    found = _extract(body, keys)
    return _wrapped(found, "think") if thought else found


def extract_block(reply: str, keys: Collection[str], tag: str = BLOCK_TAG) -> Extract:
    """The last block of the right shape in a reply of prose, with the prose around it.

    A fence of that `tag` is one whatever it holds; a fence of JSON if it names at least half of the `keys`; without
    either, an object with such keys that starts on a line of its own and ends the reply.
    """
    body, thought = _without_thoughts(reply)
    fences = [fence for fence in _fences(body) if fence.tag == tag or _is_candidate(fence, keys)]
    found = _fenced(body, fences[-1], "none") if fences else _trailing(body, keys)
    return _wrapped(found, "think") if thought else found


def without_thoughts(reply: str) -> str:
    """What a reply says once the model has thought: no `<think>` element that begins it or a line of its prose, and nothing
    before a `</think>` that was never opened (some servers open it in the prompt)."""
    return _without_thoughts(reply)[0]


# ── thoughts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_OPENING = re.compile(rf"[{BLANK}]*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
# A closing tag inside a text of JSON is followed by more of that text on its line; one that is quoted is spoken of.
_LONE_CLOSING = re.compile(rf"(?<![`\"'“‘]){_CLOSING.pattern}[ \t]*(?=\r?\n|[{{`]|\Z)", re.IGNORECASE)
_BETWEEN = re.compile(
    rf"^[ \t]*<(think|thinking|reasoning)>.*?</\1>[{BLANK}]*", re.IGNORECASE | re.DOTALL | re.MULTILINE
)


def _without_thoughts(reply: str) -> tuple[str, bool]:
    at = 0
    while opening := _OPENING.match(reply, at):
        closing = _CLOSING.search(reply, opening.end())
        if closing is None:  # it never stopped thinking
            return "", True
        at = closing.end()
    body = reply[at:].strip(BLANK)
    if body.startswith("{"):
        return body, bool(at)
    said = _without_elements(body)
    closings = tuple(_LONE_CLOSING.finditer(said)) if "</" in said else ()
    rest = said[closings[-1].end() :].strip(BLANK) if closings else said
    return rest, bool(at or closings or said != body)


def _without_elements(body: str) -> str:
    """The body without the thoughts between its paragraphs; what stands in a fence is shown, not thought."""
    if "</" not in body:
        return body
    fences = list(_fences(body))

    def keep(found: re.Match[str]) -> str:
        return found[0] if any(fence.start < found.start() < fence.end for fence in fences) else ""

    return _BETWEEN.sub(keep, body).strip(BLANK)


# ── one object ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _extract(body: str, keys: Collection[str]) -> Extract:
    fences = [] if body.startswith("{") else [fence for fence in _fences(body) if "{" in fence.text]
    if len(fences) > 1:
        fences = [fence for fence in fences if _names(fence.text, keys)] or fences
    if not fences:
        return _bare(body)
    found = _fenced(body, fences[-1], "fences")
    beside = "{" in found.before + found.after and _names(found.before + found.after, keys)
    return Extract(found.text, found.before, found.after, "fences", several=len(fences) > 1 or beside)


def _bare(body: str) -> Extract:
    """From the first brace to the last: less could be a part of what was meant."""
    first, last = body.find("{"), body.rfind("}")
    if first < 0:
        return Extract("", before=body)
    if body[:first].rstrip(BLANK).endswith("["):
        first = body.rindex("[", 0, first)
    end = last + 1 if last > first else len(body)
    if "{" in body[end:] or body[end:].lstrip(BLANK).startswith((",", ":", "]", '"')):
        end = len(body)  # what follows is no prose
    found = Extract(body[first:end], body[:first].strip(BLANK), body[end:].strip(BLANK))
    found = _wrapped(found, "prose") if found.before or found.after else found
    return Extract(found.text, found.before, found.after, found.wrapping, several=_more_than_one(found.text))


_OPENING_BRACE = re.compile(r"^[ \t]*\{", re.MULTILINE)


def _trailing(body: str, keys: Collection[str]) -> Extract:
    if "{" not in body:
        return Extract("", before=body)
    unfenced = _without_fences(body)
    opening = _OPENING_BRACE.search(unfenced)
    if opening is None or not _names(unfenced[opening.start() :], keys):
        return Extract("", before=body)
    found = _bare(body[opening.start() :])
    before = body[: opening.start()].rstrip(BLANK)
    return Extract(found.text, before, found.after, "prose", found.several)


def _more_than_one(text: str) -> bool:
    """Whether a whole object is followed by another one."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return "{" in text[end:]


def _wrapped(found: Extract, wrapping: Wrapping) -> Extract:
    stronger = max(found.wrapping, wrapping, key=_WRAPPINGS.index)
    return Extract(found.text, found.before, found.after, stronger, found.several)


def _names(text: str, keys: Collection[str]) -> bool:
    """Whether a text names at least half of the keys, as keys."""
    found = sum(1 for key in keys if re.search(rf"(?<!\w){re.escape(key)}[\"']?\s*:", text))
    return 2 * found >= max(1, len(keys))


# ── fences ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`]*)")


@dataclass(frozen=True)
class _Fence:
    """A fenced block of the body: `start` to `end` with its fences, `text` between them, `tag` in small letters."""

    start: int
    end: int
    tag: str
    text: str


def _fences(body: str) -> Iterator[_Fence]:
    """The blocks in order; the last one may lack its closing fence."""
    if "```" not in body and "~~~" not in body:
        return
    opened: tuple[int, int, str, str] | None = None  # start, start of the text, run, tag
    at = 0
    for line in body.split("\n"):
        end = at + len(line)
        match = _FENCE.fullmatch(line.rstrip())
        if opened is None and match:
            tag = re.split(r"[\s{]", match[2], maxsplit=1)[0].lower()
            text_at = at + line.index("{") if "{" in line else min(end + 1, len(body))
            opened = (at, text_at, match[1], tag)
        elif opened is not None and (closing := _closing(opened[2], line)) >= 0:
            yield _Fence(opened[0], end, opened[3], body[opened[1] : at + closing])
            opened = None
        at = end + 1
    if opened is not None:
        yield _Fence(opened[0], len(body), opened[3], body[opened[1] :])


def _closing(run: str, line: str) -> int:
    """Where in a line its closing fence begins, behind nothing or the end of an object; -1 without one."""
    bare = line.rstrip()
    content = bare.rstrip(run[0])
    closes = len(bare) - len(content) >= len(run) and (not content.strip() or content.rstrip().endswith("}"))
    return len(content) if closes else -1


def _is_candidate(fence: _Fence, keys: Collection[str]) -> bool:
    begins_like_one = fence.text.lstrip(BLANK)[:1] in ("{", "/", "#")  # with a comment, at worst
    return fence.tag in _JSON_TAGS and begins_like_one and _names(fence.text, keys)


def _without_fences(body: str) -> str:
    """The body with its fenced blocks blanked out."""
    pieces: list[str] = []
    at = 0
    for fence in _fences(body):
        pieces += (body[at : fence.start], " " * (fence.end - fence.start))
        at = fence.end
    return "".join([*pieces, body[at:]])


def _fenced(body: str, fence: _Fence, wrapping: Wrapping) -> Extract:
    text = fence.text.strip(BLANK)
    before, after = body[: fence.start].rstrip(BLANK), body[fence.end :].strip(BLANK)
    return Extract(text, before, after, wrapping, several=_more_than_one(text))
