"""The bench of one run: the means that it lends to agents which are chosen while it goes on. A directory of agents is
opened over it. Every call is a recorded step, is counted, and never costs the run its life."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec
import yaml
from pydantic import BaseModel

from council.agents.handoff import Handoff
from council.agents.manifest import AgentManifest
from council.artifacts.page import Page
from council.budgets.budget import BudgetSpent
from council.budgets.prices import Price
from council.engine.open_questions import ask_person
from council.engine.records import Part, RunHeader, RunStatus
from council.engine.runs import Finish, Outcome, Run
from council.ids import Principal, readable_json, sha256_hex
from council.llm.base import NOBODY, Message, TurnInfo
from council.llm.structured import Check, parse
from council.turns.account import Account
from council.turns.asker import Asker
from council.turns.closing_block import ClosingBlock, mend, read_block
from council.turns.costs import priced, sum_of, tokens_of, told_cost
from council.turns.equipment import Equipment, Speaker
from council.turns.evidence import Evidence
from council.turns.fencing import Fencer
from council.turns.metered_models import Models
from council.turns.requests import Requests
from council.turns.result import CallPurpose, ModelCall, TurnResult
from council.turns.run_guardrails import Guard, RunGuard

T = TypeVar("T", bound=BaseModel)


class BenchEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as the run keeps it, with the prices of the models that may speak for it."""

    speaker: Speaker
    prices: dict[str, Price | None] = {}


@dataclass
class Bench:
    """`principal` is whom the run works for, `project` the scope that they named. `tools` are those that agents may use
    here. `changed` is called whenever somebody was heard to say more. `language` is the tag of the request's, empty
    while unknown. `spares`: a fatal error of one agent's model is that agent's failure alone, for others may answer."""

    run: Run
    equipment: Equipment
    models: Models
    guard: Guard
    principal: Principal
    task: str
    tools: tuple[str, ...] = ()
    project: str = ""
    changed: Callable[[], None] = lambda: None
    language: str = ""
    spares: bool = False
    calls: list[ModelCall] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    prices: dict[str, Price | None] = field(default_factory=dict)
    roles: list[str] = field(default_factory=list)  # of the agents that spoke

    def __post_init__(self) -> None:
        self.fencer = Fencer(self.run.secret)
        self.asker = Asker(
            self.run, self.equipment, self.changed, lambda text: self.guard.check("decision", text).blocks
        )
        self.requests = Requests(
            self.run, self.equipment, self.guard, self.task, self.evidence.append, self.fencer.outside
        )
        self._fulfilling = asyncio.Lock()

    def say(self, english: str, **values: object) -> str:
        """Council's own words in the language of the request, with the values in place of `{name}`."""
        said = wording(self.language).get(english, english)
        return said.format(**values) if values else said

    def fenced(self, text: str, label: str) -> str:
        """Words of the person or of another agent, never an order. `label` is another one for each text of the run."""
        return self.fencer.words(text, label, int(sha256_hex(label)[:12], 16))

    def material(self, handoff: Handoff, *, but: Collection[str] = ()) -> str:
        """All that a handoff gives its agent, field by field, fenced; `but` for those fields."""
        parts = []
        for name, value in handoff.context.content.items():
            if name in but:
                continue
            text = value if isinstance(value, str) else readable_json(value)
            of_agent = " (another agent's output)" if name in handoff.shared else ""
            parts.append(f"# {name}{of_agent}\n\n{self.fenced(text, f'{handoff.id}.{name}')}")
        return "\n\n".join(parts)

    def provided(self, found: Sequence[Evidence]) -> str:
        return "\n\n".join(
            f"CONTEXT_PROVIDED: {self.fencer.evidence(item)}"
            if item.id
            else f"CONTEXT_ERROR: {self.fencer.line(item.error or f'{item.title} is above as {item.repeats}')}"
            for item in found
        )

    async def fulfil(self, step: str, speaker: Speaker, result: TurnResult, round: int = 1) -> list[Evidence]:
        async with self._fulfilling:
            known = len(self.evidence)
            await self.requests.fulfil(step, speaker, round, self.requests.of(result.text))
            return self.evidence[known:]

    async def enlist(self, step: str, manifest: AgentManifest, system: str, tools: tuple[str, ...] = ()) -> Speaker:
        """The agent with its system text and models, as the run keeps it from now on. Raises ConfigError."""

        def now() -> BenchEntry:
            chain = self.models.chain(manifest.role, manifest.model, None)
            names = self.models.names(chain)
            speaker = Speaker(manifest.role, system, "", tools, chain, names[0])
            return BenchEntry(speaker, {name: self.models.price(name) for name in names})

        entry = await self.run.look(step, now, type=BenchEntry, part=Part("agent", manifest.role))
        self.prices |= entry.prices
        self.fencer.outside.add(manifest.instructions)  # a persona is a file, too
        return entry.speaker

    async def ask(
        self,
        step: str,
        speaker: Speaker,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        heard: bool = False,
        purpose: CallPurpose = "turn",
        round: int = 1,
    ) -> TurnResult:
        """The recorded reply of `step`, else the speaker's reply now. Raises as `Asker.ask`, but a spent budget is a
        failure."""
        info = TurnInfo(speaker.role, "turn" if heard else "other", round, task=self.task)
        try:
            result = await self.asker.ask(step, speaker, tuple(messages), info, purpose, schema, self.spares)
        except BudgetSpent as spent:
            failed = TurnResult.failed(speaker.model, spent)
            result = await self.run.put(step, failed, type=TurnResult, part=Part(purpose, speaker.role, round))
        self.calls.append(ModelCall(step, speaker.role, round, result, purpose))
        return result

    async def ask_object(
        self, step: str, speaker: Speaker, messages: Sequence[Message], type: type[T], check: Check[T] | None = None
    ) -> tuple[T | None, str]:
        """One object of the type, mended with at most two more calls, or None and the reason."""
        schema = type.model_json_schema()
        reply = await self.ask(step, speaker, messages, schema=schema)
        if reply.failure is not None:
            return None, reply.failure.message

        async def again(number: int, request: tuple[Message, ...]) -> TurnResult:
            return await self.ask(f"{step}/repair/{number}", speaker, request, schema=schema, purpose="repair")

        def checked(value: T) -> Any:
            return check(value) if check is not None else ()

        first = parse(reply.text, type, complete=reply.finish == "stop", check=checked)
        settled, repairs = await mend(first, reply, messages, type, again, checked)
        failures = [one.failure.message for one in repairs if one.failure is not None]
        return settled.value, "; ".join([*(problem.told for problem in settled.problems), *failures])

    async def read_end(
        self,
        step: str,
        speaker: Speaker,
        result: TurnResult,
        type: type[T],
        instruction: Message,
        check: Check[T],
        round: int = 1,
    ) -> ClosingBlock[T]:
        async def again(number: int, request: tuple[Message, ...]) -> TurnResult:
            return await self.ask(f"{step}/repair/{number}", speaker, request, purpose="repair", round=round)

        return await read_block(result, type, instruction, again, check=check, required=True)


