"""Aggregation: the answers of several agents put together (source: The Conductor, "Aggregation Layer").

One answer is shown as it is. Several are compared by the model in typed form, and code checks who is named. Who disagrees
stands side by side, with who said what: nobody is outvoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from council.agents.handoff import Handoff, Return
from council.llm.base import Message
from council.llm.structured import ReplyProblem
from council.turns.bench import Bench
from council.turns.equipment import Speaker

_SHOWN_CHARS = 8_000  # of one answer, in the request that compares them


class Side(BaseModel):
    """The position of one agent."""

    agent: Annotated[str, Field(min_length=1, max_length=64)]
    says: Annotated[str, Field(min_length=1, max_length=600)]


class Disagreement(BaseModel):
    """A point on which agents hold different positions."""

    about: Annotated[str, Field(min_length=1, max_length=300)]
    sides: Annotated[list[Side], Field(min_length=2, max_length=6)]


class AnswerComparison(BaseModel):
    """The answers side by side: a summary for the person, and every disagreement."""

    summary: Annotated[str, Field(min_length=1, max_length=4_000)]
    disagreements: Annotated[list[Disagreement], Field(max_length=8)] = []


async def compare(
    bench: Bench, conductor: Speaker, answers: Sequence[tuple[Handoff, Return]]
) -> tuple[AnswerComparison | None, str]:
    """The comparison of two or more answers, or None and the reason."""
    told = []
    for handoff, returned in answers:
        text = bench.fenced(returned.answer[:_SHOWN_CHARS], f"compare.{handoff.id}")
        told.append(f"# {returned.from_} on: {bench.fencer.line(handoff.task)}\n\n{text}")
    messages = (Message("user", "\n\n".join(told)), Message("user", _INSTRUCTION))
    names = {returned.from_ for _, returned in answers}

    def check(comparison: AnswerComparison) -> Iterator[ReplyProblem]:
        for number, one in enumerate(comparison.disagreements):
            sides = {side.agent for side in one.sides}
            for name in sorted(sides - names):
                problem = f"{name} did not answer; the agents are {', '.join(sorted(names))}"
                yield ReplyProblem(problem, f"disagreements[{number}].sides")
            if len(sides & names) < 2:
                problem = "a disagreement is between two agents at least"
                yield ReplyProblem(problem, f"disagreements[{number}].sides")

    return await bench.ask_object("aggregate", conductor, messages, AnswerComparison, check)


_INSTRUCTION = """\
Compare the answers above for the person who asked. Reply with one JSON object and nothing else:

{"summary": "…", "disagreements": [{"about": "…", "sides": [{"agent": "…", "says": "…"}]}]}

summary: what the answers come to together, in the language of the answers, with the names of the agents. disagreements: each \
point on which two agents cannot both be right, with what each says in its own words; [] if there is none. Different topics \
are no disagreement. Do not decide who is right. Add nothing that no agent said."""
