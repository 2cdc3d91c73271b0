"""A page in the terminal: rendered and wrapped, each citation a link that opens its file (OSC 8). Pipes get the
Markdown as it is read: without the targets of links, and with `<` for `&lt;`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from council.cli.context import CliState, columns
from council.markup import fences

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod

_LINK = re.compile(r"(?P<outer>\[)?\[([^\[\]\n]*)\]\(([^()\n]*)\)(?(outer)\])")  # a citation has its own brackets
# A code span keeps its characters, and a line its escape at the front: nobody's words begin like a status or a heading. No
# other entity becomes what it names: that may steer a terminal.
_ESCAPED = re.compile(
    r"(?P<kept>^(?:[ \t>*+\-]|\d{1,9}[.)])*+\\.|(?<!`)(?P<ticks>`++)[^\n]*?(?P=ticks)(?!`))"
    r"|&(?P<entity>lt|gt|amp);|\\(?P<mark>[!-/:-@\[-`{}~])",
    re.MULTILINE,
)
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&"}
_LINE = re.compile(r"L[0-9]{1,9}")
_MAX_COLUMNS = 100  # a longer line is hard to follow


def print_page(cli: CliState, markdown: str, page: Path, root: Path) -> None:
    """Prints it as a terminal shows Markdown; elsewhere with its marks, but without escapes and the targets of its links."""
    if not sys.stdout.isatty():
        sys.stdout.write(_as_read(_LINK.sub(r"[\2]", markdown)) + "\n")
        return
    from markdown_it import MarkdownIt
    from rich.console import Console  # not at the top: heavy, and only a terminal shows it
    from rich.markdown import Heading, Markdown, TableDataElement
    from rich.text import Text

    addresses: set[str] = set()
    hyperlinked = cli.environ.get("TERM", "") not in ("", "dumb", "linux")

    class PlainHeading(Heading):
        """A heading at the left and without a box, for a page has many."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
            self.text.justify = "left"
            yield from [Text(), self.text] if self.tag == "h2" else [self.text]

    class WholeCell(TableDataElement):
        """A cell that breaks a long path, where its own class cuts it off."""

        def __init__(self, justify: JustifyMethod) -> None:
            super().__init__(justify)
            self.content.overflow = "fold"

    class FileLinks(MarkdownIt):
        """Its own rule forbids links to files, and allows all others."""

        def validateLink(self, url: str) -> bool:
            return url in addresses

    # Without a height, a terminal that calls itself dumb would have 80 columns, whatever its width.
    console = Console(width=min(_MAX_COLUMNS, columns()), height=50, no_color=not cli.coloured, highlight=False)

    def linked(found: re.Match[str]) -> str:
        label, address = rf"\[{found[2]}\]", _address(found[3], page, root) if hyperlinked else ""
        addresses.add(address)
        return f"[{label}]({address})" if address else label

    text = _LINK.sub(linked, markdown)
    parser = FileLinks().enable(["strikethrough", "table"]).disable(["autolink", "image"])
    shown = Markdown("", hyperlinks=True)
    own = {"heading_open": PlainHeading, "th_open": WholeCell, "td_open": WholeCell}
    shown.elements = {**Markdown.elements, **own}  # type: ignore[misc]
    shown.parsed = parser.parse(text)
    console.print(shown)


def _as_read(markdown: str) -> str:
    parts, at = [], 0
    for fence in fences(markdown):
        parts += [_ESCAPED.sub(_unescaped, markdown[at : fence.start]), markdown[fence.start : fence.end]]
        at = fence.end
    return "".join([*parts, _ESCAPED.sub(_unescaped, markdown[at:])])


def _unescaped(found: re.Match[str]) -> str:
    return found["kept"] or found["mark"] or _ENTITIES[found["entity"]]


def _address(target: str, page: Path, root: Path) -> str:
    """Empty for anything but a file below `root`: what agents write may name an address, and nobody clicks on one unseen."""
    path, _, line = target.partition("#")
    path = unquote(path)
    if not path or not path.isprintable() or "://" in path:
        return ""
    try:
        file = (page.parent / path).resolve()
        if not file.is_relative_to(root.resolve()) or not file.is_file():
            return ""
    except (OSError, ValueError):  # too long, or no path at all
        return ""
    return f"{file.as_uri()}#{line}" if _LINE.fullmatch(line) else file.as_uri()
