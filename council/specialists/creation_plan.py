"""The plan that creates a specialist: its one write tool, what the person is shown, and the registration.

The run that designed the specialist waits for this plan, trains the specialist, and applies the plan with its closing effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import StrictStr

from council.ids import Clock, Principal, readable_json
from council.plans.approval import Proposal, ProposedOperation
from council.plans.plan import Advice, Plan, PlanKind
from council.safety.ministers import AuditVerdict, GuardianVerdict
from council.specialists import registry
from council.specialists.creation_prompts import shown_cases
from council.specialists.specialist_spec import SpecialistSpec, TestCase, spec_of
from council.specialists.suites import MIN_CONFIDENCE, CaseResult, TestSuite, avg_confidence
from council.storage.store import tx_over
from council.tools.preview import Difference, Preview
from council.tools.tool import Arguments, Tool, ToolResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

_AWAITING_S = 600.0  # the source's ten minutes for the awaiting states
CREATION = PlanKind("specialist_creation", ("createSpecialist",), draft_ttl_s=_AWAITING_S, applied_by_run=True)


class NewSpecialist(Arguments):
    """A specialist with its suite. `run` trains it with `model`."""

    run: StrictStr
    model: StrictStr
    spec: dict[str, Any]
    visible: list[dict[str, Any]]
    hidden: list[dict[str, Any]]


class Findings(msgspec.Struct, frozen=True):
    """The words of the ministers, and what is needed before it can be trained or used."""

    guardian: GuardianVerdict
    auditor: AuditVerdict
    needs: tuple[str, ...] = ()


def proposal_of(spec: SpecialistSpec, suite: TestSuite, findings: Findings, run_id: str, model: str) -> Proposal:
    """The plan for a person."""
    given = {"run": run_id, "model": model, "spec": msgspec.to_builtins(spec), **msgspec.to_builtins(suite)}
    told = [f"Guardian: {findings.guardian.verdict.lower()}, risk {findings.guardian.risk_level}: {findings.guardian.reason}."]
    told += ["Validator: valid.", f"Auditor: {findings.auditor.verdict.lower()}."]
    told += [f"Needed: {need}" for need in findings.needs]
    risks = (*findings.auditor.findings, *(_outside(spec) if spec.requests else ()))
    advice = Advice(f"Create the specialist {spec.role}", "\n".join(told), risks)
    return Proposal(CREATION.name, (ProposedOperation("createSpecialist", given),), advice=advice)


def proposed(plan: Plan) -> tuple[SpecialistSpec, TestSuite]:
    """The specialist of a plan as its person confirmed it. Raises SpecRefused for what they made of it."""
    return _read(NewSpecialist.model_validate(plan.operations[0].arguments))


def creation_tools(clock: Clock) -> list[Tool]:
    """`createSpecialist`, which registers a specialist that its run has trained."""

    def preview(connection: Connection, principal: Principal, arguments: NewSpecialist, /) -> Preview:
        spec, suite = _read(arguments)
        shown = {
            "role": spec.role,
            "rules": "\n".join(spec.dna_rules),
            "input": readable_json(spec.input_schema),
            "output": readable_json(spec.output_schema),
            "answers by": "code in the cage" if spec.kind == "code" else "a model; no code runs",
            "code": spec.code,
            "tools": ", ".join(spec.tools),
            "depends on": ", ".join(spec.depends_on),
            "outside requests": "\n".join(f"{one.name}: {one.method} {one.url}" for one in spec.requests),
            "credentials": ", ".join(spec.credentials),
            "cases": shown_cases(suite.visible),
            "hidden cases": shown_cases(suite.hidden),
        }
        differences = tuple(Difference(name, "", text) for name, text in shown.items() if text)
        summary = f"Trains and registers the specialist {spec.role}, for {principal.id} alone: {spec.purpose}"
        return Preview(summary, differences, (principal.id,), undoable=False)

    def register(connection: Connection, principal: Principal, arguments: NewSpecialist, /) -> ToolResult:
        spec, suite = _read(arguments)
        tx = tx_over(connection)
        plan_id, trained = registry.training_in(tx, arguments.run)
        results = msgspec.json.decode(trained, type=tuple[CaseResult, ...])
        if avg_confidence(results) < MIN_CONFIDENCE:
            return ToolResult.refused("training_failed", "no training of it has passed")
        registry.register(
            tx, spec=spec, suite=suite, results=results, user=principal.id, run_id=arguments.run, plan_id=plan_id,
            now_ms=int(clock.now().timestamp() * 1000), model=arguments.model,
        )  # fmt: skip
        text = f"The specialist {spec.role} is registered: unverified, and for {principal.id} alone."
        return ToolResult(True, "createSpecialist", text)

    described = "registers a specialist that was trained"
    return [Tool("createSpecialist", described, NewSpecialist, "write", (), apply=register, preview=preview)]


def _read(arguments: NewSpecialist) -> tuple[SpecialistSpec, TestSuite]:
    halves = [
        tuple(msgspec.convert(case, TestCase) for case in cases) for cases in (arguments.visible, arguments.hidden)
    ]
    return spec_of(arguments.spec), TestSuite(*halves)


def _outside(spec: SpecialistSpec) -> tuple[str, ...]:
    hosts = ", ".join(dict.fromkeys(filter(None, (request.host for request in spec.requests))))
    return (f"It asks {hosts}. In training its mock replies answer; each request that is no mere reading is a plan of its own.",)
