"""A `deliberate` command being worked on: the record of its start, the work itself, and what it leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial

import msgspec

from council.agents.memory import MemoryMessage, RememberedTask, Session, digest, excerpt
from council.artifacts.account import Account
from council.artifacts.render import render
from council.deliberation.account import account_of
from council.deliberation.admission import TRIAD, members_of
from council.deliberation.commands import DeliberateCommand
from council.deliberation.costs import cost_of, is_extract, tokens_of
from council.deliberation.decision import SourceNow, SourcesNow, files_read
from council.deliberation.deliberate import Deliberation, Rules
from council.deliberation.equipment import CouncilSetup, Equipment
from council.deliberation.guarding import RunGuard
from council.deliberation.members import Member, StartView, enlist
from council.deliberation.names import Names
from council.deliberation.page import build_page, notes_of
from council.deliberation.page_state import PageState
from council.deliberation.remembering import STEP as SUMMARY_STEP
from council.deliberation.remembering import SummaryTry, applied, summarise
from council.deliberation.status import status_of
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
        self._command = DeliberateCommand.model_validate(run.header.command)
        self._start = StartView((), "")
        self._deliberation: Deliberation | None = None
        self._sources: SourcesNow | None = None
        self._summarised: SummaryTry | None = None
        self._guarding: RunGuard | None = None
        self._shown_at = -_LIVE_INTERVAL_S
        self._live_interval_s = _LIVE_INTERVAL_S
        self._growing: asyncio.TimerHandle | None = None
        self._waits = ""

    @property
    def deliberation(self) -> Deliberation | None:
        """The deliberation so far; None before it began."""
        return self._deliberation

    async def work(self) -> None:
        """Reads personas and memory once, then deliberates."""
        try:
            self._start = await self._run.step("start", self._read_start, type=StartView, durable=False)
            if not self._run.journal.closed:
                self._require_models()
            for note in self._start.notes:
                log.warning("%s", note)
            setup, config, task = self._setup, self._command.config, self._command.task_description
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
            self._deliberation = Deliberation(
                self._run, equipment, self._start, task, rules, self._grow, self._guarding.task
            )
            self._grow()
            await self._deliberation.deliberate(self._command.input_artifacts)
            await self._look_at_outcome(self._deliberation, self._guarding)
            if not is_extract(self._start.model):
                lane, start = self._run.header.lane, self._start
                sessions = [setup.memory.load(member.role, lane).session for member in start.members]
                model = partial(models, self._council_chain)
                self._summarised = await summarise(self._run, model, start.model, sessions, task, start.guard)
        except Parked as parked:
            until = timestamp(self._setup.clock.now() + timedelta(seconds=min(parked.seconds, _MAX_SHOWN_S)))
            reason = _REASONS.get(parked.reason, parked.reason)
            self._waits = (
                f"The council waits for {reason}: {parked.message} It goes on by itself at {until}, "
                f"or when told to: `council resume {self._run.id}`."
            )
            raise
        finally:
            if self._deliberation is not None:
                self._run.refusals = tuple(refusals_of(self._deliberation.transcript))
            if self._growing is not None:
                self._growing.cancel()
            if self._waits:
                self._show()

    def _guarding_with(self, models: Callable[[tuple[str, ...]], Model]) -> RunGuard:
        guard = self._start.guard
        if not guard.model or is_extract(self._start.model):
            return RunGuard(self._run, guard, None, "", self._command.task_description)
        chain = (guard.model,)
        now = not self._run.journal.closed
        name = self._setup.models.opinion_name(guard.model, self._run.header.secret) if now else guard.model
        return RunGuard(self._run, guard, partial(models, chain), name, self._command.task_description)

    async def _look_at_outcome(self, deliberation: Deliberation, guarding: RunGuard) -> None:
        """Looks at the files that were read, as they are now; judges the decision and what of it is to be remembered.

        Raises GuardrailBlocked.
        """
        transcript = deliberation.transcript

        async def look() -> SourcesNow:
            paths = files_read(transcript)
            return SourcesNow(tuple([await asyncio.to_thread(source_now, self._setup.root, path) for path in paths]))

        self._sources = await self._run.step("sources", look, type=SourcesNow, durable=False)
        decision = self._state(None).decision
        parts = [decision.answer] if decision else []
        parts += [item for section in decision.sections for item in section.items] if decision else []
        await guarding.judge_decision("\n\n".join(parts))
        said = [turn.result.text for turn in transcript.turns() if turn.result.failure is None]
        await guarding.judge_memory([*said, *parts[:1]])

    @property
    def _council_chain(self) -> tuple[str, ...]:
        return self._setup.models.chain("", (), self._command.config.model)

    def _chain_of(self, member: Member) -> tuple[str, ...]:
        """The models that speak for a member. An agent with a model of its own keeps those that the run began with. The
        others have the council's, as the daemon runs now (`_require_models`)."""
        return self._council_chain if member.model == self._start.model else member.models

    def _require_models(self) -> None:
        """Raises Drift where the run began with models that are others now, or cannot be had."""
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
        """The account of what was done so far; `finish` None: the run goes on."""
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
            if absent := setup.tools.absent(manifest.tools):
                shown = ", ".join(plain_line(name, 60).replace("`", "'") for name in absent[:_SHOWN])
                more = ", …" if len(absent) > _SHOWN else ""
                notes.append(f"The persona of {manifest.role} lists tools that are not there: {shown}{more}.")
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
        opinions = self._guarding.asides() if self._guarding else []
        summary = [Aside(SUMMARY_STEP, "memory summary", self._summarised.result)] if self._summarised else []
        evidence = task.transcript.evidence() if task else ()
        judged = self._guarding.judgements(evidence) if self._guarding else ()
        notes = [*self._start.notes, *([_DRIFTED] if self._run.journal.accepts_drift else [])]
        notes += [self._summarised.note] if self._summarised and self._summarised.note else []
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
            beside=(*opinions, *summary),
            refused=task.refused if task else (),
            judged=tuple(judged),
            notes=tuple(notes),
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

    def _grow(self) -> None:
        """Shows the artifact as it is so far: now, or a second (a large one: longer) after it was shown last. A page
        that cannot be written now does not stop the run."""
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
            remembered = RememberedTask(
                run_id=self._run.id,
                title=self._run.header.title,
                status=status_of(state),
                finished=state.finished,
                answer=excerpt(self._rememberable(answer)),
                messages=tuple(messages),
            )
            tasks = tuple(remembered if task.run_id == self._run.id else task for task in session.tasks)
            if (
                remembered not in tasks
            ):  # else it was committed before: by a try that a crash cut off, or an earlier one
                tasks = (*tasks, remembered)
            grown = applied(msgspec.structs.replace(session, tasks=tasks), session, self._summarised)
            outputs += self._setup.memory.outputs(self._setup.redactor.redacted(grown, Session), self._setup.home)
        return outputs

    def _rememberable(self, text: str) -> str:
        """An agent's words as they are remembered."""
        return self._guarding.remembered(text) if self._guarding else text


def refusals_of(transcript: Transcript) -> Iterator[Mapping[str, str]]:
    """The requests that a rule refused, other than for want of such a file."""
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
        try:
            text = root.read(path).data.decode("utf-8", "replace")
        except PathRefused as error:
            if error.reason != "too_large":
                raise
            text = ""  # too large to be a page
        return SourceNow(path, sha256, own=is_artifact(text))
    except (PathRefused, StorageFailed) as error:
        return SourceNow(path, error=error.message)
