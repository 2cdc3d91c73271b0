"""Events in the process, a type for each: what the terminal, the state file and live pages show. Droppable; the journal is the
truth. No event holds prompt text or a secret.

`AnyEvent` is their union, told apart by `kind`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from council.ids import readable_json

log = logging.getLogger(__name__)


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Something happened. `run_id` is empty where no run is meant; `Run.publish` fills in its own."""

    run_id: str = ""

    @property
    def kind(self) -> str:
        """The stable word of the type."""
        return str(self.__struct_config__.tag)

    def values(self) -> dict[str, Any]:
        """The event's own fields as plain JSON values, in their order."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in told.items() if name not in ("kind", "run_id")}


# ── the daemon ───────────────────────────────────────────────────────────────────────────────────────────────────────


class DaemonStart(Event, tag="daemon_started", frozen=True, kw_only=True):
    """A daemon begins, of this version of Council, with this model of the council."""

    version: str
    model: str
    pid: int


class IdleInbox(Event, tag="idle", frozen=True, kw_only=True):
    """Nothing is left to do. `folder` is where commands are waited for, with a slash at its end."""

    folder: str


class DaemonStop(Event, tag="stopping", frozen=True, kw_only=True):
    """The daemon was told to stop: the turns in flight end first."""


class HomeImport(Event, tag="home_brought_over", frozen=True, kw_only=True):
    """The files of an older version's home are in the database now, by their numbers. `unread` names what could not be."""

    runs: int
    unfinished: int
    receipts: int = 0
    calls: int = 0
    unread: tuple[str, ...] = ()


class CompanionFailure(Event, tag="companion_failed", frozen=True, kw_only=True):
    """Something that runs beside the inbox ended too early: it is started again after `again_s` seconds."""

    name: str
    reason: str
    again_s: float


class CompanionRecovery(Event, tag="companion_recovered", frozen=True, kw_only=True):
    """A companion that had ended too early runs again."""

    name: str


class ConductorStart(Event, tag="conductor_started", frozen=True, kw_only=True):
    """The conductor is there, with so many agents to offer. `note` says so in words."""

    agents: int
    note: str


class WorldChange(Event, tag="world_changed", frozen=True, kw_only=True):
    """The steward made, paused, resumed or set back the world."""

    note: str


class WorldRound(Event, tag="world_round_settled", frozen=True, kw_only=True):
    """A round of the world is settled: what was asked in it, and how many live."""

    round: int
    actions: int
    population: int


class Pruning(Event, tag="runs_pruned", frozen=True, kw_only=True):
    """Retention let go of the journals of these runs. `bytes` is what they held, `settings` is what asked for it."""

    runs: tuple[str, ...]
    bytes: int
    settings: tuple[str, ...]


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class CommandRefusal(Event, tag="command_refused", frozen=True, kw_only=True):
    """A file could not become a run. `code` is a machine word; `moved_to` is relative to the home."""

    file: str
    code: str = ""
    error: str
    fix: str
    moved_to: str


class CommandAnswer(Event, tag="command_answered", frozen=True, kw_only=True):
    """A file has the id of the run `run_id`, whose receipt already answers it."""

    file: str
    id: str | None = None


class CommandWait(Event, tag="command_waits_for_id", frozen=True, kw_only=True):
    """A file has the id of the run `run_id`, which goes on."""

    file: str
    id: str | None = None


class CommandChange(Event, tag="command_changed", frozen=True, kw_only=True):
    """A file was changed while its run went on: it is a new command."""

    file: str


class ControlAct(Event, tag="control", frozen=True, kw_only=True):
    """A control command of this type acted, on the run `run_id` where it acts on one."""

    file: str
    type: str
    title: str


class CommandDelay(Event, tag="command_waiting", frozen=True, kw_only=True):
    """A file cannot become a run now for `reason`, a machine word: it is tried again. `error` says why."""

    file: str
    reason: str
    error: str


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────────────


class ScheduleSighting(Event, tag="schedule_seen", frozen=True, kw_only=True):
    """A file in `recurring/` has a schedule, as a person wrote it."""

    file: str
    schedule: str


class ScheduleDrop(Event, tag="schedule_due", frozen=True, kw_only=True):
    """An occurrence is due and was dropped. `id` is the occurrence's, `dropped` relative to the home."""

    file: str
    id: str
    dropped: str


class ScheduleMiss(Event, tag="schedule_missed", frozen=True, kw_only=True):
    """`count` occurrences passed while nobody looked, `capped`: or more. `first` and `latest` are times as RFC 3339."""

    file: str
    count: int
    first: str
    capped: bool
    latest: str


class ScheduleSkip(Event, tag="schedule_skipped", frozen=True, kw_only=True):
    """An occurrence does not run. `receipt` is the id of the receipt that says so."""

    file: str
    id: str
    reason: str
    receipt: str = ""


