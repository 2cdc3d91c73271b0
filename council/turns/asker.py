"""Asking a model in the name of an agent: its reply, or why there is none, as a step of the run.

A failed call is a result (`Failure`), so that a resumed run sees the same. Errors that every further call would meet,
and waits longer than a turn may take, are raised instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import msgspec

from council.budgets.budget import BudgetSpent
from council.budgets.metering import CALL_CUT_OFF
from council.engine.records import Part
from council.engine.runs import NETWORK, PROVIDER, Run, RunPause
from council.errors import ModelError, ModelErrorKind, ReplayMiss
from council.events import SpeechPiece, TurnStart
from council.llm.base import Message, Model, OnText, ToolCall, ToolSpec, TurnInfo, is_extract, request_hash
from council.logs import log_context
from council.markup import without_thoughts
from council.safety.untrusted import clean
from council.turns.equipment import Equipment, Speaker
from council.turns.result import CANCELLED, CLOSING_CALLS, CallPurpose, Failure, ModelCall, TurnResult
from council.turns.streaming import Blocks, Hearing


class Asker:
    """Asks the models of one run. A recorded step is never asked again."""

    def __init__(
        self, run: Run, equipment: Equipment, changed: Callable[[], None], blocks: Blocks = lambda text: False
    ) -> None:
        """`changed` is called whenever somebody was heard to say more, but for words that `blocks` is true of."""
        self._blocks = blocks
        self._run = run
        self._equipment = equipment
        self._changed = changed
        self.refused: list[ModelCall] = []  # the run ended with them: a fatal error, or a cancel that cut them off
        self.hearings: list[Hearing] = []  # of those who speak just now

    async def ask(
        self,
        step: str,
        speaker: Speaker,
        messages: tuple[Message, ...],
        info: TurnInfo,
        purpose: CallPurpose = "turn",
        schema: Mapping[str, Any] | None = None,
        spares: bool = False,
    ) -> TurnResult:
        """The recorded reply of `step`, else the speaker's reply now, recorded. `info.purpose` "turn": tools are
        offered as functions; "other": nobody watches it come. Raises ModelError when it is fatal, unless it `spares` the
        run; RunPause when the run can go on later, and of a turn BudgetSpent."""
        run, equipment = self._run, self._equipment
        is_turn = info.purpose == "turn"
        tries = list(takewhile(run.recorded, map(f"{step}/refused/{{}}".format, count(1))))
        if tries and run.is_closed and not run.recorded(step) and (last := run.value(tries[-1], ModelCall)):
            self.refused.append(msgspec.structs.replace(last, purpose=purpose))

        async def note_refused(failure: Failure) -> None:
            """The step stays open, so that a resumed run asks again. The call counts where it was the last."""
            result = TurnResult("", speaker.model, failure=failure)
            refused = ModelCall(step, info.role, round_no, result, purpose)
            self.refused.append(await run.put(f"{step}/refused/{len(tries) + 1}", refused, type=ModelCall))

        round_no = 0 if purpose in CLOSING_CALLS else info.round
        try:
            request = request_hash(speaker.model, speaker.system, messages)
            return await run.step(
                step,
                lambda: self._reply(speaker, messages, info, schema),
                type=TurnResult,
                request=request,
                part=Part(purpose, info.role, round_no),
            )
        except ReplayMiss:
            raise  # nobody was asked
        except ModelError as error:
            if spares:
                failed = TurnResult.failed(speaker.model, error)
                return await run.put(step, failed, type=TurnResult, part=Part(purpose, info.role, round_no))
            await note_refused(Failure.of(error))
            raise
        except asyncio.CancelledError as cancelled:
            if run.cancel_reason and CALL_CUT_OFF in getattr(cancelled, "__notes__", ()):
                words = f"{speaker.model} was asked, and had not answered when the run was cancelled."
                await note_refused(Failure(CANCELLED, words))
            raise
        except Postponement as postponed:
            raise parked(run, postponed.error) from postponed
        except BudgetSpent as spent:
            if spent.tomorrow:  # another day is of use
                raise RunPause("budget", equipment.seconds_to_midnight(), spent) from spent
            if is_turn:
                raise
            return await run.put(step, TurnResult.failed(speaker.model, spent), type=TurnResult)

    async def _reply(
        self, speaker: Speaker, messages: tuple[Message, ...], info: TurnInfo, schema: Mapping[str, Any] | None
    ) -> TurnResult:
        run, equipment, is_turn = self._run, self._equipment, info.purpose == "turn"

        def tell(hearing: Hearing, piece: str | None) -> None:
            run.publish(SpeechPiece(role=speaker.role, round=info.round, text=piece))
            self._changed()

        if is_turn:
            run.publish(TurnStart(role=speaker.role, round=info.round))
        hearing = None
        if equipment.streams and info.purpose != "other" and not is_extract(speaker.model):
            keys = (schema or {}).get("required", ())
            hearing = Hearing(speaker.role, info.round, tell, self._blocks, equipment.redact, keys)
            self.hearings.append(hearing)
        try:
            result = await ask_model(
                equipment.model_of(speaker),
                system=speaker.system,
                messages=messages,
                info=info,
                schema=schema,
                tools=equipment.functions(speaker.tools) if is_turn else (),
                spell=equipment.tools.spell,
                on_text=hearing,
            )
            if hearing is not None:
                hearing.end()
            return result
        finally:
            if hearing is not None:
                self.hearings.remove(hearing)


async def ask_model(
    model: Model,
    *,
    system: str,
    messages: Sequence[Message],
    info: TurnInfo,
    schema: Mapping[str, Any] | None = None,
    tools: Sequence[ToolSpec] = (),
    spell: Callable[[ToolCall], str] | None = None,
    on_text: OnText | None = None,
) -> TurnResult:
    """Asks the model once. A native call stands in the text as the request that `spell` makes of it: from here on there
    is one spelling. Raises ModelError when it is fatal, Postponement when a rate limit or a missing network outlasts
    the retries."""
    try:
        with log_context(agent=info.role or None, round=info.round or None):
            reply = await model.generate(
                messages, system=system, schema=schema, tools=tools, on_text=on_text, info=info
            )
    except ModelError as error:
        if error.fatal:
            raise
        if error.kind in ("rate", UNREACHABLE) or (error.kind == "overload" and error.retry_after_s is not None):
            raise Postponement(error) from error
        return TurnResult.failed(model.name, error)
    whole = clean(reply.text).strip()  # without what nobody sees
    text = without_thoughts(whole).strip()
    thoughts = text != whole
    if spell is not None:
        calls = dict.fromkeys(clean(spell(call)) for call in reply.tool_calls)
        text = "\n\n".join(part for part in (text, *(call for call in calls if call not in text)) if part)
    failure = None
    if thoughts and not text:
        cut = reply.finish == "length"
        what = "was cut off before its thoughts ended" if cut else "held nothing but thoughts"
        fix = "raise `max_output_tokens`" if cut else "reword the task or name another model"
        failure = Failure("length" if cut else "empty", f"the reply of {reply.model} {what}.", fix)
    finish = "stop" if reply.finish == "tool_calls" else reply.finish
    return TurnResult(text, reply.model, finish, reply.usage, failure, reply.replaced, thoughts)


async def attempt(
    model: Model,
    *,
    system: str,
    messages: Sequence[Message],
    info: TurnInfo,
    schema: Mapping[str, Any] | None = None,
    waits: Run | None = None,
) -> TurnResult:
    """As `ask_model`, for what no run is lost over: whatever goes wrong is a result. Raises ReplayMiss, and RunPause
    where the run `waits` for the network."""
    try:
        return await ask_model(model, system=system, messages=messages, info=info, schema=schema)
    except ReplayMiss:
        raise
    except Postponement as postponed:
        if waits is not None and postponed.error.kind == UNREACHABLE:
            raise parked(waits, postponed.error) from postponed
        return TurnResult.failed(model.name, postponed.error)
    except (ModelError, BudgetSpent) as error:
        return TurnResult.failed(model.name, error)


UNREACHABLE: ModelErrorKind = "unreachable"
_NETWORK_PAUSE_S, _MAX_NETWORK_PAUSE_S = 5.0, 300.0  # a laptop that wakes is back in seconds; a failed line takes hours
_DEFAULT_RATE_WAIT_S = 60.0  # a rate limit without Retry-After: providers count by the minute


class Postponement(Exception):
    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


def parked(run: Run, error: ModelError) -> RunPause:
    """The wait of a run for what a call was postponed for. Nobody says when a network is back: the pauses grow."""
    if error.kind == UNREACHABLE:
        earlier = run.waits_for(NETWORK)
        return RunPause(NETWORK, min(_NETWORK_PAUSE_S * 2.0 ** min(earlier, 16), _MAX_NETWORK_PAUSE_S), error)
    return RunPause(PROVIDER, error.retry_after_s or _DEFAULT_RATE_WAIT_S, error)
