"""`commands/recurring/` on disk: its files, and the notes beside the bad ones. What is remembered of each stands in the
database: its last occurrence, and its pause. Says when each is due; the scheduler drops what is.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from council.commands.file_formats import NotACommand, problems_of
from council.commands.models import CommandBase
from council.commands.recurring import RecurringCommand, parse_recurring
from council.commands.types import CommandTypes
from council.desk.desk import Desk
from council.desk.failed_folder import error_page
from council.engine.records import FileIdentity
from council.errors import CommandInvalid, PathRefused, UsageError
from council.ids import sha256_hex
from council.proposals import nearest
from council.settings import Home
from council.storage.command_drop import COMMAND_ENDINGS, NOTE_ENDING, is_command_name, is_left_alone, require_owner
from council.storage.files import as_storage_failed, write_atomic
from council.storage.marks import MARKS, SET_MARK, mark, note_mark
from council.storage.paths import ConfinedRoot
from council.storage.reader import Looking
from council.storage.store import Store, Tx
from council.typed_json import decode_json

log = logging.getLogger(__name__)

_MARK = "schedules"
_PAUSE = "schedule/"  # and the file's name
_MEND = "Correct the file in its place. It is never moved, and is scheduled again as soon as it is valid."


class FolderListing(NamedTuple):
    """The folder's content. `files`: possible recurring commands, by name. `pages`: the names of the notes beside bad
    ones. `others`: the names of files that somebody may take for recurring commands."""

    files: dict[str, os.stat_result]
    pages: list[str]
    others: list[str]


@dataclass(frozen=True)
class RecurringFile:
    """A file as it was read: what it asks for, and which bytes those were."""

    command: RecurringCommand
    identity: FileIdentity


@dataclass(frozen=True)
class RecurringFolder:
    """The recurring commands of one home. `redact` is what a note goes through. `admits` raises CommandInvalid for a command
    that admission would refuse."""

    _home: Home
    _root: ConfinedRoot
    _types: CommandTypes
    max_bytes: int
    admits: Callable[[CommandBase], object] = lambda command: None
    redact: Callable[[str], str] = str

    def list(self) -> FolderListing:
        """A folder that is not there, or is a symbolic link, holds nothing. Raises StorageFailed."""
        listing = FolderListing({}, [], [])
        if self._home.recurring.is_symlink() or not self._home.recurring.is_dir():
            return listing
        with as_storage_failed(f"Cannot list {self._home.recurring}"), os.scandir(self._home.recurring) as entries:
            for entry in entries:
                if entry.name.endswith(NOTE_ENDING):
                    listing.pages.append(entry.name)
                elif is_command_name(entry.name):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if not stat.S_ISDIR(status.st_mode):
                        listing.files[entry.name] = status
                elif not is_left_alone(entry.name) and entry.is_file(follow_symlinks=False):
                    listing.others.append(entry.name)
        return listing

    def read(self, name: str, status: os.stat_result) -> RecurringFile:
        """Raises CommandInvalid, or NotACommand for a Markdown file of another kind, or FileNotFoundError."""
        relative = f"{self._home.recurring.name}/{name}"
        try:
            found = self._root.read(f"commands/{relative}", max_bytes=self.max_bytes)
        except PathRefused as error:
            if error.reason == "not_found":
                raise FileNotFoundError(name) from None
            raise CommandInvalid(error.message, fix=error.fix or "put a regular file there") from error
        require_owner(self._home.root, relative, status)
        recurring = parse_recurring(self._types, name, found.data)
        self.admits(recurring.command_at(datetime.now(UTC)))
        identity = FileIdentity(relative, found.inode, found.mtime_ns, sha256_hex(found.data))
        return RecurringFile(recurring, identity)

    def write_page(self, name: str, error: CommandInvalid) -> str:
        """Puts what is wrong beside the file; where, relative to the home. Raises StorageFailed."""
        page = self._page(name)
        write_atomic(page, self.redact(error_page(f"recurring/{name}", error, mend=_MEND)).encode(), mode=0o644)
        return f"commands/recurring/{page.name}"

    def remove_page(self, name: str) -> None:
        with as_storage_failed(f"Cannot remove {self._page(name)}"):
            self._page(name).unlink(missing_ok=True)

    def remove_orphans(self, listing: FolderListing) -> None:
        """Notes whose file is gone. Raises StorageFailed."""
        for page in listing.pages:
            name = page.removesuffix(NOTE_ENDING)
            if is_command_name(name) and name not in listing.files:
                self.remove_page(name)

    def _page(self, name: str) -> Path:
        return self._home.recurring / f"{name}{NOTE_ENDING}"


def find_file(listing: FolderListing, given: str) -> str:
    """The one recurring file that `given` means: its name, its path, or its name without ending. Raises UsageError."""
    wanted = Path(given).name
    matches = [name for name in sorted(listing.files) if wanted in (name, Path(name).stem)]
    exact = [name for name in matches if name == wanted]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise UsageError(f"{given!r} means {' and '.join(matches)}.", fix="give the name with its ending")
    near = nearest(wanted, [*listing.files, *(Path(name).stem for name in listing.files)])
    fix = f"did you mean {near}?" if near else "`council schedule list` shows the files that are"
    raise UsageError(f"there is no {given!r} in commands/recurring/.", fix=fix)


@contextmanager
def recurring_folder(desk: Desk) -> Iterator[RecurringFolder]:
    """The recurring commands of the desk's home. Raises ConfigError."""
    with ConfinedRoot(desk.home.root) as root:
        max_bytes = desk.settings.max_command_bytes
        yield RecurringFolder(desk.home, root, desk.commands, max_bytes=max_bytes, admits=desk.admission_of)


