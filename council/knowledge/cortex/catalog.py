"""The contents of an index: each file with its status on disk, its SHA-256 and its number of passages.

One JSON file beside the index, written whole and checksummed. It also names the index's own files with their hashes.
So an index that a kill, a full disk or an editor left in another state is recognised before it answers.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from council.ids import sha256_hex
from council.storage.files import read_limited, write_atomic
from council.typed_json import decode_json

SCHEMA = "council.cortex/6"  # of catalog, index fields, chunking and words together: another one means rebuilding
_MAX_CATALOG_BYTES = 512 << 20


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """The status of a file, which is had without reading it. ctime tells apart an edit whose mtime was set back."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """`skipped`: why a file has no passages (binary, …), else empty. `groups`: names that narrow a question to it."""

    stamp: Stamp
    sha256: str = ""
    chunks: int = 0
    artifact: bool = False
    skipped: str = ""
    groups: tuple[str, ...] = ()


class Catalog(msgspec.Struct, frozen=True):
    """`dead_chunks`: passages removed since the index was last built whole; the engine keeps them for a while."""

    schema: str = SCHEMA
    files: dict[str, Entry] = {}
    index_files: dict[str, str] = {}
    dead_chunks: int = 0
    refreshed: str = ""

    @property
    def chunks(self) -> int:
        return sum(entry.chunks for entry in self.files.values())


class CatalogDamaged(Exception):
    """The reason, in a few words."""


class _Envelope(msgspec.Struct):
    sha256: str
    catalog: msgspec.Raw


def load(path: Path) -> Catalog | None:
    """Loads the catalog. None if there is none. Raises CatalogDamaged, also for another schema; StorageFailed."""
    try:
        data = read_limited(path, _MAX_CATALOG_BYTES)
    except FileNotFoundError:
        return None
    try:
        envelope = decode_json(data, _Envelope)
        body = bytes(envelope.catalog)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise CatalogDamaged("its catalog was damaged") from None
    if envelope.sha256 != sha256_hex(body):
        raise CatalogDamaged("its catalog was damaged")
    with contextlib.suppress(msgspec.DecodeError):
        catalog = decode_json(body, Catalog)
        if catalog.schema == SCHEMA:
            return catalog
    raise CatalogDamaged("its catalog is of another version")


def store(path: Path, catalog: Catalog) -> None:
    """Raises StorageFailed."""
    body = msgspec.json.encode(catalog)
    envelope = _Envelope(sha256_hex(body), msgspec.Raw(body))
    write_atomic(path, msgspec.json.encode(envelope))


def identity(path: Path) -> tuple[int, int, int] | None:
    """Tells one written file from the next; None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
