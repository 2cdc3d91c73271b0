"""Plans as every door asks for them: those that a person sees, and one by what a person gives of its id."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from council.desk.desk import Desk
from council.errors import UsageError
from council.ids import STEWARD, Principal, SystemClock, epoch_ms, timestamp_of
from council.plans.confirmation_token import confirmation_token
from council.plans.plan import Operation, OperationResult, Plan, PlanMark
from council.plans.register import lost_its_run, newest_plans, plan_marks, plans_starting_with, waiting_plans


class PlanNotFound(UsageError):
    """No plan by that id, or none that this person may see."""

    code = "plan_not_found"
    http_status = 404


def now_ms() -> int:
    return epoch_ms(SystemClock())


def only_waiting(desk: Desk, user: str) -> Plan:
    """The one plan that waits for this user. Raises UsageError where none or several do."""
    found = [plan for plan in waiting_plans(desk.store, now_ms()) if plan.principal == user]
    if len(found) == 1:
        return found[0]
    told = f"{len(found)} plans wait for {user}" if found else f"no plan waits for {user}"
    raise UsageError(f"{told}.", fix="name one; `council plans list` shows them, `--user` says whose you decide")


def seen_plans(desk: Desk, principal: Principal) -> list[PlanMark]:
    """The plans that this person sees, the newest first: a user their own. Raises ConfigError, StorageFailed."""
    return plan_marks(desk.store, now_ms(), principal.sees)


def find_plan(desk: Desk, given: str, principal: Principal = STEWARD) -> Plan:
    """The one plan that `given` means for this person: an id, its beginning, or `last`. Raises PlanNotFound, UsageError."""
    whose = principal.sees  # two at the most: more than one is not understood, however many
    is_last = given == "last"
    matches = newest_plans(desk.store, 1, whose) if is_last else plans_starting_with(desk.store, given, 2, whose)
    matches = [plan for plan in matches if plan.plan_id == given] or matches
    if len(matches) == 1:
        return matches[0]
    fix = "`council plans list` shows yours"
    if matches:
        raise UsageError(f"{given!r} means several plans.", fix=fix)
    raise PlanNotFound(f"no plan matches {given!r}.", fix=fix)


def awaits_resume(desk: Desk, plan: Plan) -> bool:
    """True for a plan whose run has ended before it applied the plan."""
    kinds = [kind for system in desk.systems() for kind in system.plan_kinds if kind.name == plan.kind]
    return desk.store.read(lambda tx: any(lost_its_run(tx, plan, kind) for kind in kinds))


def revised_by(desk: Desk, plan: Plan) -> Plan | None:
    """The plan in whose place this one stands."""
    found = plans_starting_with(desk.store, plan.revises, 1) if plan.revises else []
    return found[0] if found else None


def token_of(desk: Desk, plan: Plan) -> str:
    """The token of a confirmed plan, derived now and kept nowhere. Raises KeysRefused, ConfigError, StorageFailed."""
    with desk.safe() as safe:
        return confirmation_token(plan, safe.keyring().primary)


def is_safe(plan: Plan) -> bool:
    """True for one change that can be undone: a single keystroke may confirm and apply it."""
    return len(plan.previews) == 1 and plan.previews[0].undoable


def plan_json(plan: Plan) -> dict[str, Any]:
    """A plan as programs read it. What would take it back is left out: it may hold what was there before."""
    found = {
        name: value
        for name, value in msgspec.to_builtins(plan).items()
        if name not in ("stored", "last_drop", "previews", "results") and not name.endswith("_ms")
    }
    moments = ("created_ms", "expires_ms", "confirmed_ms", "handed_ms", "applied_ms")
    times = {name.removesuffix("_ms"): moment(getattr(plan, name)) for name in moments if getattr(plan, name)}
    previews = [_without(preview, "state") for preview in plan.previews]
    results = [_without(result, "inverse", "left") for result in plan.results]
    return {**found, "state": plan.state(now_ms()), **times, "previews": previews, "results": results}


def _without(value: msgspec.Struct, *keys: str) -> dict[str, Any]:
    return {key: item for key, item in msgspec.to_builtins(value).items() if key not in keys}


def moment(ms: int | None) -> str:
    """RFC 3339 in UTC; empty for what did not happen."""
    return "" if ms is None else timestamp_of(ms)


def redrafted(plan: Plan, older: Plan | None) -> tuple[set[int], list[str]]:
    """The numbers of the operations that the older plan did not have, and the summaries of its own that are gone."""
    if older is None:
        return set(), []
    before, after = [_asked(one) for one in older.operations], [_asked(one) for one in plan.operations]
    new = {number for number, one in enumerate(after, start=1) if one not in before}
    return new, [preview.summary for preview, one in zip(older.previews, before, strict=True) if one not in after]


def told_result(result: OperationResult) -> str:
    """The outcome of one operation, in words."""
    if result.undo:
        return result.undo
    if result.refused:
        return f"refused: {result.refused}"
    if result.again:
        return "done before"
    return "done" if result.inverse is not None else result.text or "done"


def edited(before: object, typed: str) -> Any:
    """An argument as it was typed over the one `before`: read as JSON, except where a text takes the place of a text."""
    if isinstance(before, str):
        return typed
    try:
        return json.loads(typed)
    except ValueError:  # plain words
        return typed


def _asked(operation: Operation) -> tuple[str, str]:
    return operation.tool, json.dumps(operation.arguments, sort_keys=True)
