"""The passages of an index that are looked at by their meaning, and their vectors (`vectors` keeps those)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

from council.knowledge.cortex.catalog import Entry
from council.knowledge.cortex.chunks import Chunk
from council.knowledge.cortex.reads import Reads
from council.knowledge.cortex.selection import Selection
from council.knowledge.cortex.vectors import MAX_PASSAGES, MAX_QUESTIONS, Meaning, VectorKey, Vectors

ARTIFACT_FACTOR = 0.5  # a council that reads itself before its sources goes in circles


class Place(NamedTuple):
    """The beginning of a passage."""

    path: str
    first_line: int


Keys = tuple[tuple[int, VectorKey], ...]  # of the passages of a file: the first line of each, and its vector's key


@dataclass(frozen=True)
class MissingVectors:
    """Texts without a vector, and how many passages are beyond those that are looked at by meaning. `question`: the
    vector of the question that is asked, where it is kept."""

    texts: Mapping[VectorKey, str]
    left_out: int
    question: Any | None


class PassageVectors:
    """The vectors of one index: what is in it is told by each call's `files`."""

    def __init__(self, folder: Path, selection: Selection, reads: Reads) -> None:
        self._vectors = Vectors(folder)
        self._selection = selection
        self._reads = reads
        self._keys: dict[str, tuple[str, Keys]] = {}  # by path, beside the SHA-256 of the file that they were made of

    def missing(self, model: str, files: Mapping[str, Entry], question: str) -> MissingVectors:
        """The passages that have no vector of that model yet. Raises StorageFailed."""
        keys, left_out = self._keys_of(files)
        wanted = {key for places in keys.values() for _, key in places}
        known = self._vectors.of(model)
        texts: dict[VectorKey, str] = {}
        for path, places in keys.items():
            if all(key in known for _, key in places):
                continue
            chunks = self._reads.passages(path, files[path]).values()
            texts |= {
                key: meant(chunk) for chunk in chunks if (key := VectorKey.of(meant(chunk))) in wanted - known.keys()
            }
        return MissingVectors(texts, left_out, known.get(VectorKey.of(question, question=True)))

    def keep(self, model: str, found: Mapping[VectorKey, Any], files: Mapping[str, Entry]) -> None:
        """Those of passages that are gone go. Raises DimensionsChanged, StorageFailed."""
        self._vectors.add(model, found)
        self._retain(files)

    def forget(self, files: Mapping[str, Entry]) -> None:
        """Forgets what is not in an index that was built anew, and what somebody asked."""
        if self._vectors.is_empty:
            self._vectors.clear()
        else:
            self._retain(files, questions=0)

    def nearest(
        self, meaning: Meaning | Sequence[Place], files: Mapping[str, Entry], group: str, limit: int
    ) -> list[Place]:
        """The passages nearest to a vector, best first. In place of a vector there may be the places that were nearest when
        it was asked before. Of these count those at which a passage begins as the files are now."""
        keys, _ = self._keys_of(files)
        if not isinstance(meaning, Meaning):
            known_places = {Place(path, first) for path, places in keys.items() for first, _ in places}
            return [place for place in meaning if place in known_places]
        known = self._vectors.of(meaning.model)
        found: list[tuple[float, str, int]] = []
        for path, places in keys.items():
            if group and group not in files[path].groups:
                continue
            factor = ARTIFACT_FACTOR if files[path].artifact else 1.0
            for first_line, key in places:
                vector = known.get(key)
                if vector is not None and len(vector) == len(meaning.vector):
                    found.append((-factor * sum(map(mul, vector, meaning.vector)), path, first_line))
        return [Place(path, first_line) for _, path, first_line in nsmallest(limit, found)]

    def _retain(self, files: Mapping[str, Entry], questions: int = MAX_QUESTIONS) -> None:
        keys, _ = self._keys_of(files)
        self._vectors.retain({key for places in keys.values() for _, key in places}, questions=questions)

    def _keys_of(self, files: Mapping[str, Entry]) -> tuple[dict[str, Keys], int]:
        """The keys of the passages that are looked at by their meaning, and how many are left out: the council's own pages
        first."""
        found: dict[str, Keys] = {}
        count = left_out = 0
        for path in sorted(files, key=lambda path: (files[path].artifact, path)):
            entry = files[path]
            if not entry.chunks or not self._selection.permits(path):
                continue
            if count + entry.chunks > MAX_PASSAGES:
                left_out += entry.chunks
                continue
            count += entry.chunks
            if self._keys.get(path, ("", ()))[0] != entry.sha256:
                chunks = self._reads.passages(path, entry).values()
                self._keys[path] = (
                    entry.sha256,
                    tuple((each.first_line, VectorKey.of(meant(each))) for each in chunks),
                )
            found[path] = self._keys[path][1]
        self._keys = {path: self._keys[path] for path in found}
        return found, left_out


def meant(chunk: Chunk) -> str:
    """The text of a passage that is embedded: its own words below what stands above them."""
    return f"{chunk.heading}\n{chunk.text}" if chunk.heading else chunk.text
