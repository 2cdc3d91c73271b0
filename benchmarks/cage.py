"""What a job of foreign code costs: in a zygote's fork, in a fresh interpreter, and in another language's sandbox."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.report import Figure, Row, Table, percentile_s
from council.sandbox.cage import Sandbox
from council.sandbox.job import Job, Limits, Result
from council.sandbox.zygotes import Zygotes

JOBS = 300
CROWD = 600
_BLOCK = 30
_CODE = "def double(x):\n    return x * 2\n"
_FRESH = "import json; json.dumps({'value': 21 * 2})"
_FLOOD = "import os\nwhile True:\n    os.write(3, b'x' * 4096)\n"
_FASTER = 0.2  # of a fresh interpreter's time: five times as fast


def measure(jobs: int = JOBS, crowd: int = CROWD) -> list[Table]:
    return asyncio.run(_measured(jobs, crowd))


async def _measured(jobs: int, crowd: int) -> list[Table]:
    ways = {"bare": False} | ({"in bubblewrap": True} if shutil.which("bwrap") else {})
    samples: dict[str, list[float]] = {name: [] for name in ways}
    fresh_s: list[float] = []
    monty_s: list[float] = []
    monty = _monty()
    boxes = {name: Sandbox(Zygotes(bubblewrap=wrapped), workers=1, refuse=print) for name, wrapped in ways.items()}
    for box in boxes.values():
        await _job(box)  # the first one waits for its zygote
    for _ in range(jobs // _BLOCK):  # in turns, so that noise of the machine meets all
        for name, box in boxes.items():
            for _ in range(_BLOCK):
                began_s = time.perf_counter()
                await _job(box)
                samples[name].append(time.perf_counter() - began_s)
        for _ in range(_BLOCK // 3):
            fresh_s.append(_wall_s(_fresh))
        if monty is not None:
            monty_s += [_wall_s(monty) for _ in range(_BLOCK)]
    rows = [Row("a fresh `python -I -S` that imports json", fresh_s)]
    rows += [Row(f"a zygote's job, {name}", taken_s, fresh_s, _FASTER) for name, taken_s in samples.items()]
    rows += [Row("`pydantic-monty`, a wall of its language alone", monty_s, fresh_s)] if monty_s else []
    figures = []
    for name, taken_s in samples.items():
        figures.append(Figure(f"median of a job, {name}", percentile_s(taken_s, 50) * 1e3, "ms", bar=4))
        figures.append(Figure(f"95th percentile of a job, {name}", percentile_s(taken_s, 95) * 1e3, "ms", bar=12))
    for workers, at_least in ((1, 200), (2, 350)):
        figures.append(
            Figure(f"time per job, {workers} at once", await _crowd(workers, crowd), "ms", bar=round(1e3 / at_least, 2))
        )
    box = boxes["bare"]
    wall = await box.run(Job("import time\ndef f(x):\n    time.sleep(9)\n", "f", limits=Limits(wall_s=0.5)))
    processor = await box.run(Job("def f(x):\n    return 9 ** 9 ** 9\n", "f"))
    flood = await box.run(Job(_FLOOD, "f"))
    assert (wall.status, processor.status, flood.status) == ("timeout", "timeout", "output_cap")
    figures += [
        Figure("a sleeper is dead after its 0.5 s, and", (wall.wall_s - 0.5) * 1e3, "ms", bar=300),
        Figure("a power of powers is dead after its 2 s of processor time, and", processor.cpu_s * 1e3 - 2e3, "ms", bar=1000),
        Figure("a flood is cut after", flood.wall_s * 1e3, "ms"),
    ]  # fmt: skip
    for each in boxes.values():
        await each.aclose()
    how = (
        f"{jobs} jobs of one line, one after the other, from the call to the checked result. The zygote forks, limits and\n"
        "filters itself, compiles, runs and answers in JSON each time."
    )
    return [Table("Foreign code in its cage", how, rows, figures)]


async def _job(box: Sandbox) -> Result:
    result = await box.run(Job(_CODE, "double", 21))
    assert result.value == 42, result
    return result


async def _crowd(workers: int, jobs: int) -> float:
    """Milliseconds per job when all are asked for at once, in the cage as it is used."""
    async with Sandbox(Zygotes(), workers=workers, refuse=print) as box:
        await asyncio.gather(*(_job(box) for _ in range(workers)))
        began_s = time.perf_counter()
        await asyncio.gather(*(_job(box) for _ in range(jobs)))
        return (time.perf_counter() - began_s) / jobs * 1e3


def _monty() -> Callable[[], object] | None:
    """One run in a warm pool, where the package is installed."""
    if importlib.util.find_spec("pydantic_monty") is None:
        return None
    from pydantic_monty import Monty

    pool = Monty().__enter__()

    def run() -> object:
        with pool.checkout() as session:
            return session.feed_run("x * 2", inputs={"x": 21})

    assert run() == 42
    return run


def _fresh() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", _FRESH], check=True)


def _wall_s(run: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    run()
    return time.perf_counter() - began_s
