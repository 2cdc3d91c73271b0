"""A home whose daemon serves its pages, the command line beside it, and people who are signed in."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.harness import Daemon, run_cli, wait_until
from tests.world_client import answers, free_port


class Site:
    """A served home. `env` is what its command line is started with."""

    def __init__(self, home: Path, port: int, env: dict[str, str] | None = None) -> None:
        self.home = home
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.env = env

    @contextlib.contextmanager
    def serving(self) -> Iterator[Daemon]:
        """The daemon, once its pages are there."""
        with Daemon(self.home, "--http", f"127.0.0.1:{self.port}", env=self.env) as daemon:
            wait_until(lambda: answers(self.url), "the server answers")
            wait_until(lambda: "http" in json.loads(self.cli("status", "--json"))["companions"], "the daemon says so")
            yield daemon
            assert "Traceback" not in daemon.stderr, daemon.stderr[-2_000:]

    def cli(self, *words: str) -> str:
        done = run_cli(*words, cwd=self.home, env=self.env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def link(self, user: str = "steward") -> str:
        """The path that signs this person in, once."""
        printed = urlsplit(self.cli("ui", "--print", "--user", user))
        assert f"{printed.scheme}://{printed.netloc}" == self.url
        return f"{printed.path}?{printed.query}"

    @contextlib.contextmanager
    def signed_in(self, user: str = "steward", **how: Any) -> Iterator[httpx2.Client]:
        """A browser of this person: it says what a browser says of what a page of this server sends."""
        said = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        with httpx2.Client(base_url=self.url, headers=said, **how) as browser:
            entered = browser.post("/sign-in", data={"word": self.link(user).partition("link=")[2], "to": "/"})
            assert entered.status_code == 303, entered.text
            yield browser


def site(home: Path, env: dict[str, str] | None = None) -> Site:
    return Site(home, free_port(), env)
