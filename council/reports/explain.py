"""`council explain`: one value that says how a run came about, from its journal, its spend logs and its receipt.

The work is read again as for a replay (no model, no tool), so what is said here is what the page was made of. A run that
goes on or failed is explained as far as it was recorded, and `missing` says what is not.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import msgspec

from council.artifacts.page import Page
from council.budgets.spend import spent_by
from council.engine.ledger import Ledger
from council.engine.receipts import Receipt
from council.engine.records import WAITS, RunHeader, RunStatus
from council.engine.run_records import FINISH, RunRecords
from council.engine.runs import Finish, Handler, Runs, UnknownType
from council.errors import CouncilError, JournalDamaged
from council.ids import timestamp_of
from council.llm.base import Source
from council.reports.past_run import PastRun, work_again
from council.reports.time_scale import joined
from council.reports.timeline import AttemptEntry, Chronicle, RetryEntry, StepEntry, WaitEntry, chronicle_of
from council.storage.reader import Looking
from council.turns.account import Account, Mending, MindChange, RequestEntry, StanceEntry
from council.turns.result import ModelCall

FORMAT = 1  # raised when a key of the JSON changes its meaning or goes


@runtime_checkable
class Accountable(Protocol):
    """An Execution that can say how its work came about."""

    def account(self, finish: Finish | None) -> Account: ...


class Tokens(msgspec.Struct, frozen=True):
    """Sums. `cached` is part of `input`, `thought` of `output`; `unknown_calls` are those that nobody counted."""

    input: int = 0
    output: int = 0
    cached: int = 0
    thought: int = 0
    unknown_calls: int = 0


class AgentShare(msgspec.Struct, frozen=True):
    """An agent's part. `cost_usd` None: a price or a count is unknown. `retries`: all, also before a wait of the run.
    `seconds` is the time of its calls, waits between tries included; `retries_s` those waits alone. `latencies_s`: of each call
    that has times, in order."""

    role: str
    letter: str
    calls: int
    failed: int
    retries: int
    tokens: Tokens
    cost_usd: float | None
    seconds: float
    retries_s: float
    latencies_s: tuple[float, ...]


class CallEntry(msgspec.Struct, frozen=True):
    """A call that the receipt counts. `usage` null: not counted. Times null: the journal does not say."""

    step: str
    role: str
    purpose: str
    round: int
    model: str
    finish: str
    failure: str
    message: str
    tokens: Tokens | None
    cost_usd: float | None
    began: str | None
    began_ms: int | None
    seconds: float | None
    retries: int
    retries_s: float


class Charge(msgspec.Struct, frozen=True):
    """The sums of the spend logs. They hold tries that failed, calls that a kill cut off (at their worst case) and
    those of earlier retries. So they may be more than the calls that count. `cost_usd` None: unknown."""

    calls: int
    tokens: int
    cost_usd: float | None


class Times(msgspec.Struct, frozen=True):
    """`queued_s`: from admission to the first step; `working_s`: some step was under way; `retries_s`: of it, some call waited
    between two tries; `waiting_s`: the run had given up its slot; `stopped_s`: it had ended, or no process worked on it, until an
    attempt began. A run that has not ended is told up to now. None where the journal does not say. `admitted_ms` is `created`,
    more exactly where that is known."""

    created: str
    finished: str
    total_s: float | None
    queued_s: float | None
    working_s: float | None
    retries_s: float
    waiting_s: float
    stopped_s: float
    admitted_ms: int


class Why(msgspec.Struct, frozen=True):
    """The reason why it stopped, or where it stands. `code` is a word of `docs/explain.md`, `sentence` for a person, `fix` what
    there is to do."""

    code: str
    sentence: str
    fix: str = ""
    calls_saved: int = 0


class DecisionEntry(msgspec.Struct, frozen=True):
    """`written_by` is empty where no closing call succeeded; `instead_of`: those whose closing calls failed."""

    heading: str
    written_by: str
    instead_of: tuple[str, ...]
    byline: str


class Explanation(msgspec.Struct, frozen=True):
    """The JSON of `council explain --json`, key by key as `docs/explain.md` has it."""

    format: int
    run_id: str
    title: str
    type: str
    lane: str
    command_file: str
    artifact: str
    status: RunStatus
    live: bool
    why: Why
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    protocol: str
    max_rounds: int
    rounds: int
    model: str
    times: Times
    tokens: Tokens
    calls_counted: int
    cost_usd: float | None
    charged: Charge
    agents: tuple[AgentShare, ...]
    decision: DecisionEntry | None
    calls: tuple[CallEntry, ...]
    reads: tuple[RequestEntry, ...]
    stances: tuple[StanceEntry, ...]
    changes: tuple[MindChange, ...]
    mended: tuple[Mending, ...]
    attempts: tuple[AttemptEntry, ...]
    steps: tuple[StepEntry, ...]
    retries: tuple[RetryEntry, ...]
    waits: tuple[WaitEntry, ...]


class ExplainedRun(msgspec.Struct, frozen=True):
    """The explanation, the page that the same work makes (None for a command without one), and the texts that were read."""

    explanation: Explanation
    page: Page | None = None
    sources: tuple[Source, ...] = ()


async def explain(
    store: Looking,
    run_id: str,
    receipt: Receipt | None,
    live: RunStatus | None,
    handlers: Mapping[str, Handler],
    now_ms: int,
) -> ExplainedRun:
    """Explains the run. `receipt` None: it has not ended, and `live` is its status by the daemon that has it, None when none
    has. Raises RunNotFound, JournalDamaged, StorageFailed."""
    header, *records = Ledger(store).records(run_id)
    assert isinstance(header, RunHeader)
    journal = RunRecords(header, records)
    chronicle = chronicle_of(records, "not recorded" if receipt else "under way" if live else "cut off")
    finish = journal.result(FINISH, Finish) if journal.recorded(FINISH) else None
    if finish is None and receipt is not None:
        finish = Finish(receipt.finished, receipt.error, receipt.status == "cancelled")
    account, missing = None, []
    try:
        execution = Runs(handlers).begin(PastRun(journal))
    except UnknownType:
        unknown = f"No system of this council knows runs of type `{header.type}`"
        missing.append(f"{unknown}, so it cannot say what its agents did.")
    except JournalDamaged as error:
        missing.append(f"What its agents did cannot be told: {error.message}")
    else:
        if isinstance(execution, Accountable):
            with contextlib.suppress(CouncilError):  # as the run itself ended: its error is in `finish`
                await work_again(execution, None)
            account = execution.account(finish)
    if any(step.ended_ms is None and step.outcome == "done" for step in chronicle.steps):
        missing.append("Steps that an older version recorded have no times.")
    if receipt is not None and account is not None and (calls := len(account.calls)) != receipt.calls:
        counted = f"The receipt counts {receipt.calls} calls, {calls} of them can be explained"
        missing.append(f"{counted}: journal and receipt differ.")
    totals = spent_by(store, run_id)
    charged = Charge(totals.calls, totals.tokens, totals.usd)
    every = tuple(_call(call, chronicle) for call in account.calls) if account else ()
    teller = _Teller(journal, chronicle, account, every, receipt, finish, live, now_ms)
    told = teller.explanation(tuple(missing), charged)
    return ExplainedRun(told) if account is None else ExplainedRun(told, account.page, account.sources)


@dataclass(frozen=True)
class _Teller:
    journal: RunRecords
    chronicle: Chronicle
    account: Account | None
    calls: tuple[CallEntry, ...]
    receipt: Receipt | None
    finish: Finish | None
    live: RunStatus | None
    now_ms: int

    def explanation(self, missing: tuple[str, ...], charged: Charge) -> Explanation:
        header, account, receipt, chronicle = self.journal.header, self.account, self.receipt, self.chronicle
        decision = None
        if account is not None and account.written_by:
            page = account.page
            decision = DecisionEntry(page.heading, account.written_by, account.instead_of, page.byline)
        why, notes = self.why(), receipt.notes if receipt else account.page.notes if account else ()
        said = why.sentence.removeprefix("It failed: ")  # given once
        if why.code == "cancelled":  # a page opens its first note with the word
            by = said.removeprefix("It was cancelled").rstrip(".")
            opening = f"**Cancelled**{by}." if by else "**Cancelled.**"
            notes = tuple(note.removeprefix(opening).strip() for note in notes)
        return Explanation(
            format=FORMAT,
            run_id=header.run_id,
            title=header.title,
            type=header.type,
            lane=header.lane,
            command_file=header.file.name,
            artifact=receipt.artifact.path if receipt and receipt.artifact else header.output_path,
            status=self.status,
            live=receipt is None,
            why=why,
            notes=tuple(note for note in notes if note and said not in note),
            missing=missing,
            protocol=account.protocol if account else "",
            max_rounds=account.max_rounds if account else 0,
            rounds=receipt.rounds if receipt else self.rounds,
            model=account.model if account else "",
            times=self.times(),
            tokens=_tokens(self.calls),
            calls_counted=len(self.calls),
            cost_usd=_cost(self.calls),
            charged=charged,
            agents=tuple(_agents(account, self.calls, chronicle)) if account else (),
            decision=decision,
            calls=self.calls,
            reads=account.reads if account else (),
            stances=account.stances if account else (),
            changes=account.changes if account else (),
            mended=account.mended if account else (),
            attempts=tuple(chronicle.attempts),
            steps=tuple(chronicle.steps),
            retries=tuple(chronicle.retries),
            waits=tuple(chronicle.waits),
        )

    def times(self) -> Times:
        header, receipt, chronicle = self.journal.header, self.receipt, self.chronicle
        began = next((attempt.began_ms for attempt in chronicle.attempts if attempt.began_ms), None)
        last = max((step.ended_ms for step in chronicle.steps if step.ended_ms), default=None)
        last = last if receipt else self.now_ms
        ends = [(step, self.now_ms if step.outcome == "under way" else step.ended_ms) for step in chronicle.steps]
        spans = [(step.began_ms, ended_ms) for step, ended_ms in ends if step.began_ms and ended_ms]
        pauses = [(retry.at_ms, retry.at_ms + int(retry.wait_s * 1000)) for retry in chronicle.retries]
        working_ms = _length(spans)
        waiting_s = sum(wait.seconds or 0.0 for wait in chronicle.waits)
        if receipt is None and (wait := self.open_wait):
            waiting_s += max(0, self.now_ms - wait.since_ms) / 1000
        return Times(
            created=header.created,
            finished=receipt.finished if receipt else "",
            total_s=max(0, last - header.admitted_ms) / 1000 if last else None,
            queued_s=max(0, began - header.admitted_ms) / 1000 if began else None,
            working_s=working_ms / 1000 if spans else None,
            retries_s=(_length(pauses) + working_ms - _length([*pauses, *spans])) / 1000,  # what both cover
            waiting_s=round(waiting_s, 3),
            stopped_s=chronicle.stopped_ms / 1000,
            admitted_ms=header.admitted_ms,
        )

    @property
    def rounds(self) -> int:
        return len({call.round for call in self.calls if call.purpose == "turn"})

    @property
    def open_wait(self) -> WaitEntry | None:
        waits = self.chronicle.waits
        return waits[-1] if waits and waits[-1].until_ms is None else None

    @property
    def status(self) -> RunStatus:
        if self.receipt is not None:
            return self.receipt.status
        return self.live or ("waiting" if self.open_wait is not None else "queued")

    def why(self) -> Why:
        error = self.finish.error if self.finish else None
        if self.finish is not None and self.finish.cancelled:
            by = f" ({self.finish.cancelled_by})" if self.finish.cancelled_by else ""
            return Why("cancelled", f"It was cancelled{by}.")
        if error is not None:
            return Why(error.code, f"It failed: {error.message}", error.fix)
        if self.receipt is None:
            wait, status = self.open_wait, self.status
            fix = "" if self.live else "no daemon runs: `council run` continues it"
            if status == "waiting" and wait is not None:
                until = timestamp_of(wait.since_ms + int(wait.asked_s * 1000))
                return Why(status, f"It {WAITS.get(wait.reason, WAITS[''])} until {until}: {wait.error}", fix)
            words = {"running": "It is being worked on.", "queued": "It is queued and continues when its turn comes."}
            return Why(status, words.get(status, f"It is {status}."), fix)
        account = self.account
        if account is None:
            return Why("done", "Its work was done.")
        if account.stopped:
            sentence = account.stopped_because[:1].upper() + account.stopped_because[1:]
            return Why(account.stopped, f"{sentence.rstrip('.')}.", calls_saved=account.calls_saved)
        if not self.journal.recorded(FINISH):
            return Why("unknown", "The journal no longer says why; the receipt names no error.")
        planned = {1: "The planned round", 2: "Both planned rounds"}.get(
            self.rounds, f"All {self.rounds} planned rounds"
        )
        return Why("cap", f"{planned} took place.")


def _length(spans: Iterable[tuple[int, int]]) -> int:
    """The time that the spans cover; they may overlap."""
    return sum(ended - began for began, ended in joined(spans, 0))


def _call(call: ModelCall, chronicle: Chronicle) -> CallEntry:
    step = chronicle.step(call.step)
    pauses_s: list[float] = []
    if step is not None and step.began_ms is not None and step.ended_ms is not None:
        made = [retry for retry in chronicle.retries if retry.step == step.name]
        retries = [retry for retry in made if step.began_ms <= retry.at_ms <= step.ended_ms]
        pauses_s = [min(retry.wait_s, (step.ended_ms - retry.at_ms) / 1000) for retry in retries]
    result, failure, usage = call.result, call.result.failure, call.result.usage
    return CallEntry(
        step=call.step,
        role=call.role,
        purpose=call.purpose,
        round=call.round,
        model=result.model,
        finish="" if failure else result.finish,
        failure=failure.kind if failure else "",
        message=failure.message if failure else "",
        tokens=None
        if usage is None
        else Tokens(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.thought_tokens),
        cost_usd=call.usd,
        began=timestamp_of(step.began_ms) if step and step.began_ms else None,
        began_ms=step.began_ms if step else None,
        seconds=step.seconds if step else None,
        retries=len(pauses_s),
        retries_s=round(sum(pauses_s), 3),
    )


def _agents(account: Account, every: Sequence[CallEntry], chronicle: Chronicle) -> Iterable[AgentShare]:
    roles = {step.name: step.role for step in chronicle.steps}
    retries = Counter(roles.get(retry.step, "") for retry in chronicle.retries)
    for role in dict.fromkeys((*account.roles, *(call.role for call in every))):
        calls = [call for call in every if call.role == role]
        latencies = tuple(call.seconds for call in calls if call.seconds is not None)
        yield AgentShare(
            role=role,
            letter=account.letters.get(role, ""),
            calls=len(calls),
            failed=sum(bool(call.failure) for call in calls),
            retries=retries[role],
            tokens=_tokens(calls),
            cost_usd=_cost(calls),
            seconds=round(sum(latencies), 3),
            retries_s=round(sum(call.retries_s for call in calls), 3),
            latencies_s=latencies,
        )


def _tokens(calls: Sequence[CallEntry]) -> Tokens:
    known = [call.tokens for call in calls if call.tokens is not None]
    sums = {name: sum(getattr(one, name) for one in known) for name in ("input", "output", "cached", "thought")}
    return Tokens(**sums, unknown_calls=len(calls) - len(known))


def _cost(calls: Sequence[CallEntry]) -> float | None:
    known = [call.cost_usd for call in calls if call.cost_usd is not None]
    return round(sum(known), 9) if len(known) == len(calls) else None