def recurring_command(folder: RecurringFolder, name: str, status: os.stat_result) -> RecurringCommand:
    """The command in a listed file. Raises CommandInvalid, for a file that is no command at all too."""
    try:
        return folder.read(name, status).command
    except NotACommand:
        fix = "see `docs/schedules.md` for what one looks like"
        raise CommandInvalid(f"{name} has no front matter of a command.", fix=fix) from None
    except FileNotFoundError:
        raise CommandInvalid(f"{name} is gone.", fix="list the folder again") from None


@dataclass(frozen=True)
class RecurringState:
    """A file of the folder. `error`: why it is skipped or cannot be read; then no more is known of it. `next` and `last` are
    occurrences in its own zone, `last_status` what became of the last one."""

    file: str
    paused: bool
    error: str | None = None
    cron: str | None = None
    zone: str | None = None
    next: str | None = None
    last: str | None = None
    last_status: str | None = None


def recurring_states(desk: Desk, now: datetime) -> list[RecurringState]:
    """Every file of the folder, by name. Raises ConfigError, StorageFailed."""
    receipts, sightings, pauses, states = desk.receipts, load_sightings(desk.store), load_pauses(desk.store), []
    with recurring_folder(desk) as folder:
        listing = folder.list()
        why = f"skipped: its name ends in none of {', '.join(COMMAND_ENDINGS)}"
        states += [RecurringState(name, paused=False, error=why) for name in listing.others]
        for name, status in listing.files.items():
            state = RecurringState(name, pauses.get(name, NEVER_PAUSED).holds)
            try:
                command = recurring_command(folder, name, status)
            except CommandInvalid as error:
                states.append(replace(state, error=str(problems_of(error)[0])))
                continue
            schedule, sighting = command.schedule, sightings.get(name)
            due = None if state.paused else next(schedule.after(now), None)
            last = last_status = None
            if sighting is not None and sighting.last_fire:
                bound = receipts.bound(command.id_at(sighting.last_fire), command.user)
                receipt = receipts.read(bound.run_id) if bound is not None else None
                last = to_the_minute(schedule.local(sighting.last_fire))
                last_status = receipt.status if receipt is not None else "dropped"
            states.append(
                replace(
                    state,
                    cron=schedule.cron,
                    zone=schedule.zone,
                    next=to_the_minute(schedule.local(due)) if due is not None else None,
                    last=last,
                    last_status=last_status,
                )
            )
    return sorted(states, key=lambda state: state.file)


def to_the_minute(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


class Sighting(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of one file. `last_fire`: its last occurrence that was dropped or skipped."""

    first_seen: datetime
    schedule: str
    last_fire: datetime | None = None

    @property
    def counted_from(self) -> datetime:
        """Occurrences later than this one count."""
        return max(self.first_seen, self.last_fire or self.first_seen)


def load_sightings(store: Looking) -> dict[str, Sighting]:
    """Loads what is remembered, by file name. Raises StorageFailed."""
    return decode_json(mark(store, _MARK) or "{}", dict[str, Sighting])


def save_sightings(store: Store, sightings: dict[str, Sighting]) -> None:
    """Raises StorageFailed."""
    note_mark(store, _MARK, msgspec.json.encode(sightings).decode())


class Pause(msgspec.Struct, frozen=True):
    """The last change of one file's pause: whether it `holds` since then, or has ended then."""

    holds: bool
    since: datetime | None = None


NEVER_PAUSED = Pause(holds=False)


def load_pauses(store: Looking) -> dict[str, Pause]:
    """Loads every pause, also those that have ended, by file name. Raises StorageFailed."""
    rows = store.read(lambda tx: tx.execute(MARKS, (len(_PAUSE), _PAUSE)).fetchall())
    return {name.removeprefix(_PAUSE): decode_json(value, Pause) for name, value in rows}


def save_pause(tx: Tx, name: str, pause: Pause) -> None:
    """Holds back the occurrences of a file, or lets them come again; none is made up for that came due in between."""
    tx.execute(SET_MARK, (f"{_PAUSE}{name}", msgspec.json.encode(pause).decode()))
