"""A reply in words, as its person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from council.ids import STEWARD
from council.plans.plan import Plan
from council.workspace.agent_replies import AgentReply, ConciergeReply, DraftReply
from council.workspace.context_pack import ContextPack
from council.workspace.drafting import DraftEnding

Output = dict[str, Any]


def answered(reply: AgentReply, pack: ContextPack, abilities: Sequence[str]) -> Output:
    """An answer with its details, risks, next steps and sources. `abilities` stand behind a declined request."""
    parts = [reply.answer]
    if isinstance(reply, ConciergeReply):
        parts += [_listed(reply.details)]
        risks = [f"{risk.kind}: {pack.name_of(risk.taskId)}: {risk.why}" for risk in reply.risks]
        parts += [_section("Risks", risks), _section("Next steps", reply.nextSteps, numbered=True)]
    parts.append(_section("Sources", [f"“{cited.label}” ({cited.ref})" for cited in reply.citations]))
    parts.append(_section("What I can do", [f"{ability[:1].upper()}{ability[1:]}." for ability in abilities]))
    fields = reply.model_dump(mode="json", exclude={"reads", "handoff"}, exclude_defaults=True)
    return {**fields, "answer": "\n\n".join(part for part in parts if part)}


def drafted(reply: DraftReply, ending: DraftEnding, pack: ContextPack, asker: str) -> Output:
    """A draft as a list of its changes, with what is not in it, and how it is confirmed."""
    plan = ending.plan
    parts = [reply.summary or reply.answer]
    if plan is not None:
        parts += [_section(f"Draft plan {plan.plan_id}", _changes(plan), numbered=True)]
    refused = [
        f"{one.tool}{f' of “{pack.name_of(one.row_id)}”' if one.row_id else ''}: {one.reason}" for one in ending.refused
    ]
    parts += [_section("Not in the plan", refused), _section("Risks", reply.risks)]
    parts += [_section("Questions", reply.questionsForUser)]
    if plan is not None:
        parts.append(how_to_decide(plan.plan_id, asker))
    elif ending.open_plan:
        parts.append(confirmed(ending.open_plan, asker))
    else:
        parts.append("There is no draft: none of these changes can be made.")
    return {
        "answer": "\n\n".join(part for part in parts if part),
        "refused": [{"tool": one.tool, "id": one.row_id, "reason": one.reason} for one in ending.refused],
    }


def confirmed(plan_id: str, asker: str) -> str:
    """The answer to a person who agrees to an open draft: no agent decides it for them."""
    return f"The draft {plan_id} is as it was, and nothing is changed yet. {how_to_decide(plan_id, asker)}"


def how_to_decide(plan_id: str, asker: str) -> str:
    """The way to the person's own decision."""
    plans = f"council plans --user {asker}" if asker != STEWARD.id else "council plans"
    return f"`{plans}` shows the draft and asks; `{plans} confirm {plan_id}` confirms it."


def _changes(plan: Plan) -> list[str]:
    return [preview.summary for preview in plan.previews]


def _section(title: str, lines: Sequence[str], *, numbered: bool = False) -> str:
    return f"**{title}**\n\n{_listed(lines, numbered=numbered)}" if lines else ""


def _listed(lines: Sequence[str], *, numbered: bool = False) -> str:
    marks = (f"{number}." if numbered else "-" for number in range(1, len(lines) + 1))
    return "\n".join(f"{mark} {line}" for mark, line in zip(marks, lines, strict=True))
