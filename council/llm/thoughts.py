"""Takes out of a reply what the model thought aloud. Pure.

Reasoning models write `<think>…</think>` before their answer or between its paragraphs, where the server does not part the
two. Some servers open the element in the prompt, so that the reply holds the closing tag alone.
"""

from __future__ import annotations

import re

from council.markup import BLANK, fences

TAGS = ("think", "thinking", "reasoning")
_TAG = f"(?:{'|'.join(TAGS)})>"
OPENING = re.compile(rf"^[ \t]*<{_TAG}", re.IGNORECASE | re.MULTILINE)
CLOSING = re.compile(f"</{_TAG}", re.IGNORECASE)
# A closing tag inside a text of JSON is followed by more of that text on its line; one that is quoted is spoken of.
LONE_CLOSING = re.compile(rf"(?<![`\"'“‘])</{_TAG}[ \t]*(?=\r?\n|[{{`]|\Z)", re.IGNORECASE)
_LEADING = re.compile(rf"[{BLANK}]*<{_TAG}", re.IGNORECASE)
_BETWEEN = re.compile(rf"^[ \t]*<({'|'.join(TAGS)})>.*?</\1>[{BLANK}]*", re.IGNORECASE | re.DOTALL | re.MULTILINE)


def without_thoughts(reply: str) -> str:
    """Leaves out a `<think>` element that begins the reply or a line of its prose, and all before a `</think>` that
    was never opened. A reply that never stopped thinking says nothing."""
    at = 0
    while opening := _LEADING.match(reply, at):
        closing = CLOSING.search(reply, opening.end())
        if closing is None:
            return ""
        at = closing.end()
    body = reply[at:].strip(BLANK)
    if "</" not in body or body.startswith("{"):
        return body
    fenced = [(fence.start, fence.end) for fence in fences(body)]  # what stands there is shown, not thought

    def keep(found: re.Match[str]) -> str:
        return found[0] if any(start < found.start() < end for start, end in fenced) else ""

    said = _BETWEEN.sub(keep, body).strip(BLANK)
    closings = list(LONE_CLOSING.finditer(said))
    return said[closings[-1].end() :].strip(BLANK) if closings else said
