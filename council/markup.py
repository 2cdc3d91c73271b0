"""Finds front matter, code fences, thoughts and sentences in Markdown that people and models write. Pure, and linear in the
text.

Only places are found: what a room makes of them is its own. For Markdown that a page shows see `safety/markdown.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

BLANK = " \t\r\n\f\v\u00a0\ufeff\u200b"

_FRONT_MATTER = re.compile(r"\A---[ \t\r]*\n(.*?)^---[ \t\r]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


class FrontMatter(NamedTuple):
    """The lines between the two lines of dashes at the top of a text, and all that follows them."""

    head: str
    body: str


def front_matter(text: str) -> FrontMatter | None:
    """Parts a text that begins with front matter. None for one that has none, or does not close it."""
    found = _FRONT_MATTER.match(text)
    return None if found is None else FrontMatter(found[1], text[found.end() :])


def without_front_matter(text: str) -> str:
    found = front_matter(text)
    return text if found is None else found.body


_OPENING = re.compile(
    r"(?P<quotes>[ \t]*(?:>[ \t]*)*)(?P<items>(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*)(?P<run>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)"
)


@dataclass(frozen=True)
class Fence:
    """A fenced block. `start` and `end` are offsets, `first` and `last` numbers of lines from 0, both with the fences.

    `prefix` stands before it on its line: marks of quotations (`quotes` of them) and of list items. `info` follows the run
    of backticks or tildes. `lines` are its content, without those marks and its indentation. The last block of a text may
    lack its closing fence.
    """

    start: int
    end: int
    first: int
    last: int
    prefix: str
    quotes: int
    run: str
    info: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def tag(self) -> str:
        """The language, in small letters."""
        return re.split(r"[\s{]", self.info.strip(), maxsplit=1)[0].lower()


@dataclass
class _Open:
    start: int
    first: int
    found: re.Match[str]
    columns: int
    quotes: int
    lines: list[str]

    def content(self, line: str) -> str | None:
        """The line without the marks and the indentation of the block; None where its quotation has ended."""
        for _ in range(self.quotes):
            bare = line.lstrip(" ")
            if not bare.startswith(">"):
                return None
            line = bare[1:].removeprefix(" ")
        bare = line.lstrip(" \t")
        width = _columns(line[: len(line) - len(bare)])
        if line.startswith(" " * self.columns):
            return line[self.columns :]
        return " " * max(0, width - self.columns) + bare

    def closed_by(self, content: str) -> bool:
        bare = content.rstrip(" \t")
        run = bare.lstrip(" ")
        opening = self.found["run"]
        return len(bare) - len(run) <= 3 and len(run) >= len(opening) and not run.strip(opening[0])

    def fence(self, end: int, last: int) -> Fence:
        prefix = self.found["quotes"] + self.found["items"]
        lines = tuple(self.lines)
        return Fence(
            self.start, end, self.first, last, prefix, self.quotes, self.found["run"], self.found["info"], lines
        )


def fences(text: str) -> Iterator[Fence]:
    """The fenced blocks of a text, in order, none within another."""
    if "```" not in text and "~~~" not in text:
        return
    block: _Open | None = None
    at = 0
    lines = text.split("\n")
    for number, raw in enumerate(lines):
        line = raw.rstrip("\r")
        if block is not None:
            content = block.content(line)
            if content is None:
                yield block.fence(at - 1, number - 1)
                block = None
            elif block.closed_by(content):
                yield block.fence(at + len(line), number)
                block = None
                at += len(raw) + 1
                continue
            else:
                block.lines.append(content)
        if block is None and ("```" in line or "~~~" in line) and (found := _OPENING.fullmatch(line)):
            quotes = found["quotes"].count(">")
            indent = found["quotes"].rpartition(">")[2]
            columns = _columns(indent + found["items"]) - (1 if quotes and indent.startswith(" ") else 0)
            block = _Open(at, number, found, max(0, columns), quotes, [])
        at += len(raw) + 1
    if block is not None:
        yield block.fence(len(text), len(lines) - 1)


def without_fences(text: str, instead: str = "") -> str:
    """The text with `instead` in the place of each fenced block."""
    return _with_each_fence(text, lambda fence: instead)


def unfenced(text: str) -> str:
    """The text with its content in the place of each fenced block."""
    return _with_each_fence(text, lambda fence: fence.text)


def _with_each_fence(text: str, shown: Callable[[Fence], str]) -> str:
    pieces: list[str] = []
    at = 0
    for fence in fences(text):
        pieces += (text[at : fence.start], shown(fence))
        at = fence.end
    return "".join([*pieces, text[at:]])


def _columns(prefix: str) -> int:
    return len(prefix.expandtabs(4))


# ── thoughts ─────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reasoning models write `<think>…</think>` before their answer or between its paragraphs, where the server does not part the
# two. Some servers open the element in the prompt, so that the reply holds the closing tag alone.

TAGS = ("think", "thinking", "reasoning")
_TAG = f"(?:{'|'.join(TAGS)})>"
OPENING = re.compile(rf"^[ \t]*<{_TAG}", re.IGNORECASE | re.MULTILINE)
CLOSING = re.compile(f"</{_TAG}", re.IGNORECASE)
# A closing tag inside a text of JSON is followed by more of that text on its line; one that is quoted is spoken of.
LONE_CLOSING = re.compile(rf"(?<![`\"'“‘])</{_TAG}[ \t]*(?=\r?\n|[{{`]|\Z)", re.IGNORECASE)
_LEADING = re.compile(rf"[{BLANK}]*<{_TAG}", re.IGNORECASE)
_BETWEEN = re.compile(rf"^[ \t]*<({'|'.join(TAGS)})>.*?</\1>[{BLANK}]*", re.IGNORECASE | re.DOTALL | re.MULTILINE)


_CELL_BORDER = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"(?=.*\|)\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")


class AroundTable(NamedTuple):
    """A text with its first table: `before` and `after` it, each as one line, and its rows, none where it has no table."""

    before: str
    rows: tuple[str, ...]
    after: str


def around_table(text: str) -> AroundTable:
    """Only rows that begin with `|` count. What stands behind all cells of the last row comes after the table."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    pairs = enumerate(pairwise(lines))
    at = next((no for no, (row, rule) in pairs if row.startswith("|") and _TABLE_RULE.fullmatch(rule)), None)
    if at is None:
        return AroundTable(" ".join(text.split()), (), "")
    end = next((no for no in range(at + 1, len(lines)) if not lines[no].startswith("|")), len(lines))
    rows, after = lines[at:end], lines[end:]
    head, last = (_CELL_BORDER.split(row) for row in (rows[0], rows[-1]))
    if not head[-1] and len(last) == len(head):
        rows[-1], after = rows[-1].removesuffix(last[-1]), [last[-1], *after]
    before, behind = (" ".join(" ".join(part).split()) for part in (lines[:at], after))
    return AroundTable(before, tuple(rows), behind)


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


