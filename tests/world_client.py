"""A world served by the real daemon, and players that call it as a stranger's program would."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.harness import FAULTY, Daemon, drop_command, faulty_environment, make_home, run_cli, wait_until

SLOW = "3600"  # seconds: such a round ends when the test says so


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health").status_code == 200
    except httpx2.TransportError:
        return False


@dataclass
class Served:
    """A daemon with a world, and its address."""

    daemon: Daemon
    url: str

    @property
    def home(self) -> Path:
        return self.daemon.home

    def get(self, path: str, **query: Any) -> Any:
        response = httpx2.get(f"{self.url}{path}", params=query, timeout=30)
        assert response.status_code == 200, response.text
        return response.json()

    def order(self, *words: str) -> str:
        """A steward's `council world …`; its output."""
        done = run_cli("world", *words, cwd=self.home)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def settle(self, rounds: int = 1) -> dict[str, Any]:
        """Waits for so many more settled rounds; the receipt of the last."""
        until = self.get("/v1/world")["round_id"] + rounds
        wait_until(lambda: self.get("/v1/world")["round_id"] >= until, "the round is settled")
        told: dict[str, Any] = self.get(f"/v1/world/rounds/{until}")
        return told

    def end_round(self) -> dict[str, Any]:
        """Lets the hour of a SLOW round pass in no time; its receipt. The daemon's clock is `clocked`, and there is a player."""
        ended = self.get("/v1/world")["round_id"] + 1
        self.pass_round()
        wait_until(lambda: self.get("/v1/world")["round_id"] >= ended, "the round is settled")
        told: dict[str, Any] = self.get(f"/v1/world/rounds/{ended}")
        return told

    def pass_round(self) -> None:
        """As `end_round`, and waits for nothing."""
        pass_s(self.home, int(SLOW))
        nudge = {"type": "world_unban", "agent": 1}  # changes nothing, and has the world look at its clock
        drop_command(self.home, nudge, f"nudge-{uuid.uuid4().hex}.json")

    def register(self, name: str = "bot", description: str = "") -> Caller:
        told = {"name": name, "description": description}
        response = httpx2.post(f"{self.url}/v1/agents/register", json=told)
        assert response.status_code == 200, response.text
        told = response.json()
        return Caller(self, told["agent_id"], told["member_id"], told["api_key"])


@dataclass
class Caller:
    """A player."""

    served: Served
    agent_id: int
    member_id: int
    key: str

    def ask(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        headers = {"X-API-Key": self.key}
        return httpx2.request(method, f"{self.served.url}{path}", headers=headers, timeout=30, **arguments)

    def act(self, *lines: str, key: str = "k") -> httpx2.Response:
        body = {"code": code_of("agent_action(engine, member_id)", lines), "idempotency_key": key}
        return self.ask("POST", "/v1/world/actions", json=body)

    def propose(self, *lines: str, key: str = "k", description: str = "Try it.") -> httpx2.Response:
        body = {
            "code": code_of("propose_modification(engine)", lines),
            "idempotency_key": key,
            "description": description,
        }
        return self.ask("POST", "/v1/world/mechanisms/propose", json=body)

    def vote(self, mechanism_id: str, word: str, key: str = "k") -> httpx2.Response:
        body = {"vote": word, "idempotency_key": key}
        return self.ask("POST", f"/v1/world/mechanisms/{mechanism_id}/vote", json=body)

    def play(self, *lines: str) -> dict[str, Any]:
        """What was accepted, in the next round where this one closes meanwhile."""

        def accepted() -> dict[str, Any]:
            answer = self.act(*lines)
            assert answer.status_code in (200, 409), answer.text
            told: dict[str, Any] = answer.json()
            return told if answer.status_code == 200 else {}

        told: dict[str, Any] = wait_until(accepted, "the round accepts")
        return told


def code_of(signature: str, lines: Iterable[str]) -> str:
    return f"def {signature}:\n" + "".join(f"    {line}\n" for line in lines)


def pass_s(home: Path, seconds: int) -> None:
    """So much time passes in a `clocked` daemon."""
    clock = clock_of(home)
    clock.with_suffix(".new").write_text(str(float(clock.read_text()) + seconds))
    os.replace(clock.with_suffix(".new"), clock)


def clock_of(home: Path) -> Path:
    return home.parent / "clock"


@contextlib.contextmanager
def serving(home: Path, port: int = 0, *, clocked: bool = False, fault: str = "") -> Iterator[Served]:
    """A daemon over a home that has a world, or gets one. `fault` is one of `tests.faults`."""
    port = port or free_port()
    faults: dict[str, Any] = {}
    if clocked or fault:
        if not clock_of(home).exists():
            clock_of(home).write_text("0")
        env = faulty_environment(COUNCIL_TEST_CLOCK=str(clock_of(home)), COUNCIL_TEST_FAULT=fault or "count")
        faults = {"env": env, "module": FAULTY}
    with Daemon(home, "--http", f"127.0.0.1:{port}", **faults) as daemon:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(url), "the server answers")
        yield Served(daemon, url)


def world_home(folder: Path, *, members: int = 12, land: str = "12x10", pace: str = "1", seed: str = "7") -> Path:
    """A home with a world whose first round begins with the daemon."""
    home = make_home(folder, settings='model = "offline"\nhttp_requests_per_minute = 100000\n')
    made = run_cli("world", "init", "--members", str(members), "--land", land, "--pace", pace, "--seed", seed, cwd=home)
    assert made.returncode == 0, made.stderr
    return home


def events_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events of a stream."""
    for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
