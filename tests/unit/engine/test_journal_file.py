"""What the disk refuses does not stay in a journal's file, and comes again with the next line."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from council.engine.journal_file import JournalFile
from tests.late_syncs import sync_late


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


@pytest.fixture
def late_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    sync_late(monkeypatch)


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


def test_a_line_that_is_under_way_is_on_the_disk_when_it_is_secured_and_costs_one_sync(
    journal: JournalFile, path: Path, late_syncs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[bytes] = []
    monkeypatch.setattr(os, "fdatasync", lambda _: syncs.append(lines(path)))
    journal.append(b"one\n", sync=True, wait=False)
    assert (lines(path), syncs) == (b"one\n", [])
    journal.append(b"begin\n", sync=False)
    journal.secure()
    journal.secure()
    assert syncs == [b"one\nbegin\n"]
    journal.append(b"two\n", sync=True, wait=False)
    journal.append(b"three\n", sync=True, wait=False)
    assert len(syncs) == 2  # never two lines that may both be missing
    journal.append(b"four\n", sync=True)
    assert len(syncs) == 4
    journal.close()
    assert path.read_bytes() == b"one\nbegin\ntwo\nthree\nfour\n"


def test_a_line_that_never_got_to_the_disk_is_owed_and_comes_before_any_other(
    journal: JournalFile, path: Path, late_syncs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(b"one\n", sync=True)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", refusing)
        journal.append(b"two\n", sync=True, wait=False)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output"):
                journal.append(b"three\n", sync=True)
            assert lines(path) == b"one\n"
        journal.rest()
        with pytest.raises(OSError, match="Input/output"):
            journal.secure()
    journal.append(b"three\n", sync=True)
    assert lines(path) == b"one\ntwo\nthree\n"


def test_a_journal_that_rests_while_a_line_is_under_way_owes_it(
    journal: JournalFile, path: Path, late_syncs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", refusing)
        journal.append(b"one\n", sync=True, wait=False)
        journal.rest()
    assert path.read_bytes() == b""
    journal.secure()
    assert lines(path) == b"one\n"


def test_what_the_disk_says_later_of_a_line_that_was_under_way_is_heard() -> None:
    """A device that takes what is written and cannot be synced; the C library's thread is told so."""
    journal = JournalFile(Path(os.devnull), os.open(os.devnull, os.O_WRONLY))
    journal.append(b"one\n", sync=True, wait=False)
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        journal.secure()
    journal.rest()


class Forgetful:
    """A disk that fails once: what it could not write it takes for written, and tells the first who syncs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, unwritten: bytes = b"") -> None:
        self.holds = b""  # the lines that are really on it
        self._unwritten: list[tuple[int, bytes]] = [(0, unwritten)]
        self._failures = [OSError(errno.EIO, os.strerror(errno.EIO))]
        self._write = os.pwrite
        monkeypatch.setattr(os, "pwrite", self._noted)
        monkeypatch.setattr(os, "fdatasync", self._synced)

    def _noted(self, fd: int, data: bytes, at: int) -> int:
        self._unwritten.append((at, data))
        return self._write(fd, data, at)

    def _synced(self, _: int) -> None:
        what, self._unwritten = self._unwritten, []
        if self._failures:
            raise self._failures.pop()
        for at, data in what:
            self.holds = (self.holds[:at].ljust(at, b"?") + data).rstrip(b"\n") + b"\n"


def test_lines_of_a_former_process_whose_sync_failed_are_written_again_and_synced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync after one that failed says nothing of what was to be written before: the system takes that for clean."""
    path.write_bytes(b"one\ntwo\n")
    journal = JournalFile.found(path, size_bytes=8, lines_bytes=8)
    disk = Forgetful(monkeypatch, b"one\ntwo\n")
    with pytest.raises(OSError, match="Input/output"):
        journal.secure()
    journal.secure()
    assert disk.holds == b"one\ntwo\n"
    assert path.read_bytes() == b"one\ntwo\n"
    journal.close()


def test_what_the_disk_says_of_a_line_under_way_is_not_heard_by_the_sync_of_a_cut(
    journal: JournalFile, path: Path, late_syncs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told once: who heard it in another's place would leave that line for written."""
    journal.append(b"one\n", sync=True, wait=False)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half(os.pwrite))
        with pytest.raises(OSError, match="No space"):
            journal.append(b"begin\n", sync=False)
    disk = Forgetful(monkeypatch, b"one\n")
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"begin\n", sync=False)
    journal.append(b"begin\n", sync=False)
    journal.append(b"two\n", sync=True)
    assert disk.holds == lines(path) == b"one\nbegin\ntwo\n"


def test_unsynced_lines_go_with_a_cut_that_the_disk_did_not_take(
    journal: JournalFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(b"one\n", sync=True)
    journal.append(b"begin\n", sync=False)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half(os.pwrite))
        with pytest.raises(OSError, match="No space"):
            journal.append(b"two\n", sync=True)
    disk = Forgetful(monkeypatch, b"one\nbegin\n")
    disk.holds = b"one\n"
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"two\n", sync=True)
    journal.append(b"two\n", sync=True)
    assert disk.holds == lines(path) == b"one\ntwo\n"


def test_a_line_that_is_owed_comes_before_an_unsynced_one(
    journal: JournalFile, path: Path, late_syncs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", refusing)
        journal.append(b"one\n", sync=True, wait=False)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output"):
                journal.secure()
        with pytest.raises(OSError, match="Input/output"):
            journal.append(b"begin\n", sync=False)
    journal.append(b"begin\n", sync=False)
    assert lines(path) == b"one\nbegin\n"


def test_a_line_that_is_owed_is_written_when_the_journal_is_closed_if_the_disk_takes_it(
    journal: JournalFile, path: Path, late_syncs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", refusing)
        journal.append(b"one\n", sync=True, wait=False)
        journal.rest()
        journal.close()
    assert path.read_bytes() == b""
    journal.close()
    assert path.read_bytes() == b"one\n"
