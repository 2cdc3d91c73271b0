"""Streams of open pages: what is heard, what is caught up, and who is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from council.events import Events, RoundStart, RunEnd, SpeechPiece, TurnEnd, TurnStart
from council.web.live_updates import MOST_BEHIND, Broadcast, Floor, Listener, LiveStream


def broadcast() -> tuple[Events, Broadcast]:
    events = Events()
    return events, Broadcast(events, "epoch")


async def test_a_listener_hears_what_comes_with_its_number() -> None:
    events, open_pages = broadcast()
    with open_pages.listening() as listener:
        events.publish(RoundStart(run_id="a", round=1, max_rounds=2))
        events.publish(RoundStart(run_id="a", round=2, max_rounds=2))
        assert await listener.next() == (1, RoundStart(run_id="a", round=1, max_rounds=2))
        assert [number for number, _ in listener.rest()] == [2]


async def test_who_comes_again_with_the_last_id_hears_what_was_missed_and_of_another_daemon_nothing() -> None:
    events, open_pages = broadcast()
    for round_no in (1, 2, 3):
        events.publish(RoundStart(run_id="a", round=round_no, max_rounds=3))
        events.publish(SpeechPiece(run_id="a", role="AUDITOR", text="words are not kept"))
    with open_pages.listening("epoch-1") as listener:
        assert [number for number, _ in listener.rest()] == [3, 5]
    for unknown in ("", "another-1", "epoch-x", "epoch-99"):
        with open_pages.listening(unknown) as listener:
            assert list(listener.rest()) == []


async def test_who_is_slow_is_cut_off_and_costs_no_more_memory() -> None:
    events, open_pages = broadcast()
    with open_pages.listening() as slow, open_pages.listening() as other:
        for number in range(MOST_BEHIND):
            events.publish(RoundStart(run_id="a", round=number, max_rounds=1))
        list(other.rest())
        assert not slow.is_cut.is_set()
        events.publish(RoundStart(run_id="a", round=1, max_rounds=1))
        assert slow.is_cut.is_set()
        assert not other.is_cut.is_set()
        assert len(list(slow.rest())) == MOST_BEHIND


async def test_a_stream_whose_client_reads_nothing_ends_when_it_is_cut_off() -> None:
    events, open_pages = broadcast()
    blocked = asyncio.Event()
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if message["type"] == "http.response.body":
            blocked.set()
            await asyncio.Event().wait()  # the client's buffers are full

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def content(listener: Listener) -> AsyncIterator[bytes]:
        yield b"data: x\n\n"

    stream = LiveStream(open_pages, "", content)
    serving = asyncio.create_task(stream({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send))
    await blocked.wait()
    for number in range(MOST_BEHIND + 1):
        events.publish(RoundStart(run_id="a", round=number, max_rounds=1))
    await asyncio.wait_for(serving, 30)
    assert sent == ["http.response.start", "http.response.body"], "nothing is sent after the cut"


async def test_a_listener_waits_no_longer_once_the_server_stops() -> None:
    _, open_pages = broadcast()
    with open_pages.listening() as listener:
        waiting = asyncio.create_task(listener.next(600))
        await asyncio.sleep(0)
        open_pages.stop()
        assert await asyncio.wait_for(waiting, 30) is None
        assert listener.is_over.is_set()


def test_the_floor_has_the_words_of_each_turn_until_it_ends() -> None:
    events = Events()
    floor = Floor(events)
    events.publish(TurnStart(run_id="a", role="AUDITOR", round=2))
    for piece in ("The key", " is here."):
        events.publish(SpeechPiece(run_id="a", role="AUDITOR", round=2, text=piece))
    events.publish(SpeechPiece(run_id="a", role="STRATEGIST", text="Hm."))
    heard = floor.words_in("a")
    assert [(one.role, one.round) for one in heard] == [("AUDITOR", 2), ("STRATEGIST", 0)]
    assert heard[0].text == "The key is here."

    events.publish(SpeechPiece(run_id="a", role="STRATEGIST", text=None))
    assert floor.words_in("a")[1].text == "", "all of it was taken back"
    events.publish(TurnEnd(run_id="a", role="AUDITOR", failure=""))
    assert [one.role for one in floor.words_in("a")] == ["STRATEGIST"]
    events.publish(RunEnd(run_id="a", status="succeeded", artifact="", error=None, notes=()))
    assert floor.words_in("a") == []
