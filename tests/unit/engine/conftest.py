"""A store in memory for each test of this room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from council.storage.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with contextlib.closing(Store.memory()) as store:
        yield store
