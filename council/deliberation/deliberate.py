"""The deliberation itself: rounds of turns, requests fulfilled between them, a closing synthesis. Every model and tool
call is a step of the run, so a restart repeats none that is recorded."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from council.budgets.budget import BudgetSpent
from council.deliberation.commands import DeliberateConfig
from council.deliberation.decision import look_up
from council.deliberation.early_stopping import reason_to_end, still_open
from council.deliberation.members import StartView
from council.deliberation.names import Names
from council.deliberation.prompts import (
    CONTEXT_SHARE,
    INSTRUCTION_CHARS,
    Discussion,
    Duty,
    context_message,
    persona_in,
    synthesis_instruction,
)
from council.deliberation.protocols import PROTOCOLS
from council.deliberation.ranking import Ranking, ballot_problems
from council.deliberation.record import DECISION_SCHEMA, ClosingRecord, problems, settle
from council.deliberation.stance import Stance, stance_problems
from council.deliberation.stances_page import RANKS_NOTHING
from council.deliberation.transcript import Closing, Ending, Transcript, Turn, step_of
from council.engine.records import Part
from council.engine.runs import Run
from council.errors import CouncilSilent, InputUnreadable
from council.events import EndOfRounds, RoundStart, SynthesisStart, TurnEnd
from council.llm.base import Message, TurnInfo, is_extract
from council.safety.verdict import ALLOWED, Verdict
from council.turns.asker import Asker
from council.turns.closing_block import ClosingBlock, read_block
from council.turns.equipment import Equipment, Speaker
from council.turns.evidence import Evidence
from council.turns.fencing import Fencer
from council.turns.requests import Requests
from council.turns.result import NO_BUDGET, Failure, TurnResult
from council.turns.run_guardrails import manner_of

_STOPPED = "stopped"
# A step of its own: each call teaches how many characters a token has, and two equal tasks differ in it.
_WINDOW = "window"
_TOLD_INPUTS = 5  # of those that cannot be read, in one line; the page lists the others
MAX_FAILURES_IN_A_ROW = 3  # three agents in a row that cannot answer: the provider is down, not an agent


class _RoundsEnd(Exception):
    """No further round; the closing call follows."""


class EarlyStop(msgspec.Struct, frozen=True):
    """The reason why the rounds ended early: recorded, so that a resumed run ends them at the same step."""

    before: str
    reason: str


class Deliberation:
    """One task of the council. `changed` is called whenever the transcript grew. A protocol reads `members`,
    `max_rounds` and the transcript, and lets members speak; it may set `closing_note` for the closing call.
    `window_note` says that the inputs are more than a model holds; empty when they are not."""

    def __init__(
        self,
        run: Run,
        equipment: Equipment,
        start: StartView,
        task: str,
        config: DeliberateConfig,
        changed: Callable[[], None],
        verdict: Verdict = ALLOWED,
    ) -> None:
        self._run = run
        self._equipment = equipment
        self._start = start
        self._config = config
        self.max_rounds = config.max_rounds
        self.members = start.members
        self.roles = tuple(member.role for member in start.members)
        self.names = Names() if config.protocol == "triad" else Names.hidden(self.roles, run.choice("names"))
        self.closing_note = ""
        self.window_note = ""
        self._changed = changed
        self._manner = manner_of(verdict)
        self._fencer = Fencer(run.secret)
        for member in start.members:  # a persona is a file, too: what it spells out is no thought of the model
            self._fencer.outside.add(persona_in(member.system, member.role))
        # One for all, and one for each who may not see all that is provided.
        self._said = {
            withheld: Discussion(self._fencer, self.names, withheld)
            for withheld in dict.fromkeys(member.withheld for member in start.members)
        }
        self._contexts: dict[str, Message] = {}
        self._failures_in_a_row = 0
        self.transcript = Transcript(task, day=run.header.day)

        def hear(item: Evidence) -> None:
            self._add(item)
            changed()

        self._requests = Requests(run, equipment, start.guard, task, hear, self._fencer.outside)
        self.asker = Asker(run, equipment, changed)

    async def deliberate(self, inputs: Sequence[str]) -> None:
        """All rounds, then the synthesis. Raises CouncilError when it cannot go on, RunPause when it can later."""
        transcript, read = self.transcript, self.transcript.inputs
        for number, path in enumerate(dict.fromkeys(inputs), start=1):
            read.append(await self._requests.read_input(number, path))
        if read and not any(item.ok for item in read):
            whose = "the input artifact could not" if len(read) == 1 else f"none of the {len(read)} inputs could"
            more = f"; and {len(read) - _TOLD_INPUTS} more" if len(read) > _TOLD_INPUTS else ""
            raise InputUnreadable(
                f"{whose} be read: {'; '.join(item.refusal for item in read[:_TOLD_INPUTS])}{more}",
                fix="correct the paths (relative to the home; `council validate` suggests names) and drop the command again",
            )
        self._changed()
        window_chars = await self._run.look(_WINDOW, self._equipment.window_chars, type=int, part=Part("window"))
        if window_chars:
            if (given_chars := sum(len(item.text) for item in read)) > window_chars:
                self.window_note = (
                    f"The inputs have about {given_chars:,} characters, but the window of a model holds about "
                    f"{window_chars:,}: what did not fit may have been cut off. Raise `context_tokens`, or give fewer files."
                )
            before = max(len(member.system) + len(self._context(member).text) for member in self._start.members)
            for said in self._said.values():
                said.limit(int(window_chars * CONTEXT_SHARE) - before - INSTRUCTION_CHARS)
        try:
            await PROTOCOLS[self._config.protocol](self)
        except _RoundsEnd:
            self._run.publish(EndOfRounds(reason=transcript.stopped))
        if transcript.stopped:
            transcript.ending = Ending("budget", transcript.stopped, self._turns_left)
        elif transcript.ending is None and self._config.stops_early:
            rounds = {1: "the one round", 2: "both rounds"}.get(self.max_rounds, f"all {self.max_rounds} rounds")
            transcript.ending = Ending("cap", "; ".join(filter(None, (f"{rounds} took place", still_open(transcript)))))
        if not transcript.stopped and not any(turn.result.failure is None for turn in transcript.turns()):
            failures = [turn.result.failure for turn in transcript.turns() if turn.result.failure]
            raise self._silence("no agent answered in any round.", failures)
        instruction = synthesis_instruction(self.closing_note)
        chairs = [member for member in self.members if "transcript" not in member.withheld]
        for chair in chairs:  # where one closing call brings nothing to read, the next member makes it
            step = "synthesis" if chair is self.members[0] else f"synthesis/{chair.role}"
            info = TurnInfo(chair.role, "synthesis", self.max_rounds, self.max_rounds, transcript.task)
            self._run.publish(SynthesisStart(role=chair.role))
            messages = self._messages(chair, instruction)
            result = await self.asker.ask(step, chair, messages, info, "closing", DECISION_SCHEMA)
            transcript.closings.append(Closing(step, chair.role, result))
            self._changed()
            failure = result.failure or await self._read_record(transcript.closings[-1], chair, messages, info)
            if failure is None or failure.kind == NO_BUDGET:  # a spent budget would refuse every other one too
                return

    def open_round(self, round_no: int, speakers: Sequence[Speaker]) -> None:
        """Tells the world of a new round; not of one that is only read again."""
        if not all(self._run.recorded(step_of(round_no, speaker.role)) for speaker in speakers):
            self._run.publish(RoundStart(round=round_no, max_rounds=self.max_rounds))

    async def speak(self, member: Speaker, round_no: int, duty: Duty) -> None:
        turn = await self._take_turn(member, round_no, duty, self._add)
        self._count_failures([turn])
        await self._requests.fulfil(turn.step, member, round_no, self._requests.of(turn.result.text))

    async def speak_at_once(self, members: Sequence[Speaker], round_no: int, duty: Callable[[Speaker], Duty]) -> None:
        """A turn of each, none of which hears another; their requests come after it. Turns are added in the order of
        `members`, ids given in that order: nothing depends on who is first."""
        done: dict[str, Turn] = {}

        def keep(turn: Turn) -> None:
            done[turn.role] = turn

        takes = [asyncio.ensure_future(self._take_turn(each, round_no, duty(each), keep)) for each in members]
        try:
            await asyncio.wait(takes)
        finally:
            try:
                await _all_ended(takes)
            finally:
                turns = [done[member.role] for member in members if member.role in done]
                self.transcript.entries.extend(turns)
                heard = list(turns)
                self.choice(f"order/{round_no}").shuffle(heard)  # the page tells them by member, the members by lot
                for turn in heard:
                    self._hear(turn)
                self._changed()
        failures = [failure for take in takes if (failure := take.exception()) is not None]
        for failure in failures:
            if not isinstance(failure, _RoundsEnd):
                raise failure
        self._count_failures(turns)
        asked = {turn.role: self._requests.of(turn.result.text) for turn in turns}  # before any is answered
        for member in members:
            if member.role in done:
                await self._requests.fulfil(done[member.role].step, member, round_no, asked[member.role])
        if failures:
            raise _RoundsEnd

    def may_end(self, *, evidence_round_due: bool = False) -> bool:
        """True when an early stop is asked for, there is a reason for one and a turn to save; the transcript then says
        which."""
        transcript = self.transcript
        if transcript.ending is None and self._config.stops_early and self._turns_left:
            found = reason_to_end(transcript, self.roles, evidence_round_due=evidence_round_due)
            if found is not None:
                transcript.ending = Ending(*found, calls_saved=self._turns_left)
                self._run.publish(EndOfRounds(reason=transcript.ending.sentence))
        return transcript.ending is not None

    @property
    def _turns_left(self) -> int:
        rounds = min(self.max_rounds, 2) if self._config.protocol == "review" else self.max_rounds
        return len(self.members) * rounds - len(self.transcript.turns())

    def choice(self, purpose: str) -> random.Random:
        """A lot that falls the same way after every restart."""
        return self._run.choice(purpose)

    async def _take_turn(self, member: Speaker, round_no: int, duty: Duty, keep: Callable[[Turn], None]) -> Turn:
        """`keep` gets the turn as far as it came. A spent budget ends the rounds, those of a resumed run before the
        same step."""
        info = TurnInfo(member.role, "turn", round_no, self.max_rounds, self.transcript.task)
        run, step = self._run, step_of(round_no, member.role)
        stopped = run.value(_STOPPED, EarlyStop)
        if stopped is not None and (stopped.before == step or not run.recorded(step)):
            self.transcript.stopped = stopped.reason
            raise _RoundsEnd
        news = not run.recorded(step)  # what a resumed run only reads again is no event
        try:
            result = await self.asker.ask(step, member, self._messages(member, duty.instruction), info)
        except BudgetSpent as spent:
            stopped = EarlyStop(step, f"{spent.message} To allow more: {spent.fix}.")
            kept = await run.put(_STOPPED, stopped, type=EarlyStop, part=Part("budget spent"))
            self.transcript.stopped = kept.reason
            raise _RoundsEnd from spent
        turn = Turn(member.role, round_no, result, advocate=duty.advocate, ballot=duty.ballot)
        try:
            if result.failure is None:
                turn = await self._read_block(turn, member, duty)
        finally:
            keep(turn)
        failure = result.failure.message if result.failure else ""
        if news:
            run.publish(TurnEnd(role=member.role, round=round_no, failure=failure))
        self._changed()
        return turn

    async def _read_block(self, turn: Turn, member: Speaker, duty: Duty) -> Turn:
        info = TurnInfo(member.role, "other", turn.round, self.max_rounds, self.transcript.task)

        async def ask(number: int, messages: tuple[Message, ...]) -> TurnResult:
            return await self.asker.ask(f"{turn.step}/repair/{number}", member, messages, info, "repair")

        if duty.ballot and is_extract(turn.result.model):  # it weighs nothing, and no second call would bring a ballot
            return msgspec.structs.replace(turn, fault=RANKS_NOTHING)
        if duty.ballot:
            check = partial(ballot_problems, duty.ballot)
            ballot = await read_block(turn.result, Ranking, duty.instruction, ask, check=check, required=True)
            ranking = ballot.value.ranking if ballot.value else ()
            return _with_block(turn, ballot, "Ranked without a word.", ranking=ranking)

        block = await read_block(
            turn.result,
            Stance,
            duty.instruction,
            ask,
            check=lambda said: stance_problems(self.transcript.issued(), said),
        )
        return _with_block(turn, block, block.value.position if block.value else "", stance=block.value)

    def _messages(self, member: Speaker, instruction: Message) -> tuple[Message, ...]:
        said = None if "transcript" in member.withheld else self._said[member.withheld].message()
        return (self._context(member), *([said] if said else []), instruction)

    def _context(self, member: Speaker) -> Message:
        if member.role not in self._contexts:
            task = self.transcript.task
            inputs = () if "documents" in member.withheld else self.transcript.inputs
            self._contexts[member.role] = context_message(
                member.memory, task, inputs, self._fencer, manner=self._manner, day=self._run.header.day
            )
        return self._contexts[member.role]

    def _add(self, entry: Turn | Evidence) -> None:
        self.transcript.entries.append(entry)
        self._hear(entry)

    def _hear(self, entry: Turn | Evidence) -> None:
        for said in self._said.values():
            said.add(entry)

    def _count_failures(self, turns: Sequence[Turn]) -> None:
        failures = [turn.result.failure for turn in turns if turn.result.failure is not None]
        self._failures_in_a_row = self._failures_in_a_row + len(failures) if len(failures) == len(turns) else 0
        if (count := self._failures_in_a_row) >= MAX_FAILURES_IN_A_ROW:
            raise self._silence(f"{count} turns in a row gave no answer; the last: {failures[-1].message}", failures)

    def _silence(self, message: str, failures: Sequence[Failure]) -> CouncilSilent:
        retry = f"`council retry {self._run.header.run_id}`"
        again = f"{retry} asks them again, with another model if you name one (--model)"
        fixes = [*(each.fix.rstrip(".") for each in failures[-1:]), again]
        return CouncilSilent(message, fix="; ".join(filter(None, fixes)))

    async def _read_record(
        self, closing: Closing, chair: Speaker, messages: tuple[Message, ...], info: TurnInfo
    ) -> Failure | None:
        async def ask(number: int, request: tuple[Message, ...]) -> TurnResult:
            step = f"{closing.step}/repair/{number}"
            return await self.asker.ask(step, chair, request, info, "closing repair", DECISION_SCHEMA)

        reply = closing.result
        record = ClosingRecord(None)  # an extract quotes, and decides nothing that could be typed
        if not is_extract(reply.model):
            check = partial(problems, look_up(self.transcript), self.roles, self.names)
            record = await settle(reply, messages, check, ask)
            reply = msgspec.structs.replace(reply, failure=record.failure)
        self.transcript.closings[-1] = Closing(closing.step, chair.role, reply, record)
        if record.failure is not None:
            self._changed()
        return record.failure


def _with_block(turn: Turn, block: ClosingBlock[Any], unspoken: str, **read: Any) -> Turn:
    """`unspoken` is shown of an agent that said nothing beside its block. A block that stays unreadable is shown, too."""
    said = turn.result.text if block.fault else block.speech or unspoken
    result = msgspec.structs.replace(turn.result, text=said)
    return msgspec.structs.replace(
        turn, result=result, fault=block.fault, repair=block.repair, repairs=block.repairs, **read
    )


async def _all_ended(takes: Sequence[asyncio.Future[Turn]]) -> None:
    """Cancels those under way, and has the failure of each looked at, so that none is logged as forgotten."""
    under_way = [take for take in takes if not take.done()]
    for take in under_way:
        take.cancel()
    if under_way:  # NOTE: nothing is awaited for turns that have ended: a cancel could come just there
        await asyncio.gather(*under_way, return_exceptions=True)
    for take in takes:
        if not take.cancelled():
            take.exception()
