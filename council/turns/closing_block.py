"""The block at the end of a turn: taken out of what is shown, validated, and asked for again where it does not fit. A
request of a repair turn does not carry the transcript again."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from council.llm.base import Message
from council.llm.structured import Check, Reading, Repair, Settlement, parse_block, repair_turns
from council.turns.result import TurnResult

T = TypeVar("T", bound=BaseModel)
_REQUESTS = re.compile(r"(?:\s*\[ORCHESTRATOR_REQUEST:[^\]\n]*\])*\s*", re.IGNORECASE)  # may stand behind a block
_MARKS = ("{", "```", "~~~")  # one of which every block has
Ask = Callable[[int, tuple[Message, ...]], Awaitable[TurnResult]]  # repair turn N, as a step


@dataclass(frozen=True)
class ClosingBlock(Generic[T]):
    """`value` None and `fault` empty: there is no block. `speech` is the turn without it, also without one that stays
    unreadable. `repairs` are the calls that
    mended it, `repair` the strongest thing that was done to read it."""

    value: T | None
    speech: str
    repair: Repair = "none"
    repairs: tuple[TurnResult, ...] = ()
    fault: str = ""


async def read_block(
    result: TurnResult, type: type[T], instruction: Message, ask: Ask, *, check: Check[T], required: bool = False
) -> ClosingBlock[T]:
    """The block of a turn, mended with at most two more calls. `required`: also one that is missing is asked for. Only
    a block that ends the turn is the speaker's own; one amid its prose is quoted."""
    if not required and not any(mark in result.text for mark in _MARKS):
        return ClosingBlock(None, result.text)
    complete = result.finish == "stop"
    parsed = parse_block(result.text, type, complete=complete, check=check)
    own = parsed.found and _REQUESTS.fullmatch(parsed.after) is not None
    if not own and not required:
        return ClosingBlock(None, result.text)
    settled, repairs = await mend(parsed, result, (instruction,), type, ask, check)
    around = [part.strip() for part in (parsed.before, parsed.after) if part.strip()]
    speech = "\n\n".join(around) if parsed.found else result.text
    faults = "; ".join(problem.told for problem in settled.problems) or "no block"
    return ClosingBlock(settled.value, speech, settled.repair, repairs, "" if settled.value is not None else faults)


async def mend(
    first: Reading[T], result: TurnResult, messages: Sequence[Message], type: type[T], ask: Ask, check: Check[T]
) -> tuple[Settlement[T], tuple[TurnResult, ...]]:
    """The reading of a reply to `messages` and the calls, at most two, that mended it; one that fails is the last."""
    calls: list[TurnResult] = []

    async def again(number: int, request: tuple[Message, ...]) -> TurnResult | None:
        calls.append(await ask(number, request))
        return calls[-1] if calls[-1].failure is None else None

    return await repair_turns(first, result, messages, type, again, check=check), tuple(calls)


def asked_to_correct(count: int, what: str = "it") -> str:
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    return f"asked {times} to correct {what}"
