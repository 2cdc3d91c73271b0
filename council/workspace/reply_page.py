"""A reply in words, as its person reads it. `Say` puts Council's own words into the language of the request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from council.ids import STEWARD
from council.plans.plan import Plan
from council.workspace.agent_replies import AgentReply, ConciergeReply, DraftReply
from council.workspace.context_pack import ContextPack
from council.workspace.drafting import UNLOCK, DraftEnding, row_of

Output = dict[str, Any]
_TOLD = ("role", "capability", "permission", "status")  # arguments without which a change says too little
_EXCERPT_CHARS = 60


class Say(Protocol):
    """See `Bench.say`."""

    def __call__(self, english: str, **values: object) -> str: ...


def answered(reply: AgentReply, pack: ContextPack, abilities: Sequence[str], say: Say) -> Output:
    """An answer with its details, risks, next steps and sources. `abilities` stand behind a declined request."""
    parts = [reply.answer]
    if isinstance(reply, ConciergeReply):
        parts += [_listed(reply.details)]
        risks = [f"{say(risk.kind)}: {pack.name_of(risk.taskId)}: {risk.why}" for risk in reply.risks]
        parts += [_section(say("Risks"), risks), _section(say("Next steps"), reply.nextSteps, numbered=True)]
    parts.append(_section(say("Sources"), [f"“{cited.label}” ({cited.ref})" for cited in reply.citations]))
    able = [f"{words[:1].upper()}{words[1:]}." for words in map(say, abilities)]
    parts.append(_section(say("What I can do"), able))
    fields = reply.model_dump(mode="json", exclude={"reads", "handoff"}, exclude_defaults=True)
    return {**fields, "answer": "\n\n".join(part for part in parts if part)}


def drafted(
    reply: DraftReply, ending: DraftEnding, pack: ContextPack, asker: str, descriptions: Mapping[str, str], say: Say
) -> Output:
    """A draft as a list of its changes, with what is not in it, and how it is confirmed. `descriptions` are those of the
    tools."""
    spoken = {tool: words for tool, known in descriptions.items() if (words := say(known)) != known}
    plan, said = ending.plan, {tool: f"{words[:1].upper()}{words[1:]}" for tool, words in spoken.items()}
    parts = [reply.summary or reply.answer]
    if plan is not None:
        changes = list(_changes(plan, pack, said))
        parts += [_section(say("Draft plan {plan}", plan=plan.plan_id), changes, numbered=True)]
    refused = []
    for one in ending.refused:
        name = f"“{pack.name_of(one.row_id)}”" if one.row_id else ""
        if one.tool in said and (why := say(one.code)) != one.code:
            why += f" {say(UNLOCK)}" if one.code == "locked" else ""
            refused.append(f"{said[one.tool]}{name and f': {name}'}: {why}")
        else:
            refused.append(f"{one.tool}{name and f' of {name}'}: {one.reason}")
    parts += [_section(say("Not in the plan"), refused), _section(say("Risks"), reply.risks)]
    parts += [_section(say("Questions"), reply.questionsForUser)]
    if plan is not None:
        parts.append(how_to_decide(plan.plan_id, asker, say))
    elif ending.open_plan:
        parts.append(confirmed(ending.open_plan, asker, say))
    else:
        parts.append(say("There is no draft: none of these changes can be made."))
    return {
        "answer": "\n\n".join(part for part in parts if part),
        "refused": [{"tool": one.tool, "id": one.row_id, "reason": one.reason} for one in ending.refused],
    }


def confirmed(plan_id: str, asker: str, say: Say) -> str:
    """The answer to a person who agrees to an open draft: no agent decides it for them."""
    as_it_was = say("The draft {plan} is as it was, and nothing is changed yet.", plan=plan_id)
    return f"{as_it_was} {how_to_decide(plan_id, asker, say)}"


def how_to_decide(plan_id: str, asker: str, say: Say) -> str:
    """The way to the person's own decision."""
    plans = f"council plans --user {asker}" if asker != STEWARD.id else "council plans"
    return say("`{plans}` shows the draft and asks; `{plans} confirm {plan}` confirms it.", plans=plans, plan=plan_id)


def _changes(plan: Plan, pack: ContextPack, said: Mapping[str, str]) -> Iterator[str]:
    """Each change as the plan tells it, or by its tool and its row in another language."""
    for operation, preview in zip(plan.operations, plan.previews, strict=True):
        given, row_id = operation.arguments, row_of(operation.arguments)
        subject = pack.name_of(row_id) if row_id else str(given.get("title") or given.get("content", ""))
        told = ", ".join(str(given[name]) for name in _TOLD if name in given)
        what = f"{said.get(operation.tool)}: “{subject[:_EXCERPT_CHARS]}”{f' ({told})' if told else ''}"
        yield what if operation.tool in said else preview.summary


def _section(title: str, lines: Sequence[str], *, numbered: bool = False) -> str:
    return f"**{title}**\n\n{_listed(lines, numbered=numbered)}" if lines else ""


def _listed(lines: Sequence[str], *, numbered: bool = False) -> str:
    marks = (f"{number}." if numbered else "-" for number in range(1, len(lines) + 1))
    return "\n".join(f"{mark} {line}" for mark, line in zip(marks, lines, strict=True))
