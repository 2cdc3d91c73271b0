"""What runs beside the inbox: started again when it dies, and told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from council.daemon import companions
from council.daemon.companions import Companions
from council.errors import CouncilError
from council.events import CompanionFailure, CompanionRecovery, Event, Events


class Broken(CouncilError):
    code = "broken"


@dataclass
class Scripted:
    """Fails as it is told, once for each entry, and then runs until it is stopped."""

    failures: list[Callable[[], None]]
    name: str = "one"
    begun: int = 0
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        self.begun += 1
        if self.failures:
            self.failures.pop(0)()
            return
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@dataclass
class Relapsing:
    """Fails twice, runs until it is told that it recovered, fails again, and then runs until it is stopped."""

    name: str = "one"
    begun: int = 0
    recovered: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        self.begun += 1
        if self.begun == 3:
            await self.recovered.wait()
        if self.begun <= 3:
            raise Broken("again", fix="")
        await asyncio.Event().wait()


async def kept(companion: Scripted, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The events of a companion until it has recovered and was stopped."""
    monkeypatch.setattr(companions, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(companions, "_LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(companions, "_STEADY_S", 0.01)
    told: list[dict[str, Any]] = []
    steady, events = asyncio.Event(), Events()

    def hear(event: Event) -> None:
        told.append({"event": event.kind, **event.values()})
        if event.kind == "companion_recovered":
            steady.set()

    events.subscribe(hear)
    every = Companions([companion], events, lambda text: text.replace("key", "[secret]"))
    every.start()
    await asyncio.wait_for(steady.wait(), 10)
    assert every.degraded == {}
    await every.stop()
    assert companion.stopped.is_set()
    return told


async def test_one_that_dies_is_told_and_started_again_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    companion = Scripted([raising(Broken("no key", fix="")), raising(ValueError("key")), lambda: None])
    told = await kept(companion, monkeypatch)
    assert companion.begun == 4
    reasons = ["no [secret]", "internal error (ValueError)", "it ended"]
    assert [event["reason"] for event in told[:3]] == reasons
    assert [event["again_s"] for event in told[:3]] == [0.01, 0.02, 0.02]
    assert told[3:] == [{"event": "companion_recovered", "name": "one"}]


async def test_one_that_is_cancelled_or_wants_to_exit_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    companion = Scripted([raising(asyncio.CancelledError()), raising(SystemExit("no port for key"))])
    told = await kept(companion, monkeypatch)
    assert [event.get("reason") for event in told] == [
        "it was cancelled",
        "it asked to exit with no port for [secret]",
        None,
    ]


async def test_one_that_lives_a_little_longer_than_its_last_pause_waits_longer_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(companions, "_FIRST_PAUSE_S", 0.02)
    events, pauses, ended = Events(), list[float](), asyncio.Event()

    class ShortLived:
        name = "one"

        async def run(self) -> None:
            if pauses:
                await asyncio.sleep(pauses[-1] + 0.01)

    def hear(event: Event) -> None:
        if isinstance(event, CompanionFailure):
            pauses.append(event.again_s)
            if len(pauses) == 4:
                ended.set()

    events.subscribe(hear)
    every = Companions([ShortLived()], events, str)
    every.start()
    await asyncio.wait_for(ended.wait(), 10)
    await every.stop()
    assert pauses == [0.02, 0.04, 0.08, 0.16]


async def test_one_that_ends_in_its_own_way_when_it_is_told_to_stop_is_not_started_again() -> None:
    begun, events, told = asyncio.Event(), Events(), list[Event]()

    class Polite:
        name = "one"

        async def run(self) -> None:
            begun.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    events.subscribe(told.append)
    every = Companions([Polite()], events, str)
    every.start()
    await begun.wait()
    await every.stop()
    assert (told, every.degraded) == ([], {})


async def test_one_that_had_recovered_is_started_again_as_soon_as_the_first_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(companions, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(companions, "_STEADY_S", 0.01)
    companion, events, pauses, ended = Relapsing(), Events(), list[float](), asyncio.Event()

    def hear(event: Event) -> None:
        match event:
            case CompanionFailure():
                pauses.append(event.again_s)
            case CompanionRecovery() if companion.recovered.is_set():
                ended.set()
            case CompanionRecovery():
                companion.recovered.set()

    events.subscribe(hear)
    every = Companions([companion], events, str)
    every.start()
    await asyncio.wait_for(ended.wait(), 10)
    await every.stop()
    assert pauses == [0.01, 0.02, 0.01]
