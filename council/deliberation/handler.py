"""The handler of `deliberate` commands: each becomes a run (an engine Handler)."""

from __future__ import annotations

from dataclasses import replace

from council.commands.models import BudgetConfig, DeliberateCommand, RunCommand
from council.deliberation.admission import admit_deliberation
from council.deliberation.setup import CouncilSetup
from council.deliberation.task import Task
from council.engine.runs import Admission, Run
from council.llm.base import Model
from council.turns.equipment import Models, RunModels


class _OneModel:
    """As `Models`, but all calls go to one model."""

    def __init__(self, known: Models, model: Model) -> None:
        self._known = known
        self.embedding, self.meanings = known.embedding, known.meanings
        self.chain, self.names = known.chain, known.names
        self.price, self.window_chars = known.price, known.window_chars
        self.second_opinion, self.opinion_name = known.second_opinion, known.opinion_name
        self._model = model

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        return RunModels(lambda chain: self._model, self._known.models_for(run, config, chair).embedder)


class DeliberateHandler:
    """Protocol 95's task: deliberate and leave a decision."""

    def __init__(self, setup: CouncilSetup) -> None:
        self._setup = setup

    def admit(self, command: RunCommand) -> Admission:
        assert isinstance(command, DeliberateCommand)
        setup = self._setup
        return admit_deliberation(command, setup.root, setup.output_rules, setup.personas, setup.seeds)

    def begin(self, run: Run) -> Task:
        return Task(run, self._setup)

    def asking(self, model: Model) -> DeliberateHandler:
        """As this one, with `model` in the place of each run's own."""
        return DeliberateHandler(replace(self._setup, models=_OneModel(self._setup.models, model)))
