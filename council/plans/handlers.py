"""The work of the commands about plans. A decision is one transaction; an apply or an undo is one effect step of its run.

An apply that sends something has three steps. Their names are `apply`, `send` and `sent`. The first checks and hands over, the
second is outside any transaction and never begun twice, the third records.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from council.audit.log import Transaction
from council.commands.models import CommandBase
from council.engine.auditing import audited_effect
from council.engine.ledger import Ledger
from council.engine.receipts import ErrorRef
from council.engine.records import FileIdentity
from council.engine.runs import BEGUN_ENDING, ControlAnswer, ControlHandler, Finish, Handler, Outcome, Run
from council.errors import CouncilError, GivenCode
from council.ids import STEWARD, Principal
from council.plans.applying import NOT_SENT, UNKNOWN, PlanEnding, apply_plan, end_sent_plan
from council.plans.approval import Edits, PlanRefused, Plans, Proposal, ProposedOperation, told_of
from council.plans.changes import rolled_back
from council.plans.commands import ConfirmCommand, PlanCommand
from council.plans.plan import Advice, Plan
from council.plans.undo import undo_plan
from council.safety.untrusted import plain_line
from council.storage.store import Store, Tx
from council.tools.tool import ToolResult
from council.users.people import principal_in, user_in

_NOTE_CHARS = 1_000
_SEND, _SENT = "send", "sent"
_Decide = Callable[[Plans, Transaction, Any, Principal, str], Plan]


def plan_controls(plans: Plans, store: Store) -> dict[str, ControlHandler]:
    return {type_: DecisionHandler(plans, store, decide) for type_, decide in _DECISIONS.items()}


def plan_handlers(plans: Plans) -> dict[str, Handler]:
    return dict.fromkeys(("apply", "undo"), lambda run: PlanRun(run, plans))


@dataclass(frozen=True)
class DecisionHandler:
    """Obeys a command that drafts or decides a plan."""

    plans: Plans
    store: Store
    decide: _Decide

    async def __call__(self, command: Any, principal: Principal, file: FileIdentity) -> ControlAnswer:
        """Raises PlanRefused, which is recorded with what was refused."""

        def write(tx: Tx) -> tuple[Transaction, Plan | PlanRefused]:
            done = self.plans.audit.join(tx)
            try:
                return done, self.decide(self.plans, done, command, principal, file.drop)
            except PlanRefused as refusal:
                self.plans.refused(done, command.type, principal.id, refusal)
                return done, refusal

        done, plan = await self.store.write(write)
        self.plans.audit.settle(done)
        if isinstance(plan, PlanRefused):
            raise plan
        state = plan.state(self.plans.now_ms())
        note = f"The plan {plan.plan_id} {'waits for its person' if state == 'draft' else f'is {state}'}."
        return ControlAnswer((note,), {"plan": plan.plan_id})


async def rehearse(plans: Plans, store: Store, command: CommandBase, kept: Mapping[str, Any]) -> None:
    """Does what a command about a plan asks, and takes that back; nothing is sent. `kept` is what record 0 would hold of an
    apply or undo. Raises PlanRefused, also where its run would fail."""
    active = Ledger(store).unfinished()

    def write(tx: Tx) -> None:
        done, principal = _Rehearsal(tx), principal_in(tx, command.user or STEWARD.id)
        with rolled_back(tx):
            if decide := _DECISIONS.get(command.type):
                decide(plans, done, command, principal, "")
            elif error := _changed(plans, done, kept, principal, plans.now_ms(), active).error:
                raise PlanRefused(GivenCode(error.code), error.message, fix=error.fix)

    await store.write(write, durable=False)


class _Rehearsal(Transaction):
    """A transaction that is undone: nothing of it is recorded."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx

    def record(self, *record: Any, **of_run: Any) -> bool:
        return True


def _draft(plans: Plans, done: Transaction, command: PlanCommand, principal: Principal, drop: str) -> Plan:
    proposal = Proposal(
        command.kind,
        tuple(ProposedOperation(one.tool, one.arguments, one.clientRequestId or "") for one in command.operations),
        command.scope,
        Advice(command.title, command.rationale, command.risks, command.questions),
        command.revises or "",
    )
    return plans.draft(done, proposal, principal, drop=drop)


def _confirm(plans: Plans, done: Transaction, command: ConfirmCommand, principal: Principal, drop: str) -> Plan:
    arguments: dict[int, dict[str, Any]] = {}
    for edit in command.edits:
        arguments.setdefault(edit.index, {}).update(edit.arguments)
    edits = Edits(arguments, frozenset(command.leave_out))
    return plans.confirm(done, command.plan, principal, edits, drop=drop)


_DECISIONS: Mapping[str, _Decide] = {
    "plan": _draft,
    "confirm": _confirm,
    "reject": lambda plans, done, command, principal, drop: plans.reject(
        done, command.plan, principal, command.comment, drop=drop
    ),
}


