"""One run while the process lives: its state, and what a handler may do with it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, TypeVar, Unpack

import msgspec
from pydantic import ValidationError

from council.engine.commit import Output, StoreEntry
from council.engine.journal import Journal
from council.engine.outputs import OutputFile
from council.engine.receipts import ErrorRef, TokenCount
from council.engine.records import OWN, FileIdentity, Part, RunHeader, RunStatus
from council.engine.run_records import JournalEnd, RecordedStep, RunRecords
from council.errors import CouncilError, JournalDamaged, ModelErrorKind
from council.events import Event, Events, ModelRetry
from council.ids import STEWARD, Principal
from council.redaction import Redactor
from council.settings import Home, Settings
from council.storage.paths import ConfinedRoot
from council.storage.reader import Looking
from council.storage.store import Tx

if TYPE_CHECKING:
    from council.audit.log import Transaction

T = TypeVar("T")


_MOST_ENDINGS = 64  # at once: more than there are slots
# What a run waits for whose provider asked for a pause, or cannot be reached.
PROVIDER, NETWORK = "provider", "network"
ANSWER = "answer"  # a person's

BEGUN_ENDING = "/begun"
MAX_EPHEMERAL_BYTES = 1 << 10  # an outcome, not a text


class RunPause(CouncilError):
    """The run cannot go on now but can later: it waits, keeps its lane's turn, and frees its slot."""

    code = "waiting"

    def __init__(self, reason: str, seconds: float, error: CouncilError) -> None:
        """The run asks again after `seconds`. For an `ANSWER` they are all the time that a person has, from the first time
        on that the run asks for it."""
        super().__init__(error.message, fix=error.fix)
        self.reason = reason
        self.seconds = seconds


class Finish(msgspec.Struct, frozen=True):
    """The end of the work, recorded as the step `finish`. `error` is None when the work came to its end."""

    at: str
    error: ErrorRef | None = None
    cancelled: bool = False
    cancelled_by: str = ""

    @property
    def actor(self) -> str:
        """The principal who cancelled the run, as `cancelled_by` names them; else Council itself, which ended it."""
        if not self.cancelled_by.startswith("by "):
            return "council"
        return STEWARD.id if self.cancelled_by == "by the steward" else self.cancelled_by.removeprefix("by ")


