"""In-process events: what the terminal, the state file and (later) live pages show. Droppable; the journal is the truth."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

log = logging.getLogger(__name__)


class Event(msgspec.Struct, frozen=True):
    """Something happened. `kind` is a stable word; `data` holds plain JSON values, never prompt text or secrets."""

    kind: str
    run_id: str = ""
    data: dict[str, Any] = {}


Listener = Callable[[Event], None]


class Events:
    """Hands each event to every listener, in order, in the caller's task. A failing listener is logged, never fatal."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Adds a listener; calling what is returned takes it away again."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, kind: str, run_id: str = "", **data: Any) -> None:
        event = Event(kind, run_id, data)
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed on %s", kind)
