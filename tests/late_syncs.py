"""Syncs in the background that happen as late as they may: when somebody waits for them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


class LateSyncs:
    """As the C library's calls. A sync is an `os.fdatasync`, which a test can see and refuse; `began` is told when one is
    begun."""

    def __init__(self, began: Callable[[], None] = lambda: None) -> None:
        self._begun: dict[int, int] = {}
        self._began = began

    def fsync(self, _: int, block: Any) -> int:
        self._began()
        self._begun[id(block)] = block.contents.fd
        return 0

    def error(self, block: Any) -> int:
        try:
            os.fdatasync(self._begun[id(block)])
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def result(self, block: Any) -> None:
        del self._begun[id(block)]


def sync_late(monkeypatch: pytest.MonkeyPatch, began: Callable[[], None] = lambda: None) -> None:
    late = LateSyncs(began)
    monkeypatch.setattr("council.storage.background_sync._aio", lambda: late)
