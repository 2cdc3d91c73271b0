"""Work on text from outside, beside the event loop and only for so long.

Every parser here takes time linear in its input, so a thread that is given up ends soon. What may wait for ever is given
a child process by its own room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from council.errors import TookTooLong

T = TypeVar("T")

DEADLINE_S = 30.0
_AT_ONCE_CHARS = 16_384  # no text of this size takes longer than a moment: the loop may wait for it


async def beside_the_loop(what: str, size_chars: int, work: Callable[[], T]) -> T:
    """The result of `work` on a text of that size, in a thread where it is large. Raises TookTooLong, which names `what`."""
    if size_chars <= _AT_ONCE_CHARS:
        return work()
    return await within(DEADLINE_S, what, asyncio.to_thread(work))


async def within(deadline_s: float, what: str, working: Awaitable[T]) -> T:
    """The result of `working`. Raises TookTooLong."""
    try:
        async with asyncio.timeout(deadline_s):
            return await working
    except TimeoutError:
        raise TookTooLong(f"{what} took longer than {deadline_s:g} s.", fix="ask for less of it") from None
