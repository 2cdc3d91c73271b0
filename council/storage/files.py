"""Atomic files and the lock of the project's own runtime folder.

Paths given here are trusted: they come from settings and from code. A path that came from a command, a model or HTTP goes
through `paths.ConfinedRoot`, which shares the write below. A file appears whole under its name or not at all. With `sync` it is
also on the disk, folder entry included, when the call returns.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import json
import os
import re
import secrets
import socket
import stat
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from council.errors import DaemonRunning, StorageFailed
from council.ids import SystemClock, timestamp

MAX_NAME_BYTES = 255  # NAME_MAX of every file system in use on Linux and macOS

# A probe (`FileLock.holder`) holds a shared lock for some microseconds. An owner that meets one tries again this long.
_PROBE_PATIENCE_S = 0.1
_PROBE_PAUSE_S = 0.005
_MAX_LOCK_BYTES = 4096
_SYNC_THREADS = 8  # folders at once, as many as four runs that end together have

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp", re.DOTALL)  # see write_temporary
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1  # <linux/fs.h>

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # O_NONBLOCK: a FIFO must not hang the daemon

_FIXES: dict[int, str] = {
    errno.ENOSPC: "free some space on that disk, then try again",
    errno.EDQUOT: "free some of this user's disk quota, then try again",
    errno.EFBIG: "raise the file size limit (ulimit -f), then try again",
    errno.EROFS: "make that file system writable, or choose a home on another one",
    errno.EACCES: "give this user read and write permission there",
    errno.EPERM: "give this user read and write permission there",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then try again",
    errno.ENFILE: "raise the system's limit of open files, then try again",
    errno.ENOENT: "create the folder first",
    errno.ENOTDIR: "put a folder where that path expects one",
    errno.EIO: "check the disk: it reports an input/output error",
}


def write_atomic(path: Path, data: bytes, *, sync: bool = True, mode: int = 0o600, mtime_ns: int | None = None) -> None:
    """Put `data` under `path`, replacing what is there; the folder must exist. Raises StorageFailed.

    `mtime_ns`: the file appears with this time of change, where that time says something else than when it was written.
    """
    with as_storage_failed(f"Cannot write {path}"), open_folder(path.parent) as folder_fd:
        place(folder_fd, path.name, data, sync=sync, mode=mode, mtime_ns=mtime_ns)


def overwrite(path: Path, data: bytes) -> None:
    """Put `data` into the file that is there, in the room that it has: also on a full disk. A reader may meet the half of it.
    Raises StorageFailed, also when it does not fit."""
    with as_storage_failed(f"Cannot overwrite {path}"), descriptor(path, os.O_WRONLY | os.O_NOFOLLOW) as fd:
        if len(data) > os.fstat(fd).st_blocks * 512:  # the unit of st_blocks, whatever a block of the disk is
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_fd(fd, data)
        os.ftruncate(fd, len(data))


def rewrite(path: Path, data: bytes) -> None:
    """Put `data` in the place of what the file holds, whole and synced, and leave its mode and its time of change as they
    were. Raises StorageFailed."""
    with as_storage_failed(f"Cannot rewrite {path}"):
        before = os.stat(path, follow_symlinks=False)
        write_atomic(path, data, mode=stat.S_IMODE(before.st_mode), mtime_ns=before.st_mtime_ns)


def append_line(path: Path, line: bytes) -> None:
    """Begins a line of its own: a torn one before it spoils only itself. Not synced. Raises StorageFailed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with as_storage_failed(f"Cannot write {path}"), descriptor(path, flags) as fd:
        os.write(fd, b"\n" + line)


