"""The members of a run, as recorded at its start."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from council.agents.manifest import AgentManifest, context_for, tools_for
from council.budgets.prices import Price
from council.deliberation.guarding import Guard
from council.deliberation.prompts import system_text
from council.errors import MissingContextError
from council.tools.registry import ToolRegistry


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as this run knows it: its whole system text, its memory digest and the tools it may use. `models` speak
    for it, each standing in for the one before; `model` is the name of the first of them. `withheld` are the parts of the
    context that its manifest keeps from it."""

    role: str
    system: str
    memory: str
    tools: tuple[str, ...]
    models: tuple[str, ...] = ()
    model: str = ""
    withheld: tuple[str, ...] = ()


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


def enlist(
    manifest: AgentManifest, tools: ToolRegistry, context: Mapping[str, str], models: tuple[str, ...], model: str
) -> Member:
    """An agent as it is now, for a run to keep. `context` is what the run has to give: `task`, `memory`, `documents` and
    `transcript`. Raises MissingContextError."""
    given = context_for(manifest, context)
    if "task" not in given:
        raise MissingContextError(
            f"{manifest.role} may not have the context field `task`, without which nobody deliberates.",
            fix="add `task` to `required` in its persona, or leave it out of this council",
            role=manifest.role,
            field="task",
        )
    allowed = tools_for(manifest, tools)
    system = system_text(manifest, tools.spec_for_prompt(allowed))
    withheld = tuple(field for field in context if field not in given)
    return Member(manifest.role, system, given.get("memory", ""), allowed, models, model, withheld)
