"""A text cut into passages that can be cited: Markdown by its headings, a PDF by its pages, anything else by windows of
lines. `quote` finds the part of one that answers a question best. `Reads` reads files through the confined root.

Boundaries alone gained nothing in our measurements; path and heading text beside the body did, so
every chunk carries the headings above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from council.errors import PathRefused
from council.knowledge.cortex.catalog import Entry
from council.knowledge.file_texts import FileTexts
from council.knowledge.library import split_lines
from council.lines_and_pages import document_kind, is_paged, marked_page
from council.llm.base import is_rehearsal
from council.markup import fences, front_matter, sentence_ends
from council.safety.untrusted import plain_line

MAX_CHUNK_CHARS = 1600  # the best of 800, 1600 and 3200 where it was measured, by a little
_MAX_HEADING_CHARS = 300
_MAX_TITLE_CHARS = 120  # of one heading among them
_MARKDOWN = (".md", ".markdown", ".mdx")
_AS_MARKDOWN = ("docx", "html")  # the kinds of document whose text is Markdown
_TABLES = (".csv", ".tsv")

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_CANNOT_BE_UNDERLINED = re.compile(r"\s*(?:$|[#>|`~<]|[-*+][ \t]|\d{1,9}[.)][ \t])| {4}|\t")
_FRONT_MATTER_TITLE = re.compile(r"(?:title|task):[ \t]*(.+)$")
_ARTIFACT_MARKS = ("audit_head:", "command_sha256:")  # keys of the council's own decision pages alone, now and once
_YAML_KEY = re.compile(r"(?m)^(\w+):")
_MEMORY_MARK = "rehearsed:"  # and one of an agent's archived memory
_ASKED_BY = "ORCHESTRATOR"  # the heading there of what an agent was told


@dataclass(frozen=True)
class Chunk:
    """`text` is exactly lines `first_line` to `last_line` (from 1), `heading` what stands above, `page` that of a PDF."""

    first_line: int
    last_line: int
    heading: str
    text: str
    page: int = 0


@dataclass(frozen=True)
class _Section:
    start: int
    end: int
    level: int
    heading: str
    bare: bool  # nothing below its heading
    page: int = 0


def cut(path: str, text: str) -> list[Chunk]:
    """The passages of a file, in order; none overlap, only blank lines and bare headings of parents are left out."""
    lines = split_lines(text)
    if path.lower().endswith(_MARKDOWN) or document_kind(path) in _AS_MARKDOWN:
        sections = _markdown_sections(lines)
        if front_matter_value(text, _MEMORY_MARK.removesuffix(":")):
            # An agent's words, not what it was asked or its name.
            asked = f" > {_ASKED_BY}"
            sections = [section for section in sections if not section.bare and not section.heading.endswith(asked)]
    elif is_paged(path):
        marks = [(index, page) for index, line in enumerate(lines) if (page := marked_page(line)) is not None]
        ends = [*(index for index, _ in marks[1:]), len(lines)]
        sections = [
            _Section(index + 1, end, 0, f"page {page}", bare=False, page=page)
            for (index, page), end in zip(marks, ends, strict=True)
        ]
    else:
        # What a row means stands in the first line of a table.
        heading = lines[0] if lines and path.lower().endswith(_TABLES) else ""
        sections = [_Section(0, len(lines), 0, plain_line(heading, _MAX_HEADING_CHARS), bare=False)]
    chunks: list[Chunk] = []
    for index, section in enumerate(sections):
        following = sections[index + 1] if index + 1 < len(sections) else None
        if section.bare and following is not None and following.level > section.level:
            continue  # its words are in the headings of what follows
        for start, end in _windows(lines, section.start, section.end):
            chunks.append(Chunk(start + 1, end, section.heading, "".join(lines[start:end]), section.page))
    return chunks


def front_matter_lines(text: str) -> list[str]:
    """The lines between the two `---` at the top of a Markdown text; empty when there are none."""
    found = front_matter(text[:16_384])
    return [] if found is None else found.head.split("\n")[:-1]


def front_matter_value(text: str, key: str) -> str:
    """The value of a key at the top of a Markdown text, as it is written there; empty when there is none."""
    lines = (line.partition(":") for line in front_matter_lines(text))
    return next((value.strip() for name, _, value in lines if name == key), "")


def is_artifact(text: str) -> bool:
    """Tells whether a Markdown text is a decision page of a council, wherever it lies."""
    return any(line.startswith(_ARTIFACT_MARKS) for line in front_matter_lines(text))


def is_script(path: str, text: str) -> bool:
    """Tells whether it is the script of a rehearsal, which holds what a model is to say."""
    keys = set(_YAML_KEY.findall(text)) if path.lower().endswith((".yaml", ".yml")) else set()
    return "replies" in keys and keys <= {"model", "context_tokens", "replies", "default"}


def is_rehearsed_artifact(text: str) -> bool:
    """Tells whether it is a decision page whose run asked no language model."""
    return is_artifact(text) and is_rehearsal(front_matter_value(text, "model").strip("\"'"))


def is_unfinished_artifact(text: str) -> bool:
    """Recognises the page of a run that still goes on: the council would read what it is just saying. One that stopped
    growing, because its run has another page, stays unfinished."""
    return is_artifact(text) and front_matter_value(text, "status") in ("in_progress", "superseded")


def _markdown_sections(lines: Sequence[str]) -> list[_Section]:
    matter = front_matter_lines("".join(lines[:200]))
    titles: list[tuple[int, str]] = []  # the open headings, outermost first; the front matter's title is level 0
    for line in matter:
        if match := _FRONT_MATTER_TITLE.match(line):
            titles = [(0, plain_line(match[1].strip().strip("\"'"), _MAX_TITLE_CHARS))]
    sections: list[_Section] = []
    begin = len(matter) + 2 if matter else 0
    # The keys of our own pages answer no question; the title stands in every heading.
    start = begin if any(line.startswith((*_ARTIFACT_MARKS, _MEMORY_MARK)) for line in matter) else 0
    body, level = start, 0

    def close(end: int) -> None:
        if end > start:
            bare = start < body and not any(line.strip() for line in lines[body:end])
            heading = " > ".join(title for title, _ in groupby(title for _, title in titles if title))
            sections.append(_Section(start, end, level, heading[:_MAX_HEADING_CHARS], bare))

    code = fences("".join(lines[begin:]))
    fenced = {begin + number for fence in code for number in range(fence.first, fence.last + 1)}
    could_be_heading = False  # the line before, if this one underlines it
    for index in range(begin, len(lines)):
        line = lines[index].rstrip("\n")
        if index in fenced:
            could_be_heading = False
            continue
        if match := _ATX.match(line):
            first, depth, title = index, len(match[1]), match[2] or ""
        elif could_be_heading and (match := _UNDERLINE.match(line)):
            first, depth, title = index - 1, 1 if match[1].startswith("=") else 2, lines[index - 1].strip()
        else:
            # Only a paragraph of one line is taken for an underlined heading: longer ones are mostly prose and a rule.
            starts = index == begin or not lines[index - 1].strip()
            could_be_heading = starts and not _CANNOT_BE_UNDERLINED.match(line)
            continue
        close(first)
        start, body, level, could_be_heading = first, index + 1, depth, False
        titles = [*(entry for entry in titles if entry[0] < depth), (depth, plain_line(title, _MAX_TITLE_CHARS))]
    close(len(lines))
    return sections


def _windows(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Runs of whole lines of at most MAX_CHUNK_CHARS (a longer line stands alone), cut at a blank line if one is in the second
    half. Blank lines at either end are left out."""
    while start < end:
        stop, size, blank = start, 0, 0
        while stop < end and (size == 0 or size + len(lines[stop]) <= MAX_CHUNK_CHARS):
            size += len(lines[stop])
            stop += 1
            if size >= MAX_CHUNK_CHARS // 2 and not lines[stop - 1].strip():
                blank = stop
        if stop < end and blank:
            stop = blank
        first, last = start, stop
        while first < last and not lines[first].strip():
            first += 1
        while last > first and not lines[last - 1].strip():
            last -= 1
        if first < last:
            yield first, last
        start = stop


