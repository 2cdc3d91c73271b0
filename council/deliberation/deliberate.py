"""The deliberation itself: rounds of turns, requests fulfilled between them, a closing synthesis.

Reads top-down: `deliberate → a protocol → speak → take_turn`, then `Requests.fulfil`. Every model and tool call is a step of
the run, so a restart repeats none that is recorded. Knows neither files nor providers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from council.agents.turn import NO_BUDGET, Failure, ProviderBusy, TurnResult, take_turn
from council.budgets.budget import BudgetSpent
from council.budgets.metering import CALL_CUT_OFF
from council.commands.models import ProtocolName
from council.deliberation.blocks import Block, read_block
from council.deliberation.costs import is_extract
from council.deliberation.decision import look_up
from council.deliberation.duties import Duty
from council.deliberation.equipment import Equipment
from council.deliberation.folding import CONTEXT_SHARE
from council.deliberation.guarding import manner_of
from council.deliberation.hearing import Hearing
from council.deliberation.holders import Holders
from council.deliberation.members import Member, StartView
from council.deliberation.names import Names
from council.deliberation.prompts import (
    INSTRUCTION_CHARS,
    Discussion,
    Fencer,
    context_message,
    synthesis_instruction,
)
from council.deliberation.protocols import PROTOCOLS
from council.deliberation.ranking import Ranking, exactly
from council.deliberation.record import DECISION_SCHEMA, ClosingRecord, problems, settle
from council.deliberation.refused import CANCELLED, RefusedCall
from council.deliberation.refused import last as last_refused
from council.deliberation.refused import note as note_refused
from council.deliberation.requests import Requests
from council.deliberation.stance import Stance, only_issued
from council.deliberation.stances_page import RANKS_NOTHING
from council.deliberation.stopping import Ending, reason_to_end, still_open
from council.deliberation.transcript import Closing, Evidence, Transcript, Turn
from council.engine.runs import PROVIDER, Parked, Run
from council.errors import CouncilError, InputUnreadable, ModelError, ReplayMiss
from council.llm.base import Message, TurnInfo, request_hash
from council.llm.structured import Problem
from council.safety.untrusted import plain_line
from council.safety.verdict import ALLOWED, Verdict

_STOPPED = "stopped"
# A step of its own: each call teaches how many characters a token has, and two equal tasks differ in it.
_WINDOW = "window"
MAX_FAILURES_IN_A_ROW = 3  # three agents in a row that cannot answer: the provider is down, not an agent


class CouncilSilent(CouncilError):
    """No agent could answer, or three in a row could not: the run ends with what there is."""

    code = "council_silent"


class _RoundsEnd(Exception):
    """No further round; the closing call follows."""


class EarlyStop(msgspec.Struct, frozen=True):
    """Why the rounds ended early: recorded, so that a resumed run ends them at the same step."""

    before: str
    reason: str


class Rules(msgspec.Struct, frozen=True):
    """The protocol of a council and its bounds, as its command says."""

    protocol: ProtocolName
    max_rounds: int
    early_stop: bool


class Deliberation:
    """One task of the council. `changed` is called whenever the transcript grew.

    A protocol reads `members`, `max_rounds` and the transcript, and lets members speak; it may set `closing_note`, which
    the closing call is told.
    """

    def __init__(
        self,
        run: Run,
        equipment: Equipment,
        start: StartView,
        task: str,
        rules: Rules,
        changed: Callable[[], None],
        verdict: Verdict = ALLOWED,
    ) -> None:
        """`verdict` is what the guardrails say of the task: agents are told how to treat it."""
        self._run = run
        self._equipment = equipment
        self._start = start
        self._rules = rules
        self.max_rounds = rules.max_rounds
        self.members = start.members
        self.roles = tuple(member.role for member in start.members)
        self.names = Names() if rules.protocol == "triad" else Names.hidden(self.roles, run.choice("names"))
        self.closing_note = ""
        self._changed = changed
        self._manner = manner_of(verdict)
        self._fencer = Fencer(run.secret)
        self._said = Discussion(self._fencer, self.names)
        self._contexts: dict[str, Message] = {}
        self._failures_in_a_row = 0
        self.transcript = Transcript(task)
        self._requests = Requests(run, equipment, start.guard, self.transcript, self._add, changed)
        self.closings: list[Closing] = []
        self.refused: list[RefusedCall] = []
        self.hearings: list[Hearing] = []
        self.settled: ClosingRecord | None = None
        self.stopped: EarlyStop | None = None
        self.ending: Ending | None = None

    async def deliberate(self, inputs: Sequence[str]) -> None:
        """All rounds, then the synthesis. Raises CouncilError when it cannot go on, Parked when it can later."""
        task, read = self.transcript.task, self.transcript.inputs
        for number, path in enumerate(dict.fromkeys(inputs), start=1):
            read.append(await self._requests.read_input(number, path))
        if read and not any(item.ok for item in read):
            reasons = "; ".join(f"`{plain_line(item.argument, 200)}`: {item.error}" for item in read)
            which = (
                "the input artifact could not" if len(read) == 1 else f"none of the {len(read)} input artifacts could"
            )
            raise InputUnreadable(
                f"{which} be read: {reasons}",
                fix="correct the paths (relative to the home; `council validate` names what may be meant) and drop it again",
            )
        self._changed()

        async def measure() -> int:
            return self._equipment.window_chars()

        window_chars = await self._run.step(_WINDOW, measure, type=int, durable=False)
        if window_chars:
            before = max(len(member.system) + len(self._context(member).text) for member in self._start.members)
            self._said.limit(int(window_chars * CONTEXT_SHARE) - before - INSTRUCTION_CHARS)
        try:
            await PROTOCOLS[self._rules.protocol](self)
        except _RoundsEnd:
            self._run.publish("rounds_end", reason=self.stopped.reason if self.stopped else "")
        if self.stopped is not None:
            self.ending = Ending("budget", self.stopped.reason, self._turns_left)
        elif self.ending is None and self._rules.early_stop:
            rounds = f"all {self.max_rounds} rounds" if self.max_rounds > 1 else "the one round"
            self.ending = Ending("cap", "; ".join(filter(None, (f"{rounds} took place", still_open(self.transcript)))))
        if not self.stopped and not any(turn.result.failure is None for turn in self.transcript.turns()):
            failures = [turn.result.failure for turn in self.transcript.turns() if turn.result.failure]
            raise CouncilSilent("no agent answered in any round.", fix=failures[-1].fix if failures else "")
        instruction = synthesis_instruction(self.closing_note)
        for chair in self.members:  # where one closing call brings nothing to read, the next member makes it
            name = "synthesis" if chair is self.members[0] else f"synthesis/{chair.role}"
            info = TurnInfo(chair.role, "synthesis", self.max_rounds, self.max_rounds, task)
            self._run.publish("synthesis", role=chair.role)
            messages = self._messages(chair, instruction)
            result = await self._ask(name, chair, messages, info)
            self.closings.append(Closing(chair.role, result))
            self._changed()
            failure = result.failure or await self._read_record(name, result, chair, messages, info)
            if failure is None or failure.kind == NO_BUDGET:  # a spent budget would refuse every other one too
                return

    # ── rounds ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def open_round(self, round_no: int, speakers: Sequence[Member]) -> None:
        """Tells the world of a new round; not of one that is only read again."""
        if not all(self._run.journal.recorded(f"round/{round_no}/{speaker.role}") for speaker in speakers):
            self._run.publish("round", round=round_no, max_rounds=self.max_rounds)

    async def speak(self, member: Member, round_no: int, duty: Duty) -> None:
        """One turn, heard by all that follow, and what it requests."""
        turn = await self._take_turn(member, round_no, duty, self._add)
        self._count_failures([turn])
        await self._requests.fulfil(member, turn, self._requests.of(turn))

    async def speak_at_once(self, members: Sequence[Member], round_no: int, duty: Callable[[Member], Duty]) -> None:
        """A turn of each, none of which hears another: as long as the slowest takes. Their requests come after it.

        Nothing of this depends on who is first: turns are added in the order of `members`, ids given in that order.
        """
        done: dict[str, Turn] = {}
        takes = [
            asyncio.ensure_future(
                self._take_turn(member, round_no, duty(member), lambda turn: done.__setitem__(turn.role, turn))
            )
            for member in members
        ]
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
                    self._said.add(turn)
                self._changed()
        failures = [failure for take in takes if (failure := take.exception()) is not None]
        for failure in failures:
            if not isinstance(failure, _RoundsEnd):
                raise failure
        self._count_failures(turns)
        asked = {turn.role: self._requests.of(turn) for turn in turns}  # before any is answered: no turn saw an answer
        for member in members:
            if member.role in done:
                await self._requests.fulfil(member, done[member.role], asked[member.role])
        if failures:
            raise _RoundsEnd

    def may_end(self, *, evidence_round_due: bool = False) -> bool:
        """True when an early stop is asked for, there is a reason for one and a turn to save; `ending` then says which.
        `evidence_round_due` as in `reason_to_end`."""
        if self.ending is None and self._rules.early_stop and self._turns_left:
            found = reason_to_end(self.transcript, self.roles, evidence_round_due=evidence_round_due)
            if found is not None:
                self.ending = Ending(*found, calls_saved=self._turns_left)
                self._run.publish("rounds_end", reason=self.ending.sentence)
        return self.ending is not None

    @property
    def _turns_left(self) -> int:
        """Turns that the rounds still hold."""
        rounds = min(self.max_rounds, 2) if self._rules.protocol == "review" else self.max_rounds
        return len(self.members) * rounds - len(self.transcript.turns())

    def choice(self, purpose: str) -> random.Random:
        """A lot that falls the same way after every restart."""
        return self._run.choice(purpose)

    async def _take_turn(self, member: Member, round_no: int, duty: Duty, keep: Callable[[Turn], None]) -> Turn:
        """`keep` gets the turn as far as it came, also when reading its block was cut off."""
        info = TurnInfo(member.role, "turn", round_no, self.max_rounds, self.transcript.task)
        name = f"round/{round_no}/{member.role}"
        news = not self._run.journal.recorded(name)  # what a resumed run only reads again is no event
        result = await self._ask(name, member, self._messages(member, duty.instruction), info)
        turn = Turn(member.role, round_no, result, advocate=duty.advocate, ballot=duty.ballot)
        try:
            if result.failure is None:
                turn = await self._read_block(turn, member, duty)
        finally:
            keep(turn)
        failure = result.failure.message if result.failure else ""
        if news:
            self._run.publish("turn_ended", role=member.role, round=round_no, failure=failure)
        self._changed()
        return turn

    async def _read_block(self, turn: Turn, member: Member, duty: Duty) -> Turn:
        """The turn with its stance or ranking, and its speech without that block."""
        info = TurnInfo(member.role, "other", turn.round, self.max_rounds, self.transcript.task)

        async def ask(number: int, messages: tuple[Message, ...]) -> TurnResult:
            return await self._ask(f"round/{turn.round}/{member.role}/repair/{number}", member, messages, info)

        if duty.ballot and is_extract(turn.result.model):  # it weighs nothing, and no second call would bring a ballot
            return msgspec.structs.replace(turn, fault=RANKS_NOTHING)
        if duty.ballot:
            check = exactly(duty.ballot)
            ballot = await read_block(turn.result, Ranking, duty.instruction, ask, check=check, required=True)
            ranking = ballot.value.ranking if ballot.value else ()
            return _with_block(turn, ballot, "Ranked without a word.", ranking=ranking)

        def check_evidence(stance: Stance) -> Iterable[Problem]:
            return only_issued(self.transcript.issued())(stance)

        block = await read_block(turn.result, Stance, duty.instruction, ask, check=check_evidence)
        return _with_block(turn, block, block.value.position if block.value else "", stance=block.value)

    def _messages(self, member: Member, instruction: Message) -> tuple[Message, ...]:
        said = self._said.message()
        return (self._context(member), *([said] if said else []), instruction)

    async def _ask(self, name: str, member: Member, messages: tuple[Message, ...], info: TurnInfo) -> TurnResult:
        asked = request_hash(member.model, member.system, messages)
        journal = self._run.journal
        if info.purpose == "turn" and journal.recorded(_STOPPED):  # a resumed run stops before the same step
            stopped = journal.result(_STOPPED, EarlyStop)
            if stopped.before == name or not journal.recorded(name):
                self.stopped = stopped
                raise _RoundsEnd

        async def call() -> TurnResult:
            if info.purpose == "turn":
                self._run.publish("turn_started", role=member.role, round=info.round)
            hearing = self._hearing(member, info)
            try:
                offered = self._equipment.native_tools and info.purpose == "turn" and info.round > 0
                said = await take_turn(
                    self._equipment.model_of(member),
                    system=member.system,
                    messages=messages,
                    info=info,
                    schema=DECISION_SCHEMA if info.purpose == "synthesis" else None,
                    tools=self._equipment.tools.specs(member.tools) if offered else (),
                    spell=self._equipment.tools.spell,
                    on_text=hearing,
                )
                if hearing is not None:
                    hearing.end()
                return said
            finally:
                if hearing is not None:
                    self.hearings.remove(hearing)

        refused = last_refused(journal, name)
        self.refused += [refused] if refused else []
        try:
            return await self._run.step(name, call, type=TurnResult, request=asked)
        except ReplayMiss:
            raise  # nobody was asked
        except ModelError as error:
            await self._note_refused(name, member, info, Failure(error.kind, error.message, error.fix))
            raise
        except asyncio.CancelledError as cancelled:
            if self._run.cancel_reason and CALL_CUT_OFF in getattr(cancelled, "__notes__", ()):
                words = f"{member.model} was asked, and had not answered when the run was cancelled."
                await self._note_refused(name, member, info, Failure(CANCELLED, words))
            raise
        except ProviderBusy as busy:
            raise Parked(PROVIDER, busy.seconds, busy.error) from busy
        except BudgetSpent as spent:
            if spent.tomorrow:  # another day is of use
                raise Parked("budget", self._equipment.seconds_to_midnight(), spent) from spent
            if info.purpose != "turn":
                failure = Failure(NO_BUDGET, spent.message, spent.fix)
                return await journal.put(name, TurnResult("", member.model, failure=failure), type=TurnResult)
            stopped = EarlyStop(name, f"{spent.message} To allow more: {spent.fix}.")
            self.stopped = await journal.put(_STOPPED, stopped, type=EarlyStop)
            raise _RoundsEnd from spent

    async def _note_refused(self, name: str, member: Member, info: TurnInfo, failure: Failure) -> None:
        self.refused.append(await note_refused(self._run.journal, name, member.model, info, failure))

    def _hearing(self, member: Member, info: TurnInfo) -> Hearing | None:
        """For whoever watches; repairs are not worth it."""
        if not self._equipment.streams or info.purpose == "other" or is_extract(member.model):
            return None

        def tell(hearing: Hearing, piece: str | None) -> None:
            self._run.publish("text", role=hearing.role, round=hearing.round, text=piece)
            self._changed()

        self.hearings.append(Hearing(member.role, info.round, tell))
        return self.hearings[-1]

    def _context(self, member: Member) -> Message:
        if member.role not in self._contexts:
            task = self._fencer.task(self.transcript.task)
            message = context_message(member.memory, task, self.transcript.inputs, self._fencer, self._manner)
            self._contexts[member.role] = message
        return self._contexts[member.role]

    def _add(self, entry: Turn | Evidence) -> None:
        self.transcript.entries.append(entry)
        self._said.add(entry)

    def _count_failures(self, turns: Sequence[Turn]) -> None:
        """Of turns taken at once, one answer is enough."""
        failures = [turn.result.failure for turn in turns if turn.result.failure is not None]
        self._failures_in_a_row = self._failures_in_a_row + len(failures) if len(failures) == len(turns) else 0
        if self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
            raise CouncilSilent(
                f"{self._failures_in_a_row} turns in a row brought no answer; the last: {failures[-1].message}",
                fix=failures[-1].fix,
            )

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_record(
        self, name: str, reply: TurnResult, chair: Member, messages: tuple[Message, ...], info: TurnInfo
    ) -> Failure | None:
        async def ask(number: int, request: tuple[Message, ...]) -> TurnResult:
            return await self._ask(f"{name}/repair/{number}", chair, request, info)

        if is_extract(reply.model):  # it quotes, and decides nothing that could be typed
            self.settled = ClosingRecord(None)
            return None
        check = problems(look_up(self.transcript), Holders(self.roles, self.names))
        settled = await settle(reply, messages, check, ask)
        if settled.failure is None:
            self.settled = settled
            return None
        failed = msgspec.structs.replace(reply, failure=settled.failure)
        self.closings[-1] = Closing(chair.role, failed, settled.repairs)
        self._changed()
        return settled.failure


def _with_block(turn: Turn, block: Block[Any], unspoken: str, **read: Any) -> Turn:
    """`unspoken` is shown of an agent that said nothing beside its block."""
    result = msgspec.structs.replace(turn.result, text=block.speech or unspoken)
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
