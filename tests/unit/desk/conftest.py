from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from council.desk.desk import Desk
from council.settings import Home
from council.storage.store import Store
from tests.harness import make_home, opened


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(Home(make_home(tmp_path / "home")), {})


@pytest.fixture
def store(desk: Desk) -> Iterator[Store]:
    with opened(desk.home.root) as store:
        yield store
