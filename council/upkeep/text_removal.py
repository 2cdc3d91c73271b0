"""Everywhere that Council keeps words, and some texts in it: found, and replaced by their marks.

Each file is rewritten whole or not at all. Of a run its journal comes last, so that whatever was cut off is found again and
repeated. Looking happens in a thread, beside the runs, once for what does not change. Only while a memory or a page is changed
does no other run end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from council.agents.memory import COPIES
from council.agents.session_file import SESSION_ENDING, decode_session, encode_session
from council.commands.file_formats import NotACommand, read_document
from council.engine import journal_rewriting
from council.engine import statements as sql
from council.engine.outputs import OutputEntry, all_written, kept_data, kept_names, note_written, written_at
from council.engine.receipts import ArtifactRef, Receipt, rewrite_receipt
from council.engine.records import FORGOTTEN, Commit, Record, RunHeader
from council.engine.run_records import JournalRow, RunRecords, header_of, record_of, rows_of
from council.engine.runs import ActiveRun, Run
from council.errors import CommandInvalid, CouncilError, PathRefused
from council.ids import sha256_hex
from council.knowledge.cortex.cortex import SCOPES
from council.reports.past_run import replay
from council.storage.command_drop import NOTE_ENDING
from council.storage.store import Tx
from council.storage.versions import DATABASE_FILE
from council.systems import Core
from council.typed_json import convert
from council.upkeep.copies import CHANGING, copies_of, half_copies, renew_copies, set_aside
from council.upkeep.forgotten_text import NameSpan, Span
from council.upkeep.table_words import change_words, count_words
from council.upkeep.text_files import (
    changed_file,
    changed_text,
    entries_of,
    files_below,
    is_database,
    owner_of,
    rewritten,
    size_of,
    text_of,
    without_command_hash,
)

log = logging.getLogger(__name__)

_MAX_ARTIFACT_BYTES = 64 << 20
_MAX_FOREIGN_BYTES = 16 << 20  # a larger document is not looked into, and that is said
_MAX_FOREIGN_FILES = 200_000
_INDEX_PATIENCE_S = 10.0
# Below `.council/`: what is looked at in its own way, or is no text.
_NOT_THE_REST = frozenset({"logs", "cortex", "lock", "forgotten", "copies"})
_PAGE = 200  # runs at a time
Counts = dict[str, int]
_Stamp = tuple[int, int, int]
_RunStamp = tuple[int, int]  # when it ended, how many pages are kept of it


@dataclass(frozen=True)
class _EndedRun:
    """A run with a text in what is recorded of it, or in a page that was kept of it (`held`), or in its receipt."""

    run: int
    run_id: str
    held: bool
    in_receipt: bool


class CannotForget(CouncilError):
    """Something stands in the way; nothing was changed, or what was can be repeated."""

    code = "cannot_forget"
    http_status = 409


def unended(run_id: str) -> CannotForget:
    fix = f"wait for its end or `council cancel {run_id}`, then forget it again"
    return CannotForget(f"run {run_id} has not ended.", fix=fix)


def _holding(run: Run) -> CannotForget:
    fix = f"wait for its end or `council cancel {run.id}`, then forget again"
    return CannotForget(f"the unfinished run {run.id} has the text to forget.", fix=fix)


class Remains(msgspec.Struct, frozen=True):
    """Files that still hold a text and are a person's, and how many could not be looked into."""

    paths: tuple[str, ...] = ()
    unseen: int = 0


