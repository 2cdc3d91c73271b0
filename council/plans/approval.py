"""The approval of plans: draft, confirm and reject, each inside the writer's transaction with its audit record.

Nothing an agent or a program wants is written without this (promise *Approval*; KAIROS, "The Draft → Confirm → Apply
Lifecycle"). `applying` applies and undoes. Every function checks first and writes last, so that a refusal leaves no row
touched; who calls it records the refusal with `Plans.refused`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
from pydantic import ValidationError

from council.audit.log import Transaction
from council.audit.trail import Trail
from council.commands.parsing import fault_in_words
from council.errors import CommandInvalid, CouncilError, GivenCode, StorageFailed
from council.ids import STEWARD, Clock, Principal, epoch_ms, new_run_id, sha256_hex
from council.keys.keyring import Keyring
from council.plans import statements as sql
from council.plans.changes import all_or_nothing, make_change, rolled_back
from council.plans.plan import MAX_OPERATIONS, Advice, Operation, Plan, PlanKind, State, plan_hash
from council.plans.register import add_plan, change_plan, lost_its_run, plan_in, plan_of_drop
from council.redaction import Redactor
from council.storage.store import Tx
from council.tools.preview import Preview
from council.tools.registry import ToolRegistry
from council.tools.tool import Tool
from council.users.people import user_in

CHANGED: Final = "changed_since_draft"
CONFLICT: Final = "request_conflict"
USED_REQUEST = "its clientRequestId was used for another operation."
OTHER_REQUEST = "give it another clientRequestId"

PlanCode = Literal[
    "bad_arguments", "changed_since_draft", "confirmation_expired", "danger_not_editable", "foreign_plan",
    "no_such_operation", "not_confirmed", "nothing_to_undo", "outside_scope", "plan_altered", "plan_applied",
    "plan_confirmed", "plan_draft", "plan_expired", "plan_failed", "plan_handed_over", "plan_not_found",
    "plan_not_handed", "plan_rejected", "plan_size", "plan_superseded", "plan_undone", "principal_gone",
    "request_conflict", "run_ended", "token_refused", "tool_not_allowed", "undo_expired", "undo_failed", "unknown_kind",
]  # fmt: skip


class PlanRefused(CommandInvalid):
    """A plan that cannot be drafted, decided, applied or undone as was asked. `plan` is None where there is none yet."""

    http_status = 409

    def __init__(
        self, code: PlanCode | GivenCode, message: str, *, fix: str, field: str = "", plan: Plan | None = None
    ) -> None:
        super().__init__(message, fix=fix, field=field)
        self.code = code
        self.plan = plan


class ProposedOperation(msgspec.Struct, frozen=True):
    """An operation as somebody wrote it. Without a `client_request_id` it gets one of its plan."""

    tool: str
    arguments: Mapping[str, Any]
    client_request_id: str = ""


class Proposal(msgspec.Struct, frozen=True):
    """The wish for a plan, by a person, a program or an agent."""

    kind: str
    operations: tuple[ProposedOperation, ...]
    scope: Mapping[str, Any] = {}
    advice: Advice = Advice()
    revises: str = ""


class Edits(msgspec.Struct, frozen=True):
    """The changes that a person makes to a draft while confirming it, by the number of the operation, from 1. These `arguments`
    take the place of others, and operations are `left_out`."""

    arguments: Mapping[int, Mapping[str, Any]] = {}
    left_out: frozenset[int] = frozenset()


NO_EDITS = Edits()


@dataclass(frozen=True)
class Plans:
    """All that deciding about plans needs, besides the transaction and the moment."""

    kinds: Mapping[str, PlanKind]
    tools: ToolRegistry
    audit: Trail
    keys: Callable[[], Keyring]
    redactor: Redactor
    clock: Clock
    draft_ttl_s: float

    def now_ms(self) -> int:
        return epoch_ms(self.clock)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draft(
        self, done: Transaction, asked: Proposal, principal: Principal, *, run_id: str = "", drop: str = ""
    ) -> Plan:
        """A new draft, which waits for its principal. `run_id`: of the run that drafts it. Raises PlanRefused, also where the
        principal may not do what is asked."""
        tx = done.tx
        if drop and (there := plan_of_drop(tx, drop)) is not None:
            return there
        kind, now = self.kind_of(asked.kind), self.clock.now()
        plan_id, now_ms = new_run_id(now), self.now_ms()
        scope = self.redactor.in_texts(asked.scope)
        if not 0 < len(asked.operations) <= MAX_OPERATIONS:
            message = f"A plan has 1 to {MAX_OPERATIONS} operations, and this one has {len(asked.operations)}."
            raise PlanRefused("plan_size", message, fix="split it into several plans", field="operations")
        operations = tuple(
            self._operation(kind, scope, msgspec.structs.replace(one, client_request_id=request), number)
            for number, one in enumerate(asked.operations, start=1)
            for request in [one.client_request_id or f"{plan_id}/{number}"]
        )
        if len(operations) > 1 and any(self.tool_of(kind, one.tool).send is not None for one in operations):
            message, fix = "A plan that sends something has one operation.", "draft a plan for each request"
            raise PlanRefused("plan_size", message, fix=fix, field="operations")
        named = [operation.client_request_id for operation in operations]
        for number, name in enumerate(named, start=1):
            if name in named[: number - 1]:
                message = f"Operation {number} has the clientRequestId of an earlier one, {name!r}."
                field = f"operations.{number - 1}.clientRequestId"
                raise PlanRefused(CONFLICT, message, fix="give each operation its own", field=field)
        previews = self._previews_in_turn(tx, principal, operations)
        ttl_s = self.draft_ttl_s if kind.draft_ttl_s is None else kind.draft_ttl_s
        plan = Plan(
            plan_id=plan_id,
            kind=kind.name,
            principal=principal.id,
            stored="draft",
            scope=scope,
            operations=operations,
            previews=previews,
            advice=self.redactor.redacted(asked.advice, Advice),
            hash=plan_hash(kind.name, scope, principal.id, operations),
            created_ms=now_ms,
            expires_ms=now_ms + int(ttl_s * 1000),
            run_id=run_id,
            revises=asked.revises,
            last_drop=drop,
        )
        _require_new_requests(tx, plan)
        if asked.revises:  # the first change that stays
            self._supersede(done, asked.revises, principal, plan_id, run_id)
        add_plan(tx, plan)
        self.record(done, "plan_drafted", principal.id, plan, revises=plan.revises, run=run_id)
        return plan

    def confirm(
        self, done: Transaction, plan_id: str, principal: Principal, edits: Edits = NO_EDITS, *, drop: str = ""
    ) -> Plan:
        """The plan, confirmed for ten minutes, with the edits that its person made: from here on these are hashed, shown and
        written. Raises PlanRefused."""
        plan = self._to_decide(done.tx, plan_id, principal, drop)
        is_edited = bool(edits.arguments or edits.left_out)
        state = plan.state(self.now_ms())
        if (drop and plan.last_drop == drop) or (state == "confirmed" and not is_edited):
            return plan
        kind = self.kind_of(plan.kind)
        numbers = range(1, len(plan.operations) + 1)
        for number in (*edits.arguments, *edits.left_out):
            if number not in numbers:
                message = f"The plan has {len(numbers)} operations, and no operation {number}."
                raise PlanRefused("no_such_operation", message, fix="`council plans show` numbers them", plan=plan)
        kept = [number for number in numbers if number not in edits.left_out]
        if not kept:
            message, fix = "This leaves out every operation.", f"{decision_of('reject', plan)} rejects it"
            raise PlanRefused("plan_size", message, fix=fix, plan=plan)
        staying = [plan.operations[number - 1] for number in kept]
        now = _all_possible([self.judged(done.tx, principal, operation) for operation in staying], staying, plan)
        for number, preview in zip(kept, now, strict=True):
            if preview.state != plan.previews[number - 1].state:  # its person decided on something else
                raise PlanRefused(CHANGED, changed_since_draft(plan, number), fix="draft the plan again", plan=plan)
        operations = tuple(self._edited(kind, plan, number, edits.arguments.get(number)) for number in kept)
        plan = msgspec.structs.replace(
            plan,
            stored="confirmed",
            operations=operations,
            previews=self._previews_in_turn(done.tx, principal, operations),
            hash=plan_hash(plan.kind, plan.scope, plan.principal, operations),
            confirmed_ms=self.now_ms(),
            last_drop=drop,
        )
        _require_new_requests(done.tx, plan)
        edited = {"edited": sorted(edits.arguments), "left_out": sorted(edits.left_out)}
        self.record(done, "plan_confirmed", principal.id, plan, **edited)
        return change_plan(done.tx, plan)

    def reject(
        self, done: Transaction, plan_id: str, principal: Principal, comment: str = "", *, drop: str = ""
    ) -> Plan:
        """The plan, rejected for good. Who drafts again is given the comment. Raises PlanRefused."""
        plan = self._to_decide(done.tx, plan_id, principal, drop)
        if drop and plan.last_drop == drop:
            return plan
        plan = msgspec.structs.replace(plan, stored="rejected", outcome=self.redactor.redact(comment), last_drop=drop)
        self.record(done, "plan_rejected", principal.id, plan)
        return change_plan(done.tx, plan)

    def _to_decide(self, tx: Tx, plan_id: str, principal: Principal, drop: str) -> Plan:
        """The plan that its own person may decide now, its row locked; or one on which this very file acted already."""
        plan = self.locked(tx, plan_id)
        if principal.id != plan.principal or principal.kind in ("player", "service"):
            fix = f"{plan.principal} decides it; {on_behalf_of(plan)}"
            raise PlanRefused("foreign_plan", f"The plan {plan_id} is {plan.principal}'s.", fix=fix, plan=plan)
        if drop and plan.last_drop == drop:
            return plan
        state = plan.state(self.now_ms())
        if state not in ("draft", "confirmed"):
            raise not_in_state(plan, state)
        if plan.handed_ms is not None:
            raise self.handed_over(tx, plan)
        require_whole(plan)
        return plan

    def handed_over(self, tx: Tx, plan: Plan) -> PlanRefused:
        """The refusal of whatever would come between a plan and the run that has it."""
        kind = self.kind_of(plan.kind)
        if lost_its_run(tx, plan, kind):
            message = f"The run {plan.run_id}, which has the plan {plan.plan_id}, has ended."
            fix = f"`council resume {plan.run_id}` goes on with it"
        elif kind.applied_by_run:
            message = f"The run {plan.run_id} is at work on the plan {plan.plan_id}."
            fix = f"`council cancel {plan.run_id}` ends it"
        else:
            message, fix = f"A run has the plan {plan.plan_id} already.", "`council status` shows the runs"
        return PlanRefused("plan_handed_over", message, fix=fix, plan=plan)

    def _edited(self, kind: PlanKind, plan: Plan, number: int, arguments: Mapping[str, Any] | None) -> Operation:
        operation = plan.operations[number - 1]
        if arguments is None:
            return operation
        if self.tool_of(kind, operation.tool).effect == "danger":
            message = f"Operation {number} deletes or removes something, so it cannot be edited."
            raise PlanRefused("danger_not_editable", message, fix="leave it out, or confirm it as it is", plan=plan)
        merged = {**operation.arguments, **arguments}
        edited = ProposedOperation(operation.tool, merged, operation.client_request_id)
        return self._operation(kind, plan.scope, edited, number)

    def _supersede(self, done: Transaction, plan_id: str, principal: Principal, by: str, run_id: str) -> None:
        """The older plan can be neither confirmed nor applied any more. One that was rejected stays so. One that was handed over
        is only superseded by the run that has it."""
        plan = self.locked(done.tx, plan_id)
        if plan.principal != principal.id:
            message, fix = f"The plan {plan_id} is {plan.principal}'s.", "leave `revises` out"
            raise PlanRefused("foreign_plan", message, fix=fix, field="revises")
        state = plan.state(self.now_ms())
        is_own = self.kind_of(plan.kind).applied_by_run and plan.run_id == run_id
        if state in ("draft", "confirmed") and (plan.handed_ms is None or is_own):
            plan = change_plan(done.tx, msgspec.structs.replace(plan, stored="superseded"))
            self.record(done, "plan_superseded", principal.id, plan, by=by)
        elif state not in ("rejected", "expired", "superseded", "failed"):
            raise not_in_state(plan, state)

    # ── what operations are ──────────────────────────────────────────────────────────────────────────────────────────

    def kind_of(self, name: str) -> PlanKind:
        """Raises PlanRefused for a kind that no system of this council brings."""
        kind = self.kinds.get(name)
        if kind is None:
            message, known = f"There is no plan kind {name!r}.", ", ".join(sorted(self.kinds)) or "none"
            raise PlanRefused("unknown_kind", message, fix=f"known kinds: {known}", field="kind")
        return kind

    def tool_of(self, kind: PlanKind, name: str) -> Tool:
        """Raises PlanRefused for a tool that is not on the kind's list."""
        tool = self.tools.get(name)
        if tool is None or tool.run is not None or tool.name not in kind.tools:
            message = f"{name!r} is not a tool for plans of the kind {kind.name}."
            raise PlanRefused("tool_not_allowed", message, fix=f"its tools: {', '.join(kind.tools)}")
        return tool

    def _operation(self, kind: PlanKind, scope: Mapping[str, Any], asked: ProposedOperation, number: int) -> Operation:
        """One operation as it will be hashed. Its scope is the plan's, whatever the arguments say. Raises PlanRefused."""
        field = f"operations.{number - 1}"
        try:
            tool = self.tool_of(kind, asked.tool)
        except PlanRefused as error:
            error.message, error.field = f"Operation {number}: {error.message}", f"{field}.tool"
            raise
        given = self.redactor.in_texts({**asked.arguments})
        for key, value in scope.items():
            if key not in tool.arguments.model_fields:
                message = f"Operation {number}: {tool.name} knows no {key}, so the plan's scope cannot hold it."
                fix = "propose it in a plan of its own, without that scope"
                raise PlanRefused("outside_scope", message, fix=fix, field=f"{field}.tool")
            if given.setdefault(key, value) != value:
                message = f"Operation {number}: {key} is {given[key]!r}, and the plan's scope says {value!r}."
                raise PlanRefused("outside_scope", message, fix="leave it out", field=f"{field}.arguments.{key}")
        try:
            valid = tool.arguments.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            message = f"Operation {number}: `{where}` of {tool.name}: {fault_in_words(first)[0]}."
            fix = f"its arguments: {', '.join(tool.arguments.model_fields)}"
            raise PlanRefused("bad_arguments", message, fix=fix, field=f"{field}.arguments.{where}") from None
        request = self.redactor.redact(asked.client_request_id)
        return Operation(tool.name, valid.model_dump(mode="json", exclude_unset=True), request)

    def preview(self, tx: Tx, principal: Principal, operation: Operation) -> Preview:
        """The effect of an operation now, for a principal who may do it. Raises CouncilError for one who may not."""
        tool = self.tools.get(operation.tool)
        assert tool is not None
        assert tool.preview is not None
        found = tool.preview(tx.core, principal, tool.arguments.model_validate(operation.arguments))
        return self.redactor.redacted(found, Preview)

    def judged(self, tx: Tx, principal: Principal, operation: Operation) -> Preview | CouncilError:
        """The effect of an operation now, or why it may not be. Raises StorageFailed."""
        try:
            return self.preview(tx, principal, operation)
        except StorageFailed:
            raise
        except CouncilError as error:
            return error

    def judged_in_turn(
        self, tx: Tx, principal: Principal, operations: Sequence[Operation]
    ) -> list[Preview | CouncilError]:
        """The effects as a plan will make them, one after the other: all changes are made, and taken back. The `state` of each
        stays that of now. One that may not be, as things are or after those before it, changes nothing. Raises
        StorageFailed."""
        found = [self.judged(tx, principal, operation) for operation in operations]
        if len(found) < 2:
            return found
        with rolled_back(tx):
            for at, (operation, alone) in enumerate(zip(operations, found, strict=True)):
                if isinstance(alone, CouncilError):
                    continue
                try:
                    with all_or_nothing(tx):
                        shown = self.preview(tx, principal, operation)
                        make_change(self.tools, tx, principal, operation.tool, operation.arguments)
                    found[at] = msgspec.structs.replace(shown, state=alone.state)
                except StorageFailed:
                    raise
                except CouncilError as error:
                    told = "An earlier change of this plan makes it impossible. " if at else ""
                    error.message = f"{told}{error.message}"
                    found[at] = error
        return found

    def _previews_in_turn(self, tx: Tx, principal: Principal, operations: Sequence[Operation]) -> tuple[Preview, ...]:
        """Raises PlanRefused with the number of the first that may not be."""
        return _all_possible(self.judged_in_turn(tx, principal, operations), operations)

    # ── rows, and their audit ────────────────────────────────────────────────────────────────────────────────────────

    def locked(self, tx: Tx, plan_id: str) -> Plan:
        """The plan; nobody else changes it until the transaction ends. Raises PlanRefused."""
        plan = plan_in(tx, plan_id, lock=True)
        if plan is None:
            message, fix = f"There is no plan {plan_id!r}.", "`council plans list` shows them"
            raise PlanRefused("plan_not_found", message, fix=fix, field="plan")
        return plan

    def record(self, done: Transaction, action: str, actor: str, plan: Plan, **detail: Any) -> None:
        """Records an effect with the plan's hash and its tools."""
        done.record("effect", action, actor, {**_named(plan), **{key: value for key, value in detail.items() if value}})

    def refused(self, done: Transaction, action: str, actor: str, refusal: PlanRefused) -> None:
        """Records that somebody asked for what was refused."""
        detail = {"action": action, "code": refusal.code, "reason": refusal.message}
        done.record("refusal", "plan_refused", actor, {**(_named(refusal.plan) if refusal.plan else {}), **detail})


