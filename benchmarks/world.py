"""What a world costs: an action through HTTP and the cage, a round of many members, streams at rest, a long log again."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import httpx2

import benchmarks
from benchmarks.report import Figure, Table, percentile_s
from council.world.kernel import new_world, settle
from tests.harness import wait_until
from tests.world_client import SLOW, Served, serving, world_home

PLAYERS, EACH, STREAMS, IDLE_S, LOGGED = 75, 4, 200, 20.0, 100_000
PACE_S = "15"
_AT_ONCE = 8
_TIMEOUT_S = 120.0
_SETTLED = ((50, (20, 10), 5), (500, (50, 40), 25), (5_000, (200, 100), 250))
_CODE = """\
def agent_action(engine, member_id):
    engine.expand()
    near = [engine.current_members[one] for one in engine.me.neighbors]
    if near and engine.me.cargo > 20:
        engine.offer(min(near, key=lambda one: one.vitality), 5)
"""
_REPLAY = """\
import hashlib, sys, time
from council.world.kernel import Action, new_world, settle
began_s = time.perf_counter()
world, done, hashes = new_world("log", 50, (20, 20), 7), 0, hashlib.sha256()
while done < int(sys.argv[1]):
    asked = [Action(f"{world.round_id}.{n}.{m}", m, verb, target, None, "hi") for m in sorted(world.members)[:25]
             for n, (verb, target) in enumerate((("expand", None), ("offer", m + 1), ("attack", m + 2), ("message", m + 1)))]
    outcome = settle(world, asked, 7)
    world, done = outcome.world, done + len(asked)
    hashes.update(outcome.receipt.snapshot_hash_after.encode())
print(sys.version.split()[0], hashes.hexdigest(), time.perf_counter() - began_s)
"""


def measure(
    players: int = PLAYERS, streams: int = STREAMS, idle_s: float = IDLE_S, logged: int = LOGGED
) -> list[Table]:
    with _world(2 * players, PACE_S) as served:  # some die of age before they get a player
        per_action_ms, posting_s, working_s = _acted(served.url, players)
    with _world(20, SLOW) as served:
        idle_percent = _idle(served, streams, idle_s)
    figures = [
        Figure("time per action, through HTTP and the cage", per_action_ms, "ms", bar=round(1e3 / 150, 2)),
        Figure(f"of {players * EACH} actions: sent and accepted after", posting_s * 1e3, "ms"),
        Figure("of these: worked on and settled after", working_s * 1e3, "ms"),
        *(
            Figure(f"a round of {members:,} members", _round_ms(members, shape), "ms", bar=bar)
            for members, shape, bar in _SETTLED
        ),
        Figure(f"CPU with {streams} streams that nothing happens on", idle_percent, "% of a core", bar=5),
        *_replayed(logged),
    ]
    how = (
        f"{players} players submit {EACH} programs each over HTTP, {_AT_ONCE} at a time; then the round ends. A round of many\n"
        "members is settled without players. The log is worked out again, hash by hash, by each version of Python."
    )
    return [Table("The world", how, [], figures)]


@contextlib.contextmanager
def _world(members: int, pace: str) -> Iterator[Served]:
    side = 2 * int(members**0.5) + 2
    with tempfile.TemporaryDirectory(prefix="council-world-") as name:
        home = world_home(Path(name) / "home", members=members, land=f"{side}x{side}", pace=pace)
        with serving(home) as served:
            yield served


def _acted(url: str, players: int) -> tuple[float, float, float]:
    """Milliseconds per action, and the seconds of its two halves."""
    with httpx2.Client(base_url=url, timeout=_TIMEOUT_S) as client:
        keys = [client.post("/v1/agents/register", json={"name": "p"}).json()["api_key"] for _ in range(players)]
        settled = client.get("/v1/world").json()["round_id"]
        wait_until(
            lambda: client.get("/v1/world").json()["round_id"] > settled, "a round ends"
        )  # the window has just opened
        settled += 1
        began_s = time.perf_counter()
        with ThreadPoolExecutor(_AT_ONCE) as crowd:
            codes = list(crowd.map(_submitting(url), [(key, n) for n in range(EACH) for key in keys]))
        posting_s = time.perf_counter() - began_s
        assert set(codes) <= {200, 409}, set(codes)  # who died of age does not play
        time.sleep(max(0.0, client.get("/v1/world/rounds/current/deadline").json()["seconds_remaining"]))
        closed_s = time.perf_counter()
        wait_until(lambda: client.get("/v1/world").json()["round_id"] > settled, "it is settled")
        working_s = time.perf_counter() - closed_s
        told = client.get(f"/v1/world/rounds/{settled + 1}").json()
        done = {one.rpartition(".")[0] for one in (*told["accepted_action_ids"], *told["rejected_action_ids"])} - {""}
        assert len(done) == codes.count(200), (len(done), codes.count(200))
    return (posting_s + working_s) / len(done) * 1e3, posting_s, working_s


def _submitting(url: str) -> Callable[[tuple[str, int]], int]:
    """Submits an action of a key, and returns the status. The standard library's client, which takes little of the two cores."""
    own = threading.local()

    def submit(one: tuple[str, int]) -> int:
        key, number = one
        if not hasattr(own, "line"):
            own.line = HTTPConnection(url.removeprefix("http://"), timeout=_TIMEOUT_S)
        body = json.dumps({"code": _CODE, "idempotency_key": str(number)})
        own.line.request("POST", "/v1/world/actions", body, {"X-API-Key": key, "Content-Type": "application/json"})
        answer = own.line.getresponse()
        answer.read()
        return int(answer.status)

    return submit


