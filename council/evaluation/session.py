"""An evaluation that is open: its results on the disk, the council of its own home, the meter over all its calls.

Everything but the daemon that serves that home, which a door starts beside it.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from council import __version__
from council.agents.manifest import seeds_folder
from council.app import App, build_app
from council.app.home_store import open_store
from council.app.knowledge_tools import build_library, build_texts
from council.budgets.budget import Budget, BudgetLimits
from council.budgets.metering import Calibration
from council.budgets.spend import Spend
from council.errors import UsageError
from council.evaluation import results_folder
from council.evaluation.council_arm import Deliberations
from council.evaluation.evaluate import Evaluation, EvaluationEnd, in_order
from council.evaluation.grading import AnsweredQuestion, row_of
from council.evaluation.meter import Meter, MeteredModel
from council.evaluation.questions import Question, load_folder
from council.evaluation.recording import RecordingModel, cassette_of
from council.evaluation.statistics import figures, verdict
from council.evaluation.summary import Report
from council.ids import SystemClock
from council.keys.key_sources import share_keys
from council.llm.base import Model
from council.llm.retry import Retries, with_fallbacks
from council.settings import Home, ProviderKeys, Settings
from council.settings.table import ProtocolName
from council.storage.paths import ConfinedRoot
from council.storage.store import Store
from council.systems import System
from council.turns.model_building import model_price

_READ_FROM_FILES = ("scripted", "cassette")  # providers whose model is a file, relative to the home


@dataclass(frozen=True)
class EvaluationRequest:
    """An evaluation as it is asked for: its folder, and how far it goes."""

    folder: Path
    protocol: ProtocolName = "independent"
    max_rounds: int = 3
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    resamples: int = 2_000
    max_tokens: int | None = None
    max_usd: float | None = None
    resume: bool = False


@dataclass
class OpenEvaluation:
    """`questions` are those to answer, in order. `steward` is the store of the steward's home, whose day pays, too."""

    wanted: EvaluationRequest
    home: Home
    settings: Settings
    results: results_folder.Results
    questions: Sequence[Question]
    file_order: Mapping[str, int]
    app: App
    meter: Meter
    systems: Sequence[System]
    steward: Store
    model: Model
    deliberations: Deliberations
    answered: dict[str, AnsweredQuestion] = field(default_factory=dict)

    async def answer(self, told: Callable[[AnsweredQuestion], None]) -> EvaluationEnd:
        """All questions, while the home is served; how it ended. What is answered when it is cancelled is kept."""
        parallel, max_wait_s = self.settings.max_parallel_runs, self.settings.max_wait_s
        evaluation = Evaluation(self.results, self.deliberations, self.model, self.meter, parallel, max_wait_s, told)
        self.answered = evaluation.answered
        return await evaluation.answer(self.questions)

    def report(self, stopped: EvaluationEnd) -> Report:
        """The report on what is answered so far. Raises StorageFailed."""
        answered = sorted(self.answered.values(), key=lambda each: self.file_order[each.question.id])
        rows = [row_of(each) for each in answered]
        found = figures(rows, resamples=self.wanted.resamples, seed=self.wanted.seed)
        models = sorted(self.meter.models)
        named = [*models, self.settings.model]
        return Report(
            id=self.results.id,
            folder=self.wanted.folder.resolve().name,
            place=f"{results_folder.RESULTS}/{self.results.folder.name}",
            model=self.app.model.name,
            models=models,
            providers=sorted({name.partition(":")[0] for name in named}),
            protocol=self.wanted.protocol,
            max_rounds=self.wanted.max_rounds,
            split=self.wanted.split,
            asked=len(self.questions),
            answered=answered,
            rows=rows,
            figures=found,
            verdict=verdict(found),
            everything=self.meter.everything(),
            stopped=stopped,
            temperature=self.settings.temperature,
        )

    async def cassette(self, keys: ProviderKeys, environ: Mapping[str, str]) -> bytes:
        """All that was asked so far, to answer in the model's place; once the app is closed. Raises as `cassette_of`."""
        offline = _own_settings(self.home, self.settings).model_copy(update={"model": "offline"})
        app = build_app(self.results.home, offline, keys, systems=self.systems, environ=environ)
        try:
            return await cassette_of(self.results, app, self.questions, app.redactor)
        finally:
            await app.aclose()

    def close(self) -> None:
        """Closes after the app, which the daemon closes, and after the report."""
        self.results.store.close()
        self.steward.close()


