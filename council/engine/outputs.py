"""The files of runs: where they go, and which bytes there are ours.

The table `written` remembers, per path, the SHA-256 of what we last wrote. While a write is under way it also has that of what
we are about to write. A growing page is not synced, and neither is its note, which a power cut may take while it leaves the page.
So the page itself tells that nobody changed it. Any other file belongs to a person: it is left, and the run's file goes beside
it. So does the page of a run without a decision, where an earlier decision stands: of another run, or of its own before a retry.
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

import msgspec

from council.engine import statements as sql
from council.engine.commit import Output
from council.engine.receipts import Receipts
from council.engine.records import Commit, RunHeader
from council.errors import JournalDamaged, PathRefused, StorageFailed
from council.ids import sha256_hex
from council.storage.paths import ConfinedRoot
from council.storage.reader import Looking
from council.storage.store import Store, Tx
from council.typed_json import decode_json

log = logging.getLogger(__name__)

_MAX_KEPT_BYTES = 64 << 20
_SEAL = b"\n<!-- Council writes here until the run ends. Change the page, and it is left to you. "
_SEALED = re.compile(re.escape(_SEAL) + rb"[0-9a-f]{64} -->\n")
_ARTIFACT = "artifact.md"  # a run's page, kept when another one takes its place
GROWS = "this page grows."  # ends the only sentence of a growing page below its heading
SUPERSEDED = "superseded"  # the status of a growing page that a person wrote into, once its run has another page
_GROWING_NOTE = re.compile(rb"(?m)^## [^\n]+\n\n[^\n]+; " + re.escape(GROWS).encode() + rb"$")
_GROWING_STATUS = re.compile(rb"\A(---\n(?:(?!---$).*\n)*?status: )in_progress$", re.MULTILINE)


class OutputEntry(msgspec.Struct, frozen=True):
    """The file at `path`: `sha256s` are the bytes we were about to write and the ones they were to replace."""

    path: str
    run_id: str
    sha256s: tuple[str, ...]


def written_at(store: Looking, path: str) -> OutputEntry | None:
    """Raises StorageFailed."""
    row = store.read(lambda tx: tx.execute(sql.WRITTEN, (path,)).fetchone())
    return None if row is None else _written(row)


def all_written(store: Looking) -> list[OutputEntry]:
    """Raises StorageFailed."""
    return [_written(row) for row in store.read(lambda tx: tx.execute(sql.ALL_WRITTEN).fetchall())]


def note_written(tx: Tx, written: OutputEntry) -> None:
    """Notes bytes, committed before they take their place: whichever a crash leaves there are known as ours."""
    tx.execute(sql.NOTE_WRITTEN, (written.path, written.run_id, msgspec.json.encode(written.sha256s).decode()))


def kept_data(store: Looking, owner: str, name: str) -> bytes | None:
    """Raises StorageFailed."""
    row = store.read(lambda tx: tx.execute(sql.KEPT_DATA, (owner, name)).fetchone())
    return None if row is None else bytes(row[0])


def kept_names(store: Looking, owner: str) -> list[str]:
    """The names of what is kept of a run, or of whatever else. Raises StorageFailed."""
    return [row[0] for row in store.read(lambda tx: tx.execute(sql.KEPT_NAMES, (owner,)).fetchall())]


def _written(row: tuple[str, str, str]) -> OutputEntry:
    return OutputEntry(row[0], row[1], decode_json(row[2], tuple[str, ...]))


@dataclass(frozen=True)
class OutputClaim:
    """A file to commit. `note` writes what is then known of its path, and keeps the page of another run that it replaces."""

    output: Output
    note: Callable[[Tx], None]


@dataclass(frozen=True)
class StandingDecision:
    """The page of a run that ended with a decision."""

    run_id: str
    sha256: str


class OutputFile:
    """One run's artifact: where it goes, and the care taken with what stands there."""

    def __init__(self, root: ConfinedRoot, store: Store, path: str, run_id: str) -> None:
        self._root = root
        self._store = store
        self._run_id = run_id
        self.wanted = path
        self.path = path
        self.displaced = ""  # why the file does not go to the wanted path, a sentence about it
        self._decision: StandingDecision | None = None  # stood here when this run began, perhaps its own
        self._has_looked = False  # for that decision
        self._replaced: tuple[str, bytes] | None = None  # the run whose page stands there, and that page
        self._coming: list[str] = []  # the SHA-256 of pages that are handed over, and may not stand there yet

    @property
    def beside(self) -> str:
        """The path for the file when the wanted one is somebody else's: `<slug>.<run_id>.md`."""
        return _beside(self.wanted, self._run_id)

    def step_aside(self, reason: str, path: str = "") -> None:
        """The file goes beside the wanted path (or to `path`), and `reason` says why."""
        self.path = path or self.beside
        self.displaced = reason

    def grow(self, data: bytes) -> None:
        """Puts `data` there as soon as it is known as ours, unsynced: something newer replaces it. Raises StorageFailed."""

        def show(_: None) -> None:
            """NOTE: before the commit, which stands behind it in the store's queue."""
            try:
                self._root.write_atomic(self.path, data, sync=False)
            except (StorageFailed, PathRefused) as error:
                log.warning("the growing artifact of run %s cannot be shown: %s", self._run_id, error)

        def tell(noted: asyncio.Future[None]) -> None:
            del self._coming[0]
            if not noted.cancelled() and noted.exception() is not None:
                log.warning("the growing artifact of run %s cannot be shown: %s", self._run_id, noted.exception())

        written = self._next(data, self.settle())
        if self._decision is not None:  # by this a later process knows that it stood there
            written = msgspec.structs.replace(written, sha256s=(*written.sha256s, self._decision.sha256))
        note = self._noting(written)
        noted = self._store.write(note, durable=self._replaced is not None, now=False, then=show)
        self._coming.append(sha256_hex(data))
        noted.add_done_callback(tell)

    def claim(self, data: bytes, standing: str | None) -> OutputClaim:
        """Claims the place that `settle` chose before a commit of `data`, which is to `note` it. `standing`: what `settle`
        found there."""
        written = self._next(data, standing)
        return OutputClaim(Output(self.path, data, written.sha256s, self.beside), self._noting(written))

    def _next(self, data: bytes, standing: str | None) -> OutputEntry:
        known = dict.fromkeys(sha256 for sha256 in (sha256_hex(data), standing, *self._coming) if sha256)
        return OutputEntry(self.path, self._run_id, tuple(known))

    def keep_earlier_decision(self, standing: str, because: str) -> OutputClaim | None:
        """Leaves the place to the earlier decision: this run, which has none now, goes beside it. `standing`: what `settle`
        found there. Returns the claim of the earlier page where this run's growing one has taken its place. Raises
        StorageFailed."""
        decision, restored = self._decision, None
        if self.displaced or decision is None:
            return None
        if standing != decision.sha256 or self._coming:  # the growing page stands there, or is about to
            owners, store = (decision.run_id, self._run_id), self._store
            kept = (kept_data(store, owner, name) for owner in owners for name in kept_names(store, owner))
            pages = [self._replaced[1]] if self._replaced else kept
            data = next((page for page in pages if page is not None and sha256_hex(page) == decision.sha256), None)
            if data is None:
                return None
            written = msgspec.structs.replace(self._next(data, standing), run_id=decision.run_id)
            beside = _beside(self.path, f"{decision.run_id}.decision")  # never that of the page without one
            restored = OutputClaim(
                Output(self.path, data, written.sha256s, beside), lambda tx: note_written(tx, written)
            )
        if decision.run_id == self._run_id:
            self.step_aside(f"keeps the earlier decision of this run, because this attempt {because}")
        else:
            self.step_aside(f"keeps the decision of run {decision.run_id}, because this run {because}")
        return restored

    def settle(self) -> str | None:
        """Chooses the path by what stands at the wanted one now; the SHA-256 of ours that is to be replaced, if any. Raises
        StorageFailed."""
        self._replaced = None
        if not self.displaced:
            current = self._root.fingerprint(self.path)
            entry = written_at(self._store, self.path) if current is not None else None
            is_known = entry is not None and current in entry.sha256s
            if current == "" or (current is not None and not is_known and not self._has_grown()):
                edited = current and entry is not None
                what = "was edited by hand" if edited else "is not in Council's records"
                self.step_aside(f"{what}, so Council left it as it is")
            else:
                if current is not None and entry is not None:
                    if not self._has_looked:
                        self._decision = self._decision_at(entry, current)
                    if is_known and entry.run_id != self._run_id:
                        self._replaced = entry.run_id, self._root.read(self.path, max_bytes=_MAX_KEPT_BYTES).data
                self._has_looked = True
                return current
        return self._root.fingerprint(self.path) or None

    def _has_grown(self) -> bool:
        """True where this run's growing page stands there, as it was written."""
        try:
            data = self._root.read(self.path, max_bytes=_MAX_KEPT_BYTES).data
        except PathRefused:
            return False
        return data == sealed(data[: data.rfind(_SEAL)], self._run_id)

    def _decision_at(self, entry: OutputEntry, current: str) -> StandingDecision | None:
        """The decision that stands at the path, or stood there until an earlier process grew this run's page."""
        receipts, owners, known = Receipts(self._store), [entry.run_id], [current]
        if entry.run_id == self._run_id:
            owners += receipts.newest_decision_at(self.path)
            known += entry.sha256s
        for owner in owners:
            with suppress(JournalDamaged):  # of another run: the end of this one does not wait for it
                for page in receipts.decisions(owner):
                    if page.path == self.path and page.sha256 in known:
                        return StandingDecision(owner, page.sha256)
        return None

    def superseded(self, finals: Collection[str], *, has_decision: bool) -> dict[str, str]:
        """The places of this run's earlier pages, as it left them, with their SHA-256, now that its page is at one of `finals`.
        A decision is superseded by none but a decision, and another run's by nothing. Raises StorageFailed."""
        pages = {}
        for path in {self.wanted, self.beside}.difference(finals):
            entry = written_at(self._store, path)
            if entry is None or entry.run_id != self._run_id:
                continue
            with suppress(PathRefused, JournalDamaged):
                current = self._root.fingerprint(path) or ""
                receipts = Receipts(self._store)
                owners = {*receipts.newest_decision_at(path), self._run_id}
                decided = {page.sha256: owner for owner in owners for page in receipts.decisions(owner)}
                of_run = decided.get(current)
                if current in entry.sha256s and (of_run is None or (has_decision and of_run == self._run_id)):
                    pages[path] = current
        return pages

    def replaced_run(self) -> str:
        """The run whose page stands where this one is to go; empty for none. Raises StorageFailed."""
        try:
            self.settle()
        except PathRefused:
            return ""
        return self._replaced[0] if self._replaced else ""

    def _noting(self, written: OutputEntry) -> Callable[[Tx], None]:
        replaced = self._replaced

        def note(tx: Tx) -> None:
            note_written(tx, written)
            if replaced is not None:
                owner, data = replaced
                is_there = tx.execute(sql.HEADER, (owner,)).fetchone() is not None
                keep_page(tx, *((owner, _ARTIFACT) if is_there else (written.run_id, f"artifact-of-{owner}.md")), data)

        return note