GERMAN_MONTH = (
    r"(?:Jan(?:uar)?|Feb(?:ruar)?|März?|Apr(?:il)?|Mai|Juni?|Juli?|Aug(?:ust)?|Sept?(?:ember)?|Okt(?:ober)?"
    r"|Nov(?:ember)?|Dez(?:ember)?)\b"
)
_BLOCK = rf"\n(?=[ \t]*(?:\n|[-+*•|#]|[0-9]{{1,3}}[.)]\s(?!{GERMAN_MONTH})))"
_BEFORE_BLOCK = re.compile(_BLOCK)
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]*_]*(?:\s++(?=\S)|\s*\Z)|[。！？]+[”’」』)]*|" + _BLOCK)
_MARKS = tuple(".!?…。！？")
_QUOTATION_MARK = re.compile(r'(?<![0-9])"|[„“”«»「」『』]')  # `a 24" monitor'
_CLOSERS = "\"'”’」』)]*_"  # behind the mark
_SHORT_CHARS = 12  # what is shorter greets, or calls somebody
# Small letters stand for any case: `Max` and `max`, but `Art` alone. What has no vowel need not stand here.
_ABBREVIATIONS = """
abb abs abzgl allg anh anl anm approx apr Art aufl aug ausschl ave betr bez bezgl ca capt chap Co Corp Dec dept Dez dipl
ebd ed einschl esp est etc ev evtl excl exkl ext fa feb febr fig figs Fri geb gem Gen ges gez ibid Inc incl inkl insb Jan
jul jun Kap max Messrs min mind mio Mo Mon mrd mwst no nos Nov oct okt Pers Pos prof prot Ref Reg resp Rev Sa Sat sec
sect Sen Sep sept sog Std stk Tab tel tsd Tue univ usf usw vergl vol vols vorauss Wed zus zusätzl
"""
_ABBREVIATED = frozenset(_ABBREVIATIONS.split())
_BEFORE_CHARS = 16
_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_SHORTENED = re.compile(
    r"(?<![\w°])(?<![0-9][ \u00a0])[^\W\d_]\Z"  # an initial, the last letter of `e.g.`; no unit behind a number
    r"|(?<![\w.])(?<![0-9][ \u00a0])[A-Z]?[b-df-hj-np-tvwz]{1,5}\Z"  # without a vowel: `vgl`, `Whg`
    r"|\b(?i:im|am|vom|zum|zur|beim|der|die|das|den|dem|des)\s[0-9]{1,3}\Z"  # an ordinal: `im 3. Quartal`
)
_LETTERED = re.compile(
    r"\b(?i:option|plan|variante?|offer|angebot|proposal|vorschlag|part|teil|group|gruppe|team) [A-Z]\Z"
)
_DAY_OR_MONTH = re.compile(r"(?<![\w.,])[0-9]{1,2}(?:\.\s?[0-9]{1,2})?\Z")
# `4. Mai`, `4. 5.`, `4. 5. 2027`: English has no full stop there.
_REST_OF_DATE = re.compile(rf"{GERMAN_MONTH}|1?[0-9]\.|(?:19|20)[0-9]{{2}}\b")


