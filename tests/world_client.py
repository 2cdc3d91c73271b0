"""A world served by the real daemon, and players that call it as a stranger's program would."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.harness import Daemon, make_home, run_cli, wait_until

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

    def register(self, name: str = "bot") -> Caller:
        response = httpx2.post(f"{self.url}/v1/agents/register", json={"name": name})
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
        code = "def agent_action(engine, member_id):\n" + "".join(f"    {line}\n" for line in lines)
        return self.ask("POST", "/v1/world/actions", json={"code": code, "idempotency_key": key})

    def play(self, *lines: str) -> dict[str, Any]:
        """What was accepted, in the next round where this one closes meanwhile."""

        def accepted() -> dict[str, Any]:
            answer = self.act(*lines)
            assert answer.status_code in (200, 409), answer.text
            told: dict[str, Any] = answer.json()
            return told if answer.status_code == 200 else {}

        told: dict[str, Any] = wait_until(accepted, "the round accepts")
        return told


@contextlib.contextmanager
def serving(home: Path, port: int = 0) -> Iterator[Served]:
    """A daemon over a home that has a world, or gets one."""
    port = port or free_port()
    with Daemon(home, "--http", f"127.0.0.1:{port}") as daemon:
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
