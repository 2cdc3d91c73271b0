"""The workspace's agents at work without a daemon: a furnished workspace, one run for each request, and a model that answers
from the prompt it got. `Prompt` is how such a model reads: what did not reach it cannot be in its answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from council.agents.handoff import Handoff, Return, prepare
from council.engine.journal import admit, load_journal
from council.engine.outputs import PlacedOutput
from council.engine.records import EPOCH, FileIdentity, RunHeader
from council.engine.runs import ActiveRun
from council.events import Events
from council.ids import STEWARD
from council.llm.base import Message, Reply
from council.plans.plan import Plan
from council.plans.register import plans_starting_with
from council.settings import Home, builtin_personas_dir, init_home
from council.storage.store import Store
from council.turns.bench import Bench
from council.turns.run_guardrails import Guard
from council.workspace.workspace_directory import WorkspaceDirectory
from tests.rehearsal import equipment
from tests.space import Space


@dataclass(frozen=True)
class Prompt:
    """A request as the model got it: the system text, and all messages as one."""

    system: str
    text: str

    def rows(self, tool: str) -> list[dict[str, Any]]:
        """The rows that stand in the fence of one tool."""
        found, inside = [], False
        for line in self.text.splitlines():
            if line.startswith("<<DATA "):
                inside = line.split()[1].endswith(f".{tool}")
            elif line.startswith("<<END "):
                inside = False
            elif inside and line.startswith("{"):
                found.append(json.loads(line))
        return found

    def row(self, tool: str, **wanted: Any) -> dict[str, Any]:
        """The one row that fits. A prompt without it fails the test."""
        found = [row for row in self.rows(tool) if wanted.items() <= row.items()]
        assert len(found) == 1, f"{tool} {wanted} is {len(found)} times in:\n{self.text}"
        return found[0]

    def section(self, title: str) -> str:
        """The words of one section, without its fence."""
        part = self.text.partition(f"# {title}\n\n")[2].split("\n\n# ")[0]
        return "\n".join(line for line in part.splitlines() if not line.startswith(("<<DATA", "<<END")))

    @property
    def request(self) -> str:
        return self.section("The request")

    @property
    def is_repair(self) -> bool:
        return "Your last reply cannot be used" in self.text


Answer = Callable[[Prompt], Any]  # an object, which is sent as JSON, or a text


class PromptedModel:
    """Answers by a function of the prompt; remembers all prompts."""

    name = "gemini:fake"
    context_tokens = 1_000_000

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.prompts: list[Prompt] = []

    async def generate(self, messages: Sequence[Message], **asked: Any) -> Reply:
        prompt = Prompt(asked["system"], "\n\n".join(message.text for message in messages))
        self.prompts.append(prompt)
        said = self.answer(prompt)
        return Reply(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), "stop", self.name)

    async def aclose(self) -> None: ...


class OneModel:
    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        return ("gemini:fake",)

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        return chain

    def price(self, name: str) -> None:
        return None


@dataclass
class Staffroom:
    """`ask` hands one request to one agent, in a run and a lane of its own unless it is told."""

    folder: Path
    store: Store = field(default_factory=Store.memory)
    count: int = 0
    language: str = ""

    def __post_init__(self) -> None:
        self.space = Space(self.store, self.folder).furnish()
        init_home(self.folder / "home", personas_from=builtin_personas_dir())
        self.model = PromptedModel(lambda prompt: {})
        self.run: ActiveRun | None = None

    def begin(self, user: str, request: str, lane: str) -> ActiveRun:
        """A run that works for `user`."""
        self.count += 1
        run_id = f"20261122-120000-run{self.count:05}"
        command = {"request": request, "user": None if user == STEWARD.id else user, "project": None}
        header = RunHeader(
            run_id, EPOCH, "2026-11-22T12:00:00Z", lane, "ask", command, "h", FileIdentity(f"{run_id}.json", 1, 1, "ab" * 32),
            "07" * 32, "artifacts/asks/out.md", request[:40], self.count, 0, "2026-11-22",
        )  # fmt: skip
        self.store.write_now(lambda tx: admit(tx, header))
        journal = self.store.read(lambda tx: load_journal(tx, run_id, self.store))
        return ActiveRun(journal, Events(), PlacedOutput(header, None))

    async def ask(
        self,
        user: str,
        agent: str,
        request: str,
        answer: Answer,
        *,
        lane: str = "",
        project: str = "",
        said: str = "",
        **fields: Any,
    ) -> Return:
        """The Return of one handoff. `said` are the person's own words, where they are not those of the part."""
        self.model = PromptedModel(answer)
        self.run = run = self.begin(user, request, lane or f"ask-{self.count + 1}")
        plans = self.space.planning.plans
        core: Any = SimpleNamespace(home=Home(self.folder / "home"), tools=plans.tools, plans=plans, store=self.store)
        means = equipment(self.model, tools=plans.tools)  # type: ignore[arg-type]
        models: Any = OneModel()
        principal = self.space.principal(user)
        read_tools = tuple(tool.name for tool in plans.tools if tool.effect == "read")
        bench = Bench(run, means, models, Guard(), principal, said or request, read_tools, project)
        bench.language = self.language
        directory = WorkspaceDirectory(core, bench)
        manifest = directory.get(agent)
        assert manifest is not None
        offered = {"task": request, "project": project, **fields}
        given = {name: value for name, value in offered.items() if value}
        handoff: Handoff = prepare("handoff-1", manifest, given, tools=read_tools)
        return await directory.run(handoff)

    def plan(self, returned: Return) -> Plan:
        [plan] = plans_starting_with(self.store, returned.plan, 1)
        assert returned.plan
        return plan

    def decide(self, plan: Plan, user: str) -> Plan:
        """The plan, confirmed and applied by its person."""
        planning, by = self.space.planning, self.space.principal(user)
        planning.confirm(plan, by=by)
        ending = planning.apply(plan, by=by)
        assert ending.error is None
        return ending.plan

    @property
    def journal(self) -> str:
        """All that the last run recorded."""
        assert self.run is not None
        return "\n".join(f"{step.name} {step.answer.decode()}" for step in self.run.journal.steps())
