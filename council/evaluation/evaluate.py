"""An evaluation: each question before the council, then as many ballots as its tokens pay for.

Each answer is a step of the evaluation's own journal, so that nothing answered is asked again after a kill. That are
ballots one by one, and the council's answer when its run (with a journal of its own) has ended. Knows no file format
and no report.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec

from council.budgets.budget import BudgetSpent
from council.errors import CouncilError, ModelError
from council.evaluation.council_arm import CouncilAnswer, Deliberations
from council.evaluation.grading import AnsweredQuestion
from council.evaluation.meter import Meter
from council.evaluation.questions import Question
from council.evaluation.results_folder import Results
from council.evaluation.self_consistency import SYSTEM, Ballot, cast, more_ballots
from council.llm.base import Model, request_hash

T = TypeVar("T")
_RAISE = "continue with --resume and a higher limit"
_DEFAULT_WAIT_S = 60.0  # a rate limit without Retry-After: providers count by the minute

Why = Literal["", "budget", "interrupted", "failed"]


class EvaluationEnd(msgspec.Struct, frozen=True):
    """The reason why an evaluation ended before its last question; `why` is empty when it did not."""

    why: Why = ""
    message: str = ""
    fix: str = ""


@dataclass(eq=False)
class Evaluation:
    """The questions of one evaluation being answered. `told` is called with each question that is answered by all arms.
    `parallel` questions are under way at once; a provider that asks for patience gets up to `max_wait_s` of it for each call."""

    _results: Results
    _deliberations: Deliberations
    _model: Model
    _meter: Meter
    parallel: int
    max_wait_s: float
    told: Callable[[AnsweredQuestion], None]

    def __post_init__(self) -> None:
        self._out_of_budget: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.answered: dict[str, AnsweredQuestion] = {}

        def stop(why: str) -> None:
            if not self._out_of_budget.done():
                self._out_of_budget.set_result(why)

        self._deliberations.out_of_budget = stop

    async def answer(self, questions: Sequence[Question]) -> EvaluationEnd:
        """All questions, in this order; how it ended. Cancelled, it leaves what is answered in `answered`."""
        waiting = iter(questions)

        async def work() -> None:
            for question in waiting:
                answered = await self._answer_one(question)
                self.answered[question.id] = answered
                self.told(answered)

        workers = [asyncio.ensure_future(work()) for _ in range(min(self.parallel, len(questions)))]
        try:
            pending: set[asyncio.Future[None]] = set(workers)
            while pending and not self._out_of_budget.done():
                both: set[asyncio.Future[Any]] = {*pending, self._out_of_budget}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for worker in pending:
                    if worker.done() and (failure := worker.exception()) is not None:
                        if isinstance(failure, BudgetSpent):
                            return EvaluationEnd("budget", failure.message, failure.fix)
                        if isinstance(failure, CouncilError):
                            return EvaluationEnd("failed", failure.message, failure.fix)
                        raise failure
                pending = {worker for worker in pending if not worker.done()}
            return EvaluationEnd("budget", self._out_of_budget.result(), _RAISE) if pending else EvaluationEnd()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _answer_one(self, question: Question) -> AnsweredQuestion:
        decided = await self._results.journal.step(
            f"{question.id}/council",
            lambda: self._patiently(lambda: self._deliberations.decide(question)),
            type=CouncilAnswer,
            request=question.asked,
        )
        material = await self._deliberations.material(decided)
        spent = self._meter.council(question.ref)

        async def ballot(number: int) -> Ballot:
            return await self._results.journal.step(
                f"{question.id}/ballot/{number}",
                lambda: self._patiently(lambda: cast(self._model, question, material, number)),
                type=Ballot,
                request=request_hash(self._model.name, SYSTEM, (material,)),
            )

        ballots: list[Ballot] = []
        while more := more_ballots(spent.tokens, self._meter.ballots(question.ref, len(ballots)), len(ballots)):
            numbers = range(len(ballots) + 1, len(ballots) + more + 1)
            tasks = [asyncio.ensure_future(ballot(number)) for number in numbers]
            try:  # the first failure ends the others
                ballots += await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        single = self._meter.ballot(question.ref, 1)
        vote = self._meter.ballots(question.ref, len(ballots))
        return AnsweredQuestion(question, decided, tuple(ballots), single, vote, spent)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Waits where a provider asks for it, as a run does that is parked."""
        waited_s = 0.0
        while True:
            try:
                return await call()
            except ModelError as error:
                wait_s = error.retry_after_s or _DEFAULT_WAIT_S
                if error.kind not in ("rate", "overload", "unreachable") or waited_s + wait_s > self.max_wait_s:
                    raise
                await asyncio.sleep(wait_s)
                waited_s += wait_s


def in_order(questions: Sequence[Question], *, split: str | None, limit: int | None, seed: int) -> list[Question]:
    """Those of the split in an order by lot, at most `limit`: whatever ends an evaluation early, it ends at random."""
    chosen = sorted((each for each in questions if split in (None, each.split)), key=lambda each: each.id)
    random.Random(f"order/{seed}").shuffle(chosen)  # noqa: S311  an order, not cryptography
    return chosen[:limit]
