"""Outside requests through the real process: a person sees what is sent, it is sent once, and the key is nowhere else."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from council.specialists.specialist_spec import SpecialistSpec, spec_of
from tests.apprentices import registered
from tests.harness import (
    FAULTY,
    Daemon,
    drop_command,
    faulty_environment,
    inbox,
    make_home,
    opened,
    rows_of,
    run_cli,
)
from tests.outside import Answer, OutsideHost

HOST = "api.sms.example"
KEY = "canary-sms-7Qx0pWz3kd91"
TEXTING = spec_of(
    {
        "role": "texting",
        "purpose": "Sends short messages to telephones.",
        "dna_rules": ["Send what was asked, word for word.", "If the number is missing, say so."],
        "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}},
        "output_schema": {"type": "object", "properties": {"sent": {"type": "boolean"}}},
        "requests": [
            {
                "name": "sms",
                "method": "POST",
                "url": f"https://{HOST}/v1/messages",
                "parameters": [{"name": "to"}, {"name": "text"}],
                "headers": [{"name": "Authorization", "credential": "sms_key", "prefix": "Bearer "}],
                "body": {"to": "{to}", "text": "{text}"},
                "mock_reply": {"id": 1},
            }
        ],
    }
)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[OutsideHost]:
    with OutsideHost(tmp_path, [HOST]) as served:
        served.answer = Answer({"id": 7, "echo": f"Bearer {KEY}"})
        yield served


def home_with(tmp_path: Path, spec: SpecialistSpec = TEXTING) -> Path:
    home = make_home(tmp_path / "home", settings='model = "offline"\nsettle_s = 0.5\nscan_interval_s = 0.5\n')
    with opened(home) as store:
        registered(store, "steward", spec=spec)
    return home


def ask(home: Path, *arguments: str, env: dict[str, str], code: int = 0, stdin: bytes = b"") -> str:
    done = run_cli("--home", str(home), *arguments, cwd=home, env=env, module=FAULTY, stdin=stdin)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def sms(
    *, request: str = "sms", times: int = 1, role: str = "texting", input: dict[str, Any] | None = None, **keys: Any
) -> dict[str, Any]:
    parameters = {"to": "+359 88", "text": "Hello & bye"}
    arguments = {"role": role, "request": request, "parameters": parameters, **({"input": input} if input else {})}
    return {
        "type": "plan",
        "kind": "outside_request",
        "operations": [{"tool": "sendRequest", "arguments": arguments}] * times,
        **keys,
    }


def plan_state(home: Path) -> tuple[str, str]:
    [row] = rows_of(home, "SELECT state, outcome FROM plans ORDER BY plan_id DESC LIMIT 1")
    return str(row[0]), str(row[1])


def test_what_a_person_confirmed_is_sent_once_with_their_key_and_the_key_is_nowhere(
    tmp_path: Path, host: OutsideHost
) -> None:
    home, env = home_with(tmp_path), faulty_environment(**host.environment(HOST))
    ask(home, "users", "add", "bert", env=env)
    with Daemon(home, env=env, module=FAULTY) as daemon:
        daemon.ready()
        for name, body, told in (
            ("two.json", sms(times=2), "one operation"),
            ("other.json", sms(request="fax"), "There is no request texting/fax"),
            ("foreign.json", sms(user="bert"), "There is no request texting/sms for bert"),
        ):
            drop_command(home, body, name)
            assert told in daemon.wait("command_refused", file=name)["error"]

        drop_command(home, sms(), "first.json")
        daemon.wait("control", type="plan")
        shown = ask(home, "plans", "show", env=env)
        assert f"address: + POST https://{HOST}/v1/messages" in shown
        assert "Authorization: + your credential sms_key" in shown
        assert "text: + Hello & bye" in shown
        ask(home, "plans", "confirm", env=env)
        told = ask(home, "plans", "apply", env=env, code=1)
        assert (
            "Nothing was sent. steward/texting/sms_key is not in the vault. To mend it: `council vault set sms_key"
            in told
        )
        assert plan_state(home)[0] == "failed"
        assert host.requests == []

        ask(home, "vault", "set", "sms_key", "--role", "texting", env=env, stdin=KEY.encode())
        drop_command(home, sms(), "second.json")
        daemon.wait("control", type="plan", count=2)
        ask(home, "plans", "confirm", env=env)
        told = ask(home, "plans", "apply", env=env)
        assert f"Sent to {HOST}, which answered 200: " in told
        assert '"id": 7' in told
        [got] = host.requests
        assert got.headers["authorization"] == f"Bearer {KEY}"
        assert got.body == {"to": "+359 88", "text": "Hello & bye"}
        assert f"→ Sent to {HOST}, which answered 200" in ask(home, "plans", "show", "last", env=env)
        assert "error (plan_applied)" in ask(home, "plans", "apply", "last", env=env, code=1)
        assert "cannot be undone" in ask(home, "plans", "undo", "last", env=env, code=1)
        assert len(host.requests) == 1

        host.answer = Answer(status=307, headers={"Location": "https://127.0.0.1/"})
        drop_command(home, sms(), "third.json")
        daemon.wait("control", type="plan", count=3)
        ask(home, "plans", "confirm", env=env)
        assert "redirect, which is not followed" in ask(home, "plans", "apply", env=env, code=1)
        assert len(host.requests) == 2
        assert daemon.stop() == 0
        assert KEY not in json.dumps(daemon.events) + daemon.stderr
    assert inbox(home) == []
    assert KEY.encode() not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    tail = ask(home, "audit", "tail", "-n", "60", env=env)
    assert tail.count("plan_handed_over") == 3
    assert tail.count(" plan_applied ") == 1
    ask(home, "audit", "verify", env=env)


def test_a_request_that_is_cancelled_while_it_is_sent_is_not_sent_again(tmp_path: Path, host: OutsideHost) -> None:
    home, env = home_with(tmp_path), faulty_environment(**host.environment(HOST))
    ask(home, "vault", "set", "sms_key", "--role", "texting", env=env, stdin=KEY.encode())
    arrived, answered = threading.Event(), threading.Event()

    def hold() -> None:
        arrived.set()
        answered.wait(60)

    host.answer.before = hold
    with Daemon(home, env=env, module=FAULTY) as daemon:
        daemon.ready()
        drop_command(home, sms(), "plan.json")
        daemon.wait("control", type="plan")
        ask(home, "plans", "confirm", env=env)
        [(plan,)] = rows_of(home, "SELECT plan_id FROM plans")
        drop_command(home, {"type": "apply", "plan": plan}, "apply.json")
        run = daemon.wait("run_started", file="apply.json")["run_id"]
        assert arrived.wait(60)
        ask(home, "cancel", run, env=env)
        assert daemon.wait("run_ended", run_id=run)["status"] == "cancelled"
        answered.set()
        assert "Nobody knows whether it was sent." in ask(home, "show", run, env=env)
        ask(home, "resume", run, env=env)
        assert daemon.wait("run_ended", run_id=run, count=2)["error"]["code"] == "outcome_unknown"
        assert daemon.stop() == 0
    assert plan_state(home)[0] == "failed"
    assert len(host.requests) == 1


CODED = msgspec.structs.replace(
    TEXTING, kind="code", code='def run(input, replies):\n    return {"sent": replies["sms"]["id"] == 7}\n'
)
UNKNOWN = "Nobody knows whether it arrived"
KILLS = {  # the instants of the kills, one after the other, and what is known afterwards
    "before it begins": (["kill-at:1: done send/begun"], "applied", ""),
    "while it is sent": ([""], "failed", UNKNOWN),
    "before its reply is recorded": (["kill-at:1: done send  1"], "failed", UNKNOWN),
    "before its code and its end are recorded": (["kill-at:1: done output", "kill-at:1: done sent"], "applied", ""),
}


@pytest.mark.parametrize("when", KILLS)
def test_after_a_kill_nothing_is_sent_twice_and_what_nobody_knows_is_said(
    tmp_path: Path, host: OutsideHost, when: str
) -> None:
    faults, state, told = KILLS[when]
    home, env = home_with(tmp_path, CODED), faulty_environment(**host.environment(HOST))
    ask(home, "vault", "set", "sms_key", "--role", "texting", env=env, stdin=KEY.encode())
    drop_command(home, sms(input={"to": "+359 88"}), "plan.json")
    ask(home, "run", "--once", env=env)
    [(plan,)] = rows_of(home, "SELECT plan_id FROM plans")
    drop_command(home, {"type": "confirm", "plan": plan}, "confirm.json")
    ask(home, "run", "--once", env=env)
    drop_command(home, {"type": "apply", "plan": plan}, "apply.json")
    for fault in faults:
        killing = env | {"COUNCIL_TEST_FAULT": fault or "count", "COUNCIL_TEST_FAULT_LOG": f"{home}.log"}
        with Daemon(home, "--once", env=killing, module=FAULTY) as daemon:
            if not fault:
                host.answer.before = lambda: os.kill(daemon.process.pid, signal.SIGKILL)
            assert daemon.process.wait(60) == -9
        assert plan_state(home)[0] == "confirmed"
    host.answer.before = lambda: None
    done = run_cli("--home", str(home), "run", "--once", cwd=home, env=env, module=FAULTY)
    assert plan_state(home)[0] == state, done.stdout + done.stderr
    assert told in plan_state(home)[1]
    [(results,)] = rows_of(home, "SELECT results FROM plans")
    assert ("sent: true" in results) == (state == "applied")
    assert len(host.requests) == 1
    assert inbox(home) == []
