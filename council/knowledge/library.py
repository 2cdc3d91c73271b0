"""The home's files as text, for tools and input artifacts: allow and deny rules above the one confined walk.

Returns text with its lines, totals and SHA-256. Refuses what is not plain UTF-8 text, and says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from council.errors import PathRefused
from council.ids import sha256_hex
from council.storage.paths import ConfinedRoot, PathRules

_BINARY_PROBE_BYTES = 8192
_LINE_RANGE = re.compile(r"^(?P<path>.+?):(?P<first>[0-9]{1,7})(?:-(?P<last>[0-9]{1,7}))?$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
MAX_LISTED = 200
_MAX_WALKED = 20_000


@dataclass(frozen=True)
class LibraryDocument:
    """Lines `first_line` to `last_line` (from 1, both included) of a file of `total_lines`; `sha256` is of the whole.

    `cut` is True when the text was shortened to fit the size limit.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int
    sha256: str
    cut: bool = False


class Library:
    """Reads inside one home, by rule."""

    def __init__(self, root: ConfinedRoot, rules: PathRules, *, max_file_bytes: int, max_text_bytes: int) -> None:
        """A file beyond `max_file_bytes` is refused; a text beyond `max_text_bytes` is cut at a line."""
        self._root = root
        self._rules = rules
        self._max_file_bytes = max_file_bytes
        self._max_text_bytes = max_text_bytes

    def read(self, path: str, *, first_line: int = 1, last_line: int | None = None) -> LibraryDocument:
        """Raises PathRefused with the reason."""
        normal = path.removeprefix("./")
        self._rules.check(normal)
        try:
            data = self._root.read(normal, max_bytes=self._max_file_bytes).data
        except PathRefused as error:
            if error.reason != "too_large":
                raise
            raise PathRefused(
                f"`{normal}` is larger than the {self._max_file_bytes:,} bytes that are read of a file.",
                reason="too_large",
                fix="split the file, or raise max_file_bytes",
            ) from None
        lines = split_lines(as_text(normal, data))
        total = len(lines)
        if first_line > max(total, 1) or (last_line is not None and last_line < first_line):
            raise PathRefused(
                f"`{normal}` has {total} lines; {first_line}-{last_line or total} is not among them.",
                reason="no_such_lines",
                fix=f"ask for lines between 1 and {total}",
            )
        chosen = lines[first_line - 1 : last_line]
        kept, size = chosen, 0
        for index, line in enumerate(chosen):
            size += len(line.encode())
            if size > self._max_text_bytes:
                kept = chosen[:index] or [line.encode()[: self._max_text_bytes].decode("utf-8", "ignore")]
                break
        return LibraryDocument(
            path=normal,
            text="".join(kept),
            first_line=first_line,
            last_line=first_line + max(len(kept), 1) - 1,
            total_lines=total,
            sha256=sha256_hex(data),
            cut=len(kept) < len(chosen),
        )

    def list(self, glob: str) -> tuple[list[str], bool]:
        """Readable files that match `glob`, sorted, at most MAX_LISTED; True when there are more."""
        wanted = PathRules(deny=(), allow=(glob.removeprefix("./") or "**",))
        found: list[str] = []
        try:
            for path in self._root.walk(max_entries=_MAX_WALKED, skip=lambda folder: is_closed(self._rules, folder)):
                if is_denied(self._rules, path) or is_denied(wanted, path):
                    continue
                if len(found) == MAX_LISTED:
                    return found, True
                found.append(path)
        except PathRefused as error:
            if error.reason != "too_many":
                raise
            return found, True
        return found, False


def split_range(argument: str) -> tuple[str, int, int | None]:
    """`docs/a.md:10-40` → path, first and last line; no range means the whole file."""
    match = _LINE_RANGE.match(argument.strip())
    if match is None:
        return argument.strip(), 1, None
    first = int(match["first"])
    last = int(match["last"]) if match["last"] else first
    return match["path"], max(first, 1), last


def is_denied(rules: PathRules, path: str) -> bool:
    """Tells whether the rules keep this file from readers."""
    try:
        rules.check(path)
    except PathRefused:
        return True
    return False


def is_closed(rules: PathRules, folder: str) -> bool:
    """Tells whether nothing in a folder can be read. A folder that no rule allows by its own name may hold files that
    are."""
    try:
        rules.check(folder)
    except PathRefused as error:
        return error.reason != "denied" or bool(error.data["rule"])
    return False


def split_lines(text: str) -> list[str]:
    """As editors count them, each with its newline: only a newline ends a line, unlike `str.splitlines`."""
    return _LINE.findall(text)


def as_text(path: str, data: bytes) -> str:
    """A file's bytes as text with plain newlines. Raises PathRefused for what is not UTF-8 text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise PathRefused(f"`{path}` is UTF-16.", reason="encoding", fix="save it as UTF-8")
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        raise PathRefused(f"`{path}` is a binary file.", reason="binary", fix="name a text file")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PathRefused(
            f"`{path}` is not UTF-8 (byte {error.start}).", reason="encoding", fix="save it as UTF-8"
        ) from None
