"""The commands about plans: `plan`, `confirm` and `reject` act at once, `apply` and `undo` are runs in a lane of their own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StrictStr

from council.commands.models import LINE_PATTERN, PLANS_LANE, CommandBase, CommandModel, ControlBase, RunBase, dump
from council.commands.types import Admission, CommandType
from council.engine.runs import Premises
from council.errors import CommandInvalid
from council.ids import sha256_hex
from council.plans.plan import MAX_OPERATIONS, NAME_CHARS, Plan
from council.plans.register import plan_in
from council.safety.untrusted import plain_line
from council.users.people import seen_by

_Words = Annotated[StrictStr, Field(min_length=1, max_length=5_000)]
_PlanId = Annotated[StrictStr, Field(min_length=1, max_length=64, pattern=LINE_PATTERN, description="The plan's id.")]


class PlannedOperation(CommandModel):
    """One change that the plan proposes."""

    tool: Annotated[StrictStr, Field(min_length=1, max_length=64, description="A write tool of the plan's kind.")]
    arguments: Annotated[dict[StrictStr, Any], Field(description="The arguments of the tool.")] = Field(
        default_factory=dict
    )
    clientRequestId: Annotated[
        StrictStr | None,
        Field(min_length=1, max_length=128, description="Unique in the scope: the same id again changes nothing."),
    ] = None


class PlanCommand(ControlBase):
    """Drafts a plan. Nothing changes until its person confirms it and it is applied."""

    type: Annotated[Literal["plan"], Field(description="What kind of command this is.")]
    kind: Annotated[StrictStr, Field(min_length=1, max_length=64, description="The kind of plan.")]
    operations: Annotated[
        tuple[PlannedOperation, ...],
        Field(min_length=1, max_length=MAX_OPERATIONS, description="The changes, in their order."),
    ]
    scope: Annotated[
        dict[StrictStr, Any], Field(description="Arguments that all operations share, such as a project's id.")
    ] = Field(default_factory=dict)
    title: Annotated[StrictStr, Field(max_length=120, description="The plan's name in lists.")] = ""
    rationale: Annotated[StrictStr, Field(max_length=5_000, description="The reason for the plan.")] = ""
    risks: Annotated[tuple[_Words, ...], Field(max_length=20, description="Risks that its person should know.")] = ()
    questions: Annotated[tuple[_Words, ...], Field(max_length=10, description="Questions to its person.")] = ()
    revises: Annotated[
        StrictStr | None,
        Field(
            max_length=64,
            pattern=LINE_PATTERN,
            description="The plan that this one replaces: it cannot be applied any more.",
        ),
    ] = None


class PlanDecision(ControlBase):
    """The key of a command that decides a plan."""

    plan: _PlanId


class PlanEdit(CommandModel):
    """An edit of one operation."""

    index: Annotated[StrictInt, Field(ge=1, le=MAX_OPERATIONS, description="The operation's number, from 1.")]
    arguments: Annotated[
        dict[StrictStr, Any], Field(min_length=1, description="Arguments that take the place of the proposed ones.")
    ]


class ConfirmCommand(PlanDecision):
    """Confirms a plan for ten minutes, with edits if there are any."""

    type: Annotated[Literal["confirm"], Field(description="What kind of command this is.")]
    edits: Annotated[
        tuple[PlanEdit, ...],
        Field(max_length=MAX_OPERATIONS, description="Changes to operations; a deletion cannot be edited."),
    ] = ()
    leave_out: Annotated[
        tuple[StrictInt, ...], Field(max_length=MAX_OPERATIONS, description="The numbers of operations to leave out.")
    ] = ()


class RejectCommand(PlanDecision):
    """Rejects a plan for good."""

    type: Annotated[Literal["reject"], Field(description="What kind of command this is.")]
    comment: Annotated[StrictStr, Field(max_length=5_000, description="The reason, for whoever drafts it again.")] = ""


class PlanRunBase(RunBase):
    """The keys of a command that changes what a plan is about."""

    session: Annotated[Literal["plans"], Field(description="The lane of plans; it needs no slot.")] = PLANS_LANE
    plan: _PlanId


class ApplyCommand(PlanRunBase):
    """Applies a confirmed plan: all of it, or nothing."""

    type: Annotated[Literal["apply"], Field(description="What kind of command this is.")]
    token: Annotated[
        StrictStr | None,
        Field(
            min_length=1,
            max_length=2_000,
            description="The token that `council plans confirm` prints. Unset: only the confirming person may apply.",
        ),
    ] = None


class UndoCommand(PlanRunBase):
    """Takes back what a plan changed in the last ten minutes. What somebody has changed since stays."""

    type: Annotated[Literal["undo"], Field(description="What kind of command this is.")]


def admit_plan(command: PlanCommand, premises: Premises) -> Admission:
    """The run that waits for the plan which this one replaces is told. Raises CommandInvalid where there is none."""
    run_id = _plan(command, command.revises, premises, "revises").run_id if command.revises else ""
    return Admission(f"plan {plain_line(command.title, NAME_CHARS) or command.kind}", run_id=run_id)


def admit_decision(command: PlanDecision, premises: Premises) -> Admission:
    """The run that waits for the plan is told. Raises CommandInvalid for a plan that is not there."""
    return Admission(f"{command.type} plan {command.plan}", run_id=_plan(command, command.plan, premises).run_id)


def admit_plan_run(command: ApplyCommand | UndoCommand, premises: Premises) -> Admission:
    """Record 0 holds the token's SHA-256. Raises CommandInvalid for a plan that is not there."""
    _plan(command, command.plan, premises)
    recorded = dump(command)
    if isinstance(command, ApplyCommand) and command.token is not None:
        recorded["token"] = sha256_hex(command.token)
    return Admission(f"{command.type} plan {command.plan}", recorded=recorded)


def foresee(command: CommandBase, premises: Premises) -> None:
    """Rehearses it. Raises PlanRefused."""
    from council.plans.handlers import rehearse  # not at the top: a door that drops needs none of it

    kept = admit_plan_run(command, premises).recorded if isinstance(command, ApplyCommand | UndoCommand) else None
    premises.ask_house(lambda app: rehearse(app.plans, app.store, command, kept or {}))


def _plan(command: CommandBase, plan_id: str, premises: Premises, field: str = "plan") -> Plan:
    """Nobody learns here that somebody else has a plan of that id."""
    plan, sees = premises.store.read(lambda tx: (plan_in(tx, plan_id), seen_by(tx, command.user)))
    if plan is not None and sees in (None, plan.principal):
        return plan
    fix = "`council plans list --all` shows them, with their whole ids"
    raise CommandInvalid(f"there is no plan {plan_id!r}.", fix=fix, field=field)


PLAN_TYPES = (
    CommandType(PlanCommand, admit_plan, foresee=foresee),
    CommandType(ConfirmCommand, admit_decision, foresee=foresee),
    CommandType(RejectCommand, admit_decision, foresee=foresee),
    # A file that failed would lie there with its token.
    CommandType(
        ApplyCommand, admit_plan_run, names=frozenset({"plan", "token"}), keeps_failed_file=False, foresee=foresee
    ),
    CommandType(UndoCommand, admit_plan_run, names=frozenset({"plan"}), foresee=foresee),
)
