"""Everywhere that Council keeps words, and some texts in it: found, and replaced by their marks.

Each file is rewritten whole or not at all; of a run its journal comes last, so that whatever was cut off is found again
and repeated. Changing happens in one stretch in which no other run moves, looking beside them.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from council.agents.memory import decode_session, encode_session
from council.app import App
from council.app.safekeeping import has_database
from council.commands.documents import NotACommand, read_document
from council.engine.journal import JOURNAL, FileJournal
from council.engine.outputs import OutputLedger, Written
from council.engine.receipts import ArtifactRef, Receipt
from council.engine.records import FORGOTTEN, Committed, Record, RunHeader
from council.engine.rewriting import (
    changed,
    changed_receipt,
    changed_records,
    command_held,
    moved,
    read_whole,
    with_artifact,
    write_records,
)
from council.errors import CommandInvalid, CouncilError, JournalDamaged, PathRefused
from council.ids import sha256_hex
from council.knowledge.cortex.cortex import SCOPES
from council.reports.replay import replay
from council.storage.files import rewrite
from council.upkeep.retention import PRUNED
from council.upkeep.span import Span
from council.upkeep.texts import (
    changed_file,
    changed_text,
    entries_of,
    files_below,
    owner_of,
    rewritten,
    size_of,
    text_of,
    without_command_hash,
)

if TYPE_CHECKING:
    from council.audit.log import AuditLog

log = logging.getLogger(__name__)

_MAX_ARTIFACT_BYTES = 64 << 20
_MAX_FOREIGN_BYTES = 16 << 20  # a larger document is not looked into, and that is said
_MAX_FOREIGN_FILES = 200_000
_INDEX_PATIENCE_S = 10.0
_NOTE_ENDING = ".error.md"  # our notes beside files that could not become runs
# Below `.council/`: what is looked at in its own way, or is no text.
_NOT_THE_REST = frozenset({
    "runs", "receipts", "memory", "logs", "cortex", "outputs", "active", "lock", "forgotten",
    "ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm",
    "council.db", "council.db-wal", "council.db-shm",
})  # fmt: skip
Counts = dict[str, int]
_Stamp = tuple[int, int, int]


class CannotForget(CouncilError):
    """Something stands in the way; nothing was changed, or what was can be repeated."""

    code = "cannot_forget"
    http_status = 409


class Left(msgspec.Struct, frozen=True):
    """Files that still hold a text and are a person's, and how many could not be looked into."""

    paths: tuple[str, ...] = ()
    unseen: int = 0


