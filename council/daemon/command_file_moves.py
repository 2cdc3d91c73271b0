"""Command files leave the inbox here: taken when their run has ended, set aside when they cannot become one.

Taking is one rename to `commands/.<run_id>.taken`, then a look. The file as it was admitted goes (or moves to
`failed/`); anything else goes back without overwriting and is a new command. No step loses bytes, and each may be
repeated after a crash.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from council.commands.parsing import is_kept
from council.commands.types import CommandTypes
from council.desk.failed_folder import error_page, heading_of
from council.engine.receipts import Receipt
from council.engine.records import NO_HASHES, FileIdentity, RunStatus
from council.engine.runs import ActiveRun
from council.errors import CommandInvalid, PathRefused, StorageFailed
from council.events import CommandChange, Events
from council.ids import sha256_hex
from council.settings import Home
from council.storage.command_drop import NOTE_ENDING
from council.storage.files import as_storage_failed, fsync_dir, hidden_name, rename_noreplace, shortened, write_atomic
from council.storage.paths import ConfinedRoot, FileBytes

log = logging.getLogger(__name__)

_MAX_NAMESAKES = 10_000
_MAX_NAME_BYTES = 255
_ROOM_FOR_NUMBER = 8
_NOT_KEPT = "The file was not kept, because its text is not kept. Drop a correct command. Nothing was run."


def printable(text: str) -> str:
    """Text that every terminal and file can hold: bytes of a name that are no UTF-8 are shown as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass
class RunFile:
    """A file that is a run's: the run, the file as it is known, how long it has been missing, in how many scans."""

    run: ActiveRun
    identity: FileIdentity
    missing_since_s: float | None = None
    missing_scans: int = 0


