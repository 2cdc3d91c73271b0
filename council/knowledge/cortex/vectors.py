"""The passages of an index that are looked at by their meaning, and their vectors and those of the last questions, in one file
beside the index.

A line of JSON names the embedding model; behind it stand records: the SHA-256 of a text, its vector in single precision, a
checksum. Appended to, so that a vector that was paid for is not lost with those that were not yet. A torn or damaged record and
all behind it count for nothing. The file is a copy: without it, everything is embedded again.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from council.ids import sha256_hex
from council.knowledge.cortex.catalog import Entry, identity
from council.knowledge.cortex.chunks import Chunk, Reads
from council.knowledge.cortex.selection import Selection
from council.storage.files import as_storage_failed, read_limited, write_atomic
from council.typed_json import decode_json

MAX_PASSAGES = 5_000  # of one index; compared one by one, which takes a tenth of a second for each thousand
MAX_QUESTIONS = 256  # kept so that the same question, asked again or after a crash, finds the same and costs nothing
MAX_VECTORS_BYTES = 256 << 20  # MAX_PASSAGES of the longest vectors
_FORMAT = 1
_QUESTION = "question\n"


class Head(msgspec.Struct, frozen=True):
    """`model`: its name with the number of dimensions that was asked for. Another one's vectors mean nothing beside these."""

    vectors: int
    model: str
    dimensions: int


@dataclass(frozen=True)
class VectorKey:
    """The text of a vector: its digest, and whether it is a question."""

    digest: bytes
    question: bool = False

    @classmethod
    def of(cls, text: str, *, question: bool = False) -> VectorKey:
        return cls(bytes.fromhex(sha256_hex(f"{_QUESTION if question else ''}{text}")), question)


@dataclass(frozen=True)
class Meaning:
    """A question as a vector of length 1, by the model of that name."""

    model: str
    vector: Any


class DimensionsChanged(Exception):
    """The model gives vectors of another size than those that are kept."""


class Vectors:
    """The file, followed as other processes write it. Whoever writes holds the index's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._head: Head | None = None
        self._kept: dict[VectorKey, Any] = {}
        self._loaded: tuple[int, int, int] | None = None
        self._whole_bytes = 0  # up to where the file is sound

    def of(self, model: str) -> Mapping[VectorKey, Any]:
        """Gives the vectors of that model that are kept. Raises StorageFailed."""
        self._follow()
        return self._kept if self._head is not None and self._head.model == model else {}

    @property
    def is_empty(self) -> bool:
        """Tells whether no model has left a vector here. Raises StorageFailed."""
        self._follow()
        return not self._kept

    def add(self, model: str, found: Mapping[VectorKey, Any]) -> None:
        """Raises DimensionsChanged, after which the file is empty; StorageFailed."""
        if not found:
            return
        self._follow()
        dimensions = len(next(iter(found.values())))
        if self._head is not None and self._head.model == model and self._head.dimensions != dimensions:
            self.clear()
            raise DimensionsChanged(f"vectors of {dimensions} dimensions")
        if self._head is None or self._head.model != model:
            self._write(Head(_FORMAT, model, dimensions), found)
        elif self._loaded and self._whole_bytes != self._loaded[2]:
            # A record was torn: what is behind it would never be read.
            self._write(self._head, {**self._kept, **found})
        else:
            data = _encoded(found)
            with as_storage_failed(f"Cannot write {self._path}"), self._path.open("ab") as file:
                file.write(data)
            self._kept.update(found)
            self._whole_bytes += len(data)
            self._loaded = identity(self._path)

    def retain(self, passages: Collection[VectorKey], *, questions: int = MAX_QUESTIONS) -> None:
        """Nothing stays but these passages and the last `questions` questions, which are words that somebody used; no
        file where there is neither. Raises StorageFailed."""
        self._follow()
        asked = [key for key in self._kept if key.question]
        kept = {*passages, *asked[max(0, len(asked) - questions) :]}
        left = {key: vector for key, vector in self._kept.items() if key in kept}
        if self._head is None or not left:
            self.clear()
        elif len(left) < len(self._kept):
            self._write(self._head, left)

    def clear(self) -> None:
        """Raises StorageFailed."""
        with as_storage_failed(f"Cannot remove {self._path}"):
            self._path.unlink(missing_ok=True)
        self._head, self._kept, self._loaded, self._whole_bytes = None, {}, None, 0

    def _follow(self) -> None:
        with as_storage_failed(f"Cannot read {self._path}"):
            found = identity(self._path)
        if found == self._loaded:
            return
        self._head, self._kept, self._whole_bytes, self._loaded = None, {}, 0, found
        if found is None:
            return
        try:
            data = read_limited(self._path, MAX_VECTORS_BYTES)
            line, _, _ = data.partition(b"\n")
            head = decode_json(line, Head)
        except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
            return  # another process cleared it in this moment; or it is written anew when something is added
        if head.vectors != _FORMAT or head.dimensions < 1:
            return
        record = struct.Struct(f"<B32s{4 * head.dimensions}sI")
        at = len(line) + 1
        while at + record.size <= len(data):
            is_question, digest, values, checksum = record.unpack_from(data, at)
            if zlib.crc32(data[at : at + record.size - 4]) != checksum:
                break
            vector = array("f")
            vector.frombytes(values)
            self._kept[VectorKey(digest, bool(is_question))] = vector
            at += record.size
        self._head, self._whole_bytes = head, at

    def _write(self, head: Head, found: Mapping[VectorKey, Any]) -> None:
        data = msgspec.json.encode(head) + b"\n" + _encoded(found)
        write_atomic(self._path, data, sync=False)
        self._head, self._kept, self._whole_bytes = head, dict(found), len(data)
        self._loaded = identity(self._path)


def _encoded(found: Mapping[VectorKey, Any]) -> bytes:
    pieces = []
    for key, vector in found.items():
        body = bytes([key.question]) + key.digest + vector.tobytes()
        pieces.append(body + struct.pack("<I", zlib.crc32(body)))
    return b"".join(pieces)


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
            passages = map(meant, self._reads.passages(path, files[path]).values())
            texts |= {key: text for text in passages if (key := VectorKey.of(text)) in wanted - known.keys()}
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

    def nearest(self, meaning: Meaning, files: Mapping[str, Entry], group: str, limit: int) -> list[Place]:
        """The passages nearest to a vector, best first."""
        keys, _ = self._keys_of(files)
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
        """The keys of the passages that are looked at by meaning, and how many are left out: the council's own first."""
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
                keys = tuple((each.first_line, VectorKey.of(meant(each))) for each in chunks)
                self._keys[path] = (entry.sha256, keys)
            found[path] = self._keys[path][1]
        self._keys = {path: self._keys[path] for path in found}
        return found, left_out


def meant(chunk: Chunk) -> str:
    """The text of a passage that is embedded: its own words below what stands above them."""
    return f"{chunk.heading}\n{chunk.text}" if chunk.heading else chunk.text
