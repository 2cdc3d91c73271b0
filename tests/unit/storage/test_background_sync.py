"""A sync that goes on beside the process: done when it was waited for, and what the disk says of it is told."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.storage.background_sync import BackgroundSync, _aio


@pytest.fixture(params=["C library", "none"])
def sync(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> BackgroundSync:
    """With the C library's calls, and as where they are not known."""
    assert _aio() is not None
    if request.param == "none":
        monkeypatch.setattr("council.storage.background_sync._aio", lambda: None)
    return BackgroundSync()


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    yield fd
    os.close(fd)


@pytest.fixture
def device() -> Iterator[int]:
    """It takes what is written, and cannot be synced."""
    fd = os.open(os.devnull, os.O_WRONLY)
    yield fd
    os.close(fd)


def test_it_is_under_way_until_somebody_waited_for_it(sync: BackgroundSync, fd: int) -> None:
    assert not sync.under_way
    for number in range(100):
        os.write(fd, b"%d\n" % number)
        sync.begin(fd)
        assert sync.under_way
        sync.wait()
        assert not sync.under_way


def test_what_the_disk_refuses_is_told_once_and_the_next_one_is_a_new_one(
    sync: BackgroundSync, fd: int, device: int
) -> None:
    sync.begin(device)
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        sync.wait()
    assert not sync.under_way
    sync.wait()
    sync.begin(fd)
    sync.wait()


def test_many_at_once_are_each_told_their_own(fd: int, device: int) -> None:
    syncs = [BackgroundSync() for _ in range(200)]
    for number, sync in enumerate(syncs):
        sync.begin(device if number % 3 == 0 else fd)
    failed = []
    for number, sync in enumerate(syncs):
        try:
            sync.wait()
        except OSError:
            failed.append(number)
    assert failed == list(range(0, 200, 3))


def test_one_that_nobody_waits_for_goes_to_its_end_before_it_is_forgotten(fd: int) -> None:
    for number in range(200):
        os.write(fd, b"%d\n" % number)
        sync = BackgroundSync()
        sync.begin(fd)
        del sync
