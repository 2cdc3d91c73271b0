"""A run that speaks from a bench, as far as it has come: what every page, account and receipt of such a run tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from council.artifacts.account import Call
from council.budgets.prices import Price
from council.engine.open_questions import ask_person
from council.engine.records import RunHeader, RunStatus
from council.engine.runs import Finish, Outcome, Run
from council.llm.base import NOBODY
from council.turns.bench import Bench
from council.turns.costs import sum_of, tokens_of, told_calls
from council.turns.result import ModelCall
from council.turns.run_guardrails import RunGuard


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
    def told_calls(self) -> tuple[Call, ...]:
        return told_calls(self.calls, self._prices)

    async def answered(self, run: Run, name: str, question: str, timeout_s: float) -> str:
        """The person's answer. Until there is one, the question stands on the page."""
        self.question = question
        answer = await ask_person(run, name, question, timeout_s)
        self.question = ""
        return answer

    def front_matter(self, status: RunStatus | None, finish: Finish | None, **own: Any) -> dict[str, Any]:
        """The front matter of its page, with the keys of its `own` type."""
        cost = self._cost
        return {
            "id": self.header.run_id,
            "title": self.header.title,
            "status": status or "in_progress",
            "created": self.header.created,
            "finished": finish.at if finish is not None else None,
            **own,
            "model": self.model or NOBODY,
            "cost": "unknown" if cost is None else f"{cost:.6f} USD" if cost else "none",
        }

    def ending(self, status: RunStatus, page: str, **own: Any) -> Outcome:
        """The outcome, with what its calls cost."""
        results = [call.result for call in self.calls]
        spent = tokens_of(results)
        return Outcome(
            status, page.encode(), model=self.model, calls=len(results), tokens=spent, cost_usd=self._cost, **own
        )

    @property
    def _cost(self) -> float | None:
        return sum_of([call.result for call in self.calls], self._prices)

    @property
    def _prices(self) -> Mapping[str, Price | None]:
        return self.prices | (self.bench.prices if self.bench else {})