def sealed(page: bytes, run_id: str) -> bytes:
    """A growing page with a last line that is wrong once anything in it was changed."""
    return b"%b%b%b -->\n" % (page, _SEAL, sha256_hex(run_id.encode() + page).encode())


def without_seal(page: bytes) -> bytes:
    return _SEALED.sub(b"\n", page)


def _beside(path: str, name: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.with_name(f"{pure.stem}.{name}{pure.suffix}"))


def point_on(root: ConfinedRoot, store: Looking, run_id: str, wanted: str, final: str) -> None:
    """A growing page that a person wrote into ends with the way to the finished one, once. Its status and its note say so,
    too, where they are still ours, byte for byte. Raises StorageFailed."""
    entry = written_at(store, wanted) if wanted != final else None
    if entry is None or entry.run_id != run_id:
        return
    link = posixpath.relpath(final, posixpath.dirname(wanted) or ".")
    pointer = f"*The run has ended. Its page is [{final}]({quote(link)}).*".encode()
    try:
        data = root.read(wanted, max_bytes=_MAX_KEPT_BYTES).data
        is_edited = sha256_hex(data) not in entry.sha256s and run_id.encode() in data  # else it is all the person's own
        if is_edited and pointer not in data:
            told = _GROWING_NOTE.sub(lambda _: b"## Superseded\n\n" + pointer, data, count=1)
            told = _GROWING_STATUS.sub(rb"\g<1>" + SUPERSEDED.encode(), told)
            root.write_atomic(wanted, without_seal(told).rstrip() + b"\n\n" + pointer + b"\n")
    except PathRefused as error:
        log.warning("%s cannot be given a link to the page of run %s: %s", wanted, run_id, error)


