"""A council served over HTTP to people: their programs with keys, their browsers with sessions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.harness import Daemon, make_home, run_cli, wait_until
from tests.world_client import answers, free_port

QUICK = "settle_s = 0.5\nscan_interval_s = 0.5\nhttp_requests_per_minute = 100000\n"


@dataclass
class Site:
    """A home whose daemon serves people over HTTP, and the command line beside it."""

    daemon: Daemon
    url: str
    env: dict[str, str] | None = None

    @property
    def home(self) -> Path:
        return self.daemon.home

    def cli(self, *words: str) -> str:
        done = run_cli(*words, cwd=self.home, env=self.env)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def key(self, user: str = "steward") -> str:
        return self.cli("keys", "add", user)

    def link(self, user: str = "steward") -> str:
        link = self.cli("ui", "--print", "--user", user)
        assert link.startswith(f"{self.url}/sign-in?link=")
        return link

    def browser(self) -> httpx2.Client:
        """Says what a browser says of what a page of this server sends."""
        return httpx2.Client(base_url=self.url, headers={"Origin": self.url, "Sec-Fetch-Site": "same-origin"})

    def signed_in(self, user: str = "steward") -> httpx2.Client:
        browser = self.browser()
        word = self.link(user).partition("link=")[2]
        assert browser.post("/sign-in", data={"word": word, "to": "/"}).status_code == 303
        return browser

    def program(self, user: str = "steward") -> httpx2.Client:
        """A program of this user, with a new key."""
        return httpx2.Client(base_url=self.url, headers={"X-API-Key": self.key(user)}, timeout=60)


@contextlib.contextmanager
def served_site(
    home: Path, *, settings: str = 'model = "offline"\n', env: dict[str, str] | None = None
) -> Iterator[Site]:
    """A new home, its daemon and its server. Ends with the daemon, which met no defect."""
    port = free_port()
    make_home(home, settings=f'http = "127.0.0.1:{port}"\n{QUICK}{settings}')
    with Daemon(home, env=env) as daemon:
        site = Site(daemon, f"http://127.0.0.1:{port}", env)
        wait_until(lambda: answers(site.url), "the server answers")
        wait_until(lambda: '"http"' in site.cli("status", "--json"), "the daemon says so")
        yield site
        assert "Traceback" not in daemon.stderr


def refusal(response: Any) -> tuple[int, str]:
    """The status and the code of a problem."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["code"]
