"""The news that an open page hears: the daemon's events through a bounded queue, and the words of who speaks in each run.

Nothing here is kept. Who is slow is cut off, and a page that comes again is sent as it is then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from council.events import Event, Events, RunEnd, RunReturn, SpeechPiece, TurnEnd, TurnStart

STILL_S = 15.0  # between two signs of life on a stream that is quiet
MOST_BEHIND = 500  # events that wait for one listener: seconds of the busiest council
_KEPT = 1_000  # events of the daemon, for who was away for a moment
_SAID_CHARS = 4_000  # the end of a speech; the page of the run has all of it


class Listener:
    """One open stream. `is_over`: the server stops, and the stream ends. `is_cut`: too many events wait, for the client reads
    too slowly. Then its connection is closed."""

    def __init__(self, missed: list[tuple[int, Event]]) -> None:
        self.is_over = asyncio.Event()
        self.is_cut = asyncio.Event()
        self._waiting: asyncio.Queue[tuple[int, Event]] = asyncio.Queue(MOST_BEHIND + len(missed))
        for each in missed:
            self._waiting.put_nowait(each)

    def hear(self, number: int, event: Event) -> None:
        try:
            self._waiting.put_nowait((number, event))
        except asyncio.QueueFull:
            self.is_cut.set()

    async def next(self, within_s: float = STILL_S) -> tuple[int, Event] | None:
        """The next event and its number; None where nothing happens for so long, or the stream is to end."""
        coming, over = asyncio.ensure_future(self._waiting.get()), asyncio.ensure_future(self.is_over.wait())
        try:
            await asyncio.wait({coming, over}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() else None
        finally:
            coming.cancel()
            over.cancel()

    async def news(self, *types: type[Event]) -> bool:
        """Waits for an event of these types; False where none comes for a while, or the stream is to end."""
        while (heard := await self.next()) is not None:
            if isinstance(heard[1], types):
                return True
        return False

    def rest(self) -> Iterator[tuple[int, Event]]:
        """The events that wait already."""
        while not self._waiting.empty():
            yield self._waiting.get_nowait()


class Broadcast:
    """The events of this daemon, numbered from 1, for every open stream. `epoch` tells one daemon's numbers from another's."""

    def __init__(self, events: Events, epoch: str) -> None:
        self.epoch = epoch
        self._listeners: set[Listener] = set()
        self._last = 0
        self._kept: deque[tuple[int, Event]] = deque(maxlen=_KEPT)
        events.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        self._last += 1
        if not isinstance(event, SpeechPiece):
            self._kept.append((self._last, event))
        for listener in tuple(self._listeners):
            listener.hear(self._last, event)

    @contextlib.contextmanager
    def listening(self, after: str = "") -> Iterator[Listener]:
        """A listener that hears what came after the id `after` (`epoch-number`), as far as it is kept, and all that comes."""
        epoch, _, number = after.rpartition("-")
        since = int(number[:18]) if epoch == self.epoch and number.isascii() and number.isdigit() else self._last
        listener = Listener([(at, event) for at, event in self._kept if at > since])
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def stop(self) -> None:
        """Ends every stream: the server stops."""
        for listener in self._listeners:
            listener.is_over.set()


@dataclass(frozen=True)
class GrowingSpeech:
    """The words of an agent's turn as far as they are said. `text` is their end."""

    role: str
    round: int
    text: str = ""


class Floor:
    """The agents who speak now, by run."""

    def __init__(self, events: Events) -> None:
        self._turns: dict[str, dict[str, GrowingSpeech]] = {}
        events.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, TurnStart | SpeechPiece):
            turns = self._turns.setdefault(event.run_id, {})
            piece = None if isinstance(event, TurnStart) else event.text
            before = turns[event.role].text if piece and event.role in turns else ""
            text = f"{before}{piece or ''}"[-_SAID_CHARS:]
            turns[event.role] = GrowingSpeech(event.role, event.round, text)
        elif isinstance(event, TurnEnd):
            self._turns.get(event.run_id, {}).pop(event.role, None)
        elif isinstance(event, RunEnd | RunReturn):
            self._turns.pop(event.run_id, None)

    def words_in(self, run_id: str) -> list[GrowingSpeech]:
        return list(self._turns.get(run_id, {}).values())


class LiveStream(StreamingResponse):
    """Sends what `content` makes of a listener. It ends at once when that is cut off, even while the client reads nothing."""

    media_type = "text/event-stream"

    def __init__(self, broadcast: Broadcast, after: str, content: Callable[[Listener], AsyncIterator[bytes]]) -> None:
        super().__init__((), headers={"X-Accel-Buffering": "no"})
        self._broadcast = broadcast
        self._after = after
        self._content = content
        self._cut = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._broadcast.listening(self._after) as listener:
            self._cut, self.body_iterator = listener.is_cut, self._content(listener)
            await super().__call__(scope, receive, send)

    async def listen_for_disconnect(self, receive: Receive) -> None:
        gone = asyncio.ensure_future(super().listen_for_disconnect(receive))
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait({gone, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            cut.cancel()
