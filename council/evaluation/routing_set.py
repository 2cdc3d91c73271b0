"""Golden requests for routing: what is right, wrong, asked back or admitted, and the thresholds that a model would need.

A set is YAML: `agents` (`id`, `purpose`, none for those of the home) and `requests` (`ask`, `agent`, `none` for those without
a right agent). Understanding, matching and the bands are the conductor's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

import msgspec
import yaml
from pydantic import BaseModel, Field, ValidationError

from council.agents.directory import AgentListing, Directories, Directory
from council.agents.manifest import AgentManifest, parse_manifest
from council.app import App
from council.budgets.budget import Budget, BudgetLimits
from council.budgets.metering import BudgetedEmbedder, BudgetedModel, Calibration
from council.budgets.spend import Spend
from council.commands.file_formats import PlainYaml, Problem, yaml_fault
from council.commands.parsing import fault_in_words
from council.conductor.matching import Candidate, by_meaning, by_words
from council.conductor.own_agents import agent_system
from council.conductor.routing import NONE, AgentPicks, Route, by_name, route_parts
from council.conductor.understanding import Understanding, checked, question
from council.errors import UsageError
from council.ids import STEWARD, new_run_id
from council.llm.base import Message, Model, TurnInfo
from council.llm.embeddings import Embedder, EmbedderAround
from council.llm.retry import FallbackModel, Retries, RetryingModel
from council.llm.structured import ask_structured
from council.settings import Settings, builtin_personas_dir
from council.storage.store import Store
from council.turns.fencing import Fencer

Mark = Literal["right", "wrong", "asked", "admitted", "unread"]
_ENOUGH = 20  # labelled requests with an embedding, below which no threshold is proposed


class GoldenRequest(BaseModel):
    """A request and the agents that are right for it, in the order of its parts; `none` for no agent."""

    ask: Annotated[str, Field(min_length=3)]
    agent: str | list[str]
    also: list[str] = []

    @property
    def wanted(self) -> list[str]:
        return [self.agent] if isinstance(self.agent, str) else self.agent


class RoutingSet(BaseModel):
    """Requests, and the agents beside the home's own that they are routed among."""

    agents: dict[str, str] = {}
    requests: Annotated[list[GoldenRequest], Field(min_length=1)]


class RoutedRequest(msgspec.Struct, frozen=True):
    """One request as it was routed. `scores` are the embeddings' of the right agent and of the best wrong one."""

    ask: str
    wanted: tuple[str, ...]
    found: tuple[str, ...]
    mark: Mark
    scores: tuple[float | None, float | None] = (None, None)


class RoutingReport(msgspec.Struct, frozen=True):
    """The counts by mark, the requests behind them, and a proposed `verified_match`, None where nothing supports one."""

    model: str
    embedding: str
    agents: int
    counts: dict[str, int]
    rows: tuple[RoutedRequest, ...]
    verified_match: float | None = None


def read_set(path: Path, agents: Sequence[AgentManifest]) -> tuple[RoutingSet, tuple[AgentManifest, ...]]:
    """The set, and all agents to route among. Raises UsageError for a file that is none."""
    fix = "see docs/conductor.md for its keys"
    try:
        found = RoutingSet.model_validate(yaml.load(path.read_text(encoding="utf-8"), PlainYaml))  # noqa: S506
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = yaml_fault(error) if isinstance(error, yaml.YAMLError) else getattr(error, "strerror", "it is not UTF-8")
        raise UsageError(f"{path.name} is no set of requests: {why}.", fix=fix) from error
    except ValidationError as error:
        detail = error.errors()[0]
        fault = Problem(fault_in_words(detail)[0], fix, ".".join(map(str, detail["loc"])))
        raise UsageError(f"{path.name} is no set of requests: {fault.sentence}.", fix=fix) from error
    own = {agent.id for agent in agents}
    added = tuple(
        AgentManifest(id=id, role=id.upper().replace("-", "_"), purpose=purpose, scope="task", instructions=purpose)
        for id, purpose in found.agents.items()
        if id not in own
    )
    return found, (*agents, *added)


