"""Quoting stretches of a text: pairs of quotation marks, Markdown block quotations, code. Pure, linear in the text.

These are pairs: `"…"` `“…”` `„…“` `«…»` `»…«` `‹…›` `›…‹` `‘…’` `‚…‘` `'…'` `”…”` `»…»` `「…」` `『…』` `｢…｣` `〝…〟` `＂…＂`.
So are the elements `<q>` and `<blockquote>` of HTML. Of pairs within each other the outermost counts. Marks that are
the same on both sides pair within a paragraph, an apostrophe is none. A block that is a callout (`> [!NOTE]`) quotes
nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from council.citations import CUE, KnownPaths, citations, without_citations
from council.deliberation.quotations.normalization import is_word
from council.markup import Fence, fences
from council.safety.markdown import code_spans

Kind = Literal["marks", "block", "code", "fence"]


@dataclass(frozen=True)
class QuotedText:
    """A stretch of a text that quotes: from `start` to `end` with its marks. A remark about it may be put in at `mark_at`.
    `within`: pairs inside a block."""

    kind: Kind
    start: int
    end: int
    words: str
    mark_at: int
    within: tuple[QuotedText, ...] = ()


class Stretches:
    """Stretches of a text that do not overlap, in order."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self._spans = spans
        self._starts = [start for start, _ in spans]

    def around(self, at: int) -> tuple[int, int] | None:
        """The stretch that holds a place."""
        number = bisect_right(self._starts, at) - 1
        return self._spans[number] if number >= 0 and at < self._spans[number][1] else None


@dataclass(frozen=True)
class Code:
    """The code in a text."""

    blocks: tuple[Fence, ...]
    spans: tuple[tuple[int, int], ...]

    def stretches(self) -> Stretches:
        return Stretches(sorted((*((block.start, block.end) for block in self.blocks), *self.spans)))


_BLOCK = re.compile(r"(?m)^ {0,3}>[^\n]*(?:\n {0,3}>[^\n]*)*")
_CALLOUT = re.compile(r"[\s>]*\[![A-Za-z]+\]")
_ATTRIBUTION = re.compile(rf"\n[ \t]*(?:[—–―]|--)[^\n]*\Z|\n?[ \t]*[-–—―]+[ \t]*\Z|[\n.;][ \t]*{CUE}\Z")
_LEAD_IN = re.compile(rf"[ >\n(—–―-]*(?<!\w){CUE}\Z")
_MAX_LEAD_IN = 80


def code_in(text: str) -> Code:
    blocks = tuple(fences(text))
    fenced = Stretches([(block.start, block.end) for block in blocks])
    spans: list[tuple[int, int]] = []
    at = 0
    for paragraph in re.split(r"(\n[ \t]*\n)", text):
        spans += [(at + start, at + end) for start, end in code_spans(paragraph) if fenced.around(at + start) is None]
        at += len(paragraph)
    return Code(blocks, tuple(spans))


def quoted(text: str, code: Code, paths: KnownPaths) -> list[QuotedText]:
    """All that quotes, in order, none within another; of code all of it, for a citation beside it makes it a quotation."""
    skipped = code.stretches()
    blocks = [match for match in _BLOCK.finditer(text) if skipped.around(match.start()) is None]
    lying = Stretches([match.span() for match in blocks])
    free: list[QuotedText] = []
    inside: dict[tuple[int, int], list[QuotedText]] = {}
    at = 0
    for start, end, first, last in sorted(_pairs(text, skipped)):
        if start < at:
            continue
        at = end
        pair = QuotedText("marks", start, end, without_citations(text[first:last], paths), end)
        block = lying.around(start)
        if block is None:
            free.append(pair)
        elif end <= block[1]:
            inside.setdefault(block, []).append(pair)
    paired = Stretches([(pair.start, pair.end) for pair in free])
    for match in blocks:
        if not _CALLOUT.match(match[0]):
            start, end = match.span()
            lines = "\n".join(line.lstrip(" >") for line in without_citations(match[0], paths).split("\n"))
            words = _ATTRIBUTION.sub("", lines.rstrip())
            cited = next(citations(match[0], paths=paths), None)
            mark_at = len(text[:end].rstrip(" >\n"))
            if cited:
                before = text[: start + cited.start]
                lead_in = _LEAD_IN.search(before, max(start, len(before) - _MAX_LEAD_IN))
                mark_at = lead_in.start() if lead_in else len(before)
            free.append(QuotedText("block", start, end, words, mark_at, tuple(inside.get((start, end), ()))))
    for start, end in code.spans:
        if paired.around(start) is None and lying.around(start) is None:
            free.append(QuotedText("code", start, end, text[start:end].strip("`").strip(), end))
    for fence in code.blocks:
        if paired.around(fence.start) is None:
            free.append(QuotedText("fence", fence.start, fence.end, fence.text, fence.end))
    return sorted(free, key=lambda each: each.start)


