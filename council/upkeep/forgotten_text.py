"""One text as it may stand in a file, and the mark that takes its place. Pure.

It is found in its exact words and case, wherever. Its white space may be set otherwise (a digest indents, a page wraps), and it
may be escaped for JSON or Markdown. Its request tokens may be inert. It may be cut off by an ellipsis or at the end of a line,
as titles and excerpts are. In the names of Council's own pages it is found as they spell it. Never found: other words for the
same thing, a hash, its end without its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from council.ids import SLUG_CHARS, slugify
from council.safety.untrusted import clean

_PARTS = re.compile(r"(?P<token>\[\s*orchestrator[\s_-]*request)|(?P<space>\s+)|(?P<char>.)", re.IGNORECASE | re.DOTALL)
_REQUEST = r"\[(?i:orchestrator[\s_-]*request|quoted-request|request)"
_ESCAPED_SPACE = r"\\+(?:[nrtf]|u(?i:00(?:0[9-d]|1[c-f]|20|85|a0)|1680|20(?:0[0-9a]|2[89f]|5f)|3000))"
_SPACE = rf"(?:\n[ \t]*>|\s|{_ESCAPED_SPACE})+"  # in Markdown a line of a quotation begins with >
_ELLIPSIS = re.compile(r"\s*(?:…|\\u2026)")
_MIN_BEGINNING = 4  # characters: shorter than what can be forgotten, a beginning tells nothing
_MIN_LINE = 12  # characters: what ends a line by chance is rarely so long
# Where a title ends: its line, or in JSON and front matter its string, or in a digest of memory before the status.
_LINE_END = re.compile(
    r'[ \t]*(?:\Z|\r?\n|\\+[rn]|\\*"[ \t]*(?:[\r\n,:}\]]|\Z)|\((?:succeeded|degraded)\)[ \t]*(?:\n|\\+n|\Z))'
)
_TITLE_LOSES = (".", ":", "!")  # at its end
_MAX_BEGINNING = 1_000  # longer than any title or excerpt
_BETWEEN = rb"(?:\\+(?:[nrtf]|u[0-9a-fA-F]{4})|&#?\w{1,6};|[^A-Za-z0-9]){0,12}"
_PART_CHARS = 12
_BEGINNING_CHARS = 8  # titles are cut
_MAX_PARTS = 17
_MIN_PIECE = 16  # bytes
_MARKS = bytes(byte for byte in range(128) if byte != 32 and not chr(byte).isalnum())
# Of what is written in other letters, a few of the bytes within them.
_TO_MARKS = bytes.maketrans(_MARKS + bytes(range(0x80, 0x85)), b"\n" * (len(_MARKS) + 5))
# A page's name, in a path or alone: what was made of a title, and what stands behind it where several would be called so.
_NAME = r"([a-z0-9]{1,60}(?:-[a-z0-9]{1,60}){0,30}?)((?:-[0-9]+)?(?:\.[0-9]{8}-[0-9]{6}-\w{8})?\.md)"
_IN_A_PATH = re.compile(rf"(artifacts/(?:[\w.-]{{1,100}}/){{0,8}}\.?){_NAME}")
_ALONE = re.compile(rf"\A(\.?){_NAME}(?=[\w.-]{{0,100}}\Z)")


class NameSpan:
    """The same words in the names that Council makes for its pages, also where such a name was cut off within them."""

    def __init__(self, text: str, mark: str) -> None:
        self._mark = mark
        self._words = slugify(text, max_chars=_MAX_BEGINNING).split("-")
        self._whole = re.compile(rf"(?<![a-z0-9]){'-'.join(self._words)}(?![a-z0-9])")

    def may_be_in(self, data: bytes) -> bool:
        """True where `data` holds the beginning of such a name."""
        return "-".join(self._words[:2]).encode() in data

    def is_in(self, text: str) -> bool:
        """True when there is anything to replace."""
        return self.without(text) != text

    def without(self, text: str) -> str:
        """`text` with the mark in those names; doing it twice changes nothing more."""
        for pattern in (_IN_A_PATH, _ALONE):
            text = pattern.sub(lambda found: f"{found[1]}{self._named(found[2])}{found[3]}", text)
        return text

    def _named(self, name: str) -> str:
        changed = self._whole.sub(lambda found: self._mark, name)
        for count in range(len(self._words) - 1, 0, -1):
            beginning, following = "-".join(self._words[:count]), self._words[count]
            is_cut = len(name) + 1 + len(following) > SLUG_CHARS
            if changed == name and is_cut and f"-{name}".endswith(f"-{beginning}"):
                return name.removesuffix(beginning) + self._mark
        return changed


class Span:
    """A text to be forgotten. `mark` must not hold it."""

    def __init__(self, text: str, mark: str) -> None:
        parts = list(_PARTS.finditer(text.strip()))
        # A pattern for each character, run of white space, or opening of a request token.
        units = [_REQUEST if part["token"] else _SPACE if part["space"] else _character(part["char"]) for part in parts]
        self._mark = mark
        self._parts = _parts_of(text)
        self._whole = re.compile("".join(units))
        seen = [at for at, part in enumerate(parts) if not part["char"] or clean(part["char"])]
        to = seen[_MIN_BEGINNING - 1] + 1 if len(seen) >= _MIN_BEGINNING else len(units)
        self._start = re.compile("".join(units[:to]))  # of invisible ones alone it would be found everywhere
        compiled = {unit: re.compile(unit) for unit in set(units[:_MAX_BEGINNING])}
        self._units = [compiled[unit] for unit in units[:_MAX_BEGINNING]]
        self._may_end_line = [
            at >= (_MIN_BEGINNING if "\n" in part[0] else _MIN_LINE)
            and (bool(part["space"]) or part[0] in _TITLE_LOSES)
            for at, part in enumerate(parts[:_MAX_BEGINNING])
        ]

    def may_be_in(self, data: bytes) -> bool:
        """True where `data`, in whatever form, holds some of the text. True also of a text too long to be looked for so, or
        without Latin letters and digits."""
        return not self._parts or any(part.search(data) for part in self._parts)

    def is_in(self, text: str) -> bool:
        """True when there is anything to replace."""
        return self._whole.search(text) is not None or any(self._beginnings(text))

    def without(self, text: str) -> str:
        """`text` with the mark wherever the span was; doing it twice changes nothing more."""
        text = self._whole.sub(lambda found: self._mark, text)
        pieces, position = [], 0
        for start, end in self._beginnings(text):
            pieces += [text[position:start], self._mark]
            position = end
        return "".join([*pieces, text[position:]])

    def _beginnings(self, text: str) -> Iterator[tuple[int, int]]:
        """The places where the span's beginning stands and is cut off: start and end, without the ellipsis or line end."""
        position = 0
        while found := self._start.search(text, position):
            position = found.end()
            end = self._end_of_beginning(text, found.start())
            if end is not None:
                position = max(position, end)
                yield found.start(), end

    def _end_of_beginning(self, text: str, start: int) -> int | None:
        end, line_end = start, None
        for unit, may_end_line in zip(self._units, self._may_end_line, strict=True):
            if may_end_line and _LINE_END.match(text, end):
                line_end = end
            match = unit.match(text, end)
            if match is None:
                break
            end = match.end()
        return end if _ELLIPSIS.match(text, end) else line_end


