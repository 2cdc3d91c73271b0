"""Applying a confirmed plan: one transaction with its audit record.

    row lock → confirmation → hash → allowlist → live permission and rows as drafted, for all → the changes → the record

What is refused before the first change leaves no row touched, except in a plan whose kind allows it: then the other
operations are applied. An error during the changes rolls back all of them, and the plan has failed.

A plan that sends something is checked in the same way and handed to its apply run. The run sends outside any transaction, and
`end_sent_plan` records how it ended.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from council.audit.log import Transaction
from council.engine.receipts import ErrorRef
from council.engine.runs import ANSWER, RunPause
from council.errors import CouncilError, GivenCode, StorageFailed
from council.ids import Principal
from council.plans import statements as sql
from council.plans.approval import (
    CHANGED,
    CONFLICT,
    OTHER_REQUEST,
    USED_REQUEST,
    PlanRefused,
    Plans,
    changed_since_draft,
    decision_of,
    live_principal,
    not_in_state,
    on_behalf_of,
    request_key,
    require_whole,
    told_of,
)
from council.plans.changes import all_or_nothing, make_change
from council.plans.confirmation_token import is_token_of
from council.plans.plan import Operation, OperationResult, Plan, without_words
from council.plans.register import change_plan, plan_in
from council.storage.store import Tx
from council.tools.preview import Inverse
from council.tools.tool import ToolResult

UNKNOWN = "outcome_unknown"  # of a sending that a kill cut off, or whose reply never came
NOT_SENT = "not_sent"  # of one whose run had ended before


class PlanEnding(msgspec.Struct, frozen=True):
    """The end of an apply or an undo: the plan as it is now, and why nothing was applied. `sends`: the run is to send what
    the plan's one operation says, and then to end the plan."""

    plan: Plan
    error: ErrorRef | None = None
    sends: bool = False


def apply_plan(
    plans: Plans,
    done: Transaction,
    plan_id: str,
    principal: Principal,
    at_ms: int,
    *,
    token_sha256: str = "",
    active: Container[str] = (),
) -> PlanEnding:
    """Applies a plan for the person who confirmed it, or for the steward who brings that person's token. `at_ms` is the
    moment of the admission: the ten minutes are judged by it. `active` are the runs to which a plan can be handed.

    Afterwards the plan is applied, has failed, or is handed to the run that waits for it. Raises PlanRefused where the plan
    stays as it was.
    """
    plan = plans.locked(done.tx, plan_id)
    state = plan.state(at_ms)
    again = f"{decision_of('confirm', plan)} confirms it"
    if state == "draft" and plan.confirmed_ms is not None:
        message = f"The confirmation of the plan {plan_id} was good for ten minutes, and it has expired."
        raise PlanRefused("confirmation_expired", message, fix=f"{again} again", plan=plan)
    if state == "draft":
        raise PlanRefused("not_confirmed", f"Nobody has confirmed the plan {plan_id}.", fix=again, plan=plan)
    if state != "confirmed":
        raise not_in_state(plan, state)
    if token_sha256 and not is_token_of(plan, token_sha256, plans.keys()):
        message = f"The token does not fit the plan {plan_id} as it was confirmed."
        raise PlanRefused("token_refused", message, fix=f"{again}, and prints the one that fits", plan=plan)
    if principal.id != plan.principal and not (token_sha256 and principal.kind == "steward"):
        message = f"Only {plan.principal}, who confirmed the plan {plan_id}, may apply it."
        by_token = "; or give the token that confirming printed: `--token TOKEN`" if principal.kind == "steward" else ""
        raise PlanRefused("foreign_plan", message, fix=on_behalf_of(plan) + by_token, plan=plan)
    require_whole(plan)
    if plan.handed_ms is not None:
        raise plans.handed_over(done.tx, plan)
    if not plans.kind_of(plan.kind).applied_by_run:
        return _applied(plans, done, plan)
    if plan.run_id not in active:
        message = f"The run {plan.run_id}, which was to apply the plan {plan_id}, has ended."
        raise PlanRefused("run_ended", message, fix=f"`council retry {plan.run_id}` drafts it anew", plan=plan)
    plan = msgspec.structs.replace(plan, handed_ms=plans.now_ms())
    plans.record(done, "plan_handed_over", principal.id, plan, run=plan.run_id)
    return PlanEnding(change_plan(done.tx, plan))


