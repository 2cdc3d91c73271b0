"""Quotations of a decision, looked up in what was read: found, found elsewhere (corrected), or `[unverified]`. Pure.

These are looked up:

- text between quotation marks of any common language (`quotation_marks`), block quotations, and the elements `<q>` and
  `<blockquote>`. With a citation beside it, it may be of any length. With one elsewhere in its sentence it takes three words,
  or six characters of a script without spaces. Without any it takes five words (ten characters), for less may be a term.
- code, where a citation stands directly beside it and it is more than a name or a figure.

They are compared as `normalization` says, however long they are. An ellipsis, or a remark in square brackets,
stands for words left out. Each piece must then have three words (twelve characters), and the next one stand in the same
sentence or the one after it. A remark that replaces nothing, or stands for its own words, leaves nothing out. Either way the
page shows in full what stands there. A range of lines that is much wider than the words is narrowed to theirs.

The council's own texts (decision pages, its memory) prove nothing. An uncited quotation of what a member said is counted
apart, and excused only where its sentence names no file.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Literal

from council.citations import (
    NO_SUCH_EVIDENCE,
    NO_SUCH_PLACE,
    NOT_IN_CITED_LINES,
    ONLY_OWN_WORDS,
    UNVERIFIED,
    Citation,
    CitedPlace,
    KnownPaths,
    citations,
    footnotes,
    linked_as_cited,
    places_in,
    without_code,
)
from council.deliberation.quotations.cited_figures import CitedFigures, Standing, groups
from council.deliberation.quotations.cited_places import Fault, Places
from council.deliberation.quotations.figure import Figure
from council.deliberation.quotations.figure_reading import figures
from council.deliberation.quotations.nearby_citations import Layout, NearCitations
from council.deliberation.quotations.normalization import Gaps, LooseText, at_least, find_words, plain_text, trimmed
from council.deliberation.quotations.number_words import language_of
from council.deliberation.quotations.passages import Passage
from council.deliberation.quotations.quotation_marks import Code, QuotedText, Stretches, code_in, quoted
from council.markup import sentence_ends

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
_CITING = re.compile(
    r"\b(?:according to|see|per|cf\.|evidence|sources?|laut|siehe|vgl\.|gemäß|quellen?|belege?)[\s:*_]+\Z",
    re.IGNORECASE,
)
_SPELLED = re.compile(r"\[E[0-9]")
_CLOSING = re.compile(r"(?:[*_`~]|</[a-z]{1,6}>)+")  # the end of an emphasis
_NAME = re.compile(r"[\w./\\:@~#+-]+(?:\(\))?")  # of a file, a function, an option
ONLY_OWN = "it is only in the council's own words, which are not sources"
_TOO_SHORT = "the pieces between the words left out are too short to be looked up"
_TOO_MANY = f"it was not looked up: no more than {MAX_LOOKED_UP} quotations of a decision are"


@dataclass(frozen=True)
class QuotationFinding:
    """The outcome of looking up one quotation. `cited` and `place` are citations, empty where there is none; `reason`
    says more. `full`: the text that stands there, where the quotation leaves words of it out."""

    quotation: str
    outcome: Outcome
    cited: str = ""
    place: str = ""
    reason: str = ""
    full: str = ""


@dataclass(frozen=True)
class FigureFinding:
    """A figure of a sentence that cites: whether the lines at `cited` say it, or only the council's own words do."""

    figure: str
    cited: str
    standing: Standing


@dataclass(frozen=True)
class CheckedText:
    """A text with what the look-up says put in, and the findings in their order.

    `unknown_ids`: cited, never issued. `no_places`: cited, and nothing that was read. `corrected`: citations without a
    quotation that name their place wrongly, each with the right one. `figures`: those that were looked up.
    """

    text: str
    findings: tuple[QuotationFinding, ...] = ()
    unknown_ids: tuple[str, ...] = ()
    no_places: tuple[str, ...] = ()
    corrected: tuple[tuple[str, str], ...] = ()
    figures: tuple[FigureFinding, ...] = ()


