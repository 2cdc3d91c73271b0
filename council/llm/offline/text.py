"""Documents as statements: verbatim text with its source, its lines and its section.

Markdown is read by its block structure (markdown-it, inline parsing off): paragraphs and list items become sentences,
a table row is one statement. A fenced block is text when its info string is empty, `text` or `markdown`; other code
is left out and counted. CSV and configuration files give one statement per line; program files are counted only. A
document in neither English nor German gives none.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from council.llm.base import Source
from council.llm.offline.blocks import Block, read_blocks
from council.llm.offline.vocabulary import Language, content_stems, language_of
from council.markup import normalised, sentence_ends
from council.places import is_paged, numbers, without_marks

Kind = Literal["prose", "item", "row", "data"]

_CODE_SUFFIXES = (".py", ".js", ".ts", ".sh", ".c", ".h", ".cpp", ".rs", ".go", ".java", ".sql", ".css")
_DATA_SUFFIXES = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log", ".jsonl", ".xml")
_MAX_ITEM_CHARS = 240
# A request token inside a document is never repeated, not even in quotes: another parser might honour it.
_TOKEN_WORD = re.compile(r"orchestrator[\W_]*request", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """A sentence, list item, table row or data line. `text` occurs verbatim (white space apart) in its lines.

    `line` and `end_line` count from 1 in the file, and are pages of a PDF; `section` is the nearest heading, `title` the
    first one; `cells` and `header` belong to table rows; `checked` is None where there is no task-list box.
    """

    source: str
    path: str
    line: int
    end_line: int
    text: str
    section: str = ""
    kind: Kind = "prose"
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    checked: bool | None = None
    language: Language = ""
    title: str = ""

    @cached_property
    def stems(self) -> tuple[str, ...]:
        return tuple(content_stems(self.text, self.language))

    @property
    def where(self) -> tuple[str, int, str]:
        return (self.path, self.line, self.text)


@dataclass(frozen=True)
class Heading:
    """A heading as written. `empty` means that neither text nor a deeper heading follows it."""

    source: str
    path: str
    line: int
    text: str
    empty: bool


@dataclass(frozen=True)
class Corpus:
    """Everything that was read. `skipped_lines` counts lines of code that were left out, `foreign` names documents in a
    language that is not read."""

    sources: tuple[Source, ...]
    statements: tuple[Statement, ...]
    headings: tuple[Heading, ...]
    skipped_lines: int
    foreign: tuple[Source, ...] = ()
    languages: frozenset[Language] = frozenset()


def read_corpus(sources: Iterable[Source], fallback: Language = "en") -> Corpus:
    """Read all sources in order; a line that two sources of one path share is read once. `fallback` is the language of
    texts that are too short to tell."""
    kept: list[Source] = []
    statements: dict[tuple[str, int, str], Statement] = {}
    headings: dict[tuple[str, int, str], Heading] = {}
    code: set[tuple[str, int]] = set()
    foreign: list[Source] = []
    languages: set[Language] = set()
    for source in sources:
        if source in kept:
            continue
        kept.append(source)
        blocks = _blocks(source)
        language = language_of(" ".join(block.text for block in blocks if block.kind in ("prose", "item")))
        if language is None:
            foreign.append(source)
            continue
        languages.add(language)
        if not language and not source.path.lower().endswith(".csv"):
            language = fallback
        title = next((block.text for block in blocks if block.kind in ("heading", "prose")), "")
        section, lines = "", _lines(source)
        places = numbers(source.path, _with_newlines(source), source.first_line)
        for block, after in pairwise([*blocks, None]):
            if block is None:
                continue
            if block.kind == "code":
                code.update((source.path, number) for number in block.lines)
            elif block.kind == "heading":
                section = "" if holds_request(block.text) else block.text
                # The last heading of an excerpt may have its text in lines that were not read.
                empty = after.kind == "heading" and after.level <= block.level if after else source.first_line == 1
                if not holds_request(block.text):
                    at = places[block.first - source.first_line]
                    heading = Heading(source.id, source.path, at, block.text, empty)
                    headings.setdefault((heading.path, heading.line, heading.text), heading)
            else:
                for text, line, end in _pieces(block, lines, source.first_line):
                    if any(char.isalnum() for char in text) and not holds_request(text):
                        at, until = (places[each - source.first_line] for each in (line, end))
                        statement = Statement(source.id, source.path, at, until, text, section, block.kind, block.cells,
                                              block.header, block.checked, language, title)  # fmt: skip
                        statements.setdefault(statement.where, statement)
    return Corpus(tuple(kept), tuple(statements.values()), tuple(headings.values()), len(code), tuple(foreign),
                  frozenset(languages - {""}))  # fmt: skip


def holds_request(text: str) -> bool:
    """Tells whether a text holds the words of a request token, in any spelling of letters, widths and invisible marks."""
    folded = normalised(text)
    return _TOKEN_WORD.search("".join(c for c in folded if unicodedata.category(c) != "Cf")) is not None


def squeeze(text: str) -> str:
    """All runs of white space as one space: the form in which quotes are compared."""
    return " ".join(text.split())


def _lines(source: Source) -> list[str]:
    return without_marks(source.path, _with_newlines(source)).split("\n")


def _with_newlines(source: Source) -> str:
    return source.text.replace("\r\n", "\n").replace("\r", "\n")


def _blocks(source: Source) -> list[Block]:
    path, lines = source.path.lower(), _lines(source)
    if path.endswith(_CODE_SUFFIXES):
        return [Block("code", first=source.first_line, rows=tuple(lines))]
    if path.endswith((".csv", ".tsv")):
        mark = max("\t;,", key=lines[0].count)
        rows = [tuple(cell.strip() for cell in next(csv.reader([line], delimiter=mark), [])) for line in lines]
        skip = 1 if source.first_line == 1 else 0
        header = rows[0] if skip else ()
        return [
            Block("row", source.first_line + i, (lines[i],), cells=cells, header=header)
            for i, cells in enumerate(rows)
            if i >= skip
        ]
    if path.endswith(_DATA_SUFFIXES):
        return [Block("data", source.first_line + i, (line,)) for i, line in enumerate(lines)]
    return read_blocks(lines, first_line=source.first_line, plain=path.endswith(".txt") or is_paged(path))


def _pieces(block: Block, lines: Sequence[str], first: int) -> Iterable[tuple[str, int, int]]:
    """Sentences with their lines; where markers inside (a quoted paragraph) break the quote, line by line instead."""
    if block.kind in ("row", "data"):
        text = block.text.strip().strip("|").strip() if block.kind == "row" else block.text.strip().rstrip(",")
        yield text, block.first, block.first
        return
    whole = "\n".join(block.rows)
    # A short list item is quoted whole: its sentences lean on one another, and its box or TODO covers them all.
    ends = [] if block.kind == "item" and len(whole) <= _MAX_ITEM_CHARS else sentence_ends(whole)
    for start, stop in pairwise([0, *ends, len(whole)]):
        raw = whole[start:stop]
        body = raw.strip()
        if not body:
            continue
        line = block.first + whole.count("\n", 0, start + len(raw) - len(raw.lstrip()))
        end = line + body.count("\n")
        text = unwrapped(squeeze(body))
        if text in squeeze(" ".join(lines[line - first : end - first + 1])):
            yield text, line, end
        else:
            rows = block.rows[line - block.first : end - block.first + 1]
            yield from ((squeeze(row), line + i, line + i) for i, row in enumerate(rows))


def unwrapped(text: str) -> str:
    """Without the emphasis marks that enclose all of it, or that stand at one end without a partner."""
    for mark in ("**", "__", "*", "_", "`"):
        if text.startswith(mark) and text.endswith(mark) and text.count(mark) == 2 and len(text) > 2 * len(mark):
            return text[len(mark) : -len(mark)].strip()
    if text.count("**") == 1:
        text = text.removeprefix("**").removesuffix("**").strip()
    return text
