"""The one name that somebody most likely meant, for "did you mean …?". Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from zoneinfo import available_timezones

_ALIKE = 0.75  # of difflib: a letter or two of a short name. A guess that is far off is worse than none
_MAX_CHARS = 100


def nearest(given: object, known: Iterable[str]) -> str:
    """The known name that is spelled almost like this, whatever its case; empty where none is."""
    names = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(str(given)[:_MAX_CHARS].casefold(), names, n=1, cutoff=_ALIKE)
    return names[near[0]] if near else ""


def nearest_zone(given: str) -> str:
    """The time zone that somebody most likely meant, by its city alone too; empty where none is near."""
    known = sorted(available_timezones())
    wanted = given.casefold().strip().replace(" ", "_")
    return next((name for name in known if name.casefold().rpartition("/")[2] == wanted), "") or nearest(wanted, known)
