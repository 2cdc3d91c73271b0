"""From a reply to a draft plan. The plan waits for its person; the run ends with it.

Scope, ids and permissions are the server's. An operation that its person may not make is left out of the plan and
named, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from council.audit.log import Transaction
from council.engine.ledger import Ledger
from council.errors import CouncilError
from council.plans.approval import PlanRefused, Plans, Proposal, ProposedOperation
from council.plans.plan import Advice, Operation, Plan
from council.plans.register import plan_in, waiting_plans
from council.storage.store import Store, Tx
from council.users.people import principal_in
from council.workspace.agent_replies import DraftReply, NotesReply, ReplyOperation

UNLOCK = "Unlock the note in the UI first."
_ROW_IDS = ("taskId", "noteId", "eventId", "commentId", "userId")


class ProposedChange(msgspec.Struct, frozen=True):
    """One operation of a reply: where it stands there, the tool, its arguments, and the words that ask for a deletion."""

    path: str
    tool: str
    arguments: dict[str, Any]
    reason: str = ""
    asked: str | None = None


class RefusedChange(msgspec.Struct, frozen=True):
    """An operation that is not in the plan, and why."""

    tool: str
    reason: str
    row_id: str = ""
    code: str = ""


class DraftEnding(msgspec.Struct, frozen=True):
    """The outcome of drafting. `plan` is None where no operation can be carried out, or the same draft is open already;
    then `open_plan` names it. `error`: the plan as a whole was refused."""

    plan: Plan | None = None
    refused: tuple[RefusedChange, ...] = ()
    open_plan: str = ""
    error: str = ""


def changes_of(reply: DraftReply) -> Iterator[ProposedChange]:
    """The operations of a reply in their order, as calls of tools."""
    for field in type(reply).model_fields:
        parts = getattr(reply, field)
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, ReplyOperation):
                given = part.model_dump(mode="json", exclude_unset=True, exclude=part.about)
                arguments = {key: value for key, value in given.items() if value or key not in ("projectId", "orgId")}
                asked = getattr(part, "asked", None)
                yield ProposedChange(f"{field}[{number}]", part.called, arguments, part.reason, asked)


def row_of(arguments: Mapping[str, Any]) -> str:
    """The id of the row that an operation changes; empty for a new one."""
    return next((str(arguments[name]) for name in _ROW_IDS if arguments.get(name)), "")


def draft(
    plans: Plans, done: Transaction, reply: DraftReply, *, kind: str, scope: Mapping[str, str], asker: str, run_id: str
) -> DraftEnding:
    """Drafts the plan of a reply in one transaction with its audit record.

    What the asker may not do now is left out and named, in the audit too. A draft that has the very same operations as the
    one that it would replace is no second one.
    """

    def takes(tool: str, key: str) -> bool:
        known = plans.tools.get(tool)
        return known is not None and key in known.arguments.model_fields

    principal = principal_in(done.tx, asker)
    carried: list[ProposedOperation] = []
    blocked = reply.blocked if isinstance(reply, NotesReply) else ()
    refused = [RefusedChange("updateNote", UNLOCK, note.noteId, "locked") for note in blocked]
    proposed = []
    for change in changes_of(reply):
        held_to = {key: value for key, value in scope.items() if takes(change.tool, key)}
        proposed.append(Operation(change.tool, {**held_to, **change.arguments}, ""))
    for one, judged in zip(proposed, plans.judged_in_turn(done.tx, principal, proposed), strict=True):
        if isinstance(judged, CouncilError):
            reason = f"{judged.message} {UNLOCK}" if judged.code == "locked" else judged.message
            refused.append(RefusedChange(one.tool, reason, row_of(one.arguments), judged.code))
        else:
            carried.append(ProposedOperation(one.tool, one.arguments))
    shared = {key: value for key, value in scope.items() if carried and all(takes(one.tool, key) for one in carried)}
    if refused:
        left_out = [{"tool": one.tool, "row": one.row_id, "code": one.code} for one in refused]
        detail = {"kind": kind, "run": run_id, "operations": left_out}
        done.record("refusal", "operations_left_out", principal.id, detail)
    if not carried:
        return DraftEnding(refused=tuple(refused))
    before = plan_in(done.tx, reply.revises) if reply.revises else None
    if before is not None and [(one.tool, one.arguments) for one in before.operations] == [
        (one.tool, one.arguments) for one in carried
    ]:
        return DraftEnding(refused=tuple(refused), open_plan=before.plan_id)
    title = reply.title or f"{len(carried)} change{'s' if len(carried) > 1 else ''} of {kind}"
    advice = Advice(title, reply.summary, tuple(reply.risks), tuple(reply.questionsForUser))
    proposal = Proposal(kind, tuple(carried), shared, advice, reply.revises)
    try:
        return DraftEnding(plans.draft(done, proposal, principal, run_id=run_id), tuple(refused))
    except PlanRefused as refusal:
        plans.refused(done, "plan", principal.id, refusal)
        return DraftEnding(refused=tuple(refused), error=refusal.message)


def open_drafts(store: Store, plans: Plans, *, kind: str, asker: str, lane: str) -> list[Plan]:
    """The drafts of this conversation that wait for its person, oldest first."""
    ledger = Ledger(store)

    def lane_of(plan: Plan) -> str:
        return next((entry.lane for entry in ledger.starting_with(plan.run_id, 1)), "") if plan.run_id else ""

    waiting = waiting_plans(store, plans.now_ms())
    return [plan for plan in waiting if (plan.kind, plan.principal) == (kind, asker) and lane_of(plan) == lane]


def shown_draft(plans: Plans, tx: Tx, plan: Plan) -> str:
    """A draft for a prompt, each operation on a line. One whose note is locked now shows nothing of it."""
    principal = principal_in(tx, plan.principal)
    lines = [f"open draft {plan.plan_id}, {plan.advice.title or plan.kind}"]
    for number, operation in enumerate(plan.operations, start=1):
        try:
            plans.preview(tx, principal, operation)
            told = msgspec.json.encode(operation.arguments).decode()
        except CouncilError as error:
            told = UNLOCK if error.code == "locked" else f"cannot be made any more: {error.message}"
        lines.append(f"{number}. {operation.tool} {told}")
    return "\n".join(lines)
