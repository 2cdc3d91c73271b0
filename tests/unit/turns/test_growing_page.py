"""The page of a run while it goes on: shown soon, seldom, and never at the run's cost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from council.engine.outputs import sealed
from council.errors import StorageFailed
from council.turns.growing_page import GrowingPage
from tests.rehearsal import Rehearsal


class HeldClock:
    def __init__(self) -> None:
        self.at_s = 100.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic_s(self) -> float:
        return self.at_s


class Shown:
    """A page that is counted, and what of it reached the disk."""

    def __init__(self, played: Rehearsal, cost_s: float = 0.0, *, fails: bool = False, ended: bool = False) -> None:
        self.clock = HeldClock()
        self.pages: list[bytes] = []
        self._cost_s = cost_s
        self._fails = fails
        self._made = 0
        run = played.resumed(ended=ended)
        self._run_id = run.id
        run.output.grow = self._grow  # type: ignore[method-assign]
        self.page = GrowingPage(run, self.clock, self._make)

    def _make(self) -> str:
        self._made += 1
        self.clock.at_s += self._cost_s
        return f"page {self._made}"

    def _grow(self, data: bytes) -> None:
        if self._fails:
            raise StorageFailed("the disk is full.")
        page = data.partition(b"\n<!-- ")[0]
        assert data == sealed(page, self._run_id)
        self.pages.append(page)


async def test_a_page_is_shown_at_once_and_then_no_sooner_than_after_a_second(played: Rehearsal) -> None:
    shown = Shown(played)
    for _ in range(3):
        shown.page.grow()
    assert shown.pages == [b"page 1"]
    shown.page.stop()
    shown.clock.at_s += 1.0
    shown.page.show()
    assert shown.pages == [b"page 1", b"page 2"]


async def test_what_was_put_off_is_shown_when_the_time_has_come(played: Rehearsal) -> None:
    shown = Shown(played)
    shown.page.grow()
    shown.clock.at_s += 0.999
    shown.page.grow()
    while len(shown.pages) < 2:
        await asyncio.sleep(0)
    assert shown.pages == [b"page 1", b"page 2"]


@pytest.mark.parametrize(("pause_s", "pages"), [(19.0, 1), (20.0, 2)])
async def test_a_page_that_takes_long_is_shown_less_often(played: Rehearsal, pause_s: float, pages: int) -> None:
    shown = Shown(played, cost_s=2.0)
    shown.page.grow()
    shown.clock.at_s += pause_s
    shown.page.grow()
    shown.page.stop()
    assert len(shown.pages) == pages


async def test_an_ended_run_shows_nothing(played: Rehearsal) -> None:
    shown = Shown(played, ended=True)
    shown.page.grow()
    assert shown.pages == []


async def test_a_page_that_cannot_be_written_does_not_stop_the_run(
    played: Rehearsal, caplog: pytest.LogCaptureFixture
) -> None:
    shown = Shown(played, fails=True)
    shown.page.grow()
    assert "the disk is full" in caplog.text
