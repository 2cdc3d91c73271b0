"""A request to the conductor being worked on: safety, understanding, routing, agents, aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from pydantic import BaseModel

from council.agents.directory import Directories, Directory
from council.agents.manifest import AgentManifest, parse_manifest
from council.artifacts.render import render
from council.audit.log import Transaction
from council.budgets.budget import BudgetSpent
from council.budgets.prices import Price
from council.conductor.aggregation import compare
from council.conductor.ask_page import account_of, build_page, notes_of, route_notes
from council.conductor.ask_state import AskState, status_of
from council.conductor.commands import AskCommand
from council.conductor.conversation import CONDUCTOR, end_conversation, memory_output, remembered
from council.conductor.dispatch import Handing, PartJob
from council.conductor.matching import Matches, by_meaning, by_words
from council.conductor.own_agents import OwnAgents, agent_system, own_manifests
from council.conductor.preferences import KEEPING, Preferences, preferences_of
from council.conductor.routing import AgentPicks, Analysis, Route, Routing, by_name, for_reading, route_parts, usable
from council.conductor.stock_replies import MOMENTS
from council.conductor.temporary import keep_profile, make_profile, manifest_of, profiles_of, temporary_id
from council.conductor.understanding import Understanding, checked, question
from council.engine.auditing import audited_effect
from council.engine.records import Part
from council.engine.runs import Finish, Outcome, Run
from council.errors import CouncilError, ModelError
from council.ids import STEWARD, readable_json
from council.llm.base import Message, is_extract, is_rehearsal
from council.plans.approval import PlanRefused, Proposal, ProposedOperation
from council.plans.plan import Advice
from council.settings import builtin_personas_dir
from council.storage.command_drop import drop
from council.systems import Core
from council.turns.account import Account
from council.turns.bench import Bench
from council.turns.equipment import Speaker
from council.turns.growing_page import GrowingPage
from council.turns.result import NO_BUDGET, ModelCall, TurnResult
from council.turns.run_guardrails import Guard, RunGuard, manner_of

_PERSONA = "conductor.md"


class NotUnderstood(CouncilError):
    """The model did not say what the request is, in the form asked for. Where a budget let nobody ask it, `code` is the
    budget's."""

    code = "not_understood"


class AskStart(msgspec.Struct, frozen=True):
    """Recorded when a run starts. `guard` and `preferences` are those of that moment, `memory` is the conversation so far."""

    conductor: Speaker
    model: str
    prices: dict[str, Price | None]
    guard: Guard
    preferences: Preferences
    memory: str


class Consent(BaseModel):
    """The reading of a person's answer to a proposal."""

    agrees: bool