class Reads:
    """Reads whole texts, and counts them. Of a text `redact` leaves what may be kept, line for line."""

    def __init__(self, texts: FileTexts, redact: Callable[[str], str]) -> None:
        self._texts = texts
        self._redact = redact
        self.max_bytes = texts.max_bytes
        self.count = 0

    def read(self, path: str) -> tuple[str, str]:
        """Redacted text with plain newlines, and the SHA-256 of the bytes. Raises PathRefused."""
        self.count += 1
        found = self._texts.read(path)
        return self._redact(found.text), found.sha256

    def passages(self, path: str, entry: Entry) -> dict[int, Chunk]:
        """The passages of a file by their first line; none if it is not the file that was indexed as `entry`."""
        try:
            text, sha256 = self.read(path)
        except PathRefused:
            return {}
        return {chunk.first_line: chunk for chunk in cut(path, text)} if sha256 == entry.sha256 else {}


MAX_QUOTATION_CHARS = 700  # five of them are an eighth of what one request may bring by default, and enough to judge


@dataclass(frozen=True)
class Quotation:
    """`text` stands word for word in lines `first_line` to `last_line`: whole lines, or a part of one long line."""

    first_line: int
    last_line: int
    text: str


def quote(chunk: Chunk, weights: Mapping[str, float], terms: Callable[[str], Iterable[str]]) -> Quotation:
    """The run of lines (of sentences, in a line beyond the limit) that holds most of the weighted terms; the earliest
    of equals. `terms` gives the terms of a text as the index knows them."""
    # Line numbers and texts, in order and without gaps; a line beyond the limit in its sentences, those cut hard.
    pieces: list[tuple[int, str]] = []
    for number, line in enumerate(split_lines(chunk.text), start=chunk.first_line):
        ends = [0, *(sentence_ends(line) if len(line) > MAX_QUOTATION_CHARS else ()), len(line)]
        for part in (line[start:end] for start, end in pairwise(ends)):
            for at in range(0, len(part), MAX_QUOTATION_CHARS):
                pieces.append((number, part[at : at + MAX_QUOTATION_CHARS]))
    held = [weights.keys() & set(terms(text)) for _, text in pieces]
    best, best_weight = (0, 1), -1.0
    for start in range(len(pieces)):
        stop, size = start + 1, len(pieces[start][1])  # the longest run within the limit; at least one piece
        while stop < len(pieces) and size + len(pieces[stop][1]) <= MAX_QUOTATION_CHARS:
            size += len(pieces[stop][1])
            stop += 1
        weight = sum(weights[term] for term in set().union(*held[start:stop]))
        if weight > best_weight + 1e-9:
            best, best_weight = (start, stop), weight
    start, stop = best
    while start < stop - 1 and not pieces[start][1].strip():
        start += 1
    while stop > start + 1 and not pieces[stop - 1][1].strip():
        stop -= 1
    text = "".join(piece for _, piece in pieces[start:stop])
    return Quotation(pieces[start][0], pieces[stop - 1][0], text.rstrip())
