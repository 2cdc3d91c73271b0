"""A sync that goes on beside the process: done when it was waited for, and what the disk says of it is told."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.storage.background_sync import BackgroundSync, _Aio, _aio


@pytest.fixture(params=["C library", "an older one", "another one", "no thread"])
def sync(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[BackgroundSync]:
    """With the C library's calls; where they are in a part of their own; as where they are not known; where it refuses."""
    aio = known()
    _aio.cache_clear()
    if request.param == "an older one":
        load = ctypes.CDLL
        monkeypatch.setattr(ctypes, "CDLL", lambda name: load(None) if name == "librt.so.1" else object())
    elif request.param == "another one":
        monkeypatch.setattr(ctypes, "CDLL", without_librt)
    elif request.param == "no thread":
        full = dataclasses.replace(aio, fsync=lambda *_: -1)
        monkeypatch.setattr("council.storage.background_sync._aio", lambda: full)
    yield BackgroundSync()
    monkeypatch.undo()
    _aio.cache_clear()


def known() -> _Aio:
    aio = _aio()
    assert aio is not None
    return aio


def without_librt(name: str | None) -> object:
    if name is not None:
        raise OSError(f"{name}: cannot open shared object file")
    return object()


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


class Interrupted(BaseException):
    """What a signal's handler may raise anywhere."""


def interrupt(*_: object) -> int:
    raise Interrupted


def test_what_interrupts_somebody_who_waits_leaves_it_under_way(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    aio = known()
    unready, waits = iter([errno.EINPROGRESS]), iter([interrupt])
    interrupted = dataclasses.replace(
        aio,
        error=lambda block: next(unready, None) or aio.error(block),
        suspend=lambda *arguments: next(waits, aio.suspend)(*arguments),
    )
    monkeypatch.setattr("council.storage.background_sync._aio", lambda: interrupted)
    sync = BackgroundSync()
    sync.begin(fd)
    with pytest.raises(Interrupted):
        sync.wait()
    assert sync.under_way
    sync.wait()
    assert not sync.under_way


def test_one_that_was_interrupted_before_the_c_library_took_it_is_not_taken_for_done(
    fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    aio = known()
    sync = BackgroundSync()
    sync.begin(fd)
    sync.wait()
    interrupted = dataclasses.replace(aio, fsync=interrupt)
    monkeypatch.setattr("council.storage.background_sync._aio", lambda: interrupted)
    with pytest.raises(Interrupted):
        sync.begin(fd)
    with pytest.raises(OSError, match=os.strerror(errno.ECANCELED)):
        sync.wait()
