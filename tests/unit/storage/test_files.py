"""Atomic files, the rename that never overwrites, and the lock that dies with its process."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.errors import DaemonRunning, StorageFailed
from council.storage import files
from council.storage.files import FileLock, fsync_dir, read_limited, rename_noreplace, write_atomic

REPO = Path(__file__).parents[3]

_HOLD = """
    import pathlib, sys
    from council.storage.files import FileLock
    lock = FileLock(pathlib.Path(sys.argv[1]))
    lock.acquire({"started": "2026-11-20T22:54:13Z"})
    print("held", flush=True)
    sys.stdin.read()
"""
# The holder forks a child without exec, as multiprocessing and zygotes do; the child outlives it.
_HOLD_AND_FORK = """
    import os, pathlib, signal, sys
    from council.storage.files import FileLock
    lock = FileLock(pathlib.Path(sys.argv[1]))
    lock.acquire()
    child = os.fork()
    if child == 0:
        print("child", os.getpid(), flush=True)
        sys.stdin.read()
    else:
        signal.pause()
"""


def start(script: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, args)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(REPO)},
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds `tmp_path/lock` until it is killed or its stdin is closed."""
    with start(_HOLD, tmp_path / "lock") as process:
        assert said(process) == ["held"]
        yield process
        process.kill()


@pytest.fixture(params=["native", "missing", "ENOSYS", "EINVAL"])
def rename_support(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the system's own RENAME_NOREPLACE, without the call, and with a kernel or file system that refuses it."""
    kind: str = request.param

    def refuse(*_: object) -> int:
        ctypes.set_errno(getattr(errno, kind))
        return -1

    if kind == "missing":
        monkeypatch.setattr(files, "_renameat2", lambda: None)
    elif kind != "native":
        monkeypatch.setattr(files, "_renameat2", lambda: refuse)
    return kind


def test_a_write_replaces_the_whole_file_and_leaves_no_other(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a.json", b"a long first version")
    write_atomic(tmp_path / "a.json", b"second")
    assert (tmp_path / "a.json").read_bytes() == b"second"
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_write_into_a_missing_folder_is_storage_failed_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed) as failure:
        write_atomic(tmp_path / "absent/a.json", b"x")
    assert "No such file" in failure.value.message
    assert failure.value.fix == "create the folder first"
    with pytest.raises(StorageFailed):
        fsync_dir(tmp_path / "absent")


def test_a_disk_that_fills_up_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomic(tmp_path / "a.json", b"old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageFailed) as failure:
        write_atomic(tmp_path / "a.json", b"new")
    assert "space" in failure.value.fix
    assert (tmp_path / "a.json").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_write_that_the_system_takes_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, data[:3]))
    write_atomic(tmp_path / "a.json", b"0123456789")
    assert (tmp_path / "a.json").read_bytes() == b"0123456789"


def test_a_name_of_the_greatest_length_can_be_written(tmp_path: Path) -> None:
    name = "é" * 127
    write_atomic(tmp_path / name, b"x")
    assert os.listdir(tmp_path) == [name]


def test_read_limited_reads_up_to_the_limit_and_only_regular_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    os.mkfifo(tmp_path / "pipe")
    assert read_limited(tmp_path / "a", 5) == b"12345"
    for path, max_bytes in ((tmp_path / "a", 4), (tmp_path / "pipe", 10), (tmp_path, 10)):
        with pytest.raises(StorageFailed):
            read_limited(path, max_bytes)
    with pytest.raises(FileNotFoundError):
        read_limited(tmp_path / "absent", 10)