def _round_ms(members: int, shape: tuple[int, int]) -> float:
    world, taken_s = new_world("round", members, shape, 1), []
    for _ in range(7):
        began_s = time.perf_counter()
        settle(world, [], 1)
        taken_s.append(time.perf_counter() - began_s)
    return percentile_s(taken_s, 50) * 1e3


def _idle(served: Served, streams: int, idle_s: float) -> float:
    pid = served.daemon.process.pid
    limits = httpx2.Limits(max_connections=streams)
    with httpx2.Client(base_url=served.url, timeout=None, limits=limits) as client, contextlib.ExitStack() as stack:
        for _ in range(streams):
            stack.enter_context(client.stream("GET", "/v1/world/events/stream"))
        time.sleep(2)  # the opening of the streams is over
        spent_s = cpu_s(pid)
        time.sleep(idle_s)
        return (cpu_s(pid) - spent_s) / idle_s * 100


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _replayed(logged: int) -> list[Figure]:
    """A log worked out by every version of Python here: how long it took, and how many different hashes came of it."""
    told = []
    for python in _pythons():
        done = subprocess.run(
            [python, "-c", _REPLAY, str(logged)], check=True, capture_output=True, text=True,
            env={"PYTHONPATH": str(Path(benchmarks.__file__).parents[1])},
        )  # fmt: skip
        told.append(done.stdout.split())
    figures = [
        Figure(f"{logged:,} actions worked out again, Python {version}", float(s) * 1e3, "ms") for version, _, s in told
    ]
    different = len({digest for _, digest, _ in told})
    return [*figures, Figure(f"different hashes among {len(told)} versions", different, "", bar=1, exactly=True)]


def _pythons() -> Sequence[str]:
    """This interpreter, and those of other versions that can be found."""
    ask = "import sys; print(sys.executable)"
    found = [sys.executable]
    for minor in range(11, 16):
        path = shutil.which(f"python3.{minor}")
        if path and minor != sys.version_info.minor:
            done = subprocess.run([path, "-c", ask], capture_output=True, text=True)
            found += [done.stdout.strip()] if done.returncode == 0 else []
    return found
