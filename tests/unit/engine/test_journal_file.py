"""What the disk refuses does not stay in a journal's file, and comes again with the next line."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from council.engine.journal_file import JournalFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


@pytest.fixture
def journal(path: Path) -> JournalFile:
    return JournalFile(path, os.open(path, os.O_WRONLY | os.O_CREAT))


def refusing(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def half(write: Callable[[int, bytes, int], int]) -> Callable[[int, bytes, int], int]:
    return lambda fd, data, at: write(fd, data[: len(data) // 2], at)


def lines(path: Path) -> bytes:
    """What is in the file but for the room at its end."""
    return path.read_bytes().rstrip(b"\n") + b"\n"


def test_what_follows_the_last_good_sync_is_cut_off_when_a_sync_fails(
    journal: JournalFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(b"one\n", sync=True)
    journal.append(b"two\n", sync=False)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", refusing)
        with pytest.raises(OSError, match="Input/output"):
            journal.append(b"three\n", sync=True)
    assert lines(path) == b"one\n"
    journal.append(b"three\n", sync=True)
    assert lines(path) == b"one\nthree\n"


def test_what_could_not_be_cut_off_at_once_is_cut_off_before_the_next_line(
    journal: JournalFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(b"one\n", sync=True)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", refusing)
        broken.setattr(os, "ftruncate", refusing)
        with pytest.raises(OSError, match="Input/output"):
            journal.append(b"two\n", sync=True)
    journal.append(b"three\n", sync=False)
    assert lines(path) == b"one\nthree\n"


def test_of_a_line_that_the_disk_took_in_part_nothing_stays(
    journal: JournalFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(b"one\n", sync=False)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half(os.pwrite))
        with pytest.raises(OSError, match="No space"):
            journal.append(b"twenty\n", sync=False)
    assert lines(path) == b"one\n"


def test_at_rest_it_holds_no_descriptor_and_appends_again(journal: JournalFile, path: Path) -> None:
    journal.append(b"one\n", sync=True)
    held = len(os.listdir("/dev/fd"))
    journal.rest()
    assert len(os.listdir("/dev/fd")) == held - 1
    journal.append(b"two\n", sync=True)
    assert lines(path) == b"one\ntwo\n"
    journal.rest()


def test_bytes_that_were_there_when_it_was_opened_outlive_a_failed_sync(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"one\n")
    journal = JournalFile(path, os.open(path, os.O_WRONLY), synced_bytes=4)
    monkeypatch.setattr(os, "fdatasync", refusing)
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"two\n", sync=True)
    assert lines(path) == b"one\n"


def test_a_line_that_needs_no_more_room_leaves_the_size_as_it_is_and_closing_gives_the_room_back(
    journal: JournalFile, path: Path
) -> None:
    journal.append(b"one\n", sync=True)
    size = path.stat().st_size
    for number in range(100):
        journal.append(b"%d\n" % number, sync=bool(number % 2))
    assert path.stat().st_size == size > 4096
    journal.close()
    assert path.read_bytes() == b"one\n" + b"".join(b"%d\n" % number for number in range(100))


def test_a_disk_that_is_full_but_for_a_line_takes_the_line(
    journal: JournalFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite

    def at_most(fd: int, data: bytes, at: int) -> int:
        if at + len(data) > 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data, at)

    monkeypatch.setattr(os, "pwrite", at_most)
    journal.append(b"one\n", sync=True)
    journal.append(b"two\n", sync=True)
    with pytest.raises(OSError, match="No space"):
        journal.append(b"more than is left\n", sync=True)
    journal.append(b"three\n", sync=True)
    journal.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_what_somebody_else_changed_while_it_was_at_rest_is_not_written_over(journal: JournalFile, path: Path) -> None:
    journal.append(b"one\n", sync=True)
    journal.rest()
    other = path.with_name("other")
    other.write_bytes(b"1\n2\n3\n")
    other.rename(path)
    with pytest.raises(OSError, match="somebody else has changed it"):
        journal.append(b"two\n", sync=True)
    journal.close()
    assert path.read_bytes() == b"1\n2\n3\n"


def test_lines_of_a_former_process_whose_sync_failed_are_written_again_and_synced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync after one that failed says nothing of what was to be written before: the system takes that for clean."""
    path.write_bytes(b"one\ntwo\n")
    journal = JournalFile.found(path, size_bytes=8, lines_bytes=8)
    unwritten, on_disk = bytearray(b"one\ntwo\n"), bytearray()
    write, failures = os.pwrite, iter([OSError(errno.EIO, os.strerror(errno.EIO))])

    def noted(fd: int, data: bytes, at: int) -> int:
        unwritten[at : at + len(data)] = data
        return write(fd, data, at)

    def synced(fd: int) -> None:
        what = bytes(unwritten)
        unwritten.clear()
        for failure in failures:
            raise failure
        on_disk[:] = what

    monkeypatch.setattr(os, "pwrite", noted)
    monkeypatch.setattr(os, "fdatasync", synced)
    with pytest.raises(OSError, match="Input/output"):
        journal.secure()
    journal.secure()
    assert on_disk == b"one\ntwo\n"
    assert path.read_bytes() == b"one\ntwo\n"
    journal.close()
