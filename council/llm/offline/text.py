"""Documents as statements: verbatim text with its source, its lines and its section.

Markdown is read by its block structure (markdown-it, inline parsing off): paragraphs and list items become sentences,
a table row is one statement. A fenced block is text when its info string is empty, `text` or `markdown`; other code
is left out and counted. CSV and configuration files give one statement per line; program files are counted only. A
document in a language other than English and German gives none.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from council.citations import CitedPlace
from council.lines_and_pages import is_paged, numbers, without_marks
from council.llm.base import Source
from council.llm.offline.blocks import Block, read_blocks
from council.llm.offline.vocabulary import Language, content_stems, language_of, pattern
from council.markup import normalised, sentence_ends

Kind = Literal["prose", "item", "row", "data"]

TO_DO = re.compile(r"\b(?:TODO|TBD|TBC|TBA|FIXME)\b")
_CODE_SUFFIXES = (".py", ".js", ".ts", ".sh", ".c", ".h", ".cpp", ".rs", ".go", ".java", ".sql", ".css")
_DATA_SUFFIXES = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log", ".jsonl", ".xml")
_GAP = re.compile(r" {3,}|\t+ *")
_CURRENCY = r"(?:[€$£]|EUR|CHF|USD|GBP|Euro)"
_AMOUNT = re.compile(  # behind what it is of
    rf"(.*\S)\s+((?:{_CURRENCY} ?)?[-−]?\d[\d.,'’ ]{{0,16}}[.,]\d\d(?: ?{_CURRENCY})?"
    rf"|[-−]?\d[\d.,'’]{{0,16}} ?{_CURRENCY}|{_CURRENCY} ?[-−]?\d[\d.,'’]{{0,16}})"
)
_ENDING_FIGURE = re.compile(r"\d\W{0,4}\w{0,4}\W{0,3}$")  # and its unit
_CELL = re.compile(r"\S+(?: \S+)*")
_ENTRY = re.compile(r"\s*(?:\d\d[:.]\d\d\s|[*_]{0,2}[A-ZÄÖÜ][\w .-]{0,30}:)")  # 09:15 Tom: …, or Subject: …
_AGENDA_ITEM = re.compile(r"(?:TOP|Tagesordnungspunkt|Agenda item) \d{1,3}[.:)]? .{1,100}(?<![.!?,;:-])")
_SENDER = re.compile(r"(?:From|Von): \S")  # each mail of a file is a section
_MAX_TITLE_CHARS = 300  # where no heading is, the first paragraph stands for it
_MAX_ITEM_CHARS = 240
_MAX_LABEL_CHARS = 80
_MAX_REPLY_CHARS = 60
# A request token inside a document is never repeated, not even in quotes: another parser might honour it.
_TOKEN_WORD = re.compile(r"orchestrator[\W_]*request", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """A sentence, list item, table row or data line. `text` occurs verbatim (white space apart) in its lines.

    `line` and `end_line` count from 1 in the file, and are pages of a PDF. `section` is the nearest heading, `title` the
    first one. `cells` and `header` belong to table rows. `whole` is the first line of its paragraph or table. `checked`
    is None where there is no task-list box. `heading` is the place of `section`, and `headed` is set where that has a
    word of the task that `text` lacks.
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
    whole: int = 0
    heading: CitedPlace | None = None
    headed: bool = False

    @cached_property
    def stems(self) -> tuple[str, ...]:
        return tuple(content_stems(self.text, self.language))

    @property
    def where(self) -> tuple[str, int, str]:
        return (self.path, self.line, self.text)


@dataclass(frozen=True)
class Heading:
    source: str
    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Corpus:
    """Everything that was read. `skipped_lines` counts lines of code that were left out. `languages` are what the
    documents tell of theirs: None is a language that is not read."""

    sources: tuple[Source, ...]
    statements: tuple[Statement, ...]
    headings: tuple[Heading, ...]
    skipped_lines: int
    languages: Mapping[Source, Language | None]

    def written_in(self, language: Language | None) -> list[Source]:
        return [source for source in self.sources if self.languages[source] == language]


