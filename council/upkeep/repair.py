"""`council repair`: finds what a crash or a hand left inconsistent in `.council/`, mends what can be mended from journals
and receipts, and names the rest. Only for who holds the home's lock. Deletes nothing that holds a record.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from council.agents.memory import decode_session
from council.engine.folders import SPARE
from council.engine.journal import JOURNAL, FileJournal
from council.engine.ledger import Entry, Ledger, found_on_disk
from council.engine.receipts import IdBinding, Receipt, Receipts
from council.errors import JournalDamaged, StorageFailed
from council.settings import Home
from council.upkeep.retention import PRUNED


@dataclass(frozen=True)
class Finding:
    """Something out of order. `done` says what was done (or would be, in a dry run); empty: it is left, and `fix` says
    what a person can do."""

    what: str
    done: str = ""
    fix: str = ""


class Repair:
    """One look over a home."""

    def __init__(self, home: Home, receipts: Receipts, ledger: Ledger, *, dry_run: bool, set_aside: bool) -> None:
        """`dry_run` changes nothing. `set_aside` moves runs with damaged journals to `.council/damaged/`."""
        self._home = home
        self._receipts = receipts
        self._ledger = ledger
        self._dry_run = dry_run
        self._set_aside = set_aside
        self._active = home.runtime / "active"
        self._temporaries = list(_temporaries(home))  # before anything here writes files of its own

    def findings(self) -> Iterator[Finding]:
        """Everything found, each mended before the next is looked for. Raises StorageFailed."""
        yield from self._unfinished_work()
        yield from self._damaged_receipts()
        yield from self._runs()
        yield from self._markers()
        yield from self._ids()
        yield from self._files()
        yield from self._memories()
        yield from self._rows()

    def _unfinished_work(self) -> Iterator[Finding]:
        """What a kill left of making or pruning a folder: it holds nothing that counts."""
        for pattern in (f"{SPARE}*", f"{PRUNED}*"):
            for folder in sorted(self._home.runs.glob(pattern)):
                if not self._dry_run:
                    shutil.rmtree(folder)
                yield Finding(f"runs/{folder.name} is left over", "removed")

    def _damaged_receipts(self) -> Iterator[Finding]:
        for path in sorted(self._home.receipts.glob("*.json")):
            try:
                msgspec.json.decode(path.read_bytes(), type=Receipt)
            except msgspec.MsgspecError:
                yield self._rebuilt(path)

    def _rebuilt(self, path: Path) -> Finding:
        what = f"the receipt of run {path.stem} is damaged"
        try:
            committed = FileJournal.read(self._home.runs / path.stem / JOURNAL).committed
        except (JournalDamaged, StorageFailed):
            committed = None
        if not self._dry_run:
            path.replace(path.with_name(f"{path.name}.damaged"))
        if committed is None:
            return Finding(what, f"now {path.name}.damaged: its journal cannot tell what it said")
        if not self._dry_run:
            self._receipts.write(msgspec.json.decode(committed.receipt, type=Receipt))
        return Finding(what, "written again from the journal")

    def _runs(self) -> Iterator[Finding]:
        for folder in sorted(self._home.runs.iterdir()):
            if folder.name.startswith(".") or not folder.is_dir():
                continue
            try:
                journal = FileJournal.read(folder / JOURNAL)
            except JournalDamaged as error:
                yield self._damaged(folder, error)
            except StorageFailed:
                yield self._damaged(folder, JournalDamaged(f"runs/{folder.name} has no journal.", fix="", records=0))
            else:
                yield from self._unmarked(folder, journal)

    def _damaged(self, folder: Path, error: JournalDamaged) -> Finding:
        """A folder without one whole record is what a kill left of an admission; its command runs anew."""
        if error.data.get("records") == 0 and not _holds_anything(folder):
            if not self._dry_run:
                shutil.rmtree(folder)
            return Finding(f"runs/{folder.name} holds no record", "removed")
        if (self._active / folder.name).exists() and error.data.get("records") != 0:
            return Finding(error.message, "the next start ends the run with what can be read of it")
        if not self._set_aside:
            return Finding(error.message, fix="`council repair --set-aside` moves it to .council/damaged/")
        aside = self._home.runtime / "damaged" / folder.name
        if not self._dry_run:
            aside.parent.mkdir(exist_ok=True)
            os.rename(folder, aside)
        return Finding(error.message, f"moved to .council/damaged/{folder.name}")

    def _unmarked(self, folder: Path, journal: FileJournal) -> Iterator[Finding]:
        """A run that has not ended and that no start would look at."""
        if self._receipts.read(folder.name) is not None or (self._active / folder.name).exists():
            return
        if not self._dry_run:
            (self._active / folder.name).touch()
        wants = "was committed and has no receipt" if journal.committed else "has not ended, and no start would find it"
        yield Finding(f"run {folder.name} {wants}", "marked: the next start goes on with it")

    def _markers(self) -> Iterator[Finding]:
        for marker in sorted(self._active.iterdir()):
            if not (self._home.runs / marker.name).is_dir():
                if not self._dry_run:
                    marker.unlink()
                yield Finding(f"active/{marker.name} marks no run", "removed")

    def _ids(self) -> Iterator[Finding]:
        """Bindings that are lost or damaged, made again from the newest receipt of each id."""
        newest = {}
        for run_id in self._receipts.run_ids():
            receipt = self._receipts.read(run_id)
            if receipt is not None and receipt.id is not None:
                newest[receipt.id] = receipt
        for id_, receipt in newest.items():
            if self._receipts.bound(id_) is None:
                if not self._dry_run:
                    self._receipts.bind(IdBinding(id_, receipt.command_hash, receipt.run_id))
                yield Finding(f"the id {id_!r} was bound to no run", f"bound to run {receipt.run_id}")

    def _files(self) -> Iterator[Finding]:
        for path in self._temporaries:
            if any(path.name.endswith(f".{marker.name}.staged") for marker in self._active.iterdir()):
                continue  # of a run that goes on: it stages anew, or rolls forward
            if not self._dry_run:
                path.unlink(missing_ok=True)
            yield Finding(f"{path.relative_to(self._home.root)} is left of a process that was killed", "removed")
        for path in sorted(self._home.commands.glob(".*.taken")):
            yield Finding(f"commands/{path.name} was taken and not settled", "the next start settles it")

    def _memories(self) -> Iterator[Finding]:
        for path in sorted(self._home.session_states.rglob("*_session.json")):
            lane = "main" if path.parent == self._home.session_states else path.parent.name
            role = path.name.removesuffix("_session.json").upper()
            session, reason = decode_session(path.read_bytes(), role, lane)
            if session is None:
                done = "the next run of its lane sets it aside and takes the last good copy"
                yield Finding(f"{path.relative_to(self._home.root)} is damaged ({reason})", done)

    def _rows(self) -> Iterator[Finding]:
        rows = list(found_on_disk(self._home.runs, self._receipts))
        known = {entry.run_id: entry for entry in self._ledger.newest(self._ledger.count())}
        wrong = [entry for entry in rows if _told(known.get(entry.run_id)) != _told(entry)]
        pruned = [
            entry for entry in known.values() if entry.pruned and entry.run_id not in {row.run_id for row in rows}
        ]
        if wrong or len(known) != len(rows) + len(pruned):
            if not self._dry_run:
                self._ledger.rebuild([*rows, *pruned])
            yield Finding(f"{len(wrong)} of {len(rows)} rows of the run ledger were wrong or missing", "built anew")


def _told(entry: Entry | None) -> Entry | None:
    """A row without the size of its folder, which was taken while the run still wrote its last line."""
    return msgspec.structs.replace(entry, bytes=0) if entry is not None else None


def _holds_anything(folder: Path) -> bool:
    return any(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _temporaries(home: Home) -> Iterator[Path]:
    for folder in (home.commands, home.artifacts, home.session_states, home.runtime):
        for pattern in (".*.staged", ".*.tmp"):
            yield from sorted(folder.rglob(pattern))
