"""The citations of a quotation: those that stand beside it in its sentence. Pure, linear in the text.

A citation belongs to the quotation right before it, and to those before that one in the same sentence. Where none
follows, the one that stands before a quotation is its own, unless it is that of another.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from council.citations import CUE, Citation
from council.deliberation.quotations.quotation_marks import QuotedText
from council.markup import sentence_ends

_NEAR_CHARS = 60  # beside, whatever is quoted; farther off it may be no more than a term in marks
_MAX_RUN = 16
_AROUND_CHARS = 300  # of a sentence, before and behind a quotation
# Words and marks around a citation that is all that a sentence, a line or an item holds: `**Source:** [E1: a.md:3].`
_TAG = r"</?(?:b|em|i|small|strong|su[bp])>"
_MAX_LEAD_CHARS = 80
_LEAD = re.compile(rf"\s*+(?P<item>[-+*•]\s++)?(?:[\s*_(→—–]|{_TAG})*+{CUE}(?:[\s*_(:]|{_TAG})*+")
_TRAIL = re.compile(
    rf"(?:[)\]*_.]|{_TAG}){{0,12}}"
    r"(?:[ \t]{0,40}(?:\n|\Z)(?P<margin>\s{0,40}+)(?![a-z])|\s{1,40}(?=[^\W_a-z]|[*_\"“„«]))"
)
_SAYS = re.compile(r"\s{1,40}[a-z]")  # `[E1:8] gives 5 EUR`: the citation begins a sentence
_ALSO = re.compile(r"[\s,;]{0,40}(?:and\s{1,40}|und\s{1,40}|et\s{1,40})?")
_AROUND_A_BLOCK = " \t\n>(—–-"
_DIRECTLY = re.compile(r"[\s,;:.()—–-]{0,80}(?:(?:see|cf|in|at|from)\b[\s.(]{0,40})?")


@dataclass(frozen=True)
class NearCitations:
    """The citations of one quotation. `near`: so near that whatever stands there is quoted. `own`: no other quotation
    stands between."""

    citations: tuple[Citation, ...] = ()
    near: bool = False
    own: bool = True


class Layout:
    """Quotations, citations and ends of sentences of one text: `ends`, in order."""

    def __init__(self, text: str, quotations: Sequence[QuotedText], citations: Sequence[Citation]) -> None:
        self._text = text
        self._quotations = quotations
        self._citations = citations
        self._starts = [cited.start for cited in citations]
        marked = [quotation for quotation in quotations if quotation.kind == "marks"]
        spans = [*((each.start, each.end) for each in marked), *((cited.start, cited.end) for cited in citations)]
        self.ends = list(_ends(text, spans, citations))
        self._quotation_starts = [quotation.start for quotation in marked]
        self._taken: set[int] = set()  # starts of the citations that a quotation has behind it

    def beside(self) -> Iterator[tuple[QuotedText, NearCitations]]:
        """Each quotation with its citations. Code has only such as stand directly at it."""
        behind = [self._behind(quotation) for quotation in self._quotations]
        for cited in behind:
            self._taken.update(citation.start for citation in cited.citations if cited.own)
        for quotation, cited in zip(self._quotations, behind, strict=True):
            inside = self._inside(quotation)
            if inside:
                yield quotation, NearCitations(inside, near=True)
            elif cited.citations and cited.own:
                yield quotation, cited
            else:
                before = self._before(quotation)
                yield quotation, before if before.citations else cited

    def _inside(self, quotation: QuotedText) -> tuple[Citation, ...]:
        if quotation.kind in ("code", "fence"):
            return ()
        low, high = bisect_left(self._starts, quotation.start), bisect_left(self._starts, quotation.end)
        return tuple(self._citations[low:high])

    def _behind(self, quotation: QuotedText) -> NearCitations:
        number = bisect_left(self._starts, quotation.end)
        if number == len(self._citations) or self._inside(quotation):
            return NearCitations()
        start = self._starts[number]
        own = self._quotations_between(quotation.end, start) == 0
        if quotation.kind != "marks":
            between = self._text[quotation.end : min(start, quotation.end + _NEAR_CHARS)]
            directly = not between.strip(_AROUND_A_BLOCK)
            if quotation.kind == "code":
                directly = "\n\n" not in between and _DIRECTLY.fullmatch(between) is not None
            directly = directly and start - quotation.end <= len(between)
            return NearCitations(self._run(number) if directly else (), near=directly)
        ends = bisect_left(self.ends, quotation.end)
        if ends < len(self.ends) and self.ends[ends] <= start:
            return NearCitations()
        return NearCitations(self._run(number), own and start - quotation.end <= _NEAR_CHARS, own)

    def _before(self, quotation: QuotedText) -> NearCitations:
        number = bisect_left(self._starts, quotation.start) - 1
        if number < 0 or self._starts[number] in self._taken:
            return NearCitations()
        cited = self._citations[number]
        between = self._text[cited.end : min(quotation.start, cited.end + _AROUND_CHARS)]
        if quotation.start - cited.end > len(between):
            return NearCitations()
        if quotation.kind in ("code", "fence", "block"):
            words = between.rstrip("\n \t>")
            introduced = words.endswith(":") and len(words) <= _NEAR_CHARS and not any(sentence_ends(words))
            return NearCitations((cited,) if introduced else (), near=introduced)
        ends = bisect_right(self.ends, cited.end)
        if ends < len(self.ends) and self.ends[ends] <= quotation.start:
            return NearCitations()
        own = self._quotations_between(cited.end, quotation.start) == 0
        return NearCitations((cited,), own and len(between) <= _NEAR_CHARS, own)

    def _run(self, number: int) -> tuple[Citation, ...]:
        """A citation and those that follow it directly."""
        last = number
        while last + 1 < min(len(self._citations), number + _MAX_RUN):
            gap = _ALSO.match(self._text, self._citations[last].end)
            if gap is None or gap.end() != self._citations[last + 1].start:
                break
            last += 1
        return tuple(self._citations[number : last + 1])

    def _quotations_between(self, start: int, end: int) -> int:
        return bisect_left(self._quotation_starts, end) - bisect_left(self._quotation_starts, start)

    def sentence(self, quotation: QuotedText) -> str:
        """The text around a quotation, as far as its sentence goes."""
        ends = bisect_right(self.ends, quotation.start)
        start = max(self.ends[ends - 1] if ends else 0, quotation.start - _AROUND_CHARS)
        ends = bisect_left(self.ends, quotation.end)
        end = min(self.ends[ends] if ends < len(self.ends) else len(self._text), quotation.end + _AROUND_CHARS)
        return f"{self._text[start : quotation.start]} {self._text[quotation.end : end]}"


def _ends(text: str, masked: Sequence[tuple[int, int]], citations: Sequence[Citation]) -> Iterator[int]:
    """Ends of sentences; text that is quoted or cited ends none. Citations behind a full stop, or alone on the next line,
    belong to what it ends."""
    starts = [cited.start for cited in citations]
    pieces: list[str] = []
    at = 0
    for start, end in sorted(masked):
        if start < at:
            continue
        number = bisect_left(starts, start)
        is_cited = number < len(starts) and starts[number] == start
        # A capital may begin a sentence. A bracket directly behind a full stop belongs to what it ends.
        mask = "x" if not is_cited else ")" if text[max(0, start - 1) : start].strip() else "X"
        pieces += (text[at:start], mask * (end - start))
        at = end
    bare = "".join([*pieces, text[at:]])
    done = 0
    for end in sentence_ends(bare):
        if end <= done:
            continue
        done = end
        goes_on = False
        while (number := bisect_left(starts, done)) < len(starts) and starts[number] - done <= _MAX_LEAD_CHARS:
            start = starts[number]
            lead = _LEAD.fullmatch(text, done, start)
            words = lead[0].strip() if lead else ""
            # Source words behind an empty line may begin the list of all sources.
            if lead is None or (words and text[done - 2 : start].count("\n") > 1):
                break
            at = start
            while number < len(starts) and _ALSO.fullmatch(text, at, starts[number]):
                at = citations[number].end
                number += 1
            trail = _TRAIL.match(text, at)
            if trail is None:
                goes_on = not words and _SAYS.match(text, at) is None
                break
            if lead["item"]:  # a citation may also head what is below it, or stand in a list of all sources
                margin = lead.start("item") - 1 - text.rfind("\n", max(0, done - _MAX_LEAD_CHARS), lead.start("item"))
                alone = trail["margin"] is not None and len(trail["margin"].rpartition("\n")[2]) <= margin
                if not alone or (margin < 2 and not any(map(str.isalpha, words))):
                    break
            done = trail.end()
        if not goes_on:
            yield done
