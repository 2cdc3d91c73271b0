"""Work on text from outside, beside the event loop and only for so long.

Every parser here takes time linear in its input, so a thread that is given up ends soon. What may wait for ever is given
a child process by its own room.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

from council.errors import TookTooLong

T = TypeVar("T")
P = ParamSpec("P")

DEADLINE_S = 30.0
_SPARE_THREADS = 64  # made as they are needed; those that are given up may hold theirs for long
AT_ONCE_CHARS = 16_384  # no text of this size takes longer than a moment: the loop may wait for it


async def beside_the_loop(what: str, size_chars: int, work: Callable[[], T]) -> T:
    """The result of `work` on a text of that size, in a thread where it is large. Raises TookTooLong, which names `what`."""
    if size_chars <= AT_ONCE_CHARS:
        return work()
    return await within(DEADLINE_S, what, in_a_spare_thread(work))


async def in_a_spare_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, in one of the threads that nothing else needs. One that is given up goes on: in the threads of
    `asyncio.to_thread` some of these would keep a daemon from taking commands, and from ending runs."""
    inside = partial(contextvars.copy_context().run, partial(work, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_spare(), inside)


_spare = cache(partial(ThreadPoolExecutor, _SPARE_THREADS, thread_name_prefix="spare"))


async def within(deadline_s: float, what: str, working: Awaitable[T]) -> T:
    """The result of `working`. Raises TookTooLong."""
    try:
        async with asyncio.timeout(deadline_s):
            return await working
    except TimeoutError:
        raise TookTooLong(f"{what} took longer than {deadline_s:g} s.", fix="ask for less of it") from None