def await_person(plan: Plan, at_ms: int) -> None:
    """Lets the run that drafted a plan wait until it is handed over. Raises RunPause until then, and PlanRefused when its
    person decided otherwise or let it expire."""
    state = plan.state(at_ms)
    if state not in ("draft", "confirmed"):
        raise not_in_state(plan, state)
    if plan.handed_ms is None:
        fix = f"`council plans show {plan.plan_id}` shows it"
        waits = CouncilError(f"{plan.principal} has not decided the plan {plan.plan_id} yet; {fix}.", fix=fix)
        raise RunPause(ANSWER, (plan.expires_ms - plan.created_ms) / 1000, waits)


def withdraw_plan(plans: Plans, done: Transaction, plan_id: str, actor: str, why: str) -> None:
    """Nobody can decide the plan any more: the run that waited for it has ended. One that was decided, or handed over, stays.
    The row of one that has expired says so from now on: a resume drafts another."""
    plan = plan_in(done.tx, plan_id, lock=True)
    if plan is not None and plan.stored in ("draft", "confirmed") and plan.handed_ms is None:
        if plan.state(plans.now_ms()) == "expired":
            plan = msgspec.structs.replace(plan, stored="expired")
        else:
            plan = msgspec.structs.replace(plan, stored="failed", outcome=why)
        change_plan(done.tx, plan)
        plans.record(done, "plan_withdrawn", actor, plan, run=plan.run_id)


def apply_handed_plan(plans: Plans, done: Transaction, plan_id: str, run_id: str) -> PlanEnding:
    """Applies a plan as the closing effect of the run that drafted it, to which it was handed. Raises PlanRefused."""
    plan = plans.locked(done.tx, plan_id)
    if plan.run_id != run_id or plan.handed_ms is None or plan.stored != "confirmed":
        message = f"The plan {plan_id} was not handed to the run {run_id}."
        raise PlanRefused("plan_not_handed", message, fix="its person confirms and applies it first", plan=plan)
    require_whole(plan)
    return _applied(plans, done, plan)


def end_sent_plan(plans: Plans, done: Transaction, plan_id: str, result: ToolResult) -> PlanEnding:
    """Records how the sending of a handed plan ended: it was applied, or has failed. Raises PlanRefused for one that is not
    handed any more."""
    plan = plans.locked(done.tx, plan_id)
    if plan.stored != "confirmed" or plan.handed_ms is None:
        raise not_in_state(plan, plan.state(plans.now_ms()))
    if not result.ok:
        fix = "look there before you draft it again" if result.error_code == UNKNOWN else "draft the plan again"
        return _failed(plans, done, plan, ErrorRef(result.error_code, result.error, fix))
    [operation], text = plan.operations, plans.redactor.redact(result.text or result.title)
    done.tx.execute(sql.NOTE_DONE, (request_key(plan, operation), plan_id, operation.digest, text))
    sent = (OperationResult(text=text),)
    plan = msgspec.structs.replace(plan, stored="applied", applied_ms=plans.now_ms(), results=sent)
    plans.record(done, "plan_applied", plan.principal, plan, applied=1)
    return PlanEnding(change_plan(done.tx, plan))


