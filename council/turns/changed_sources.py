"""The files that agents read, looked at again when they have spoken, and whenever somebody asks what changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from council.errors import PathRefused, StorageFailed
from council.knowledge.cortex.chunks import is_artifact
from council.storage.paths import ConfinedRoot

SOURCES_STEP = "sources"


class SourceNow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that was read, as it is when they have spoken, or why it cannot be read. `own`: a page of the council."""

    path: str
    sha256: str = ""
    error: str = ""
    own: bool = False


class SourcesNow(msgspec.Struct, frozen=True):
    """Recorded once, so that a page rendered again says the same whatever the disk then holds."""

    files: tuple[SourceNow, ...] = ()


async def look_again(root: ConfinedRoot, paths: Iterable[str]) -> SourcesNow:
    return SourcesNow(tuple([await asyncio.to_thread(source_now, root, path) for path in dict.fromkeys(paths)]))


def changed_since(root: ConfinedRoot, then: SourcesNow) -> list[str]:
    """The files that are other ones now, own pages aside, each with the reason if it cannot be read any more."""
    return [
        f"{was.path} ({now.error})" if now.error else was.path
        for was in then.files
        if was.sha256 and not was.own and (now := source_now(root, was.path)).sha256 != was.sha256
    ]


def source_now(root: ConfinedRoot, path: str) -> SourceNow:
    """Never raises for what may happen to a file meanwhile."""
    try:
        sha256 = root.sha256(path)
        if sha256 is None:
            return SourceNow(path, error="it is gone")
        try:
            text = root.read(path).data.decode("utf-8", "replace")
        except PathRefused as error:
            if error.reason != "too_large":
                raise
            text = ""  # too large to be a page
        return SourceNow(path, sha256, own=is_artifact(text))
    except (PathRefused, StorageFailed) as error:
        return SourceNow(path, error=error.message)
