"""Fifty secrets go through runs that succeed, fail, are retried and resumed; then everything that is kept is searched."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from council.issued_keys import ISSUED_KEYS
from tests.e2e.gate import is_closing
from tests.fake_collector import FakeCollector
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import Daemon, command, drop_command, inbox, receipts, run_cli, wait_until
from tests.unit.test_redaction import body

COUNT = 50
CANARIES = [f'cAn{number:02}/ary+{number * 7919:08x}"&z=Q' for number in range(COUNT)]
GITHUB = "ghp_0123456789abcdefghijABCDEFGHIJ012345"  # nobody registered it
SHOWN = ("docs/", "commands/failed/", "personas/")  # the steward's own files, which stay as they are


def plain_forms(value: str) -> Iterator[str]:
    yield from (
        value,
        quote(value, safe=""),
        quote(value),
        re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
    )
    yield from (json.dumps(value)[1:-1], json.dumps(json.dumps(value))[3:-3], value.replace("/", "\\/"))
    yield from (html.escape(value), html.escape(value, quote=False), "".join(f"&#{ord(char)};" for char in value))
    yield from (value.encode().hex(), value.encode().hex().upper(), value.encode().hex(":"))


def written(value: str) -> Iterator[str]:
    """As a text may hold a secret: Base64 of a longer text, too."""
    yield from plain_forms(value)
    for offset in range(3):
        encoded = base64.b64encode(b"x" * offset + value.encode() + b"y" * 3).decode()
        yield from (encoded, encoded.replace("+", "-").replace("/", "_"))
    yield base64.b64encode(value.encode()).decode()
    yield base64.encodebytes(b"x" * 50 + value.encode()).decode()  # broken in the middle of it


def forms(value: str) -> Iterator[str]:
    """What to look for, found without the code that is tested."""
    yield from plain_forms(value)
    for offset in range(3):
        encoded = base64.b64encode(b"x" * offset + value.encode() + b"y" * 3).decode()
        whole = encoded[4 if offset else 0 : (offset + len(value)) // 3 * 4]
        yield from (whole, whole.replace("+", "-").replace("/", "_"))


NEEDLES = [form.encode() for value in (*CANARIES, GITHUB) for form in set(forms(value))]


def leaks(data: bytes) -> list[str]:
    return [needle.decode() for needle in NEEDLES if needle in data]


def kept(home: Path) -> Iterator[tuple[str, bytes]]:
    """Everything below the home but what the steward wrote there."""
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_file() and not (name.startswith(SHOWN) and not name.endswith(".error.md")):
            yield name, path.read_bytes()


def in_all_forms(values: list[str]) -> str:
    lines = [f"{number}: {' '.join(written(value))}" for number, value in enumerate(values)]
    return "\n".join([*lines, f"token {GITHUB}"])


@pytest.fixture
def secretive(home: Path, env: dict[str, str]) -> dict[str, str]:
    """A home that names fifty keys, and an environment that holds them."""
    tables = [
        f'[providers.p{number}]\nbase_url = "http://127.0.0.1:9/v1"\nkey_env = "CANARY_{number}"'
        for number in range(COUNT)
    ]
    with (home / "council.toml").open("a") as settings:
        settings.write('model_attempts = 2\nlog_level = "debug"\n' + "\n".join(tables) + "\n")
    auditor = home / "personas" / "auditor.md"
    auditor.write_text(f"{auditor.read_text()}\nYou know {CANARIES[49]} and {CANARIES[48].encode().hex()}.\n")
    (home / "docs").mkdir()
    (home / "docs" / "leak.md").write_text(f"# Keys\n{in_all_forms(CANARIES[:25])}\nThe figure is 17.\n")
    return {**env, **{f"CANARY_{number}": value for number, value in enumerate(CANARIES)}}


def test_fifty_secrets_leave_no_trace_in_home_logs_and_spans(
    home: Path, fake: FakeGemini, secretive: dict[str, str]
) -> None:
    calls: list[str] = []

    def reply(request: RecordedRequest) -> FakeReply:
        calls.append(request.system)
        if len(calls) == 3:
            return error(503, message=f"overloaded, key {CANARIES[30]} {in_all_forms(CANARIES[31:34])}")
        if "Fail now" in "".join(request.texts):
            return error(400, message=f"bad key {in_all_forms(CANARIES[34:40])}")
        asked = "[ORCHESTRATOR_REQUEST: READ_FILE(docs/leak.md)]\n[ORCHESTRATOR_REQUEST: QUERY_CORTEX(keys figure)]\n"
        asked += f"[ORCHESTRATOR_REQUEST: READ_FILE(docs/{CANARIES[40][:5]}.md)]"
        return text(f"I know these:\n{in_all_forms(CANARIES[25:])}\n\n{'' if is_closing(request) else asked}")

    fake.reply = reply
    output = []
    with FakeCollector() as collector:
        env = {**secretive, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "COUNCIL_OTEL_CONTENT": "true"}
        told = command(f"Compare these: {in_all_forms(CANARIES[:50])}", rounds=2, input_artifacts=["docs/leak.md"])
        drop_command(home, told, "a.json")
        drop_command(home, command(f"Fail now. {CANARIES[45]}", output_artifact_path="artifacts/failed.md"), "b.json")
        drop_command(home, {**command(), CANARIES[46]: CANARIES[47]}, "c.json")
        drop_command(home, command(session=CANARIES[48]), "d.json")
        done = run_cli("run", "--once", "--log-format", "json", cwd=home, env=env)
        output += [done.stdout, done.stderr]
        spans = repr(collector.spans)
    last = receipts(home)[0]["run_id"]
    for arguments in (("replay", last), ("explain", last), ("explain", last, "--json"), ("report", last),
                      ("cassette", last, "--out", str(home / "tape.jsonl")), ("status", "--json"), ("logs",),
                      ("cortex", "search", "keys figure"), ("doctor",), ("show", "last"), ("config", "show")):  # fmt: skip
        shown = run_cli(*arguments, cwd=home, env=secretive)
        output += [shown.stdout, shown.stderr]

    assert sorted(receipt["status"] for receipt in receipts(home)) == ["failed", "succeeded"]
    assert (home / "artifacts" / "out.md").read_text().count("[secret]") > 100
    assert "The figure is 17." in "".join("".join(request.texts) for request in fake.requests)
    assert len(list((home / "commands" / "failed").glob("*.error.md"))) == 2
    assert len(spans) > 1000
    assert [(name, found) for name, data in kept(home) if (found := leaks(data))] == []
    assert [(text[:200], found) for text in output if (found := leaks(text.encode()))] == []
    assert leaks(spans.encode()) == []
    prompts = json.dumps([[request.system, request.texts] for request in fake.requests], ensure_ascii=False)
    assert leaks(prompts.encode()) == []


def test_a_resumed_run_sees_the_redacted_text_that_the_live_one_saw(
    home: Path, fake: FakeGemini, secretive: dict[str, str]
) -> None:
    hold = {"at": 2}

    def reply(request: RecordedRequest) -> FakeReply:
        if len(fake.requests) == hold["at"]:
            return FakeReply((), ending="silent")
        return text(f"The key is {CANARIES[3]}.")

    fake.reply = reply
    with Daemon(home, env=secretive) as daemon:
        drop_command(home, command())
        wait_until(lambda: len(fake.requests) >= 2, "the second turn is asked")
        daemon.kill()
    said_before = "".join(fake.requests[1].texts)
    hold["at"] = 0
    assert run_cli("run", "--once", cwd=home, env=secretive).returncode == 0
    assert "The key is [secret]." in said_before
    assert "".join(fake.requests[2].texts) == said_before
    assert receipts(home)[0]["status"] == "succeeded"


def test_a_key_that_is_a_word_of_the_house_breaks_no_run(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: text("It succeeded.")
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env={**env, "HF_TOKEN": "succeeded"}).returncode == 0
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]


def test_what_only_dotenv_or_an_issuers_shape_tells_is_nowhere_and_not_in_what_validate_prints(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    portal = "portal-9/pass-word"
    with (home / ".env").open("a") as dotenv:
        dotenv.write(f"STAFF_PORTAL={portal}\n")
    issued = [f"{key.prefix}{body(key.alphabet, key.least)}" for key in ISSUED_KEYS]
    assigned = "db_password = Tr0ub4dor-and-3"
    (home / "docs").mkdir(exist_ok=True)
    (home / "docs" / "notes.md").write_text(f"{portal}\n{assigned}\n" + "\n".join(issued) + "\n")
    fake.reply = lambda request: text(f"I read {portal}, {assigned} and " + "; ".join(issued))
    named = command(input_artifacts=[f"docs/notes_{GITHUB}.md"])
    (home / "draft.json").write_text(json.dumps(named))
    said = run_cli("validate", "draft.json", cwd=home, env=env)
    as_json = run_cli("validate", "draft.json", "--json", cwd=home, env=env)
    drop_command(home, command(input_artifacts=["docs/notes.md"]))
    drop_command(home, named, "named.json")
    done = run_cli("run", "--once", cwd=home, env=env)
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]
    told = [
        done.stdout,
        done.stderr,
        said.stdout,
        said.stderr,
        as_json.stdout,
        *("".join(r.texts) for r in fake.requests),
    ]
    told += [path.read_bytes().decode("latin-1") for folder in ("artifacts", ".council", "session_states")
             for path in (home / folder).rglob("*") if path.is_file() and path.name != "council.db-shm"]  # fmt: skip
    assert "`input_artifacts` has a secret in it" in said.stdout
    assert "`input_artifacts` has a secret in it" in done.stdout
    assert [value for value in (portal, "Tr0ub4dor", *issued) if any(value in each for each in told)] == []
    assert [each[:200] for each in told[:5] if GITHUB in each] == []


@pytest.mark.parametrize(
    "dropped", [command(), {"type": "cancel", "run": "20261128-120000-abcdefgh"}], ids=["run", "control"]
)
def test_no_door_drops_or_shows_a_file_name_with_a_secret(
    home: Path, env: dict[str, str], dropped: dict[str, Any]
) -> None:
    secret = env["GEMINI_API_KEY"]
    (home / "own.json").write_text(json.dumps(dropped))
    refused = run_cli("submit", "own.json", "--name", f"{secret}.json", cwd=home, env=env)
    assert refused.returncode == 2
    assert "the file's name has a secret in it" in refused.stderr
    assert inbox(home) == []
    drop_command(home, dropped, f"{secret}.json")
    waiting = run_cli("status", cwd=home, env=env).stdout
    assert "inbox   [secret].json" in waiting
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 2
    failed = home / "commands" / "failed"
    assert sorted(path.name for path in failed.iterdir()) == ["[secret].json", "[secret].json.error.md"]
    (failed / "[secret].json.error.md").rename(failed / f"{secret}.json.error.md")  # as an older version left it
    shown = [run_cli("status", *how, cwd=home, env=env).stdout for how in ((), ("--json",))]
    assert all("[secret].json" in each and "has a secret in it" in each for each in shown)
    assert secret not in "".join([refused.stderr, waiting, *shown])


def test_a_command_that_cannot_be_read_without_its_secret_fails_and_frees_its_lane(
    home: Path, env: dict[str, str]
) -> None:
    replaced = {
        "type": "memory",
        "role": "AUDITOR",
        "action": "replace",
        "answers": [{"run_id": GITHUB, "answer": "x"}],
    }
    drop_command(home, replaced, "memory.json")
    drop_command(home, command(), "next.json")
    done = run_cli("run", "--once", "--model", "offline", cwd=home, env=env)
    assert GITHUB not in done.stdout
    ended = {receipt["type"]: (receipt["run_id"], receipt["status"]) for receipt in receipts(home)}
    assert {type_: status for type_, (_, status) in ended.items()} == {"memory": "failed", "deliberate": "succeeded"}
    explained = run_cli("explain", ended["memory"][0], cwd=home, env=env)
    assert (explained.returncode, "does not hold what it should (1 fault)." in explained.stdout) == (0, True)