# ── details ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _applied(plans: Plans, done: Transaction, plan: Plan) -> PlanEnding:
    tx, kind = done.tx, plans.kind_of(plan.kind)
    results: list[OperationResult] = []
    to_conceal = set()
    try:
        principal = live_principal(tx, plan)
        for number, operation in enumerate(plan.operations, start=1):
            plans.tool_of(kind, operation.tool)
            results.append(_foreseen(plans, tx, plan, principal, number, operation))
        refused = [result for result in results if result.refused]
        if refused and (not kind.partial or len(refused) == len(results)):
            again = f"draft it again, and {OTHER_REQUEST}" if refused[0].code == CONFLICT else "draft the plan again"
            raise PlanRefused(GivenCode(refused[0].code), refused[0].refused, fix=again, plan=plan)
        to_do = [at for at, result in enumerate(results) if not result.refused and not result.again]
        if any(plans.tool_of(kind, plan.operations[at].tool).send is not None for at in to_do):
            plan = msgspec.structs.replace(plan, handed_ms=plans.now_ms())
            plans.record(done, "plan_handed_over", plan.principal, plan)
            return PlanEnding(change_plan(tx, plan), sends=True)
        with all_or_nothing(tx):
            for at in to_do:
                operation = plan.operations[at]
                made = make_change(plans.tools, tx, principal, operation.tool, operation.arguments)
                to_conceal |= {made.row_to_conceal} - {""}
                inverse = plans.redactor.redacted(made.inverse, Inverse) if made.inverse is not None else None
                results[at] = OperationResult(text=plans.redactor.redact(made.text or made.title), inverse=inverse)
            for at in to_do:  # after the whole plan; what its principal may not take back has no inverse
                result = results[at]
                if result.inverse is not None:
                    found = plans.judged(tx, principal, operation_of(result.inverse))
                    if isinstance(found, CouncilError):
                        results[at] = msgspec.structs.replace(result, inverse=None)
                    else:
                        results[at] = msgspec.structs.replace(result, left=found.state)
    except StorageFailed:
        raise
    except CouncilError as error:
        plan = msgspec.structs.replace(plan, results=tuple(result for result in results if result.refused))
        return _failed(plans, done, plan, ErrorRef(error.code, f"Nothing was applied. {error.message}", error.fix))
    for at in to_do:
        operation = plan.operations[at]
        values = (request_key(plan, operation), plan.plan_id, operation.digest, results[at].text)
        tx.execute(sql.NOTE_DONE, values)
    plan = msgspec.structs.replace(plan, stored="applied", applied_ms=plans.now_ms(), results=tuple(results))
    for row_id in to_conceal:
        plan = without_words(plan, row_id, "")
    told = [result.refused for result in refused]
    plans.record(done, "plan_applied", plan.principal, plan, applied=len(to_do), refused=told, run=plan.run_id)
    return PlanEnding(change_plan(tx, plan))


def _foreseen(
    plans: Plans, tx: Tx, plan: Plan, principal: Principal, number: int, operation: Operation
) -> OperationResult:
    """The judgement on an operation before the first change: refused, done earlier, or nothing yet."""
    row = tx.execute(sql.DONE, (request_key(plan, operation),)).fetchone()
    if row is not None and row[0] == operation.digest:
        return OperationResult(text=row[1], again=True)
    if row is not None:
        return OperationResult(refused=f"{told_of(plan, number)}: {USED_REQUEST}", code=CONFLICT)
    now = plans.judged(tx, principal, operation)
    if isinstance(now, CouncilError):
        return OperationResult(refused=f"{told_of(plan, number)}: {now.message}", code=now.code)
    if now.state != plan.previews[number - 1].state:
        return OperationResult(refused=changed_since_draft(plan, number), code=CHANGED)
    return OperationResult()


def _failed(plans: Plans, done: Transaction, plan: Plan, error: ErrorRef) -> PlanEnding:
    error = msgspec.structs.replace(error, message=plans.redactor.redact(error.message))
    plan = msgspec.structs.replace(plan, stored="failed", outcome=error.message)
    refusal = PlanRefused(GivenCode(error.code), error.message, fix=error.fix, plan=plan)
    plans.refused(done, "apply", plan.principal, refusal)
    return PlanEnding(change_plan(done.tx, plan), error)


def operation_of(inverse: Inverse) -> Operation:
    return Operation(inverse.tool, inverse.arguments, "")