@pytest.mark.usefixtures("rename_support")
def test_a_rename_moves_to_a_free_name_and_never_over_another_file(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    rename_noreplace(tmp_path / "new", tmp_path / "moved")
    assert sorted(os.listdir(tmp_path)) == ["moved"]
    (tmp_path / "taken").write_bytes(b"taken")
    with pytest.raises(FileExistsError):
        rename_noreplace(tmp_path / "moved", tmp_path / "taken")
    assert (tmp_path / "moved").read_bytes() == b"new"
    assert (tmp_path / "taken").read_bytes() == b"taken"


@pytest.mark.usefixtures("rename_support")
def test_a_rename_never_replaces_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "link").symlink_to("absent")
    with pytest.raises(FileExistsError):
        rename_noreplace(tmp_path / "new", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()


@pytest.mark.usefixtures("rename_support")
def test_a_rename_of_nothing_is_not_found_and_into_nowhere_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(FileNotFoundError):
        rename_noreplace(tmp_path / "absent", tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        rename_noreplace(tmp_path / "a", tmp_path / "absent/b")
    assert os.listdir(tmp_path) == ["a"]


def test_a_rename_across_file_systems_is_storage_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.EXDEV)
        return -1

    monkeypatch.setattr(files, "_renameat2", lambda: refuse)
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(StorageFailed):
        rename_noreplace(tmp_path / "a", tmp_path / "b")
    assert os.listdir(tmp_path) == ["a"]


def test_a_second_process_learns_who_holds_the_lock(tmp_path: Path, holding: subprocess.Popen[str]) -> None:
    with pytest.raises(DaemonRunning) as running:
        FileLock(tmp_path / "lock").acquire()
    assert running.value.data["pid"] == holding.pid
    assert running.value.data["host"] == socket.gethostname()
    assert running.value.data["started"] == "2026-11-20T22:54:13Z"
    for part in (str(holding.pid), socket.gethostname(), "2026-11-20T22:54:13Z"):
        assert part in running.value.message
    assert f"stop process {holding.pid}" in running.value.fix
    assert FileLock.holder(tmp_path / "lock") == {
        "pid": holding.pid, "host": socket.gethostname(), "started": "2026-11-20T22:54:13Z",
    }  # fmt: skip


def test_the_lock_dies_with_a_holder_that_is_killed(tmp_path: Path, holding: subprocess.Popen[str]) -> None:
    holding.kill()
    holding.wait()
    assert FileLock.holder(tmp_path / "lock") is None
    lock = FileLock(tmp_path / "lock")
    lock.acquire()
    assert (FileLock.holder(tmp_path / "lock") or {})["pid"] == os.getpid()
    lock.release()


def test_the_lock_dies_with_its_process_even_when_a_forked_child_lives_on(tmp_path: Path) -> None:
    with start(_HOLD_AND_FORK, tmp_path / "lock") as parent:
        _, child = said(parent)
        assert FileLock.holder(tmp_path / "lock") is not None
        os.kill(parent.pid, 9)
        parent.wait()
        os.kill(int(child), 0)  # raises if it is gone
        assert FileLock.holder(tmp_path / "lock") is None


def test_a_second_lock_in_the_same_process_is_refused(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire()
    with pytest.raises(DaemonRunning):
        FileLock(tmp_path / "lock").acquire()
    with pytest.raises(DaemonRunning):
        lock.acquire()
    lock.release()
    lock.release()
    lock.acquire()
    lock.release()


def test_a_released_lock_names_nobody(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire({"pid": 1, "extra": "x"})
    assert json.loads((tmp_path / "lock").read_text())["extra"] == "x"
    assert (FileLock.holder(tmp_path / "lock") or {})["pid"] == 1
    lock.release()
    assert FileLock.holder(tmp_path / "lock") is None
    assert (tmp_path / "lock").read_bytes() == b""


def test_a_lock_that_was_never_taken_has_no_holder_and_is_not_created(tmp_path: Path) -> None:
    assert FileLock.holder(tmp_path / "lock") is None
    assert os.listdir(tmp_path) == []


def test_a_held_lock_with_an_unreadable_file_still_says_that_it_is_held(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire()
    (tmp_path / "lock").write_bytes(b'{"pid": 12')
    assert FileLock.holder(tmp_path / "lock") == {}
    with pytest.raises(DaemonRunning) as running:
        FileLock(tmp_path / "lock").acquire()
    assert running.value.data["pid"] is None
    lock.release()


def test_probes_never_make_an_owner_fail(tmp_path: Path) -> None:
    script = """
        import os, pathlib, sys
        from council.storage.files import FileLock
        tests = os.getppid()
        print("probing", flush=True)
        while os.getppid() == tests:  # ends with them, however they end
            FileLock.holder(pathlib.Path(sys.argv[1]))
    """
    with start(script, tmp_path / "lock") as prober:
        assert said(prober) == ["probing"]
        lock = FileLock(tmp_path / "lock")
        for _ in range(300):
            lock.acquire()
            lock.release()
        prober.kill()
    assert FileLock.holder(tmp_path / "lock") is None


def test_a_lock_file_replaced_between_open_and_lock_is_not_taken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    real_try = files.try_flock
    replaced: list[int] = []

    def replace_first(fd: int, operation: int) -> bool:
        if not replaced:
            path.unlink()
            path.write_bytes(b"")
            replaced.append(fd)
        return real_try(fd, operation)

    monkeypatch.setattr(files, "try_flock", replace_first)
    lock = FileLock(path)
    lock.acquire()
    assert replaced
    assert (FileLock.holder(path) or {})["pid"] == os.getpid()
    lock.release()


def test_a_lock_in_a_missing_folder_is_storage_failed(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed) as failure:
        FileLock(tmp_path / "absent/lock").acquire()
    assert failure.value.fix == "create the folder first"
