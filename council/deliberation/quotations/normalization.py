"""The spelling in which texts are compared: what an editor, a renderer or a keyboard changes does not count. Pure,
linear in the text.

A comparison leaves out white space, the shape of quotation marks, hyphens and ligatures, and the entities of HTML. It
leaves out the marks of Markdown, too: emphasis, list items, table cells, the targets of links. Letters, digits and
their case are not left out.

What is not found so is searched in a `LooseText`. There `2 % off` is `2% off`, `well-known` is `well known`, and `‘so’` is
`“so”`. A space between two letters counts, and so does a hyphen before a digit, which may be a minus or a range. A hyphen
may be a space, but nothing only where a line ends behind it: to re-sign is not to resign. `1, 200` is not `1,200`, and the
border of two table cells parts their digits. Only `e-mail` is `email` everywhere: people write both.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right

from council.safety.untrusted import clean, inert

# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_ONE_UNSPACED = re.compile(f"[{UNSPACED}]")
_SPACED_WORD = re.compile(f"[^\\s{UNSPACED}]*[^\\W_{UNSPACED}][^\\s{UNSPACED}]*")
_HANGUL = range(0xAC00, 0xD7A4)  # particles follow a word without a space

_LINE_MARKS = re.compile(r"(?:\s|>)*(?:#{1,6}\s+|[-+*•]\s+(?:\[[ xX]\]\s+)?)?")
_NUMBER = re.compile(r"[0-9]{1,9}[.)]\s+")
_TABLE_RULE = re.compile(r"[\s|:+-]*-{3}[\s|:+-]*")
_TAG = re.compile(
    r"</?(?:b|i|u|s|em|strong|mark|small|sub|sup|code|kbd|q|blockquote|span|p|br|li|td|th|tr)\b[^<>]{0,200}>"
)
_LINK = re.compile(r"!?\[(?P<text>[^\[\]]{0,500})\]\([^()\s]{0,2000}(?:\s+\"[^\"]{0,200}\")?\)")
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]{1,100}\]")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
EMPHASIS = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])|~~")
_EMAIL = re.compile(r"(?<![\w-])([eE])-[mM]ail")
_HYPHENS = re.compile(r"--+")
_BORDER = re.compile(r" ?\|[ |]*")
_BETWEEN_DIGITS = "  "
_BETWEEN_UNSPACED = re.compile(f"(?<=[{UNSPACED}]) +(?=[{UNSPACED}])")

_REPLACED = {
    **dict.fromkeys("“”„‟«»「」『』﹁﹂﹃﹄｢｣〝〞〟＂", '"'),
    **dict.fromkeys("‘’‚‛‹›", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("*`", ""),
}


class _Spelling(dict[int, str]):
    """The spelling of each character; filled on first sight. They go one by one: to normalise a whole text takes time
    quadratic in the accents that follow one letter."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        spelled = _REPLACED.get(char)
        if spelled is None:
            spelled = char if code in _HANGUL else unicodedata.normalize("NFKD", char)
        self[code] = spelled
        return spelled


_SPELLING = _Spelling()


def plain_line(line: str, *, numbers: bool = False) -> str:
    """One line of clean text as it is compared. `numbers`: with one that it begins with, which may be that of an item, or
    the end of a sentence."""
    if "-" in line and _TABLE_RULE.fullmatch(line):
        return ""
    if "&" in line:
        line = html.unescape(line)
    if "<" in line:
        line = _TAG.sub(" ", line)
    marks = _LINE_MARKS.match(line)
    line = line[marks.end() :] if marks else line
    if not numbers and (number := _NUMBER.match(line)):
        line = line[number.end() :]
    if "[" in line:
        line = _FOOTNOTE.sub("", _LINK.sub(lambda found: found["text"], line))
    if "\\" in line:
        line = _ESCAPE.sub("", line)
    line = line.translate(_SPELLING)
    if "_" in line or "~" in line:
        line = EMPHASIS.sub("", line)
    if "--" in line:
        line = _HYPHENS.sub("-", line)
    if "-" in line:
        line = _EMAIL.sub(r"\1mail", line)
    line = " ".join(line.split())
    if "|" in line:
        line = _BORDER.sub(_gap_of_cells, line).strip()
    return line if line.isascii() else _BETWEEN_UNSPACED.sub("", line)


def _gap_of_cells(border: re.Match[str]) -> str:
    line, start, end = border.string, border.start(), border.end()
    return _BETWEEN_DIGITS if line[max(0, start - 1) : start].isdigit() and line[end : end + 1].isdigit() else " "


def plain_lines(text: str, *, numbers: bool = False) -> tuple[str, list[int]]:
    """A text as it is compared, in one line, and where each line of it begins there; `numbers` as for `plain_line`."""
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    last = ""
    for line in inert(clean(text)).split("\n"):
        piece = plain_line(line, numbers=numbers)
        if piece and last and not (_ONE_UNSPACED.match(piece) and _ONE_UNSPACED.match(last)):
            pieces.append(" ")
            at += 1
        starts.append(at)
        if piece:
            pieces.append(piece)
            at += len(piece)
            last = piece[-1]
    return "".join(pieces), starts


def plain_text(text: str, *, numbers: bool = False) -> str:
    return plain_lines(text, numbers=numbers)[0]


def trimmed(piece: str) -> str:
    """The words without the punctuation that belongs to the sentence around a quotation."""
    return piece.strip(" .,;:!?'\"。、")


def at_least(plain: str, words: int, chars: int) -> bool:
    """True for a text of so many words, or so many characters of a script without spaces, or of both in proportion."""
    unspaced = len(_ONE_UNSPACED.findall(plain))
    spaced = len(_SPACED_WORD.findall(plain))
    return spaced / words + unspaced / chars >= 1


