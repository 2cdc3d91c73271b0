"""The conductor as a system: the commands `ask` and `prefs`, the tools that keep a fact, and its conversations."""

from __future__ import annotations

from collections.abc import Sequence

from council.commands.types import CommandType
from council.conductor.commands import AskCommand, PrefsCommand
from council.conductor.conversation import ConversationKeeper, admit_ask
from council.conductor.own_agents import own_manifests
from council.conductor.preferences import KEEPING, PrefsHandler, admit_prefs, fact_tools
from council.conductor.routing import usable
from council.errors import PersonaError
from council.events import ConductorStart
from council.ids import STEWARD
from council.systems import Core, LateHandler, System


def _companions(core: Core) -> Sequence[ConversationKeeper]:
    try:
        agents = usable(own_manifests(core), STEWARD.id)
    except PersonaError:  # each run says so
        agents = ()
    note = f"The conductor offers {len(agents)} agents." if agents else "The conductor has no agent: it answers itself."
    core.events.publish(ConductorStart(agents=len(agents), note=note))
    return [ConversationKeeper(core)]


CONDUCTOR = System(
    "conductor",
    commands=(
        CommandType(
            AskCommand,
            admit_ask,
            names=frozenset({"conversation", "project", "input_artifacts", "budget"}),
            audited_as="asked",
            inputs="input_artifacts",
        ),
        CommandType(PrefsCommand, admit_prefs, names=frozenset({"action", "name"})),
    ),
    handlers=lambda core: {"ask": LateHandler("council.conductor.ask_run:AskRun", core)},
    controls=lambda core: {"prefs": PrefsHandler(core.store, core.redactor, core.audit)},
    tools=lambda core: fact_tools(core.clock),
    plan_kinds=(KEEPING,),
    companions=_companions,
    tables="council.conductor.tables",
)
