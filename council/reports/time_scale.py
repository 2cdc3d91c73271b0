"""The scales of the pictures: time, in which long pauses are drawn short, and round ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10

_PAUSE_SHARE = 0.12  # a pause longer than this part of all working time is drawn short
_PAUSE_WIDTH = 46.0
_STEPS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
_TICKS = 8
_ROUND = (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10)  # each in quarters is readable


@dataclass(frozen=True)
class Stretch:
    began_ms: int
    ended_ms: int
    x0: float
    x1: float

    def x(self, ms: int) -> float:
        length = max(1, self.ended_ms - self.began_ms)
        return self.x0 + (self.x1 - self.x0) * (ms - self.began_ms) / length


class TimeScale:
    """Maps milliseconds to places between `left` and `right`."""

    def __init__(self, spans: Sequence[tuple[int, int]], left: float, right: float) -> None:
        """`spans` is not empty; they may overlap, in any order."""
        working = sum(ended - began for began, ended in joined(spans, 0))
        drawn = joined(spans, max(1, int(working * _PAUSE_SHARE)))  # over pauses that are too short to be drawn as one
        width = right - left - _PAUSE_WIDTH * (len(drawn) - 1)
        total = max(1, sum(ended - began for began, ended in drawn))
        self.stretches: list[Stretch] = []
        at = left
        for began, ended in drawn:
            end = at + width * (ended - began) / total
            self.stretches.append(Stretch(began, ended, at, end))
            at = end + _PAUSE_WIDTH
        self._step_s = next((step for step in _STEPS_S if total / 1000 / step <= _TICKS), _STEPS_S[-1])
        self._origin = drawn[0][0]

    def x(self, ms: int) -> float:
        for stretch in self.stretches:
            if ms < stretch.began_ms:
                return stretch.x0 - (_PAUSE_WIDTH / 2 if stretch is not self.stretches[0] else 0)
            if ms <= stretch.ended_ms:
                return stretch.x(ms)
        return self.stretches[-1].x1

    def pauses(self) -> Iterator[tuple[float, float, float]]:
        """x0, x1 and seconds of each pause that is drawn short."""
        for one, other in zip(self.stretches, self.stretches[1:], strict=False):
            yield one.x1, other.x0, (other.began_ms - one.ended_ms) / 1000

    def ticks(self) -> Iterator[tuple[float, float]]:
        """Places, and their seconds since the first stretch began."""
        step_ms = self._step_s * 1000
        for stretch in self.stretches:
            first = -(-(stretch.began_ms - self._origin) // step_ms)
            count = int((stretch.ended_ms - self._origin) // step_ms - first)
            for number in range(min(count, 2 * _TICKS) + 1):
                offset = (first + number) * step_ms
                yield stretch.x(int(self._origin + offset)), offset / 1000


def joined(spans: Iterable[tuple[int, int]], pause: int) -> list[tuple[int, int]]:
    """The spans in order, as one where no more than `pause` lies between them. They may overlap, in any order."""
    found: list[tuple[int, int]] = []
    for began, ended in sorted(spans):
        if found and began - found[-1][1] <= pause:
            found[-1] = (found[-1][0], max(ended, found[-1][1]))
        else:
            found.append((began, max(began, ended)))
    return found


def nice_ceiling(value: float) -> float:
    """The next round number that is not less; 1 for 0. Round are 1, 1.2, 1.6, 2, 3, 4, 5, 6 and 8 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in _ROUND if step * power >= value * 0.999999)
