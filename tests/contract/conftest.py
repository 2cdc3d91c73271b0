"""A home, and its store on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from council.app.home_store import open_store
from council.settings import Home, Settings
from council.storage.store import Store


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    home.ensure_runtime()
    return home


@pytest.fixture
def store(home: Home, database_url: str | None) -> Iterator[Store]:
    with closing(open_store(home, Settings(database_url=database_url))) as store:
        yield store