def read_corpus(sources: Iterable[Source], fallback: Language = "en") -> Corpus:
    """Read all sources in order; a line that two sources of one path share is read once. What does not tell its language
    has that of the other documents, and where they tell none or several, `fallback`."""
    kept = list(dict.fromkeys(sources))
    statements: dict[tuple[str, int, str], Statement] = {}
    headings: dict[tuple[str, int, str], Heading] = {}
    code: set[tuple[str, int]] = set()
    documents = [(source, _blocks(source)) for source in kept]
    told = [language_of(" ".join(b.text for b in blocks if b.kind in ("prose", "item"))) for _, blocks in documents]
    languages = {language for language in told if language}
    if len(languages) == 1:
        (fallback,) = languages
    for (source, blocks), language in zip(documents, told, strict=True):
        if language is None:
            continue
        if not language and (not source.path.lower().endswith(".csv") or ";" in source.text):
            language = fallback  # figures between commas are written as in English
        title = next((block.text for block in blocks if block.kind in ("heading", "prose")), "")[:_MAX_TITLE_CHARS]
        section, under, lines = "", None, _lines(source)
        places = numbers(source.path, _with_newlines(source), source.first_line)
        for block in blocks:
            if block.kind == "code":
                code.update((source.path, number) for number in block.lines)
            elif block.kind == "heading":
                section, under = "", None
                if not holds_request(block.text):
                    section = block.text
                    at, until = (places[each - source.first_line] for each in (block.lines[0], block.lines[-1]))
                    under = CitedPlace(source.id, source.path, at, until)
                    heading = Heading(source.id, source.path, at, block.text)
                    headings.setdefault((heading.path, heading.line, heading.text), heading)
            else:
                if _SENDER.match(block.rows[0]):
                    section, under = block.rows[0], None
                for text, line, end in _pieces(block, lines, source.first_line):
                    if any(char.isalnum() for char in text) and not holds_request(text):
                        at, until = (places[each - source.first_line] for each in (line, end))
                        statement = Statement(source.id, source.path, at, until, text, section, block.kind, block.cells,
                                              block.header, block.checked, language, title, block.whole, under)  # fmt: skip
                        statements.setdefault(statement.where, statement)
    spoken = dict(zip(kept, told, strict=True))
    return Corpus(tuple(kept), tuple(statements.values()), tuple(headings.values()), len(code), spoken)


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
            Block("row", source.first_line + i, (lines[i],), 1, cells=cells, header=header)
            for i, cells in enumerate(rows)
            if i >= skip
        ]
    if path.endswith(_DATA_SUFFIXES):
        return [Block("data", source.first_line + i, (line,)) for i, line in enumerate(lines)]
    plain = path.endswith(".txt") or is_paged(path)
    return [
        each
        for block in read_blocks(lines, first_line=source.first_line, plain=plain)
        for part in _columns(block, lines[block.first - source.first_line :])
        for each in _agenda_items(part)
    ]


def _agenda_items(block: Block) -> list[Block]:
    """The title of an agenda item apart from what stands right below it: it ends with its line, not with a full stop."""
    first, *rest = block.rows
    if (
        block.kind != "prose"
        or not rest
        or not _AGENDA_ITEM.fullmatch(first.strip())
        or not rest[0].strip()[:1].isupper()
    ):
        return [block]
    below = Block("prose", block.first + 1, tuple(rest), block.first + 1)
    return [Block("heading", block.first, (first.strip(),)), below]


