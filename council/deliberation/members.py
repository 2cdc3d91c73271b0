"""The members of a run as they are at its start, and the models that speak for them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from council.agents.manifest import AgentManifest, context_for, seeds_folder, tools_for
from council.agents.memory import LoadedSession
from council.agents.memory_digest import digest, without_rehearsals
from council.budgets.prices import Price
from council.deadline import DEADLINE_S, beside_the_loop, in_a_spare_thread, within
from council.deliberation.commands import DeliberateCommand
from council.deliberation.deliberate_admission import context_of, members_of, require_context
from council.deliberation.prompts import system_text
from council.engine.runs import Run
from council.errors import ConfigError, Drift
from council.llm.base import is_extract, is_rehearsal
from council.safety.untrusted import plain_line
from council.systems import Core
from council.tools.registry import ToolRegistry
from council.turns.equipment import Speaker
from council.turns.metered_models import Models
from council.turns.model_building import overruled
from council.turns.run_guardrails import Guard

_SHOWN = 3  # names in a note


class StartView(msgspec.Struct, frozen=True):
    """Recorded when a run starts, so that an edited persona does not touch it. The first member writes the synthesis.
    `model` is the council's; `prices` are by name, None when nobody knows one. `meanings`: by which model's vectors
    questions are answered; None in journals that do not say. `replaces`: the run whose page stood at the place of this
    one's."""

    members: tuple[Speaker, ...]
    model: str
    notes: tuple[str, ...] = ()
    prices: dict[str, Price | None] = {}
    guard: Guard = Guard()
    meanings: str | None = None
    replaces: str = ""


def enlist(
    manifest: AgentManifest, tools: ToolRegistry, context: Mapping[str, str], models: tuple[str, ...], model: str
) -> Speaker:
    """An agent as it is now, for a run to keep. `context` is what the run has to give. Raises MissingContextError."""
    given = context_for(manifest, context)
    allowed = tools_for(manifest, tools)
    system = system_text(manifest, tools.spec_for_prompt(allowed))
    seen = context_for(manifest, {"documents": "", **context})  # what is read later is a document, too
    withheld = tuple(field for field in {**context, "documents": ""} if field not in seen)
    return Speaker(manifest.role, system, given.get("memory", ""), allowed, models, model, withheld)


async def read_start(core: Core, command: DeliberateCommand, asked_model: str | None, run: Run) -> StartView:
    """`asked_model` speaks for every agent."""
    members: list[Speaker] = []
    notes: list[str] = []
    models, tools, lane = core.models, core.tools, run.header.lane
    councils = models.chain("", (), asked_model)
    names = list(models.names(councils))
    if note := overruled(asked_model, councils):
        notes.append(f"{note}.")
    personas, seeds = core.home.personas, seeds_folder(core.home, core.settings)

    def read() -> tuple[list[AgentManifest], list[LoadedSession]]:
        members = members_of(command, personas, seeds)
        return members, [core.memory.load(member.role, lane) for member in members]

    if seeds is None:  # the home's own files stand where its pages are written
        manifests, sessions = read()
    else:
        manifests, sessions = await within(DEADLINE_S, "reading the members and their memory", in_a_spare_thread(read))
    require_context(command, manifests)
    chains = [models.chain(manifest.role, manifest.model, asked_model) for manifest in manifests]
    # What one member is told another may hear.
    rehearses = all(is_rehearsal(name) for chain in chains for name in models.names(chain))
    for manifest, chain, loaded in zip(manifests, chains, sessions, strict=True):
        own = models.names(chain)
        told = loaded.session if rehearses else without_rehearsals(loaded.session)
        context = context_of(command) | {"memory": digest(told)}
        members.append(enlist(manifest, tools, context, chain, own[0]))
        names += own
        notes += [f"Memory: {loaded.damage}."] if loaded.damage else []
        if absent := [name for name in manifest.tools if name not in tools.names]:
            shown = ", ".join(plain_line(name, 60).replace("`", "'") for name in absent[:_SHOWN])
            more = ", …" if len(absent) > _SHOWN else ""
            notes.append(f"The persona of {manifest.role} lists tools that are not there: {shown}{more}.")
    asks = models.second_opinion(run.header.secret)
    guard = Guard(core.settings.guardrails, core.settings.scope_topics, asks)
    task = command.task_description
    verdict = await beside_the_loop("judging the task", len(task), lambda: guard.check("task", task))
    guard = msgspec.structs.replace(guard, task=verdict)
    if guard.model and not is_extract(names[0]):
        names += models.names((guard.model,))
    prices = {name: models.price(name) for name in [*names, *filter(None, (models.embedding,))]}
    return StartView(tuple(members), names[0], tuple(notes), prices, guard, models.meanings, run.output.replaced_run())


class Chains:
    """An agent with a model of its own keeps those that the run began with; the others have the council's."""

    def __init__(self, models: Models, start: StartView, asked_model: str | None) -> None:
        self._models = models
        self._start = start
        self.council = models.chain("", (), asked_model)

    def of(self, member: Speaker) -> tuple[str, ...]:
        return self.council if member.model == self._start.model else member.models

    def require(self, run_id: str, *, accepts_drift: bool, has_spoken: bool = False) -> None:
        """`has_spoken`: a member has answered already. Raises Drift where another model would answer than began, unless that is
        accepted, and where a language model would be told what a rehearsal has said."""
        for member in self._start.members:
            try:
                self._models.names(self.of(member))
            except ConfigError as error:
                fix = f"{error.fix}; `council resume {run_id} --model …` continues with another model"
                raise Drift(f"{member.role} began with {member.model}: {error.message}", fix=fix) from error
        now = self._models.names(self.council)[0]
        if has_spoken and is_rehearsal(self._start.model) and not is_rehearsal(now):
            raise Drift(
                f"{self._start.model} rehearsed the beginning of this run, and {now} is not told what was rehearsed.",
                fix=f"`council retry {run_id} --model {now}` does all of it again",
            )
        if self._start.model != now and not accepts_drift:
            raise Drift(
                f"the run began with {self._start.model}; {now} would answer now.",
                fix=f"`council resume {run_id} --model …` continues with the one that you name",
            )
