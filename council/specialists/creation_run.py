"""The creation of a specialist: one run from the request to the registration (source: Kingdom, sections 2 and 3).

    interview → spec_designer → safety_reviewer → validator_minister → test_generator → plan → training → registration

Every step is recorded, so a kill costs at most the calls in flight. `council retry RUN --from plan` asks again without paying
for the design. What code decides alone stands in `creation_gates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from council.audit.log import Transaction
from council.budgets.budget import BudgetSpent
from council.engine.auditing import audited_effect
from council.engine.receipts import ErrorRef
from council.engine.records import Part
from council.engine.runs import Finish, Outcome, RunPause
from council.errors import CouncilError, GivenCode, ModelError
from council.ids import readable_json
from council.llm.structured import ReplyProblem
from council.plans.applying import PlanEnding, apply_handed_plan, await_person, end_sent_plan, withdraw_plan
from council.plans.approval import PlanRefused, Proposal, ProposedOperation
from council.plans.plan import Advice, Plan
from council.plans.register import plan_in, plans_of_run
from council.safety.ministers import GuardianVerdict, ValidatorVerdict, auditor, guardian, validator
from council.sandbox.job import NoCage
from council.specialists import creation_gates as gates
from council.specialists import specialist_registry as registry
from council.specialists.commands import CreateSpecialistCommand
from council.specialists.creation_gates import CreationRefused, KnownAgent, Likeness
from council.specialists.creation_plan import CREATION, NewSpecialist, findings_of, read_arguments
from council.specialists.creation_prompts import HALF, Assignment, CasesReply, InterviewReply, SpecReply
from council.specialists.creation_state import DraftedPlan
from council.specialists.examination import examined, worth
from council.specialists.outside_plans import missing_credentials, stored_by
from council.specialists.specialist_run import SpecialistWork
from council.specialists.specialist_spec import SpecialistSpec, SpecRefused, TestCase, as_agent_spec, spec_of
from council.specialists.suites import TestSuite, expected_fault, judge_suite, schema_fault
from council.storage.store import Tx
from council.tools.tokens import Request
from council.tools.tool import ToolResult
from council.turns.bench import Bench
from council.turns.equipment import Speaker
from council.turns.result import ModelCall, TurnResult

_MAX_SUITES = 3  # a generator that has failed so often does not understand the request
_QUESTION_CHARS = 500  # of a request, as the Cortex is asked
_RESOURCES_S = 600.0  # the source's ten minutes, once more for what is to be stored
_LOOK_S = 5.0  # between looks at the vault: whoever stores a value drops no command
_KEEP = "keep"


class ApprovedPlan(msgspec.Struct, frozen=True):
    """The specialist of a plan as its person handed it over."""

    spec: SpecialistSpec
    suite: TestSuite


class CreationRun(SpecialistWork):
    """One `create_specialist` command being worked on."""

    command = CreateSpecialistCommand
    _command: CreateSpecialistCommand

    async def _work(self, bench: Bench, *speakers: Speaker) -> None:
        """Raises CreationRefused at a gate, and PlanRefused. A plan that was handed over has failed then."""
        run, plans, state, (designer, tester) = self._run, self._core.plans, self.state, speakers
        assignment = await self._interviewed(bench, designer)
        spec = state.spec = await self._designed(bench, designer, assignment)
        state.suite = await self._tested(bench, tester, assignment, spec)
        plan = state.plan = await self._drafted(bench, spec, state.suite)
        approved = await run.step(
            "approved", partial(self._decided, plan.plan_id, spec), type=ApprovedPlan, part=Part("approval")
        )
        try:
            await self._require_resources(plan.plan_id, approved)
            if (spec, state.suite) != (approved.spec, approved.suite):  # its person edited the plan
                known = await self._known(bench, "edited/agents")
                fault = await self._stopped(bench, "edited", approved.spec, known)
                if fault := fault or "; ".join(judge_suite(approved.suite, approved.spec)):
                    fix = f"`council retry {run.id} --from plan` drafts it as it was designed"
                    raise CreationRefused("design_blocked", f"The plan as it was edited is stopped: {fault}.", fix=fix)
            state.spec, state.suite = approved.spec, approved.suite
            await self._trained(bench, designer, approved)
            await self._require_healthy(bench, approved.spec)
        except (CreationRefused, SpecRefused, NoCage) as refused:
            why = ToolResult.refused(refused.code, refused.message)
            tell = partial(self._tell, spec=approved.spec, why=refused)

            def close(done: Transaction) -> PlanEnding:
                registry.approval_trained(done.tx, plan.plan_id, state.results)
                tell(done.tx)
                return end_sent_plan(plans, done, plan.plan_id, why)

            await audited_effect(run, plans.audit, "rejected", close, PlanEnding)
            raise

        def register(done: Transaction) -> PlanEnding:  # with telemetry, notification, plan and audit
            registry.approval_trained(done.tx, plan.plan_id, state.results)
            ending = apply_handed_plan(plans, done, plan.plan_id, run.id)
            if ending.error is not None:
                self._tell(done.tx, state.spec, ending.error)
            return ending

        ending = await audited_effect(run, plans.audit, "registered", register, PlanEnding)
        if ending.error is not None:
            raise PlanRefused(GivenCode(ending.error.code), ending.error.message, fix=ending.error.fix)
        state.outcome = ending.plan.results[0].text

    def conclude(self, finish: Finish) -> Outcome:
        outcome, plan, run = super().conclude(finish), self.state.plan, self._run
        if plan is None or not (finish.cancelled or finish.error is not None):
            return outcome
        why = f"The run {run.id}, which drafted it, {'was cancelled' if finish.cancelled else 'failed'}."
        plans = self._core.plans
        return replace(outcome, closing=lambda done: withdraw_plan(plans, done, plan.plan_id, finish.actor, why))

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
            words = {
                "request": command.request,
                "answered": answered,
                "examples": examples,
                "material": command.material,
            }
            fenced = {name: text and bench.fenced(text, f"{step}.{name}") for name, text in words.items()}
            return Assignment(**fenced, documents=documents, analysis=analysis and bench.fencer.line(analysis))

        asked = assignment("interview", "")
        reply = await self._object(bench, "interview", designer, asked.interview(), InterviewReply)
        gates.refuse_one_time(reply.frequency)
        if not reply.question.strip():
            return asked
        answer = await self._ask_person("interview", reply.question)
        return assignment("answered", f"Question: {reply.question}\n\nAnswer: {answer}")

    async def _designed(self, bench: Bench, designer: Speaker, assignment: Assignment) -> SpecialistSpec:
        """A design that both ministers let pass. Raises CreationRefused for a duplicate, and after three corrections."""
        changes, known = self._command.changes or "", await self._known(bench, "agents")
        if changes and not any(agent.id == changes and agent.is_own for agent in known):
            fix = "leave `--changes` out to have another one made"
            raise CreationRefused("unknown_specialist", f"You have no specialist {changes} to change.", fix=fix)
        sent_back, why = "", ""
        examples = [case.model_dump() for case in self._command.examples]
        for number in range(1, gates.MAX_CORRECTIONS + 2):
            step = f"design/{number}"
            messages = assignment.design(bench.tools, [agent.id for agent in known], changes, sent_back)

            def check(reply: SpecReply) -> Iterator[ReplyProblem]:
                try:
                    spec = spec_of({**reply.model_dump(), "examples": examples})
                except SpecRefused as refused:
                    yield ReplyProblem(f"{refused.message} {refused.fix}", refused.where)
                    return
                for at, case in enumerate(spec.examples, start=1):
                    if fault := schema_fault(spec.input_schema, case.input):
                        yield ReplyProblem(f"case {at} of the person does not fit it: {fault}", "input_schema")
                    if fault := expected_fault(spec.output_schema, case.expected_output):
                        told = f"the expected output of the person's case {at} {fault}"
                        yield ReplyProblem(told, "output_schema")

            reply = await self._object(bench, step, designer, messages, SpecReply, check)
            spec = spec_of({**reply.model_dump(), "examples": examples})
            why = await self._stopped(bench, step, spec, known)
            if not why:
                return spec
            last = bench.fenced(readable_json(msgspec.to_builtins(spec)), f"{step}.last")
            sent_back = f"# Your last design\n\n{last}\n\n# Why it was sent back\n\n{bench.fencer.line(why)}"
        tries, fix = gates.MAX_CORRECTIONS, "ask for something that needs less, or say more precisely what"
        message = f"Every design of it was sent back, after {tries} corrections, too. The last reason: {why}."
        raise CreationRefused("design_blocked", message, fix=fix)

    async def _known(self, bench: Bench, step: str) -> tuple[KnownAgent, ...]:
        reachable = partial(self._agents, bench)
        return await self._run.look(step, reachable, type=tuple[KnownAgent, ...], part=Part("agents"))

    async def _stopped(self, bench: Bench, step: str, spec: SpecialistSpec, known: Sequence[KnownAgent]) -> str:
        """The reason why a minister stops this spec, designed or edited; empty where both let it pass. Raises CreationRefused
        for a duplicate."""
        others = [agent for agent in known if agent.id != self._command.changes]
        settings, review = self._core.settings, Part("review")

        async def compare() -> Likeness:
            if bench.equipment.embedder is not None:
                most = {True: settings.verified_match, False: settings.unverified_match}
                try:
                    return await gates.alike_in_meaning(spec.purpose, others, bench.equipment.embedder, most)
                except (ModelError, BudgetSpent):
                    pass  # compared by words instead
            return gates.alike_in_words(spec.purpose, others)

        name = f"{step}/duplicates"
        likeness = await bench.run.step(name, compare, type=Likeness, durable=False, part=review)
        for call in likeness.calls:
            bench.calls.append(ModelCall(name, "", 0, TurnResult("", call.model, usage=call.usage), "embedding"))
        gates.refuse_known(spec, self._command.changes or "", others, likeness)
        name, asked = f"{step}/safety_reviewer", as_agent_spec(spec)
        safety = partial(guardian, asked, bench.tools)
        reviewed = await bench.run.look(name, safety, type=GuardianVerdict, part=review)
        validity = partial(validator, asked, {agent.id: agent.depends_on for agent in known})
        name = f"{step}/validator_minister"
        judged = await bench.run.look(name, validity, type=ValidatorVerdict, part=review)
        self.state.reviews.append((reviewed, judged))
        if reviewed.verdict == "BLOCKED":
            return f"The Guardian blocks it: {reviewed.reason}"
        return "; ".join(map(" — ".join, zip(judged.issues, judged.suggestions, strict=True)))

    async def _tested(self, bench: Bench, tester: Speaker, assignment: Assignment, spec: SpecialistSpec) -> TestSuite:
        """A suite without a fault: the designer's half and the hidden one. Raises CreationRefused when there is none."""
        faults: Sequence[str] = ()
        for number in range(1, _MAX_SUITES + 1):
            halves: list[tuple[TestCase, ...]] = []
            kinds: set[str] = set()
            for half, own in (("visible", spec.examples), ("hidden", ())):
                count = max(HALF, len(spec.examples)) - len(own)
                told = "\n".join(f"- {fault}" for fault in faults)
                messages = assignment.cases(spec, count, hidden=half == "hidden", faults=told)
                step = f"tests/{number}/{half}"
                cases = (await self._object(bench, step, tester, messages, CasesReply)).cases if count else []
                kept = cases[: count if half == "visible" else None]
                halves.append((*own, *(TestCase(case.input, case.expected_output) for case in kept)))
                kinds |= {case.kind for case in kept}
            suite = TestSuite(*halves)
            missing = [kind for kind in ("edge", "refusal") if kind not in kinds]
            faults = [*judge_suite(suite, spec), *(f"none of its cases is of the kind `{kind}`" for kind in missing)]
            if not faults:
                return suite
        message = f"No suite for it was good enough, in {_MAX_SUITES} tries. The last one: {'; '.join(faults)}."
        raise CreationRefused("suite_unfit", message, fix="give cases of your own in `examples`")

    async def _drafted(self, bench: Bench, spec: SpecialistSpec, suite: TestSuite) -> DraftedPlan:
        """The plan with what the ministers found, written with its approval in one transaction."""
        core, run, step = self._core, self._run, self._plan_step()
        missing = () if run.recorded(step) else await missing_credentials(core.vault, self._user, spec)
        judged = as_agent_spec(spec)
        findings = findings_of(spec, guardian(judged, bench.tools), auditor(judged), missing, self._user)
        open_ = (one.plan_id for one in plans_of_run(core.store, run.id) if one.stored in ("draft", "confirmed"))
        left = next(open_, "")  # an earlier try of this run did not come to its end

        def write(done: Transaction) -> DraftedPlan:
            scope = {"run": run.id, "model": self.state.model, "changes": self._command.changes or ""}
            given = {"spec": msgspec.to_builtins(spec), **msgspec.to_builtins(suite)}
            advice = Advice(f"Create the specialist {spec.role}", "\n".join(findings))
            asked = Proposal(CREATION.name, (ProposedOperation("createSpecialist", given),), scope, advice, left)
            plan = core.plans.draft(done, asked, core.principal_of(run), run_id=run.id)
            held = [name for name in spec.credentials if name not in missing]
            registry.approval_drafted(done.tx, plan, spec, suite, user=self._user, run_id=run.id, provided=held)
            return DraftedPlan(plan.plan_id, findings)

        return await audited_effect(run, core.plans.audit, step, write, DraftedPlan)

    def _plan_step(self) -> str:
        """The step of the run's newest plan: a further one where that plan ended with an earlier end of the run."""
        run, last = self._run, 1
        while run.recorded(f"plan/{last + 1}"):
            last += 1
        step = "plan" if last == 1 else f"plan/{last}"
        drafted = None if run.is_closed else run.value(step, DraftedPlan)
        if drafted is not None:
            plan = self._plan(drafted.plan_id)
            if plan.stored in ("failed", "expired") and plan.handed_ms is None:
                return f"plan/{last + 1}"
        return step

    async def _decided(self, plan_id: str, spec: SpecialistSpec) -> ApprovedPlan:
        """The plan once its person has handed it over. Raises RunPause until then, PlanRefused where they decided otherwise."""
        await self._note_resources(plan_id, spec)
        plan = self._plan(plan_id)
        try:
            await_person(plan, self._core.plans.now_ms())
        except PlanRefused as refusal:
            fix = f"`council retry {self._run.id} --from plan` asks again, with the same design"
            refusal.fix = fix
            if plan.state(self._core.plans.now_ms()) == "expired":
                await self._run.effect(f"told/{plan_id}", partial(self._tell, spec=spec, why=refusal), type=bool)
            raise PlanRefused(GivenCode(refusal.code), refusal.message, fix=fix, plan=plan) from refusal
        return ApprovedPlan(*read_arguments(NewSpecialist.model_validate(plan.operations[0].arguments)))

    def _tell(self, tx: Tx, spec: SpecialistSpec | None, why: CouncilError | ErrorRef) -> bool:
        """Tells the person that nothing came of a plan: they handed it over, and wait for no run."""
        role = spec.role if spec is not None else "that you asked for"
        fix = f" To mend it: {why.fix}." if why.fix else ""
        text = f"Your specialist {role} was not registered: {why.message}{fix}"
        registry.notify(tx.core, [self._user], self._core.redactor.redact(text), self._core.plans.now_ms())
        return True

    def _plan(self, plan_id: str) -> Plan:
        plan = self._core.store.read(lambda tx: plan_in(tx, plan_id))
        assert plan is not None
        return plan

    async def _note_resources(self, plan_id: str, spec: SpecialistSpec) -> tuple[str, ...]:
        """Notes which credentials the vault has now. Those that it lacks."""
        missing = await missing_credentials(self._core.vault, self._user, spec)
        if spec.credentials:
            held = [name for name in spec.credentials if name not in missing]
            await self._core.store.write(lambda tx: registry.approval_provided(tx, plan_id, held))
        return missing

    async def _require_resources(self, plan_id: str, approved: ApprovedPlan) -> None:
        """Raises RunPause while the vault lacks a credential, CreationRefused after ten minutes."""

        async def stored() -> bool:
            missing = await self._note_resources(plan_id, approved.spec)
            if not missing:
                return True
            named = f"{', '.join(missing)} of {self._user} for {approved.spec.role}"
            fix = "; ".join(stored_by(self._user, approved.spec.role, name) for name in missing)
            if self._core.plans.now_ms() - (self._plan(plan_id).handed_ms or 0) > _RESOURCES_S * 1000:
                raise CreationRefused("credential_missing", f"The vault still lacks {named}.", fix=fix)
            raise RunPause("credential", _LOOK_S, CouncilError(f"The vault lacks {named}: {fix}.", fix=fix))

        await self._run.step("resources", stored, type=bool, part=Part("resources"))

    async def _trained(self, bench: Bench, model_of: Speaker, approved: ApprovedPlan) -> None:
        """Raises CreationRefused for a specialist that fails, and for one that its person does not think worth having."""
        state, spec, suite = self.state, approved.spec, approved.suite
        state.results = results = await examined(self._core, bench, model_of, spec, suite)
        gates.refuse_untrained(suite, results, f"`council retry {self._run.id} --from design/1` designs it again")
        state.comparison = told = await worth(bench, model_of, self._command.request, spec, suite, results)
        if told.is_better:
            return
        answer = await self._ask_person("worth", f"{told} Answer `{_KEEP}` to register it all the same.")
        if answer.strip(" `.!").casefold() != _KEEP:
            message = f"The specialist {spec.role} is not worth having, and you did not keep it."
            fix = "`council ask` has the model do it without a specialist"
            raise CreationRefused("not_worth_having", message, fix=fix)
