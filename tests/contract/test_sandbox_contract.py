"""What every cage does: a zygote, one inside bubblewrap, and a container. All are real."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from council.sandbox.cage import Backend, Sandbox
from council.sandbox.job import MAX_ARGUMENT_BYTES, MAX_CODE_BYTES, Job, Level, Limits
from council.sandbox.probes import sweep_job
from council.sandbox.zygotes import Zygotes
from tests.cage import adopted_orphans, below, is_running, living
from tests.harness import wait_until

FORGERY = "import os\ndef forge(document):\n    os.write(3, {}.encode('utf-8', 'surrogatepass'))\n    os._exit(0)\n"
QUICK = Limits(wall_s=1.0)
ERRORS = [
    ("def f(x:\n    return 1", "SyntaxError: '(' was never closed (<job>, line 1)"),
    ("def g(x): return 1", "No entry point: the code defines no function 'f'"),
    ("f = 5", "No entry point: the code defines no function 'f'"),
    ("def f(x): return 1 / 0", "ZeroDivisionError: division by zero"),
    ("def f(x): raise SystemExit(5)", "SystemExit: 5"),
    ("class Odd(Exception):\n    def __str__(self): raise Odd\ndef f(x): raise Odd", "An exception that cannot be shown"),
    ("import antigravity_that_is_not_there", "ModuleNotFoundError: No module named 'antigravity_that_is_not_there'"),
    ("def f(x): return {1}", "The answer is not JSON: TypeError: Object of type set is not JSON serializable"),
    ("def f(x): return float('nan')", "The answer is not JSON: ValueError: Out of range float values are not JSON compliant"),
    ("def f(x):\n    x = []\n    x.append(x)\n    return x", "The answer is not JSON: ValueError: Circular reference detected"),
    ("class Odd(dict):\n    def items(self): 1 / 0\ndef f(x): return Odd(a=1)",
     "The answer is not JSON: ZeroDivisionError: division by zero"),
    ("def f(x): raise type('', (Exception,), {})('')", "An exception that cannot be shown"),
    ("import os\ndef f(x): os._exit(0)", "The job ended without an answer"),
]  # fmt: skip

_SHAPE, _JSON, _HIDDEN = "not what the harness writes", "not one JSON document", "invisible or control characters"
FORGERIES = [
    ('\'{"value": "forged"}\'', "ok", "forged", ""),  # it is only what the code could have returned
    ('\'{"error": "MemoryError: no"}\'', "error", None, "MemoryError: no"),
    ('\'{"status": "refused", "level": 4}\'', "error", None, _SHAPE),
    ('\'{"value": 1, "level": 4}\'', "error", None, _SHAPE),
    ('\'{"error": ["x"]}\'', "error", None, _SHAPE),
    ("'[]'", "error", None, _SHAPE),
    ("'{\"value\": NaN}'", "error", None, _JSON),
    ("'{\"value\": 1e999}'", "error", None, _JSON),
    ("'{\"value\": 1}{\"value\": 2}'", "error", None, _JSON),
    ("'{\"value\": \"\\\\ud800\"}'", "error", None, _JSON),
    ("'{\"value\": \"\\ud800\"}'", "error", None, _JSON),
    ("'{\"value\": \"\u202e\"}'", "error", None, _HIDDEN),
    ("'{\"value\": \"\u3164\"}'", "error", None, _HIDDEN),
    ("'{\"value\": {\"\\\\u0000\": 1}}'", "error", None, _HIDDEN),
    ("'{\"value\": ' + '9' * 400 + '}'", "error", None, "it holds an integer of more than 64 bits"),
    ("'{\"value\": ' + '[' * 5000 + ']' * 5000 + '}'", "error", None, "it is nested"),
    ("'{\"value\": ' + '[' * 40 + ']' * 40 + '}'", "error", None, "it is nested more than 32 deep"),
]  # fmt: skip


@pytest.fixture(params=["zygote", "bubblewrap", "docker"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Backend:
    if request.param == "docker":
        monkeypatch.setenv("DOCKER_HOST", request.getfixturevalue("docker_server"))
        from council.sandbox.containers import Containers

        return Containers()
    require: Callable[[str, bool, str], None] = request.getfixturevalue("require_service")
    require("bubblewrap", request.param == "zygote" or shutil.which("bwrap") is not None, "apt install bubblewrap")
    return Zygotes(bubblewrap=request.param == "bubblewrap")


@pytest.fixture
async def sandbox(backend: Backend) -> AsyncIterator[Sandbox]:
    async with Sandbox(backend, workers=2, refuse=lambda detail: None) as sandbox:
        yield sandbox


def job(body: str, argument: Any = None, **more: Any) -> Job:
    return Job(f"def f(x):\n    {body}\n", "f", argument, **more)


async def test_argument_and_answer_are_json(sandbox: Sandbox, backend: Backend) -> None:
    argument = {"text": "é 漢 🙂\n", "list": [1, -2.5, None, True], "large": 2**62}
    result = await sandbox.run(job("return [x, len(x['list'])]", argument))
    assert (result.status, result.value, result.error) == ("ok", [argument, 4], "")
    assert result.level == backend.level >= Level.L2
    assert result.wall_s > 0
    assert result.cpu_s > 0
    assert result.peak_memory_bytes > 1 << 20


async def test_an_error_is_told_in_the_words_of_the_source(sandbox: Sandbox) -> None:
    results = [await sandbox.run(Job(code, "f")) for code, _ in ERRORS]
    assert [result.error for result in results] == [error for _, error in ERRORS]
    assert {(result.status, result.value) for result in results} == {("error", None)}


async def test_odd_sources_are_errors_of_their_own_job(sandbox: Sandbox) -> None:
    for code in (
        "(" * 60_000,
        "def f(x): return '\0'",
        "x = " + "-" * 50_000 + "1",
        "f = lambda x: " + "x." * 20_000 + "x",
    ):
        assert (await sandbox.run(Job(code, "f"))).status in ("error", "memory")
    for code in ("# coding: utf-7\ndef f(x): return x", "from __future__ import annotations\ndef f(x: no): return x"):
        assert (await sandbox.run(Job(code, "f", 7))).value == 7


async def test_a_traceback_shows_the_foreign_code_and_nothing_of_the_cage(sandbox: Sandbox) -> None:
    result = await sandbox.run(job("return [][x]", 3))
    assert 'File "<job>", line 2, in f\n    return [][x]' in result.traceback
    assert "<cage>" not in result.traceback
    assert "<harness>" not in result.traceback


async def test_a_wall_clock_ends_a_sleeper_and_the_next_job_is_fine(sandbox: Sandbox) -> None:
    slow = await sandbox.run(job("import time\n    time.sleep(99)", limits=QUICK))
    assert (slow.status, slow.error) == ("timeout", "Timed out after 1s")
    assert (await sandbox.run(job("return x", 7))).value == 7


async def test_more_memory_than_allowed_is_refused_to_it(sandbox: Sandbox) -> None:
    result = await sandbox.run(job("return len(b'x' * (400 << 20))"))
    assert (result.status, result.error) == ("memory", "MemoryError: more than 256 MiB")
    assert result.peak_memory_bytes <= 256 << 20
    assert (await sandbox.run(job("return x", 7))).value == 7


async def test_a_flood_is_cut(sandbox: Sandbox) -> None:
    flood = await sandbox.run(Job("import os\nwhile True:\n    os.write(3, b'[' * 4096)", "f"))
    assert (flood.status, flood.error) == ("output_cap", "The answer is longer than 65,536 bytes")
    large = await sandbox.run(job("return 'x' * 10_000_000"))
    assert (large.status, large.value) == ("output_cap", None)
    assert (await sandbox.run(job("return x", 7))).value == 7


async def test_what_it_prints_goes_nowhere(sandbox: Sandbox) -> None:
    body = "import sys\n    print('{\"value\": 1}')\n    sys.stderr.write('x' * 1_000_000)\n    return 2"
    assert (await sandbox.run(job(body))).value == 2


async def test_code_and_argument_that_are_too_large_are_not_started(sandbox: Sandbox) -> None:
    for refused in (
        Job("#" * (MAX_CODE_BYTES + 1), "f"),
        job("return x", "x" * MAX_ARGUMENT_BYTES),
        job("return x", float("inf")),
        Job("def f(x): '\ud800'", "f"),
    ):
        result = await sandbox.run(refused)
        assert (result.status, result.wall_s) == ("refused", 0.0)
    assert (await sandbox.run(job("return len(x)", "x" * (MAX_ARGUMENT_BYTES - 2)))).value == MAX_ARGUMENT_BYTES - 2


async def test_a_job_can_ask_for_less_memory_and_processor_time(sandbox: Sandbox) -> None:
    less = Limits(wall_s=30, cpu_s=1, memory_bytes=128 << 20)
    memory = await sandbox.run(job("return len(b'x' * (140 << 20))", limits=less))
    assert (memory.status, memory.error) == ("memory", "MemoryError: more than 128 MiB")
    for body in ("import re\n    re.match('(a+)+$', 'a' * 40 + 'b')", "return 9 ** 9 ** 9"):
        result = await sandbox.run(job(body, limits=less))
        assert result.status == "timeout"  # on a machine that is busy, the wall clock may end it first
        assert result.cpu_s < 1.9  # without the limit it would have had two seconds, or thirty


@pytest.mark.parametrize(
    "limits", [Limits(wall_s=0), Limits(cpu_s=-1), Limits(memory_bytes=-1), Limits(output_bytes=-1)]
)
async def test_a_limit_that_would_be_none_is_refused(limits: Limits, sandbox: Sandbox) -> None:
    result = await sandbox.run(job("return x", limits=limits))
    assert (result.status, result.error) == ("refused", "A limit is not above zero")


async def test_a_job_that_closes_its_answer_and_goes_on_is_ended(sandbox: Sandbox) -> None:
    body = "import os, time\n    os.write(3, b'{\"value\": 1}')\n    os.close(3)\n    time.sleep(99)"
    result = await sandbox.run(job(body, limits=QUICK))
    assert result.status in ("timeout", "error")
    assert "MemoryError" not in result.error
    assert (await sandbox.run(job("return x", 7))).value == 7


async def test_a_job_that_ends_as_it_is_killed_does_not_take_the_next_with_it(sandbox: Sandbox) -> None:
    values = []
    for _ in range(20):  # the answer is just too long: its end and the kill cross each other
        assert (await sandbox.run(job("return 'x' * 69_000"))).status == "output_cap"
        values.append((await sandbox.run(job("return x", 7))).value)
    assert values == [7] * 20


async def test_a_sandbox_that_closes_ends_the_job_that_runs(sandbox: Sandbox) -> None:
    with adopted_orphans():
        before = below()
        await sandbox.run(job("return x"))
        running = asyncio.ensure_future(sandbox.run(job("import time\n    time.sleep(99)")))
        await asyncio.sleep(0.3)
        await sandbox.aclose()
        assert (await running).status == "sandbox_lost"
        await asyncio.to_thread(wait_until, lambda: living() <= before, "no process is left")


async def test_a_harness_turns_a_job_into_a_call(sandbox: Sandbox) -> None:
    source = "import math\ndef call(function, argument):\n    return {'told': function(math.pi, argument)}\n"
    assert (await sandbox.run(Job("def f(a, b): return [a > 3, b]", "f", 5, harness=source))).value == {
        "told": [True, 5]
    }
    assert (await sandbox.run(job("return x", 7))).value == 7


async def test_the_same_seed_gives_the_same_numbers_and_the_same_order_of_sets(backend: Backend) -> None:
    body = "import random\n    return [random.random(), list({'a', 'b', 'c', 'd', 'e'}), hash('council')]"
    values = []
    for _ in range(2):  # a process of its own each time
        async with Sandbox(backend, workers=1, refuse=lambda detail: None) as sandbox:
            values += [(await sandbox.run(job(body, seed=seed))).value for seed in (1, 1, 2)]
    assert values[0] == values[1] == values[3] == values[4]
    assert values[2] == values[5] != values[0]


async def test_a_job_knows_nothing_of_the_one_before(sandbox: Sandbox) -> None:
    await sandbox.run(job("import builtins, math\n    builtins.left = math.left = 1"))
    body = "import builtins, math, os\n    return [hasattr(builtins, 'left'), hasattr(math, 'left'), dict(os.environ)]"
    assert (await sandbox.run(job(body))).value == [False, False, {}]


async def test_a_forged_answer_reaches_the_caller_as_what_it_is_or_not_at_all(
    sandbox: Sandbox, backend: Backend
) -> None:
    results = [await sandbox.run(Job(FORGERY.format(ascii(eval(text))), "forge")) for text, *_ in FORGERIES]
    assert [(result.status, result.value) for result in results] == [
        (status, value) for _, status, value, _ in FORGERIES
    ]
    assert [error in result.error for result, (*_, error) in zip(results, FORGERIES, strict=True)] == [True] * len(
        results
    )
    assert {result.level for result in results} == {backend.level}


async def test_a_caller_that_no_longer_waits_leaves_nothing_behind(sandbox: Sandbox) -> None:
    with adopted_orphans():
        before = below()
        await sandbox.run(job("return x"))
        waiting = asyncio.ensure_future(sandbox.run(job("import time\n    time.sleep(99)")))
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await sandbox.run(job("return x", 7))).value == 7
        await sandbox.aclose()
        await asyncio.to_thread(wait_until, lambda: living() <= before, "no process is left")


class TestZygotes:
    @staticmethod
    def jobs() -> set[int]:
        """The children of zygotes: with the limits of a job upon them."""
        return {pid for pid in living() if "Max open files            8 " in Path(f"/proc/{pid}/limits").read_text()}

    @pytest.fixture(params=[False, True], ids=["bare", "bubblewrap"])
    def backend(self, request: pytest.FixtureRequest) -> Backend:
        return Zygotes(bubblewrap=request.param)

    async def test_every_system_call_that_is_not_allowed_is_refused(self, sandbox: Sandbox) -> None:
        found = (await sandbox.run(sweep_job())).value
        assert found["tried"] > 900
        assert (found["passed"], found["executable_memory"]) == ([], False)
        assert (found["descriptors"], found["environment"]) == ([0, 1, 2, 3], {})

    async def test_a_signal_of_the_terminal_is_for_council_alone(self, sandbox: Sandbox) -> None:
        before = below()
        await sandbox.run(job("return x"))
        assert os.getpgrp() not in {os.getpgid(pid) for pid in living() - before}

    async def test_a_job_has_no_capability_even_when_the_daemon_has_all(self, sandbox: Sandbox) -> None:
        before = below()
        running = asyncio.ensure_future(sandbox.run(job("import time\n    time.sleep(99)")))
        [pid] = await asyncio.to_thread(wait_until, lambda: self.jobs() - before, "the job runs")
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        held = dict(line.split(":\t") for line in lines if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb")))
        assert set(held.values()) == {"0" * 16}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def test_a_lost_zygote_loses_its_job_and_no_other(self, sandbox: Sandbox) -> None:
        before = below()
        running = asyncio.ensure_future(sandbox.run(job("import time\n    time.sleep(99)")))
        await asyncio.to_thread(wait_until, lambda: self.jobs() - before, "the job runs")
        for pid in below() - before - self.jobs():
            with contextlib.suppress(ProcessLookupError):  # it ended with the one before
                os.kill(pid, signal.SIGKILL)
        assert (await running).status == "sandbox_lost"
        assert (await sandbox.run(job("return x", 7))).value == 7
        assert not self.jobs() - before

    async def test_a_zygote_that_died_between_jobs_is_replaced(self, sandbox: Sandbox) -> None:
        before = below()
        await sandbox.run(job("return x"))
        killed = below() - before
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):  # it ended with the one before
                os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_until, lambda: not any(map(is_running, killed)), "all of it is dead")
        assert (await sandbox.run(job("return x", 7))).value == 7

    async def test_a_zygote_is_replaced_after_its_jobs(self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("council.sandbox.zygotes.JOBS_OF_ONE", 2)
        seen, before = [], below()
        for _ in range(5):
            await sandbox.run(job("return x"))
            seen.append(living() - before)
        assert seen[0]
        assert seen[1] == seen[3] == set()
        assert not seen[0] & seen[2]

    async def test_two_workers_work_at_once(self, sandbox: Sandbox) -> None:
        slow = asyncio.ensure_future(sandbox.run(job("import time\n    time.sleep(99)", limits=Limits(wall_s=4))))
        assert (await sandbox.run(job("return x", 7))).value == 7
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)

    async def test_a_corrupt_program_ends_its_own_process_alone(self, sandbox: Sandbox) -> None:
        body = "import ctypes\n    ctypes.string_at(0)"
        result = await sandbox.run(job(body))
        assert (result.status, result.error) == ("error", "The job's process was ended by SIGSEGV")
        assert (await sandbox.run(job("return x", 7))).value == 7


class TestContainers:
    @pytest.fixture
    def backend(self, docker_server: str, monkeypatch: pytest.MonkeyPatch) -> Backend:
        monkeypatch.setenv("DOCKER_HOST", docker_server)
        from council.sandbox.containers import Containers

        return Containers()

    async def test_what_a_job_leaves_behind_is_gone_for_the_next(self, sandbox: Sandbox) -> None:
        folders = "    folders = ('/tmp', '/dev/mqueue')\n"
        leave = Job(
            f"import os, time\ndef f(x):\n{folders}    for folder in folders:\n        open(folder + '/left', 'w').close()\n"
            "    if os.fork() == 0:\n        os.close(3)\n        time.sleep(99)\n    return list(map(os.listdir, folders))\n",
            "f",
        )
        look = Job(
            f"import os\ndef f(x):\n{folders}    running = [name for name in os.listdir('/proc') if name.isdigit()]\n"
            "    return [*map(os.listdir, folders), len(running)]\n",
            "f",
        )
        assert (await sandbox.run(leave)).value == [["left"], ["left"]]
        assert (await sandbox.run(look)).value == [[], [], 2]  # the container's first process, and the job

    async def test_a_container_is_kept_for_the_next_job_when_nothing_is_left(self, sandbox: Sandbox) -> None:
        look = "return int(open('/proc/1/stat').read().rpartition(')')[2].split()[19])"
        started = [(await sandbox.run(job(look))).value for _ in range(2)]
        slow = await sandbox.run(job("import time\n    time.sleep(99)", limits=QUICK))
        started.append((await sandbox.run(job(look))).value)
        assert slow.status == "timeout"
        assert len(set(started)) == 1

    async def test_a_proxy_of_the_users_docker_configuration_is_not_told_to_a_job(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "config.json").write_text('{"proxies": {"default": {"httpProxy": "http://user:canary@proxy:1"}}}')
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        look = "return sorted(open('/proc/self/environ').read().replace('\\0', '\\n').split())"
        found = (await sandbox.run(job(look))).value
        assert [line.partition("=")[0] for line in found] == [
            "HOME",
            "HOSTNAME",
            "LD_LIBRARY_PATH",
            "PATH",
            "PYTHONHASHSEED",
        ]

    async def test_the_first_process_cannot_be_ended_or_spoken_for(self, sandbox: Sandbox) -> None:
        attack = (
            "import os, signal\n    found = []\n    for number in range(1, 65):\n"
            "        try: os.kill(1, number)\n        except OSError: pass\n"
            "    for path in ('/proc/1/fd/1', '/proc/1/mem', '/proc/1/environ'):\n"
            "        try: found.append(open(path, 'r+b'))\n        except OSError: pass\n    return len(found)"
        )
        assert (await sandbox.run(job(attack))).value == 0
        assert (await sandbox.run(job("return x", 7))).value == 7

    async def test_an_engine_that_goes_away_loses_the_job_and_raises_nothing(
        self, sandbox: Sandbox, backend: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert (await sandbox.run(job("return x", 7))).value == 7
        api = backend._api
        with monkeypatch.context() as patched:
            patched.setattr(api, "base_url", "http+docker://none")
            patched.setattr(api, "_custom_adapter", None)
            api.adapters.clear()
            assert (await sandbox.run(job("return x", 7))).status == "sandbox_lost"
