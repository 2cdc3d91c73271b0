"""Whether what a decision quotes stands in what was read: found, found at another line, or `[unverified]`. Pure.

A quotation is a text in quotation marks, or a Markdown block quotation, beside a citation (`"…" [E1: docs/a.md:3-5]`);
without a citation it is looked up from five words on, so that a term in quotation marks is none. White space, typographic
quotation marks, hyphens and Markdown emphasis do not count, an ellipsis stands for words left out. What the council wrote
itself (decision pages, its memory) proves nothing. Code in the decision is left alone.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from council.deliberation.transcript import Evidence
from council.knowledge.cortex.chunks import is_artifact
from council.safety.untrusted import clean, code_spans, inert

UNVERIFIED = "[unverified]"
NO_SUCH_EVIDENCE = "[no such evidence]"
ARCHIVE = "session_states/"
MIN_WORDS_UNCITED = 5
_MAX_QUOTATION_CHARS = 2_000
_MAX_LEFT_OUT_CHARS = 600  # what an ellipsis may stand for
_MAX_OCCURRENCES = 200  # of one quotation in one passage: a single character could have thousands

Outcome = Literal["found", "moved", "unverified"]

_INSIDE = r"(?:[^{0}\n]|\n(?![ \t]*\n)){{1,2000}}?"
_MARKED = "|".join((
    rf'(?<!\w)"(?=\S)(?P<straight>{_INSIDE.format(chr(34))})(?<=\S)"(?!\w)',
    rf"“(?P<curly>{_INSIDE.format('“”')})”",
    rf"„(?P<low>{_INSIDE.format('„“”')})[“”]",
    rf"«(?P<angled>{_INSIDE.format('«»')})»",
))  # fmt: skip
_QUOTED = re.compile(_MARKED)
_BLOCK = re.compile(r"(?m)^ {0,3}>[^\n]*(?:\n {0,3}>[^\n]*)*")
_CITATION = re.compile(
    r"\[(E[0-9]{1,4})(?::\s*(?P<path>[^\[\]\n:]{1,512}):(?P<first>[0-9]{1,7})(?:-(?P<last>[0-9]{1,7}))?)?\]"
)
_ANY_CITATION = re.compile(r"\[(E[0-9]{1,4}(?![0-9A-Za-z])[^\[\]\n]{0,600})\](?!\()")
_ID = re.compile(r"(?:^|[,;]\s*)(E[0-9]{1,4})(?![0-9A-Za-z])")
_BEHIND = re.compile(r"[.,;:!?)]*[^.!?\n\[\]\"“”„«»]{0,60}")  # what may stand between a quotation and its citation
_BEFORE = re.compile(r"[^.!?\n\[\]\"“”„«»]{0,40}\Z")
_ALSO = re.compile(r"[\s,;]*(?:and\s+)?")
_FENCE = re.compile(r"(?ms)^[ \t>]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)")
_PLAIN_QUOTES = str.maketrans(
    {**dict.fromkeys("“”„‟«»", '"'), **dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("‐‑‒–—", "-")}
)
_LINE_MARKS = re.compile(r"^(?:\s|>)*(?:#{1,6}\s+|[-+]\s+)?")
_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:…|\.{3})\s*\]|…|\.{3})\s*")
_HIT = re.compile(r"^(?P<path>\S.*):(?P<first>[0-9]+)-[0-9]+ sha256 (?P<sha256>[0-9a-f]{64})(?P<rest>[^\n]*)$")


@dataclass(frozen=True)
class Passage:
    """A stretch of text that was read: lines from `first_line` of `path` (empty: of no file). `own`: written by the
    council itself. `sha256` is that of the whole file."""

    id: str
    path: str
    first_line: int
    text: str
    sha256: str = ""
    own: bool = False

    @cached_property
    def plain(self) -> tuple[str, list[int]]:
        """The text as it is compared, in one line, and where each line of the passage begins in it."""
        pieces: list[str] = []
        starts: list[int] = []
        at = 0
        for line in inert(clean(self.text)).split("\n"):
            starts.append(at)
            piece = _plain(line)
            if piece:
                pieces.append(piece)
                at += len(piece) + 1
        return " ".join(pieces), starts

    def line_at(self, offset: int) -> int:
        return self.first_line + bisect_right(self.plain[1], offset) - 1


@dataclass(frozen=True)
class Finding:
    """What became of one quotation. `cited` and `place` are citations, empty where there is none; `reason` says more."""

    quotation: str
    outcome: Outcome
    cited: str = ""
    place: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Checked:
    """A text with what the look-up says put in, and the findings in their order. `unknown_ids`: cited, never issued."""

    text: str
    findings: tuple[Finding, ...] = ()
    unknown_ids: tuple[str, ...] = ()


def passages_of(item: Evidence, own_paths: Iterable[str] = ()) -> list[Passage]:
    """What a piece of evidence holds. A Cortex answer holds a passage per hit, each with its own place. `own_paths`: files
    that the council wrote."""
    if not item.id:
        return []
    if item.path:
        own = (
            item.path in own_paths or item.path.startswith(ARCHIVE) or (item.first_line == 1 and is_artifact(item.text))
        )
        return [Passage(item.id, item.path, item.first_line, item.text, item.sha256, own)]
    if item.action != "QUERY_CORTEX":
        return [Passage(item.id, "", 1, item.text)]
    return list(_hits(item, frozenset(own_paths)))


def _hits(item: Evidence, own_paths: frozenset[str]) -> Iterator[Passage]:
    head: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*item.text.split("\n"), ""]:
        match = _HIT.match(line)
        if match is None:
            lines.append(line.removeprefix("    "))
            continue
        if head is not None:
            yield _hit(item.id, head, lines, own_paths)
        head, lines = match, []
    if head is not None:
        yield _hit(item.id, head, lines, own_paths)


def _hit(id: str, head: re.Match[str], lines: list[str], own_paths: frozenset[str]) -> Passage:
    path = head["path"]
    own = path in own_paths or path.startswith(ARCHIVE) or head["rest"].startswith(" [the council's own artifact")
    return Passage(id, path, int(head["first"]), "\n".join(lines).rstrip("\n"), head["sha256"], own)


@dataclass(frozen=True)
class _Cited:
    """A citation as it stands in the text."""

    start: int
    end: int
    text: str
    id: str
    path: str
    first: int
    last: int


@dataclass(frozen=True)
class _Place:
    """Where a quotation stands."""

    passage: Passage
    first: int
    last: int

    def citation(self) -> str:
        if not self.passage.path:
            return f"[{self.passage.id}]"
        lines = f"{self.first}-{self.last}" if self.last > self.first else str(self.first)
        return f"[{self.passage.id}: {self.passage.path}:{lines}]"


class Quotations:
    """Looks quotations up in what one run read. `said`: what the agents and the steward said themselves, which an uncited
    quotation may repeat. `issued`: the ids of all evidence."""

    def __init__(self, passages: Sequence[Passage], issued: Iterable[str], said: Iterable[str] = ()) -> None:
        self._passages = passages
        self._issued = frozenset(issued)
        self._said = [_plain_text(text) for text in said]

    def check(self, text: str) -> Checked:
        """The text with corrected citations and marks behind what cannot be verified."""
        code = list(_code(text))
        citations = [cited for cited in _citations(text) if not _inside(cited.start, code)]
        edits: dict[int, tuple[int, str]] = {}  # start -> (end, replacement)
        findings: list[Finding] = []
        taken: set[int] = set()
        for quotation, end, beside in self._quotations(text, code, citations, taken):
            finding, place = self._look_up(quotation, beside)
            if finding is None:
                continue
            findings.append(finding)
            if finding.outcome == "unverified":
                edits[end] = (end, f" {UNVERIFIED}")
            elif finding.outcome == "moved" and place is not None:
                edits[beside[0].start] = (beside[0].end, place.citation())
        unknown = list(self._mark_unknown(text, code, edits))
        return Checked(_edited(text, edits), tuple(findings), tuple(dict.fromkeys(unknown)))

    # ── what is quoted ───────────────────────────────────────────────────────────────────────────────────────────────

    def _quotations(
        self, text: str, code: Sequence[tuple[int, int]], citations: Sequence[_Cited], taken: set[int]
    ) -> Iterator[tuple[str, int, list[_Cited]]]:
        """(words, where they end, citations beside them), in the order of the text."""
        for match in _QUOTED.finditer(text):
            if _inside(match.start(), code):
                continue
            beside = _beside(text, match.start(), match.end(), citations, taken)
            taken.update(cited.start for cited in beside)
            words = next(group for group in match.groups() if group is not None)
            if beside or len(words.split()) >= MIN_WORDS_UNCITED:
                yield words, match.end(), beside
        for match in _BLOCK.finditer(text):
            if _inside(match.start(), code) or _QUOTED.search(match[0]) or len(match[0]) > _MAX_QUOTATION_CHARS:
                continue
            beside = _of_block(text, match, citations, taken)
            words = _ANY_CITATION.sub("", "\n".join(line.lstrip(" >") for line in match[0].split("\n")))
            words = re.sub(r"(?m)^\s*[-–—]+\s*\Z", "", words.rstrip())
            if beside and words.strip():
                end = min([match.end(), *(cited.start for cited in beside if cited.start < match.end())])
                yield words, len(text[:end].rstrip(" >\n")), beside

    # ── where it stands ──────────────────────────────────────────────────────────────────────────────────────────────

    def _look_up(self, quotation: str, beside: Sequence[_Cited]) -> tuple[Finding | None, _Place | None]:
        """None for what is no quotation: nothing but marks, or words of the council itself."""
        pieces = [piece for piece in (_trimmed(part) for part in _ELLIPSIS.split(_plain_text(quotation))) if piece]
        if not pieces:
            return None, None
        shown = " ".join(quotation.split())
        cited = " ".join(each.text for each in beside)
        places = list(self._places(pieces))
        true = [place for place in places if not place.passage.own]
        if true and not beside:
            return Finding(shown, "found", place=true[0].citation()), true[0]
        here = next((place for place in true for each in beside if _covers(each, place)), None)
        if here is not None:
            return Finding(shown, "found", cited, here.citation()), here
        if true:
            nearest = min(true, key=lambda place: _distance(beside[0], place))
            return Finding(shown, "moved", cited, nearest.citation()), nearest
        if not beside and any(_says(text, pieces) for text in self._said):
            return None, None
        reason = "it stands only in what the council wrote itself" if places else "it stands in nothing that was read"
        return Finding(shown, "unverified", cited, reason=reason), None

    def _places(self, pieces: Sequence[str]) -> Iterator[_Place]:
        for passage in self._passages:
            text, at = passage.plain[0], 0
            for _ in range(_MAX_OCCURRENCES):
                found = _find(text, pieces, at)
                if found is None:
                    break
                yield _Place(passage, passage.line_at(found[0]), passage.line_at(found[1] - 1))
                at = found[0] + 1

    # ── citations of nothing ─────────────────────────────────────────────────────────────────────────────────────────

    def _mark_unknown(
        self, text: str, code: Sequence[tuple[int, int]], edits: dict[int, tuple[int, str]]
    ) -> Iterator[str]:
        for match in _ANY_CITATION.finditer(text):
            if _inside(match.start(), code) or match.start() in edits:
                continue
            unknown = [id for id in _ID.findall(match[1]) if id not in self._issued]
            if unknown:
                edits[match.start()] = (match.end(), f"{match[0]} {NO_SUCH_EVIDENCE}")
                yield from unknown


def _plain(line: str) -> str:
    """One line as it is compared."""
    line = _LINE_MARKS.sub("", line)
    return " ".join(
        unicodedata.normalize("NFC", line).translate(_PLAIN_QUOTES).replace("*", "").replace("`", "").split()
    )


def _plain_text(text: str) -> str:
    return " ".join(piece for piece in (_plain(line) for line in inert(clean(text)).split("\n")) if piece)


def _trimmed(piece: str) -> str:
    """Without the punctuation that belongs to the sentence around a quotation."""
    return piece.strip().strip(".,;:!?'\"").strip()


def _says(text: str, pieces: Sequence[str]) -> bool:
    """Whether a text says the words itself, and does not quote them."""
    found = _find(text, pieces, 0)
    return found is not None and text[max(0, found[0] - 1)] != '"'


def _find(text: str, pieces: Sequence[str], at: int) -> tuple[int, int] | None:
    """Where all pieces stand, in order and near each other, from `at` on; whole words only."""
    while (first := _find_piece(text, pieces[0], at)) is not None:
        start, end = first
        for piece in pieces[1:]:
            following = _find_piece(text, piece, end)
            if following is None or following[0] - end > _MAX_LEFT_OUT_CHARS:
                break
            end = following[1]
        else:
            return start, end
        at = start + 1
    return None


def _find_piece(text: str, piece: str, at: int) -> tuple[int, int] | None:
    swapped = piece[0].swapcase() + piece[1:]  # a quotation within a sentence begins as the sentence wants it
    found = [where for where in (_find_word(text, piece, at), _find_word(text, swapped, at)) if where >= 0]
    return (min(found), min(found) + len(piece)) if found else None


def _find_word(text: str, piece: str, at: int) -> int:
    while (at := text.find(piece, at)) >= 0:
        end = at + len(piece)
        cut_before = at > 0 and text[at - 1].isalnum() and piece[0].isalnum()
        cut_behind = end < len(text) and text[end].isalnum() and piece[-1].isalnum()
        if not cut_before and not cut_behind:
            return at
        at += 1
    return -1


def _citations(text: str) -> Iterator[_Cited]:
    for match in _CITATION.finditer(text):
        path = (match["path"] or "").strip().strip("`").removeprefix("./")
        first = int(match["first"] or 0)
        yield _Cited(match.start(), match.end(), match[0], match[1], path, first, max(first, int(match["last"] or 0)))


def _beside(text: str, start: int, end: int, citations: Sequence[_Cited], taken: set[int]) -> list[_Cited]:
    """The citations behind a quotation, or else the one right before it that no other quotation has."""
    gap = _BEHIND.match(text, end)
    behind = [cited for cited in citations if cited.start >= end]
    if behind and gap is not None and behind[0].start <= gap.end():
        return _run_of(text, behind)
    before = [cited for cited in citations if cited.end <= start]
    if before and before[-1].start not in taken and _BEFORE.match(text[before[-1].end : start]):
        return [before[-1]]
    return []


def _of_block(text: str, block: re.Match[str], citations: Sequence[_Cited], taken: set[int]) -> list[_Cited]:
    inside = [cited for cited in citations if block.start() <= cited.start < block.end()]
    if inside:
        return inside
    behind = [cited for cited in citations if cited.start >= block.end() and cited.start not in taken]
    if behind and not text[block.end() : behind[0].start].strip(" \n>(—–-"):
        return _run_of(text, behind)
    return []


def _run_of(text: str, behind: Sequence[_Cited]) -> list[_Cited]:
    """The first citation and those that follow it directly."""
    run = [behind[0]]
    for cited in behind[1:]:
        gap = _ALSO.match(text, run[-1].end)
        if gap is None or gap.end() != cited.start:
            break
        run.append(cited)
    return run


def _covers(cited: _Cited, place: _Place) -> bool:
    """Whether the citation names this place: a line of it, or the evidence as a whole."""
    if not cited.first or not place.passage.path:
        return cited.id == place.passage.id
    if cited.path != place.passage.path:
        return False
    return cited.first <= place.last and place.first <= cited.last


def _distance(cited: _Cited, place: _Place) -> tuple[bool, bool, int]:
    passage = place.passage
    return cited.id != passage.id, cited.path != passage.path, abs(cited.first - place.first)


def _code(text: str) -> Iterator[tuple[int, int]]:
    """The stretches of a text that are code."""
    fences = [match.span() for match in _FENCE.finditer(text)]
    yield from fences
    at = 0
    for paragraph in re.split(r"(\n[ \t]*\n)", text):
        for start, end in code_spans(paragraph):
            if not _inside(at + start, fences):
                yield at + start, at + end
        at += len(paragraph)


def _inside(at: int, stretches: Sequence[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in stretches)


def _edited(text: str, edits: dict[int, tuple[int, str]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, (end, replacement) in sorted(edits.items()):
        pieces += (text[at:start], replacement)
        at = end
    return "".join([*pieces, text[at:]])
