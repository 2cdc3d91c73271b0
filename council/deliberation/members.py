"""The members of a run, as recorded at its start."""

from __future__ import annotations

import msgspec

from council.agents.manifest import AgentManifest
from council.budgets.prices import Price
from council.deliberation.guarding import Guard
from council.deliberation.prompts import system_text
from council.tools.registry import ToolRegistry


class Member(msgspec.Struct, frozen=True):
    """An agent as this run knows it: its whole system text, its memory digest and the tools it may use. `models` speak
    for it, each standing in for the one before; `model` is the name of the first of them."""

    role: str
    system: str
    memory: str
    tools: tuple[str, ...]
    models: tuple[str, ...] = ()
    model: str = ""


class StartView(msgspec.Struct, frozen=True):
    """Recorded when a run starts, so that an edited persona or another task's end does not touch it. Members speak in
    this order; the first one writes the synthesis. `model` is the name of the council's; `prices` are by name, None when
    nobody knows one. `guard`: by which guardrails the run goes. `meanings`: by which model's vectors questions are
    answered, empty for by words alone; None in journals that do not say."""

    members: tuple[Member, ...]
    model: str
    notes: tuple[str, ...] = ()
    prices: dict[str, Price | None] = {}
    guard: Guard = Guard()
    meanings: str | None = None


def enlist(manifest: AgentManifest, tools: ToolRegistry, memory: str, models: tuple[str, ...], model: str) -> Member:
    """An agent as it is now, for a run to keep."""
    system = system_text(manifest, tools.spec_for_prompt(manifest.tools))
    return Member(manifest.role, system, memory, manifest.tools, models, model)
