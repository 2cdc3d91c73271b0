"""Markdown as a flat list of blocks with line numbers: headings, paragraphs, list items, table rows, code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

_TEXT_FENCES = frozenset({"", "text", "txt", "plain", "plaintext", "markdown", "md"})
_CODE_LINE = re.compile(
    r"\s*(?:def |class |import |from \w+ import |return\b|@\w|self\.|#include|const |let |var |function |public |\$ )"
    r"|.{0,200}(?:[{};]|\w\([^()]{0,100}\):?)\s*$|\s*[\w.\[\]]{1,60} ?[:+-]?= ?\S"
)
_BOX = re.compile(r"\[([ xX])\]\s+")


@dataclass(frozen=True)
class Block:
    """`first` is the line of `rows[0]` in the file, from 1; `rows` are its lines without block markers."""

    kind: Literal["heading", "prose", "item", "row", "data", "code"]
    first: int
    rows: tuple[str, ...]
    level: int = 0
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
        parser.block.ruler.disable("code")
    hidden = _front_matter(lines) if first_line == 1 else 0
    shown = [""] * hidden + list(lines[hidden:])
    return list(_walk(parser.parse("\n".join(shown)), shown, first_line))


def _front_matter(lines: Sequence[str]) -> int:
    """How many lines a YAML head takes; 0 without one. It describes the file and is not part of what it says."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((i + 1 for i, line in enumerate(lines[1:200], 1) if line.rstrip() in ("---", "...")), 0)


def _walk(parsed: Sequence[Token], lines: Sequence[str], first_line: int) -> Iterator[Block]:
    inside: list[str] = []  # open containers, innermost last
    header: tuple[str, ...] = ()
    cells: list[str] = []
    for index, token in enumerate(parsed):
        start = token.map[0] if token.map else 0
        if token.nesting:
            _track(inside, token)
        if token.type == "inline" and inside and inside[-1] in ("th", "td"):
            cells.append(token.content)
        elif token.type == "inline":
            yield from _text_block(token, inside, first_line)
        elif token.type in ("fence", "code_block"):
            yield from _fenced(token, first_line)
        elif token.type == "html_block":
            rows = tuple(token.content.rstrip("\n").split("\n"))
            yield Block("prose", first_line + start, rows)
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close" and "thead" in inside:
            header = tuple(cells)
        elif token.type == "tr_close":
            at = _row_start(parsed, index)
            yield Block("row", first_line + at, (lines[at],), cells=tuple(cells), header=header)


def _track(inside: list[str], token: Token) -> None:
    name = token.type.removesuffix("_open").removesuffix("_close")
    if token.nesting > 0:
        inside.append(f"{name}{token.tag[1:]}" if name == "heading" else name)
    else:
        inside.pop()


def _row_start(parsed: Sequence[Token], close: int) -> int:
    opened = next(parsed[i] for i in range(close, -1, -1) if parsed[i].type == "tr_open")
    return opened.map[0] if opened.map else 0


def _text_block(token: Token, inside: Sequence[str], first_line: int) -> Iterator[Block]:
    first = first_line + (token.map[0] if token.map else 0)
    rows = tuple(token.content.split("\n"))
    if inside and inside[-1].startswith("heading"):
        yield Block("heading", first, rows, level=int(inside[-1][-1]))
    elif "list_item" in inside:
        box = _BOX.match(rows[0])
        if box:
            rows = (rows[0][box.end() :], *rows[1:])
        yield Block("item", first, rows, checked=None if box is None else box.group(1) != " ")
    else:
        yield Block("code" if _looks_like_code(rows) else "prose", first, rows)


def _looks_like_code(rows: Sequence[str]) -> bool:
    """Three lines or more, most of which end or begin as programs do: code that was pasted without a language."""
    return len(rows) > 2 and sum(_CODE_LINE.match(row) is not None for row in rows) * 2 > len(rows)


def _fenced(token: Token, first_line: int) -> Iterator[Block]:
    """A text block as one block per paragraph; anything else as code to be counted."""
    fence = token.type == "fence"
    first = first_line + (token.map[0] if token.map else 0) + fence
    rows = token.content.rstrip("\n").split("\n")
    if not fence or token.info.strip().lower() not in _TEXT_FENCES or _looks_like_code(rows):
        yield Block("code", first, tuple(rows))
        return
    paragraph: list[str] = []
    for offset, row in enumerate([*rows, ""]):
        if row.strip():
            paragraph.append(row)
        elif paragraph:
            yield Block("prose", first + offset - len(paragraph), tuple(paragraph))
            paragraph = []
