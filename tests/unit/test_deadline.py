"""Work on large texts leaves the event loop to others, and ends in time or by name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from council.deadline import beside_the_loop, in_a_spare_thread, within
from council.errors import TookTooLong
from council.knowledge.library import Library
from council.knowledge.tools import list_files
from council.tools.tool import ToolContext

LARGE = 100_000


def held_until_the_loop_turns() -> Callable[[], str]:
    """Work that ends only when the event loop goes on meanwhile."""
    turned = threading.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    return lambda: "done" if turned.wait(60) else "the loop stood still"


async def test_the_loop_goes_on_while_a_large_text_is_worked_on() -> None:
    assert await beside_the_loop("reading", LARGE, held_until_the_loop_turns()) == "done"


async def test_a_small_text_takes_no_thread() -> None:
    here = threading.get_ident()
    assert await beside_the_loop("reading", 100, threading.get_ident) == here
    assert await beside_the_loop("reading", LARGE, threading.get_ident) != here


async def test_what_does_not_end_in_time_is_told_by_name() -> None:
    with pytest.raises(TookTooLong, match="reading it took longer"):
        await within(0.01, "reading it", asyncio.Event().wait())


async def test_a_listing_leaves_the_loop_to_others() -> None:
    work = held_until_the_loop_turns()

    class Slow(Library):
        def __init__(self) -> None:
            """Reads nothing."""

        def list(self, glob: str) -> tuple[list[str], bool]:
            return [work()], False

    tool = list_files(Slow())
    assert tool.run is not None
    result = await tool.run(tool.arguments.model_validate({"glob": "**"}), context=ToolContext())
    assert result.text == "done"


async def test_work_that_was_given_up_keeps_no_thread_from_the_daemon() -> None:
    end = threading.Event()
    try:
        for _ in range(20):
            with pytest.raises(TookTooLong):
                await within(0.01, "reading it", in_a_spare_thread(end.wait, 60))
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "taken"), 30) == "taken"
    finally:
        end.set()
