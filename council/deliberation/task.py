"""One `deliberate` command being worked on: what is recorded at its start, what is done, what it leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

import msgspec

from council.agents.memory import MemoryMessage, RememberedTask, Session, digest, excerpt
from council.artifacts.account import Account
from council.artifacts.render import render
from council.commands.models import COMMANDS, DeliberateCommand
from council.deliberation.account import account_of
from council.deliberation.admission import TRIAD, members_of
from council.deliberation.decision import SourceNow, SourcesNow, files_read
from council.deliberation.deliberate import Deliberation, Rules
from council.deliberation.equipment import CouncilSetup, Equipment
from council.deliberation.guarding import Guarding, Judged
from council.deliberation.members import Member, StartView, enlist
from council.deliberation.names import Names
from council.deliberation.page import PageState, build_page, cost_of, is_extract, notes_of, status_of, tokens_of
from council.deliberation.remembering import STEP as SUMMARY_STEP
from council.deliberation.remembering import Summarised, applied, summarise
from council.deliberation.transcript import Aside, Evidence, Transcript, Turn
from council.engine.commit import Output
from council.engine.runs import PROVIDER, Finish, Outcome, Parked, Run
from council.errors import ConfigError, Drift, PathRefused, StorageFailed
from council.ids import timestamp
from council.knowledge.cortex.chunks import is_artifact
from council.llm.base import Model
from council.safety.untrusted import plain_line
from council.storage.paths import ConfinedRoot

log = logging.getLogger(__name__)

_LIVE_INTERVAL_S = 1.0  # an editor that follows the file needs no more
_LIVE_SHARE = 10  # a page that takes long to write is shown that many times less often: other runs are at work, too
_MAX_SHOWN_S = 366 * 86_400.0  # a provider may ask for any time; then the run ends
_REASONS = {PROVIDER: "its provider", "budget": "the next day's budget"}
_NOT_THERE = ("not_found", "no_match")
_AUDITED_CHARS = 600
_SHOWN = 3  # names in a note
_DRIFTED = "Resumed with accepted drift: later turns may come from another model, persona or prompt than earlier ones."


class Task:
    """One deliberate command being worked on (an engine Execution)."""

    def __init__(self, run: Run, setup: CouncilSetup) -> None:
        self._run = run
        self._setup = setup
        command = COMMANDS.validate_python(run.header.command)
        assert isinstance(command, DeliberateCommand)
        self._command = command
        self._start = StartView((), "")
        self._deliberation: Deliberation | None = None
        self._sources: SourcesNow | None = None
        self._summarised: Summarised | None = None
        self._guarding: Guarding | None = None
        self._shown_at = -_LIVE_INTERVAL_S
        self._live_interval_s = _LIVE_INTERVAL_S
        self._growing: asyncio.TimerHandle | None = None
        self._waits = ""

    @property
    def deliberation(self) -> Deliberation | None:
        """What was said and decided so far; None before it began."""
        return self._deliberation

    async def work(self) -> None:
        """Reads personas and memory once, then deliberates."""
        try:
            await self._work()
        except Parked as parked:
            self._waits = self._wait_as_said(parked)
            raise
        finally:
            if self._deliberation is not None:
                self._run.refusals = tuple(refusals_of(self._deliberation.transcript))
            if self._growing is not None:
                self._growing.cancel()
            if self._waits:
                self._show()

    def _wait_as_said(self, parked: Parked) -> str:
        until = timestamp(self._setup.clock.now() + timedelta(seconds=min(parked.seconds, _MAX_SHOWN_S)))
        reason = _REASONS.get(parked.reason, parked.reason)
        return (
            f"The council waits for {reason}: {parked.message} It goes on by itself at {until}, "
            f"or when told to: `council resume {self._run.id}`."
        )

    async def _work(self) -> None:
        self._start = await self._run.step("start", self._read_start, type=StartView, durable=False)
        if not self._run.journal.closed:
            self._require_models()
        for note in self._start.notes:
            log.warning("%s", note)
        setup = self._setup
        config = self._command.config
        run_models = setup.models.models_for(self._run, config.budget, self._start.members[0].model)
        models = run_models.of
        self._guarding = self._guarding_with(models)
        await self._guarding.judge_task()
        equipment = Equipment(
            lambda member: models(self._chain_of(member)),
            setup.tools,
            setup.limits,
            setup.seconds_to_midnight,
            lambda: setup.models.window_chars(map(self._chain_of, self._start.members), self._run.header.secret),
            setup.streams,
            setup.native_tools,
            run_models.embedder,
            run_models.recall,
        )
        rules = Rules(config.protocol, config.max_rounds, config.stops_early)
        task = self._command.task_description
        self._deliberation = Deliberation(
            self._run, equipment, self._start, task, rules, self._grow, self._guarding.task
        )
        self._grow()
        await self._deliberation.deliberate(self._command.input_artifacts)
        self._sources = await self._run.step("sources", self._look_again, type=SourcesNow, durable=False)
        await self._judge_outcome(self._guarding)
        if not is_extract(self._start.model):
            sessions = [
                self._setup.memory.load(member.role, self._run.header.lane).session for member in self._start.members
            ]
            model = partial(models, self._council_chain)
            self._summarised = await summarise(
                self._run, model, self._start.model, sessions, self._command.task_description, self._start.guard
            )

    def _guarding_with(self, models: Callable[[tuple[str, ...]], Model]) -> Guarding:
        guard = self._start.guard
        if not guard.model or is_extract(self._start.model):
            return Guarding(self._run, guard, None, "", self._command.task_description)
        chain = (guard.model,)
        now = not self._run.journal.closed
        name = self._setup.models.opinion_name(guard.model, self._run.header.secret) if now else guard.model
        return Guarding(self._run, guard, partial(models, chain), name, self._command.task_description)

    async def _judge_outcome(self, guarding: Guarding) -> None:
        """What was decided and what of it is to be remembered. Raises GuardrailBlocked."""
        assert self._deliberation is not None
        decision = self._state(None).decision
        parts = (
            [decision.answer, *(item for section in decision.sections for item in section.items)] if decision else []
        )
        await guarding.judge_decision("\n\n".join(parts))
        said = [turn.result.text for turn in self._deliberation.transcript.turns() if turn.result.failure is None]
        await guarding.judge_memory([*said, *parts[:1]])

    async def _look_again(self) -> SourcesNow:
        """The files that were read, as they are now."""
        assert self._deliberation is not None
        paths = files_read(self._deliberation.transcript)
        return SourcesNow(tuple([await asyncio.to_thread(source_now, self._setup.root, path) for path in paths]))

    @property
    def _council_chain(self) -> tuple[str, ...]:
        return self._setup.models.chain("", (), self._command.config.model)

    def _chain_of(self, member: Member) -> tuple[str, ...]:
        """Who speaks for the council is asked of the daemon as it runs now (`_require_models`); an agent with a model of
        its own keeps what the run began with."""
        return self._council_chain if member.model == self._start.model else member.models

    def _require_models(self) -> None:
        """Raises Drift: the run began with models that are others now, or cannot be had."""
        start, models = self._start, self._setup.models
        again = f"`council resume {self._run.id} --accept-drift`"
        now = models.names(self._council_chain)[0]
        if start.model != now and not self._run.journal.accepts_drift:
            raise Drift(
                f"the run began with {start.model}; the daemon now runs with {now}.",
                fix=f"restart the daemon with --model {start.model}, or {again}",
            )
        for member in start.members:
            try:
                models.names(self._chain_of(member))
            except ConfigError as error:
                raise Drift(f"{member.role} began with {member.model}: {error.message}", fix=error.fix) from error

    def conclude(self, finish: Finish) -> Outcome:
        state = self._state(finish)
        status = status_of(state)
        artifact = self._rendered(state).encode()
        calls, tokens = tokens_of(state)
        outputs = tuple(self._memory_outputs(state) if status in ("succeeded", "degraded") else ())
        return Outcome(
            status=status,
            artifact=artifact,
            outputs=outputs,
            kept=self._setup.memory.copies(outputs),
            error=finish.error,
            notes=tuple(notes_of(state)),
            rounds=len({turn.round for turn in state.transcript.turns()}),
            model=state.model,
            calls=calls,
            tokens=tokens,
            cost_usd=cost_of(state),
        )

    def account(self, finish: Finish | None) -> Account:
        """How it came about, from what was done so far; `finish` None: the run goes on."""
        return account_of(self._state(finish), self._command.config.max_rounds)

    # ── start ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_start(self) -> StartView:
        setup = self._setup
        members = []
        notes: list[str] = []
        names = list(setup.models.names(self._council_chain))
        for manifest in members_of(self._command, setup.personas, setup.seeds):
            loaded = setup.memory.load(manifest.role, self._run.header.lane)
            chain = setup.models.chain(manifest.role, manifest.model, self._command.config.model)
            own = setup.models.names(chain)
            members.append(enlist(manifest, setup.tools, digest(loaded.session), chain, own[0]))
            names += own
            notes += [f"Memory: {loaded.damage}."] if loaded.damage else []
            notes += [_no_such_tools(manifest.role, absent)] if (absent := setup.tools.absent(manifest.tools)) else []
        asks = setup.models.second_opinion(self._run.header.secret)
        guard = msgspec.structs.replace(setup.guard.looking_at(self._command.task_description), model=asks)
        if guard.model and not is_extract(names[0]):
            names += setup.models.names((guard.model,))
        embedding = [setup.models.embedding] if setup.models.embedding else []
        prices = {name: setup.models.price(name) for name in [*names, *embedding]}
        return StartView(tuple(members), names[0], tuple(notes), prices, guard, setup.models.meanings)

    # ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _state(self, finish: Finish | None) -> PageState:
        task = self._deliberation
        return PageState(
            header=self._run.header,
            transcript=task.transcript if task else Transcript(self._command.task_description),
            closings=tuple(task.closings) if task else (),
            roles=tuple(member.role for member in self._start.members) or self._command.config.agents or TRIAD,
            model=self._start.model,
            models={member.role: member.model for member in self._start.members},
            protocol=self._command.config.protocol,
            names=task.names if task else Names(),
            ending=task.ending if task else None,
            speaking=tuple((heard.role, heard.round, heard.text) for heard in task.hearings) if task else (),
            settled=task.settled if task else None,
            sources=self._sources,
            beside=self._beside(),
            refused=task.refused if task else (),
            judged=tuple(self._judged()),
            notes=(*self._start.notes, *self._later_notes()),
            prices=self._start.prices,
            stopped=task.stopped.reason if task and task.stopped else "",
            waits=self._waits,
            error=finish.error if finish else None,
            cancelled=bool(finish and finish.cancelled),
            cancelled_by=finish.cancelled_by if finish else "",
            finished=finish.at if finish else "",
            audit_head=self._run.audit_head if finish else "",
            displaced=f"`{self._run.output.wanted}` {self._run.output.displaced}."
            if self._run.output.displaced
            else "",
        )

    def _beside(self) -> tuple[Aside, ...]:
        opinions = self._guarding.asides() if self._guarding else []
        summary = [Aside(SUMMARY_STEP, "memory summary", self._summarised.result)] if self._summarised else []
        return (*opinions, *summary)

    def _judged(self) -> Iterator[Judged]:
        """What guardrails had to say, in the order of the stages."""
        if self._guarding is None:
            return
        if not self._guarding.task.allows:
            yield Judged("task", "The task", self._guarding.task)
        for item in self._deliberation.transcript.evidence() if self._deliberation else ():
            if not item.guard.allows:
                path = plain_line(item.path or item.argument, 120).replace("`", "'")
                yield Judged("tool_result", f"{item.id} `{path}`".strip(), item.guard)
        if not self._guarding.decision.allows:
            yield Judged("decision", "The decision", self._guarding.decision)
        for verdict in dict.fromkeys(self._guarding.memory.verdicts.values()):
            yield Judged(
                "memory", "Something said, which is not remembered" if verdict.blocks else "Something said", verdict
            )

    def _later_notes(self) -> list[str]:
        notes = [_DRIFTED] if self._run.journal.accepts_drift else []
        return [*notes, self._summarised.note] if self._summarised and self._summarised.note else notes

    def _grow(self) -> None:
        """The artifact as it is so far: now, or a second (a large one: longer) after it was shown last. A page that cannot be
        written now does not stop the run."""
        if self._run.journal.closed or self._growing is not None:
            return
        wait_s = self._shown_at + self._live_interval_s - self._setup.clock.monotonic_s()
        if wait_s > 0:
            self._growing = asyncio.get_running_loop().call_later(wait_s, self._show)
        else:
            self._show()

    def _show(self) -> None:
        self._growing = None
        began_s = self._setup.clock.monotonic_s()
        try:
            self._run.output.grow(self._rendered(self._state(None)).encode())
        except (StorageFailed, PathRefused) as error:
            log.warning("the growing artifact of run %s is not shown: %s", self._run.id, error)
        self._shown_at = self._setup.clock.monotonic_s()
        self._live_interval_s = max(_LIVE_INTERVAL_S, _LIVE_SHARE * (self._shown_at - began_s))

    def _rendered(self, state: PageState) -> str:
        """The page; what is still being said is in no step yet, and redacted here."""
        return self._setup.redactor.redact(render(build_page(state), self._run.output.path))

    # ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _memory_outputs(self, state: PageState) -> list[Output]:
        outputs: list[Output] = []
        for role in state.roles:
            session = self._setup.memory.load(role, self._run.header.lane).session
            remembered = self._remembered(state, role)
            tasks = tuple(remembered if task.run_id == self._run.id else task for task in session.tasks)
            if remembered not in tasks:
                tasks = (
                    *tasks,
                    remembered,
                )  # else it was committed before: by a try that a crash cut off, or an earlier one
            grown = applied(msgspec.structs.replace(session, tasks=tasks), session, self._summarised)
            outputs += self._setup.memory.outputs(self._setup.redactor.redacted(grown, Session), self._setup.home)
        return outputs

    def _remembered(self, state: PageState, role: str) -> RememberedTask:
        synthesis = state.synthesis
        answer = state.decision.answer if state.decision else ""
        messages = [MemoryMessage("user", state.transcript.task)]
        for entry in state.transcript.entries:
            if isinstance(entry, Turn) and entry.role == role and entry.result.failure is None:
                messages.append(MemoryMessage("model", self._rememberable(entry.result.text)))
            elif isinstance(entry, Evidence) and entry.asked_by == role and entry.ok:
                messages.append(MemoryMessage("user", f"CONTEXT_PROVIDED: {entry.title} sha256 {entry.sha256}"))
        if synthesis is not None and role == synthesis.role:
            messages.append(MemoryMessage("model", self._rememberable(answer)))
        return RememberedTask(
            run_id=self._run.id,
            title=self._run.header.title,
            status=status_of(state),
            finished=state.finished,
            answer=excerpt(self._rememberable(answer)),
            messages=tuple(messages),
        )

    def _rememberable(self, text: str) -> str:
        """What an agent said as it is remembered."""
        return self._guarding.remembered(text) if self._guarding else text


def _no_such_tools(role: str, absent: Sequence[str]) -> str:
    shown = ", ".join(plain_line(name, 60).replace("`", "'") for name in absent[:_SHOWN])
    return f"The persona of {role} lists tools that are not there: {shown}{', …' if len(absent) > _SHOWN else ''}."


def refusals_of(transcript: Transcript) -> Iterator[Mapping[str, str]]:
    """What was refused by a rule, and not for want of such a file."""
    for item in transcript.evidence():
        if item.error_code and item.error_code not in _NOT_THERE:
            asked = plain_line(item.request or item.argument, _AUDITED_CHARS)
            yield {"asked_by": item.asked_by, "round": str(item.round), "request": asked, "reason": item.error_code}


def source_now(root: ConfinedRoot, path: str) -> SourceNow:
    """A file that was read, as it is now; never raises for what may happen to a file meanwhile."""
    try:
        sha256 = root.sha256(path)
        if sha256 is None:
            return SourceNow(path, error="it is gone")
        return SourceNow(path, sha256, own=is_artifact(_beginning(root, path)))
    except (PathRefused, StorageFailed) as error:
        return SourceNow(path, error=error.message)


def _beginning(root: ConfinedRoot, path: str) -> str:
    """The text of a file, empty for one that is too large to be a page."""
    try:
        return root.read(path).data.decode("utf-8", "replace")
    except PathRefused as error:
        if error.reason != "too_large":
            raise
        return ""
