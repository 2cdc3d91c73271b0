"""Pictures of pages: the land of the world, its figures over the rounds, a specialist's examination. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from council.reports.charts import Svg
from council.reports.time_scale import nice_ceiling
from council.world.torus import centre

FIGURES = {
    "population": "Members",
    "mean_vitality": "Mean vitality",
    "mean_cargo": "Mean cargo",
    "owned_cells": "Cells with an owner",
    "trade_volume": "Traded in a round",
    "conflict_volume": "Taken by force in a round",
    "births": "Births",
    "deaths": "Deaths",
    "gini": "Inequality (Gini, 0 to 1)",
}
_SIDE = 640  # of the longer side of the land
_BANDS = 5  # of vitality
_FULL = 100  # vitality
_NAMED = 400  # members; of more, one path for each band keeps the page small
_WIDTH, _HEIGHT, _FOOT, _EDGE = 300.0, 84.0, 16.0, 6.0


@dataclass(frozen=True)
class MapMember:
    """A member on the land, quantities in units. `player` is the name of its player, empty for none."""

    id: int
    vitality: float
    cargo: float
    age: int
    cells: tuple[int, ...]
    player: str = ""

    @property
    def band(self) -> int:
        """The shade of its vitality, from 1 to 5."""
        return 1 + min(_BANDS - 1, int(self.vitality * _BANDS / _FULL))


def land_picture(shape: tuple[int, int], members: Sequence[MapMember]) -> Markup:
    """Each member's land in the shade of its vitality. Who has a player wears its number."""
    width, height = shape
    cell = max(2, _SIDE // max(width, height))
    played = sum(bool(one.player) for one in members)
    desc = f"{width} by {height} cells; {len(members)} members live on it, {played} of them with a player"
    svg = Svg("land", width * cell, height * cell, "Land", desc)
    svg.rect(0, 0, width * cell, height * cell, "sea")
    for band, of_band in groupby(sorted(members, key=lambda one: one.band), lambda one: one.band):
        alike = list(of_band)
        for some in [alike] if len(members) > _NAMED else [[one] for one in alike]:
            course = "".join(_outline((at for one in some for at in one.cells), width, cell))
            svg.path(course, f"v{band}", _hint(some[0]) if len(some) == 1 else "")
    for one in members:
        if one.player and one.cells:
            y, x = divmod(centre(one.cells, shape), width)
            svg.circle((x + 0.5) * cell, (y + 0.5) * cell, max(9, cell // 3), "player", _hint(one))
            svg.text((x + 0.5) * cell, (y + 0.5) * cell + 4, str(one.id), "on mid")
    return Markup(svg.markup())  # noqa: S704  ElementTree escaped it


def course_picture(name: str, rounds: Sequence[Mapping[str, Any]]) -> Markup:
    """One of FIGURES over the rounds that tell it, from 0 to a round number above the highest; empty where none does."""
    told = [(int(one["round_id"]), float(one[name])) for one in rounds if name in one]
    if not told:
        return Markup("")
    (first, earliest), (last, latest) = told[0], told[-1]
    values = [value for _, value in told]
    most = nice_ceiling(max(values))
    desc = f"Round {first}: {earliest:g}. Round {last}: {latest:g}. Lowest {min(values):g}, highest {max(values):g}."
    svg = Svg(f"course-{name}", _WIDTH, _HEIGHT + _FOOT, FIGURES[name], desc)
    at = [
        (
            _EDGE + (_WIDTH - 2 * _EDGE) * (number - first) / max(1, last - first),
            _HEIGHT - (_HEIGHT - 2 * _EDGE) * value / most,
        )
        for number, value in told
    ]
    svg.line(0, _HEIGHT, _WIDTH, _HEIGHT, "grid")
    svg.line(0, 2 * _EDGE, _WIDTH, 2 * _EDGE, "grid")
    svg.text(0, 9, f"{most:g}", "tick")
    svg.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at), "course")
    svg.circle(*at[-1], 3.5, "now", f"round {last}: {latest:g}")
    svg.text(0, _HEIGHT + 13, f"round {first}", "tick")
    svg.text(_WIDTH, _HEIGHT + 13, f"round {last}", "tick end")
    return Markup(svg.markup())  # noqa: S704  ElementTree escaped it


def suite_picture(cases: Sequence[Mapping[str, Any]], needed: float) -> Markup:
    """The confidence of each case of an examination, in its order; the line is what the mean has to reach."""
    reached = [float(one["confidence"] or 0.0) for one in cases]
    told = ", ".join(f"case {number} {value:.2f}" for number, value in enumerate(reached, start=1))
    svg = Svg("suite", _WIDTH, _HEIGHT + _FOOT, "Confidence of each case", f"{told}; {needed:g} is needed")
    top, height = 2 * _EDGE, _HEIGHT - 2 * _EDGE
    for share, kind in ((0.0, "grid"), (1.0, "grid"), (needed, "needed")):
        y = top + height * (1 - share)
        svg.line(0, y, _WIDTH, y, kind)
    svg.text(0, 9, "1", "tick")
    step = (_WIDTH - 2 * _EDGE) / max(1, len(reached))
    for number, (one, value) in enumerate(zip(cases, reached, strict=True)):
        x, y = _EDGE + step * (number + 0.5), top + height * (1 - value)
        svg.line(x, _HEIGHT, x, y, "stem")
        if one["success"]:
            svg.circle(x, y, 4.5, "passed", f"case {number + 1} passed: {value:.2f}")
        else:
            svg.cross(x, y, 9, "failed-mark", f"case {number + 1} failed: {value:.2f}")
    svg.text(0, _HEIGHT + 13, "case 1", "tick")
    svg.text(_WIDTH, _HEIGHT + 13, f"case {len(reached)}", "tick end")
    return Markup(svg.markup())  # noqa: S704  ElementTree escaped it


def _hint(one: MapMember) -> str:
    name = f" ({one.player})" if one.player else ""
    return (
        f"Member {one.id}{name}: vitality {one.vitality:g}, cargo {one.cargo:g}, age {one.age}, cells {len(one.cells)}"
    )


def _outline(cells: Iterable[int], width: int, cell: int) -> Iterator[str]:
    """The cells as rectangles, those beside one another in a row as one."""
    left = sorted(cells)
    while left:
        y, x = divmod(left[0], width)
        long = 1
        while long < len(left) and left[long] == left[0] + long and x + long < width:
            long += 1
        yield f"M{x * cell} {y * cell}h{long * cell}v{cell}h-{long * cell}z"
        left = left[long:]
