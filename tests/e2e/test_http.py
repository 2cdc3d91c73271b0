"""The HTTP server beside the real daemon: what it answers, whom it refuses, how it stops."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import Daemon, command, drop_command, environment, make_home, receipts, run_cli, wait_until
from tests.world_client import answers, free_port

OFFLINE = 'model = "offline"\n'


@pytest.fixture(name="served")
def _served(tmp_path: Path) -> Iterator[tuple[Daemon, str]]:
    port = free_port()
    home = make_home(tmp_path / "home", settings=f'{OFFLINE}http = "127.0.0.1:{port}"\nhttp_requests_per_minute = 50\n')
    with Daemon(home) as daemon:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(url), "the server answers")
        yield daemon, url


def problem(response: Any) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = response.json()
    return told


def test_health_shows_the_daemon_and_its_companions(served: tuple[Daemon, str]) -> None:
    _, url = served
    told = wait_until(
        lambda: (t := httpx2.get(f"{url}/health").json())["state"] == "AWAITING_COMMAND" and t, "it waits"
    )
    assert (told["status"], told["active_runs"]) == ("ok", 0)
    assert {"name": "http", "reason": ""} in told["companions"]


def test_each_answer_tells_a_browser_to_keep_it_to_itself(served: tuple[Daemon, str]) -> None:
    _, url = served
    for response in (httpx2.get(f"{url}/health"), httpx2.get(f"{url}/nowhere")):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "server" not in response.headers


def test_without_a_port_nothing_of_the_server_is_loaded(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings=OFFLINE)
    script = "\n".join([
        "import sys",
        "from council.cli.main import main",
        "sys.argv = ['council', 'run']",
        "try: main()",
        "except SystemExit: print([name for name in ('fastapi', 'starlette', 'uvicorn') if name in sys.modules])",
    ])  # fmt: skip
    command_line = [sys.executable, "-c", script]
    with subprocess.Popen(command_line, cwd=home, env=environment(), stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        assert any('"event": "idle"' in line for line in iter(daemon.stdout.readline, ""))
        daemon.terminate()
        assert daemon.stdout.read().splitlines()[-1] == "[]"


def test_an_unknown_route_is_a_problem(served: tuple[Daemon, str]) -> None:
    _, url = served
    for refused, code, fix in (
        (httpx2.get(f"{url}/nowhere"), "not_found", "see /openapi.json for the paths, or begin at /now"),
        (httpx2.get(f"{url}/v1/runs/a%00b"), "not_found", "see /openapi.json for the paths, or begin at /now"),
        (httpx2.post(f"{url}/health"), "method_not_allowed", "see /openapi.json for the methods of this path"),
    ):
        assert (problem(refused)["code"], problem(refused)["fix"]) == (code, fix)


def test_a_page_that_calls_by_another_name_is_refused(served: tuple[Daemon, str]) -> None:
    _, url = served
    for name in ("evil.example", "127.0.0.1.evil.example:80", ""):
        refused = httpx2.get(f"{url}/health", headers={"Host": name})
        assert (refused.status_code, problem(refused)["code"]) == (400, "host_unknown")
    for name in ("localhost", "LOCALHOST:1", "127.0.0.1:8420", "[::1]", "[::1]:8420"):
        assert httpx2.get(f"{url}/health", headers={"Host": name}).status_code == 200


def test_too_many_requests_are_told_when_to_come_again_and_health_goes_on(served: tuple[Daemon, str]) -> None:
    _, url = served
    with httpx2.Client() as client:
        codes = [client.get(f"{url}/nowhere").status_code for _ in range(60)]
        refused = client.get(f"{url}/nowhere")
        assert client.get(f"{url}/health").status_code == 200
    assert set(codes) == {404, 429}
    assert problem(refused)["code"] == "rate_limited"
    assert int(refused.headers["retry-after"]) >= 1


def test_a_key_is_limited_wherever_it_is_sent_from(served: tuple[Daemon, str]) -> None:
    _, url = served
    key = {"X-API-Key": "lev_" + "0" * 48}
    with (
        httpx2.Client() as here,
        httpx2.Client(transport=httpx2.HTTPTransport(local_address="127.0.0.2")) as elsewhere,
    ):
        assert {here.get(f"{url}/nowhere", headers=key).status_code for _ in range(60)} == {404, 429}
        assert 429 in [elsewhere.get(f"{url}/nowhere", headers=key).status_code for _ in range(10)]
        assert elsewhere.get(f"{url}/nowhere").status_code == 404


def test_connections_are_bounded_and_the_server_goes_on_when_they_end(served: tuple[Daemon, str]) -> None:
    _, url = served
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with contextlib.ExitStack() as silent:
        for _ in range(512):
            silent.enter_context(socket.create_connection(address))
        wait_until(lambda: httpx2.get(f"{url}/health").status_code == 503, "no more are served")
    wait_until(lambda: answers(url), "the server answers")
    assert httpx2.get(f"{url}/health").status_code == 200


def test_a_stop_ends_the_server_and_loses_no_run(served: tuple[Daemon, str]) -> None:
    daemon, url = served
    drop_command(daemon.home, command())
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as silent:
        silent.sendall(b"GET /health HTTP/1.1\r\n")
        daemon.wait("run_ended")
        assert daemon.stop() == 0
    assert [one["status"] for one in receipts(daemon.home)] == ["succeeded"]
    assert not answers(url)


def test_a_port_that_is_taken_degrades_the_companion_and_stops_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        home = make_home(tmp_path / "home", settings=OFFLINE)
        with Daemon(home, "--http", f"127.0.0.1:{port}") as daemon:
            failure = daemon.wait("companion_failed", name="http")
            assert f"127.0.0.1:{port}" in failure["reason"]
            drop_command(home, command())
            daemon.wait("run_ended")
            status = json.loads(run_cli("status", "--json", cwd=home).stdout)
    assert list(status["degraded"]) == ["http"]


@pytest.mark.parametrize(
    ("address", "said"),
    [("0.0.0.0:8420", "http_hosts"), ("[::]:1", "behind_tls"), ("8420", "http"), ("127.0.0.1:99999", "port")],
)
def test_an_address_that_does_not_do_is_refused_by_name(tmp_path: Path, address: str, said: str) -> None:
    home = make_home(tmp_path / "home", settings=OFFLINE)
    refused = run_cli("run", "--http", address, cwd=home)
    assert refused.returncode == 3
    assert said in refused.stderr


def test_no_server_runs_beside_a_process_that_drains_and_leaves(tmp_path: Path) -> None:
    port = free_port()
    home = make_home(tmp_path / "home", settings=f'{OFFLINE}http = "127.0.0.1:{port}"\n')
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home).returncode == 0
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