@dataclass(eq=False)
class Taking:
    """The moves of command files in one home. `bound` are the files that are a run's, by their names; `redact` is what a note
    goes through before it is written."""

    _home: Home
    _root: ConfinedRoot
    _events: Events
    _types: CommandTypes
    max_bytes: int
    redact: Callable[[str], str] = str
    bound: dict[str, RunFile] = field(default_factory=dict)

    def end(self, run: ActiveRun, status: RunStatus) -> None:
        """The run's file leaves the inbox: gone, or in `failed/`; a file that changed meanwhile stays, as a new command."""
        name = run.header.file.name
        status = self._status(run.header.type, status)
        bound = self.bound.get(name)
        if bound is None or bound.run is run:
            self.take(name, bound.identity if bound is not None else run.header.file, run.id, status)
            self.bound.pop(name, None)  # only now: a file that cannot be taken is still this run's
        elif self._place(run.id).exists():  # what stands there is another run's: a taking that was begun is completed
            self._settle(self._place(run.id), run.header.file, run.id, status)

    def take(self, name: str, admitted: FileIdentity, run_id: str, status: RunStatus) -> None:
        """Takes the file of an ended run; nothing happens when it is gone already."""
        taken = self._place(run_id)
        if not taken.exists():
            try:
                os.rename(self._home.commands / name, taken)
            except FileNotFoundError:
                return  # the steward removed it; there is nothing left to take
            except OSError as error:
                fix = "make commands/ writable again"
                raise StorageFailed(f"cannot take commands/{printable(name)} ({error.strerror}).", fix=fix) from error
        self._settle(taken, admitted, run_id, status)

    def keep(self, name: str, run_id: str) -> None:
        """Moves the file of a run whose record 0 is lost to `failed/`: nobody knows its bytes, and it is not run again."""
        with contextlib.suppress(FileNotFoundError):
            self._move(self._home.commands / name, self._home.failed / _fitting(name, f".{run_id}", _ROOM_FOR_NUMBER))

    def settle_orphan(self, taken: Path, receipt: Receipt | None) -> None:
        """A `.taken` file found at start whose run is over: it proves the taking; what is left is to look at it."""
        if receipt is not None:
            status = self._status(receipt.type, receipt.status)
            self._settle(taken, receipt.command_file, receipt.run_id, status)
        else:
            self._put_back(taken, taken.name[1 : -len(".taken")] + ".json")

    def set_aside(self, name: str, error: CommandInvalid) -> str:
        """Moves a file that cannot become a run to `failed/`, with a note beside it; where it is now, relative to the
        home. A secret in its name does not go with it. Of a type that is not kept only the note stays: its text would lie there.
        Raises FileNotFoundError when it is gone; StorageFailed, and then it stays, when it or its note cannot be written."""
        place = self._home.failed / _fitting(self.redact(name), "", len(NOTE_ENDING) + _ROOM_FOR_NUMBER)
        try:
            data = self._root.read(f"commands/{name}", max_bytes=self.max_bytes).data
            kept = is_kept(self._types, name, data)
        except PathRefused:  # what cannot be read whole is kept: nobody knows what it is
            kept = True
        text = self.redact(error_page(printable(name), error, mend="" if kept else _NOT_KEPT))
        # The note is written before the file moves: a full disk would else move it there and back, and each move wakes a scan.
        staged = place.with_name(hidden_name(f"{place.name}{NOTE_ENDING}", "tmp"))
        _make_folder(place.parent)
        try:
            write_atomic(staged, text.encode("utf-8", "backslashreplace"), mode=0o644)
            aside = self._move(self._home.commands / name, place)
            note = aside.with_name(f"{aside.name}{NOTE_ENDING}")
            try:
                with as_storage_failed(f"Cannot write {note}"):
                    os.replace(staged, note)
                    fsync_dir(note.parent)
            except StorageFailed:
                self._move(aside, self._home.commands / name)
                raise
        finally:
            with contextlib.suppress(OSError):
                staged.unlink(missing_ok=True)
        with contextlib.suppress(PathRefused):  # another file may have taken its name since it was read
            moved = self._root.read(f"commands/failed/{aside.name}", max_bytes=self.max_bytes).data
            kept = kept and is_kept(self._types, name, moved)
        if not kept:
            _unlink(aside)
        return f"commands/failed/{aside.name if kept else note.name}"

    def mended(self, name: str) -> None:
        """Removes the notes on a file of this name that was corrected and put back: it became a run."""
        heading = heading_of(printable(name))
        for note in self._home.failed.glob(f"*{NOTE_ENDING}"):
            if not note.with_name(note.name.removesuffix(NOTE_ENDING)).exists():
                with contextlib.suppress(OSError, UnicodeDecodeError), note.open(encoding="utf-8") as stream:
                    if stream.readline().rstrip("\n") == heading:
                        note.unlink(missing_ok=True)

    def _status(self, type_: str, status: RunStatus) -> RunStatus:
        """The status by which a file is taken: one that is not kept goes as if its run had been cancelled."""
        known = self._types.get(type_)
        return "cancelled" if status == "failed" and known is not None and not known.keeps_failed_file else status

    def _place(self, run_id: str) -> Path:
        return self._home.commands / f".{run_id}.taken"

    def _settle(self, taken: Path, admitted: FileIdentity, run_id: str, status: RunStatus) -> None:
        try:
            found = self._root.read(f"commands/{taken.name}", max_bytes=self.max_bytes)
            same_drop = (found.inode, found.mtime_ns) == (admitted.inode, admitted.mtime_ns)
            is_same = same_drop and is_admitted(found, admitted)
        except PathRefused:
            is_same = False
        if not is_same:
            self._put_back(taken, admitted.name)
        elif status == "failed":
            try:
                self._move(taken, self._home.failed / _fitting(admitted.name, f".{run_id}", _ROOM_FOR_NUMBER))
            except StorageFailed as error:  # the run has its receipt; the file waits for the next start
                log.error("%s stays as %s: %s", admitted.name, taken.name, error)
        else:
            _unlink(taken)

    def _put_back(self, taken: Path, name: str) -> None:
        back = self._home.commands / name
        try:
            if os.path.samestat(os.lstat(back), os.lstat(taken)):  # the second link of an interrupted link and unlink
                _unlink(taken)
                return
        except FileNotFoundError:
            pass
        self._events.publish(CommandChange(file=printable(self._move(taken, back).name)))

    def _move(self, source: Path, target: Path) -> Path:
        """Renames without overwriting; a taken name gets a number before its ending. Returns the new place."""
        _make_folder(target.parent)
        for number in range(1, _MAX_NAMESAKES):
            place = target if number == 1 else target.with_name(f"{target.stem}-{number}{target.suffix}")
            try:
                rename_noreplace(source, place)
                return place
            except FileExistsError:
                continue
        raise StorageFailed(f"{target.parent.name}/ holds too many files called {target.name}.", fix="tidy that folder")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        message = f"cannot make {folder.name}/ in {folder.parent.name}/ ({error.strerror})."
        raise StorageFailed(message, fix=f"move away {folder.parent.name}/{folder.name}") from error


def _unlink(path: Path) -> None:
    with as_storage_failed(f"Cannot remove {path.parent.name}/{printable(path.name)}"):
        path.unlink(missing_ok=True)


def is_admitted(found: FileBytes, admitted: FileIdentity) -> bool:
    """True for the bytes that became a run. The file's time decides if their hash is not kept."""
    if admitted.sha256 in NO_HASHES:
        return found.mtime_ns == admitted.mtime_ns
    return sha256_hex(found.data) == admitted.sha256


def _fitting(name: str, infix: str, spare_bytes: int) -> str:
    """`<stem><infix><ending>`, the stem shortened so that `spare_bytes` more still fit into a file name."""
    path = Path(name)
    room = _MAX_NAME_BYTES - len(os.fsencode(infix + path.suffix)) - spare_bytes
    stem = path.stem if len(os.fsencode(path.stem)) <= room else shortened(path.stem, room)
    return f"{stem}{infix}{path.suffix}"
