"""The home's files as text, for tools and input artifacts: allow and deny rules above the one confined walk.

Returns text with its lines or pages, totals and SHA-256.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import PurePosixPath

from council.errors import PathRefused
from council.knowledge.file_texts import FileTexts
from council.lines_and_pages import numbers, spelled_range, unit_of
from council.proposals import nearest
from council.storage.paths import UPLOADS_FOLDER, PathRules

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
MAX_LISTED = 200
_MAX_WALKED = 20_000
_MAX_SUGGESTED = 3
_PATTERN_SIGNS = "*?["


@dataclass(frozen=True)
class LibraryDocument:
    """Lines `first_line` to `last_line` (from 1, both included) of a file of `total_lines`; of a PDF, pages. `sha256` is of
    the file's bytes.

    `cut` is True when the text was shortened to fit the size limit, within a line where that is longer than the limit.
    `note` says how the text was got, where that matters.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int
    sha256: str
    cut: bool = False
    note: str = ""

    @property
    def cut_in_line(self) -> bool:
        return self.cut and not self.text.endswith("\n")


class Library:
    """Reads inside one home, by rule."""

    def __init__(self, texts: FileTexts, rules: PathRules, *, max_text_bytes: int) -> None:
        """A text beyond `max_text_bytes` is cut at a line."""
        self._texts = texts
        self.rules = rules
        self._max_text_bytes = max_text_bytes

    def read(self, path: str, *, first_line: int = 1, last_line: int | None = None) -> LibraryDocument:
        """Raises PathRefused with the reason, StorageFailed. A PDF or DOCX takes a while: call it outside the event loop."""
        normal = path.removeprefix("./")
        self.rules.check(normal)
        found = self._texts.read(normal)
        lines = split_lines(found.text)
        places = numbers(normal, found.text) if lines else []
        total = places[-1] if places else 0
        if first_line > max(total, 1) or (last_line is not None and last_line < first_line):
            unit, asked = unit_of(normal), spelled_range(first_line, last_line)
            message = f"`{normal}` has {total} {unit}{'s' if total != 1 else ''}; {asked} is not among them."
            raise PathRefused(message, reason=f"no_such_{unit}s", fix=f"ask for {unit}s between 1 and {total}")
        start = bisect_left(places, first_line)
        stop = len(lines) if last_line is None else bisect_right(places, last_line)
        end, size = start, 0
        while end < stop and (size := size + len(lines[end].encode())) <= self._max_text_bytes:
            end += 1
        kept = lines[start:end]
        if end == start < stop:  # the line is longer than all that may be brought
            kept, end = [lines[start].encode()[: self._max_text_bytes].decode("utf-8", "ignore")], start + 1
        return LibraryDocument(
            path=normal,
            text="".join(kept),
            first_line=first_line,
            last_line=places[end - 1] if kept else first_line,
            total_lines=total,
            sha256=found.sha256,
            cut=size > self._max_text_bytes,
            note=found.note,
        )

    def list(self, glob: str) -> tuple[list[str], bool]:
        """Readable files that match `glob`, sorted, at most MAX_LISTED; True when there are more."""
        wanted = PathRules(deny=(), allow=(glob.removeprefix("./") or "**",))
        found: list[str] = []
        try:
            for path in self._texts.root.walk(
                max_entries=_MAX_WALKED, skip=lambda folder: folder == UPLOADS_FOLDER or is_closed(self.rules, folder)
            ):
                if is_denied(self.rules, path) or is_denied(wanted, path):
                    continue
                if len(found) == MAX_LISTED:
                    return found, True
                found.append(path)
        except PathRefused as error:
            if error.reason != "too_many":
                raise
            return found, True
        return found, False


def is_denied(rules: PathRules, path: str) -> bool:
    """Tells whether the rules keep this file from readers."""
    try:
        rules.check(path)
    except PathRefused:
        return True
    return False


def is_closed(rules: PathRules, folder: str) -> bool:
    """Tells whether nothing in a folder can be read: one that no rule allows may hold files that are allowed."""
    try:
        rules.check(folder)
    except PathRefused as error:
        return error.reason != "denied" or bool(error.data["rule"])
    return False


def split_lines(text: str) -> list[str]:
    """Splits lines as editors count them, each with its newline. Only a newline ends a line, unlike `str.splitlines`."""
    return _LINE.findall(text)


def better_fix(library: Library, path: str, error: PathRefused) -> str:
    """The fix for the refusal of `path`, with names of files where some offer themselves; else the error's own."""
    if error.reason == "directory" or (error.reason == "segment" and path.endswith("/")):
        return _named(library, f"{path.rstrip('/')}/**", "name the files in it") or "it holds no file that can be read"
    if error.reason in ("not_found", "not_a_folder"):
        if any(sign in path for sign in _PATTERN_SIGNS):
            return _named(library, path, "each path names one file: name those that fit") or "each path names one file"
        try:
            found, _ = library.list("**")
        except PathRefused:
            found = []
        # The files of the same name in another folder, or of a name that is spelled almost so.
        stems = {each: PurePosixPath(each).stem.casefold() for each in found}
        name = PurePosixPath(path)
        same = [each for each in found if PurePosixPath(each).name.casefold() == name.name.casefold()]
        alike = nearest(name.stem, stems.values())
        if near := (same or [each for each, stem in stems.items() if stem == alike])[:_MAX_SUGGESTED]:
            return f"did you mean {' or '.join(f'`{name}`' for name in near)}?"
    return error.fix


def _named(library: Library, glob: str, told: str) -> str:
    try:
        found, more = library.list(glob)
    except PathRefused:
        return ""
    if not found:
        return ""
    left = len(found) - _MAX_SUGGESTED
    rest = f" and {'more than ' if more else ''}{left} more" if left > 0 else ""
    return f"{told}: {', '.join(f'`{name}`' for name in found[:_MAX_SUGGESTED])}{rest}"
