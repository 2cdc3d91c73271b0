"""A map of places where events may take place: the cities of the time zone database, drawn where they lie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

WIDTH, HEIGHT = 360, 160  # degrees of longitude, and of latitude from 80 north to 80 south
_PLACE = re.compile(r"([+-])(\d{2})(\d{2})(?:\d{2})?([+-])(\d{3})(\d{2})(?:\d{2})?$")


@dataclass(frozen=True)
class MapPlace:
    """A place on the map. `x` and `y` are in degrees from its upper left corner. `events`: how many take place there."""

    name: str
    zone: str
    x: float
    y: float
    events: int = 0


@cache
def known_places() -> tuple[MapPlace, ...]:
    """One city of each time zone, by name, without Antarctica."""
    table = (files("tzdata") / "zoneinfo" / "zone1970.tab").read_text(encoding="utf-8")
    found = []
    for line in table.splitlines():
        if line.startswith("#") or not (at := _PLACE.match((columns := line.split("\t"))[1])):
            continue
        south_north = (int(at[2]) + int(at[3]) / 60) * (-1 if at[1] == "-" else 1)
        west_east = (int(at[5]) + int(at[6]) / 60) * (-1 if at[4] == "-" else 1)
        name = columns[2].rpartition("/")[2].replace("_", " ")
        place = MapPlace(name, columns[2], round(west_east + 180, 1), round(80 - south_north, 1))
        found += [place] if 0 <= place.y <= HEIGHT else []
    return tuple(sorted(found, key=lambda place: place.name))


def places_with(counts: Mapping[str, int]) -> list[MapPlace]:
    """Every place, with how many events are in a region of its name; those with events last, so that they lie on top."""
    held = {region.casefold(): count for region, count in counts.items()}
    placed = [MapPlace(p.name, p.zone, p.x, p.y, held.get(p.name.casefold(), 0)) for p in known_places()]
    return sorted(placed, key=lambda place: place.events)
