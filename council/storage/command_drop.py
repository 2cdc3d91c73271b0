"""The atomic drop: every door (file, CLI, HTTP, schedules) ends here, and nothing else starts or changes a run.

Also the rule which names in `commands/` count at all. What the file says is not looked at here.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from council.errors import CommandInvalid, PathRefused, StorageFailed
from council.ids import sha256_hex
from council.storage.files import (
    MAX_NAME_BYTES,
    as_storage_failed,
    discard,
    open_folder,
    rename_noreplace,
    shortened,
    sync_folder,
    write_temporary,
)
from council.storage.paths import check_relative

MAX_NAMESAKES = 10_000  # more files of one name is a loop that drops, not a person

COMMAND_ENDINGS = (".json", ".yaml", ".yml", ".md")
NOTE_ENDING = ".error.md"  # of our note beside a file that could not become a run
_IGNORED_ENDINGS = ("~", ".tmp", ".part", ".swp", NOTE_ENDING)


@dataclass(frozen=True)
class DroppedFile:
    """A file in its place, with what identifies it: a file with these three values is the one that was dropped."""

    path: Path
    inode: int
    mtime_ns: int
    sha256: str


def is_command_name(name: str) -> bool:
    """True when a file of this name, directly in `commands/`, can be a command."""
    return "/" not in name and not is_left_alone(name) and name.casefold().endswith(COMMAND_ENDINGS)


def is_left_alone(name: str) -> bool:
    """True where nobody means a command: `README`, dot files, editors' temporary files, notes of ours."""
    folded = name.casefold()
    return folded.startswith(".") or folded.partition(".")[0] == "readme" or folded.endswith(_IGNORED_ENDINGS)


def require_owner(home: Path, name: str, status: os.stat_result) -> None:
    """A command acts as the steward: only he, or the daemon's own user, may put one there. Raises CommandInvalid."""
    if status.st_uid not in (os.geteuid(), os.stat(home).st_uid):
        raise CommandInvalid(
            f"commands/{name} belongs to uid {status.st_uid}, who is neither the home's owner nor the daemon's user.",
            fix="drop it as the home's owner",
            refused=True,
        )


def require_command_name(name: str, hint: str = "") -> None:
    """Raises PathRefused for a name that would never be read as a command. `hint`: the end of its fix."""
    check_relative(name)
    if not is_command_name(name):
        fix = f"use a plain file name ending in {', '.join(COMMAND_ENDINGS)}; not README, not a hidden one{hint}"
        raise PathRefused(f"{name!r} cannot be the name of a command file.", reason="name", fix=fix, path=name)


def drop(commands_dir: Path, name: str, data: bytes) -> DroppedFile:
    """Put a command there, whole and synced, as `name` or the first free of `<stem>-2<ext>`, `<stem>-3<ext>`, …. Raises
    PathRefused for a name that would never be read as a command, StorageFailed when it cannot be written."""
    require_command_name(name)
    with as_storage_failed(f"Cannot drop {name!r} into {commands_dir}"), open_folder(commands_dir) as folder_fd:
        temporary = write_temporary(folder_fd, name, data, sync=True, mode=0o644)
        stem, extension = os.path.splitext(name)
        try:
            status = os.stat(temporary, dir_fd=folder_fd, follow_symlinks=False)
            for number in range(1, MAX_NAMESAKES + 1):  # the first free name, and never over another command
                tail = f"-{number}{extension}"
                free = name if number == 1 else shortened(stem, MAX_NAME_BYTES - len(tail.encode())) + tail
                with contextlib.suppress(FileExistsError):
                    rename_noreplace(commands_dir / temporary, commands_dir / free)
                    sync_folder(folder_fd)
                    return DroppedFile(commands_dir / free, status.st_ino, status.st_mtime_ns, sha256_hex(data))
        except BaseException:
            discard(folder_fd, temporary)
            raise
        discard(folder_fd, temporary)
    fix = "stop what keeps dropping them, or choose another name"
    raise StorageFailed(f"{commands_dir} holds {MAX_NAMESAKES} commands named like {name!r}.", fix=fix)


def lying_there(commands_dir: Path, file: Path, data: bytes) -> DroppedFile | None:
    """The file as a command that is dropped already, when it lies directly in `commands_dir`; `data` is what it holds."""
    place = file.resolve()
    if place.parent != commands_dir.resolve():
        return None
    try:
        status = place.stat()
    except OSError:  # taken in this instant
        return None
    return DroppedFile(place, status.st_ino, status.st_mtime_ns, sha256_hex(data))