@dataclass(frozen=True)
class Premises:
    """The state of a home by which a command is admitted, with no model and no key. `drop` is that of its file: by it one that
    was obeyed before is known. It is empty for who only asks. `model` is the name of the home's model, where it is known.
    No name holds a secret of `redactor`. Who foresees may ask two things more. `ask_house` asks the built council, with the
    offline model. `require_model` builds a model by its spelling, with the keys of this moment; it raises ConfigError."""

    home: Home
    settings: Settings
    store: Looking
    root: ConfinedRoot
    drop: str = ""
    model: str = ""
    redactor: Redactor = field(default_factory=Redactor)
    ask_house: Callable[[Callable[[Any], Awaitable[None]]], None] = lambda ask: None
    require_model: Callable[[str], object] = lambda spelling: None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. `artifact` (None: a receipt alone), further `outputs` and what is `kept` in the store are
    committed with `status`, and `closing` makes its change in the same transaction. `details`: what the receipt says beside
    that, of this type of command alone."""

    status: RunStatus
    artifact: bytes | None
    outputs: tuple[Output, ...] = ()
    kept: tuple[StoreEntry, ...] = ()
    closing: Callable[[Transaction], None] = lambda done: None
    error: ErrorRef | None = None
    notes: tuple[str, ...] = ()
    rounds: int = 0
    model: str = ""
    calls: int = 0
    tokens: TokenCount = field(default_factory=TokenCount)
    cost_usd: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class StepOptions(TypedDict, total=False):
    """The options of `Run.step`, see `Journal.step`."""

    request: str
    durable: bool
    part: Part


class Run:
    """The face of a run that a handler sees. Here each answer is a recorded step; an `ActiveRun` also does the work. `state`
    is the Protocol 95 word, `status` the ledger's. `named_model` is the model that was named when it was told to go on,
    empty: it keeps `model`."""

    def __init__(
        self, records: RunRecords, events: Events, output: OutputFile | None, runs: Runs | None = None
    ) -> None:
        """`runs`: the others of its process; None for one that is only read."""
        self.runs = runs or Runs({})
        self.header: RunHeader = records.header
        self.id = records.header.run_id
        self.secret = bytes.fromhex(records.header.secret)
        self.model, self.named_model = records.model, records.named_model
        self.accepts_drift, self.retries = records.accepts_drift, records.retries
        self.is_reopened = records.reopened_by is not None  # it had ended before, and was told to go on
        self.status: RunStatus = "queued"
        self.state = "EXECUTING_TASK"
        self.cancel_reason = ""
        self.refusals: tuple[Mapping[str, str], ...] = ()  # what agents asked for and did not get, for the audit
        self._records = records
        self._events = events
        self._output = output

    @property
    def output(self) -> OutputFile:
        """The artifact's file; a handler that admitted its command without an `output_path` has none."""
        assert self._output is not None
        return self._output

    @property
    def output_path(self) -> str:
        """The place of the artifact, as far as is known now; empty when the run leaves none."""
        return self._output.path if self._output is not None else ""

    @property
    def is_closed(self) -> bool:
        """True when its end is recorded: nobody is asked any more. So it is for a run that is only read."""
        return True

    @property
    def is_committed(self) -> bool:
        """True past its point of no return."""
        return self._records.committed is not None

    @property
    def is_waiting(self) -> bool:
        """True also where an earlier process noted the wait, and this one has not asked again yet."""
        return self.status == "waiting" or (self.status == "queued" and bool(self._records.waits))

    def waits_for(self, reason: str) -> int:
        """The number of its waits for this since its last step."""
        return sum(wait.reason == reason for wait in self._records.waits)

    def publish(self, event: Event) -> None:
        """Tells of something in this run."""
        self._events.publish(msgspec.structs.replace(event, run_id=self.id))

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], **how: Unpack[StepOptions]) -> T:
        """See `Journal.step`: a recorded step is never run again. Raises JournalEnd for one that is not to be run any more."""
        return self._recalled(name, type)

    async def effect(self, name: str, fn: Callable[[Tx], T], *, type: type[T]) -> T:
        """See `Journal.effect`: a change and its record are one transaction. Raises as `step`."""
        return self._recalled(name, type)

    async def put(self, name: str, value: T, *, type: type[T], part: Part = OWN) -> T:
        """See `Journal.put`: a step whose work is done already. Raises JournalEnd where nothing is recorded any more."""
        return self._recalled(name, type)

    def _recalled(self, name: str, type: type[T]) -> T:
        if not self.recorded(name):
            raise JournalEnd(name)
        return self._records.result(name, type)

    async def look(self, name: str, fn: Callable[[], T], *, type: type[T], part: Part = OWN) -> T:
        """A step that only looks something up: it can be found out again, so a power cut may take its record."""

        async def found() -> T:
            return fn()

        return await self.step(name, found, type=type, durable=False, part=part)

    async def once(self, name: str, fn: Callable[[], Awaitable[T]], *, lost: T, type: type[T]) -> T:
        """A step that is never begun twice: that it begins is on the disk before it does. `lost` is its result where a process
        began it and recorded no end, so that nobody knows how far it came."""
        begun = f"{name}{BEGUN_ENDING}"

        async def work() -> T:
            if self.recorded(begun):
                return lost
            await self.put(begun, True, type=bool)
            return await fn()

        return await self.step(name, work, type=type)

    async def ephemeral(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], part: Part = OWN) -> T:
        """A step of which only its outcome is kept: `fn` returns a small typed value without prompt text, and that is
        what replay returns. Raises ValueError for an outcome beyond MAX_EPHEMERAL_BYTES."""

        async def small() -> T:
            outcome = await fn()
            if len(msgspec.json.encode(outcome)) > MAX_EPHEMERAL_BYTES:
                raise ValueError(f"the outcome of the ephemeral step {name} is larger than {MAX_EPHEMERAL_BYTES} bytes")
            return outcome

        return await self.step(name, small, type=type, part=part)

    def recorded(self, name: str) -> bool:
        return self._records.recorded(name)

    def value(self, name: str, type: type[T]) -> T | None:
        """The recorded result of a step, None when there is none."""
        return self._records.value(name, type)

    def steps(self) -> list[RecordedStep]:
        return self._records.steps()

    def note_retry(self, kind: ModelErrorKind, error: str, attempt: int, wait_s: float) -> None:
        """Tells of a try of the present step's call that failed, and comes again after `wait_s`."""
        self.publish(ModelRetry(error=error, error_kind=kind, attempt=attempt, wait_s=wait_s))

    def choice(self, purpose: str) -> random.Random:
        """A generator for one purpose, seeded by the run's secret: the same after every restart."""
        return random.Random(self.secret + purpose.encode())  # noqa: S311  shuffling, not cryptography


