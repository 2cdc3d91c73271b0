"""A rehearsed run for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rehearsal import Rehearsal, rehearsal


@pytest.fixture
def played() -> Iterator[Rehearsal]:
    with rehearsal() as one:
        yield one
