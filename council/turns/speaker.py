"""An agent as one run knows it."""

from __future__ import annotations

import msgspec


class Speaker(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole system text of an agent, its memory digest and the tools it may use. `models` speak for it, each
    standing in for the one before; `model` is the name of the first of them. `withheld` are the parts of the context that
    its manifest keeps from it."""

    role: str
    system: str
    memory: str
    tools: tuple[str, ...]
    models: tuple[str, ...] = ()
    model: str = ""
    withheld: tuple[str, ...] = ()
