"""A run as OpenTelemetry spans, told by the real daemon to a real OTLP receiver on loopback."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_collector import FakeCollector, Received
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import Daemon, command, drop_command, environment, receipts, run_cli, wait_until

CLIENT, INTERNAL = 3, 1
SECRET_WORDS = ("Choose a storage engine", "The disk is full", "So be it", "You are AUDITOR")


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as server:
        yield server


def told(env: dict[str, str], collector: FakeCollector, **extra: str) -> dict[str, str]:
    return {**env, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50", **extra}


def asking(request: RecordedRequest) -> FakeReply:
    if "You are STRATEGIST" in request.system and "round 1" in request.texts[-1].lower():
        return text("I need it.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]\n[ORCHESTRATOR_REQUEST: READ_FILE(gone.md)]")
    return text("So be it.")


def run_once(home: Path, env: dict[str, str], code: int = 0, **keys: Any) -> dict[str, Any]:
    """A run to its end; its receipt."""
    (home / "a.md").write_text("The disk is full.\n")
    drop_command(home, command(**keys))
    done = run_cli("run", "--once", cwd=home, env=env)
    assert done.returncode == code, done.stderr
    return receipts(home)[-1]


def sum_of(spans: list[Received], key: str) -> int:
    return sum(span.attributes.get(key, 0) for span in spans)


def test_a_run_is_a_tree_of_spans_whose_tokens_are_the_receipts(
    home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector
) -> None:
    fake.reply = asking
    receipt = run_once(home, told(env, collector, OTEL_EXPORTER_OTLP_HEADERS="x-team=council"), rounds=2)
    by_id = {span.span_id: span for span in collector.spans}
    [run] = collector.named("invoke_workflow")
    turns, chats, tools = (collector.named(name) for name in ("invoke_agent", "chat", "execute_tool"))
    assert (run.name, run.parent_id, run.kind) == ("invoke_workflow council", "", INTERNAL)
    assert run.attributes["gen_ai.conversation.id"] == receipt["run_id"]
    assert (run.attributes["council.status"], run.attributes["council.calls"]) == ("succeeded", 7)
    assert {span.trace_id for span in collector.spans} == {run.trace_id}
    assert [turn.name for turn in turns] == [
        f"invoke_agent {role}" for role in ("COORDINATOR", "STRATEGIST", "AUDITOR") * 2
    ] + ["invoke_agent COORDINATOR"]
    assert {turn.parent_id for turn in turns} == {run.span_id}
    assert [by_id[chat.parent_id] for chat in chats] == turns
    assert [by_id[tool.parent_id].attributes["gen_ai.agent.name"] for tool in tools] == ["STRATEGIST", "STRATEGIST"]
    assert all(span.end_ns <= by_id[span.parent_id].end_ns for span in [*turns, *chats, *tools])
    assert sum_of(chats, "gen_ai.usage.input_tokens") == receipt["tokens"]["input"]
    assert sum_of(chats, "gen_ai.usage.output_tokens") == receipt["tokens"]["output"]
    assert len(chats) == receipt["calls"] == 7
    chat = chats[0]
    assert (chat.name, chat.kind, chat.is_error) == ("chat gemini-2.5-flash", CLIENT, False)
    shown = {key: chat.attributes[key] for key in chat.attributes if "usage" not in key}
    assert shown == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-2.5-flash",
        "gen_ai.response.model": "gemini-2.5-flash",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.conversation.id": receipt["run_id"],
        "gen_ai.agent.name": "COORDINATOR",
        "council.round": 1,
        "council.purpose": "turn",
    }
    read, gone = tools
    assert read.name == gone.name == "execute_tool READ_FILE"
    assert (read.is_error, gone.is_error, gone.attributes["error.type"]) == (False, True, "not_found")
    assert run.resource["service.name"] == "council"
    assert run.schema_url == "https://opentelemetry.io/schemas/1.41.1"
    assert collector.paths[0] == "/v1/traces"
    assert collector.headers[0]["x-team"] == "council"


def test_no_word_of_a_run_is_told_unless_that_is_switched_on(
    home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector
) -> None:
    fake.reply = asking
    run_once(home, told(env, collector), rounds=1)
    silent = b"".join(collector.bodies)
    assert [words for words in SECRET_WORDS if words.encode() in silent] == []
    collector.bodies.clear()
    collector.spans.clear()
    (home / "council.toml").write_text(f'otel_endpoint = "{collector.url}"\notel_content = true\nsettle_s = 0.5\n')
    (home / "a.md").write_text("The disk is full.\n")
    drop_command(home, command(rounds=1, session="b", task=f"Choose a storage engine with {env['GEMINI_API_KEY']}."))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    loud = b"".join(collector.bodies)
    assert [words for words in SECRET_WORDS if words.encode() not in loud] == []
    assert env["GEMINI_API_KEY"].encode() not in loud
    chat = collector.named("chat")[1].attributes
    assert json.loads(chat["gen_ai.system_instructions"])[0]["content"].startswith("You are the STRATEGIST")
    assert [message["role"] for message in json.loads(chat["gen_ai.input.messages"])] == ["user"] * 3
    [said] = json.loads(chat["gen_ai.output.messages"])
    assert (said["role"], said["finish_reason"]) == ("assistant", "stop")
    assert json.loads(collector.named("execute_tool")[0].attributes["gen_ai.tool.call.arguments"]) == {"path": "a.md"}


def test_a_retry_is_an_event_of_its_call_and_a_failed_turn_an_error(
    home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector
) -> None:
    failures = {"STRATEGIST": 1, "AUDITOR": 99}

    def reply(request: RecordedRequest) -> FakeReply:
        for role in failures:
            if f"You are {role}" in request.system and failures[role]:
                failures[role] -= 1
                return error(503, "UNAVAILABLE")
        return text("So be it.")

    fake.reply = reply
    receipt = run_once(home, told(env, collector, COUNCIL_MODEL_ATTEMPTS="2"), code=7, rounds=1)
    chats = collector.named("chat")
    assert [len(chat.events) for chat in chats] == [0, 1, 1, 0]
    [(name, data)] = chats[1].events
    assert (name, data["error.type"], data["council.retry.attempt"]) == ("council.retry", "overload", 1)
    assert [chat.is_error for chat in chats] == [False, False, True, False]
    assert chats[2].attributes["error.type"] == "overload"
    auditor = collector.named("invoke_agent AUDITOR")[0]
    assert (auditor.is_error, auditor.attributes["error.type"]) == (True, "no_answer")
    assert sum_of(chats, "gen_ai.usage.output_tokens") == receipt["tokens"]["output"]
    assert collector.named("invoke_workflow")[0].attributes["council.status"] == "degraded"


def test_a_failed_run_names_its_error(
    home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector
) -> None:
    fake.reply = lambda request: error(403, "PERMISSION_DENIED")
    run_once(home, told(env, collector), code=1, rounds=1)
    [run], [chat] = collector.named("invoke_workflow"), collector.named("chat")
    assert (run.is_error, run.attributes["error.type"], run.attributes["council.status"]) == (
        True,
        "model_auth",
        "failed",
    )
    assert (chat.is_error, chat.attributes["error.type"]) == (True, "auth")


def test_a_run_that_is_taken_up_again_goes_on_in_its_trace_and_counts_nothing_twice(
    home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector
) -> None:
    fake.reply = lambda request: slow(60) if "You are AUDITOR" in request.system else text("So be it.")
    env = told(env, collector)
    drop_command(home, command(rounds=1))
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", role="AUDITOR")
        collector.wait_for("chat", 2)
        daemon.kill()
    fake.reply = lambda request: text("So be it.")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    chats = collector.named("chat")
    assert [chat.attributes["gen_ai.agent.name"] for chat in chats] == [
        "COORDINATOR",
        "STRATEGIST",
        "AUDITOR",
        "COORDINATOR",
    ]
    assert sum_of(chats, "gen_ai.usage.input_tokens") == receipt["tokens"]["input"]
    assert len({span.trace_id for span in collector.spans}) == 1
    assert [run.attributes["council.attempt"] for run in collector.named("invoke_workflow")] == [2]


def test_a_run_that_is_handed_back_ends_its_span_and_all_is_delivered(
    home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector
) -> None:
    fake.reply = lambda request: slow(2) if "You are STRATEGIST" in request.system else text("So be it.")
    drop_command(home, command(rounds=1))
    with Daemon(home, env={**told(env, collector), "OTEL_BSP_SCHEDULE_DELAY": "600000"}) as daemon:
        daemon.wait("turn_started", role="STRATEGIST")
        assert daemon.stop() == 0
    [run] = collector.named("invoke_workflow")
    assert run.attributes["council.status"] == "queued"
    assert len(collector.named("chat")) == 2


def test_turns_at_once_and_their_repairs_stand_under_their_own_agents(
    home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector
) -> None:
    block = '```council\n{"position": "Wait.", "confidence": 0.5, "evidence": ["E9"], "would_change": "x"}\n```'

    def reply(request: RecordedRequest) -> FakeReply:
        damaged = "You are AUDITOR" in request.system and "cannot be used" not in request.texts[-1]
        return text(f"I would wait.\n\n{block}" if damaged else "So be it.")

    fake.reply = reply
    receipt = run_once(home, told(env, collector), config={"max_rounds": 2, "protocol": "independent"})
    by_id = {span.span_id: span for span in collector.spans}
    chats = collector.named("chat")
    assert len(chats) == receipt["calls"]
    assert [chat for chat in chats if chat.attributes["council.purpose"] == "other"] != []
    for chat in chats:
        turn = by_id[chat.parent_id]
        assert turn.attributes["gen_ai.agent.name"] == chat.attributes["gen_ai.agent.name"]
        assert turn.attributes["council.round"] == chat.attributes["council.round"]
    assert sum_of(chats, "gen_ai.usage.output_tokens") == receipt["tokens"]["output"]


@pytest.mark.parametrize("kind", ["refusing", "silent", "failing"])
def test_a_dead_collector_costs_a_run_nothing(home: Path, fake: FakeGemini, env: dict[str, str], kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held, FakeCollector(status=500) as failing:
        port = held.getsockname()[1]
        endpoint = failing.url if kind == "failing" else f"http://user:secret-word@127.0.0.1:{port}"
        if kind == "refusing":
            held.close()
        drop_command(home, command(rounds=1))
        extra = {"COUNCIL_OTEL_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "20"}
        done = run_cli("run", "--once", "--log-format", "human", cwd=home, env={**env, **extra})
    assert done.returncode == 0
    assert receipts(home)[0]["status"] == "succeeded"
    said = "spans cannot be delivered to" if kind == "failing" else "spans"
    assert done.stderr.count(said) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "secret-word" not in done.stderr


@pytest.mark.parametrize("off", ["OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none", ""])
def test_nothing_is_imported_unless_it_is_switched_on(home: Path, collector: FakeCollector, off: str) -> None:
    env = environment()
    if off:
        name, _, value = off.partition("=")
        env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, name: value}
    drop_command(home, command(rounds=1))
    script = "\n".join([
        "import sys",
        "from council.cli.main import main",
        "sys.argv = ['council', 'run', '--once', '--model', 'offline']",
        "try: main()",
        "except SystemExit: print([name for name in sys.modules if 'opentelemetry' in name], file=sys.stderr)",
    ])  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr.strip().splitlines()[-1] == "[]"
    assert receipts(home)[0]["status"] == "succeeded"
    assert collector.spans == []


def test_without_the_packages_a_setting_is_an_error_and_the_environment_a_warning(home: Path) -> None:
    (home / "blocked").mkdir()
    (home / "blocked" / "opentelemetry.py").write_text("raise ModuleNotFoundError('no', name='opentelemetry')\n")
    env = environment(PYTHONPATH=str(home / "blocked"))
    drop_command(home, command(rounds=1))
    asked = run_cli("run", "--once", "--model", "offline", cwd=home, env={**env, "COUNCIL_OTEL_ENDPOINT": "http://x:1"})
    assert asked.returncode == 3
    assert "pip install 'council[otel]'" in asked.stderr
    env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
    done = run_cli("run", "--once", "--model", "offline", cwd=home, env=env)
    assert done.returncode == 0
    assert "OpenTelemetry is not installed" in done.stderr


def test_a_replay_tells_no_span(home: Path, fake: FakeGemini, env: dict[str, str], collector: FakeCollector) -> None:
    env = told(env, collector)
    run_once(home, env, rounds=1)
    wait_until(lambda: len(collector.named("invoke_workflow")) == 1, "the run's span")
    count = len(collector.spans)
    for words in (("replay",), ("cassette", "-o", "x.cassette.jsonl")):
        assert run_cli(*words, cwd=home, env=env).returncode == 0
    assert len(collector.spans) == count
