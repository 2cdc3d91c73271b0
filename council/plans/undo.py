"""Undoing an applied plan: one transaction with its audit record. What somebody changed since is kept."""

from __future__ import annotations

import msgspec

from council.audit.log import Transaction
from council.errors import CouncilError, StorageFailed
from council.ids import Principal
from council.plans import statements as sql
from council.plans.applying import PlanEnding, operation_of
from council.plans.approval import PlanRefused, Plans, live_principal, not_in_state, on_behalf_of, request_key, told_of
from council.plans.changes import all_or_nothing, make_change
from council.plans.plan import OperationResult
from council.plans.register import change_plan
from council.storage.store import Tx

UNDONE = "undone"
_GONE = "cannot be undone"


def undo_plan(plans: Plans, done: Transaction, plan_id: str, principal: Principal, at_ms: int) -> PlanEnding:
    """Takes back what is still as the plan left it, once, within ten minutes. What somebody changed since is kept and named.
    Raises PlanRefused where nothing is taken back."""
    tx, plan = done.tx, plans.locked(done.tx, plan_id)
    if principal.id != plan.principal:
        message = f"Only {plan.principal}, who applied the plan {plan_id}, may undo it."
        raise PlanRefused("foreign_plan", message, fix=on_behalf_of(plan), plan=plan)
    if plan.stored != "applied":
        raise not_in_state(plan, plan.state(at_ms))
    if at_ms > plan.undo_until_ms:
        message = f"The plan {plan_id} was applied more than ten minutes ago."
        raise PlanRefused("undo_expired", message, fix="draft a plan that changes it back", plan=plan)
    live = live_principal(tx, plan)
    results = [_judged(plans, tx, live, result) for result in plan.results]
    undone = [at for at, result in enumerate(results) if result.undo == UNDONE]
    if not undone:
        told = "; ".join(f"{told_of(plan, at + 1)} {result.undo}" for at, result in enumerate(results) if result.undo)
        message = f"Nothing of the plan {plan_id} can be undone: {told or 'it changed nothing'}."
        is_gone = any(result.undo == _GONE for result in results)
        fix = "what is gone cannot be brought back: make it anew" if is_gone else "draft a plan that changes it back"
        raise PlanRefused("nothing_to_undo", message, fix=fix, plan=plan)
    try:
        with all_or_nothing(tx):
            for at in reversed(undone):
                inverse = results[at].inverse
                assert inverse is not None
                make_change(plans.tools, tx, live, inverse.tool, inverse.arguments)
                tx.execute(sql.DROP_DONE, (request_key(plan, plan.operations[at]), plan_id))
    except StorageFailed:
        raise
    except CouncilError as error:
        raise PlanRefused("undo_failed", error.message, fix=error.fix, plan=plan) from error
    plan = msgspec.structs.replace(plan, stored="undone", results=tuple(results))
    kept = [f"{told_of(plan, at + 1)} {result.undo}" for at, result in enumerate(results) if at not in undone]
    plans.record(done, "plan_undone", principal.id, plan, undone=len(undone), kept=kept)
    return PlanEnding(change_plan(tx, plan))


def _judged(plans: Plans, tx: Tx, principal: Principal, result: OperationResult) -> OperationResult:
    """The result with the word on its undo, before the first change."""
    undo = UNDONE
    if result.refused or result.again:
        undo = ""
    elif result.inverse is None:
        undo = _GONE
    else:
        now = plans.judged(tx, principal, operation_of(result.inverse))
        if isinstance(now, CouncilError):
            undo = f"was kept: {now.message}"
        elif now.state != result.left:
            undo = "was kept: somebody changed it since"
    return msgspec.structs.replace(result, undo=undo)