class ActiveRun(Run):
    """A run that goes on: what its handler asks for is done, and recorded in `journal`, which only the engine uses."""

    def __init__(self, journal: Journal, events: Events, output: OutputFile | None, runs: Runs | None = None) -> None:
        super().__init__(journal, events, output, runs)
        self.journal = journal
        self.number = journal.run  # in the store
        self.task: asyncio.Task[None] | None = None
        self.waiting_for = ""
        self.is_woken = False  # somebody woke it while it ran
        self.offline_since_s: float | None = None  # by the monotonic clock: it waits for the network in this process

    @property
    def is_closed(self) -> bool:
        return self.journal.closed

    @property
    def has_ended(self) -> bool:
        """True when its receipt is there: only its command file may not be taken yet."""
        return self.journal.ended

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], **how: Unpack[StepOptions]) -> T:
        return await self.journal.step(name, fn, type=type, **how)

    async def effect(self, name: str, fn: Callable[[Tx], T], *, type: type[T]) -> T:
        return await self.journal.effect(name, fn, type=type)

    async def put(self, name: str, value: T, *, type: type[T], part: Part = OWN) -> T:
        return await self.journal.put(name, value, type=type, part=part)

    def note_retry(self, kind: ModelErrorKind, error: str, attempt: int, wait_s: float) -> None:
        super().note_retry(kind, error, attempt, wait_s)
        self.journal.retried(kind, error, attempt, wait_s)


class UnknownType(CouncilError):
    """A run of a type that no system of this council brings."""

    code = "unknown_type"
    http_status = 409


class Runs:
    """The runs of one process. A run sees the others through it."""

    def __init__(self, handlers: Mapping[str, Handler], waking: Callable[[ActiveRun], None] = lambda run: None) -> None:
        """`waking` lets a run that waits go on."""
        self.handlers = handlers
        self.active: dict[str, ActiveRun] = {}
        self.endings = asyncio.Semaphore(_MOST_ENDINGS)
        self._stillness = asyncio.Lock()
        self._waking = waking

    def wake(self, run_id: str) -> None:
        """Lets a run that waits look again now; one that is not active looks when it begins."""
        run = self.active.get(run_id)
        if run is not None:
            self._waking(run)

    def begin(self, run: Run) -> Execution:
        """The work of a run, by who does its type here. Raises UnknownType, JournalDamaged."""
        handler = self.handlers.get(run.header.type)
        if handler is None:
            raise UnknownType(
                f"run {run.id} is of type {run.header.type!r}, which no system of this council knows.",
                fix="use the council that made it, with all its systems",
            )
        try:
            return handler(run)
        except ValidationError as error:
            faults = "1 fault" if error.error_count() == 1 else f"{error.error_count()} faults"
            told = f"the command of run {run.id} does not hold what it should ({faults})."
            raise JournalDamaged(told, fix="drop the command again") from error

    @contextlib.asynccontextmanager
    async def stillness(self) -> AsyncIterator[None]:
        """Holds all runs back from putting files into their places: what a run is about to write was made before."""
        async with self._stillness, contextlib.AsyncExitStack() as all_of_them:
            for _ in range(_MOST_ENDINGS):
                await all_of_them.enter_async_context(self.endings)
            yield


class Execution(Protocol):
    """One command being worked on."""

    async def work(self) -> None:
        """Does the work through `run.step`. Raises CouncilError when it cannot go on, RunPause when it can later."""

    def conclude(self, finish: Finish) -> Outcome:
        """The outcome of what was done so far: a pure function of the journal."""


Handler = Callable[[Run], Execution]  # of a type of command that becomes a run


class ControlAnswer(NamedTuple):
    """The part of a control command's receipt that its handler gives. `details` are those of this type of command alone."""

    notes: Sequence[str] = ()
    details: Mapping[str, Any] = {}


# Of a type of control command: does at once what was asked, outside the order of lanes. A command that comes again with the
# same `file.drop` was obeyed before a crash. Raises CommandInvalid when it cannot be.
ControlHandler = Callable[[Any, Principal, FileIdentity], Awaitable[ControlAnswer]]
