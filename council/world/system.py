"""The world as one value for the house."""

from __future__ import annotations

from functools import partial

from council.ids import STEWARD
from council.sandbox.cage import open_sandbox
from council.systems import Core, System
from council.world.clock import WorldClock
from council.world.commands import COMMANDS, WorldHandler
from council.world.world_store import Book


def book_of(core: Core) -> Book:
    return Book(core.store, core.clock, core.redactor)


def _clock(core: Core) -> WorldClock:
    refuse = partial(core.audit.refuse, "sandbox_refused", STEWARD.id)
    return WorldClock(book_of(core), core.clock, core.events, partial(open_sandbox, "zygote", core.settings, refuse))


WORLD = System(
    "world",
    commands=COMMANDS,
    controls=lambda core: dict.fromkeys(
        (type_.name for type_ in COMMANDS), WorldHandler(book_of(core), core.clock, core.events, core.audit)
    ),
    companions=lambda core: [_clock(core)],
    tables="council.world.tables",
)
