"""The models of runs that a cassette answers: what a recorded run knew, its repetition knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from council.llm.replay import ReplayModel
from council.turns.metered_models import Models


@dataclass(eq=False)
class RecordedModels(Models):
    """The `cassette` answers in place of every model, and knows a run by its secret."""

    cassette: ReplayModel = field(kw_only=True)

    def __post_init__(self) -> None:
        # A recorded failure came after all attempts.
        self.settings = self.settings.model_copy(update={"model_attempts": 1})
        super().__post_init__()

    def of_council(self, model: str) -> Models:
        return self

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        return self.cassette.run_of(run_secret).window_chars

    def second_opinion(self, run_secret: str) -> str:
        return self.settings.model if self.cassette.opinions_of(run_secret) else ""

    def opinion_name(self, spelling: str, run_secret: str) -> str:
        return self.cassette.opinions_of(run_secret) or super().opinion_name(spelling, run_secret)

    @property
    def embedding(self) -> str:
        return ""

    @property
    def meanings(self) -> str:
        return self.cassette.header.meanings

    def run_secret(self, task: str) -> bytes | None:
        """The secret of the recorded run of this task: with another one a run asks in words that the cassette does not know."""
        return self.cassette.run_secret_for(task) if task else None

    def day(self, run_secret: str) -> str | None:
        return self.cassette.run_of(run_secret).day
