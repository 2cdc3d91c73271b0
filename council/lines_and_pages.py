"""Places in files, as citations and requests name them: the lines of a text, the pages of a PDF. Pure.

The text of a PDF holds a mark before each page (`page_mark`), so that the pages of an excerpt are known from it alone.
"""

from __future__ import annotations

import re

DOCUMENTS = {  # read as their text
    ".pdf": "pdf", ".docx": "docx", ".html": "html", ".htm": "html", ".xhtml": "html", ".eml": "mail"
}  # fmt: skip
_PAGE_MARK = re.compile(r"\[page ([0-9]{1,7})\]")
_RANGE = re.compile(r"(?P<path>.+?):(?P<unit>p?)(?P<first>[0-9]{1,7})(?:-p?(?P<last>[0-9]{1,7}))?")


def document_kind(path: str) -> str:
    """`pdf`, `docx`, `html` or `mail`; empty for a file whose bytes are its text."""
    return next((kind for suffix, kind in DOCUMENTS.items() if path.lower().endswith(suffix)), "")


def is_paged(path: str) -> bool:
    return document_kind(path) == "pdf"


def unit_of(path: str) -> str:
    return "page" if is_paged(path) else "line"


def spelled(path: str, first: int, last: int | None = None) -> str:
    """`docs/a.md:3-5`, `docs/a.md:3`, `docs/a.pdf:p3-5`, `docs/a.pdf:p3`."""
    return f"{path}:{'p' if is_paged(path) else ''}{spelled_range(first, last)}"


def in_words(path: str, first: int, last: int) -> str:
    """`lines 3-5`, `line 3`, `pages 3-5`."""
    return f"{unit_of(path)}{'' if first == last else 's'} {spelled_range(first, last)}"


def spelled_range(first: int, last: int | None = None) -> str:
    return f"{first}" if last in (None, first) else f"{first}-{last}"


def split_range(argument: str) -> tuple[str, int, int | None]:
    """`docs/a.md:10-40` or `docs/a.pdf:p3-5` → path, first and last place; no range means the whole file."""
    match = _RANGE.fullmatch(argument.strip())
    if match is None or (match["unit"] and not is_paged(match["path"])):
        return argument.strip(), 1, None
    first = int(match["first"])
    last = int(match["last"]) if match["last"] else first
    return match["path"], max(first, 1), last


def anchor(path: str, first: int) -> str:
    """The end of a link that opens the file at this place; empty where viewers know no such thing."""
    if is_paged(path):
        return f"#page={first}"
    return "" if document_kind(path) else f"#L{first}"


def page_mark(page: int) -> str:
    return f"[page {page}]"


def marked_page(line: str) -> int | None:
    """The page that a line of a PDF's text opens; None for a line of its words."""
    match = _PAGE_MARK.fullmatch(line.strip())
    return int(match[1]) if match else None


def numbers(path: str, text: str, first: int = 1) -> list[int]:
    """The place of each line of a text that begins at place `first`: its number, or its page."""
    lines = text.removesuffix("\n").split("\n")
    if not is_paged(path):
        return list(range(first, first + len(lines)))
    found = []
    for line in lines:
        page = marked_page(line)
        first = first if page is None else page
        found.append(first)
    return found


def without_marks(path: str, text: str) -> str:
    """The text with empty lines in place of its page marks."""
    if not is_paged(path):
        return text
    return "\n".join("" if marked_page(line) else line for line in text.split("\n"))
