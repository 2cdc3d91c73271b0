"""One index and the files that it is made from: kept up to date by what changed on disk, and searched.

Two writers never meet: a lock is held for as long as one writes. A kill at any moment leaves a state that the next
refresh recognises. The catalog names the index's files with their hashes; what does not match is built anew, which is
said.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from council.errors import DaemonRunning, PathRefused, StorageFailed
from council.ids import SystemClock, timestamp
from council.knowledge.cortex import catalog as catalogs
from council.knowledge.cortex.catalog import Catalog, CatalogDamaged, Entry, Stamp
from council.knowledge.cortex.chunks import Chunk, Quotation, Reads, cut, is_artifact, is_unfinished_artifact, quote
from council.knowledge.cortex.selection import MAX_ENTRIES, Listing, Selection
from council.knowledge.cortex.tantivy_index import Batch, IndexBroken, TantivyIndex, checksums
from council.knowledge.cortex.vectors import ARTIFACT_FACTOR, Meaning, MissingVectors, PassageVectors, Place, VectorKey
from council.storage.files import FileLock, as_storage_failed, sweep_temporaries

OWN_ARTIFACTS = "artifacts/"
_TICK_S = 0.02  # the coarsest clock by which a local file system stamps its files, twice over
_LOCK_PAUSE_S = 0.05
# Removed passages stay in the engine's files, and count in its statistics, until it is built anew.
_MIN_DEAD_CHUNKS = 500
_SHOWN = 3  # names in a note
# Of the weight of a question's words, rare ones weighing most, and of the best score. With these, 7 of 172 right passages
# were lost that a first sentence was to find its function by, and 3 of 5 passages for questions about nothing that was there.
_FEW, _FAR_BEHIND, _SEVERAL_WORDS = 0.25, 0.6, 4
_CANDIDATES = 4  # looked at for each hit that is wanted: own artifacts are put back, vanished files left out


@dataclass(frozen=True)
class Hit:
    """A passage. `quotation` stands word for word in lines `first_line` to `last_line` (of a PDF: pages) of the file as it
    is now. `sha256` is that of the file. `own_artifact`: the council wrote it itself, so it proves nothing."""

    path: str
    first_line: int
    last_line: int
    heading: str
    quotation: str
    score: float
    sha256: str
    own_artifact: bool


@dataclass(frozen=True)
class Refresh:
    """The work of a refresh. `notes` are sentences for readers, `upkeep` those that concern the index alone."""

    read: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    notes: tuple[str, ...] = ()
    upkeep: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """The contents of an index, and by how many files it lags behind the disk."""

    files: int
    passages: int
    skipped: dict[str, int]
    pending: int
    index_bytes: int
    refreshed: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """`stale`: the paths of files that are not what was indexed. `weak`: how many passages share too little with the question
    to be hits."""

    hits: list[Hit]
    stale: set[str]
    weak: int = 0


@dataclass
class _Differences:
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.added) + len(self.changed) + len(self.removed)


@dataclass(eq=False)
class Shelf:
    """Not for several threads at once; `Cortex` sees to that. `forgets`: nothing of a removed or changed file may stay in the
    index, whatever that costs."""

    _name: str
    _folder: Path
    _lock_path: Path
    _selection: Selection
    _reads: Reads
    forgets: bool

    def __post_init__(self) -> None:
        self._catalog_path = self._folder / "catalog.json"
        self._index_path = self._folder / "index"
        self._catalog: Catalog | None = None
        self._flaw = ""
        self._loaded: tuple[int, int, int] | None = None  # which catalog file `_catalog` is
        self._checked: tuple[int, int, int] | None = None  # which catalog file the index's files were compared with
        self._index: TantivyIndex | None = None
        self._vectors = PassageVectors(self._folder / "vectors", self._selection, self._reads)

    # ── keeping up ───────────────────────────────────────────────────────────────────────────────────────────────────

    def refresh(
        self, *, distrusted: Collection[str] = (), rebuild: bool = False, patience_s: float = 0.0, must: bool = False
    ) -> Refresh:
        """One walk; files whose status changed are read again, and those in `distrusted` whatever their status says.

        While another process writes, waits `patience_s`, then uses what is there and says so; with `must`, raises
        DaemonRunning. Raises StorageFailed.
        """
        listing = self._selection.listing()
        self._load()
        sound = self._catalog is not None and self._checked == self._loaded
        if sound and not rebuild and not distrusted and not self._differences(listing):
            return Refresh(notes=_incomplete(listing))
        self._make_folder()
        try:
            lock = self._take_lock(patience_s)
        except DaemonRunning as error:
            if must:
                raise
            holder = f" (process {error.data['pid']})" if error.data.get("pid") else ""
            busy = f"another process is indexing{holder}: this is what the index held before"
            return Refresh(notes=(busy, *_incomplete(listing)))
        try:
            return self._update(listing, distrusted, "that was asked for" if rebuild else "")
        finally:
            lock.release()

    def _update(self, listing: Listing, distrusted: Collection[str], reason: str) -> Refresh:
        """Repairs what is wrong, then applies the differences. The lock is held."""
        sweep_temporaries(self._folder)
        known = self._loaded
        self._load()
        if self._loaded != known:  # another process wrote since: its look at the disk may be newer than ours
            listing = self._selection.listing()
        reason = reason or self._reason_to_rebuild(listing, distrusted)
        upkeep: list[str] = []
        for attempt in (1, 2):
            if reason:
                if self._loaded is not None or self._index_path.exists():
                    upkeep.insert(0, f"the index of {self._name} was rebuilt: {reason}")
                self._index = None  # the catalog goes first: without it, what is left of the index counts for nothing
                with as_storage_failed(f"Cannot empty {self._folder}"):
                    self._catalog_path.unlink(missing_ok=True)
                    if self._index_path.exists():
                        shutil.rmtree(self._index_path)
                self._catalog, self._loaded, self._checked, self._flaw = None, None, None, ""
            try:
                applied = self._apply(listing, distrusted)
                if reason:
                    self._vectors.forget(self._files)
                return replace(applied, notes=(*upkeep, *_incomplete(listing)), upkeep=tuple(upkeep))
            except IndexBroken as error:
                reason, broken = "the engine could not use it", error
                if attempt == 2:
                    message = f"The index in {self._index_path} cannot be written ({broken})."
                    fix = "free some space and check the permissions there; the index may be deleted at any time"
                    raise StorageFailed(message, fix=fix) from broken
        raise AssertionError("unreachable")

    def _apply(self, listing: Listing, distrusted: Collection[str]) -> Refresh:
        catalog = self._catalog or Catalog()
        work = self._differences(listing)
        work.changed += [path for path in distrusted if path in listing.stamps and path not in work.changed]
        files = dict(catalog.files)
        dead, read_before = catalog.dead_chunks, self._reads.count
        # A file edited again within the tick of its last edit would look the same: it is read when that tick is over.
        stamps = [listing.stamps[path] for path in (*work.added, *work.changed)]
        newest = max((max(stamp.mtime_ns, stamp.ctime_ns) for stamp in stamps), default=0)
        age_s = (time.time_ns() - newest) / 1e9
        if 0 <= age_s < _TICK_S:
            time.sleep(_TICK_S - age_s)
        if self._index is None:
            self._index = TantivyIndex(self._index_path)
        with self._index.writing() as batch:
            for path in (*work.removed, *work.changed):
                before = files.pop(path, None)
                if before is not None and before.chunks:
                    batch.remove(path)
                    dead += before.chunks
            for path in (*work.added, *work.changed):
                entry = self._shelve(path, listing.stamps[path], batch)
                if entry is not None:
                    files[path] = entry
        with as_storage_failed(f"Cannot read the index in {self._index_path}"):
            index_files = checksums(self._index_path, known=catalog.index_files)
        now = timestamp(SystemClock().now())
        written = Catalog(files=files, index_files=index_files, dead_chunks=dead, refreshed=now)
        catalogs.store(self._catalog_path, written)
        self._catalog, self._flaw = written, ""
        self._loaded = self._checked = catalogs.identity(self._catalog_path)
        return Refresh(self._reads.count - read_before, len(work.added), len(work.changed), len(work.removed))

    def _shelve(self, path: str, stamp: Stamp, batch: Batch) -> Entry | None:
        """Reads a file; None if it is gone. The stamp is older than what is read: a change in between shows next time."""
        if stamp.size > self._reads.max_bytes(path):
            return Entry(stamp, skipped="too_large")
        try:
            text, sha256 = self._reads.read(path)
        except PathRefused as refusal:
            gone = refusal.reason in ("not_found", "not_a_folder")
            return None if gone else Entry(stamp, skipped=refusal.reason)
        artifact = path.startswith(OWN_ARTIFACTS) or is_artifact(text)
        if is_unfinished_artifact(text):
            return Entry(stamp, sha256, artifact=True, skipped="in_progress")
        if self._selection.is_as_installed(path, sha256):
            return Entry(stamp, sha256, skipped="as_installed")
        chunks, groups = cut(path, text), self._selection.groups(path, text)
        batch.add(path, chunks, groups, by_body=artifact)  # its title and its name repeat the question
        return Entry(stamp, sha256, len(chunks), artifact, groups=groups)

    def _differences(self, listing: Listing) -> _Differences:
        known = self._files
        found = _Differences()
        for path, stamp in listing.stamps.items():
            entry = known.get(path)
            if entry is None:
                found.added.append(path)
            elif entry.stamp != stamp:
                found.changed.append(path)
        found.removed = [path for path in known if path not in listing.stamps]
        return found

    def _reason_to_rebuild(self, listing: Listing, distrusted: Collection[str]) -> str:
        catalog = self._catalog
        if catalog is None:
            return self._flaw or "its catalog was missing (an indexing was interrupted)"
        if self._checked != self._loaded:
            with as_storage_failed(f"Cannot read the index in {self._index_path}"):
                if checksums(self._index_path) != catalog.index_files:
                    return "its files were damaged or half written"
        work = self._differences(listing)
        gone = [path for path in (*work.removed, *work.changed) if catalog.files[path].chunks]
        if self.forgets and (gone or distrusted):
            return "a page was changed or removed, and nothing of it may stay"
        if any(not self._selection.permits(path) for path in gone):
            return "a rule denies files that it held"
        dead = catalog.dead_chunks + sum(catalog.files[path].chunks for path in gone)
        if dead > max(catalog.chunks, _MIN_DEAD_CHUNKS):
            return "more than half of it was out of date"
        return ""

    # ── meanings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def missing_vectors(self, model: str, question: str, patience_s: float) -> MissingVectors:
        """The passages that have no vector of that model yet, after a refresh. Raises StorageFailed."""
        self.refresh(patience_s=patience_s)
        self._load()
        return self._vectors.missing(model, self._files, question)

    def keep_vectors(self, model: str, found: Mapping[VectorKey, Any], patience_s: float) -> None:
        """Raises DimensionsChanged, DaemonRunning while another process writes, StorageFailed."""
        self._make_folder()
        lock = self._take_lock(patience_s)
        try:
            self._vectors.keep(model, found, self._files)
        finally:
            lock.release()

    @property
    def _files(self) -> Mapping[str, Entry]:
        return self._catalog.files if self._catalog else {}

    # ── answering ────────────────────────────────────────────────────────────────────────────────────────────────────

    def search(self, question: str, limit: int, group: str = "", meaning: Meaning | None = None) -> Findings:
        """The best passages as the files are now, by their words. With `meaning` they are found by what they mean, too.
        Raises IndexBroken."""
        self._load()
        if self._catalog is None:
            return Findings([], set())
        if self._index is None:
            if not self._index_path.is_dir():
                raise IndexBroken("open: there is no index")
            self._index = TantivyIndex(self._index_path)
        index = self._index
        terms = index.question_terms(question)
        candidates = limit * _CANDIDATES
        ranked = []
        for score, path, first_line in index.search(terms, group=group, limit=candidates) if terms else ():
            entry = self._catalog.files.get(path)
            if entry is not None and self._selection.permits(path):
                ranked.append((score * (ARTIFACT_FACTOR if entry.artifact else 1.0), Place(path, first_line)))
        ranked.sort(key=lambda pair: (-pair[0], pair[1]))
        weights = index.weights(terms)
        quoting = partial(quote, weights=weights, terms=index.terms)

        by_words = {place: score / ranked[0][0] for score, place in ranked}
        nearest = [] if meaning is None else self._vectors.nearest(meaning, self._files, group, candidates)

        def is_weak(place: Place, chunk: Chunk) -> bool:
            """It met the question by chance: in one common word of several, or in few words and far behind the best."""
            held = weights.keys() & set(index.terms(f"{place.path}\n{chunk.heading}\n{chunk.text}"))
            share = sum(weights[term] for term in held) / sum(weights.values())
            alone = len(held) == 1 and len(terms) >= _SEVERAL_WORDS and index.is_common(*held)
            return place not in nearest and (alone or (share < _FEW and by_words[place] < _FAR_BEHIND))

        if meaning is None:
            return self._findings(ranked, quoting, is_weak, limit, score_digits=3)
        scores = fused([place for _, place in ranked], nearest)
        best = sorted(((score, place) for place, score in scores.items()), key=lambda pair: (-pair[0], pair[1]))
        return self._findings(best, quoting, is_weak, limit, score_digits=5)

    def _findings(
        self,
        ranked: Sequence[tuple[float, Place]],
        quoting: Callable[[Chunk], Quotation],
        is_weak: Callable[[Place, Chunk], bool],
        limit: int,
        score_digits: int,
    ) -> Findings:
        assert self._catalog is not None
        hits: list[Hit] = []
        said: set[tuple[str, str]] = set()  # an agent may say the same in every round
        stale: set[str] = set()
        weak = 0
        chunks: dict[str, dict[int, Chunk]] = {}
        for score, found in ranked:
            entry = self._catalog.files[found.path]
            if found.path not in chunks:
                chunks[found.path] = self._reads.passages(found.path, entry)
            chunk = chunks[found.path].get(found.first_line)
            if chunk is None:
                stale.add(found.path)
                continue
            if is_weak(found, chunk):
                weak += 1
                continue
            quoted = quoting(chunk)
            if (found.path, quoted.text) in said:
                continue
            said.add((found.path, quoted.text))
            lines = (chunk.page, chunk.page) if chunk.page else (quoted.first_line, quoted.last_line)
            place = (found.path, *lines)
            rounded = round(score, score_digits)
            hits.append(Hit(*place, chunk.heading, quoted.text, rounded, entry.sha256, entry.artifact))
            if len(hits) == limit:
                break
        return Findings(hits, stale, weak)

    def distrust_index(self) -> None:
        """The next refresh looks at the index's files again, whatever it knew of them."""
        self._checked = None
        self._index = None

    # ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self) -> Status:
        """Looks, changes nothing, and loads no engine."""
        listing = self._selection.listing()
        self._load()
        catalog = self._catalog or Catalog()
        skipped = Counter(entry.skipped for entry in catalog.files.values() if entry.skipped) + listing.left_out
        notes = [*_incomplete(listing)]
        if self._flaw:
            notes.append(f"the next refresh rebuilds the index of {self._name}: {self._flaw}")
        total = 0
        for parent, _, names in os.walk(self._folder):
            for name in names:
                try:
                    total += os.stat(os.path.join(parent, name)).st_size
                except FileNotFoundError:  # a commit in another process replaced it
                    continue
        return Status(
            files=sum(not entry.skipped for entry in catalog.files.values()),
            passages=catalog.chunks,
            skipped=dict(sorted(skipped.items())),
            pending=len(self._differences(listing)),
            index_bytes=total,
            refreshed=catalog.refreshed,
            notes=tuple(notes),
        )

    # ── the catalog and the lock ─────────────────────────────────────────────────────────────────────────────────────

    def _load(self) -> None:
        """Follows the catalog file: another process may have written it since."""
        with as_storage_failed(f"Cannot read {self._catalog_path}"):
            identity = catalogs.identity(self._catalog_path)
        if identity == self._loaded and (identity is None or self._catalog is not None):
            return
        self._index = None
        self._loaded, self._catalog, self._flaw = identity, None, ""
        try:
            self._catalog = catalogs.load(self._catalog_path)
        except CatalogDamaged as damage:
            self._flaw = str(damage)

    def _make_folder(self) -> None:
        with as_storage_failed(f"Cannot make {self._folder}"):
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)

    def _take_lock(self, patience_s: float) -> FileLock:
        lock = FileLock(self._lock_path)
        give_up_at = time.monotonic() + patience_s
        while True:
            try:
                lock.acquire()
                return lock
            except DaemonRunning:
                if time.monotonic() >= give_up_at:
                    raise
            time.sleep(_LOCK_PAUSE_S)


def _incomplete(listing: Listing) -> tuple[str, ...]:
    notes = [] if listing.whole else [f"more than {MAX_ENTRIES} files and folders: the last ones are not indexed"]
    if listing.unread:
        names = ", ".join(f"`{path}`" for path in listing.unread[:_SHOWN])
        more = f" and {len(listing.unread) - _SHOWN} more" if len(listing.unread) > _SHOWN else ""
        notes.append(f"what {names}{more} would leave out is indexed: it cannot be read, or is too large")
    return tuple(notes)


T = TypeVar("T")

# Reciprocal rank fusion (G. V. Cormack, C. L. A. Clarke, S. Büttcher, SIGIR 2009): places alone count, so that scores of
# different kinds need no common measure.
_FUSION_K = 60


def fused(*lists: Sequence[T]) -> dict[T, float]:
    """Merges lists, each best first and without repetition: every entry with the sum of 1 / (60 + its place)."""
    scores: dict[T, float] = defaultdict(float)
    for ranked in lists:
        for place, item in enumerate(ranked, start=1):
            scores[item] += 1 / (_FUSION_K + place)
    return dict(scores)