@lru_cache(maxsize=16)
def wording(language: str) -> Mapping[str, str]:
    """The words of a language by their English ones. `language` is a tag such as `de` or `pt-BR`."""
    tag = language.partition("-")[0].lower()
    if tag in ("", "en"):
        return {}
    table = yaml.safe_load(files("council").joinpath("resources/wording.yaml").read_text(encoding="utf-8"))
    return {english: words[tag] for english, words in table.items() if tag in words}


@dataclass
class BenchState:
    """`question` is open to the person. `prices` are those that the run began with."""

    header: RunHeader
    request: str
    model: str = ""
    prices: dict[str, Price | None] = field(default_factory=dict)
    guarding: RunGuard | None = None
    bench: Bench | None = None
    question: str = ""

    @property
    def calls(self) -> list[ModelCall]:
        """All calls that were made; a call that the budget refused was not."""
        own = [*self.bench.calls, *self.bench.asker.refused] if self.bench else []
        return [call for call in (*own, *(self.guarding.calls() if self.guarding else ())) if call.result.was_asked]

    @property
    def priced_calls(self) -> tuple[ModelCall, ...]:
        return priced(self.calls, self._prices)

    async def answered(self, run: Run, name: str, question: str, timeout_s: float) -> str:
        """The person's answer. Until there is one, the question stands on the page."""
        self.question = question
        answer = await ask_person(run, name, question, timeout_s)
        self.question = ""
        return answer

    def front_matter(self, status: RunStatus | None, finish: Finish | None, **own: Any) -> dict[str, Any]:
        return {
            "id": self.header.run_id,
            "title": self.header.title,
            "status": status or "in_progress",
            "created": self.header.created,
            "finished": finish.at if finish is not None else None,
            **own,
            "model": self.model or NOBODY,
            "cost": told_cost(self._cost),
        }

    def ending(self, status: RunStatus, page: str, **own: Any) -> Outcome:
        results = [call.result for call in self.calls]
        spent = tokens_of(results)
        return Outcome(
            status, page.encode(), model=self.model, calls=len(results), tokens=spent, cost_usd=self._cost, **own
        )

    def account(self, protocol: str, page: Page, **own: Any) -> Account:
        roles = tuple(dict.fromkeys(call.role for call in self.calls if call.role))
        return Account(protocol=protocol, roles=roles, model=self.model, calls=self.priced_calls, page=page, **own)

    @property
    def _cost(self) -> float | None:
        return sum_of([call.result for call in self.calls], self._prices)

    @property
    def _prices(self) -> Mapping[str, Price | None]:
        return self.prices | (self.bench.prices if self.bench else {})
