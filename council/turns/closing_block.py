"""The block at the end of a turn: taken out of what is shown, validated, and asked for again where it does not fit.

A request of a repair turn is short: the agent's system text, what it was asked, its own reply, what is wrong with it. It
does not carry the transcript again.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from council.llm.base import Message
from council.llm.structured import Check, Repair, Said, parse_block, repair_turns
from council.turns.result import TurnResult

T = TypeVar("T", bound=BaseModel)
_REQUESTS = re.compile(r"(?:\s*\[ORCHESTRATOR_REQUEST:[^\]\n]*\])*\s*", re.IGNORECASE)  # may stand behind a block
Ask = Callable[[int, tuple[Message, ...]], Awaitable[TurnResult]]  # repair turn N, as a step


@dataclass(frozen=True)
class Block(Generic[T]):
    """The end of a turn, read. `value` None and `fault` empty: there is no block. `speech` is the turn without it.
    `repairs` are the calls that mended it, `repair` the strongest thing that was done to read it."""

    value: T | None
    speech: str
    repair: Repair = "none"
    repairs: tuple[TurnResult, ...] = ()
    fault: str = ""


async def read_block(
    result: TurnResult, type: type[T], instruction: Message, ask: Ask, *, check: Check[T], required: bool = False
) -> Block[T]:
    """The block of a turn, mended with at most two more calls. `required`: also one that is missing is asked for.

    Only a block that ends the turn, as it was asked for, is the speaker's own; one amid its prose is quoted. A turn whose
    block stays unreadable is shown whole. What `ask` raises is raised.
    """
    complete = result.finish == "stop"
    parsed = parse_block(result.text, type, complete=complete, check=check)
    own = parsed.found and _REQUESTS.fullmatch(parsed.after) is not None
    if not own and not required:
        return Block(None, result.text)
    replies: list[TurnResult] = []

    async def ask_again(turn: int, messages: tuple[Message, ...]) -> Said | None:
        reply = await ask(turn, messages)
        replies.append(reply)
        return None if reply.failure is not None else Said(reply.text, reply.finish == "stop")

    said = Said(result.text, complete)
    settled = await repair_turns(parsed, said, (instruction,), type, ask_again, check=check)
    if settled.value is None:
        faults = "; ".join(str(problem) for problem in settled.problems)
        return Block(None, result.text, settled.repair, tuple(replies), faults or "no block")
    around = [part.strip() for part in (parsed.before, parsed.after) if part.strip()]
    speech = "\n\n".join(around) if parsed.found else result.text
    return Block(settled.value, speech, settled.repair, tuple(replies))
