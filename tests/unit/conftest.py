"""A store, and a rehearsed run, for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from council.storage.store import Store
from tests.rehearsal import Rehearsal, rehearsal


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(tmp_path)) as store:
        yield store


@pytest.fixture
def played() -> Iterator[Rehearsal]:
    with rehearsal() as one:
        yield one
