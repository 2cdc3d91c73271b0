"""A network that is not there is waited for; a server that answers, and one on this machine, are not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests import fake_gemini, fake_openai
from tests.fake_gemini import FakeGemini
from tests.fake_openai import FakeOpenAI
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    journal,
    make_home,
    on_a_terminal,
    receipts,
    run_cli,
    settled,
    wait_until,
)

QUICK = "model_attempts = 1\nsettle_s = 0.5\nscan_interval_s = 0.5\n"


@pytest.fixture
def other() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture(params=["gemini", "openai"])
def far(request: pytest.FixtureRequest, tmp_path: Path, fake: FakeGemini, other: FakeOpenAI) -> Path:
    """A home whose provider has an address on another machine."""
    settings = {
        "gemini": f'gemini_base_url = "http://models.test:{fake.port}"\n',
        "openai": f'model = "openai:gpt-4o"\n[providers.openai]\nbase_url = "http://models.test:{other.port}/v1"\n',
    }
    return make_home(tmp_path / "home", settings=QUICK + settings[request.param])


@pytest.fixture
def gone(tmp_path: Path) -> dict[str, str]:
    """An environment without a network; `there` brings it back."""
    return faulty_environment(
        GEMINI_API_KEY="test-key-0123456789abcdef",
        OPENAI_API_KEY="test-key-0123456789abcdef",
        COUNCIL_TEST_NETWORK=str(tmp_path / "network"),
    )


def there(environment: dict[str, str]) -> None:
    Path(environment["COUNCIL_TEST_NETWORK"]).touch()


def test_a_run_waits_for_the_network_says_so_and_goes_on_by_itself(far: Path, gone: dict[str, str]) -> None:
    with Daemon(far, env={**gone, "COUNCIL_MODEL_ATTEMPTS": "2"}, module=FAULTY) as daemon:
        daemon.ready()
        drop_command(far, command(config={"max_rounds": 1, "budget": {"max_calls": 4}}))
        waits = daemon.wait("run_waiting")
        assert (waits["reason"], waits["seconds"]) == ("network", 5.0)
        run_id = waits["run_id"]

        def told() -> bool:
            """True once `status` tells of a wait that there was: another one may have begun meanwhile."""
            status = run_cli("status", cwd=far).stdout
            until = [datetime.fromisoformat(waits["until"]).astimezone() for waits in daemon.all("run_waiting")]
            way = f"; `council resume {run_id}` continues it sooner. Reason: the connection to "
            shown = any(f"It waits until {moment:%Y-%m-%d %H:%M}{way}" in status for moment in until)
            return "waiting for the network" in status and shown

        wait_until(told, "the wait is shown")
        page = far / "artifacts" / "out.md"
        wait_until(
            lambda: re.search(
                r"The council waits for the network: the connection to .* failed: no such host is known\. It continues at ",
                page.read_text(),
            ),
            "the page tells of the wait",
        )
        why = r"It waits for the network until \S+Z: the connection to \S+ failed"
        explain = ("explain", run_id, "--json")
        wait_until(lambda: re.search(why, run_cli(*explain, cwd=far).stdout), "the wait is explained")
        there(gone)
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "succeeded"
        waited = len(daemon.all("run_waiting"))
        assert daemon.stop() == 0
    [receipt] = receipts(far)
    assert (receipt["calls"], receipt["attempts"]) == (4, waited + 1)
    assert len(settled(far, run_id)) == 4  # nobody heard of the calls that found no way
    told_later = json.loads(run_cli("explain", run_id, "--json", cwd=far).stdout)
    assert sum(agent["retries"] for agent in told_later["agents"]) == len(told_later["retries"]) > 0
    assert run_cli("replay", "--check", run_id, cwd=far).returncode == 0


def test_whoever_waits_at_a_terminal_reads_what_the_run_waits_for(far: Path, gone: dict[str, str]) -> None:
    with Daemon(far, env=gone, module=FAULTY) as daemon:
        daemon.ready()
        on_a_terminal(
            *("submit", "--wait", "--task", "Which engine?", "--rounds", "1"),
            cwd=far,
            env=environment(TERM="xterm", COLUMNS="120"),
            answers=[("waiting for the network, round 1 of 1", lambda: there(gone))],
        )
    (receipt,) = receipts(far)
    assert receipt["status"] == "succeeded"


def test_a_host_that_refuses_the_connection_is_waited_for(tmp_path: Path, gone: dict[str, str]) -> None:
    with FakeGemini() as closed:
        url = f"http://models.test:{closed.port}"
    home = make_home(tmp_path / "home", settings=f'{QUICK}gemini_base_url = "{url}"\n')
    there(gone)
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=gone, module=FAULTY).returncode == 75
    [run] = json.loads(run_cli("status", "--json", cwd=home).stdout)["runs"]
    assert (run["status"], run["waiting_for"]) == ("waiting", "network")
    assert "failed: connection refused." in run["error"]


@pytest.mark.parametrize(("host", "code"), [("models.test", 75), ("127.0.0.1", 1)], ids=["another machine", "this one"])
def test_another_machine_that_closes_without_a_reply_is_waited_for(
    tmp_path: Path, gone: dict[str, str], other: FakeOpenAI, fake: FakeGemini, host: str, code: int
) -> None:
    there(gone)
    other.reply = lambda request: fake_openai.drop()
    fake.reply = lambda request: fake_gemini.drop()
    for settings in (
        f'gemini_base_url = "http://{host}:{fake.port}"\n',
        f'model = "openai:gpt-4o"\n[providers.openai]\nbase_url = "http://{host}:{other.port}/v1"\n',
    ):
        home = make_home(tmp_path / settings[:6], settings=QUICK + settings)
        drop_command(home, command())
        done = run_cli("run", "--once", cwd=home, env=gone, module=FAULTY)
        assert (done.returncode, "without sending a response" in done.stdout) == (code, True), done.stdout
        assert ('"reason": "network"' in done.stdout) is (code == 75)


def test_a_server_on_this_machine_that_is_not_there_is_not_waited_for(tmp_path: Path, gone: dict[str, str]) -> None:
    with FakeGemini() as closed:
        url = closed.url
    for settings in (
        f'gemini_base_url = "{url}"\n',
        f'model = "mine:unpriced"\n[providers.mine]\nbase_url = "{url}"\n',
    ):
        home = make_home(tmp_path / settings[:6], settings=QUICK + settings)
        drop_command(home, command())
        assert run_cli("run", "--once", cwd=home, env=gone, module=FAULTY).returncode == 1
        [receipt] = receipts(home)
        page = (home / "artifacts" / "out.md").read_text()
        assert ("connection refused" in page, "\ncost: none\n" in page) == (True, True)
        assert (receipt["status"], receipt["cost_usd"], receipt["tokens"]["unknown_calls"]) == ("failed", 0, 0)
        assert re.search(r"failed +none ", run_cli("runs", cwd=home).stdout)


def test_a_configured_fallback_answers_before_anything_is_waited_for(
    tmp_path: Path, gone: dict[str, str], other: FakeOpenAI
) -> None:
    settings = 'gemini_base_url = "http://models.test:9"\nfallback_models = ["openai:gpt-4o"]\n'
    quick = QUICK.replace("model_attempts = 1", "model_attempts = 3")
    home = make_home(tmp_path / "home", settings=f'{quick}{settings}[providers.openai]\nbase_url = "{other.url}"\n')
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=gone, module=FAULTY).returncode == 7
    [receipt] = receipts(home)
    kinds = [record["t"] for record in journal(home, receipt["run_id"])]
    assert (kinds.count("wait"), kinds.count("retry")) == (0, 0)
    assert (
        "openai:gpt-4o answered instead of gemini:gemini-2.5-flash (unreachable)"
        in (home / "artifacts" / "out.md").read_text()
    )


def test_a_fallback_that_is_out_of_reach_too_leaves_the_run_waiting(tmp_path: Path, gone: dict[str, str]) -> None:
    settings = 'gemini_base_url = "http://models.test:9"\nfallback_models = ["openai:gpt-4o"]\n'
    url = "http://others.test:9/v1"
    home = make_home(tmp_path / "home", settings=f'{QUICK}{settings}[providers.openai]\nbase_url = "{url}"\n')
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=gone, module=FAULTY).returncode == 75


def test_the_network_is_waited_for_no_longer_than_any_wait(far: Path, gone: dict[str, str]) -> None:
    (far / "council.toml").write_text("max_wait_s = 4\n" + (far / "council.toml").read_text())
    drop_command(far, command())
    assert run_cli("run", "--once", cwd=far, env=gone, module=FAULTY).returncode == 1
    [receipt] = receipts(far)
    assert receipt["error"]["code"] == "max_wait"
    assert "waited 0 s for the network" in receipt["error"]["message"]


def test_time_in_which_no_daemon_ran_is_no_wait_for_the_network(
    far: Path, gone: dict[str, str], tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    later = {**gone, "COUNCIL_TEST_CLOCK": str(clock)}
    drop_command(far, command())
    for days in (0, 3, 6):  # of two that a run may wait
        clock.write_text(str(days * 86_400))
        assert run_cli("run", "--once", cwd=far, env=later, module=FAULTY).returncode == 75
    [run] = json.loads(run_cli("status", "--json", cwd=far).stdout)["runs"]
    kinds = [record["t"] for record in journal(far, run["run_id"])]
    assert kinds.count("wait") == 3  # each process asked
    there(gone)
    clock.write_text(str(9 * 86_400))
    assert run_cli("run", "--once", cwd=far, env=later, module=FAULTY).returncode == 0


def test_a_second_opinion_waits_for_the_network_as_the_council_does(
    tmp_path: Path, fake: FakeGemini, gone: dict[str, str]
) -> None:
    settings = f'guardrail_model = "gemini"\ngemini_base_url = "http://models.test:{fake.port}"\n'
    home = make_home(tmp_path / "home", settings=QUICK + settings)
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=gone, module=FAULTY).returncode == 75
    there(gone)
    assert run_cli("resume", "last", cwd=home, env=gone, module=FAULTY).returncode == 0
    run_cli("run", "--once", cwd=home, env=gone, module=FAULTY)
    assert [request for request in fake.requests if "You are the safety minister" in request.system] != []
    assert "could not be had (unreachable)" not in (home / "artifacts" / "out.md").read_text()
