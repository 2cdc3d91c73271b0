"""Pictures of the world: its land with the members on it, and a figure over the rounds. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from markupsafe import Markup

from council.reports.scale import nice_ceiling
from council.reports.svg import Svg
from council.world.kernel import Member, World
from council.world.land import centre
from council.world.world_rules import FULL_VITALITY, UNIT

_SIDE = 640  # of the longer side of the land
_BANDS = 5  # of vitality
_NAMED = 400  # members; of more, one path for each band keeps the page small
_WIDTH, _HEIGHT, _FOOT, _EDGE = 300.0, 84.0, 16.0, 6.0


def world_map(world: World, players: dict[int, str]) -> Markup:
    """Each member's land in the shade of its vitality. Who has a player wears its number. `players`: their names by member."""
    width, height = world.shape
    cell = max(2, _SIDE // max(width, height))
    members = sorted(world.members.values(), key=lambda one: (_band(one), one.id))
    desc = f"{width} by {height} cells; {len(members)} members live on it, {len(players)} players have played"
    svg = Svg("land", width * cell, height * cell, "Land", desc)
    svg.rect(0, 0, width * cell, height * cell, "sea")
    if len(members) > _NAMED:
        for band, of_band in groupby(members, _band):
            svg.path(_outline((at for one in of_band for at in one.cells), width, cell), f"v{band}")
    else:
        for one in members:
            name = f", {players[one.id]}" if one.id in players else ""
            hint = f"member {one.id}{name}: vitality {one.vitality / UNIT:g}, cargo {one.cargo / UNIT:g}, age {one.age}"
            svg.path(_outline(one.cells, width, cell), f"v{_band(one)}", hint)
    for one in members:
        if one.id in players and one.cells:
            y, x = divmod(centre(one.cells, world.shape), width)
            svg.circle((x + 0.5) * cell, (y + 0.5) * cell, max(7, cell // 3), "player", players[one.id])
            svg.text((x + 0.5) * cell, (y + 0.5) * cell + 4, str(one.id), "on mid")
    return Markup(svg.markup())  # noqa: S704  ElementTree escaped it


def course_of(name: str, label: str, rounds: Sequence[int], values: Sequence[float]) -> Markup:
    """A line over the rounds, from 0 to a round figure above the highest value; the last one is told."""
    most = nice_ceiling(max(*values, 0.001)) if len(values) > 1 else nice_ceiling(max(values[0], 0.001))
    desc = f"{label} in rounds {rounds[0]} to {rounds[-1]}: first {values[0]:g}, last {values[-1]:g}"
    desc += f", lowest {min(values):g}, highest {max(values):g}"
    svg = Svg(name, _WIDTH, _HEIGHT + _FOOT, label, desc)
    span = max(1, rounds[-1] - rounds[0])
    at = [
        (_EDGE + (_WIDTH - 2 * _EDGE) * (number - rounds[0]) / span, _HEIGHT - (_HEIGHT - 2 * _EDGE) * value / most)
        for number, value in zip(rounds, values, strict=True)
    ]
    svg.line(0, _HEIGHT, _WIDTH, _HEIGHT, "grid")
    svg.line(0, 2 * _EDGE, _WIDTH, 2 * _EDGE, "grid")
    svg.text(0, 9, f"{most:g}", "tick")
    svg.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at), "course")
    svg.circle(*at[-1], 3.5, "dot", f"round {rounds[-1]}: {values[-1]:g}")
    svg.text(0, _HEIGHT + 13, f"round {rounds[0]}", "tick")
    svg.text(_WIDTH, _HEIGHT + 13, f"round {rounds[-1]}", "tick end")
    return Markup(svg.markup())  # noqa: S704  ElementTree escaped it


def _band(one: Member) -> int:
    return 1 + min(_BANDS - 1, one.vitality * _BANDS // FULL_VITALITY)


def _outline(cells: Iterable[int], width: int, cell: int) -> str:
    """The cells as rectangles, those beside one another in a row as one."""
    drawn, rest = "", sorted(cells)
    while rest:
        first, long = rest[0], 1
        while long < len(rest) and rest[long] == first + long and (first + long) % width:
            long += 1
        y, x = divmod(first, width)
        drawn += f"M{x * cell} {y * cell}h{long * cell}v{cell}h-{long * cell}z"
        rest = rest[long:]
    return drawn