CLAUSE_END = re.compile(
    r"(?<=[.!?;])\s+|\n+"
)  # what stands before it is said in one breath: less than a sentence may hold


def sentence_ends(text: str) -> Iterator[int]:
    """The ends of sentences, the white space behind each included. A sentence ends at a full stop that no small letter
    follows and that ends no abbreviation. It also ends before an empty line, a list item or a row of a table.

    In doubt it goes on: a figure is then looked up at a citation behind it, which otherwise none would be.
    """
    for found in _END.finditer(text):
        line_end = text.find("\n", found.start(), found.end())
        at_block = line_end >= 0 and _BEFORE_BLOCK.match(text, line_end)
        is_stop = found[0][0] == "." and not {"?", "!"} & set(found[0])
        follows = text[found.end() : found.end() + 1].islower() or (is_stop and _goes_on(text, found))
        if at_block or not follows:
            yield found.end()


def _goes_on(text: str, stop: re.Match[str]) -> bool:
    """True for a full stop behind an abbreviation, an initial, an ordinal, or a number in a date."""
    end = stop.start()
    start = max(0, end - _BEFORE_CHARS)
    if _REST_OF_DATE.match(text, stop.end()) and _DAY_OR_MONTH.search(text, start, end):
        return True
    if _LETTERED.search(text, start, end):
        return False
    word = _LAST_WORD.search(text, start, end)
    shortened = word is not None and not _ABBREVIATED.isdisjoint((word[0], word[0].lower()))
    return shortened or _SHORTENED.search(text, start, end) is not None


def first_sentence(text: str) -> str:
    """The text up to the first mark that ends a sentence; empty where none does. Short ones that ask nothing, such as
    "Hello.", end none, and neither do those in a quotation that is still open."""
    begin = marks = 0
    for end in sentence_ends(text):
        marks += len(_QUOTATION_MARK.findall(text, begin, end))
        begin = end
        said = text[:end].rstrip()
        ending = "?" if len(said) < _SHORT_CHARS else _MARKS
        if marks % 2 == 0 and said.rstrip(_CLOSERS).endswith(ending):
            return said
    return ""


_FEW_MARKS = re.compile(r"[\x00-\x7f]*+[^\x00-\x7f]{0,1024}")


def normalised(text: str) -> str:
    """The text in NFKC, in pieces: of one piece the time grows with the square of the accents in a row. A piece ends
    only where more than a thousand characters stand without a space or any other ASCII."""
    return "".join(unicodedata.normalize("NFKC", piece) for piece in _FEW_MARKS.findall(text))


def equal_at_start(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of letters, or of lines in two lists, that are the same at the beginning."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:  # mostly so, and much sooner said
        return shorter
    return next(at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