def _all_possible(
    judged: Sequence[Preview | CouncilError], operations: Sequence[Operation], plan: Plan | None = None
) -> tuple[Preview, ...]:
    """Raises PlanRefused with the number of the first that may not be."""
    found = []
    for number, (one, operation) in enumerate(zip(judged, operations, strict=True), start=1):
        if isinstance(one, CouncilError):
            message, field = f"Operation {number}, {operation.tool}: {one.message}", f"operations.{number - 1}"
            raise PlanRefused(GivenCode(one.code), message, fix=one.fix, field=field, plan=plan) from one
        found.append(one)
    return tuple(found)


def _require_new_requests(tx: Tx, plan: Plan) -> None:
    """Raises PlanRefused where another operation was applied under one of its ids: the apply would refuse it each time."""
    for number, operation in enumerate(plan.operations, start=1):
        row = tx.execute(sql.DONE, (request_key(plan, operation),)).fetchone()
        if row is not None and row[0] != operation.digest:
            message, field = f"{told_of(plan, number)}: {USED_REQUEST}", f"operations.{number - 1}.clientRequestId"
            raise PlanRefused(CONFLICT, message, fix=OTHER_REQUEST, field=field)


def live_principal(tx: Tx, plan: Plan) -> Principal:
    """The plan's principal with the roles of this moment. Raises PlanRefused where nobody of that name has one."""
    if plan.principal == STEWARD.id:
        return STEWARD
    user = user_in(tx, plan.principal)
    if user is None or not user.roles:
        message = f"{plan.principal} has no role here any more."
        fix = "ask somebody who has a role here to draft the plan"
        raise PlanRefused("principal_gone", message, fix=fix, plan=plan)
    return user.principal