@dataclass(frozen=True)
class _Place:
    """The place of a quotation; `full` as in QuotationFinding."""

    passage: Passage
    first: int
    last: int
    full: str = ""

    @property
    def cited(self) -> CitedPlace:
        passage = self.passage
        return CitedPlace(passage.id, passage.path, self.first, self.last) if passage.path else CitedPlace(passage.id)

    def is_named_by(self, cited: CitedPlace) -> bool:
        """True when a citation names this place: a line of it, its file, or the evidence as a whole."""
        path = self.passage.path
        if (cited.id and cited.id != self.passage.id) or (path and cited.path and cited.path != path):
            return False
        return not path or cited.first is None or (cited.first <= self.last and self.first <= cited.last)

    def distance(self, cited: CitedPlace) -> tuple[bool, bool, bool, int]:
        """The distance from the place that is cited. A path is the more certain name: an id is a mere number."""
        passage = self.passage
        away = 0 if cited.first is None else abs(cited.first - self.first)
        other_path = bool(cited.path) and cited.path != passage.path
        return not self.is_named_by(cited), other_path, cited.id != passage.id, away


@dataclass(frozen=True)
class _Piece:
    """A piece of a quotation, and the remark before it: empty where the words before it are merely left out."""

    words: str
    remark: str = ""

    @cached_property
    def is_long(self) -> bool:
        return at_least(self.words, *_PIECE)

    @cached_property
    def loose(self) -> Gaps:
        return Gaps(self.words)


@dataclass(frozen=True)
class _SearchedQuotation:
    """A quotation as it is searched: whole, also with the numbers that lines begin with, or in pieces."""

    whole: str
    numbered: str
    pieces: tuple[_Piece, ...] = ()
    fault: str = ""  # why it need not be searched in pieces


def _with_evidence(text: str, refs: Iterable[str], paths: KnownPaths) -> str:
    """The text and, behind it, the evidence that it does not cite itself."""
    cited = [place for citation in citations(text, paths=paths) for place in citation.places]
    missing = [
        ref
        for ref in refs
        if not all(any(own == place or own == CitedPlace(place.id) for place in cited) for own in places_in(ref, paths))
    ]
    return " ".join([text, *(f"[{ref}]" for ref in missing)])


def _wanted(words: str) -> _SearchedQuotation:
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
        return _SearchedQuotation(pieces[0].words, numbered)
    cut = any(not (a.is_long and b.is_long) for a, b in pairwise(pieces) if not b.remark)
    return _SearchedQuotation(trimmed(text), numbered, tuple(pieces), _TOO_SHORT if cut else "")


