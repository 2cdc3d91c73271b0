"""The drop: whole, durable, never over another command; and which names count as commands."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from council.errors import PathRefused, StorageFailed
from council.storage import command_drop as drop_module
from council.storage import files
from council.storage.command_drop import DroppedFile, drop, is_command_name

COMMAND_NAMES = [
    "task.json", "TASK.JSON", "a.yaml", "a.yml", "a.YML", "a.md", "a b (2).md", "état.md", "a.tmp.json", "error.md",
    "a-error.md", "my-readme.md", "readme-rewrite.json", "a.error.json", "~a.json",
]  # fmt: skip
OTHER_NAMES = [
    "", "README", "README.md", "readme.json", ".hidden.json", ".a.md.0f.tmp", ".run.taken",
    "a.json~", "a.md~", "a.json.tmp", "a.TMP", "a.json.part", "a.json.swp", "a.md.swp", "a.error.md", "a.ERROR.MD",
    "a.txt", "a", "json", "a.json.bak", "a.toml", "failed/a.json", "/a.json",
]  # fmt: skip


@pytest.fixture(params=["native", "fallback"])
def rename_support(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "fallback":
        monkeypatch.setattr(files, "_renameat2", lambda: None)
    return str(request.param)


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_a_plain_name_with_a_command_ending_counts(name: str) -> None:
    assert is_command_name(name) is True


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_any_other_name_never_counts(name: str) -> None:
    assert is_command_name(name) is False


@pytest.mark.parametrize(
    "name",
    [*OTHER_NAMES, "../a.json", "..", "~a.json", "a\x00.json", "a\n.json", "a\\b.json", "x" * 300 + ".json"],
    ids=ascii,
)
def test_a_name_that_would_never_be_read_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    inbox = tmp_path / "commands"
    (inbox / "failed").mkdir(parents=True)
    with pytest.raises(PathRefused) as refusal:
        drop(inbox, name, b"{}")
    assert refusal.value.fix
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["commands", "failed"]


@pytest.mark.usefixtures("rename_support")
def test_a_drop_tells_where_it_went_and_what_identifies_it(tmp_path: Path) -> None:
    dropped = drop(tmp_path, "task.json", b'{"a": 1}')
    status = (tmp_path / "task.json").stat()
    assert dropped == DroppedFile(
        tmp_path / "task.json", status.st_ino, status.st_mtime_ns, hashlib.sha256(b'{"a": 1}').hexdigest()
    )
    assert status.st_nlink == 1
    assert os.listdir(tmp_path) == ["task.json"]


@pytest.mark.usefixtures("rename_support")
def test_a_taken_name_gets_a_number_and_what_lies_there_stays(tmp_path: Path) -> None:
    names = [drop(tmp_path, "a.b.json", str(number).encode()).path.name for number in range(3)]
    assert names == ["a.b.json", "a.b-2.json", "a.b-3.json"]
    assert [(tmp_path / name).read_bytes() for name in names] == [b"0", b"1", b"2"]


def test_a_name_of_the_greatest_length_still_gets_its_number(tmp_path: Path) -> None:
    name = "é" * 125 + ".json"
    paths = [drop(tmp_path, name, b"{}").path for _ in range(3)]
    assert len({path.name for path in paths}) == 3
    assert all(is_command_name(path.name) and path.exists() for path in paths)


def test_too_many_namesakes_are_storage_failed_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drop_module, "MAX_NAMESAKES", 3)
    for _ in range(3):
        drop(tmp_path, "a.json", b"{}")
    with pytest.raises(StorageFailed):
        drop(tmp_path, "a.json", b"{}")
    assert sorted(os.listdir(tmp_path)) == ["a-2.json", "a-3.json", "a.json"]


@pytest.mark.parametrize("broken", ["write", "fsync"])
def test_a_failing_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(StorageFailed) as failure:
        drop(tmp_path, "a.json", b"{}")
    assert "space" in failure.value.fix
    assert os.listdir(tmp_path) == []


def test_the_bytes_are_on_the_disk_before_the_name_is_seen_and_the_name_before_the_drop_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []  # a folder or a file, and whether the command was seen by then

    def note(fd: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(fd).st_mode), (tmp_path / "a.json").exists()))

    monkeypatch.setattr(os, "fsync", note)
    drop(tmp_path, "a.json", b"{}")
    assert synced == [(False, False), (True, True)]


def test_a_drop_without_an_inbox_is_storage_failed(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed) as failure:
        drop(tmp_path / "absent", "a.json", b"{}")
    assert failure.value.fix == "create the folder first"


@pytest.mark.usefixtures("rename_support")
def test_ten_droppers_of_one_name_lose_nothing_and_readers_see_only_whole_files(tmp_path: Path) -> None:
    droppers, drops_each = 10, 10
    begin, done = threading.Barrier(droppers + 1), threading.Event()
    torn: list[str] = []

    def payload(dropper: int, number: int) -> bytes:
        body = f"{dropper}-{number};".encode() * 20_000
        return hashlib.sha256(body).hexdigest().encode() + body

    def is_whole(data: bytes) -> bool:
        return hashlib.sha256(data[64:]).hexdigest().encode() == data[:64]

    def drop_all(dropper: int) -> list[DroppedFile]:
        begin.wait()
        return [drop(tmp_path, "task.json", payload(dropper, number)) for number in range(drops_each)]

    def watch() -> int:
        begin.wait()
        whole: set[str] = set()
        while True:
            last_look = done.is_set()
            for name in set(filter(is_command_name, os.listdir(tmp_path))) - whole:
                (whole.add if is_whole((tmp_path / name).read_bytes()) else torn.append)(name)
            if last_look:
                return len(whole)

    with ThreadPoolExecutor(droppers + 1) as pool:
        watching = pool.submit(watch)
        dropped = [one for each in pool.map(drop_all, range(droppers)) for one in each]
        done.set()
        seen = watching.result()

    total = droppers * drops_each
    expected = {payload(dropper, number) for dropper in range(droppers) for number in range(drops_each)}
    assert torn == []
    assert seen == total
    assert len({one.path for one in dropped}) == total
    assert {one.path.read_bytes() for one in dropped} == expected
    assert len(os.listdir(tmp_path)) == total
