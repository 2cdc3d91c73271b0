"""Reading the files of an index through the confined root, without secrets."""

from __future__ import annotations

from collections.abc import Callable

from council.errors import PathRefused
from council.knowledge.cortex.catalog import Entry
from council.knowledge.cortex.chunks import Chunk, cut
from council.knowledge.file_texts import FileTexts


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
