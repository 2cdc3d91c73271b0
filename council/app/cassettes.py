"""The one place where a cassette stands in for the models of the council: it repeats what was said and found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from council.app.metered_models import Spending
from council.budgets.budget import Budget
from council.llm.embeddings import Recall, RecordedSearch
from council.llm.replay import ReplayModel
from council.turns.equipment import Models


@dataclass(eq=False)
class CassetteSpending(Spending):
    """A cassette speaks for all: who starts a daemon with one wants no other model asked. Runs are told by their secrets."""

    cassette: ReplayModel

    def of_council(self, model: str) -> Models:
        return self

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        return (self.settings.model,)

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        return self.cassette.run_of(run_secret).window_chars

    def second_opinion(self, run_secret: str) -> str:
        return self.settings.model if self.cassette.opinions_of(run_secret) else ""

    def opinion_name(self, spelling: str, run_secret: str) -> str:
        return self.cassette.opinions_of(run_secret) or self.names((spelling,))[0]

    @property
    def embedding(self) -> str:
        return ""

    @property
    def meanings(self) -> str:
        recorded = self.cassette.header.meanings
        return super().meanings if recorded is None else recorded

    def run_secret(self, task: str) -> bytes | None:
        """The calls of a cassette were asked in the words of the run that it was recorded from."""
        return self.cassette.run_secret_for(task) if task else None

    def day(self, run_secret: str) -> str | None:
        return self.cassette.run_of(run_secret).day

    def _recall(self, budget: Budget) -> Recall:
        async def recall(role: str, round_no: int, scope: str, question: str) -> RecordedSearch | None:
            found = self.cassette.recall(role, round_no, scope, question)
            for call in found.calls if found is not None else ():
                await budget.charge(call.model, call.usage)  # what the search took counts as it did
            return found

        return recall