@dataclass(frozen=True)
class RoutingTrial:
    """The means of a trial. `embedder` None: agents are matched by words."""

    model: Model
    store: Store
    embedder: Embedder | None
    agents: tuple[AgentManifest, ...]
    settings: Settings
    instructions: AgentManifest

    async def route_all(
        self, requests: Sequence[GoldenRequest], told: Callable[[RoutedRequest], None]
    ) -> RoutingReport:
        """Routes every request. Raises ModelError."""
        rows = []
        for request in requests:
            rows.append(await self.route(request))
            told(rows[-1])
        counts = {mark: sum(row.mark == mark for row in rows) for mark in get_args(Mark)}
        name = self.embedder.name if self.embedder else ""
        return RoutingReport(self.model.name, name, len(self.agents), counts, tuple(rows), threshold_of(rows))

    async def route(self, request: GoldenRequest) -> RoutedRequest:
        system, info = agent_system(self.instructions, ""), TurnInfo("CONDUCTOR", "other", task=request.ask)
        fenced = Fencer(b"routing").words(request.ask, "request", 0)  # as in a run's prompt, the same in every trial
        understood = await ask_structured(
            self.model, question(fenced, "", "", ""), Understanding, check=checked, system=system, info=info
        )
        wanted = tuple(request.wanted)
        if understood.value is None:
            return RoutedRequest(request.ask, wanted, (), "unread")
        if understood.value.missing.strip():
            return RoutedRequest(request.ask, wanted, ("?",), "asked")
        listing = cast(Directory, AgentListing(self.agents))  # no agent is asked: only their names count
        named = by_name(request.ask, Directories([listing]), STEWARD.id).routes
        if named:
            return _marked(request, named, ())
        parts = understood.value.parts
        texts = [part.wanted for part in parts]
        if self.embedder is None:
            matches = by_words(self.agents, texts)
        else:
            matches = await by_meaning(self.store, self.embedder, self.agents, texts)

        async def choose(instruction: str) -> AgentPicks | None:
            messages = (Message("user", instruction),)
            return (await ask_structured(self.model, messages, AgentPicks, system=system, info=info)).value

        routes = await route_parts(parts, matches.parts, self.settings, choose)
        return _marked(request, routes, matches.parts) if routes else RoutedRequest(request.ask, wanted, (), "unread")


def _marked(
    request: GoldenRequest, routes: Sequence[Route], candidates: Sequence[Sequence[Candidate]]
) -> RoutedRequest:
    found = tuple(route.agent if route.intent.startswith("specialist:") else NONE.lower() for route in routes)
    wanted, right = tuple(request.wanted), {*request.wanted, *request.also}
    mark: Mark = "wrong"
    if set(found) <= right and set(wanted) & {*found, *request.also}:
        mark = "right"
    elif all(name == NONE.lower() for name in found):
        mark = "admitted"
    elif any(route.asks_first for route in routes):
        mark = "asked"
    scores = [(one.agent in right, one.score) for near in candidates for one in near if one.score is not None]
    good = max((score for is_right, score in scores if is_right), default=None)
    bad = max((score for is_right, score in scores if not is_right), default=None)
    return RoutedRequest(request.ask, wanted, found, mark, (good, bad))


def threshold_of(rows: Sequence[RoutedRequest]) -> float | None:
    """The lowest similarity above which no wrong agent lies in this set; None with too few requests, or if it would route
    nothing. It belongs to one embedding model and one set of agents."""
    known = [row.scores for row in rows if row.scores != (None, None)]
    if len(known) < _ENOUGH:
        return None
    least = max((bad for _, bad in known if bad is not None), default=0.0)
    return round(least, 4) if any(good is not None and good > least for good, _ in known) else None


def open_trial(app: App, agents: tuple[AgentManifest, ...], limits: BudgetLimits) -> RoutingTrial:
    """A trial with the home's model and embedding model. Its calls are paid from the home's day. Raises ConfigError."""
    settings, clock = app.settings, app.clock
    spend = Spend(app.store, f"routing-{new_run_id(clock.now())}", 0, clock)
    day = BudgetLimits(settings.day_max_calls, settings.day_max_tokens, settings.day_max_usd)
    price_of, calibration = app.models.price, Calibration(app.store)
    budget = Budget(command=limits, day=day, spend=spend, price_of=price_of, chair="", clock=clock)

    def asking(model: Model) -> Model:
        budget.require_price(model.name)
        return BudgetedModel(model, budget, calibration, max_output_tokens=settings.max_output_tokens)

    chain = [app.models.pool.get(each, asking) for each in app.models.chain("CONDUCTOR", (), None)]
    retries = Retries(attempts=settings.model_attempts, max_wait_s=settings.max_inline_wait_s)
    embedder: Embedder | None = None
    if app.models.embedding:
        budget.require_price(app.models.embedding)
        own = app.models.pool.embedder(
            settings.embedding_model or "", lambda inner: BudgetedEmbedder(inner, budget, calibration)
        )
        embedder = EmbedderAround(own, retries)
    persona = parse_manifest("conductor.md", (builtin_personas_dir() / "conductor.md").read_text(encoding="utf-8"))
    model = RetryingModel(FallbackModel(chain, app.clock.monotonic_s), retries)
    return RoutingTrial(model, app.store, embedder, agents, settings, persona)