class AskRun:
    """One `ask` command being worked on (an engine Execution)."""

    def __init__(self, run: Run, core: Core) -> None:
        self._run = run
        self._core = core.of_run(run)
        self._command = AskCommand.model_validate(run.header.command)
        self._page = GrowingPage(run, core.clock, lambda: self._rendered(None))
        self._start: AskStart | None = None
        self.state = AskState(run.header, self._command.request, is_dry=self._command.dry_run)

    async def work(self) -> None:
        """Raises what a step raises, RunPause until a person has answered."""
        run, core, command, state = self._run, self._core, self._command, self.state
        if command.end:
            await end_conversation(core, run)
            return

        self._start = start = await run.look("start", self._begin, type=AskStart, part=Part("start"))
        state.model, state.prices = start.model, dict(start.prices)
        async with core.bench(
            run, state, self._page, command.budget, start.guard, [start.conductor],
            project=command.project or "", rehearses=is_extract(start.model),
        ) as (bench, guarding):  # fmt: skip
            await self._ask(bench, start, guarding)

    async def _ask(self, bench: Bench, start: AskStart, guarding: RunGuard) -> None:
        command, state = self._command, self.state
        own = OwnAgents(bench, own_manifests(self._core), start.preferences.as_prompt)
        opened = [of_system(self._core, bench) for of_system in self._core.directories]
        # Those that have an agent for questions come first, then the personas: no specialist takes the name of one.
        offering = [one for one in opened if one.reader]
        directories: list[Directory] = [*offering, own, *(one for one in opened if not one.reader)]
        if is_extract(start.model):
            # By exact name alone: without a language model nobody understands the request, and no agent can answer.
            found = by_name(command.request, Directories(directories), bench.principal.id)
            state.routes, state.refused, state.is_offline = found.routes, found.refused, True
            return
        texts = []
        for number, path in enumerate(dict.fromkeys(command.input_artifacts), start=1):
            item = await bench.requests.read_input(number, path)
            state.inputs.append(item)
            texts.append(f"{item.title}\n{item.text}" if item.ok else f"{path}: {item.error}")
        documents, conductor = "\n\n".join(texts), start.conductor  # fenced where a prompt takes them
        understood = await self._understand(bench, start, documents, "")
        if understood.missing.strip() and not command.dry_run:
            answer = await self._ask_person("missing", understood.missing)
            told = f"Question: {understood.missing}\n\nAnswer: {answer}"
            understood = await self._understand(bench, start, documents, told)
        state.understood = understood
        lane, owner, store = bench.run.header.lane, bench.principal.id, self._core.store
        kept = partial(profiles_of, store, lane)
        profiles = await bench.run.look("temporary", kept, type=dict[str, str], part=Part("agents"))
        for name, profile in profiles.items():
            own.adopt(manifest_of(name, profile, owner))
        routes = await self._route(bench, conductor, understood, directories)
        state.routes = routes
        if command.dry_run or state.refused:
            return
        if routes[0].intent == "create_specialist":
            state.creation = await self._asked_for(bench, conductor, routes[0].analysis)
            return
        routes = state.routes = await self._confirmed(bench, conductor, routes)
        routes = state.routes = await self._with_temporary(bench, conductor, understood, routes, own)
        handing = Handing(bench, conductor, directories, own, self._ask_person, start.preferences.as_prompt)
        state.handing = handing
        beside: dict[str, Any] = {"documents": documents, "project": command.project}
        facts = "\n".join(f"- {fact}" for fact in start.preferences.facts)
        alone = {"conversation": start.memory, "remembered_facts": facts, "manner": manner_of(guarding.task)}
        jobs = []
        for route, part in zip(routes, understood.parts, strict=True):
            if route.how != "none":
                is_own = route.intent == "general" and not route.temporary  # no agent gets any of `alone`
                fields: dict[str, Any] = {**part.fields, "task": part.task, **beside, **(alone if is_own else {})}
                jobs.append(PartJob(route.part, "" if is_own else route.agent, fields, tuple(part.uses)))
        self._page.grow()
        state.results = await handing.do_all(jobs, understood.order)
        state.routes = tuple(
            msgspec.structs.replace(route, cause="boundary") if route.agent in handing.beyond else route
            for route in routes
        )
        if len(state.spoken) > 1 and understood.order != "iterative":
            state.comparison, state.comparison_fault = await compare(bench, conductor, state.spoken)
        await guarding.judge_decision(state.answer)
        await self._keep_facts(start.preferences, understood.keep)

    async def _ask_person(self, name: str, asked: str) -> str:
        """The person's answer. Until there is one, the question stands on the page. Raises GuardrailBlocked for a question
        that may not reach them."""
        if self.state.guarding is not None:
            await self.state.guarding.judge_decision(asked, f"guard/{name}")
        return await self.state.answered(self._run, name, asked, self._core.settings.answer_timeout_s)

    # ── the start ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> AskStart:
        core, command, run = self._core, self._command, self._run
        models, user = core.models, command.user or STEWARD.id
        persona = core.home.personas / _PERSONA
        path = persona if persona.is_file() else builtin_personas_dir() / _PERSONA
        manifest = parse_manifest(_PERSONA, path.read_text(encoding="utf-8"))
        chain = models.chain(CONDUCTOR, manifest.model, None)
        names = models.names(chain)
        preferences = preferences_of(core.store, user)
        style = f"## How this person wants you to speak\n\n{preferences.as_prompt}" if preferences.as_prompt else ""
        system = "\n\n".join(filter(None, (agent_system(manifest, ""), style)))
        guard, prices = core.guard_and_prices(run, command.request, names)
        rehearses = all(map(is_rehearsal, names))
        memory = remembered(core, run.header.lane, rehearses=rehearses)
        speaker = Speaker(CONDUCTOR, system, "", (), chain, names[0])
        return AskStart(speaker, names[0], prices, guard, preferences, memory)

    # ── understanding and routing ────────────────────────────────────────────────────────────────────────────────────

    async def _understand(self, bench: Bench, start: AskStart, documents: str, answered: str) -> Understanding:
        step = "understand/answered" if answered else "understand"
        request = bench.fenced(self._command.request, f"{step}.request")
        memory = bench.fenced(start.memory, f"{step}.memory") if start.memory else ""
        given = bench.fenced(documents, f"{step}.documents") if documents else ""
        told = bench.fenced(answered, f"{step}.answered") if answered else ""
        facts = "\n".join(f"- {fact}" for fact in start.preferences.facts)
        memory += f"\n\nThe person lets you remember:\n{bench.fenced(facts, f'{step}.facts')}" if facts else ""
        messages = question(request, memory, given, told)
        understood, fault = await bench.ask_object(step, start.conductor, messages, Understanding, checked)
        if understood is None:
            raise _not_understood(bench, f"the conductor could not read the request: {fault}")
        bench.language = understood.language
        return understood

    async def _route(
        self, bench: Bench, conductor: Speaker, understood: Understanding, directories: Sequence[Directory]
    ) -> tuple[Route, ...]:
        """The routes, recorded. A name decides for the whole request; else each part goes its own way."""
        known, user = Directories(directories), bench.principal.id
        parts, is_new = understood.parts, understood.should_create_specialist
        needed = tuple(understood.required_capabilities)
        analysis = Analysis(understood.complexity, understood.frequency, needed, is_new)
        if is_new:
            return (Route(1, "create_specialist", "none", cause="create_specialist", analysis=analysis),)
        named = partial(by_name, self._command.request, known, user)
        found = await bench.run.look("route/name", named, type=Routing, part=Part("route"))
        self.state.refused = found.refused
        if found.routes:
            parts[:] = [understood.as_one]  # one agent was named for all of it
            return tuple(msgspec.structs.replace(route, analysis=analysis) for route in found.routes)

        async def choose(instruction: str) -> AgentPicks:
            messages = (Message("user", instruction),)
            picked, fault = await bench.ask_object("route/pick", conductor, messages, AgentPicks)
            if picked is None:
                raise _not_understood(bench, f"the conductor could not choose an agent: {fault}")
            return picked

        near = await self._near(bench, usable(known.list(), user), [part.wanted for part in parts])
        routes = await route_parts(parts, near.parts, self._core.settings, choose)
        return tuple(
            msgspec.structs.replace(for_reading(route, part, directories), analysis=analysis)
            for route, part in zip(routes, parts, strict=True)
        )

    async def _near(self, bench: Bench, agents: Sequence[AgentManifest], texts: Sequence[str]) -> Matches:
        """The agents near to each text: by meaning, else by words."""

        async def look() -> Matches:
            embedder = bench.equipment.embedder
            if embedder is None or not agents:
                return by_words(agents, texts)
            try:
                return await by_meaning(self._core.store, embedder, agents, texts)
            except (ModelError, BudgetSpent) as error:
                return msgspec.structs.replace(by_words(agents, texts), fault=error.message)

        matches = await bench.run.step("route/near", look, type=Matches, durable=False, part=Part("route"))
        if matches.fault:
            self.state.beside.append(f"Agents were matched by words, not by meaning: {matches.fault}")
        for call in matches.calls:
            result = TurnResult("", call.model, usage=call.usage)
            bench.calls.append(ModelCall("route/near", "", 0, result, "embedding"))
        return matches

    async def _confirmed(self, bench: Bench, conductor: Speaker, routes: tuple[Route, ...]) -> tuple[Route, ...]:
        """The routes after the person was asked about those of which the model is not sure. One that they do not want is
        the conductor's own to do."""
        unsure = [route for route in routes if route.asks_first]
        if not unsure:
            return routes
        sure = "{agent} (I am {share} sure)"
        known = [bench.say(sure, agent=one.agent, share=f"{one.confidence:.0%}") for one in unsure]
        asked = bench.say(MOMENTS["unsure"], agents=bench.say(" and ").join(known))
        if await self._agrees(bench, conductor, "confirm", asked):
            return tuple(msgspec.structs.replace(route, asks_first=False) for route in routes)
        return tuple(
            Route(route.part, "general", "general", cause="band", candidates=route.candidates, analysis=route.analysis)
            if route.asks_first
            else route
            for route in routes
        )

    async def _agrees(self, bench: Bench, conductor: Speaker, name: str, asked: str) -> bool:
        """True when the person says yes to a proposal."""
        answer = await self._ask_person(name, asked)
        told = f"Question: {asked}\n\n{bench.fenced(answer, f'{name}.answer')}"
        messages = (Message("user", f"{told}\n\n{_CONSENT}"),)
        consent, _ = await bench.ask_object(f"{name}/reading", conductor, messages, Consent)
        return consent is not None and consent.agrees

    async def _asked_for(self, bench: Bench, conductor: Speaker, analysis: Analysis) -> str:
        """Drops the command that makes a specialist, if the person wants one, with all temporary agents of the conversation as
        its material. The answer to them."""
        if not await self._agrees(bench, conductor, "create", bench.say(MOMENTS["specialist"])):
            return bench.say(MOMENTS["no_specialist"])
        core, command, run = self._core, self._command, self._run

        async def asked() -> str:
            profiles = profiles_of(core.store, run.header.lane)
            material = "\n\n".join(f"The temporary agent {name}: {profile}" for name, profile in profiles.items())
            body: dict[str, Any] = {"type": "create_specialist", "id": f"create-{run.id}", "request": command.request}
            body |= {"material": material, "analysis": msgspec.to_builtins(analysis)}
            body |= {"user": command.user} if command.user else {}
            return drop(core.home.commands, f"create-{run.id}.json", readable_json(body).encode()).path.name

        await run.step("create", asked, type=str)
        return bench.say(MOMENTS["specialist_asked"])

    async def _with_temporary(
        self, bench: Bench, conductor: Speaker, understood: Understanding, routes: tuple[Route, ...], own: OwnAgents
    ) -> tuple[Route, ...]:
        """The routes with the temporary agents of this conversation: the one that it has, else one made now. A profile that
        the guardrails block is not used, and the page says so."""
        lane, owner = bench.run.header.lane, bench.principal.id
        settled = []
        for route in routes:
            known = own.get(temporary_id(route.temporary)) if route.temporary else None
            if not route.temporary or known is not None:
                settled.append(route if known is None else msgspec.structs.replace(route, agent=known.id))
                continue
            task = understood.parts[route.part - 1].task
            made, refused = await make_profile(bench, conductor, route.temporary, task, bench.tools)
            if made is None:
                self.state.beside.append(f"No temporary agent {route.temporary} was made: {refused}.")
                settled.append(msgspec.structs.replace(route, how="none", agent="", temporary=""))
                continue
            name, profile = route.temporary, self._core.redactor.redact(made.model_dump_json())
            await bench.run.effect(f"temporary/kept/{route.part}", partial(keep_profile, lane, name, profile), type=int)
            manifest = manifest_of(name, profile, owner)
            own.adopt(manifest)
            settled.append(msgspec.structs.replace(route, agent=manifest.id))
        return tuple(settled)

    async def _keep_facts(self, preferences: Preferences, facts: Sequence[str]) -> None:
        """Drafts a plan of what the person asked to have remembered: they decide."""
        if not facts:
            return
        if not preferences.remembers:
            way = "`council prefs set long_term_memory on` allows it."
            self.state.beside.append(f"Nothing is remembered beyond this conversation. {way}")
            return
        core, run = self._core, self._run
        operations = tuple(ProposedOperation("keepFact", {"fact": fact}, "") for fact in facts)
        proposal = Proposal(KEEPING.name, operations, {}, Advice(title="What to remember"), "")

        def draft(done: Transaction) -> str:
            try:
                return core.plans.draft(done, proposal, core.principal_of(run), run_id=run.id).plan_id
            except PlanRefused as refusal:
                return f"!{refusal.message}"

        plan = await audited_effect(run, core.plans.audit, "keep", draft, str)
        if plan.startswith("!"):
            self.state.beside.append(plan[1:])
        else:
            self.state.plans.append(plan)

    # ── what it leaves ───────────────────────────────────────────────────────────────────────────────────────────────

    def conclude(self, finish: Finish) -> Outcome:
        state, core, command = self.state, self._core, self._command
        if command.end:
            ended = finish.error is None and not finish.cancelled
            return Outcome("succeeded" if ended else "failed", None, error=finish.error)
        status, error = status_of(state, finish)
        outputs = []
        if status in ("succeeded", "degraded") and not command.dry_run and self._start is not None:
            secret = any(returned.ephemeral for _, returned in state.results)
            answer = _EPHEMERAL if secret else state.told(formless=False)
            told = "\n".join([answer, *(f"({note})" for note in route_notes(state))])
            rehearsed = is_rehearsal(self._start.model)
            outputs = memory_output(core, self._run, command.request, told, status, rehearsed=rehearsed)
        return state.ending(
            status,
            self._rendered(finish),
            outputs=tuple(outputs),
            kept=core.memory.copies(outputs),
            error=error,
            notes=(*notes_of(state, finish), *route_notes(state)),
            details={"conversation": command.conversation, "routes": msgspec.to_builtins(list(state.routes))},
        )

    def account(self, finish: Finish | None) -> Account:
        return account_of(self.state, finish)

    def _rendered(self, finish: Finish | None) -> str:
        return self._core.redactor.redact(render(build_page(self.state, finish), self._run.output.path))


def _not_understood(bench: Bench, message: str) -> NotUnderstood:
    """The error after the bench's last call, whose own fix goes before the general one."""
    failure = bench.calls[-1].result.failure
    error = NotUnderstood(message, fix=(failure.fix if failure else "") or "try again, or set another model")
    if failure is not None and failure.kind == NO_BUDGET:
        error.code = BudgetSpent.code
    return error


_EPHEMERAL = "(The answer is not remembered: it holds what the person may lock.)"
_CONSENT = """\
Did the person agree to the proposal in the question? Reply with one JSON object and nothing else: {"agrees": true} or \
{"agrees": false}."""
