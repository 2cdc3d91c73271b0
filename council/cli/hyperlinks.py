"""Links of a page as terminals know them (OSC 8): a citation opens its file. For terminals only; pipes get plain text."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

_LINK = re.compile(
    r"\[\[([^\[\]\n]*)\]\(([^()\n]*)\)\]|\[([^\[\]\n]*)\]\(([^()\n]*)\)"
)  # a citation keeps its brackets
_LINE = re.compile(r"L[0-9]{1,9}")
_OPENING, _CLOSING = "\x1b]8;;", "\x1b\\"


def unlinked(markdown: str) -> str:
    """Only the labels: link targets say nothing in a terminal."""
    return _LINK.sub(lambda match: f"[{match[1] or match[3]}]", markdown)


def linked(markdown: str, page: Path, root: Path) -> str:
    """As `unlinked`, but each label whose target is a file below `root`, relative to `page`, opens that file at its line.

    Anything else stays a label: what agents write may name an address, and nobody clicks on one unseen.
    """

    def link(match: re.Match[str]) -> str:
        label, target = f"[{match[1] or match[3]}]", match[2] or match[4] or ""
        path, _, line = target.partition("#")
        path = unquote(path)
        if not path or not path.isprintable() or "://" in path:
            return label
        try:
            file = (page.parent / path).resolve()
            if not file.is_relative_to(root.resolve()) or not file.is_file():
                return label
        except (OSError, ValueError):  # too long, or no path at all
            return label
        address = f"{file.as_uri()}#{line}" if _LINE.fullmatch(line) else file.as_uri()
        return f"{_OPENING}{address}{_CLOSING}{label}{_OPENING}{_CLOSING}"

    return _LINK.sub(link, markdown)
