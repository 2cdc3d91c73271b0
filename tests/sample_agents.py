"""A system that offers agents: a reader, and two who propose changes. `python -m tests.sample_agents` is a council with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from council.agents.directory import AgentListing
from council.agents.handoff import Forward, ForwardKind, Handoff, Return, answer_to
from council.agents.manifest import AgentManifest, ContextNeeds
from council.cli.main import main
from council.desk.all_systems import house
from council.systems import System
from council.turns.bench import Bench


def agent(id: str, purpose: str) -> AgentManifest:
    return AgentManifest(
        id=id,
        role=id.upper(),
        purpose=purpose,
        scope="task",
        context=ContextNeeds(required=("task",), optional=("project",)),
        instructions=purpose,
    )


READER = agent("garden_reader", "Answers questions about the beds of the garden.")
PLANTER = agent("garden_planter", "Plans what is planted in the garden.")
NOTER = agent("garden_noter", "Keeps notes about the garden.")


@dataclass
class Garden(AgentListing):
    """The reader finds that a question wants two changes of one domain and one of another, which fails."""

    bench: Bench
    forwards: Mapping[ForwardKind, str] = field(
        default_factory=lambda: {"modify_tasks": PLANTER.id, "notes_ops": NOTER.id}
    )
    reader: str = READER.id

    def __post_init__(self) -> None:
        super().__init__([READER, PLANTER, NOTER])

    async def run(self, handoff: Handoff) -> Return:
        async def act() -> str:
            return f"{handoff.to} did “{handoff.task}” in {handoff.context.content.get('project', 'no bed')}."

        said = await self.bench.run.step(handoff.id, act, type=str)
        if handoff.to == NOTER.id:
            return answer_to(handoff, status="failed", error="the notes are locked.")
        wants: tuple[Forward, ...] = ()
        if handoff.to == READER.id and "plant" in handoff.task:
            plants = (Forward("modify_tasks", "plant leeks", "bed 7"), Forward("modify_tasks", "plant figs"))
            wants = (*plants, Forward("notes_ops", "note it"))
        plan = "20260101-000000-garden00" if handoff.to == PLANTER.id else ""
        return answer_to(handoff, output={"answer": said}, handoff=wants, plan=plan)


GARDEN = System("garden", directory=lambda core, bench: Garden(bench))

if __name__ == "__main__":
    main(systems=lambda: (*house(), GARDEN))
