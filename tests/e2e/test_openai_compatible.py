"""A council over an OpenAI-compatible server, through the real daemon: what a run leaves, and what such a server needs said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import fake_openai
from tests.fake_openai import FakeOpenAI, Manners, RecordedRequest, error, text
from tests.harness import Daemon, command, drop_command, environment, receipts, run_cli

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as fake:
        yield fake


def openai_env(server: FakeOpenAI, model: str = "openai:gpt-4o-mini", **extra: str) -> dict[str, str]:
    names = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": server.url,
        "COUNCIL_MODEL": model,
        "COUNCIL_MODEL_ATTEMPTS": "1",
    }
    return environment(**{**names, **extra})


def page(home: Path) -> tuple[dict[str, Any], str]:
    """The front matter and the text of the decision."""
    content = (home / "artifacts" / "out.md").read_text()
    return yaml.safe_load(content.split("---\n")[1]), content


def once(home: Path, env: dict[str, str], body: dict[str, Any] | None = None) -> int:
    drop_command(home, body or command())
    return run_cli("run", "--once", cwd=home, env=env).returncode


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_leaves_the_models_name_its_tokens_and_what_they_cost(home: Path, server: FakeOpenAI) -> None:
    server.manners = Manners(key=KEY, alternating=True, token_limit_field="max_completion_tokens")
    server.reply = lambda request: text("<think>Hm.</think>Use a second disk.", prompt=1000, output=100, cached=400)
    assert once(home, openai_env(server)) == 0
    [receipt] = receipts(home)
    assert (receipt["status"], receipt["model"]) == ("succeeded", "openai:gpt-4o-mini")
    assert receipt["cost_usd"] == pytest.approx((2400 * 0.15 + 1600 * 0.075 + 400 * 0.60) / 1e6)
    front, content = page(home)
    assert (front["model"], receipt["details"]["mode"], receipt["calls"]) == ("openai:gpt-4o-mini", "language-model", 4)
    assert (receipt["tokens"]["input"], receipt["tokens"]["output"]) == (4000, 400)
    assert float(front["cost"].split()[0]) == pytest.approx((2400 * 0.15 + 1600 * 0.075 + 400 * 0.60) / 1e6, rel=0.01)
    assert "Use a second disk." in content
    assert "Hm." not in content


def test_a_local_ollama_is_found_by_its_own_variable_and_its_cost_is_unknown(home: Path, server: FakeOpenAI) -> None:
    server.manners = Manners(models=("qwen2.5:7b",))
    env = environment(OLLAMA_HOST=server.root.removeprefix("http://"), COUNCIL_MODEL="ollama:qwen2.5:7b")
    assert once(home, env) == 0
    assert {request.authorization for request in server.requests} == {""}
    front, _ = page(home)
    assert (front["model"], front["cost"]) == ("ollama:qwen2.5:7b", "unknown")
    [receipt] = receipts(home)
    assert receipt["tokens"]["input"] == 48
    assert (receipt["model"], receipt.get("cost_usd")) == ("ollama:qwen2.5:7b", None)


@pytest.mark.parametrize(("tokens", "notes"), [("4096", 1), ("32768", 0)])
def test_the_page_says_when_the_inputs_were_more_than_the_window_of_a_model(
    home: Path, server: FakeOpenAI, tokens: str, notes: int
) -> None:
    (home / "long.md").write_text("a line of text\n" * 2_800)
    env = environment(OLLAMA_HOST=server.root, COUNCIL_MODEL="ollama:m", OLLAMA_CONTEXT_LENGTH=tokens)
    drop_command(home, command(input_artifacts=["long.md"]))
    done = run_cli("run", "--once", cwd=home, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (home / "artifacts" / "out.md").read_text()
    told = "The inputs have about 42,000 characters, but the window of a model holds about 10,682"
    assert page.count(told) == notes
    check = run_cli("replay", "last", "--check", cwd=home)
    assert check.returncode == 0, check.stdout + check.stderr


def test_a_server_that_does_not_count_leaves_tokens_unknown_and_never_zero(home: Path, server: FakeOpenAI) -> None:
    server.reply = lambda request: text("Use a second disk.", counted=False)
    assert once(home, openai_env(server)) == 0
    front, _ = page(home)
    [receipt] = receipts(home)
    assert (receipt["tokens"]["unknown_calls"], front["cost"]) == (receipt["calls"], "unknown")


def test_a_server_of_ones_own_is_a_table_in_council_toml(home: Path, server: FakeOpenAI) -> None:
    server.manners = Manners(key="my-server-key-0123456789")
    with (home / "council.toml").open("a") as settings:
        settings.write(
            'model = "gpu-box:small"\n[providers.gpu-box]\n'
            f'base_url = "{server.url}"\nkey_env = "GPU_BOX_KEY"\ntemperature = 0.1\nmodels = {{ small = "Qwen/Qwen3-8B" }}\n'
            '[prices."gpu-box"]\ninput = 0\noutput = 0\n'
        )
    (home / ".env").write_text("GPU_BOX_KEY=my-server-key-0123456789\n")
    assert once(home, environment()) == 0
    assert {(request.model, request.body["temperature"]) for request in server.requests} == {("Qwen/Qwen3-8B", 0.1)}
    front, _ = page(home)
    assert (front["model"], front["cost"].split()[0]) == ("gpu-box:Qwen/Qwen3-8B", "none")


def test_a_missing_key_refuses_the_daemon_and_names_the_variable(home: Path, server: FakeOpenAI) -> None:
    done = run_cli("run", "--once", "--model", "kairos", cwd=home, env=environment())
    assert done.returncode == 3
    assert "the model kairos needs a key, and HF_TOKEN is not set" in done.stderr


def test_an_unknown_provider_refuses_the_daemon_with_the_nearest(home: Path) -> None:
    done = run_cli("run", "--once", "--model", "olama:qwen2.5", cwd=home, env=environment())
    assert done.returncode == 3
    assert "did you mean ollama?" in done.stderr


def test_a_server_that_is_not_there_is_told_with_how_to_start_it(home: Path, server: FakeOpenAI) -> None:
    server.close()
    env = environment(OLLAMA_HOST=server.root, COUNCIL_MODEL="ollama:qwen2.5", COUNCIL_MODEL_ATTEMPTS="1")
    assert once(home, env) == 1
    front, content = page(home)
    assert front["status"] == "failed"
    reason, fix = "connection refused", "To fix it: is the server running (`ollama serve`)?"
    head = content.partition("## Task")[0]
    assert "No answer from COORDINATOR in round 1; STRATEGIST in round 1; AUDITOR in round 1 (network).\n" in head
    assert (head.count(reason), head.count(fix)) == (1, 1)
    told = json.loads(run_cli("explain", "--json", cwd=home).stdout)
    assert (reason in told["why"]["sentence"], fix.removeprefix("To fix it: ") in told["why"]["fix"]) == (True, True)
    assert [note for note in told["notes"] if reason in note or "To fix it" in note] == []
    above = run_cli("report", "-o", "-", cwd=home).stdout.partition("What happened, and when")[0]
    assert (above.count(reason), above.count("To fix it: ")) == (1, 1)


# --- failures that pass by themselves -----------------------------------------------------------------------------------


def test_a_short_wait_is_waited_for_and_told_on_the_terminal(home: Path, server: FakeOpenAI) -> None:
    server.reply = fake_openai.in_turn(error(429, retry_after=0.2), error(503), text("Use a second disk."))
    drop_command(home, command())
    with Daemon(home, "--once", env=openai_env(server, COUNCIL_MODEL_ATTEMPTS="3")) as daemon:
        retries = [daemon.wait("model_retry", count=count) for count in (1, 2)]
        daemon.wait("run_ended", status="succeeded")
    assert [retry["error_kind"] for retry in retries] == ["rate", "overload"]
    assert retries[0]["wait_s"] >= 0.2
    assert len(server.requests) == 6


def test_what_the_server_refuses_by_name_is_left_out_for_the_rest_of_the_run(home: Path, server: FakeOpenAI) -> None:
    server.manners = Manners(system_role=False, alternating=True)
    seen: list[RecordedRequest] = []
    server.reply = lambda request: (seen.append(request), text("Use a second disk."))[1]
    assert once(home, openai_env(server)) == 0
    assert len(server.requests) == 1 + len(seen)
    assert {tuple(request.roles) for request in seen} == {("user",)}
    assert page(home)[0]["status"] == "succeeded"