class Traces:
    """The texts in one home. `look`, `left` and `reports_on` change nothing: they may run in a thread."""

    def __init__(self, core: Core, run: Run, spans: Sequence[Span | NameSpan]) -> None:
        """`run` is the forgetting one, whose own files hold none of it."""
        self._core = core
        self._home = core.home
        self._store = core.store
        self._beside = run.runs
        self._run_id, self._type = run.id, run.header.type
        self._spans = tuple(spans)
        # Files and ended runs without the texts, as they looked when they were read.
        self._free: dict[Path, _Stamp] = {}
        self._free_runs: dict[int, _RunStamp] = {}
        self._free_copies: dict[str, str] = {}  # their sha256
        self._free_rows: dict[str, int] = {}  # of unfinished runs: the last row that was read

    async def require_in_no_unfinished_run(self) -> None:
        """Raises CannotForget where the journal or the command of a run that goes on has a text: its agents have read it."""
        self._free_rows.clear()
        for run in self._unfinished():
            if await asyncio.to_thread(self._is_in_unfinished, run):
                raise _holding(run)

    def _unfinished(self) -> list[ActiveRun]:
        return [run for run_id, run in sorted(self._beside.active.items()) if run_id != self._run_id]

    def _is_in_unfinished(self, run: ActiveRun) -> bool:
        last = self._free_rows.get(run.id)
        if last is None and self._holds(msgspec.json.encode(run.header).decode()):
            return True
        with self._store.reading() as tx:
            rows = rows_of(tx, run.number, after=last or 0)
            if self._held(rows):
                return True
        self._free_rows[run.id] = rows[-1][0] if rows else last or 0
        return False

    def look(self) -> Counts:
        """Counts the files and rows of each kind that hold the texts. Of a run everything counts as one."""
        runs = list(self._runs())
        with self._store.reading() as tx:
            words = count_words(tx, self._core.tables, self.change)
        return {
            "runs": sum(one.held for one in runs),
            "artifacts": len(self._held_artifacts()),
            "receipts": sum(one.in_receipt for one in runs),
            "memory": len(self._held_memories()) + len(self._held_copies()),
            "logs": sum(self._is_in(path) for path in files_below(self._home.log_file.parent)),
            "other": sum(self._is_in(path) for path in self._rest()) + words,
            "audit": len(self._core.audit.log().holding(self._holds, {one.run_id for one in runs if one.held})),
        }

    async def remove(self) -> bool:
        """Removes them; True when anything was changed. Raises CannotForget, StorageFailed."""
        done: list[bool] = []
        # Memory first. What has no text is looked for beside the runs, and is then known.
        await asyncio.to_thread(lambda: (self._held_memories(), self._held_copies()))
        async with self._beside.stillness():
            # Nothing is awaited from here on, so that no run reads a memory in between: one that has the text from it by now
            # is named while all stands as it was, and one that reads it from now on is not given the text any more.
            # NOTE: a run that has read it and has recorded nothing yet is named in the next pass.
            for run in self._unfinished():  # what was recorded since they were looked at: that is little
                if self._is_in_unfinished(run):
                    raise _holding(run)
            done += [rewritten(*self._changed_file(path)) for path in self._held_memories()]
            done += [self._in_copy(name) for name in self._held_copies()]
        found = await asyncio.to_thread(lambda: list(self._runs()))
        run_ids = {one.run_id for one in found}
        done.append(await asyncio.to_thread(self._core.audit.log().forget, self._holds, self._run_id, run_ids) > 0)
        for one in reversed(found):  # what a run was given of memory stands in an earlier one: there it is found again
            async with self._beside.stillness():  # one that goes on again is told of in the next pass
                done.append(one.run_id in self._beside.active or await self._in_run(one))
        for entry in await asyncio.to_thread(self._held_artifacts):
            async with self._beside.stillness():
                done.append(self._in_artifact(entry.path))
        done += [rewritten(*change) for change in await asyncio.to_thread(self._other_changes)]
        change = partial(change_words, self._store, self._core.tables, self.change)
        done.append(await asyncio.to_thread(change) > 0)
        return any(done)

    def sweep(self, may_be_in: Callable[[Path], bool]) -> None:
        """Clears the database's files and daily copies of what rows said; a file that a restore set aside goes. The database is
        written anew where `may_be_in` finds that something is left between its rows. Its copy is searched for that, since
        `is_database` tells why the file itself is not opened. Raises StorageFailed."""
        with CHANGING:
            self._store.sweep()
            if self._store.is_sqlite:
                renew = partial(renew_copies, self._home, self._core.clock.now(), without=self._run_id)
                had_copies = bool(copies_of(self._home))
                copy = renew()
                if may_be_in(copy):
                    self._store.rebuild()
                    self._store.sweep()
                    if had_copies:
                        renew()
                if not had_copies:
                    copy.unlink()
            for path in [*set_aside(self._home), *half_copies(self._home)]:
                path.unlink(missing_ok=True)

    def set_aside(self) -> tuple[str, ...]:
        """Databases that a restore set aside: `sweep` deletes them."""
        return tuple(self._named(path for path in set_aside(self._home) if is_database(path)))

    def databases(self) -> tuple[str, ...]:
        """SQLite files in `.council/` that are none of ours: what they hold is not looked at, and they stay."""
        ours = {*copies_of(self._home), *half_copies(self._home), *set_aside(self._home)}
        others = (path for path in files_below(self._home.runtime) if path not in ours)
        return tuple(self._named(filter(is_database, others)))

    def _named(self, paths: Iterable[Path]) -> Iterator[str]:
        return (self.change(path.relative_to(self._home.root).as_posix()) for path in sorted(paths))

    def left(self) -> Remains:
        """A person's files of the home that hold a text. Names hold none of it: they are going into a receipt."""
        active = [run.header for run in self._beside.active.values()]
        mine = {f"commands/{header.file.name}" for header in active if header.type == self._type}

        def is_foreign(name: str) -> bool:
            return name not in mine and not (name.startswith("session_states/") and name.endswith(SESSION_ENDING))

        return self._remains(is_foreign, self._is_in)

    def reports_on(self, run_id: str) -> Remains:
        """The HTML reports on a run that somebody wrote into the home."""
        ending = f"from the journal of run {run_id};".encode()  # of `report.html`
        return self._remains(lambda name: name.lower().endswith(".html"), lambda path: ending in path.read_bytes())

    def _remains(self, is_meant: Callable[[str], bool], is_held: Callable[[Path], bool]) -> Remains:
        paths, unseen = [], 0
        walk = self._core.root.walk(max_entries=_MAX_FOREIGN_FILES, skip={".council", ".git"}.__contains__)
        try:
            for name in filter(is_meant, walk):
                path = self._home.root / name
                try:
                    if size_of(path) > _MAX_FOREIGN_BYTES:
                        unseen += 1
                    elif is_held(path):
                        paths.append(self.change(name))
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError:
                    unseen += 1
        except PathRefused as error:
            if error.reason != "too_many":
                raise
            unseen += 1
        return Remains(tuple(paths), unseen)

    def lanes(self) -> int:
        """The number of lanes whose name holds a text. It stays: it is how their runs and memories are found."""
        lanes = [path.name for path in entries_of(self._home.session_states) if path.is_dir()]
        return sum(self.change(name) != name for name in lanes)

    def rebuild_indexes(self) -> None:
        """Builds them anew, so that no deleted passage stays in them. Raises DaemonRunning, StorageFailed."""
        for scope in SCOPES:
            if (self._home.runtime / "cortex" / scope).exists():
                self._core.cortex.refresh(scope, rebuild=True, patience_s=_INDEX_PATIENCE_S)

    # ── where ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _holds(self, text: str) -> bool:
        return any(span.is_in(text) for span in self._spans)

    def _runs(self) -> Iterator[_EndedRun]:
        """The ended runs with a text: unfinished ones hold none of it. One without is looked into once, as long as it does not
        change."""
        last = 0
        while True:
            with self._store.reading() as tx:
                rows = tx.execute(sql.ENDED_RUNS, (last, _PAGE)).fetchall()
                unknown = [row[:2] for row in rows if self._free_runs.get(row[0]) != tuple(row[2:])]
                found = [self._ended_run(tx, run, run_id) for run, run_id in unknown]
            if not rows:
                return
            stamps = {run: (ended_ns, kept) for run, _, ended_ns, kept in rows}
            for one in found:
                if one.held or one.in_receipt:
                    yield one
                else:
                    self._free_runs[one.run] = stamps[one.run]
            last = rows[-1][0]

    def _ended_run(self, tx: Tx, run: int, run_id: str) -> _EndedRun:
        header, receipt = tx.execute(sql.WORDS_OF_RUN, (run_id,)).fetchone()
        pages = tx.execute(sql.KEPT_BYTES, (run_id,)).fetchall()
        held = header is not None and (self._holds(header) or self._held(rows_of(tx, run)))
        held = held or any(self._holds(text_of(bytes(row[0]))) for row in pages)
        return _EndedRun(run, run_id, held, self._holds(receipt or ""))

    def _held(self, rows: Iterable[tuple[int, JournalRow]]) -> bool:
        return any(self._holds(row.out) or self._holds(row.name) for _, row in rows)

    def _held_memories(self) -> list[Path]:
        memories = (path for path in files_below(self._home.session_states) if path.name != "README.md")
        return [path for path in memories if self._is_in(path)]

    def _held_copies(self) -> list[str]:
        held = []
        for name in kept_names(self._store, COPIES):
            data = kept_data(self._store, COPIES, name) or b""
            stamp = sha256_hex(data)
            if self._free_copies.get(name) == stamp:
                continue
            if self._holds(text_of(data)):
                held.append(name)
            else:
                self._free_copies[name] = stamp
        return held

    def _in_copy(self, name: str) -> bool:
        before = kept_data(self._store, COPIES, name) or b""
        after = self._session_without(before, *owner_of(Path(name)))
        after = changed_text(before, self.change) if after is None else after
        self._store.write_now(lambda tx: tx.execute(sql.KEEP, (COPIES, name, after)))
        return after != before

    def _rest(self) -> Iterator[Path]:
        """The rest that is ours: marks, views; in `commands/` notes, and forget commands that were refused."""
        for entry in entries_of(self._home.runtime):
            if entry.name not in _NOT_THE_REST and not entry.name.startswith(DATABASE_FILE):
                files = files_below(entry) if entry.is_dir() else [entry]
                yield from (path for path in files if not is_database(path))
        for path in files_below(self._home.commands):
            if path.name.endswith(NOTE_ENDING):
                yield path
            elif path.parent == self._home.failed:
                with contextlib.suppress(CommandInvalid, NotACommand, FileNotFoundError):
                    value: Any = read_document(path.name, path.read_bytes()).value
                    if isinstance(value, dict) and value.get("type") == "forget":
                        yield path

    # ── runs and what they left ──────────────────────────────────────────────────────────────────────────────────────

    async def _in_run(self, found: _EndedRun) -> bool:
        """The page, then journal and receipt: what is cut off is found again. False where only a lane's name holds it."""

        def look() -> tuple[list[int], list[Record]] | None:
            with self._store.reading() as tx:
                row = tx.execute(sql.HEADER, (found.run_id,)).fetchone()
                rows = rows_of(tx, found.run)
            if row is None:
                return None
            records = [header_of(row[1], found.run_id), *(record_of(each, found.run_id) for _, each in rows)]
            return [seq for seq, _ in rows], records

        numbered = await asyncio.to_thread(look)
        receipt = before_receipt = self._core.receipts.read(found.run_id)
        if numbered is None:
            return receipt is not None and self._in_receipt(receipt)
        seqs, before = numbered
        header = before[0]
        assert isinstance(header, RunHeader)
        names = self._core.commands.keys_of_names(header.type)
        after = await asyncio.to_thread(journal_rewriting.changed_records, before, names, self.change)
        held = journal_rewriting.command_held(header, names, self.change)
        commits = [record for record in before if isinstance(record, Commit)]
        known: set[str] = set()
        page = None
        if receipt is not None and receipt.artifact is not None and commits:
            path = receipt.artifact.path
            known = {commits[-1].files[0].sha256, receipt.artifact.sha256}
            page = await self._page(found.run_id, after, path, known)
            here = self._core.root.fingerprint(path)
            if page is not None and here is not None and here in known:  # the run's own page stands unchanged
                self._place(found.run_id, path, here, page)
            sha256 = FORGOTTEN if page is None else sha256_hex(page)
            after = journal_rewriting.with_artifact(after, sha256)
            receipt = msgspec.structs.replace(receipt, artifact=ArtifactRef(path, sha256))
        new_receipt = receipt and journal_rewriting.changed_receipt(receipt, self.change, command_held=held)

        def write(tx: Tx) -> bool:
            """True when a page that was kept has changed."""
            journal_rewriting.write_records(tx, found.run, seqs, after)
            tx.execute(sql.REWRITE_HEADER, (msgspec.json.encode(after[0]).decode(), found.run_id))
            if new_receipt is not None:
                rewrite_receipt(tx, new_receipt)
            changed_pages = False
            for name, data in tx.execute(sql.KEPT_OF, (found.run_id,)).fetchall():
                same = page is not None and sha256_hex(bytes(data)) in known
                kept = page if same else without_command_hash(changed_text(bytes(data), self.change))
                changed_pages = changed_pages or kept != bytes(data)
                tx.execute(sql.KEEP, (found.run_id, name, kept))
            return changed_pages

        changed_pages = self._store.write_now(write)
        id_ = header.command.get("id")
        if held and isinstance(id_, str):
            self._core.receipts.forget_command(found.run_id, self.change(id_))
        return (
            changed_pages or new_receipt != before_receipt or msgspec.json.encode(after) != msgspec.json.encode(before)
        )

    def _in_receipt(self, receipt: Receipt) -> bool:
        """Changes the receipt of a run whose journal is gone. Nobody knows what its command held, so its hashes go."""
        if receipt.id is not None:
            self._core.receipts.forget_command(receipt.run_id, self.change(receipt.id))
        after = journal_rewriting.changed_receipt(receipt, self.change, command_held=True)
        self._core.receipts.rewrite(after)
        return after != receipt

    async def _page(self, run_id: str, records: list[Record], artifact: str, known: set[str]) -> bytes | None:
        """The page as the changed journal renders it. Where it cannot be rendered any more (another version wrote it), it is the
        page that stands there, the texts replaced in it. None when that is not the run's own either."""
        header = records[0]
        assert isinstance(header, RunHeader)
        try:
            return await replay(RunRecords(header, records[1:]), self._beside.handlers)
        except Exception as error:  # noqa: BLE001  whatever stands in the way of rendering, the text has to go
            kind = type(error).__name__
            log.warning("run %s cannot be rendered again (%s): its page is edited instead", run_id, kind)
        if self._core.root.fingerprint(artifact) not in known:
            return None
        data = self._core.root.read(artifact, max_bytes=_MAX_ARTIFACT_BYTES).data
        return without_command_hash(changed_text(data, self.change))

    def _place(self, run_id: str, path: str, current: str, page: bytes) -> None:
        """The page, at its path without the texts, known as ours whatever dies when. Raises CannotForget."""
        target, sha256 = journal_rewriting.moved(path, self.change), sha256_hex(page)
        if target != path and self._core.root.fingerprint(target) not in (None, sha256):
            raise CannotForget(f"{path} cannot become {target}: that already exists.", fix=f"move {target} away")
        if target != path or current != sha256:
            both = (sha256, current) if target == path else (sha256,)
            self._store.write_now(lambda tx: note_written(tx, OutputEntry(target, run_id, both)))
            self._core.root.write_atomic(target, page)
        # The hash of what stood there goes, too.
        self._store.write_now(lambda tx: note_written(tx, OutputEntry(target, run_id, (sha256,))))
        if target != path:
            self._core.root.unlink(path)
            self._drop_written(path)

    def _drop_written(self, path: str) -> None:
        self._store.write_now(lambda tx: tx.execute(sql.DROP_WRITTEN, (path,)))

    def _artifact_holds(self, entry: OutputEntry) -> bool:
        if journal_rewriting.moved(entry.path, self.change) != entry.path:
            return True
        return self._is_in(self._home.root / entry.path) and self._core.root.fingerprint(entry.path) in entry.sha256s

    def _held_artifacts(self) -> list[OutputEntry]:
        return [entry for entry in all_written(self._store) if self._artifact_holds(entry)]

    def _in_artifact(self, path: str) -> bool:
        """A page of ours whose journal was pruned: the texts are replaced in the page."""
        entry = written_at(self._store, path)
        if entry is None or not self._artifact_holds(entry):
            return False
        try:
            before = self._core.root.read(entry.path, max_bytes=_MAX_ARTIFACT_BYTES).data
        except PathRefused:
            before = b""
        if sha256_hex(before) not in entry.sha256s:  # gone, or a person's by now: only its name was held
            self._drop_written(entry.path)
            return True
        page = without_command_hash(changed_text(before, self.change))
        self._place(entry.run_id, entry.path, sha256_hex(before), page)
        receipt = self._core.receipts.read(entry.run_id)
        if receipt is not None and receipt.artifact == ArtifactRef(entry.path, sha256_hex(before)):
            reference = ArtifactRef(entry.path, sha256_hex(page))
            receipt = msgspec.structs.replace(receipt, artifact=reference)
            self._core.receipts.rewrite(journal_rewriting.changed_receipt(receipt, self.change, command_held=False))
        return True

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _other_changes(self) -> list[tuple[Path, bytes, bytes]]:
        """Of logs, and of the rest that is ours. A forget command goes at once."""
        found = []
        for path in (*files_below(self._home.log_file.parent), *self._rest()):
            with contextlib.suppress(FileNotFoundError):
                if not self._is_in(path):
                    continue
                found.append(self._changed_file(path))
                if path.parent == self._home.failed and not path.name.endswith(NOTE_ENDING):
                    path.unlink()
        return found

    def _changed_file(self, path: Path) -> tuple[Path, bytes, bytes]:
        """Any file of ours, before and after: the texts in memory, in JSON, in lines of JSON, or in plain text."""
        before = path.read_bytes()
        after = self._session_without(before, *owner_of(path)) if path.name.endswith(SESSION_ENDING) else None
        return path, before, changed_file(path.name, before, self.change) if after is None else after

    def _session_without(self, data: bytes, role: str, lane: str) -> bytes | None:
        session, _ = decode_session(data, role, lane)
        if session is None:
            return None
        changed = journal_rewriting.changed(msgspec.to_builtins(session), self.change)
        return encode_session(convert(changed, type(session)))

    # ── the texts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def change(self, text: str) -> str:
        """`text` with every span replaced by its mark."""
        for span in self._spans:
            text = span.without(text)
        return text

    def _is_in(self, path: Path) -> bool:
        """Files are looked into once, as long as they do not change."""
        try:
            status = path.stat()
            stamp = (status.st_ino, status.st_ctime_ns, status.st_size)
            if self._free.get(path) == stamp:
                return False
            if self._holds(text_of(path.read_bytes())):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        self._free[path] = stamp
        return False
