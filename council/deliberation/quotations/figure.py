"""A figure of a text, as it is compared and calculated with. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

Kind = Literal["number", "date", "time", "label", "weekday", "ordinal"]
Hedge = Literal["", "about", "over", "under", "least", "most"]
Side = Literal["", "for", "against", "abstained", "one", "other"]  # the last two: `4 votes to 1`
Ballot = tuple[tuple[Side, float], ...]
NONE: frozenset[Fraction] = frozenset()
_MAX_COUNTED = 12  # things that a writer counts, instead of reading their number


@dataclass(frozen=True)
class Figure:
    """A figure at `start` to `end`. `values` are its readings, in the `unit` that it is measured in (empty: unknown). `bare` are
    those without it: `two weeks` are 2, and 20,160 minutes. `dates` are `(year, month, day)`, with 0 for what is left out. `noun`
    is the word behind it, `following` the next two. `rough` is what the words before it leave open,
    `bound` the limit that a text states: `at most 500`, `it is over 500`. `worded`: spelled in letters.
    `per`: the months that an amount is for, 0 where they are open. `each`: the noun of what it is for. `sign`: empty where the
    text leaves it open. `weekday`: 0 for a Monday; that of the words beside a date, or of a figure that is a weekday, with the
    `dates` that it is said of. `side`: what a number of votes is for, `ballot` all that its ballot says."""

    start: int
    end: int
    text: str
    values: frozenset[Fraction] = frozenset()
    bare: frozenset[Fraction] = frozenset()
    unit: str = ""
    dates: frozenset[tuple[int, int, int]] = frozenset()
    noun: str = ""
    following: tuple[str, ...] = ()
    rough: Hedge = ""
    bound: Hedge = ""
    worded: bool = False
    per: Fraction = Fraction(0)
    each: str = ""
    sign: Literal["", "+", "-"] = ""
    weekday: int | None = None
    side: Side = ""
    ballot: Ballot = ()
    kind: Kind = "number"

    @cached_property
    def value(self) -> float:
        """The largest reading, in its unit: what is calculated with."""
        return max(map(float, self.values))

    @cached_property
    def bare_value(self) -> float:
        """The same without the unit."""
        return max(map(float, self.bare))

    @cached_property
    def votes_cast(self) -> float:
        """All votes of its ballot."""
        return sum(votes for _, votes in self.ballot)

    @property
    def length(self) -> Figure:
        """A time of day, read as a length of time: `1:20` in a column of them."""
        values = frozenset({min(self.values)})
        return replace(self, values=values, bare=values, unit="minute", kind="number")

    @property
    def is_count(self) -> bool:
        """True for a small number of things, which a writer may have counted."""
        return (
            self.kind == "number"
            and not self.unit
            and all(value.denominator == 1 and value <= _MAX_COUNTED for value in self.bare)
        )
