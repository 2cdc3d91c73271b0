"""The order of jobs, how many run at once, and what a refusal leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from council.sandbox.cage import Sandbox
from council.sandbox.job import MAX_CODE_BYTES, Job, Level, Limits, Result


class Bench:
    """A backend whose jobs end when they are told to."""

    name = "bench"
    level = Level.L2

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.closed = False

    async def run(self, job: Job) -> Result:
        self.began.append(job.entry)
        await self.ends.setdefault(job.entry, asyncio.Event()).wait()
        return Result("refused" if job.entry == "no" else "ok", self.level, error="why" if job.entry == "no" else "")

    async def aclose(self) -> None:
        self.closed = True


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_jobs_begin_in_their_order_and_never_more_than_the_workers_at_once() -> None:
    bench = Bench()
    async with Sandbox(bench, workers=2, refuse=lambda detail: None) as sandbox:
        running = [asyncio.ensure_future(sandbox.run(Job("", name))) for name in "abcde"]
        await settled()
        assert bench.began == ["a", "b"]
        bench.ends["b"].set()
        await settled()
        assert bench.began == ["a", "b", "c"]
        for name in "acde":
            bench.ends.setdefault(name, asyncio.Event()).set()
        assert {(await each).status for each in running} == {"ok"}
        assert bench.began == list("abcde")
    assert bench.closed


async def test_a_refusal_is_recorded_with_the_hash_of_the_code_and_never_the_code() -> None:
    recorded: list[Mapping[str, Any]] = []
    bench = Bench()
    bench.ends["no"] = asyncio.Event()
    bench.ends["no"].set()
    async with Sandbox(bench, workers=1, refuse=recorded.append) as sandbox:
        assert (await sandbox.run(Job("secret = 1", "no"))).status == "refused"
        assert (await sandbox.run(Job("#" * (MAX_CODE_BYTES + 1), "f"))).status == "refused"
        assert (await sandbox.run(Job("", "f", {1, 2}))).status == "refused"
    assert recorded[0]["reason"] == "why"
    assert [detail["level"] for detail in recorded] == ["L2"] * 3
    assert {len(detail["code_sha256"]) for detail in recorded} == {64}
    assert "secret" not in str(recorded)
    assert bench.began == ["no"]


@pytest.mark.parametrize("asked", [Limits(1, 1, 1 << 20, 10), Limits(99, 99, 1 << 40, 1 << 20)])
def test_a_job_can_only_lower_a_limit(asked: Limits) -> None:
    given = asked.within(Limits())
    assert given.wall_s == min(asked.wall_s, 5)
    assert given.cpu_s == min(asked.cpu_s, 2)
    assert given.memory_bytes == min(asked.memory_bytes, 256 << 20)
    assert given.output_bytes == min(asked.output_bytes, 65_536)
