"""Where a text quotes: pairs of quotation marks, Markdown block quotations, code. Pure, linear in the text.

A pair is one of `"…"` `“…”` `„…“` `«…»` `»…«` `‹…›` `›…‹` `‘…’` `‚…‘` `'…'` `”…”` `»…»` `「…」` `『…』` `｢…｣` `〝…〟` `＂…＂`,
or the elements `<q>` and `<blockquote>` of HTML; of pairs within each other the outermost counts. Marks that are the same on
both sides pair within a paragraph, an apostrophe is none. A block that is a callout (`> [!NOTE]`) quotes nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from council.deliberation.quotations.citations import ANY
from council.deliberation.quotations.spelling import is_word
from council.markup import Fence, fences
from council.safety.markdown import code_spans

Kind = Literal["marks", "block", "code", "fence"]


@dataclass(frozen=True)
class Quoted:
    """A stretch of a text that quotes: from `start` to `end` with its marks. A remark about it may be put in at `mark_at`.
    `within`: pairs inside a block."""

    kind: Kind
    start: int
    end: int
    words: str
    mark_at: int
    within: tuple[Quoted, ...] = ()


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
    """What is code in a text."""

    blocks: tuple[Fence, ...]
    spans: tuple[tuple[int, int], ...]

    def stretches(self) -> Stretches:
        return Stretches(sorted((*((block.start, block.end) for block in self.blocks), *self.spans)))


_BLOCK = re.compile(r"(?m)^ {0,3}>[^\n]*(?:\n {0,3}>[^\n]*)*")
_CALLOUT = re.compile(r"[\s>]*\[![A-Za-z]+\]")
_ATTRIBUTION = re.compile(r"\n[ \t]*(?:[—–―]|--)[^\n]*\Z|\n?[ \t]*[-–—―]+[ \t]*\Z")


def code_in(text: str) -> Code:
    blocks = tuple(fences(text))
    fenced = Stretches([(block.start, block.end) for block in blocks])
    spans: list[tuple[int, int]] = []
    at = 0
    for paragraph in re.split(r"(\n[ \t]*\n)", text):
        spans += [(at + start, at + end) for start, end in code_spans(paragraph) if fenced.around(at + start) is None]
        at += len(paragraph)
    return Code(blocks, tuple(spans))


def quoted(text: str, code: Code) -> list[Quoted]:
    """All that quotes, in order, none within another; of code all of it, for a citation beside it makes it a quotation."""
    skipped = code.stretches()
    blocks = [match for match in _BLOCK.finditer(text) if skipped.around(match.start()) is None]
    lying = Stretches([match.span() for match in blocks])
    free: list[Quoted] = []
    inside: dict[tuple[int, int], list[Quoted]] = {}
    for start, end, first, last in _outermost(_pairs(text, skipped)):
        pair = Quoted("marks", start, end, without_citations(text[first:last]), end)
        block = lying.around(start)
        if block is None:
            free.append(pair)
        elif end <= block[1]:
            inside.setdefault(block, []).append(pair)
    paired = Stretches([(pair.start, pair.end) for pair in free])
    free += [_block(text, match, inside.get(match.span(), ())) for match in blocks if not _CALLOUT.match(match[0])]
    for start, end in code.spans:
        if paired.around(start) is None and lying.around(start) is None:
            free.append(Quoted("code", start, end, text[start:end].strip("`").strip(), end))
    for fence in code.blocks:
        if paired.around(fence.start) is None:
            free.append(Quoted("fence", fence.start, fence.end, fence.text, fence.end))
    return sorted(free, key=lambda each: each.start)


def too_many_marks(text: str) -> bool:
    """Whether not all of the quotation marks of a text are looked at."""
    return next(islice(_MARK.finditer(text), MAX_MARKS, None), None) is not None


def without_citations(words: str) -> str:
    return ANY.sub(" ", words)


def _block(text: str, match: re.Match[str], within: Sequence[Quoted]) -> Quoted:
    lines = "\n".join(line.lstrip(" >") for line in without_citations(match[0]).split("\n"))
    words = _ATTRIBUTION.sub("", lines.rstrip())
    cited = ANY.search(text, match.start(), match.end())
    end = len(text[: cited.start() if cited else match.end()].rstrip(" >\n"))
    return Quoted("block", match.start(), match.end(), words, end, tuple(within))


# ── pairs of marks ───────────────────────────────────────────────────────────────────────────────────────────────────

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
_ONE_SIDED = frozenset(
    "”»›＂\"'‘‚‛"
)  # what opens with these pairs within a paragraph only, or may be no opening at all
_SINGLE = frozenset("'’")
_ELISION = re.compile(r"(?:[0-9]|(?:tis|twas|til|em|cause|bout|n)\b)", re.IGNORECASE)
_MAX_OPEN = 8
MAX_MARKS = 20_000  # in one text; a book has fewer in its chapters


@dataclass
class _Open:
    mark: str
    start: int
    end: int
    holds_alike: bool = False  # a pair of the same marks lies inside


def _pairs(text: str, skipped: Stretches) -> Iterator[tuple[int, int, int, int]]:
    """(start, end, where the words start, where they end) of each pair."""
    marks = [match for match in islice(_MARK.finditer(text), MAX_MARKS) if skipped.around(match.start()) is None]
    opened: list[_Open] = []
    paragraph = 0  # where it began
    for number, match in enumerate(marks):
        mark, start, end = _name(match[0]), match.start(), match.end()
        if mark.startswith("\n"):
            opened = [each for each in opened if each.mark not in _ONE_SIDED]
            paragraph = end
            continue
        following = marks[number + 1] if number + 1 < len(marks) else None
        depth = _closes(text, mark, start, end, opened, following)
        if depth is not None:
            partner = opened[depth]
            del opened[depth:]
            if partner.start >= paragraph or not partner.holds_alike:
                yield partner.start, end, partner.end, start
            for each in opened:
                each.holds_alike = each.holds_alike or each.mark == partner.mark
        elif _opens(text, mark, start, end):
            opened = [*opened[-_MAX_OPEN + 1 :], _Open(mark, start, end)]


def _name(mark: str) -> str:
    return re.sub(r"\s[^<>]*", "", mark) if mark.startswith("<") else mark


def _closes(
    text: str, mark: str, start: int, end: int, opened: Sequence[_Open], following: re.Match[str] | None
) -> int | None:
    """Which of the open marks this one closes: the innermost that it can."""
    ends_word = _may_end(text, start, end) and not (mark in _SINGLE and _is_possessive(text, start, end, following))
    for depth in range(len(opened) - 1, -1, -1):
        opening = opened[depth].mark
        if mark in _CLOSED_BY.get(opening, ()):
            return depth
        if ends_word and mark in _CLOSED_BY_AT_A_WORDS_END.get(opening, ""):
            return depth
    return None


def _opens(text: str, mark: str, start: int, end: int) -> bool:
    if mark in _ONE_SIDED:
        after = text[end : end + 1]
        begins = bool(after) and not after.isspace() and not _word_at(text, start - 1)
        return begins and not (mark == "'" and _ELISION.match(text, end)) and (mark != "”" or after.isalnum())
    return mark in _CLOSED_BY


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


def _outermost(pairs: Iterator[tuple[int, int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    at = 0
    for pair in sorted(pairs):
        if pair[0] >= at:
            yield pair
            at = pair[1]