def require_whole(plan: Plan) -> None:
    """Raises PlanRefused where the operations were changed after the plan was drafted."""
    if not plan.is_whole:
        message = f"The operations of the plan {plan.plan_id} were changed after the plan was drafted."
        fix = "draft it again; `council audit verify` says whether records were changed, too"
        raise PlanRefused("plan_altered", message, fix=fix, plan=plan)


def not_in_state(plan: Plan, state: State) -> PlanRefused:
    """The refusal of what the plan's state does not allow."""
    told: dict[State, tuple[PlanCode, str]] = {
        "draft": ("plan_draft", "is only a draft"),
        "confirmed": ("plan_confirmed", "was confirmed"),
        "applied": ("plan_applied", "was applied already"),
        "undone": ("plan_undone", "was applied and undone"),
        "rejected": ("plan_rejected", "was rejected"),
        "expired": ("plan_expired", "has expired"),
        "superseded": ("plan_superseded", "was superseded"),
        "failed": ("plan_failed", "could not be applied"),
    }
    again = state in ("expired", "failed", "rejected")
    fix = "draft it again" if again else f"`council plans show {plan.plan_id}` shows it"
    code, said = told[state]
    why = f": {plan.outcome.rstrip('.')}" if state == "failed" and plan.outcome else ""
    return PlanRefused(code, f"The plan {plan.plan_id} {said}{why}.", fix=fix, plan=plan)


