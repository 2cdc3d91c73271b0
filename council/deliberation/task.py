"""A `deliberate` command being worked on (an engine Execution): the record of its start, the work, and what it leaves."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial

from council.agents.memory_digest import without_rehearsals
from council.artifacts.render import render
from council.deadline import AT_ONCE_CHARS, in_a_spare_thread
from council.deliberation.commands import DeliberateCommand
from council.deliberation.council_account import account_of
from council.deliberation.decision import Decision
from council.deliberation.decision_page import build_page, details_of, notes_of
from council.deliberation.deliberate import Deliberation
from council.deliberation.deliberate_admission import TRIAD
from council.deliberation.members import Chains, StartView, read_start
from council.deliberation.memory_summary import STEP as SUMMARY_STEP
from council.deliberation.memory_summary import SummaryTry, memory_outputs, summarise
from council.deliberation.names import Names
from council.deliberation.page_state import PageState, status_of
from council.deliberation.quotations.passages import passages_of
from council.deliberation.transcript import Closing, Transcript, Turn, step_of
from council.engine.commit import Output
from council.engine.records import Part, waited_for
from council.engine.run_records import AUDIT_HEAD
from council.engine.runs import Finish, Outcome, Run, RunPause
from council.ids import timestamp
from council.llm.base import is_extract, is_rehearsal
from council.systems import Core
from council.turns.account import Account
from council.turns.changed_sources import SOURCES_STEP, SourcesNow, look_again
from council.turns.costs import sum_of, tokens_of
from council.turns.growing_page import GrowingPage
from council.turns.requests import refusals_of
from council.turns.result import ModelCall, TurnResult
from council.turns.run_guardrails import RunGuard

log = logging.getLogger(__name__)

_MAX_SHOWN_S = 366 * 86_400.0  # a provider may ask for any time; then the run ends
_DRIFTED = "Resumed although its model or Council's prompts had changed: later turns may differ from earlier ones."


class Task:
    def __init__(self, run: Run, core: Core) -> None:
        self._run = run
        self._core = core.of_run(run)
        self._command = DeliberateCommand.model_validate(run.header.command)
        # A model that was named for the retry takes the place of the command's.
        self._asked_model = None if run.named_model else self._command.config.model
        self._start = StartView((), "")
        self._guarding: RunGuard | None = None
        self._sources: SourcesNow | None = None
        self._decision: Decision | None = None
        self._summarised: SummaryTry | None = None
        self._page = GrowingPage(run, core.clock, lambda: self._rendered(self._state(None)))
        self._waits = ""
        self.deliberation: Deliberation | None = None  # as far as it came; None before it began

    async def work(self) -> None:
        run, core, config, task = self._run, self._core, self._command.config, self._command.task_description

        begin = partial(read_start, core, self._command, self._asked_model, run)
        try:
            self._start = start = await run.step("start", begin, type=StartView, durable=False, part=Part("start"))
            chains = Chains(core.models, start, self._asked_model)
            if not run.is_closed:
                first_turns = (run.value(step_of(1, member.role), TurnResult) for member in start.members)
                has_spoken = any(each is not None and each.failure is None for each in first_turns)
                chains.require(run.id, accepts_drift=run.accepts_drift, has_spoken=has_spoken)
            for note in start.notes:
                log.warning("%s", note)
            models = core.models.models_for(run, config.budget, start.members[0].model)
            is_offline = is_extract(start.model)
            self._guarding = guarding = core.guarding(run, start.guard, models, task, rehearses=is_offline)
            await guarding.judge_task()
            equipment = core.equipment(run, models, chains.of, start.members)
            self.deliberation = council = Deliberation(
                run, equipment, start, task, config, self._page.grow, guarding.task
            )
            self._page.grow()
            await council.deliberate(self._command.input_artifacts)
            passages = (passage for item in council.transcript.evidence() for passage in passages_of(item))
            look = partial(look_again, core.root, (each.path for each in passages if each.path and not each.own))
            self._sources = await run.step(SOURCES_STEP, look, type=SourcesNow, durable=False, part=Part("sources"))
            read = self._state(None).read_decision
            spoken: list[Turn | Closing] = [*council.transcript.turns(), *council.transcript.closings]
            chars = sum(len(each.result.text) for each in spoken)
            if council.transcript.evidence() or chars > AT_ONCE_CHARS:
                # Without a deadline: its work is bounded, and the end of a run is the same whenever it is read again.
                self._decision = decision = await in_a_spare_thread(read)
            else:  # nothing was read that anything could be looked up in
                self._decision = decision = read()
            parts = [decision.answer] if decision else []
            parts += [item for section in decision.sections for item in section.items] if decision else []
            await guarding.judge_decision("\n\n".join(parts))
            self._page.grow()
            said = [turn.result.text for turn in council.transcript.turns() if turn.result.failure is None]
            await guarding.judge_memory([*said, *parts[:1]])
            if not is_rehearsal(start.model):
                lane = run.header.lane
                sessions = [without_rehearsals(core.memory.load(member.role, lane).session) for member in start.members]
                model = partial(models.of, chains.council)
                self._summarised = await summarise(run, model, start.model, sessions, task, start.guard)
        except RunPause as parked:
            until = timestamp(core.clock.now() + timedelta(seconds=min(parked.seconds, _MAX_SHOWN_S)))
            self._waits = (
                f"The council waits{waited_for(parked.reason)}: {parked.message} It continues at {until}, "
                f"or at once with `council resume {run.id}`."
            )
            raise
        finally:
            if self.deliberation is not None:
                run.refusals = tuple(refusals_of(self.deliberation.transcript.evidence()))
            self._page.stop()
            if self._waits:
                self._page.show()

    def conclude(self, finish: Finish) -> Outcome:
        state = self._state(finish)
        results = [call.result for call in state.calls]
        status = status_of(state.transcript, state.calls, finish)
        outputs: tuple[Output, ...] = ()
        if status in ("succeeded", "degraded"):
            remembered = self._guarding.remembered if self._guarding else str
            keepers = [member.role for member in self._start.members if "memory" not in member.withheld]
            outputs = tuple(memory_outputs(state, self._run, self._core, self._summarised, remembered, keepers))
        return Outcome(
            status=status,
            artifact=self._rendered(state).encode(),
            outputs=outputs,
            kept=self._core.memory.copies(outputs),
            error=finish.error,
            notes=tuple(notes_of(state)),
            rounds=len({turn.round for turn in state.transcript.turns()}),
            model=state.model,
            calls=len(results),
            tokens=tokens_of(results),
            cost_usd=sum_of(results, state.prices),
            details=details_of(state),
        )

    def account(self, finish: Finish | None) -> Account:
        """`finish` None: the run goes on."""
        return account_of(self._state(finish), self._command.config.max_rounds)

    def _rendered(self, state: PageState) -> str:
        """The page; what is still being said is in no step yet, and redacted here."""
        return self._core.redactor.redact(render(build_page(state), self._run.output.path))

    def _model_of(self, transcript: Transcript) -> str:
        """The council's model; where one was named to go on with, all that answered for it."""
        start, named = self._start, self._run.named_model
        if not named or not start.model:
            return start.model
        own = {member.role for member in start.members if member.model != start.model}
        said: list[Turn | Closing] = [*transcript.turns(), *transcript.closings]
        answers = [each.result for each in said if each.role not in own and each.result.failure is None]
        asked = [answer.replaced[0].model if answer.replaced else answer.model for answer in answers]
        return ", ".join(dict.fromkeys(asked)) or named

    def _state(self, finish: Finish | None) -> PageState:
        council, start, config, output = self.deliberation, self._start, self._command.config, self._run.output
        transcript = council.transcript if council else Transcript(self._command.task_description)
        model, hearings = self._model_of(transcript), council.asker.hearings if council else ()
        beside = self._guarding.calls() if self._guarding else []
        notes = [*start.notes, *([_DRIFTED] if self._run.accepts_drift else [])]
        notes += [council.window_note] if council and council.window_note else []
        if self._summarised is not None:
            beside.append(ModelCall(SUMMARY_STEP, "", 0, self._summarised.result, "memory summary"))
            notes += filter(None, (self._summarised.note,))
        return PageState(
            header=self._run.header,
            transcript=transcript,
            roles=tuple(member.role for member in start.members) or config.agents or TRIAD,
            model=model,
            notes=tuple(notes),
            protocol=config.protocol,
            names=council.names if council else Names(),
            models={each.role: model if each.model == start.model else each.model for each in start.members},
            prices=start.prices,
            finish=finish,
            waits=self._waits,
            audit_head=(self._run.value(AUDIT_HEAD, str) or "") if finish else "",
            displaced=f"`{output.wanted}` {output.displaced}." if output.displaced else "",
            speaking=tuple((heard.role, heard.round, heard.text) for heard in hearings),
            replaces=start.replaces if not output.displaced else "",
            sources=self._sources,
            looked_up=self._decision,
            beside=beside,
            refused=council.asker.refused if council else (),
            judged=tuple(self._guarding.judgements(transcript.evidence())) if self._guarding else (),
        )