def open_session(
    home: Home,
    settings: Settings,
    keys: ProviderKeys,
    systems: Sequence[System],
    environ: Mapping[str, str],
    wanted: EvaluationRequest,
) -> OpenEvaluation:
    """Checks everything before the first call. Raises QuestionsInvalid, UsageError, NotTheSame, ConfigError, and what
    opening a home may raise."""
    if settings.model == "offline":
        fix = "name a language model with --model"
        raise UsageError("the offline engine extracts passages and answers no question.", fix=fix)
    with ConfinedRoot(wanted.folder) if wanted.folder.is_dir() else ConfinedRoot(home.root) as root:
        loaded = load_folder(wanted.folder, build_library(build_texts(root, settings), settings))
        questions = in_order(loaded, split=wanted.split, limit=wanted.limit, seed=wanted.seed)
        if not questions:
            known = ", ".join(sorted({each.split for each in loaded}))
            raise UsageError(f"no question has the split {wanted.split!r}.", fix=f"the splits are: {known}")
        setup = {  # what all answers of one evaluation have in common
            "council": __version__,
            "model": settings.model,
            "fallback_models": list(settings.fallback_models),
            "agent_models": {role: list(chain) for role, chain in settings.agent_models.items()},
            "temperature": settings.temperature,
            "max_output_tokens": settings.max_output_tokens,
            "protocol": wanted.protocol,
            "max_rounds": wanted.max_rounds,
        }
        if wanted.resume:
            found = results_folder.resume(wanted.folder, setup)
            results_folder.require_same_questions(found, loaded)
        else:
            found = results_folder.begin(wanted.folder, setup, home.personas, SystemClock())
        try:
            most = max(settings.max_file_bytes, settings.max_document_bytes)
            results_folder.bring_documents(found, root, questions, max_bytes=most)
            order = {each.id: at for at, each in enumerate(loaded)}
            return metered_council(home, settings, keys, systems, environ, wanted, found, questions, order)
        except BaseException:
            found.store.close()
            if not wanted.resume:  # nothing was asked: nothing stays
                shutil.rmtree(found.folder)
            raise


def metered_council(
    home: Home,
    settings: Settings,
    keys: ProviderKeys,
    systems: Sequence[System],
    environ: Mapping[str, str],
    wanted: EvaluationRequest,
    found: results_folder.Results,
    questions: Sequence[Question],
    order: Mapping[str, int],
) -> OpenEvaluation:
    """The council of the evaluation's home, whose every call is metered and recorded, and paid from the steward's day. Raises
    ConfigError, StorageFailed."""
    clock, steward = SystemClock(), open_store(home, settings)
    meter = Meter(found.calls, {each.task: each.ref for each in questions})
    budget = Budget(
        command=BudgetLimits(None, wanted.max_tokens, wanted.max_usd),
        day=BudgetLimits(settings.day_max_calls, settings.day_max_tokens, settings.day_max_usd),
        spend=Spend(steward, found.id, 0, clock),
        price_of=functools.cache(functools.partial(model_price, settings)),
        chair="",
        clock=clock,
    )
    calibration = Calibration(found.store)

    def around(model: Model) -> Model:
        budget.require_price(model.name)
        return MeteredModel(model, budget, calibration, meter, max_output_tokens=settings.max_output_tokens)

    share_keys(home.root, found.home.root)
    own = _own_settings(home, settings)
    app = build_app(found.home, own, keys, systems=systems, environ=environ, around=around)
    attempts, max_wait_s = settings.model_attempts, settings.max_inline_wait_s
    chain = [app.models.pool.get(each) for each in app.models.chain("", (), None)]
    asked = with_fallbacks(chain, app.clock.monotonic_s, Retries(attempts=attempts, max_wait_s=max_wait_s))
    model = RecordingModel(asked, found.traffic, app.redactor)
    deliberations = Deliberations(app, wanted.protocol, wanted.max_rounds, model)
    return OpenEvaluation(
        wanted, home, settings, found, questions, order, app, meter, systems, steward, model, deliberations
    )


def _own_settings(home: Home, settings: Settings) -> Settings:
    """Those of the evaluation's home. Its days have no limit of their own: the steward's day is asked at each call. What may
    be read there are the questions' documents, of which the steward's rules were asked by their own paths."""
    seeds = seeds_folder(home, settings)
    return settings.model_copy(
        update={
            "model": _found_from(home, settings.model),
            "fallback_models": tuple(_found_from(home, each) for each in settings.fallback_models),
            "agent_models": {
                role: tuple(_found_from(home, each) for each in chain) for role, chain in settings.agent_models.items()
            },
            "guardrail_model": _found_from(home, settings.guardrail_model) if settings.guardrail_model else None,
            "read_roots": ("**",),
            "seeds_dir": str(seeds.resolve()) if seeds is not None else None,
            "database_url": None,
            "day_max_calls": None,
            "day_max_tokens": None,
            "day_max_usd": None,
            "keep_days": None,
            "keep_runs": 10_000_000,
            "keep_bytes": 2**50,
            "streaming": "off",
            "scan_interval_s": min(settings.scan_interval_s, 1.0),
        }
    )


def _found_from(home: Home, spelling: str) -> str:
    provider, _, path = spelling.partition(":")
    return f"{provider}:{(home.root / path).resolve()}" if provider in _READ_FROM_FILES else spelling
