"""Markdown as a flat list of blocks with line numbers: headings, paragraphs, list items, table rows, code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from council.markup import GERMAN_MONTH

_TEXT_FENCES = frozenset({"", "text", "txt", "plain", "plaintext", "markdown", "md"})
_CODE_LINE = re.compile(
    r"\s*(?:def |class |import |from \w+ import |return\b|@\w|self\.|#include|const |let |var |function |public |\$ )"
    r"|.{0,200}(?:[{};]|\w\([^()]{0,100}\):?)\s*$|\s*[\w.\[\]]{1,60} ?[:+-]?= ?\S"
)
_DATE = re.compile(rf"(?<=\d\.) (?={GERMAN_MONTH})")
_BOX = re.compile(r"\[([ xX])\]\s+")


@dataclass(frozen=True)
class Block:
    """`first` is the line of `rows[0]` in the file; `whole` that of the paragraph or table that it belongs to."""

    kind: Literal["heading", "prose", "item", "row", "data", "code"]
    first: int
    rows: tuple[str, ...]
    whole: int = 0
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    checked: bool | None = None

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.rows).split())

    @property
    def lines(self) -> range:
        return range(self.first, self.first + len(self.rows))


def read_blocks(lines: Sequence[str], *, first_line: int = 1, plain: bool = False) -> list[Block]:
    """`lines` of Markdown, the first of which is line `first_line` of its file; `plain`: indented text is not code."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable("inline")  # the text of a block is wanted as written
    if plain:
        parser.block.ruler.disable(["code", "lheading", "hr"])
    hidden = 0
    if first_line == 1 and lines and lines[0].rstrip() == "---":  # a YAML head describes the file, and is none of it
        hidden = next((i + 1 for i, line in enumerate(lines[1:200], 1) if line.rstrip() in ("---", "...")), 0)
    # `19. Februar` at the beginning of a paragraph would be the nineteenth item of a list.
    shown = [""] * hidden + [_DATE.sub("\u00a0", line) for line in lines[hidden:]]
    return list(_walk(parser.parse("\n".join(shown)), shown, first_line))


def _walk(parsed: Sequence[Token], lines: Sequence[str], first_line: int) -> Iterator[Block]:
    inside: list[str] = []  # open containers, innermost last
    header: tuple[str, ...] = ()
    cells: list[str] = []
    table = 0
    for index, token in enumerate(parsed):
        first = first_line + (token.map[0] if token.map else 0)
        if token.nesting:
            name = token.type.removesuffix("_open").removesuffix("_close")
            if token.nesting > 0:
                inside.append(name)
            else:
                inside.pop()
        if token.type == "inline" and inside and inside[-1] in ("th", "td"):
            cells.append(token.content)
        elif token.type == "inline":
            rows = tuple(token.content.split("\n"))
            if inside and inside[-1] == "heading":
                yield Block("heading", first, rows)
            elif "list_item" in inside:
                box = _BOX.match(rows[0])
                if box:
                    rows = (rows[0][box.end() :], *rows[1:])
                yield Block("item", first, rows, checked=None if box is None else box.group(1) != " ")
            else:
                yield Block("code" if _looks_like_code(rows) else "prose", first, rows, first)
        elif token.type in ("fence", "code_block"):
            fence = token.type == "fence"
            rows = tuple(token.content.rstrip("\n").split("\n"))
            if not fence or token.info.strip().lower() not in _TEXT_FENCES or _looks_like_code(rows):
                yield Block("code", first + fence, rows)
                continue
            paragraph: list[str] = []
            for number, row in enumerate([*rows, ""], first + fence):
                if row.strip():
                    paragraph.append(row)
                elif paragraph:
                    yield Block("prose", number - len(paragraph), tuple(paragraph), number - len(paragraph))
                    paragraph = []
        elif token.type == "html_block":
            rows = tuple(token.content.rstrip("\n").split("\n"))
            yield Block("prose", first, rows, first)
        elif token.type == "table_open":
            table = first
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close" and "thead" in inside:
            header = tuple(cells)
        elif token.type == "tr_close":
            opened = next(parsed[i] for i in range(index, -1, -1) if parsed[i].type == "tr_open")
            at = opened.map[0] if opened.map else 0
            yield Block("row", first_line + at, (lines[at],), table, cells=tuple(cells), header=header)


def _looks_like_code(rows: Sequence[str]) -> bool:
    """Three lines or more, most of which end or begin as programs do: code that was pasted without a language."""
    return len(rows) > 2 and sum(_CODE_LINE.match(row) is not None for row in rows) * 2 > len(rows)