def _columns(block: Block, drawn: Sequence[str]) -> list[Block]:
    """The rows of a table that is drawn with spaces, the entries of a log, the lines of a letter's head, and neighbouring
    lines that end with an amount. Also the total below a list, which Markdown reads as words of its last item."""
    if block.kind == "item" and len(block.rows) == 2 and not drawn[1][:1].isspace():
        item, below = block.rows
        if _ENDING_FIGURE.search(below) and pattern("sums", "total").match(below.strip("*_ ")):
            return [replace(block, rows=(item,)), Block("prose", block.first + 1, (below,), block.first + 1)]
    entries = [i for i, row in enumerate(block.rows) if _ENTRY.match(row)]
    if block.kind == "prose" and len(entries) > 1:
        parts = [block.rows[start:stop] for start, stop in pairwise([0, *entries, len(block.rows)])]
        starts = [block.first, *(block.first + i for i in entries)]
        return [Block("prose", first, rows, block.first) for first, rows in zip(starts, parts, strict=True) if rows]
    if block.kind != "prose" or len(block.rows) < 2:
        return [block]
    ending = [_AMOUNT.fullmatch(row.strip()) for row in block.rows]
    if sum(_GAP.search(row.strip()) is not None for row in block.rows) < 2:
        # A table in the text of a PDF looks so. Its rows may go on in other lines and on other pages: nothing is added up.
        labels = [each[1] if each and len(each[1]) <= _MAX_LABEL_CHARS else "" for each in (*ending, None)]
        tabular = [
            (label[:1].isupper() or label[:1].isdigit()) and any((labels[at - 1], labels[at + 1]))
            for at, label in enumerate(labels[:-1])
        ]
        starts = [at for at in range(len(tabular)) if not at or tabular[at] or tabular[at - 1]]
        return [
            Block("row", block.first + start, block.rows[start:stop], block.first, cells=block.rows[start:stop])
            if tabular[start]
            else Block("prose", block.first + start, block.rows[start:stop], block.first + start)
            for start, stop in pairwise([*starts, len(tabular)])
        ]
    if all(ending):  # an invoice: whatever stands before the amounts
        rows = [(each[1], each[2]) for each in ending if each]
        cells = [(*_GAP.split(told.strip()), amount) for told, amount in rows]
    else:
        cells = [tuple(_GAP.split(row.strip())) for row in block.rows]
    heads = [] if re.search(r"\d", drawn[0]) else list(_CELL.finditer(drawn[0]))
    header: tuple[str, ...] = ()
    if len(heads) > 2:  # a cell belongs to the head with which it begins or ends
        ends = [(0, 0), *(head.span() for head in heads)]
        for i, row in enumerate(drawn[: len(cells)]):
            placed = [""] * len(ends)
            for cell in _CELL.finditer(row):
                at = min(
                    range(len(ends)), key=lambda i: min(abs(x - y) for x, y in zip(cell.span(), ends[i], strict=True))
                )
                placed[at] = f"{placed[at]} {cell.group()}".strip()
            cells[i] = tuple(placed)
        if not any(row[0] for row in cells):
            cells = [row[1:] for row in cells]
        header, *cells = cells
    return [
        Block("row", block.first + i, (block.rows[i],), block.first, cells=row, header=header)
        for i, row in enumerate(cells, len(block.rows) - len(cells))
    ]


def _pieces(block: Block, lines: Sequence[str], first: int) -> Iterable[tuple[str, int, int]]:
    """Sentences with their lines; where markers inside (a quoted paragraph) break the quote, line by line instead."""
    if block.kind in ("row", "data"):
        text = block.text.strip().strip("|").strip() if block.kind == "row" else block.text.strip().rstrip(",")
        yield text, block.first, block.first
        return
    whole = "\n".join(block.rows)
    # A short list item is quoted whole: its sentences lean on one another, and its box or TODO covers them all.
    short = block.kind == "item" and len(whole) <= _MAX_ITEM_CHARS
    ends = [] if short else [end for end in sentence_ends(whole) if not _answered_at_once(whole, end)]
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


def _answered_at_once(whole: str, end: int) -> bool:
    """True between a question and words that mean nothing without it: `Who has the key? Still to be decided.`"""
    reply = re.split(r"[.!?]", whole[end : end + _MAX_REPLY_CHARS], maxsplit=1)[0]
    is_open = TO_DO.search(reply) or pattern("patterns", "open").search(reply)
    return whole[:end].rstrip().endswith("?") and is_open is not None


def unwrapped(text: str) -> str:
    """Without the emphasis marks that enclose all of it, or that stand at one end without a partner."""
    for mark in ("**", "__", "*", "_", "`"):
        if text.startswith(mark) and text.endswith(mark) and text.count(mark) == 2 and len(text) > 2 * len(mark):
            return text[len(mark) : -len(mark)].strip()
    if text.count("**") == 1:
        text = text.removeprefix("**").removesuffix("**").strip()
    return text
