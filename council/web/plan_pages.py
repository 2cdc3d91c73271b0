"""The pages of plans: what would change, shown as differences; a person's ticks, edits and word on it.

Every decision is the command that `council plans` drops. Who may decide is the rule of `plans`; a button stands where it
would not be refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from starlette.datastructures import FormData

from council.desk.desk import Desk
from council.desk.plan_lookup import edited, find_plan, moment, now_ms, redrafted, revised_by, seen_plans, told_result
from council.desk.window import hand_in
from council.errors import UsageError
from council.events import ControlAct, Event, RunEnd
from council.plans.plan import Plan
from council.tools.preview import Difference
from council.web.pagination import Slice, slice_of
from council.web.sign_in import Person
from council.web.window_pages import Filters, PageAction, WindowPage

_PER_PAGE = 25
_DECISIONS = ("confirm", "both", "apply", "reject", "undo")  # `both` confirms and applies
_TONES = {"draft": "waiting", "confirmed": "waiting", "applied": "succeeded", "failed": "failed-run"}


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference, as a unified diff has it."""

    kind: Literal["same", "gone", "new", "cut"]
    sign: str
    text: str


@dataclass(frozen=True)
class OperationCard:
    """One operation of a plan. `is_new`: the draft before this one did not have it. `changes` are the fields that it changes,
    line by line; `arguments` the texts that a person may change before they confirm. `result` is empty until it is applied."""

    number: int
    summary: str
    undoable: bool
    is_new: bool
    changes: dict[str, list[DiffLine]]
    affects: tuple[str, ...]
    arguments: dict[str, str]
    result: str
    is_refused: bool


@dataclass(frozen=True)
class PlanCard:
    """A plan, and what the person who looks may do with it now. `until` ends that, as RFC 3339; empty for no end.

    `gone` are the operations of the earlier draft that this one no longer has.
    """

    plan_id: str
    title: str
    kind: str
    state: str
    tone: str
    words: str
    rationale: str
    outcome: str
    instead_of: str
    operations: list[OperationCard]
    gone: list[str]
    risks: tuple[str, ...]
    questions: tuple[str, ...]
    may_confirm: bool
    may_apply: bool
    may_undo: bool
    until: str


@dataclass(frozen=True)
class PlansView:
    """The plans that the person sees, newest first. `waiting` counts those that wait for them."""

    cards: Slice[PlanCard]
    waiting: int
    state: str
    states: tuple[str, ...]


def card_of(desk: Desk, person: Person, plan: Plan) -> PlanCard:
    at, older = now_ms(), revised_by(desk, plan)
    new, gone = redrafted(plan, older)
    state, is_mine = plan.state(at), plan.principal == person.id
    waits = is_mine and plan.handed_ms is None
    may_undo = is_mine and state == "applied" and at <= plan.undo_until_ms
    until = plan.confirmed_until_ms if state == "confirmed" else plan.undo_until_ms if may_undo else None
    return PlanCard(
        plan_id=plan.plan_id,
        title=plan.name,
        kind=plan.kind,
        state=state,
        tone=_TONES.get(state, "cancelled"),
        words=f"for {plan.principal}, since {moment(plan.created_ms)[:16].replace('T', ' ')} UTC",
        rationale=plan.advice.rationale,
        outcome=plan.outcome,
        instead_of=older.plan_id if older is not None else "",
        operations=[_operation(plan, number, number in new) for number in range(1, len(plan.previews) + 1)],
        gone=gone,
        risks=plan.advice.risks,
        questions=plan.advice.questions,
        may_confirm=waits and state == "draft",
        may_apply=waits and state == "confirmed",
        may_undo=may_undo,
        until=moment(until),
    )


def _operation(plan: Plan, number: int, is_new: bool) -> OperationCard:
    preview, asked = plan.previews[number - 1], plan.operations[number - 1]
    result = next(iter(plan.results[number - 1 : number]), None)
    return OperationCard(
        number=number,
        summary=preview.summary,
        undoable=preview.undoable,
        is_new=is_new,
        changes={one.field: diff_lines(one) for one in preview.differences},
        affects=preview.affects,
        arguments={
            name: as_text(value)
            for name, value in asked.arguments.items()
            if isinstance(value, str | int | float | bool) and not name.endswith("Id") and name not in plan.scope
        },
        result="" if result is None else told_result(result),
        is_refused=result is not None and bool(result.refused),
    )


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def diff_lines(difference: Difference) -> list[DiffLine]:
    """The lines of a difference, each with what becomes of it."""
    kinds: dict[str, Literal["same", "gone", "new", "cut"]] = {"-": "gone", "+": "new", " ": "same", "@": "cut"}
    return [
        DiffLine(kinds[line[0]], "⋯" if line[0] == "@" else line[0].strip(), "" if line[0] == "@" else line[1:])
        for line in difference.lines
    ]


def shown_plans(desk: Desk, person: Person, asked: Filters) -> PlansView:
    state, seen = asked.get("state", ""), seen_plans(desk, person.principal)
    part = slice_of([mark for mark in seen if state in ("", mark.state)], asked, "plans", _PER_PAGE)
    cards = [card_of(desk, person, find_plan(desk, mark.plan_id, person.principal)) for mark in part.rows]
    return PlansView(
        cards=part.showing(cards),
        waiting=sum(mark.principal == person.id and mark.state in ("draft", "confirmed") for mark in seen),
        state=state,
        states=tuple(dict.fromkeys(mark.state for mark in seen)),
    )


def decide_plan(desk: Desk, person: Person, asked: Filters, form: FormData) -> str:
    plan = find_plan(desk, asked["plan"], person.principal)
    verb = str(form.get("do", ""))
    if verb not in _DECISIONS:
        raise UsageError(f"{verb[:60]!r} cannot be done with a plan.", fix=f"use one of {', '.join(_DECISIONS)}")
    given: dict[str, Any] = {"plan": plan.plan_id}
    if verb in ("confirm", "both"):
        ticked = form.getlist("keep")
        kept = {number for number in range(1, len(plan.operations) + 1) if str(number) in ticked}
        edits: dict[int, dict[str, Any]] = {}
        for number, operation in enumerate(plan.operations, start=1):
            for name, value in operation.arguments.items():
                typed = form.get(f"edit.{number}.{name}")
                text = typed.replace("\r\n", "\n") if isinstance(typed, str) else as_text(value)
                if number in kept and text != as_text(value):
                    edits.setdefault(number, {})[name] = edited(value, text)
        left_out = [number for number in range(1, len(plan.operations) + 1) if number not in kept]
        changed = [{"index": number, "arguments": arguments} for number, arguments in edits.items()]
        hand_in(desk, {**given, "type": "confirm", "edits": changed, "leave_out": left_out}, person.user)
        verb = "apply" if verb == "both" else ""
    if verb == "reject":
        given["comment"] = str(form.get("comment", ""))
    if verb in ("apply", "reject", "undo"):
        hand_in(desk, {**given, "type": verb}, person.user)
    return f"/plans/{plan.plan_id}"


def _hears(event: Event, asked: Filters) -> bool:
    return isinstance(event, ControlAct | RunEnd)


PLANS = WindowPage("/plans", "Plans", "plans.html", shown_plans, hears=_hears)
PLAN = WindowPage(
    "/plans/{plan}", "", "plan.html", hears=_hears,
    build=lambda desk, person, asked: card_of(desk, person, find_plan(desk, asked["plan"], person.principal)),
)  # fmt: skip
ACTIONS = (PageAction("/plans/{plan}", PLAN, decide_plan),)