class Quotations:
    """Looks quotations up in what one run read. `said`: words of the agents and the steward, which an uncited quotation
    may repeat. `issued`: the ids of all evidence. `task`: what the steward asks for. `day`: that of the run."""

    def __init__(
        self,
        passages: Sequence[Passage],
        issued: Iterable[str],
        said: Iterable[str] = (),
        task: str = "",
        day: str = "",
    ) -> None:
        self.passages = passages
        self.figures = CitedFigures(passages, task, day)
        self._task = task
        self._words: dict[str, bool] = {}  # what the matter itself uses as words
        self._spoken = tuple(said)
        self._known: dict[str, tuple[_Place, ...]] = {}  # what was searched before, by its words
        self.places = Places(passages, issued)
        names = self.places.names
        listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        self._names = re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE) if names else None

    @cached_property
    def _said(self) -> list[str]:
        return [plain_text(text) for text in self._spoken]

    def check(self, text: str, evidence: Iterable[str] = (), *, with_figures: bool = True) -> CheckedText:
        """The text with corrected citations and marks behind what cannot be verified. `evidence` is listed for the whole of
        it: it is put behind it, and holds for every sentence that cites nothing itself. To look figures up takes longest."""
        refs = tuple(dict.fromkeys(evidence))
        paths = self.places.paths
        text = without_code(text, code_in(text).spans, paths)
        skipped = code_in(text).stretches()
        text = linked_as_cited(text, paths, lambda at: skipped.around(at) is not None)
        listed = self._right_places(place for ref in refs for place in places_in(ref, paths))
        listed_at, text = len(text), _with_evidence(text, refs, paths)
        code = code_in(text)
        skipped = code.stretches()
        named = [each for each in citations(text, bare=True, paths=paths) if skipped.around(each.start) is None]
        named = [each for each in named if not (each.may_be_a_term and self._is_term(each))]
        unread = {each.start for each in named if self.places.is_unread(each)}
        others = [each for each in named if each.start not in unread]
        ends = Layout(text, (), others).ends if unread else []
        told = {bisect_right(ends, each.start) for each in others}  # sentences that tell of it by another source
        named = [each for each in named if each.start not in unread or bisect_right(ends, each.start) not in told]
        cited = [
            each
            for each in named
            if not each.is_bare or each.start in unread or _CITING.search(text, max(0, each.start - 20), each.start)
        ]
        notes = [each for each in footnotes(text, paths) if skipped.around(each.start) is None]
        edits = _Edits()
        quotations, layout = self._laid_out(text, code, sorted((*cited, *notes), key=lambda each: each.start))
        findings = list(self._findings(quotations, layout, edits))
        named += notes
        in_figures = self._figures_of(text, code, named, listed, listed_at, quotations, layout, edits)
        said = list(in_figures) if with_figures else []
        wrong: dict[tuple[Fault, CitedPlace], None] = {}
        corrected: dict[tuple[str, str], None] = {}
        for citation in cited:
            if citation in edits.replaced:
                continue
            judged = [(cited_place, *self.places.judged(cited_place)) for cited_place in citation.places]
            faults = [(fault, cited_place) for cited_place, _, fault in judged if fault]
            if faults:
                wrong.update(dict.fromkeys(faults))
                edits.replaced[citation] = f"{citation.text} {_MARKS[min(fault for fault, _ in faults)]}"
                # A mark behind the brackets would be read as one on the last place;
                # where only that one is wrong, it is right so.
                if len(faults) < len(judged) and any(fault for *_, fault in judged[:-1]):  # each mark beside its own
                    each = [
                        f"{cited_place} {_MARKS[fault]}" if fault else str(place)
                        for cited_place, place, fault in judged
                    ]
                    edits.replaced[citation] = " ".join(dict.fromkeys(each))
                continue
            right = " ".join(dict.fromkeys(str(place) for _, place, _ in judged))
            if not all(cited_place.is_part_of(place) for cited_place, place, _ in judged):
                corrected[citation.text, right] = None
                edits.replaced[citation] = right
            elif any(place.first is not None or place != cited_place for cited_place, place, _ in judged) or not (
                citation.remark or _SPELLED.match(citation.text)
            ):
                edits.replaced[citation] = right  # right, and spelled as all others are
        return CheckedText(
            edits.applied(text),
            tuple(findings),
            unknown_ids=tuple(dict.fromkeys(named.id for fault, named in wrong if fault == "evidence")),
            no_places=tuple(str(named)[1:-1] for fault, named in wrong if fault == "place"),
            corrected=tuple(corrected),
            figures=tuple(said),
        )

    def _is_term(self, cited: Citation) -> bool:
        """True for `(E120)` or `E120` where what was read or asked uses the word; for `Document 1` and `[1]`, too. `[1]` is also
        no citation where no evidence has the number."""
        ids = [place.id for place in cited.places if place.id and (cited.is_bare or place.id not in self.places.issued)]
        if ids and cited.terms and cited.terms[0][0] == "[":
            return True
        words = cited.terms or ids
        for word in words:
            if word not in self._words:
                found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE if cited.terms else 0)
                texts = (self._task, *(each.text for each in self.passages))
                self._words[word] = any(found.search(text) for text in texts)
        return any(self._words[word] for word in words)

    def _laid_out(
        self, text: str, code: Code, cited: Sequence[Citation]
    ) -> tuple[list[tuple[QuotedText, NearCitations]], Layout]:
        """The quotations that count, each with its citations."""
        all_quoted: list[QuotedText] = []
        for quotation in quoted(text, code, self.places.paths):
            # A block that stands nowhere as a whole, and is for the most part what it quotes itself, is that.
            inner = sum(len(each.words) for each in quotation.within)
            mostly = quotation.within and 2 * inner >= len(quotation.words)
            all_quoted += quotation.within if mostly and not self._search(_wanted(quotation.words)) else (quotation,)
        layout = Layout(text, all_quoted, cited)
        return [(quotation, each) for quotation, each in layout.beside() if _counts(quotation, each)], layout

    def _findings(
        self, beside: Sequence[tuple[QuotedText, NearCitations]], layout: Layout, edits: _Edits
    ) -> Iterator[QuotationFinding]:
        shared: dict[int, int] = {}
        for _, each in beside:
            for citation in each.citations:
                shared[citation.start] = shared.get(citation.start, 0) + 1
        for quotation, each in beside:
            finding, place, right = self._look_up(quotation, each, layout)
            if finding is None:
                continue
            yield finding
            if finding.outcome == "unverified":
                edits.insert(quotation.mark_at, f"\n{UNVERIFIED}" if quotation.kind == "fence" else f" {UNVERIFIED}")
            elif place is not None and right is not None and finding.outcome in ("moved", "narrowed"):
                alone = len(right.places) == 1 and shared[right.start] == 1
                if alone:
                    edits.replaced[right] = str(place.cited)
                else:
                    edits.insert(quotation.mark_at, f" {place.cited}")

    def _figures_of(
        self,
        text: str,
        code: Code,
        cited: Sequence[Citation],
        listed: list[CitedPlace],
        listed_at: int,
        quotations: Sequence[tuple[QuotedText, NearCitations]],
        layout: Layout,
        edits: _Edits,
    ) -> Iterator[FigureFinding]:
        """The figures of sentences that cite, and marks behind those that the cited lines do not say. What is quoted is
        looked up as a quotation, and of code only a figure counts. `listed`: the places for the whole text, those that it does
        not cite itself put behind it at `listed_at`."""
        if not cited and not listed:
            return
        hidden = [*((each.start, each.end) for each in cited), *((each.start, each.end) for each, _ in quotations)]
        hidden += [(block.start, block.end) for block in code.blocks]
        hidden += [span for span in code.spans if not _is_figure(text[slice(*span)])]
        bare = list(text)
        for start, end in hidden:
            bare[start:end] = " " * (end - start)
        places = {each: self._right_places(each.places) for each in cited}
        ids = {named.id for each in cited for named in each.places} | {named.id for named in listed}
        source = next((each.text for each in self.passages if each.id in ids), "")
        words = "".join(bare)
        said = figures(words, language_of(words, language_of(source)), said=True)
        # `15. Dezember` ends no sentence, and neither does `Sun. 7 December`.
        dots = Stretches([(figure.start, figure.end) for figure in said])
        goes_on = {each.end + 1 for each in said if each.kind == "weekday" and each.text[-1] == "."}
        ends = [end for end in layout.ends if (around := dots.around(end)) is None or around[0] == end]
        ends = [end for end in ends if end not in goes_on]
        sentences: dict[int, list[Figure | Citation]] = {}
        items: list[Figure | Citation] = [*said, *cited]
        for item in sorted(items, key=lambda item: item.start):
            sentences.setdefault(bisect_right(ends, item.start), []).append(item)
        for number, sentence in sentences.items():
            parts = [item if isinstance(item, Figure) else places[item] for item in sentence]
            if not any(isinstance(item, Citation) and item.start < listed_at for item in sentence):
                parts = [*(part for part in parts if isinstance(part, Figure)), listed]
            here = [place for part in parts if not isinstance(part, Figure) for place in part]
            owned = groups(parts)
            judged = {figure.start: dict.fromkeys(places_of) for figure, places_of in owned}
            spoken = words[ends[number - 1] if number else 0 : ends[number] if number < len(ends) else None]
            for figure, standing in self.figures.standings(owned, here, spoken):
                wholes = {(each.id, each.path) for each in judged[figure.start] if each.first is None}
                shown = [  # a place within another one is not named beside it
                    str(each)
                    for each in judged[figure.start]
                    if not ((each.path and (each.id, "") in wholes) or (each.first and (each.id, each.path) in wholes))
                ]
                yield FigureFinding(figure.text, " ".join(shown), standing)
                if standing != "cited":
                    behind = _CLOSING.match(text, figure.end)
                    end = behind.end() if behind else figure.end
                    edits.insert(end, f" {ONLY_OWN_WORDS if standing == 'own' else NOT_IN_CITED_LINES}")

    def _right_places(self, named: Iterable[CitedPlace]) -> list[CitedPlace]:
        return [right for each in named for right, fault in [self.places.judged(each)] if not fault]

    # ── where it stands ──────────────────────────────────────────────────────────────────────────────────────────────

    def _look_up(
        self, quotation: QuotedText, beside: NearCitations, layout: Layout
    ) -> tuple[QuotationFinding | None, _Place | None, Citation | None]:
        """The finding, its place, and the citation that should say so. No finding for nothing but marks."""
        wanted = _wanted(quotation.words)
        if not wanted.whole:
            return None, None, None
        shown = " ".join(quotation.words.split())
        cited = " ".join(each.text for each in beside.citations)
        places = self._search(wanted)
        if places is None:
            return QuotationFinding(shown, "unverified", cited, reason=_TOO_MANY), None, None
        true = [place for place in places if not place.passage.own]
        if true and not beside.citations:
            return QuotationFinding(shown, "found", place=str(true[0].cited), full=true[0].full), true[0], None
        if true:
            finding = QuotationFinding(shown, "found", cited)
            pairs = [
                (place.distance(named), number, at, citation)
                for number, place in enumerate(true)
                for citation in beside.citations
                for at, named in enumerate(citation.places)
            ]
            if not pairs:
                return replace(finding, place=str(true[0].cited), full=true[0].full), true[0], None
            _, number, at, citation = min(pairs, key=lambda pair: pair[0])
            place, named = true[number], citation.places[at]
            outcome: Outcome = "found"
            if not place.is_named_by(named):
                outcome = "moved"
            elif (
                named.first is not None and max(place.first - named.first, named.last - place.last) > _MAX_AROUND_LINES
            ):
                outcome = "narrowed"
            return replace(finding, outcome=outcome, place=str(place.cited), full=place.full), place, citation
        pieces = wanted.pieces if wanted.pieces and not wanted.fault else (_Piece(wanted.whole),)
        if not beside.citations and not (self._names and self._names.search(layout.sentence(quotation))):
            for text in self._said:
                at_words = _find(text, None, pieces, 0)
                if at_words is not None and text[max(0, at_words[0] - 1)] != '"':  # said, and not quoted there, too
                    return QuotationFinding(shown, "said"), None, None
        reason = ONLY_OWN if places else wanted.fault or "it was not found in what the council read"
        return QuotationFinding(shown, "unverified", cited, reason=reason), None, None

    def _search(self, wanted: _SearchedQuotation) -> tuple[_Place, ...] | None:
        """Everywhere it stands; None if too many were looked up already."""
        key = f"{wanted.whole}\n{wanted.numbered}"
        if key not in self._known:
            if len(self._known) >= MAX_LOOKED_UP:
                return None
            tries: list[tuple[tuple[_Piece, ...], bool]] = [((_Piece(wanted.whole),), False)]
            tries += [((_Piece(wanted.numbered),), True)] if wanted.numbered else []
            tries += [(wanted.pieces, False)] if wanted.pieces and not wanted.fault else []
            places: list[_Place] = []
            for loosely, (pieces, numbered) in product((False, True), tries):
                for passage in self.passages:
                    plain = passage.numbered if numbered else passage.plain
                    if numbered and plain is passage.plain and wanted.numbered == wanted.whole:
                        continue
                    text, starts = plain
                    loose = (passage.loose_numbered if numbered else passage.loose) if loosely else None
                    at = 0
                    for _ in range(_MAX_OCCURRENCES):
                        found = _find(text, loose, pieces, at)
                        if found is None:
                            break
                        start, end = found
                        full = unicodedata.normalize("NFC", text[start : min(end, start + _MAX_SHOWN_CHARS + 1)])
                        if len(full) > _MAX_SHOWN_CHARS:
                            full = f"{full[:_MAX_SHOWN_CHARS].rsplit(' ', 1)[0]} …"
                        lines = passage.line_at(starts, start), passage.line_at(starts, end - 1)
                        places.append(_Place(passage, *lines, full if len(pieces) > 1 else ""))
                        at = start + 1
                if any(not place.passage.own for place in places):
                    break
            self._known[key] = tuple(places)
        return self._known[key]