class PlanRunEnding(msgspec.Struct, frozen=True):
    """The recorded end of an apply or an undo. `handed_to` is the run that applies the plan itself. `sends` is the plan whose
    operation is to be sent now."""

    notes: tuple[str, ...] = ()
    error: ErrorRef | None = None
    handed_to: str = ""
    sends: Plan | None = None


class PlanRun:
    """One apply or undo being worked on: one transaction that changes rows, the plan, the journal and the audit. What is sent
    is sent between two of them."""

    def __init__(self, run: Run, plans: Plans) -> None:
        self._run = run
        self._plans = plans

    async def work(self) -> None:
        run, plans = self._run, self._plans
        ending = await audited_effect(run, plans.audit, run.header.type, self._change, PlanRunEnding)
        if ending.handed_to:
            run.runs.wake(ending.handed_to)
        if (plan := ending.sends) is not None:
            [operation], [preview] = plan.operations, plan.previews
            tool = plans.tool_of(plans.kind_of(plan.kind), operation.tool)
            principal = STEWARD if plan.principal == STEWARD.id else Principal(plan.principal, "user")
            arguments = tool.arguments.model_validate(operation.arguments)
            told = "The process ended while this was sent. Nobody knows whether it arrived."
            lost = ToolResult.refused(UNKNOWN, told, operation.tool)

            async def send() -> ToolResult:
                if run.is_reopened:
                    return ToolResult.refused(NOT_SENT, "Nothing was sent: the run had ended before.", lost.title)
                assert tool.send is not None
                try:
                    return await tool.send(principal, arguments, preview.state)
                except CouncilError as error:
                    mend = f" To mend it: {error.fix}." if error.fix else ""
                    return ToolResult.refused(error.code, f"Nothing was sent. {error.message}{mend}", operation.tool)

            result = await run.once(_SEND, send, lost=lost, type=ToolResult)
            if tool.digest is not None:
                result = await tool.digest(run, plan.run_id, principal, arguments, result)

            def end(done: Transaction) -> PlanRunEnding:
                return _told(end_sent_plan(plans, done, plan.plan_id, result))

            await audited_effect(run, plans.audit, _SENT, end, PlanRunEnding)

    def _change(self, done: Transaction) -> PlanRunEnding:
        command, header, tx = self._run.header.command, self._run.header, done.tx
        # Who lets an ended apply go on decides now: the confirmation of that time does not count for ever.
        at_ms = self._plans.now_ms() if self._run.is_reopened else header.admitted_ms
        principal = STEWARD
        if command["user"] is not None:
            user = user_in(tx, command["user"])
            principal = Principal(command["user"], "user") if user is None else user.principal
        try:
            return _told(_changed(self._plans, done, command, principal, at_ms, self._run.runs.active))
        except PlanRefused as refusal:
            self._plans.refused(done, header.type, principal.id, refusal)
            return PlanRunEnding(error=ErrorRef(refusal.code, refusal.message, refusal.fix))

    def conclude(self, finish: Finish) -> Outcome:
        ending = self._run.value(_SENT, PlanRunEnding) or self._run.value(self._run.header.type, PlanRunEnding)
        if ending is None or ending.sends is not None:
            told = ("Nobody knows whether it was sent.",) if self._run.recorded(_SEND + BEGUN_ENDING) else ()
            return Outcome("cancelled" if finish.cancelled else "failed", None, error=finish.error, notes=told)
        error = ending.error
        notes = ending.notes if error is None else (error.message,)
        return Outcome("failed" if error else "succeeded", None, error=error, notes=notes, cost_usd=0.0)


def _changed(
    plans: Plans,
    done: Transaction,
    command: Mapping[str, Any],
    principal: Principal,
    at_ms: int,
    active: Container[str],
) -> PlanEnding:
    """Obeys an `apply` or `undo` as record 0 keeps it. Raises PlanRefused."""
    if command["type"] == "undo":
        return undo_plan(plans, done, command["plan"], principal, at_ms)
    token = command["token"] or ""
    return apply_plan(plans, done, command["plan"], principal, at_ms, token_sha256=token, active=active)


def _told(ending: PlanEnding) -> PlanRunEnding:
    plan = ending.plan
    if ending.error is not None:
        return PlanRunEnding(error=ending.error)
    if ending.sends:
        return PlanRunEnding(sends=plan)
    if plan.stored == "confirmed":
        return PlanRunEnding((f"The run {plan.run_id} applies the plan {plan.plan_id}.",), handed_to=plan.run_id)
    notes = []
    for number, result in enumerate(plan.results, start=1):
        if result.refused:
            notes.append(f"Refused: {result.refused}")
        elif result.undo:
            notes.append(f"{told_of(plan, number)} {'was undone' if result.undo == 'undone' else result.undo}.")
        else:
            notes.append(f"{result.text}{' (done before)' if result.again else ''}")
    return PlanRunEnding(tuple(plain_line(note, _NOTE_CHARS) for note in notes))
