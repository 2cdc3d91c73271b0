"""The grammar of request tokens, `[ORCHESTRATOR_REQUEST: ACTION(parameter)]` (Protocol 93, mandate 2).

The parameter is a text, or a JSON object for tools of several arguments; the action keeps its case. Says which tokens of
a reply an agent meant as requests and which it only quotes. A token is a request, never authority: whether it may be
fulfilled is for the registry and `echoed`. One pass over the lines; every pattern here is anchored or reads disjoint
stretches, so the time is linear in the reply.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import msgspec

from council.markup import fences
from council.safety.echoes import OutsideTexts
from council.safety.markdown import code_spans

MAX_REQUESTS = 8  # per reply: more than an agent needs, little enough to answer in one prompt
MAX_ARGUMENT_CHARS = 512
MAX_OBJECT_CHARS = 4_000  # of a JSON object: a form that an agent fills in, not a document
MAX_ACTION_CHARS = 32
MAX_REPORTED = 64  # requests returned at all: the rest of a reply that holds so many is not looked at
_RAW_CHARS = 200  # of a malformed token in a report

HOW = "write the request on a line of its own, outside quotes and code"


class Request(msgspec.Struct, frozen=True):
    """One token of a reply. `line` counts from 1. Not honoured: `reason` is told to the agent, and `action` and
    `argument` are empty if the token could not be read."""

    action: str
    argument: str
    raw: str
    line: int
    honoured: bool
    reason: str = ""


def parse(reply: str, *, max_requests: int = MAX_REQUESTS) -> list[Request]:
    """All request tokens of a reply in order, at most MAX_REPORTED of them, at most `max_requests` honoured."""
    requests: list[Request] = []
    if not _OPEN.search(reply):
        return requests
    honoured = 0
    html = _Html(reply)
    for block in _blocks(reply.replace("\r\n", "\n").replace("\r", "\n")):
        for request in _block_requests(block, html):
            if request.honoured and honoured >= max_requests:
                request = msgspec.structs.replace(
                    request, honoured=False, reason=f"at most {max_requests} requests per reply"
                )
            honoured += request.honoured
            requests.append(request)
            if len(requests) >= MAX_REPORTED:
                return requests
    return requests


def echoed(request: Request, outside: OutsideTexts) -> bool:
    """Tells whether the request stands in an outside text, as it was written or in canonical spelling."""
    canonical = f"[ORCHESTRATOR_REQUEST: {request.action}({request.argument})]"
    return outside.occurs(request.raw) or outside.occurs(canonical)


# --- Blocks of lines ------------------------------------------------------------------------------------------------


_Line = tuple[int, str, str]  # its number from 1, its text, and why no token on it counts


_RUNS_ON = "it runs on from a block quotation, leave an empty line between"
_MARKERS = re.compile(r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
_BLOCK_START = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]|#{1,6}[ \t]|(?:[-*_][ \t]*){3,}$")
_NUMBERED = re.compile(r"\s*\d+\| ")  # a line copied out of a data fence
_CODE_COLUMNS = 4  # of indentation behind the margin of a list item, from which on a line is code
_DEEP_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?: {5}|[ ]*\t)")  # code inside a list item


def _blocks(reply: str) -> Iterator[list[_Line]]:
    """Groups of lines that share their inline markup: paragraphs and list items; every other line stands alone."""
    block: list[_Line] = []
    quoting = False  # the line before was a block quotation, which runs on until an empty line
    blocks = [fence for fence in fences(reply) if not fence.quotes]
    openings = {fence.first + 1 for fence in blocks}
    fenced = {number for fence in blocks for number in range(fence.first + 2, fence.last + 2)}
    margin = 0  # column at which the text of the list item begins that a line may belong to
    for number, text in enumerate(reply.split("\n"), 1):
        if number not in fenced and (
            text[:1].isalpha() or text[:1] == "["
        ):  # most lines by far: plain prose, or a request
            block.append((number, text, _RUNS_ON if quoting else ""))
            margin = 0
            continue
        bare = text.strip()
        columns = _indentation(text)
        if number in fenced:
            yield [(number, text, "it stands inside a code fence")]
            continue
        match = _MARKERS.match(bare)
        marker = match.end() if match else 0
        if bare and columns < margin + _CODE_COLUMNS:
            margin = columns + marker if marker else min(margin, columns)
        content = bare[marker:]
        opening = number in openings
        starts = not bare or opening or content.startswith(">") or _BLOCK_START.match(bare)
        if starts and block:
            yield block
            block = []
        if starts:
            quoting = False
        if not bare:
            yield [(number, "", "")]
        elif opening:
            yield [(number, text, "it stands inside a code fence")]
        elif content.startswith(">"):
            quoting = True
            yield [(number, text, "it stands in a block quotation")]
        else:
            refusal = ""
            if quoting:
                refusal = _RUNS_ON
            elif _indentation(text) >= margin + _CODE_COLUMNS or _DEEP_ITEM.match(text.lstrip()):
                refusal = "it is indented like code"
            elif text.lstrip().startswith("|"):
                refusal = "it stands in a table"
            elif _NUMBERED.match(text):
                refusal = "it is copied from data"
            block.append((number, text, refusal))
    if block:
        yield block


def _indentation(text: str) -> int:
    return len(text[: len(text) - len(text.lstrip())].expandtabs(4))


# --- Tokens in a block ----------------------------------------------------------------------------------------------

_OPEN = re.compile(
    r"\[(?i:\s*ORCHESTRATOR(?:_|([\\_\s-]{1,3}))REQUEST)",
    re.ASCII,  # the group: spelled in another way
)  # a first character without case is searched for at once
_ACTION = re.compile(rf"\s*:\s*([A-Za-z_]{{2,{MAX_ACTION_CHARS}}})\s*\(\s*", re.ASCII)
_JSON = json.JSONDecoder()
_CLOSE = re.compile(r"\s*\)\s*\]")
_QUOTED = re.compile(
    r"(?P<mark>[\"'])(?P<text>(?>(?:(?!(?P=mark))[^\\]|\\.)*))(?P=mark)"
    r"(?P<options>(?>(?:\s*,\s*[a-z_]{1,32}\s*=\s*[\w.-]{1,64})*))\s*\)\s*\]",
    re.ASCII,
)
_BARE = re.compile(r"([^\[\]]*+)\]")
_JOINT = re.compile(r"[*_]{0,3}[.,;:!?…。！？]{0,3}[*_]{0,6}")  # what may follow a token, spaces aside
_MAX_JOINT_CHARS = 256  # spaces between its signs included
# What may touch a token from the left, beside spaces and letters of scripts that set none; anything else holds or hides it.
_BEFORE = frozenset(":.,;?)—–…*_。：，、；！？）")
_QUOTES = frozenset("\"'`“”„‘’‚«»‹›「」『』")


@dataclass(frozen=True)
class _Token:
    start: int
    end: int
    action: str
    argument: str
    error: str = ""


def _block_requests(block: list[_Line], html: _Html) -> Iterator[Request]:
    text = "\n".join([text for _, text, _ in block])
    if not _OPEN.search(text) and "<" not in text and "-->" not in text:
        if not text:
            html.end_paragraph()
        return
    pieces: list[str] = []
    position = 0
    for start, end in code_spans(text):  # inline code is blanked out by NULs, at the same length
        pieces += (text[position:start].replace("\0", " "), "\0" * (end - start))
        position = end
    masked = "".join([*pieces, text[position:].replace("\0", " ")])
    quotation = _Quotation()
    offset = 0
    for number, words, refusal in block:
        tokens: list[_Token] = []
        position = 0
        while len(tokens) < MAX_REPORTED and (opening := _OPEN.search(words, position)):
            tokens.append(_token(words, opening))
            position = opening.end() if tokens[-1].error else tokens[-1].end
        # The first token from which on the line holds nothing but tokens; len(tokens) if it ends otherwise.
        tail, end = len(tokens), len(words)
        while tail > 0:
            between = words[tokens[tail - 1].end : end].strip()
            if len(between) > _MAX_JOINT_CHARS or not _JOINT.fullmatch("".join(between.split())):
                break
            tail -= 1
            end = tokens[tail].start
        position = 0
        for index, token in enumerate(tokens):
            prose = masked[offset + position : offset + token.start]
            position = token.end
            quotation.read(prose)
            html.read(prose, words, refusal)
            reason = token.error or refusal or quotation.refusal or html.refusal
            if not reason and "\0" in (masked[offset + token.start], masked[offset + token.end - 1]):
                reason = "it stands in inline code"
            reason = reason or _placement(words, tokens, index, tail)
            raw = words[token.start : token.end]
            told = f"{reason}; {HOW}" if reason else ""
            yield Request(token.action, token.argument, raw, number, honoured=not reason, reason=told)
        prose = masked[offset + position : offset + len(words)]
        quotation.read(prose)
        html.read(prose, words, refusal)
        offset += len(words) + 1


def _token(line: str, opening: re.Match[str]) -> _Token:
    action = None if opening[1] else _ACTION.match(line, opening.end())
    if action is None:
        return _malformed(
            line, opening, "between its brackets it is not spelled ORCHESTRATOR_REQUEST: ACTION(parameter)"
        )
    name, start = action[1], action.end()
    if line.startswith("{", start):
        try:
            length = _JSON.raw_decode(line[start : start + MAX_OBJECT_CHARS])[1]
        except (ValueError, RecursionError):  # half an object or one that is too long, digits without end, deep nesting
            length = 0
        if length and (close := _CLOSE.match(line, start + length)):
            return _Token(opening.start(), close.end(), name, line[start : start + length])
    quoted = _QUOTED.match(line, start)
    if quoted and quoted["options"]:  # `"a question [sic]", scope=memory`: for the tool to take apart
        argument = line[quoted.start() : quoted.end("options")]
        end = quoted.end()
    elif quoted:
        mark = quoted["mark"]
        argument = re.sub(rf"\\([{mark}\\])", r"\1", quoted["text"])
        end = quoted.end()
    else:
        bare = _BARE.match(line, start)
        body = bare[1].rstrip() if bare else ""
        if bare is None or not body.endswith(")"):
            return _malformed(line, opening, "it is not closed by )] on its line, or holds a bracket outside quotes")
        argument = body[:-1].strip()
        depth = list(accumulate(1 if paren == "(" else -1 for paren in re.findall("[()]", argument)))
        if depth and (min(depth) < 0 or depth[-1] != 0):
            return _malformed(line, opening, "its parentheses do not match; put the parameter in double quotes")
        if len(argument) >= 2 and argument[0] + argument[-1] in ("“”", "``"):
            argument = argument[1:-1]
        end = bare.end()
    if len(argument) > MAX_ARGUMENT_CHARS:
        return _malformed(line, opening, f"its parameter is longer than {MAX_ARGUMENT_CHARS} characters")
    return _Token(opening.start(), end, name, argument)


def _malformed(line: str, opening: re.Match[str], error: str) -> _Token:
    end = opening.end() + len(line[opening.end() : opening.end() + _RAW_CHARS].split("[")[0].split("]")[0])
    return _Token(opening.start(), end + line.startswith("]", end), "", "", error)


def _placement(line: str, tokens: list[_Token], index: int, tail: int) -> str:
    """The reason why a readable token does not count where it stands on its line; empty if it does."""
    token = tokens[index]
    before = line[: token.start].rstrip("*_")[-1:]
    if (before and before in _QUOTES) or line[token.end : token.end + 1] in _QUOTES:
        return "it stands in quotation marks"
    if any(earlier.error for earlier in tokens[:index]):
        return "it follows an unreadable request on its line"
    if index < tail:
        return "text follows it on its line"
    adjacent = index > 0 and tokens[index - 1].end == token.start
    touching = line[: token.start][-1:]
    if not touching or adjacent or touching.isspace() or touching in _BEFORE or unicodedata.category(touching) == "Lo":
        return ""
    return "it touches the text before it"


class _Quotation:
    """Watches for a double quotation mark of the paragraph that is still open. A straight one right behind a letter or
    digit opens nothing: it stands for inches."""

    _MARK = re.compile("[“”„«»]")
    _ENDS = {"„": "“”", "“": "”", "«": "»", "»": "«"}  # noqa: RUF012  a constant

    def __init__(self) -> None:
        self._straight = False
        self._open: list[str] = []

    def read(self, prose: str) -> None:
        for before in prose.split('"')[:-1]:
            self._straight = not self._straight and not before[-1:].isalnum()
        for mark in self._MARK.findall(prose):
            if self._open and mark in self._ENDS[self._open[-1]]:
                self._open.pop()
            elif mark in self._ENDS:
                self._open.append(mark)

    @property
    def refusal(self) -> str:
        return "it stands in quotation marks" if self._straight or self._open else ""


class _Html:
    """Watches for an open comment, or an open element that shows code or a quotation. One that begins inside a line
    and is closed nowhere is only spoken of."""

    _TAG = re.compile(r"<(/?)(pre|code|blockquote|q|samp|kbd|xmp|textarea|script|style)\b|(<!--)|(-->)", re.IGNORECASE)
    _INLINE = frozenset({"code", "q", "samp", "kbd"})  # forgotten at the end of their paragraph

    def __init__(self, reply: str) -> None:
        self._open: set[str] = set()
        self._reply = reply

    @cached_property
    def _closed(self) -> frozenset[str]:
        return frozenset((match[2] or "!").lower() for match in self._TAG.finditer(self._reply) if match[1] or match[4])

    def read(self, prose: str, line: str, refusal: str) -> None:
        if refusal or ("<" not in prose and "-->" not in prose):
            return
        for match in self._TAG.finditer(prose):
            name = (match[2] or "!").lower()
            if match[1] or match[4]:
                self._open.discard(name)
            elif name in self._closed or line.lstrip().startswith(match.group()):
                self._open.add(name)

    def end_paragraph(self) -> None:
        self._open -= self._INLINE

    @property
    def refusal(self) -> str:
        return "it stands in an HTML comment or element" if self._open else ""