_MARK = re.compile(
    r"[\"“”„‟«»‹›‘’‚‛'「」『』﹁﹂﹃﹄｢｣〝〞〟＂]|</?(?:q|blockquote)(?:\s[^<>]{0,200})?>|\n[ \t>]*(?=\n)"
)
_CLOSED_BY = {  # each opening mark, with those that close it wherever they stand
    "“": "”", "„": "“”", "‟": "”", "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』", "﹁": "﹂", "﹃": "﹄",
    "｢": "｣", "〝": "〞〟", "<q>": ("</q>",), "<blockquote>": ("</blockquote>",),
}  # fmt: skip
_CLOSED_BY_AT_A_WORDS_END = {  # and with those that do where a word can end
    '"': '"”', "“": '"“', "„": '"', "”": "”", "»": "»", "›": "›", "＂": "＂", "‘": "’'", "‚": "‘’'", "‛": "’", "'": "'’",
}  # fmt: skip
# What opens with these pairs within a paragraph only, or may be no opening at all.
_ONE_SIDED = frozenset("”»›＂\"'‘‚‛")
_SINGLE = frozenset("'’")
_ELISION = re.compile(r"(?:[0-9]|(?:tis|twas|til|em|cause|bout|n)\b)", re.IGNORECASE)
_MAX_OPEN = 8


@dataclass
class _Open:
    mark: str
    start: int
    end: int
    holds_alike: bool = False  # a pair of the same marks lies inside


def _pairs(text: str, skipped: Stretches) -> Iterator[tuple[int, int, int, int]]:
    """(start, end, where the words start, where they end) of each pair."""
    marks = [match for match in _MARK.finditer(text) if skipped.around(match.start()) is None]
    opened: list[_Open] = []
    paragraph = 0  # where it began
    for number, match in enumerate(marks):
        mark, start, end = match[0], match.start(), match.end()
        if mark.startswith("<"):
            mark = re.sub(r"\s[^<>]*", "", mark)  # an element's name, without its attributes
        if mark.startswith("\n"):
            opened = [each for each in opened if each.mark not in _ONE_SIDED]
            paragraph = end
            continue
        following = marks[number + 1] if number + 1 < len(marks) else None
        ends_word = _may_end(text, start, end)
        if ends_word and mark in _SINGLE:
            ends_word = not _is_possessive(text, start, end, following)
        closed = None  # the innermost that it can close
        for depth in range(len(opened) - 1, -1, -1):
            opening = opened[depth].mark
            at_an_end = ends_word and mark in _CLOSED_BY_AT_A_WORDS_END.get(opening, "")
            if mark in _CLOSED_BY.get(opening, ()) or at_an_end:
                closed = depth
                break
        if closed is not None:
            partner = opened[closed]
            del opened[closed:]
            if partner.start >= paragraph or not partner.holds_alike:
                yield partner.start, end, partner.end, start
            for each in opened:
                each.holds_alike = each.holds_alike or each.mark == partner.mark
            continue
        opens, after = mark in _CLOSED_BY, text[end : end + 1]
        if mark in _ONE_SIDED:
            begins = bool(after) and not after.isspace() and not _word_at(text, start - 1)
            opens = begins and not (mark == "'" and _ELISION.match(text, end)) and (mark != "”" or after.isalnum())
        if opens:
            opened = [*opened[-_MAX_OPEN + 1 :], _Open(mark, start, end)]


def _may_end(text: str, start: int, end: int) -> bool:
    return start > 0 and not text[start - 1].isspace() and not _word_at(text, end)


def _is_possessive(text: str, start: int, end: int, following: re.Match[str] | None) -> bool:
    """`the boards' plan'`: an apostrophe at a word's end, with a mark behind it that can close instead."""
    if text[start - 1].lower() not in "sxz" or not text[end : end + 2].strip() or text[end : end + 1] != " ":
        return False
    if following is None or following[0] not in _SINGLE:
        return False
    return _may_end(text, following.start(), following.end()) and text[end + 1].isalpha()


def _word_at(text: str, at: int) -> bool:
    return 0 <= at < len(text) and is_word(text[at])
