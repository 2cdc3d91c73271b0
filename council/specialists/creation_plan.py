"""The plan that creates a specialist: its one write tool, what the person is shown, and the registration.

The run that designed the specialist waits for this plan, trains the specialist, and applies the plan with its closing effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import StrictStr

from council.ids import Clock, Principal, epoch_ms
from council.plans.plan import PlanKind
from council.safety.ministers import AuditVerdict, GuardianVerdict
from council.specialists import specialist_registry as registry
from council.specialists import statements as sql
from council.specialists.creation_gates import CreationRefused
from council.specialists.outside_plans import stored_by
from council.specialists.specialist_spec import SpecialistSpec, SpecRefused, shown_cases, shown_spec, spec_of
from council.specialists.suites import MIN_CONFIDENCE, TestSuite, avg_confidence
from council.specialists.training import only_docker
from council.storage.store import tx_over
from council.tools.preview import Difference, Preview
from council.tools.tool import Arguments, Tool, ToolResult
from council.typed_json import convert

if TYPE_CHECKING:
    from sqlalchemy import Connection

_AWAITING_S = 600.0  # the source's ten minutes for the awaiting states
CREATION = PlanKind("specialist_creation", ("createSpecialist",), draft_ttl_s=_AWAITING_S, applied_by_run=True)


class NewSpecialist(Arguments):
    """A specialist with its suite. `run` trains it with `model`. `changes` names the specialist that gets a new version, empty
    for none. These are the scope of its plan, which no edit changes. Whatever its person makes of the rest is reviewed and
    trained as it is then."""

    run: StrictStr
    model: StrictStr
    changes: StrictStr = ""
    spec: dict[str, Any]
    visible: list[dict[str, Any]]
    hidden: list[dict[str, Any]]


def findings_of(
    spec: SpecialistSpec, judged: GuardianVerdict, audited: AuditVerdict, missing: Sequence[str], user: str
) -> tuple[str, ...]:
    """The ministers' words on a design that they let pass, and what it needs, line by line."""
    told = [f"Guardian: {judged.verdict}, risk {judged.risk_level}: {judged.reason}.", "Validator: VALID."]
    told.append(f"Auditor: {audited.verdict}." + "".join(f" {finding}." for finding in audited.findings))
    if hosts := ", ".join(dict.fromkeys(request.host for request in spec.requests)):
        said = "In training its mock replies answer; whatever changes something is a plan each time."
        told.append(f"It asks {hosts}. {said}")
    told += [f"It needs your credential {name}, and keeps no value." for name in spec.credentials]
    told += [f"When this was drafted, {name} was not stored: {stored_by(user, spec.role, name)}." for name in missing]
    if modules := only_docker(spec):
        told.append(f"It imports {', '.join(modules)}, which only a container has.")
    return tuple(told)


def read_arguments(arguments: NewSpecialist) -> tuple[SpecialistSpec, TestSuite]:
    """The specialist of a plan. Raises SpecRefused for what a person made of it."""
    try:
        suite = convert({"visible": arguments.visible, "hidden": arguments.hidden}, TestSuite)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `$.")
        fix = "give each case as {input, expected_output}"
        raise SpecRefused(where.rstrip("`"), f"has a wrong form: {said}", fix=fix) from None
    return spec_of(arguments.spec), suite


def creation_tools(clock: Clock) -> list[Tool]:
    """`createSpecialist`, which registers a specialist that its run has trained."""

    def preview(connection: Connection, principal: Principal, arguments: NewSpecialist, /) -> Preview:
        spec, suite = read_arguments(arguments)
        cases = {"cases": shown_cases(suite.visible), "hidden cases": shown_cases(suite.hidden)}
        differences = tuple(Difference(name, "", text) for name, text in {**shown_spec(spec), **cases}.items())
        summary = f"Trains and registers the specialist {spec.role}, only for {principal.id}: {spec.purpose}"
        return Preview(summary, differences, (principal.id,), undoable=False)

    def register(connection: Connection, principal: Principal, arguments: NewSpecialist, /) -> ToolResult:
        spec, suite = read_arguments(arguments)
        tx, now_ms = tx_over(connection), epoch_ms(clock)
        plan_id, drafted, results = registry.training_in(tx, arguments.run)
        own = [one for one in registry.rows_in(tx.execute, sql.OF_USER, principal.id) if one.role == spec.role]
        if any(one.scope == "user" for one in own) and spec.role != arguments.changes:  # it came while this one waited
            fix = f"`council specialists create … --changes {spec.role}` gives it a new version"
            raise CreationRefused("duplicate", f"You have a specialist {spec.role} already.", fix=fix)
        parent = next((one.id for one in own if one.scope == "global" and one.created_by == principal.id), "")
        if avg_confidence(results) < MIN_CONFIDENCE:
            return ToolResult.refused("training_failed", "no training of it has passed")
        registry.register(
            tx, spec=spec, suite=suite, results=results, user=principal.id, run_id=arguments.run, plan_id=plan_id,
            now_ms=now_ms, parent=parent, model=arguments.model, is_edited=spec != drafted,
        )  # fmt: skip
        text = f"The specialist {spec.role} is registered: unverified, and only for {principal.id}."
        return ToolResult(True, "createSpecialist", text)

    described = "registers a specialist that was trained"
    return [Tool("createSpecialist", described, NewSpecialist, "write", (), apply=register, preview=preview)]
