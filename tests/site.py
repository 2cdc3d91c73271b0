"""A home whose daemon serves its pages, the command line beside it, and people who are signed in."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
from fastapi.routing import iter_route_contexts

from council.app import build_app
from council.cli.daemon import _web
from council.desk.desk import Desk
from council.settings.home import Home
from tests.harness import Daemon, make_home, run_cli, wait_until
from tests.world_client import answers, free_port

QUICK = "settle_s = 0.5\nscan_interval_s = 0.5\nhttp_requests_per_minute = 100000\n"
NO_PAGE = re.compile(r"\.(json|live)$|^/v1/|^/(health|openapi|\.well-known|static|sign-in)")  # but an answer


class Site:
    """A served home. `env` is what its command line is started with."""

    def __init__(self, home: Path, port: int, env: dict[str, str] | None = None) -> None:
        self.home = home
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.env = env
        self.daemon: Daemon  # the one that serves it now

    @contextlib.contextmanager
    def serving(self) -> Iterator[Daemon]:
        """The daemon, once its pages are there."""
        with Daemon(self.home, "--http", f"127.0.0.1:{self.port}", env=self.env) as daemon:
            self.daemon = daemon
            wait_until(lambda: answers(self.url), "the server answers")
            wait_until(lambda: "http" in json.loads(self.cli("status", "--json"))["companions"], "the daemon says so")
            yield daemon
            assert "Traceback" not in daemon.stderr, daemon.stderr[-2_000:]

    def cli(self, *words: str) -> str:
        done = run_cli(*words, cwd=self.home, env=self.env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def validate(self, body: dict[str, Any]) -> str:
        """What `council validate` says of a command, as JSON."""
        path = self.home / "to-validate.json"
        path.write_text(json.dumps(body))
        return run_cli("validate", "--json", str(path), cwd=self.home, env=self.env).stdout

    def link(self, user: str = "steward") -> str:
        """The path that signs this person in, once."""
        printed = urlsplit(self.cli("ui", "--print", "--user", user))
        assert f"{printed.scheme}://{printed.netloc}" == self.url
        return f"{printed.path}?{printed.query}"

    def key(self, user: str = "steward") -> str:
        return self.cli("keys", "add", user)

    def browser(self, **how: Any) -> httpx2.Client:
        """Says what a browser says of what a page of this server sends."""
        said = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        return httpx2.Client(base_url=self.url, headers=said, **how)

    def signed_in(self, user: str = "steward", **how: Any) -> httpx2.Client:
        """A browser of this person."""
        with self.browser() as entering:
            entered = entering.post("/sign-in", data={"word": self.link(user).partition("link=")[2], "to": "/"})
            assert entered.status_code == 303, entered.text
            return self.browser(cookies=entering.cookies, **how)

    def program(self, user: str = "steward") -> httpx2.Client:
        """A program of this user, with a new key."""
        return httpx2.Client(base_url=self.url, headers={"X-API-Key": self.key(user)}, timeout=60)


def site(home: Path, env: dict[str, str] | None = None) -> Site:
    return Site(home, free_port(), env)


@contextlib.contextmanager
def served_site(
    home: Path, *, settings: str = 'model = "offline"\n', env: dict[str, str] | None = None
) -> Iterator[Site]:
    """A new home and its daemon, which serves it. Ends with the daemon."""
    made = site(make_home(home, settings=f"{QUICK}{settings}"), env)
    with made.serving():
        yield made


def refusal(response: Any) -> tuple[int, str]:
    """The status and the code of a problem."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["code"]


class Way(NamedTuple):
    """A method of a route; `path` is what may be asked, with ids of ada's in the place of its parameters."""

    method: str
    route: str
    path: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.route}"


def ways(home: Path, ids: dict[str, str]) -> list[Way]:
    """Every method of every route of the application that the daemon serves."""
    desk = Desk(Home(home), os.environ, {"http": "127.0.0.1:8420", "model": "offline"})
    app = build_app(desk.home, desk.settings, desk.keys, systems=desk.systems(), environ=desk.environ)
    server: Any = _web(desk, app)[0]
    return [
        Way(method, route.path, re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: ids.get(found[1], found[0]), route.path))
        for route in iter_route_contexts(server._application.routes)
        for method in sorted(route.methods or ())
        if method != "HEAD"  # looks, and says less
    ]