def _is_figure(code: str) -> bool:
    """True for code that is nothing but a figure, which is looked up as others are."""
    words = code.strip("` ")
    return [(figure.start, figure.end) for figure in figures(words, said=True)] == [(0, len(words))]


def _counts(quotation: QuotedText, beside: NearCitations) -> bool:
    """True when something that looks like a quotation is one; see above."""
    if quotation.kind in ("code", "fence"):
        return bool(beside.citations) and not (_NAME.fullmatch(quotation.words.strip()) or _is_figure(quotation.words))
    if beside.citations and beside.near:
        return True
    return at_least(plain_text(quotation.words), *(_IN_SENTENCE if beside.citations else _UNCITED))


def _find(text: str, loose: LooseText | None, pieces: Sequence[_Piece], at: int) -> tuple[int, int] | None:
    """The first stretch from `at` on that holds all pieces, in order and near each other; whole words only. In `loose`, which is
    the same text, they may stand in other forms."""

    def search(piece: _Piece, at: int, end: int | None = None) -> tuple[int, int] | None:
        return find_words(text, piece.words, at, end) if loose is None else loose.find(piece.loose, at, end)

    for _ in range(_MAX_OCCURRENCES):
        found = search(pieces[0], at)
        if found is None:
            return None
        start, end = found
        for before, piece in pairwise(pieces):
            found = search(piece, end, end + _MAX_LEFT_OUT_CHARS + len(piece.words))
            if found is None:
                break
            begins, ends = found
            between = text[end:begins]
            said = piece.remark and _words(between) in ("", _words(piece.remark))  # the remark leaves nothing out
            # Else at most the rest of a sentence and the beginning of the next are left out.
            near = before.is_long and piece.is_long and len(list(sentence_ends(between))) <= 1
            if not (said or near):
                break
            end = ends
        else:
            return start, end
        at = start + 1
    return None


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text)).casefold()


class _Edits:
    """Changes to a text: citations that are `replaced`, at most once each, and remarks."""

    def __init__(self) -> None:
        self.replaced: dict[Citation, str] = {}
        self._inserted: list[tuple[int, str]] = []

    def insert(self, at: int, text: str) -> None:
        self._inserted.append((at, text))

    def applied(self, text: str) -> str:
        edits = [(at, 0, number, at, words) for number, (at, words) in enumerate(self._inserted)]
        edits += [(cited.start, 1, 0, cited.end, words) for cited, words in self.replaced.items()]
        pieces: list[str] = []
        done = 0
        for start, _, _, end, words in sorted(edits):
            pieces += (text[done:start], words)
            done = end
        return "".join([*pieces, text[done:]])