def is_word(char: str) -> bool:
    """True when a character is part of a word that spaces end."""
    return char.isalnum() and ord(char) not in _HANGUL and not _ONE_UNSPACED.match(char)


def _is_whole(text: str, start: int, end: int) -> bool:
    """True when a stretch cuts no word, at its beginning and at its end."""
    following = text[end : end + 1]
    if start > 0 and is_word(text[start - 1]) and is_word(text[start]):
        return False
    return not following or not (unicodedata.combining(following) or (is_word(following) and is_word(text[end - 1])))


def _either_case(text: str, piece: str, at: int, end: int) -> int:
    """The start of a piece from `at` on, its first letter of either case: a quotation within a sentence begins as the
    sentence wants it. -1 if it stands nowhere."""
    rest = piece[1:]
    first = {piece[0], piece[0].swapcase()}
    if not rest:
        return min((place for char in first if (place := text.find(char, at, end)) >= 0), default=-1)
    while (at := text.find(rest, at + 1, end) - 1) >= 0:
        if text[at] in first:
            return at
        at += 1
    return -1


def find_words(text: str, piece: str, at: int, end: int | None = None) -> tuple[int, int] | None:
    """The place of a piece in a plain text, of whole words only."""
    stop = len(text) if end is None else min(end, len(text))
    while (at := _either_case(text, piece, at, stop)) >= 0:
        if _is_whole(text, at, at + len(piece)):
            return at, at + len(piece)
        at += 1
    return None


_GAP = re.compile("[ -]+")
_AT_LINE_END = "- "  # `insur-⏎ance`
_BARE = str.maketrans({" ": "", "-": "", '"': "'"})
_THOUSANDS = re.compile(r"(?<![0-9])[0-9]{1,3}(?: [0-9]{3})+(?![0-9])")
_DATE = re.compile(r"(?<![0-9.,])[0-9]{1,2}\.[0-9]{1,2}\.[12][0-9]{3}(?![0-9])")  # also `3. 5. 2027`
_MAX_TRIES = 200  # for one piece: one that is found so often inside of other words is hardly one


class Gaps:
    """A plain text without its white space and hyphens (`bare`), and the gaps: `at` places of the bare text each one stood
    from `starts` to `ends`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = text.translate(_BARE)
        spans = [match.span() for match in _GAP.finditer(text)]
        self.starts = [start for start, _ in spans]
        self.ends = [end for _, end in spans]
        self.at: list[int] = []
        left_out = 0
        for start, end in spans:
            self.at.append(start - left_out)
            left_out += end - start

    def gap(self, number: int) -> str:
        return self.text[self.starts[number] : self.ends[number]]

    def joins_thousands(self, number: int) -> bool:
        start = self.starts[number]
        return any(
            found.start() < start < found.end()
            for found in _THOUSANDS.finditer(self.text, max(0, start - 4), start + 8)
        )

    def in_date(self, at: int) -> bool:
        """True for a place of the bare text within a date."""
        return any(found.start() < at < found.end() for found in _DATE.finditer(self.bare, max(0, at - 6), at + 8))


class LooseText(Gaps):
    """A plain text in which words are found whose spaces, hyphens and quotation marks differ."""

    def find(self, wanted: Gaps, at: int, end: int | None = None) -> tuple[int, int] | None:
        """As `find_words`."""
        if not wanted.bare:
            return None
        place, stop = self._bare_place(at), len(self.bare) if end is None else self._bare_place(end)
        for _ in range(_MAX_TRIES):
            place = _either_case(self.bare, wanted.bare, place, stop)
            if place < 0:
                return None
            start, last = self._place(place), self._place(place + len(wanted.bare) - 1)
            signed = not wanted.text.startswith("-") or self.text.startswith("-", max(start - 1, 0))
            if signed and _is_whole(self.text, start, last + 1) and self._agrees(wanted, place):
                return start, last + 1
            place += 1
        return None

    def _place(self, bare: int) -> int:
        number = bisect_right(self.at, bare) - 1
        return bare if number < 0 else self.ends[number] + bare - self.at[number]

    def _bare_place(self, place: int) -> int:
        number = bisect_right(self.starts, place) - 1
        return place if number < 0 else self.at[number] + max(0, place - self.ends[number])

    def _agrees(self, wanted: Gaps, place: int) -> bool:
        """True when the gaps of what is found at a bare place say the same as those that are wanted."""
        low, high = bisect_right(self.at, place), bisect_left(self.at, place + len(wanted.bare))
        here = {self.at[number] - place: number for number in range(low, high)}
        there = {at: number for number, at in enumerate(wanted.at) if 0 < at < len(wanted.bare)}
        for at in here.keys() | there.keys():
            gap = self.gap(here[at]) if at in here else ""
            other = wanted.gap(there[at]) if at in there else ""
            if gap == other:
                continue
            before, after = wanted.bare[at - 1], wanted.bare[at]
            hyphen = "-" in gap or "-" in other
            one_sided = not (gap and other)
            if one_sided and hyphen and _AT_LINE_END not in (gap, other):
                return False
            marked = after.isdigit() and before in ".," and wanted.bare[max(0, at - 2)].isdigit()
            if one_sided and marked and not wanted.in_date(at):
                return False
            if after.isdigit() and ("-" in gap) != ("-" in other):
                return False
            if _is_letter(before) and _is_letter(after) and not hyphen:
                return False
            if before.isdigit() and after.isdigit() and one_sided:
                joins = self.joins_thousands(here[at]) if at in here else wanted.joins_thousands(there[at])
                if not joins:
                    return False
        return True


def _is_letter(char: str) -> bool:
    return char.isalpha() or bool(unicodedata.combining(char))