def keep_page(tx: Tx, owner: str, name: str, data: bytes) -> None:
    """Keeps it under `name`, or with the next number that is free where that is another page's."""
    pure, number, place = PurePosixPath(name), 0, name
    while (row := tx.execute(sql.KEPT_DATA, (owner, place)).fetchone()) is not None:
        if bytes(row[0]) == data:
            return
        number += 1
        place = f"{pure.stem}-{number}{pure.suffix}"
    tx.execute(sql.KEEP, (owner, place, data))


def keep_artifact(root: ConfinedRoot, store: Store, run_id: str, path: str, sha256: str) -> None:
    """Keeps the artifact of a run that goes on, if it still stands there unchanged. Raises StorageFailed."""
    try:
        data = root.read(path, max_bytes=_MAX_KEPT_BYTES).data
    except PathRefused:
        return  # gone, or no file any more: then a person has seen to it
    if sha256_hex(data) == sha256:
        store.write_now(lambda tx: keep_page(tx, run_id, "artifact-1.md", data))


class PlacedOutput(OutputFile):
    """The artifact of an ended run, in its place: nothing is looked at and nothing written."""

    def __init__(self, header: RunHeader, committed: Commit | None) -> None:
        self.wanted = header.output_path
        self.path = committed.files[0].final if committed is not None and committed.files else header.output_path
        self.displaced = committed.displaced if committed is not None else ""

    @property
    def beside(self) -> str:
        return self.wanted

    def grow(self, data: bytes) -> None:
        """An ended run does not grow."""
