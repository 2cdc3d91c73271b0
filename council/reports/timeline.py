"""The times of a journal: when each step began and ended, what was tried again, what was waited for, when the process
died.

Reads the records alone, also of a journal that is damaged or still grows. Pure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Literal, TypeVar

import msgspec

from council.engine.queue import MAX_WAIT
from council.engine.records import Commit, Continuation, Record, Retry, StepResult, StepStart, Waiting
from council.engine.run_records import ATTEMPT, FINISH, HANDBACK
from council.engine.runs import Finish
from council.turns.result import ModelCall
from council.typed_json import decode_json

Outcome = Literal["done", "parked", "refused", "cut off", "under way", "not recorded"]
Value = TypeVar("Value")


class StepEntry(msgspec.Struct, frozen=True):
    """`began_ms`, `ended_ms`: since the epoch, None where the journal does not say. `outcome` is `done`, `under way`,
    or `parked`: the run waits, and the step is taken again. `refused`: its failure ended the run. `cut off`: the process died or
    was stopped. `not recorded`: the run ended without it. `again`: a retry took it anew later, so it no longer
    counts. `kind`, `role` and `round` as in `Part`."""

    name: str
    began_ms: int | None
    ended_ms: int | None
    outcome: Outcome
    attempt: int
    again: bool = False
    kind: str = ""
    role: str = ""
    round: int = 0

    @property
    def counts(self) -> bool:
        return self.outcome == "done" and not self.again

    @property
    def seconds(self) -> float | None:
        if self.began_ms is None or self.ended_ms is None:
            return None
        return max(0, self.ended_ms - self.began_ms) / 1000


class RetryEntry(msgspec.Struct, frozen=True):
    """Try number `attempt` of the call in `step` failed at `at_ms`; the next one followed after `wait_s`."""

    step: str
    at_ms: int
    attempt: int
    wait_s: float
    kind: str
    error: str


class WaitEntry(msgspec.Struct, frozen=True):
    """The run waited `asked_s` at most, out of its slot. `until_ms` None: it still does, or the journal does not say."""

    reason: str
    since_ms: int
    until_ms: int | None
    asked_s: float
    error: str

    @property
    def seconds(self) -> float | None:
        return None if self.until_ms is None else max(0, self.until_ms - self.since_ms) / 1000


class AttemptEntry(msgspec.Struct, frozen=True):
    """One execution. `ended`: `finished`, `waiting`, `handed back` (the process was asked to stop), `cut off` (it died, or
    the disk or the database failed), `under way`. `because` says what let it begin: `start`, `restart`, `wait over`, `wait
    given up` (it would be too long), `resume`, `retry` (from the step `retry_from`)."""

    number: int
    began_ms: int | None
    because: str
    ended: str
    retry_from: str = ""


@dataclass
class Chronicle:
    steps: list[StepEntry] = field(default_factory=list)
    retries: list[RetryEntry] = field(default_factory=list)
    waits: list[WaitEntry] = field(default_factory=list)
    attempts: list[AttemptEntry] = field(default_factory=list)

    @property
    def stopped_ms(self) -> int:
        """The sum of the times between the last that is known of an attempt and the beginning of the next one, without
        waits."""
        stopped_ms = 0
        waited = [wait.until_ms for wait in self.waits]
        for before, attempt in pairwise(self.attempts):
            steps = [step.ended_ms or step.began_ms for step in self.steps if step.attempt == before.number]
            known = [at for at in (before.began_ms, *steps, *waited) if at and at <= (attempt.began_ms or 0)]
            stopped_ms += (attempt.began_ms or 0) - max(known) if known else 0
        return stopped_ms

    def step(self, name: str) -> StepEntry | None:
        """The one that counts: the last that was recorded, else the last that ended the run."""
        named = [step for step in reversed(self.steps) if step.name == name]
        refused = (step for step in named if step.outcome == "refused")
        return next((step for step in named if step.counts), None) or next(refused, None)


def chronicle_of(records: Sequence[Record], unfinished: Outcome) -> Chronicle:
    """`unfinished`: what became of the steps that were begun last and have no record."""
    writer = _Writer()
    for record in records:
        writer.read(record)
    writer.close(unfinished)
    return writer.chronicle


def value_in(recorded: bytes | msgspec.Raw, type: type[Value]) -> Value | None:
    """A recorded value of this type, None for one of another: rows tell their kind by what they hold."""
    with contextlib.suppress(msgspec.ValidationError):
        return decode_json(recorded, type)
    return None


def milliseconds(timestamp: str) -> int:
    """Milliseconds of an RFC 3339 timestamp, since the epoch."""
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000)


class _Writer:
    def __init__(self) -> None:
        self.chronicle = Chronicle()
        self._begun: dict[str, StepStart] = {}
        self._because = "start"
        self._retry_from = ""
        self._attempt_open = False

    def read(self, record: Record) -> None:
        if isinstance(record, StepStart):
            if record.name == HANDBACK:
                self._leave("cut off", record.at)
                self._end_attempt("handed back")
                self._because = "restart"
            elif record.name == ATTEMPT:
                if self._attempt_open:
                    self._leave("cut off", None)
                    self._end_attempt("cut off")
                    self._because = "restart"
                waits = self.chronicle.waits
                if waits and waits[-1].until_ms is None and record.at:
                    waits[-1] = msgspec.structs.replace(waits[-1], until_ms=record.at)
                number = len(self.chronicle.attempts) + 1
                made = AttemptEntry(number, record.at or None, self._because, "under way", self._retry_from)
                self.chronicle.attempts.append(made)
                self._attempt_open, self._retry_from = True, ""
            else:
                self._begun[record.name] = record
        elif isinstance(record, StepResult) and (refused := value_in(record.out, ModelCall)) is not None:
            self._step(self._begun.pop(refused.step, StepStart(refused.step)), record.at, "refused")
        elif isinstance(record, StepResult):
            self._step(self._begun.pop(record.name, StepStart(record.name, record.at)), record.at, "done")
            if record.name == FINISH:
                finish = value_in(record.out, Finish)
                if finish is not None and finish.error is not None and finish.error.code == MAX_WAIT:
                    self._leave("parked", record.at)
                    self._end_attempt("waiting")
                    self._because = "wait given up"
                else:
                    self._end_attempt("finished")
                    self._because = "restart"
        elif isinstance(record, Retry):
            retry = RetryEntry(record.step, record.at, record.attempt, record.wait_s, record.kind, record.error)
            self.chronicle.retries.append(retry)
        elif isinstance(record, Waiting):
            begun = (step.at for step in self._begun.values())
            ended = (step.ended_ms or 0 for step in self.chronicle.steps)
            since = max([milliseconds(record.since), *begun, *ended])  # `since` is cut to the second
            self._leave("parked", since)
            self._end_attempt("waiting")
            self._because = "wait over"
            self.chronicle.waits.append(WaitEntry(record.reason, since, None, record.seconds, record.error))
        elif isinstance(record, Commit) and self._attempt_open:
            self._end_attempt("finished")
        elif isinstance(record, Continuation):
            self._leave("not recorded", None)
            self._because, self._retry_from = ("retry", record.retry_from) if record.retry_from else ("resume", "")
            self._attempt_open = False
            counting = [step.name for step in self.chronicle.steps if step.counts]
            dropped = {FINISH}
            if record.retry_from in counting:
                dropped |= set(counting[counting.index(record.retry_from) :])
            self.chronicle.steps = [
                msgspec.structs.replace(step, again=step.again or (step.counts and step.name in dropped))
                for step in self.chronicle.steps
            ]

    def close(self, outcome: Outcome) -> None:
        self._leave(outcome, None)
        if self._attempt_open:
            self._end_attempt("under way" if outcome == "under way" else "cut off")

    def _end_attempt(self, how: str) -> None:
        if self.chronicle.attempts:
            self.chronicle.attempts[-1] = msgspec.structs.replace(self.chronicle.attempts[-1], ended=how)
        self._attempt_open = False

    def _leave(self, outcome: Outcome, at: int | None) -> None:
        for begun in self._begun.values():
            self._step(begun, at, outcome)
        self._begun.clear()

    def _step(self, begun: StepStart, ended: int | None, outcome: Outcome) -> None:
        part, attempt = begun.part, len(self.chronicle.attempts)
        times = (begun.at or None, ended or None)
        self.chronicle.steps.append(
            StepEntry(begun.name, *times, outcome, attempt, kind=part.kind, role=part.role, round=part.round)
        )
