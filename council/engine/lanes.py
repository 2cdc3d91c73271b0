"""Turns: runs stand in line in their lanes and at their output paths, and one after another is told to go on.

In memory, and pure: what stands here is the same again after a restart, from the journals. Starts nothing, and does not
know how many may run at once.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from council.engine.records import RunHeader


class InLine(Protocol):
    """A run that stands in line, as far as lanes know it."""

    @property
    def id(self) -> str: ...

    @property
    def header(self) -> RunHeader: ...


R = TypeVar("R", bound=InLine)


@dataclass
class _Lane(Generic[R]):
    queue: deque[R] = field(default_factory=deque)
    turn: R | None = None  # running or waiting: a waiting run keeps its lane's turn


class Lanes(Generic[R]):
    """Runs of one lane are serial, in the order in which they joined; so are runs of one output path. Lanes go side by side."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane[R]] = {}
        self._outputs: dict[str, str] = {}  # whose an output path is now
        self._again: list[R] = []  # they have their lane's turn, and want to go on
        self._held: dict[str, R] = {}

    def join(self, run: R) -> None:
        """Puts a run at the end of its lane."""
        self._lanes.setdefault(run.header.lane, _Lane()).queue.append(run)

    def hold(self, run: R) -> None:
        """It stands in line, and is not told to go on before `ask_for` wants it."""
        self._held[run.id] = run

    def ask_for(self, run: R) -> None:
        """Holds neither this run any longer nor those that come before it, in its lane or at its output path."""
        asked = [run]
        while asked:
            wanted = asked.pop()
            self._held.pop(wanted.id, None)
            lane, path, order = wanted.header.lane, wanted.header.output_path, wanted.header.order
            for held in self._held.values():
                is_in_way = held.header.lane == lane or (bool(path) and held.header.output_path == path)
                asked += [held] if is_in_way and held.header.order < order else []

    @property
    def held(self) -> int:
        """The number of runs that are held."""
        return len(self._held)

    def next(self, may_start: Callable[[R], bool] = lambda run: True) -> R | None:
        """Chooses among the heads of the free lanes and the runs that want to go on again, of those that `may_start`. The
        highest priority goes first, among equals the one that was admitted first. From here on that run has its lane's turn
        and its output path."""
        ready = [*self._again]
        for lane in self._lanes.values():
            if lane.turn is None and lane.queue and lane.queue[0].id not in self._held:
                head = lane.queue[0]
                ready += [] if self.is_anothers(head.header.output_path, head) else [head]
        run = min(
            filter(may_start, ready), key=lambda run: (-run.header.priority, run.header.order, run.id), default=None
        )
        if run is None:
            return None
        if run in self._again:
            self._again.remove(run)
            return run
        lane = self._lanes[run.header.lane]
        lane.turn = lane.queue.popleft()
        if run.header.output_path:
            self._outputs[run.header.output_path] = run.id
        return run

    def is_anothers(self, path: str, run: R) -> bool:
        """True when another run than this one has this output path; no path is nobody's."""
        return self._outputs.get(path, run.id) != run.id

    def go_on(self, run: R) -> None:
        """It has its lane's turn, waited, and wants to go on."""
        self._again.append(run)

    def leave(self, run: R) -> None:
        """Stands in no line any more, whatever it waited for; the turn that it may have stays its own."""
        self._held.pop(run.id, None)
        for queue in (self._again, self._lanes[run.header.lane].queue):
            with contextlib.suppress(ValueError):
                queue.remove(run)

    def release(self, run: R) -> None:
        """It has ended: its lane and its output path are the next one's."""
        lane = self._lanes.get(run.header.lane)
        if lane is not None:
            lane.turn = None if lane.turn is run else lane.turn
            if lane.turn is None and not lane.queue:
                del self._lanes[run.header.lane]
        if self._outputs.get(run.header.output_path) == run.id:
            del self._outputs[run.header.output_path]
