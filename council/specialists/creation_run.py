"""The creation of a specialist: one run from the request to the registration (source: Kingdom, sections 2 and 3).

    interview → spec_designer → safety_reviewer → validator_minister → test_generator → plan → training → registration

Every step is recorded, so a kill costs at most the calls in flight, and `council retry RUN --from plan` asks again without
paying for the design. What code decides alone stands in `creation_gates`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from council.agents.directory import Directories, Directory
from council.agents.manifest import AgentManifest, load_personas, seeds_folder
from council.artifacts.account import Account
from council.artifacts.render import render
from council.audit.log import Transaction
from council.budgets.budget import BudgetSpent
from council.budgets.prices import Price
from council.engine.open_questions import ask_person
from council.engine.records import Part
from council.engine.runs import Finish, Outcome, Run, RunPause
from council.errors import CouncilError, ModelError
from council.ids import readable_json
from council.llm.base import is_extract
from council.llm.embeddings import CountedEmbedder
from council.llm.structured import ReplyProblem
from council.plans.applying import PlanEnding, apply_handed_plan, await_person, fail_handed_plan
from council.plans.approval import PlanRefused
from council.plans.plan import Plan
from council.plans.register import plan_in
from council.safety.ministers import AuditVerdict, GuardianVerdict, ValidatorVerdict, auditor, guardian, validator
from council.specialists import registry
from council.specialists.commands import CreateSpecialistCommand
from council.specialists.creation_gates import (
    MAX_CORRECTIONS,
    CreationRefused,
    Likeness,
    alike_in_meaning,
    alike_in_words,
    refuse_known,
    refuse_one_time,
    refuse_unhealthy,
)
from council.specialists.creation_page import CreationState, account_of, build_page, status_of
from council.specialists.creation_plan import Findings, proposal_of, proposed
from council.specialists.creation_prompts import (
    HALF,
    SPEC_DESIGNER,
    TEST_GENERATOR,
    Assignment,
    CasesReply,
    InterviewReply,
    SpecReply,
    shown_cases,
    system_of,
)
from council.specialists.specialist_spec import SpecialistSpec, SpecRefused, TestCase, as_agent_spec, spec_of
from council.specialists.suites import (
    MIN_CONFIDENCE,
    CaseResult,
    TestSuite,
    avg_confidence,
    compared,
    judge_suite,
    schema_fault,
)
from council.specialists.training import train
from council.storage.store import Tx
from council.systems import Core
from council.tools.tokens import Request
from council.turns.bench import Bench
from council.turns.costs import sum_of, tokens_of
from council.turns.growing_page import GrowingPage
from council.turns.guarding import Guard, RunGuard
from council.turns.requests import refusals_of
from council.turns.result import ModelCall, TurnResult
from council.turns.speaker import Speaker
from council.vault.sealing import CredentialPlace

_MAX_SUITES = 3  # a generator that has failed so often does not understand the request
_QUESTION_CHARS = 500  # of a request, as the Cortex is asked
_RESOURCES_S = 600.0  # the source's ten minutes, once more for what is to be stored
_LOOK_S = 2.0  # between looks at the vault: whoever stores a value drops no command


class CreationStart(msgspec.Struct, frozen=True):
    """Recorded when the run starts."""

    designer: Speaker
    tester: Speaker
    guard: Guard
    prices: dict[str, Price | None]


class CreationRun:
    """One `create_specialist` command being worked on (an engine Execution)."""

    def __init__(self, run: Run, core: Core) -> None:
        self._run = run
        self._core = core.of_run(run)
        self._command = CreateSpecialistCommand.model_validate(run.header.command)
        self._user = core.principal_of(run).id
        self._page = GrowingPage(run, core.clock, lambda: self._rendered(None))
        self.state = CreationState(run.header, self._command.request)

    async def work(self) -> None:
        """Raises what a step raises, CreationRefused at a gate, RunPause until the person has decided."""
        run, state = self._run, self.state

        async def begin() -> CreationStart:
            return self._begin()

        start = await run.step("start", begin, type=CreationStart, durable=False, part=Part("start"))
        state.model, state.prices = start.designer.model, dict(start.prices)
        models = self._core.spending.models_for(run, self._command.budget, "")
        name = "" if is_extract(state.model) else start.guard.model
        opinion = partial(models.of, (name,)) if name else None
        shown = name and (name if run.is_closed else self._core.spending.opinion_name(name, run.header.secret))
        state.guarding = RunGuard(run, start.guard, opinion, shown, self._command.request)
        try:
            await state.guarding.judge_task()
            speakers = [start.designer, start.tester]
            equipment = self._core.equipment(run, models, lambda one: one.models, speakers)
            reads = tuple(tool.name for tool in self._core.tools if tool.effect == "read")
            state.bench = bench = Bench(
                run, equipment, self._core.spending, start.guard, self._core.principal_of(run), self._command.request,
                reads, changed=self._page.grow,
            )  # fmt: skip
            await self._create(bench, start)
        finally:
            if state.bench is not None:
                run.refusals = tuple(refusals_of(state.bench.evidence))
            self._page.stop()
            if run.is_waiting or state.question:
                self._page.show()

    async def _create(self, bench: Bench, start: CreationStart) -> None:
        state = self.state
        assignment = await self._interviewed(bench, start.designer)
        state.spec = await self._designed(bench, start.designer, assignment)
        state.suite = await self._tested(bench, start.tester, assignment, state.spec)
        plan = await self._approved(await self._drafted(state.spec, state.suite))
        state.spec, state.suite = spec, suite = proposed(plan)
        await self._provided(spec, plan)
        try:
            if spec != self._proposal(plan) and (why := self._blocked(spec, suite)):  # its person edited the plan
                raise CreationRefused("design_blocked", f"The plan as it was edited is blocked: {why}.", fix="retry it")
            await self._trained(bench, spec, suite)
            await self._healthy(bench, spec)
        except (CreationRefused, PlanRefused) as refused:
            await self._closed(plan, refused)
            raise
        await self._registered(plan)

    # ── the start ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> CreationStart:
        models, settings = self._core.spending, self._core.settings
        chain = models.chain(SPEC_DESIGNER, (), None)
        names = models.names(chain)
        if is_extract(names[0]):
            raise CreationRefused("design_blocked", "Only a language model can design a specialist.", fix=_NO_MODEL)
        designer, tester = (Speaker(role, system_of(role), "", (), chain, names[0]) for role in _SPEAKERS)
        guard = Guard(settings.guardrails, (), models.second_opinion(self._run.header.secret))
        guard = msgspec.structs.replace(guard, task=guard.check("task", self._command.request))
        asked = [*names, *(models.names((guard.model,)) if guard.model else ()), *filter(None, (models.embedding,))]
        return CreationStart(designer, tester, guard, {name: models.price(name) for name in asked})

    # ── interview and design ─────────────────────────────────────────────────────────────────────────────────────────

    async def _interviewed(self, bench: Bench, designer: Speaker) -> Assignment:
        """The request with all that belongs to it, once it is clear. Raises CreationRefused for a one-time task."""
        command = self._command
        question = " ".join(command.request.split())[:_QUESTION_CHARS]
        search = Request("QUERY_CORTEX", question, f"QUERY_CORTEX({question})", 0, honoured=True, reason="")
        reader = msgspec.structs.replace(designer, tools=("QUERY_CORTEX",))
        await bench.requests.fulfil("documentation", reader, 0, [(search, False)])
        documents = "\n\n".join(bench.fencer.evidence(item) for item in bench.evidence if item.id)

        def assignment(step: str, answered: str) -> Assignment:
            examples = "\n".join(readable_json(case.model_dump()) for case in command.examples)
            analysis = readable_json(command.analysis.model_dump()) if command.analysis else ""
            words = {"request": command.request, "answered": answered, "examples": examples, "material": command.material}
            fenced = {name: text and bench.fenced(text, f"{step}.{name}") for name, text in words.items()}
            return Assignment(**fenced, documents=documents, analysis=analysis and bench.fencer.line(analysis))

        asked = assignment("interview", "")
        reply = await self._object(bench, "interview", designer, asked.interview(), InterviewReply)
        refuse_one_time(reply.frequency)
        if not reply.question.strip():
            return asked
        answer = await self._ask_person("interview", reply.question)
        return assignment("answered", f"Question: {reply.question}\n\nAnswer: {answer}")

    async def _designed(self, bench: Bench, designer: Speaker, assignment: Assignment) -> SpecialistSpec:
        """A design that both ministers let pass. Raises CreationRefused for a duplicate, and after three corrections."""
        state, known = self.state, self._agents(bench)
        sent_back, why = "", ""
        examples = [case.model_dump() for case in self._command.examples]
        for number in range(1, MAX_CORRECTIONS + 2):
            step = f"design/{number}"
            messages = assignment.design(
                bench.tools, [agent.role.lower() for agent in known], self._command.changes or "", sent_back
            )

            def check(reply: SpecReply) -> Iterator[ReplyProblem]:
                try:
                    spec = spec_of({**reply.model_dump(), "examples": examples})
                except SpecRefused as refused:
                    yield ReplyProblem("schema", f"{refused.message} {refused.fix}", refused.where)
                    return
                for at, case in enumerate(spec.examples, start=1):
                    if fault := schema_fault(spec.input_schema, case.input):
                        yield ReplyProblem("schema", f"case {at} of the person does not fit it: {fault}", "input_schema")

            reply = await self._object(bench, step, designer, messages, SpecReply, check)
            spec = spec_of({**reply.model_dump(), "examples": examples})
            await self._refuse_duplicate(bench, f"{step}/duplicates", spec, known)

            async def safety(spec: SpecialistSpec = spec) -> GuardianVerdict:
                return guardian(as_agent_spec(spec), bench.tools)

            async def validity(spec: SpecialistSpec = spec) -> ValidatorVerdict:
                return validator(as_agent_spec(spec), self._dependencies(known))

            reviewed = await bench.run.step(
                f"{step}/safety_reviewer", safety, type=GuardianVerdict, durable=False, part=Part("review")
            )
            judged = await bench.run.step(
                f"{step}/validator_minister", validity, type=ValidatorVerdict, durable=False, part=Part("review")
            )
            state.reviews.append((reviewed, judged))
            why = f"The Guardian blocks it: {reviewed.reason}" if reviewed.verdict == "BLOCKED" else ""
            why = why or "; ".join(map(" — ".join, zip(judged.issues, judged.suggestions, strict=True)))
            if not why:
                return spec
            last = bench.fenced(readable_json(msgspec.to_builtins(spec)), f"{step}.last")
            sent_back = f"# Your last design\n\n{last}\n\n# Why it was sent back\n\n{bench.fencer.line(why)}"
        message = f"Every design of it was sent back, after {MAX_CORRECTIONS} corrections, too. The last reason: {why}."
        raise CreationRefused("design_blocked", message, fix="ask for something that needs less, or say more precisely what")

    async def _refuse_duplicate(
        self, bench: Bench, step: str, spec: SpecialistSpec, known: Sequence[AgentManifest]
    ) -> None:
        own = (self._command.changes or "").upper()
        others = [agent for agent in known if agent.role.upper() != own]
        settings, counted = self._core.settings, None

        async def compare() -> Likeness:
            nonlocal counted
            if bench.equipment.embedder is None:
                return alike_in_words(spec.purpose, others)
            counted = CountedEmbedder(bench.equipment.embedder)
            most = {True: settings.verified_match, False: settings.unverified_match}
            try:
                return await alike_in_meaning(spec.purpose, others, counted, most)
            except (ModelError, BudgetSpent):
                return alike_in_words(spec.purpose, others)

        likeness = await bench.run.step(step, compare, type=Likeness, durable=False, part=Part("review"))
        for call in counted.calls if counted is not None else ():
            bench.calls.append(ModelCall(step, "", 0, TurnResult("", call.model, usage=call.usage), "embedding"))
        names = {name for agent in others for name in (agent.id, agent.role, *agent.aliases)}
        refuse_known(spec, self._command.changes or "", names, likeness)

    # ── the suite ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _tested(self, bench: Bench, tester: Speaker, assignment: Assignment, spec: SpecialistSpec) -> TestSuite:
        """A suite without a fault: the designer's half and the hidden one. Raises CreationRefused when there is none."""
        faults: Sequence[str] = ()
        for number in range(1, _MAX_SUITES + 1):
            halves: list[tuple[TestCase, ...]] = []
            for half, own in (("visible", spec.examples), ("hidden", ())):
                count = max(HALF, len(spec.examples)) - len(own)
                told = "\n".join(f"- {fault}" for fault in faults)
                messages = assignment.cases(spec, count, hidden=half == "hidden", faults=told)
                reply = (
                    await self._object(bench, f"tests/{number}/{half}", tester, messages, CasesReply)
                    if count
                    else CasesReply.model_construct(cases=[])
                )
                made = tuple(TestCase(case.input, case.expected_output) for case in reply.cases)
                halves.append((*own, *(made[:count] if half == "visible" else made)))
            suite = TestSuite(*halves)
            faults = judge_suite(suite, spec)
            if not faults:
                return suite
        message = f"No suite for it was good enough, in {_MAX_SUITES} tries. The last one: {'; '.join(faults)}."
        raise CreationRefused("suite_unfit", message, fix="give cases of your own in `examples`")

    # ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _drafted(self, spec: SpecialistSpec, suite: TestSuite) -> str:
        core, run, joined = self._core, self._run, list[Transaction]()
        judged = as_agent_spec(spec)
        reads = tuple(tool.name for tool in core.tools if tool.effect == "read")
        findings = Findings(guardian(judged, reads), auditor(judged), self._needs(spec))
        self.state.findings = findings

        def write(tx: Tx) -> str:
            joined.append(core.plans.audit.join(tx))
            asked = proposal_of(spec, suite, findings, run.id, self.state.model)
            plan = core.plans.draft(joined[-1], asked, core.principal_of(run), run_id=run.id)
            registry.approval_drafted(
                tx, plan.plan_id, user=self._user, spec=spec, suite=suite, run_id=run.id, plan_id=plan.plan_id,
                created_ms=plan.created_ms, expires_ms=plan.expires_ms,
            )  # fmt: skip
            return plan.plan_id

        plan_id = await run.effect("plan", write, type=str)
        if joined:
            core.plans.audit.settle(joined[-1])
        self.state.plan = plan_id
        return plan_id