def read_limited(path: Path, max_bytes: int) -> bytes:
    """The whole regular file. Raises FileNotFoundError, and StorageFailed when it is larger or cannot be read."""
    try:
        with descriptor(path, _READ_FLAGS) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise StorageFailed(f"Cannot read {path}: not a regular file.", fix="move it away", path=str(path))
            data = read_fd(fd, max_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_failed(error, f"Cannot read {path}") from error
    if len(data) > max_bytes:
        raise StorageFailed(
            f"Cannot read {path}: larger than {max_bytes} bytes.",
            fix="move it away",
            path=str(path),
            max_bytes=max_bytes,
        )
    return data


def is_temporary(name: str) -> bool:
    """True when a file of this name is left by a write here, if the process dies in the middle of it."""
    return _TEMPORARY.fullmatch(name) is not None


def sweep_temporaries(folder: Path) -> None:
    """Removes what killed processes left in a folder. Only for who alone may write there. Raises StorageFailed."""
    with as_storage_failed(f"Cannot tidy {folder}"):
        for name in os.listdir(folder):
            if is_temporary(name):
                (folder / name).unlink(missing_ok=True)


def fsync_dir(path: Path) -> None:
    """Make the names in a folder durable. Raises StorageFailed."""
    with as_storage_failed(f"Cannot sync {path}"), open_folder(path) as folder_fd:
        sync_folder(folder_fd)


def rename_noreplace(src: Path, dst: Path) -> None:
    """Move `src` to `dst` unless `dst` exists; not synced. Raises FileExistsError, FileNotFoundError, StorageFailed.

    NOTE: where the file system lacks RENAME_NOREPLACE this is link + unlink. For a moment the file has two names, and a kill in
    between leaves both.
    """
    try:
        if not _rename_noreplace_natively(src, dst):
            os.link(src, dst, follow_symlinks=False)
            os.unlink(src)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError as error:
        raise storage_failed(error, f"Cannot rename {src} to {dst}") from error


class FileLock:
    """One owner per path, over processes. The kernel drops the lock when the process ends, however it ends.

    The file stays after `release`: removing it would let two processes lock two different files of one name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self, owner: Mapping[str, object] | None = None) -> None:
        """Take the lock now or raise DaemonRunning with `pid`, `host` and `started` of the holder in its data.

        `owner` is written into the file for others to read; pid, host and started are filled in where it lacks them. A
        process that holds the lock for one piece of work says so by `leaves`.
        Raises StorageFailed where the file cannot be opened or locked. It may be held without a word, on a full disk.
        """
        fd = self._take()
        told = {"pid": os.getpid(), "host": socket.gethostname(), "started": timestamp(SystemClock().now())}
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)
            write_fd(fd, json.dumps(told | dict(owner or {})).encode())
        self._fd = fd
        # A child forked without exec would keep the lock alive after its parent died.
        close_in_child = weakref.WeakMethod(self._close)
        os.register_at_fork(after_in_child=lambda: (close_in_child() or (lambda: None))())

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            self._close()

    @staticmethod
    def holder(path: Path) -> dict[str, object] | None:
        """The present holder's words ({} before it has written any), or None if the lock is free. Raises StorageFailed."""
        try:
            with descriptor(path, os.O_RDONLY | os.O_NOFOLLOW) as fd:
                return None if try_flock(fd, fcntl.LOCK_SH) else _read_owner(fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_failed(error, f"Cannot read the lock file {path}") from error

    def _take(self) -> int:
        give_up_at = time.monotonic() + _PROBE_PATIENCE_S
        while True:
            with as_storage_failed(f"Cannot take the lock {self.path}"):
                fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                try:
                    if try_flock(fd, fcntl.LOCK_EX):
                        with contextlib.suppress(FileNotFoundError):  # else another file replaced it meanwhile
                            if os.path.samestat(os.fstat(fd), os.stat(self.path, follow_symlinks=False)):
                                return fd
                    owner = _read_owner(fd)
                except BaseException:
                    os.close(fd)
                    raise
                os.close(fd)
            if time.monotonic() >= give_up_at:
                break
            time.sleep(_PROBE_PAUSE_S)
        pid, host, started = (owner.get(key) for key in ("pid", "host", "started"))
        who, fix = "a process that is just starting", "try again in a moment"
        if pid is not None:
            who = f"process {pid} on {host}, started {started}"
            fix = f"use the one that runs, or stop process {pid} on {host} first"
        leaves = owner.get("leaves") is True
        if leaves:
            who, fix = f"{who}, until one piece of work is done", "try again when that process has ended"
        told = {"path": str(self.path), "pid": pid, "host": host, "started": started, "leaves": leaves}
        raise DaemonRunning(f"{self.path} is held by {who}.", fix=fix, **told)

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@contextlib.contextmanager
def locked(folder: Path, patience_s: float) -> Iterator[None]:
    """One process at a time among those who lock this folder. Raises StorageFailed after `patience_s`."""
    with as_storage_failed(f"Cannot lock {folder}"):
        fd = os.open(folder, _FOLDER_FLAGS)
    try:
        give_up_at = time.monotonic() + patience_s
        while not try_flock(fd, fcntl.LOCK_EX):
            if time.monotonic() >= give_up_at:
                raise StorageFailed(f"{folder} is locked by another process.", fix="end it, then try again")
            time.sleep(_PROBE_PAUSE_S)
        yield
    finally:
        os.close(fd)


# What `paths` and `command_drop` share with the above: the same steps, under an open folder.


def place(folder_fd: int, name: str, data: bytes, *, sync: bool, mode: int, mtime_ns: int | None = None) -> None:
    """Write `name` in an open folder through a temporary neighbour, which no failure leaves behind. Raises OSError.

    `sync`: bytes and name are on the medium when this returns.
    """
    temporary = write_temporary(folder_fd, name, data, sync=sync, mode=mode)
    try:
        if mtime_ns is not None:
            os.utime(temporary, ns=(mtime_ns, mtime_ns), dir_fd=folder_fd)
        os.replace(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except BaseException:
        discard(folder_fd, temporary)
        raise
    if sync:
        sync_folder(folder_fd)


def write_temporary(folder_fd: int, name: str, data: bytes, *, sync: bool, mode: int) -> str:
    """Write `.<name>.<rand>.tmp` in an open folder; its name. Raises OSError."""
    temporary = hidden_name(name, f"{secrets.token_hex(6)}.tmp")
    write_new(folder_fd, temporary, data, sync=sync, mode=mode)
    return temporary


def write_new(folder_fd: int, name: str, data: bytes, *, sync: bool, mode: int) -> None:
    """Write a file that is not there yet, whole or not at all. Raises OSError."""
    fd = os.open(name, _NEW_FILE_FLAGS, mode, dir_fd=folder_fd)
    try:
        try:
            write_fd(fd, data)
            if sync:
                sync_file(fd)
        finally:
            os.close(fd)
    except BaseException:
        discard(folder_fd, name)
        raise


def hidden_name(name: str, suffix: str) -> str:
    """`.<name>.<suffix>`; a name too long for that keeps its head and a hash of the whole."""
    if len(os.fsencode(name)) + len(suffix) + 2 > MAX_NAME_BYTES:
        name_hash = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        name = f"{shortened(name, MAX_NAME_BYTES - len(suffix) - len(name_hash) - 3)}.{name_hash}"
    return f".{name}.{suffix}"


def shortened(name: str, max_bytes: int) -> str:
    """The longest head of `name` that fits, cut between characters."""
    return name.encode("utf-8", "surrogateescape")[:max_bytes].decode("utf-8", "ignore")


def discard(folder_fd: int, name: str) -> None:
    """Remove a file in an open folder if that is possible: the clean-up of a failure must not hide the failure."""
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder_fd)


def write_fd(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_fd(fd: int, max_bytes: int) -> bytes:
    """Reads at most `max_bytes`, from where the descriptor stands to the end of the file."""
    chunks: list[bytes] = []
    while max_bytes > 0 and (chunk := os.read(fd, min(max_bytes, 1 << 20))):
        chunks.append(chunk)
        max_bytes -= len(chunk)
    return b"".join(chunks)


def sync_file(fd: int) -> None:
    """Syncs to the medium, not only to the drive's cache (macOS wants to be asked for that in its own way)."""
    if sys.platform == "darwin":
        with contextlib.suppress(OSError):  # not every file system has it
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
    os.fsync(fd)


def sync_folder(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync a folder
            raise


class Syncs:
    """Syncs that wait together: the disk takes a dozen at once in the time of one or two. Its threads end with `close`."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def wait_for(self, syncs: Sequence[Callable[[], None]]) -> None:
        """All of these are done when this returns. Each opens what it syncs: no more is open at once than there are threads,
        however many runs end together. Raises the first error."""
        if len(syncs) > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix="sync")
        others = [self._pool.submit(sync) for sync in syncs[1:]] if self._pool is not None else []
        try:
            for sync in syncs[:1]:  # in this thread, which would only wait
                sync()
        finally:
            errors = [other.exception() for other in others]
        for error in errors:
            if error is not None:
                raise error

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def open_folder(path: Path) -> contextlib.AbstractContextManager[int]:
    return descriptor(path, _FOLDER_FLAGS)


@contextlib.contextmanager
def descriptor(path: Path | str, flags: int, *, dir_fd: int | None = None) -> Iterator[int]:
    """A file or folder, open for as long as the block takes; a new one is its owner's alone. Raises OSError."""
    fd = os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def as_storage_failed(what: str) -> Iterator[None]:
    """Turn an OSError of the block into StorageFailed: `what` (no full stop), the system's reason, the fix."""
    try:
        yield
    except OSError as error:
        raise storage_failed(error, what) from error


def storage_failed(error: OSError, what: str) -> StorageFailed:
    number = error.errno or 0
    return StorageFailed(
        f"{what}: {os.strerror(number) if number else type(error).__name__}.",
        fix=_FIXES.get(number, "check the disk and the permissions there"),
        errno=errno.errorcode.get(number, ""),
    )


def _rename_noreplace_natively(src: Path, dst: Path) -> bool:
    """False where this kernel or file system cannot do it. Raises OSError as rename(2) would."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(src), _AT_FDCWD, os.fsencode(dst), _RENAME_NOREPLACE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(src), None, str(dst))


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:  # glibc < 2.28
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]


def try_flock(fd: int, operation: int) -> bool:
    """False where another process has the lock."""
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_owner(fd: int) -> dict[str, object]:
    try:
        owner = json.loads(os.pread(fd, _MAX_LOCK_BYTES, 0))
    except ValueError:  # empty or half written: the holder is just starting
        return {}
    return owner if isinstance(owner, dict) else {}
