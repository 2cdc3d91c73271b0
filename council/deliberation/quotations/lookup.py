"""Whether what a decision quotes stands in what was read: found, found elsewhere (corrected), or `[unverified]`. Pure.

What is looked up:

- what stands between quotation marks of any common language (`marks`), block quotations, and the elements `<q>` and
  `<blockquote>`: with a citation beside it whatever its length; with one elsewhere in its sentence from three words on (or
  six characters of a script without spaces); without any from five words on (ten characters), for less may be a term;
- code, where a citation stands directly beside it and it is more than a name.

It is compared letter by letter, as `spelling` says, however long it is. An ellipsis, or a remark in square brackets, stands
for words left out: each piece must then have three words (twelve characters), and the next one stand in the same sentence or
the one after it; a remark that replaces nothing, or stands for its own words, leaves nothing out. Either way the page shows
what stands there in full. A range of lines that is much wider than the words is narrowed to
theirs. What the council wrote itself (decision pages, its memory) proves nothing; an uncited quotation of what a member said
is counted apart, and excused only where its sentence names no file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from council.deliberation.quotations.beside import Beside, Layout
from council.deliberation.quotations.citations import Citation, Cited, citations
from council.deliberation.quotations.marks import Code, Quoted, code_in, quoted, too_many_marks
from council.deliberation.quotations.sources import Fault, Passage, Places
from council.deliberation.quotations.spelling import at_least, find_words, plain_text, trimmed
from council.markup import sentence_ends

UNVERIFIED = "[unverified]"
NO_SUCH_EVIDENCE = "[no such evidence]"
NO_SUCH_PLACE = "[no such place]"
_MARKS: dict[Fault, str] = {"evidence": NO_SUCH_EVIDENCE, "place": NO_SUCH_PLACE}
MAX_LOOKED_UP = 250  # different quotations of one decision; each is a search through all that was read
_UNCITED = (5, 10)  # words, or characters of a script without spaces
_IN_SENTENCE = (3, 6)
_PIECE = (3, 12)
_MAX_LEFT_OUT_CHARS = 400  # what an ellipsis may stand for
_MAX_AROUND_LINES = 5  # a citation may name so many lines more on each side than the words fill
_MAX_OCCURRENCES = 200  # of one quotation in one passage: a single character could have thousands
_MAX_SHOWN_CHARS = 400  # of what stands in a source where words were left out

Outcome = Literal["found", "narrowed", "moved", "said", "unverified"]

_ELLIPSIS = re.compile(r"\[\s*\.{2,}\s*\]|\(\s*\.{2,}\s*\)|\.{3,}")
_LEFT_OUT = re.compile(rf"({_ELLIPSIS.pattern}|\[[^\[\]]{{1,200}}\])")  # an ellipsis, or a remark in square brackets
_ONE_LETTER = re.compile(r"\[(\w)\](?=\w)")
_NAME = re.compile(r"[\w./\\:@~#+-]+(?:\(\))?")  # of a file, a function, an option
_TOO_SHORT = "the pieces between the words left out are too short to be looked up"
_TOO_MANY = f"it was not looked up: no more than {MAX_LOOKED_UP} quotations of a decision are"


@dataclass(frozen=True)
class Finding:
    """What became of one quotation. `cited` and `place` are citations, empty where there is none; `reason` says more.
    `full`: what stands there, where the quotation leaves words of it out."""

    quotation: str
    outcome: Outcome
    cited: str = ""
    place: str = ""
    reason: str = ""
    full: str = ""


@dataclass(frozen=True)
class Checked:
    """A text with what the look-up says put in, and the findings in their order.

    `unknown_ids`: cited, never issued. `no_places`: cited, and nothing that was read. `corrected`: citations without a
    quotation that name their place wrongly, each with the right one. `too_long`: not all of its quotation marks were looked
    at.
    """

    text: str
    findings: tuple[Finding, ...] = ()
    unknown_ids: tuple[str, ...] = ()
    no_places: tuple[str, ...] = ()
    corrected: tuple[tuple[str, str], ...] = ()
    too_long: bool = False


@dataclass(frozen=True)
class _Place:
    """Where a quotation stands; `full` as in Finding."""

    passage: Passage
    first: int
    last: int
    full: str = ""

    @property
    def cited(self) -> Cited:
        passage = self.passage
        return Cited(passage.id, passage.path, self.first, self.last) if passage.path else Cited(passage.id)


@dataclass(frozen=True)
class _Piece:
    """A piece of a quotation, and the remark before it: empty where the words before it are merely left out."""

    words: str
    remark: str = ""

    @cached_property
    def is_long(self) -> bool:
        return at_least(self.words, *_PIECE)


@dataclass(frozen=True)
class _Wanted:
    """A quotation as it is searched: whole, also with the numbers that lines begin with, or in pieces."""

    whole: str
    numbered: str
    pieces: tuple[_Piece, ...] = ()

    @cached_property
    def fault(self) -> str:
        """Why it need not be searched in pieces."""
        cut = any(not (a.is_long and b.is_long) for a, b in pairwise(self.pieces) if not b.remark)
        return _TOO_SHORT if cut else ""


def _wanted(words: str) -> _Wanted:
    text = _ONE_LETTER.sub(r"\1", plain_text(words))
    begins = any(char.isdigit() for char in words)
    numbered = trimmed(_ONE_LETTER.sub(r"\1", plain_text(words, numbers=True))) if begins else trimmed(text)
    pieces: list[_Piece] = []
    remark = ""
    for number, part in enumerate(_LEFT_OUT.split(text)):
        if number % 2:
            remark = "" if _ELLIPSIS.fullmatch(part) else part
        elif piece := trimmed(part):
            pieces.append(_Piece(piece, remark))
    if len(pieces) == 1:  # only before or behind it something is left out
        return _Wanted(pieces[0].words, numbered)
    return _Wanted(trimmed(text), numbered, tuple(pieces))


class Quotations:
    """Looks quotations up in what one run read. `said`: what the agents and the steward said themselves, which an uncited
    quotation may repeat. `issued`: the ids of all evidence."""

    def __init__(self, passages: Sequence[Passage], issued: Iterable[str], said: Iterable[str] = ()) -> None:
        self.passages = passages
        self._said = [plain_text(text) for text in said]
        self._known: dict[str, tuple[_Place, ...]] = {}  # what was searched before, by its words
        self.places = Places(passages, issued)
        names = {name for path in self.places.paths for name in (path, path.rsplit("/", 1)[-1])}
        listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        self._names = re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE) if names else None

    def check(self, text: str) -> Checked:
        """The text with corrected citations and marks behind what cannot be verified."""
        code = code_in(text)
        skipped = code.stretches()
        cited = [citation for citation in citations(text) if skipped.around(citation.start) is None]
        edits = _Edits(text)
        findings = list(self._findings(text, code, cited, edits))
        return self._check_places(cited, edits, Checked("", tuple(findings), too_long=too_many_marks(text)))

    def _findings(self, text: str, code: Code, cited: Sequence[Citation], edits: _Edits) -> Iterator[Finding]:
        all_quoted = list(self._unfolded(quoted(text, code)))
        layout = Layout(text, all_quoted, cited)
        beside = list(layout.beside())
        shared: dict[int, int] = {}
        for _, each in beside:
            for citation in each.citations:
                shared[citation.start] = shared.get(citation.start, 0) + 1
        for quotation, each in beside:
            if not _counts(quotation, each):
                continue
            finding, place, right = self._look_up(quotation, each, layout)
            if finding is None:
                continue
            yield finding
            if finding.outcome == "unverified":
                edits.insert(quotation.mark_at, f"\n{UNVERIFIED}" if quotation.kind == "fence" else f" {UNVERIFIED}")
            elif place is not None and right is not None and finding.outcome in ("moved", "narrowed"):
                alone = len(right.places) == 1 and shared[right.start] == 1
                if alone:
                    edits.replace(right, str(place.cited))
                else:
                    edits.insert(quotation.mark_at, f" {place.cited}")

    def _unfolded(self, all_quoted: Sequence[Quoted]) -> Iterator[Quoted]:
        """A block that does not stand anywhere as a whole, and is for the most part what it quotes itself, is that."""
        for quotation in all_quoted:
            inner = sum(len(each.words) for each in quotation.within)
            if 2 * inner >= len(quotation.words) and quotation.within and not self._search(_wanted(quotation.words)):
                yield from quotation.within
            else:
                yield quotation

    # ── where it stands ──────────────────────────────────────────────────────────────────────────────────────────────

    def _look_up(
        self, quotation: Quoted, beside: Beside, layout: Layout
    ) -> tuple[Finding | None, _Place | None, Citation | None]:
        """What is found, where, and the citation that should say so. No finding for nothing but marks."""
        wanted = _wanted(quotation.words)
        if not wanted.whole:
            return None, None, None
        shown = " ".join(quotation.words.split())
        cited = " ".join(each.text for each in beside.citations)
        places = self._search(wanted)
        if places is None:
            return Finding(shown, "unverified", cited, reason=_TOO_MANY), None, None
        true = [place for place in places if not place.passage.own]
        if true and not beside.citations:
            return Finding(shown, "found", place=str(true[0].cited), full=true[0].full), true[0], None
        if true:
            return self._compared(Finding(shown, "found", cited), true, beside)
        if not beside.citations and not self._names_a_file(layout.sentence(quotation)) and self._is_said(wanted):
            return Finding(shown, "said"), None, None
        reason = wanted.fault or "it stands in nothing that was read"
        reason = "it stands only in what the council wrote itself" if places else reason
        return Finding(shown, "unverified", cited, reason=reason), None, None

    def _compared(
        self, finding: Finding, places: Sequence[_Place], beside: Beside
    ) -> tuple[Finding, _Place, Citation | None]:
        """Where it stands beside where it is cited: looked up in each citation, the best of them counts."""
        pairs = [
            (_distance(named, place), number, at, citation)
            for number, place in enumerate(places)
            for citation in beside.citations
            for at, named in enumerate(citation.places)
        ]
        if not pairs:
            return replace(finding, place=str(places[0].cited), full=places[0].full), places[0], None
        _, number, at, citation = min(pairs, key=lambda pair: pair[0])
        place, named = places[number], citation.places[at]
        outcome: Outcome = "found"
        if not _covers(named, place):
            outcome = "moved"
        elif _is_wide(named, place):
            outcome = "narrowed"
        return replace(finding, outcome=outcome, place=str(place.cited), full=place.full), place, citation

    def _search(self, wanted: _Wanted) -> tuple[_Place, ...] | None:
        """Everywhere it stands; None if too many were looked up already."""
        key = f"{wanted.whole}\n{wanted.numbered}"
        if key not in self._known:
            if len(self._known) >= MAX_LOOKED_UP:
                return None
            self._known[key] = tuple(self._searched(wanted))
        return self._known[key]

    def _searched(self, wanted: _Wanted) -> list[_Place]:
        tries: list[tuple[tuple[_Piece, ...], bool]] = [((_Piece(wanted.whole),), False)]
        tries += [((_Piece(wanted.numbered),), True)] if wanted.numbered else []
        tries += [(wanted.pieces, False)] if wanted.pieces and not wanted.fault else []
        places: list[_Place] = []
        for pieces, numbered in tries:
            for passage in self.passages:
                plain = passage.numbered if numbered else passage.plain
                if not (numbered and plain is passage.plain and wanted.numbered == wanted.whole):
                    places += _in_passage(passage, plain, pieces)
            if any(not place.passage.own for place in places):
                break
        return places

    def _is_said(self, wanted: _Wanted) -> bool:
        pieces = wanted.pieces if wanted.pieces and not wanted.fault else (_Piece(wanted.whole),)
        return any(_says(text, pieces) for text in self._said)

    def _names_a_file(self, sentence: str) -> bool:
        return self._names is not None and self._names.search(sentence) is not None

    # ── citations by themselves ──────────────────────────────────────────────────────────────────────────────────────

    def _check_places(self, cited: Sequence[Citation], edits: _Edits, checked: Checked) -> Checked:
        wrong: dict[tuple[Fault, Cited], None] = {}
        corrected: dict[tuple[str, str], None] = {}
        for citation in cited:
            if edits.has(citation):
                continue
            judged = [(named, *self.places.judged(named)) for named in citation.places]
            faults = [(fault, named) for named, _, fault in judged if fault]
            if faults:
                wrong.update(dict.fromkeys(faults))
                edits.replace(citation, f"{citation.text} {_MARKS[min(fault for fault, _ in faults)]}")
                continue
            right = " ".join(dict.fromkeys(str(place) for _, place, _ in judged))
            if any(place != named for named, place, _ in judged):
                corrected[citation.text, right] = None
                edits.replace(citation, right)
            elif any(named.first for named in citation.places) and right != citation.text:
                edits.replace(citation, right)  # right, and spelled so that it becomes a link
        return replace(
            checked,
            text=edits.applied(),
            unknown_ids=tuple(dict.fromkeys(named.id for fault, named in wrong if fault == "evidence")),
            no_places=tuple(str(named)[1:-1] for fault, named in wrong if fault == "place"),
            corrected=tuple(corrected),
        )


def _counts(quotation: Quoted, beside: Beside) -> bool:
    """Whether something that looks like a quotation is one; see above."""
    if quotation.kind in ("code", "fence"):
        return bool(beside.citations) and not _NAME.fullmatch(quotation.words.strip())
    if beside.citations and beside.near:
        return True
    return at_least(plain_text(quotation.words), *(_IN_SENTENCE if beside.citations else _UNCITED))


# ── one passage ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _in_passage(passage: Passage, plain: tuple[str, list[int]], pieces: Sequence[_Piece]) -> Iterator[_Place]:
    text, starts = plain
    at = 0
    for _ in range(_MAX_OCCURRENCES):
        found = _find(text, pieces, at)
        if found is None:
            return
        start, end = found
        full = _shown(text[start:end]) if len(pieces) > 1 else ""
        yield _Place(passage, passage.line_at(starts, start), passage.line_at(starts, end - 1), full)
        at = start + 1


def _shown(text: str) -> str:
    text = unicodedata.normalize("NFC", text[: _MAX_SHOWN_CHARS + 1])
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS].rsplit(' ', 1)[0]} …"


def _says(text: str, pieces: Sequence[_Piece]) -> bool:
    """Whether a text says the words itself, and does not quote them."""
    found = _find(text, pieces, 0)
    return found is not None and text[max(0, found[0] - 1)] != '"'


def _find(text: str, pieces: Sequence[_Piece], at: int) -> tuple[int, int] | None:
    """Where all pieces stand, in order and near each other, from `at` on; whole words only."""
    for _ in range(_MAX_OCCURRENCES):
        start = find_words(text, pieces[0].words, at)
        if start < 0:
            return None
        end = _find_rest(text, pieces, start + len(pieces[0].words))
        if end is not None:
            return start, end
        at = start + 1
    return None


def _find_rest(text: str, pieces: Sequence[_Piece], end: int) -> int | None:
    """Where the last of the pieces ends, each behind the one before it."""
    for before, piece in pairwise(pieces):
        start = find_words(text, piece.words, end, end + _MAX_LEFT_OUT_CHARS + len(piece.words))
        if start < 0 or not _may_leave_out(text[end:start], before, piece):
            return None
        end = start + len(piece.words)
    return end


def _may_leave_out(between: str, before: _Piece, piece: _Piece) -> bool:
    """Whether a text may be left out between two pieces: at most the rest of a sentence and the beginning of the next."""
    words = _words(between)
    if piece.remark and words in ("", _words(piece.remark)):
        return True
    return before.is_long and piece.is_long and len(list(sentence_ends(between))) <= 1


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text)).casefold()


def _covers(cited: Cited, place: _Place) -> bool:
    """Whether a citation names this place: a line of it, its file, or the evidence as a whole."""
    if cited.id != place.passage.id:
        return False
    if not place.passage.path or not (cited.path or cited.first):
        return True
    if cited.path and cited.path != place.passage.path:
        return False
    return not cited.first or (cited.first <= place.last and place.first <= cited.last)


def _is_wide(cited: Cited, place: _Place) -> bool:
    around = _MAX_AROUND_LINES
    return bool(cited.first) and (cited.first < place.first - around or cited.last > place.last + around)


def _distance(cited: Cited, place: _Place) -> tuple[bool, bool, bool, int]:
    """How far a place is from the one that is cited. A path is the more certain name: an id is a mere number."""
    passage = place.passage
    away = abs(cited.first - place.first) if cited.first else 0
    return not _covers(cited, place), bool(cited.path) and cited.path != passage.path, cited.id != passage.id, away


class _Edits:
    """What is put into a text: at most one replacement of a citation, and remarks."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._replaced: dict[int, tuple[int, str]] = {}
        self._inserted: dict[int, str] = {}

    def has(self, citation: Citation) -> bool:
        return citation.start in self._replaced

    def replace(self, citation: Citation, text: str) -> None:
        self._replaced[citation.start] = (citation.end, text)

    def insert(self, at: int, text: str) -> None:
        self._inserted[at] = self._inserted.get(at, "") + text

    def applied(self) -> str:
        edits = [(start, 1, end, text) for start, (end, text) in self._replaced.items()]
        edits += [(at, 0, at, text) for at, text in self._inserted.items()]
        pieces: list[str] = []
        at = 0
        for start, _, end, text in sorted(edits):
            pieces += (self._text[at:start], text)
            at = end
        return "".join([*pieces, self._text[at:]])
