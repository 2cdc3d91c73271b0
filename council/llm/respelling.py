"""JSON that a model spelled wrongly → the object it spells, or nothing. Pure.

json-repair reads almost anything, and so it guesses: it ends a text early, drops what it cannot place, closes what was
cut off, keeps the second of two equal keys, and takes minutes over some 64 KiB. Here the texts and comments are read
first, in linear time, by rules that never guess; json-repair gets the bare structure, every text a number in it; and its
guess counts only if it says, piece for piece, what stands there. Forgiven is spelling and nothing else:

- comments; a comma too many before a bracket, or missing at the end of a line
- keys without quotes; single quotes; `True`, `False`, `None`
- line breaks and tabs inside a text; quotation marks inside a text, in pairs, where none of them can be its end

A bracket or a closing quote that is not there is never added, so nothing that was cut off is completed. What can be
read in two ways is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_CHARS = 64 * 1024  # of a text to repair: half a second on a busy core
MAX_DEPTH = 64
_MAX_GAP_CHARS = 1000  # behind a quotation mark inside a text

# A mark of punctuation; or a text, known by its number, a number as Python spells it, a word, a literal.
_Lexeme = str | tuple[str, Any]

_COMMENT = re.compile(r"//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/")
_GAP = re.compile(rf"(?:[\s\ufeff]|{_COMMENT.pattern})*+")
_MARK = re.compile(r"\"|(?<!\w)'|'(?!\w)")  # of quotation, apostrophes left out
_WORD = re.compile(r"[A-Za-z_$][\w$-]*+", re.ASCII)
_KEY = re.compile(r"[\"']|[A-Za-z_$][\w$-]*+\s*+:", re.ASCII)
# What may follow a comma: another entry, the end of a container or of the document, a comment.
_ENTRY = re.compile(rf"{_KEY.pattern}|[-\d{{}}\[\]/#]|(?:true|false|null|True|False|None)\b|\Z", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"\\/bfnrt']))")
_UNESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_CLOSING = {"{": "}", "[": "]"}
_BEFORE_QUOTATION = "([{<-–—/:="
# What runs on inside a text, by the quotation mark around it: no control characters but tab and line ends.
_ORDINARY = {quote: re.compile(rf"[^\\{quote}\x00-\x08\x0b\x0c\x0e-\x1f]++") for quote in "\"'"}


def respelled(text: str) -> dict[str, Any] | None:
    """The object that `text` spells, or None where more than its spelling is wrong or it can be read in two ways."""
    from json_repair import loads  # 50 ms, and most replies need none

    if len(text) > MAX_CHARS:
        return None
    reading = _Reading(text)
    try:
        reading.read()
        guess = loads(reading.structure(), skip_json_loads=True, strict=True)
        same = list(_lexemes(guess)) == reading.lexemes()
        found = reading.with_texts(guess) if same else None
    except ValueError:  # _Unclear, or json-repair gives up
        return None
    return found if isinstance(found, dict) else None


def _lexemes(value: Any) -> Iterator[_Lexeme]:
    if isinstance(value, dict):
        yield "{"
        for number, (key, entry) in enumerate(value.items()):
            yield from _comma(number)
            yield ("text", key)
            yield ":"
            yield from _lexemes(entry)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, entry in enumerate(value):
            yield from _comma(number)
            yield from _lexemes(entry)
        yield "]"
    elif isinstance(value, str):
        yield ("text", value)
    elif value is None or isinstance(value, bool):
        yield ("literal", value)
    else:
        yield ("number", repr(value))


def _comma(number: int) -> tuple[str, ...]:
    return (",",) if number else ()


class _Unclear(ValueError):
    """More than the spelling is wrong, or there are two ways to read it."""


class _Reading:
    """One pass over a document: its lexemes with the commas put right, and apart from them its texts.

    A text is known by its number, as digits; no key without quotes can be that.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: list[_Lexeme] = []
        self._open: list[str] = []
        self._structure: list[str] = []
        self._texts: list[str] = []

    def read(self) -> None:
        """Raises _Unclear, also for brackets that do not match or stay open."""
        line_ended = self._skip_gap()
        while self._at < len(self._text):
            self._need(not self._found or bool(self._open))  # one value, and nothing behind it
            self._read_one(self._text[self._at], line_ended)
            line_ended = self._skip_gap()
        self._need(not self._open)

    def lexemes(self) -> list[_Lexeme]:
        """What was read. Raises _Unclear for a word that is no literal."""
        return [self._literal(lexeme) for lexeme in self._found]

    def structure(self) -> str:
        """The document as it was spelled, but without comments, and each text replaced by its number in quotes."""
        return " ".join(self._structure)

    def with_texts(self, value: Any) -> Any:
        """A value of the structure with its texts put back. Raises _Unclear for an object that has a key twice."""
        if isinstance(value, dict):
            entries = {self._text_of(key): self.with_texts(entry) for key, entry in value.items()}
            self._need(len(entries) == len(value))
            return entries
        if isinstance(value, list):
            return [self.with_texts(entry) for entry in value]
        return self._text_of(value) if isinstance(value, str) else value

    def _text_of(self, name: str) -> str:
        return self._texts[int(name)] if name.isdigit() else name

    def _literal(self, lexeme: _Lexeme) -> _Lexeme:
        if lexeme[0] != "word":
            return lexeme
        self._need(lexeme[1] in _LITERALS)
        return ("literal", _LITERALS[lexeme[1]])

    def _need(self, holds: bool) -> None:
        if not holds:
            raise _Unclear(f"unclear at character {self._at}")

    # ── structure ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _skip_gap(self) -> bool:
        """Whether a line ended in the gap. Raises _Unclear for a comment that may be a text without its first mark."""
        gap = _gap(self._text, self._at)
        for comment in _COMMENT.findall(gap):
            marks = _MARK.findall(comment)
            self._need(marks.count("'") % 2 == 0 and marks.count('"') % 2 == 0)
        self._at += len(gap)
        if "\n" in gap:
            self._structure.append("\n")
        return "\n" in gap

    def _read_one(self, char: str, line_ended: bool) -> None:
        if char in "}]":
            self._close(char)
        elif char == ",":
            self._need(self._value_ended())
            self._add(",", char)
        elif char == ":":
            self._end_key()
        else:
            self._separate(line_ended)
            self._read_value(char)

    def _close(self, char: str) -> None:
        self._need(bool(self._open) and _CLOSING[self._open.pop()] == char)
        if self._found[-1] == ",":
            self._found.pop()
        self._add(char, char)

    def _end_key(self) -> None:
        key = self._found[-1] if self._found else ""
        self._need(isinstance(key, tuple) and key[0] in ("text", "word"))
        self._found[-1] = ("text", key[1])
        self._add(":", ":")

    def _separate(self, line_ended: bool) -> None:
        """Puts the comma that is missing at the end of a line."""
        if self._value_ended():
            self._need(line_ended)
            self._found.append(",")

    def _value_ended(self) -> bool:
        return bool(self._found) and (isinstance(self._found[-1], tuple) or self._found[-1] in ("}", "]"))

    def _read_value(self, char: str) -> None:
        if char in _CLOSING:
            self._need(len(self._open) < MAX_DEPTH)
            self._open.append(char)
            self._add(char, char)
        elif char in _ORDINARY:
            name = str(len(self._texts))
            self._texts.append(self._read_text(char))
            self._add(("text", name), f'"{name}"', chars=0)
        elif number := _NUMBER.match(self._text, self._at):
            self._add(("number", repr(json.loads(number[0]))), number[0])
        elif word := _WORD.match(self._text, self._at):
            self._add(("word", word[0]), word[0])
        else:
            self._need(False)

    def _add(self, lexeme: _Lexeme, spelling: str, *, chars: int | None = None) -> None:
        """Notes a lexeme and goes on behind it, `chars` further (the length of its spelling if not given)."""
        self._found.append(lexeme)
        self._structure.append(spelling)
        self._at += len(spelling) if chars is None else chars

    # ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_text(self, quote: str) -> str:
        """The text that this quotation mark opens; the place moves behind its end."""
        pieces: list[str] = []
        inner = 0  # marks without an escape that do not end the text
        self._at += 1
        while True:
            if run := _ORDINARY[quote].match(self._text, self._at):
                pieces.append(run[0])
                self._at = run.end()
            if self._text.startswith("\\", self._at):
                pieces.append(self._read_escape())
                continue
            self._need(self._text.startswith(quote, self._at))  # else a control character, or the text breaks off
            if self._text_ends(quote, inner):
                self._at += 1
                return _with_whole_characters("".join(pieces))
            if not self._is_apostrophe():
                self._need(self._quotes(quote, opening=inner % 2 == 0))
                inner += 1
            pieces.append(quote)
            self._at += 1

    def _read_escape(self) -> str:
        escape = _ESCAPE.match(self._text, self._at)
        if escape is None:
            raise _Unclear("no escape of JSON")
        self._at = escape.end()
        return chr(int(escape[1], 16)) if escape[1] else _UNESCAPED.get(escape[2], escape[2])

    def _text_ends(self, quote: str, inner: int) -> bool:
        """Whether this mark closes its text: punctuation follows it, or a new line with the next entry.

        Raises _Unclear where it may as well stand inside: after an odd number of inner marks (`"say "yes": do"`),
        before a comment that holds such a mark, between inner marks and a line that begins like an entry.
        """
        gap, behind = self._look(self._at + 1)
        following = self._text[behind : behind + 1]
        if following == "," and not _ENTRY.match(self._text, self._look(behind + 1)[1]):
            return False  # the comma of a sentence
        if following in (",", ":", "}", "]"):
            self._need(quote not in gap and inner % 2 == 0)
            return True
        if "\n" in gap and _KEY.match(self._text, behind):
            self._need(not gap.strip() and inner == 0)
            return True
        return False

    def _look(self, at: int) -> tuple[str, int]:
        """The gap at a place and where it ends. Raises _Unclear for a long one: every mark in a text is looked behind."""
        gap = _gap(self._text, at, _MAX_GAP_CHARS)
        self._need(len(gap) < _MAX_GAP_CHARS)
        return gap, at + len(gap)

    def _quotes(self, quote: str, *, opening: bool) -> bool:
        """Whether an inner mark stands as one does that opens, or closes, a quotation: `say "yes" now`, not `"E1" "E2"`,
        which are two texts without their comma."""
        before, after = self._text[self._at - 1], self._text[self._at + 1 : self._at + 2]
        if opening:
            return (before.isspace() or before in _BEFORE_QUOTATION + quote) and not (after.isspace() or after == quote)
        return not before.isspace() and not after.isalnum()

    def _is_apostrophe(self) -> bool:
        around = self._text[self._at - 1] + self._text[self._at + 1 : self._at + 2]
        return self._text[self._at] == "'" and len(around) == 2 and around.isalnum()


def _gap(text: str, at: int, max_chars: int = MAX_CHARS) -> str:
    """White space and comments at a place."""
    match = _GAP.match(text, at, at + max_chars)
    assert match is not None  # the pattern matches the empty string
    return match[0]


def _with_whole_characters(text: str) -> str:
    """Two escapes that make one character, as one. Raises _Unclear for half of one."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _Unclear("half a surrogate pair") from None
