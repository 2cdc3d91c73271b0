"""Handing over: parts to agents, one after the other, side by side, in turns, or from agent to agent.

Every handoff names its agent, its fields and what was left out. An agent sees another one's output only in a field that its
handoff names as shared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from council.agents.directory import AgentUnknown, Directories, Directory
from council.agents.handoff import (
    ExpectedOutput,
    Handoff,
    HandoffContext,
    HandoffType,
    Return,
    answer_to,
    forwards_of,
    prepare,
    require_known,
)
from council.agents.manifest import PRIVATE, AgentManifest
from council.conductor.own_agents import OwnAgents
from council.conductor.understanding import Order
from council.engine.records import Part
from council.engine.runs import RunPause
from council.errors import FATAL, MissingContextError, ModelError
from council.llm.base import Message
from council.turns.bench import Bench
from council.turns.equipment import Speaker
from council.turns.run_guardrails import withheld

MAX_TURNS = 3  # of two agents that take turns on one text
CONDUCTOR_ID = "conductor"

Result = tuple[Handoff, Return]


@dataclass(frozen=True)
class PartJob:
    """A part on its way to an agent; `agent` empty: the conductor does it itself."""

    number: int
    agent: str
    fields: Mapping[str, Any]
    uses: tuple[int, ...] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)


class _AgentChoice(msgspec.Struct, frozen=True):
    """An agent as it was when its handoff was sent, and the place of its directory."""

    manifest: str
    directory: int


@dataclass
class Handing:
    """The handoffs of one run. `directories` end with the conductor's `own`. `ask_person` takes the name of a question and
    the question."""

    bench: Bench
    conductor: Speaker
    directories: Sequence[Directory]
    own: OwnAgents
    ask_person: Callable[[str, str], Awaitable[str]]
    style: str = ""
    sent: list[Handoff] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # for the page
    beyond: set[str] = field(default_factory=set)  # agents that require what they cannot be given
    private: list[tuple[str, Any]] = field(default_factory=list)  # of all parts
    has_asked: bool = False
    _offering: dict[str, Directory] = field(default_factory=dict)  # directories by handoff

    async def do_all(self, jobs: Sequence[PartJob], order: Order) -> list[Result]:
        """The results of all parts, those of children and of forwarded changes behind them. Raises ModelError where one was
        fatal, and all failed."""
        self.bench.spares = len(jobs) > 1
        self.private = [each for job in jobs for each in job.fields.items() if PRIVATE.search(each[0])]
        if order == "iterative" and len(jobs) == 2 and all(job.agent for job in jobs):
            results = await self._in_turns(jobs[0], jobs[1])
        else:
            results = await self._in_waves(jobs, one_at_a_time=order == "sequential")
        results += await self._forwarded(results)
        if all(returned.status == "failed" for _, returned in results):
            for failure in filter(None, (call.result.failure for call in self.bench.calls)):
                if failure.kind in FATAL:
                    raise ModelError(failure.kind, failure.message, fix=failure.fix)
        return results

    async def _in_waves(self, jobs: Sequence[PartJob], *, one_at_a_time: bool) -> list[Result]:
        """Each part once the parts that it uses are done: side by side, or one after the other."""
        done: dict[int, list[Result]] = {}
        kind: HandoffType = "sequential" if one_at_a_time or len(jobs) == 1 else "parallel"
        while left := [job for job in jobs if job.number not in done]:
            wave = [job for job in left if set(job.uses) <= done.keys()][: 1 if one_at_a_time else None]
            ready = [replace(job, shared=_outputs([done[number][0] for number in job.uses])) for job in wave]
            sends = []
            for job in ready:
                id = f"handoff-{job.number}"
                if job.agent:
                    sends.append(self.send(id, job.agent, job.fields, kind, job.shared))
                else:
                    sends.append(self._answer_itself(id, job))
            first = await all_of(sends)
            # The person is asked in the order of the parts, whichever agent came first: so it is after a restart.
            told = [await self._clarified(job, result, kind) for job, result in zip(ready, first, strict=True)]
            self.bench.spares = True  # what follows comes beside an answer
            children = await all_of([self._children(*one) for one in told])
            for job, result, below in zip(ready, told, children, strict=True):
                done[job.number] = [result, *below]
        return [result for job in jobs for result in done[job.number]]

    async def _clarified(self, job: PartJob, result: Result, kind: HandoffType) -> Result:
        """The result; where its agent needs a clarification, that of the same agent with the person's answer. A run asks the
        question of one agent at most."""
        handoff, returned = result
        if returned.status != "needs_clarification" or self.has_asked:
            return result
        self.has_asked = True
        answer = await self.ask_person(handoff.id, returned.question)
        told = f"{job.fields['task']}\n\nYou asked: {returned.question}\nThe person answered: {answer}"
        return await self.send(f"{handoff.id}-again", job.agent, {**job.fields, "task": told}, kind, job.shared)

    async def _in_turns(self, first: PartJob, second: PartJob) -> list[Result]:
        """Two agents take turns until the second one's output says `done`, or MAX_TURNS are over."""
        shared: Mapping[str, Any] = {}
        results: list[Result] = []
        for number in range(1, MAX_TURNS + 1):
            for whose in (first, second):
                job = replace(whose, shared=shared)
                one = await self.send(f"handoff-{job.number}-{number}", job.agent, job.fields, "iterative", shared)
                one = await self._clarified(job, one, "iterative")
                results = [one] if whose is first else [*results, one]
                is_done = whose is second and one[1].output.get("done") is True
                if one[1].status == "failed" or is_done:
                    return results
                shared = {**(shared if whose is second else {}), **_outputs([one])}
        each, last = f"{first.agent} and {second.agent} took {MAX_TURNS} turns each", f"{second.agent} was not done"
        self.notes.append(f"{each}, which is the most. {last} then.")
        return results

    async def _children(self, parent: Handoff, returned: Return) -> list[Result]:
        """The parts that an agent gave to others. A child gets nothing that its parent had not, and has no children."""
        if parent.parent:
            return []
        sends = []
        for number, child in enumerate(returned.children, start=1):
            fields = {name: parent.context.content[name] for name in child.fields if name in parent.context.content}
            shared = {name: value for name, value in fields.items() if name in parent.shared}
            fields["task"] = child.task
            id = f"{parent.id}-child-{number}"
            sends.append(self.send(id, child.to, fields, "hierarchical", shared, parent=parent, sender=parent.to))
        return await all_of(sends)

    async def _forwarded(self, results: Sequence[Result]) -> list[Result]:
        """The changes that agents asked for, by those who may propose them. One that fails does not stop the others."""
        done: list[Result] = []
        for number, forward in enumerate(forwards_of(returned for _, returned in results), start=1):
            asked = next(
                handoff for handoff, returned in results if forward.kind in {one.kind for one in returned.handoff}
            )
            agent = self._offering[asked.id].forwards.get(forward.kind)  # in the system of the agent that asked for it
            fields = {**asked.context.content, "task": forward.userIntent}
            fields["project"] = forward.projectId or self.bench.project
            shared = {name: fields[name] for name in asked.shared}
            id = f"handoff-forward-{number}"
            done.append(await self.send(id, agent or forward.kind, fields, "sequential", shared))
        return done

    async def send(
        self,
        id: str,
        agent: str,
        fields: Mapping[str, Any],
        kind: HandoffType,
        shared: Mapping[str, Any],
        *,
        parent: Handoff | None = None,
        sender: str = CONDUCTOR_ID,
    ) -> Result:
        """One handoff and its Return. What the agent cannot be given or do is a failed Return. Raises UnknownHandoff."""
        offered = {name: value for name, value in {**fields, **shared}.items() if value not in ("", None)}

        def choose() -> _AgentChoice:
            directory, manifest = Directories(self.directories).of(agent)
            return _AgentChoice(manifest.model_dump_json(), self.directories.index(directory))

        try:
            chosen = await self.bench.run.look(f"{id}/manifest", choose, type=_AgentChoice, part=Part("agent"))
            manifest, directory = AgentManifest.model_validate_json(chosen.manifest), self.directories[chosen.directory]
            if directory is self.own:
                self.own.adopt(manifest)
            handoff = prepare(
                id, manifest, offered, type=kind, shared=shared, tools=self.bench.tools, parent=parent, sender=sender,
                private=self.private,
            )  # fmt: skip
        except (AgentUnknown, MissingContextError) as error:
            self.beyond |= {agent} if isinstance(error, MissingContextError) else set()
            context = HandoffContext({}, tuple(sorted(offered)))
            handoff = Handoff(id=id, from_=sender, to=agent, context=context, expected_output=ExpectedOutput())
            self.sent.append(handoff)
            return handoff, answer_to(handoff, status="failed", error=error.message)
        self.sent.append(handoff)
        self._offering[id] = directory
        returned = await directory.run(handoff)
        require_known(returned, self.sent)
        for what, words in (("answer", returned.answer or returned.formless_reply), ("question", returned.question)):
            verdict = self.bench.guard.check("decision", words)
            if verdict.blocks:
                why = f"its {what} was {withheld(verdict)}"
                returned = answer_to(handoff, status="failed", error=why, plan=returned.plan)
        return handoff, returned

    async def _answer_itself(self, id: str, job: PartJob) -> Result:
        """The conductor's own answer, in general knowledge."""
        content = {name: value for name, value in {**job.fields, **job.shared}.items() if value not in ("", None)}
        shared = tuple(sorted(job.shared))
        handoff = Handoff(id=id, from_=CONDUCTOR_ID, to=CONDUCTOR_ID, context=HandoffContext(content), shared=shared)
        self.sent.append(handoff)
        parts = [f"# {name}\n\n{self.bench.fenced(str(value), f'{id}.{name}')}" for name, value in content.items()]
        style = f"\n\nHow they want to be answered:\n{self.style}" if self.style else ""
        messages = (Message("user", "\n\n".join(parts)), Message("user", f"{_GENERAL}{style}"))
        result = await self.bench.ask(id, self.conductor, messages, heard=True, round=job.number)
        if result.failure is not None:
            return handoff, answer_to(handoff, status="failed", error=result.failure.message)
        return handoff, answer_to(handoff, output={"answer": result.text})


def _outputs(results: Sequence[Result]) -> dict[str, Any]:
    """The outputs of agents as fields for another one: each by its own name, the prose as `other_agent_outputs`."""
    shared: dict[str, Any] = {}
    for _, returned in results:
        shared |= {name: value for name, value in returned.output.items() if name != "answer"}
        if returned.answer:
            shared["other_agent_outputs"] = returned.answer
    return shared


async def all_of(work: Sequence[Awaitable[Any]]) -> list[Any]:
    """The results of all, at once. All come to their end before a failure is raised, a mere wait last of all."""
    results = await asyncio.gather(*work, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in sorted(failures, key=lambda each: isinstance(each, RunPause)):
        raise failure
    return results


_GENERAL = """\
Answer the task above yourself, in its own language, in prose for the person who asked. Do only what is asked. If you do not \
know, say so. The other sections, if there are any, are material for it: the conversation before, what the person lets you \
remember, files, results of agents."""
