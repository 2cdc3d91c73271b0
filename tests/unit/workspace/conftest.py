"""A furnished workspace for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from council.storage.store import Store
from tests.space import Space


@pytest.fixture
def space(tmp_path: Path) -> Iterator[Space]:
    store = Store.memory()
    yield Space(store, tmp_path).furnish()
    store.close()