def decision_of(verb: str, plan: Plan) -> str:
    """The command that decides a plan, as its person types it."""
    user = "" if plan.principal == STEWARD.id else f"--user {plan.principal} "
    return f"`council plans {user}{verb} {plan.plan_id}`"


def on_behalf_of(plan: Plan) -> str:
    """The way in which a command says that it acts for the plan's person."""
    if plan.principal == STEWARD.id:
        return "leave `user` out"
    return f"set `user: {plan.principal}`, or `--user {plan.principal}` behind `council plans`"


def changed_since_draft(plan: Plan, number: int) -> str:
    return f"{told_of(plan, number)}: somebody changed this since the draft."


def told_of(plan: Plan, number: int) -> str:
    """An operation as messages name it: `Operation 2 (Renames the task “Soil”)`."""
    return f"Operation {number} ({plan.previews[number - 1].summary.rstrip('.')})"


def _named(plan: Plan) -> dict[str, Any]:
    tools = sorted({operation.tool for operation in plan.operations})
    return {"plan": plan.plan_id, "kind": plan.kind, "principal": plan.principal, "hash": plan.hash, "tools": tools}


def request_key(plan: Plan, operation: Operation) -> str:
    """The row that remembers what was done under an operation's `clientRequestId`."""
    return sha256_hex(f"{plan.scope_key} {operation.client_request_id}")