class Traces:
    """The texts in one home. Neither `look` nor `left` changes anything: they may run in a thread."""

    def __init__(self, app: App, run_id: str, spans: Sequence[Span]) -> None:
        """`run_id` is the forgetting run, whose own files hold none of it."""
        self._app = app
        self._home = app.home
        self._run_id = run_id
        self._spans = tuple(spans)
        self._ours = OutputLedger(app.home.runtime / "outputs")
        self._free: dict[Path, _Stamp] = {}  # files without the texts, as they looked when they were read

    def require_no_unfinished_run(self) -> None:
        """Raises CannotForget: its journal is being written, and its agents have read the text."""
        unfinished = {marker.name for marker in entries_of(self._home.runtime / "active")} | set(
            self._app.engine.active
        )
        for run_id in sorted(unfinished - {self._run_id}):
            if any(self._is_in(path) for path in files_below(self._home.runs / run_id)):
                raise CannotForget(
                    f"the unfinished run {run_id} holds what is to be forgotten.",
                    fix=f"wait for its end or `council cancel {run_id}`, then forget again",
                )

    def look(self) -> Counts:
        """In how many files of each kind the texts are; of a run everything counts as one."""
        entries = self._ours.entries()
        return {
            "runs": sum(any(self._is_in(path) for path in files_below(folder)) for folder in self._run_folders()),
            "artifacts": sum(self._artifact_holds(entry) for entry in entries),
            "receipts": sum(self._is_in(path) for path in self._receipts()),
            "memory": sum(self._is_in(path) for path in self._memories()),
            "logs": sum(self._is_in(path) for path in files_below(self._home.log_file.parent)),
            "other": sum(self._is_in(path) for path in self._rest()),
            "audit": len(self._audit.holding(self._holds, self._held_runs())) if self._audit is not None else 0,
        }

    async def remove(self) -> bool:
        """Whether anything was changed. Raises CannotForget, StorageFailed."""
        for hidden in self._home.runs.glob(f"{PRUNED}*"):
            shutil.rmtree(hidden)
        done = [await asyncio.to_thread(self._in_audit)]  # first: it needs to know which runs held a text
        done += [await self._in_run(folder) for folder in self._run_folders()]
        done += [self._in_receipt(path) for path in self._receipts()]
        done += [self._in_artifact(entry) for entry in self._ours.entries()]
        done += [self._in_memory(path) for path in self._memories()]
        done += [self._in_file(path) for path in files_below(self._home.log_file.parent)]
        done += [self._in_rest(path) for path in self._rest()]
        self._app.ledger.change_texts(self.change, lambda path: moved(path, self.change))
        return any(done)

    def left(self) -> Left:
        """A person's files of the home that hold a text. Names hold none of it: they are going into a receipt."""
        mine = {f"commands/{run.header.file.name}" for run in self._app.engine.active.values() if _forgets(run.header)}
        paths, unseen = [], 0
        walk = self._app.root.walk(max_entries=_MAX_FOREIGN_FILES, skip={".council", ".git"}.__contains__)
        try:
            for name in walk:
                path = self._home.root / name
                if size_of(path) > _MAX_FOREIGN_BYTES:
                    unseen += 1
                elif name not in mine and not _is_session(name) and self._is_in(path):
                    paths.append(self.change(name))
        except PathRefused as error:
            if error.reason != "too_many":
                raise
            unseen += 1
        return Left(tuple(paths), unseen)

    def lanes(self) -> int:
        """How many lanes have a name that holds a text. It stays: it is how their runs and memories are found."""
        return sum(
            path.is_dir() and self.change(path.name) != path.name for path in entries_of(self._home.session_states)
        )

    def rebuild_indexes(self) -> None:
        """So that no deleted passage stays in them. Raises DaemonRunning, StorageFailed."""
        for scope in SCOPES:
            if (self._home.runtime / "cortex" / scope).exists():
                self._app.cortex.refresh(scope, rebuild=True, patience_s=_INDEX_PATIENCE_S)

    # ── the audit ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _audit(self) -> AuditLog | None:
        """None where nothing was ever recorded."""
        return self._app.audit.log() if has_database(self._home, self._app.settings) else None

    def _in_audit(self) -> bool:
        """Its words, and the hashes of what runs left that held a text: the text could be guessed from them."""
        audit = self._audit
        return audit is not None and audit.forget(self._holds, self._run_id, self._held_runs()) > 0

    def _held_runs(self) -> set[str]:
        folders = (folder for folder in self._run_folders() if any(self._is_in(path) for path in files_below(folder)))
        receipts = (path for path in self._receipts() if self._is_in(path))
        return {folder.name for folder in folders} | {path.stem for path in receipts}

    def _holds(self, text: str) -> bool:
        return any(span.is_in(text) for span in self._spans)

    # ── where ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _run_folders(self) -> Iterator[Path]:
        """Of all ended runs: unfinished ones hold none of it."""
        for folder in entries_of(self._home.runs):
            if not folder.name.startswith(".") and folder.name not in self._app.engine.active:
                yield folder

    def _receipts(self) -> Iterator[Path]:
        return files_below(self._home.receipts)

    def _memories(self) -> Iterator[Path]:
        for folder in (self._home.session_states, self._home.runtime / "memory"):
            yield from (path for path in files_below(folder) if path.name != "README.md")

    def _rest(self) -> Iterator[Path]:
        """What else is ours: markers, bindings, views, runs set aside; in `commands/` notes, and forget commands that
        could not become runs."""
        for entry in entries_of(self._home.runtime):
            if entry.name not in _NOT_THE_REST:
                yield from files_below(entry) if entry.is_dir() else [entry]
        for path in files_below(self._home.commands):
            if path.name.endswith(_NOTE_ENDING) or (path.parent == self._home.failed and _is_forget_command(path)):
                yield path

    # ── runs and what they left ──────────────────────────────────────────────────────────────────────────────────────

    async def _in_run(self, folder: Path) -> bool:
        """The journal and the page that it makes, then whatever lies beside it: earlier attempts, damaged journals."""
        held = [path for path in files_below(folder) if self._is_in(path)]
        journal = folder / JOURNAL
        recorded = [path for path in held if path == journal or path.parent.name == "blobs"]
        done = [bool(recorded) and await self._in_journal(journal)]
        beside = [path for path in held if path not in recorded]
        done += [self._in_page(path) if _is_kept_page(path, folder) else self._in_file(path) for path in beside]
        return any(done)

    async def _in_journal(self, path: Path) -> bool:
        run_id = path.parent.name
        try:
            before = read_whole(path)
            after = changed_records(path, before, self.change)
        except JournalDamaged:  # then it stays damaged, without the text
            return sum(self._in_file(found) for found in files_below(path.parent)) > 0
        header = before[0]
        assert isinstance(header, RunHeader)
        receipt = self._app.receipts.read(run_id)
        commits = [record for record in before if isinstance(record, Committed)]
        if receipt is None and commits:
            raise CannotForget(f"run {run_id} has no receipt.", fix="stop the daemon, `council repair`, start it again")
        if receipt is not None:
            held = command_held(header, self.change)
            if receipt.artifact is not None and commits:
                known = {commits[-1].files[0].sha256, receipt.artifact.sha256}
                page = await self._page(path, after, receipt.artifact.path, known)
                self._replace_artifact(run_id, receipt.artifact.path, known, page)
                sha256 = FORGOTTEN if page is None else sha256_hex(page)
                after = with_artifact(after, sha256)
                receipt = msgspec.structs.replace(receipt, artifact=ArtifactRef(receipt.artifact.path, sha256))
            self._write_receipt(receipt, held)
            self._unbind(header, held)
        return write_records(path, after)

    async def _page(self, path: Path, records: list[Record], artifact: str, known: set[str]) -> bytes | None:
        """The page as the changed journal renders it; where it cannot be rendered any more (another version wrote it), the
        page that stands there, the texts replaced in it; None when that is not the run's own either."""
        try:
            return await replay(FileJournal(path, records, None), self._app.handlers)
        except Exception as error:  # noqa: BLE001  whatever stands in the way of rendering, the text has to go
            kind = type(error).__name__
            log.warning("run %s cannot be rendered again (%s): its page is changed as it is", path.parent.name, kind)
        if self._hash(artifact) not in known:
            return None
        return without_command_hash(self._without(self._app.root.read(artifact, max_bytes=_MAX_ARTIFACT_BYTES).data))

    def _replace_artifact(self, run_id: str, path: str, known: set[str], page: bytes | None) -> None:
        """Only where the run's own page stands unchanged, and where it was kept before another run's took its place."""
        if page is None:
            return
        here = self._hash(path)
        if here is not None and here in known:
            self._place(run_id, path, here, page)
        for kept in sorted((self._home.runs / run_id).glob("artifact*.md")):
            if sha256_hex(kept.read_bytes()) in known:
                rewrite(kept, page)

    def _place(self, run_id: str, path: str, current: str, page: bytes) -> None:
        """The page, at its path without the texts, known as ours whatever dies when. Raises CannotForget."""
        target, sha256 = moved(path, self.change), sha256_hex(page)
        if target != path and self._hash(target) not in (None, sha256):
            raise CannotForget(f"{path} cannot become {target}: that is there.", fix=f"move {target} away")
        if target != path or current != sha256:
            self._ours.note(target, run_id, sha256, current=current if target == path else None, sync=True)
            self._app.root.write_atomic(target, page)
        self._ours.note(target, run_id, sha256, current=None, sync=True)  # the hash of what stood there goes, too
        if target != path:
            self._app.root.unlink(path)
            self._ours.drop(path)

    def _hash(self, path: str) -> str | None:
        """None when nothing is there, empty when what is there is no file."""
        try:
            return self._app.root.sha256(path)
        except PathRefused:
            return ""

    def _artifact_holds(self, entry: Written) -> bool:
        return moved(entry.path, self.change) != entry.path or (
            self._is_in(self._home.root / entry.path) and self._hash(entry.path) in entry.sha256s
        )

    def _in_artifact(self, entry: Written) -> bool:
        """A page of ours whose journal was pruned: the texts are replaced in the page."""
        if not self._artifact_holds(entry):
            return False
        try:
            before = self._app.root.read(entry.path, max_bytes=_MAX_ARTIFACT_BYTES).data
        except PathRefused:
            before = b""
        if sha256_hex(before) not in entry.sha256s:  # gone, or a person's by now: only its name was held
            self._ours.drop(entry.path)
            return True
        page = without_command_hash(self._without(before))
        self._place(entry.run_id, entry.path, sha256_hex(before), page)
        receipt = self._app.receipts.read(entry.run_id)
        if receipt is not None and receipt.artifact == ArtifactRef(entry.path, sha256_hex(before)):
            reference = ArtifactRef(entry.path, sha256_hex(page))
            self._write_receipt(msgspec.structs.replace(receipt, artifact=reference), held=False)
        return True

    def _in_page(self, path: Path) -> bool:
        """A page that was kept before another one took its place."""
        before = path.read_bytes()
        return self._is_in(path) and rewritten(path, before, without_command_hash(self._without(before)))

    # ── receipts and ids ─────────────────────────────────────────────────────────────────────────────────────────────

    def _in_receipt(self, path: Path) -> bool:
        """Of a run whose journal was pruned nobody knows what its command held: then its hashes go."""
        if not self._is_in(path):
            return False
        receipt = self._app.receipts.read(path.stem) if path.suffix == ".json" else None
        if receipt is None:
            return self._in_file(path)
        if receipt.id is not None:
            self._app.receipts.forget_command(receipt.id, receipt.run_id, self.change(receipt.id))
        return self._write_receipt(receipt, held=True)

    def _write_receipt(self, receipt: Receipt, held: bool) -> bool:
        after = changed_receipt(receipt, self.change, command_held=held)
        if after == self._app.receipts.read(receipt.run_id):
            return False
        self._app.receipts.rewrite(after)
        return True

    def _unbind(self, header: RunHeader, held: bool) -> None:
        id_ = header.command.get("id")
        if held and isinstance(id_, str):
            self._app.receipts.forget_command(id_, header.run_id, self.change(id_))

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _in_memory(self, path: Path) -> bool:
        if not path.name.endswith("_session.json") or not self._is_in(path):
            return self._in_file(path)
        before = path.read_bytes()
        session, _ = decode_session(before, *owner_of(path))
        if session is None:
            return self._in_file(path)
        kept = msgspec.convert(changed(msgspec.to_builtins(session), self.change), type(session))
        return rewritten(path, before, encode_session(kept))

    def _in_rest(self, path: Path) -> bool:
        if not self._is_in(path):
            return False
        if path.parent == self._home.failed and not path.name.endswith(_NOTE_ENDING):
            path.unlink()
            return True
        if path.name.startswith("ledger.sqlite"):  # a damaged one that was moved aside; its rows are in the receipts
            path.unlink()
            return True
        return self._in_file(path)

    def _in_file(self, path: Path) -> bool:
        """Any file of ours: the texts in JSON, in lines of JSON, or in plain text."""
        if not self._is_in(path):
            return False
        before = path.read_bytes()
        return rewritten(path, before, changed_file(path.name, before, self.change))

    # ── the texts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def change(self, text: str) -> str:
        """`text` with every span replaced by its mark."""
        for span in self._spans:
            text = span.without(text)
        return text

    def _without(self, data: bytes) -> bytes:
        return changed_text(data, self.change)

    def _is_in(self, path: Path) -> bool:
        """Files are looked into once, as long as they do not change."""
        try:
            status = path.stat()
            stamp = (status.st_ino, status.st_ctime_ns, status.st_size)
            if self._free.get(path) == stamp:
                return False
            text = text_of(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return False
        if any(span.is_in(text) for span in self._spans):
            return True
        self._free[path] = stamp
        return False


def _is_session(name: str) -> bool:
    """Ours: what it still holds is the name of its lane."""
    return name.startswith("session_states/") and name.endswith("_session.json")


def _forgets(header: RunHeader) -> bool:
    return header.type == "forget"


def _is_kept_page(path: Path, folder: Path) -> bool:
    return path.parent == folder and path.name.startswith("artifact") and path.suffix == ".md"


def _is_forget_command(path: Path) -> bool:
    try:
        value: Any = read_document(path.name, path.read_bytes()).value
    except (CommandInvalid, NotACommand, FileNotFoundError):
        return False
    return isinstance(value, dict) and value.get("type") == "forget"