def pieces_of(data: bytes) -> frozenset[bytes]:
    """All that stands between two punctuation marks, but what is short: by it a copy of some of `data` is known, however much of
    it there is."""
    return frozenset(piece for piece in data.translate(_TO_MARKS).split(b"\n") if len(piece) >= _MIN_PIECE)


def _parts_of(text: str) -> list[re.Pattern[bytes]]:
    """The beginning, and all parts of twelve letters and digits, with whatever a form puts between them. Of a fragment twice as
    long one part is whole. Empty for a text with too many or none."""
    units: list[bytes] = []
    for char in text.strip():
        if char.isascii() and char.isalnum():
            units.append(char.encode())
        elif units and not units[-1].endswith(_BETWEEN):
            units[-1] += _BETWEEN
    parts = [units[at : at + _PART_CHARS] for at in range(0, len(units), _PART_CHARS)]
    whole = [part for part in parts if len(part) == _PART_CHARS]
    parts = [units[:_BEGINNING_CHARS], *(whole or parts[:1])]
    return [re.compile(b"".join(part)) for part in parts] if units and len(parts) <= _MAX_PARTS else []


def _character(char: str) -> str:
    """Matches a character as it is, or as JSON (`\\"`, `\\u00f6`) or Markdown (`\\*`, `&#42;`) writes it."""
    if char.isascii() and char.isalnum():
        return char
    if char == "\\":
        return r"\\{1,4}"
    if char.isascii() and char.isprintable():
        others = {"<": "|&lt;", "`": "|'"}.get(char, "")
        return rf"(?:\\{{0,3}}{re.escape(char)}|&#{ord(char)};{others})"
    units = char.encode("utf-16-be", "surrogatepass")
    escaped = "".join(rf"\\+u(?i:{units[at : at + 2].hex()})" for at in range(0, len(units), 2))
    escaped += r"|\\+b" if char == "\b" else ""
    optional = "" if clean(char) else "?"  # an invisible character, which pages and archive leave out
    return f"(?:{re.escape(char)}|{escaped}){optional}"
