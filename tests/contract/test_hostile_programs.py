"""Hostile programs do outside the cage what they are meant to do, seen by the host, and in the cage nothing of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from council.sandbox.cage import Sandbox
from council.sandbox.job import Job, Limits
from council.sandbox.zygotes import Zygotes
from tests.cage import Host, adopted_orphans, below, open_descriptors
from tests.hostile import BY_EFFECT

TIGHT = Limits(wall_s=3, cpu_s=1)
BRIEF = Limits(wall_s=0.3)
GREETING = Job("def greet(name):\n    return f'hello {name}'\n", "greet", "council")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with adopted_orphans(), Host(tmp_path) as host:
        for name, value in host.environment.items():
            monkeypatch.setenv(name, value)  # what a careless daemon would hand down
        yield host


def test_there_are_more_than_sixty_four_of_them() -> None:
    assert sum(map(len, BY_EFFECT.values())) >= 64


@pytest.mark.parametrize("effect", BY_EFFECT)
def test_outside_the_cage_the_host_sees_the_effect_of_each(effect: str, host: Host) -> None:
    seen = {}
    for name, code in BY_EFFECT[effect].items():
        with host.watching() as sighting:
            host.control(code, sighting, wall_s=0.5 if effect == "lasting" else 30)
        seen[name] = sighting.effects
    assert [name for name, effects in seen.items() if effect not in effects] == []


@pytest.mark.parametrize("effect", BY_EFFECT)
@pytest.mark.parametrize("bubblewrap", [False, True], ids=["bare", "bubblewrap"])
async def test_in_the_cage_the_host_sees_nothing_and_the_next_job_is_fine(
    effect: str, bubblewrap: bool, host: Host, require_service: Callable[[str, bool, str], None]
) -> None:
    require_service("bubblewrap", not bubblewrap or shutil.which("bwrap") is not None, "apt install bubblewrap")
    seen, next_jobs = {}, []
    async with Sandbox(Zygotes(bubblewrap=bubblewrap), workers=1, refuse=print) as sandbox:
        assert (await sandbox.run(GREETING)).value == "hello council"
        processes, descriptors = below(), open_descriptors()
        for name, code in BY_EFFECT[effect].items():
            job = Job(code, "attack", host.argument, limits=BRIEF if effect == "lasting" else TIGHT)
            with host.watching() as sighting:
                result = await sandbox.run(job)
                sighting.answer = json.dumps(result.value) if result.status == "ok" else result.error + result.traceback
                sighting.peak_bytes = result.peak_memory_bytes
                sighting.sent_bytes = len(sighting.answer)
            seen[name] = sighting.effects
            next_jobs.append((await sandbox.run(GREETING)).value)
        assert {name: effects for name, effects in seen.items() if effects} == {}
        assert set(next_jobs) == {"hello council"}
        assert below() == processes
        assert open_descriptors() <= descriptors  # fewer: those that an earlier test left to the collector
    assert below() < processes