class ScheduleRefusal(Event, tag="schedule_refused", frozen=True, kw_only=True):
    """A file in `recurring/` has no schedule that can be kept. `note` is the page that says so, relative to the home."""

    file: str
    code: str = ""
    error: str
    fix: str
    note: str


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class RunAdmission(Event, tag="run_queued", frozen=True, kw_only=True):
    """A file in `commands/` became a run. `output` is where its artifact goes, relative to the home; empty for none."""

    title: str
    file: str
    output: str = ""


class RunRecovery(Event, tag="run_recovered", frozen=True, kw_only=True):
    """An unfinished run is taken up again; `steps` of it are recorded."""

    title: str
    steps: int


class RunStart(Event, tag="run_started", frozen=True, kw_only=True):
    """An attempt at a run begins; `attempt` counts from 1."""

    title: str
    attempt: int = 1
    file: str = ""


class RunState(Event, tag="state", frozen=True, kw_only=True):
    """The run's state of Protocol 95."""

    state: str


class RunWait(Event, tag="run_waiting", frozen=True, kw_only=True):
    """A run waits for `reason`, a machine word, and asks again after `seconds`, at `until` (ISO 8601). `error` says why."""

    reason: str
    seconds: float
    until: str
    error: str


class RunReturn(Event, tag="run_handed_back", frozen=True, kw_only=True):
    """A run is left to the next start."""


class RunFailure(msgspec.Struct, frozen=True):
    """The reason why a run failed: a machine word, and two lines for a person."""

    code: str
    message: str
    fix: str = ""


class RunEnd(Event, tag="run_ended", frozen=True, kw_only=True):
    """A run has its receipt. `artifact` is relative to the home, empty for none; `calls` counts calls to models."""

    status: str
    artifact: str
    error: RunFailure | None
    notes: tuple[str, ...]
    title: str = ""
    calls: int = 0
    file: str = ""


# ── rounds and turns ─────────────────────────────────────────────────────────────────────────────────────────────────


class RoundStart(Event, tag="round", frozen=True, kw_only=True):
    """A round begins, of at most `max_rounds`; rounds count from 1."""

    round: int
    max_rounds: int


class TurnStart(Event, tag="turn_started", frozen=True, kw_only=True):
    """An agent is asked."""

    role: str
    round: int = 0


class SpeechPiece(Event, tag="text", frozen=True, kw_only=True):
    """A piece of what an agent is saying, for people who watch. None: all of it is taken back."""

    role: str
    round: int = 0
    text: str | None


class TurnEnd(Event, tag="turn_ended", frozen=True, kw_only=True):
    """An agent's turn is over. `failure` says why it brought nothing, empty if it did."""

    role: str
    round: int = 0
    failure: str


class ToolRequest(Event, tag="request", frozen=True, kw_only=True):
    """An agent asked for a tool. `title` names what it got; with `ok` false, `error` says why it got nothing."""

    role: str
    round: int = 0
    request: str
    ok: bool
    title: str
    error: str


class ModelRetry(Event, tag="model_retry", frozen=True, kw_only=True):
    """A call failed and is made again after `wait_s` seconds. `error_kind` is a ModelErrorKind, `attempt` the failed one's
    number."""

    error: str
    error_kind: str = ""
    attempt: int
    wait_s: float


class EndOfRounds(Event, tag="rounds_end", frozen=True, kw_only=True):
    """No further round takes place."""

    reason: str


class SynthesisStart(Event, tag="synthesis", frozen=True, kw_only=True):
    """An agent is asked for the decision."""

    role: str


AnyEvent = (
    DaemonStart | IdleInbox | DaemonStop | HomeImport | CompanionFailure | CompanionRecovery | Pruning
    | ConductorStart | WorldChange | WorldRound
    | CommandRefusal | CommandAnswer | CommandWait | CommandChange | CommandDelay | ControlAct
    | ScheduleSighting | ScheduleDrop | ScheduleMiss | ScheduleSkip | ScheduleRefusal
    | RunAdmission | RunRecovery | RunStart | RunState | RunWait | RunReturn | RunEnd
    | RoundStart | TurnStart | SpeechPiece | TurnEnd | ToolRequest | ModelRetry | EndOfRounds | SynthesisStart
)  # fmt: skip


class EventLines:
    """Events as JSON: `event`, `run_id` when there is one, and the event's own values, without secrets. Several may ask for
    the same event; it is told once."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._last: Event | None = None
        self._told = ""

    def of(self, event: Event) -> str:
        if event is not self._last:
            line = {"event": event.kind} | ({"run_id": event.run_id} if event.run_id else {}) | event.values()
            self._last, self._told = event, self._redact(readable_json(line))
        return self._told


Listener = Callable[[Event], None]


class Events:
    """Hands each event to every listener, in order, in the caller's task. A failing listener is logged, never fatal."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Adds a listener; calling what is returned takes it away again."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed on %s", event.kind)
