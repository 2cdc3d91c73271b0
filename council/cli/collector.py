"""Sets how often the interpreter's garbage collector looks: seldom while modules load, as usual in a daemon, never at
the end."""

from __future__ import annotations

import gc

_USUAL = gc.get_threshold()
_WHILE_LOADING = 50_000  # young objects; the usual 700 has it look through everything a dozen times until all is loaded


def look_seldom() -> None:
    """For a start, and for a command that does one thing and ends."""
    gc.set_threshold(_WHILE_LOADING)


def look_as_usual() -> None:
    """For what goes on for days."""
    gc.set_threshold(*_USUAL)


def look_no_more() -> None:
    """The interpreter ends: it need not look through all that is loaded once more."""
    gc.freeze()
