"""Memory knows what was rehearsed: a language model is told only what a language model said, however it asks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from council.agents.session_file import Summary, encode_session
from tests.e2e.gate import is_closing, role_of
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.harness import command, drop_command, environment, memory_of, receipts, run_cli, steps

REHEARSED = "The heron fund holds 99 EUR, by rehearsal."
SAID = "The heron fund holds 4,711 EUR, by the last count."
ASK = '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("How much does the heron fund hold?", scope=memory)]'


def run_task(home: Path, env: dict[str, str], task: str, *arguments: str, code: int = 0, **keys: Any) -> str:
    """The id of the run of a task, in a process of its own."""
    name = re.sub(r"\W+", "-", task.lower()).strip("-")
    drop_command(home, command(task, output_artifact_path=f"artifacts/{name}.md", **keys), f"{name}.json")
    done = run_cli("run", "--once", *arguments, cwd=home, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    return str(receipts(home)[-1]["run_id"])


def rehearse(home: Path, task: str, says: str, closing: str = "") -> str:
    script = {"replies": [{"purpose": "synthesis", "text": closing or says}], "default": {"text": says}}
    (home / ".script.yaml").write_text(json.dumps(script))
    return run_task(home, environment(), task, "--model", "scripted:.script.yaml")


def told(fake: FakeGemini) -> list[str]:
    """What the last four calls, those of one run, were told of earlier tasks."""
    before_the_task = [request.texts[0].split("# The task", 1)[0] for request in fake.requests[-4:]]
    return [each.partition("# What you remember of earlier tasks")[2] for each in before_the_task]


def digests(home: Path, run_id: str) -> list[str]:
    """What each member of a run was told of earlier tasks."""
    return [member.get("memory", "") for member in steps(home, run_id)["start"]["members"]]


def test_a_language_model_is_told_only_what_a_language_model_said_and_a_rehearsal_both(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "fund.md").write_text("# Fund\n\nThe heron fund must be counted every year.\n")
    run_task(home, env, "First, offline.", "--model", "offline", input_artifacts=["fund.md"])
    rehearse(home, "Then by script.", REHEARSED)
    fake.reply = lambda request: text(SAID)
    run_task(home, env, "Now in earnest.")
    assert told(fake) == [""] * 4
    run_task(home, env, "And again.")
    assert ["Now in earnest" in each for each in told(fake)] == [True] * 4
    everything = "".join(message for request in fake.requests for message in request.all_texts)
    assert [words in everything for words in ("First, offline", "Then by script", "by rehearsal")] == [False] * 3
    last = rehearse(home, "Once more by script.", "Well.")
    for each in digests(home, last):
        assert [words in each for words in ("First, offline", "by rehearsal", "by the last count")] == [True] * 3
    assert [task.rehearsed for task in memory_of(home).tasks] == [True, True, False, False, True]
    shown = run_cli("memory", "show", "coordinator", cwd=home, env=env).stdout
    assert shown.count(", rehearsed)") == 3
    language_model, rehearsal = shown.split("A language model sees:")[1].split("A rehearsal sees:")
    assert ["by rehearsal" in words for words in (language_model, rehearsal)] == [False, True]


def test_the_memory_of_an_older_version_is_read_by_what_is_kept_of_its_runs(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    rehearse(home, "A rehearsal.", REHEARSED)
    for role in ("COORDINATOR", "STRATEGIST", "AUDITOR"):
        session = memory_of(home, role)
        [task] = [msgspec.structs.replace(task, rehearsed=msgspec.UNSET) for task in session.tasks]
        unknown = msgspec.structs.replace(
            task, run_id="20250101-000000-aaaaaaaa", title="Nobody knows how.", answer="So."
        )
        summary = Summary("Rehearsed, in short.", through=task.run_id)
        as_before = encode_session(msgspec.structs.replace(session, tasks=(task, unknown), summary=summary))
        assert b"rehearsed" not in as_before
        (home / "session_states" / f"{role.lower()}_session.json").write_bytes(as_before)
    run_task(home, env, "In earnest.")
    assert ["Nobody knows how." in each for each in told(fake)] == [True] * 4
    assert ["rehears" in each.lower() for each in told(fake)] == [False] * 4
    assert [task.rehearsed for task in memory_of(home).tasks] == [True, False, False]


@pytest.mark.parametrize(("model", "rehearsed"), [("gemini", False), ("offline", True)])
def test_a_cassette_counts_as_what_it_recorded(home: Path, env: dict[str, str], model: str, rehearsed: bool) -> None:
    recorded = run_task(home, env, "Count the herons.", "--model", model)
    assert run_cli("cassette", recorded, "-o", "tape.jsonl", cwd=home, env=env).returncode == 0
    assert run_cli("forget", "--run", recorded, "--yes", cwd=home, env=env).returncode == 0
    run_task(home, env, "Count the herons.", "--model", "cassette:tape.jsonl")
    assert [task.rehearsed for task in memory_of(home).tasks] == [rehearsed]


# ── what is looked up ────────────────────────────────────────────────────────────────────────────────────────────────


def asking(says: str, asks: str) -> Callable[[RecordedRequest], FakeReply]:
    """COORDINATOR asks in its first turn; everybody else just speaks."""

    def reply(request: RecordedRequest) -> FakeReply:
        first = not is_closing(request) and role_of(request) == "COORDINATOR"
        return text(f"{says}\n{asks}" if first else says)

    return reply


def test_an_agent_finds_what_it_said_in_its_newest_tasks_and_no_rehearsal(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    rehearse(home, "A rehearsal.", REHEARSED)
    fake.reply = lambda request: text(SAID if role_of(request) == "COORDINATOR" else "Nothing to add.")
    said = run_task(home, env, "How is the fund?")
    fake.reply = asking("Let me see.", ASK)
    asked = run_task(home, env, "What did we say?")
    found = steps(home, asked)["round/1/COORDINATOR/request/1"]
    assert f"session_states/archive/main/coordinator/{said}.md:" in found["title"]
    assert "4,711 EUR" in found["text"]
    assert "99 EUR" not in found["text"]


def test_a_rehearsal_finds_what_was_rehearsed_and_what_was_said(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    rehearse(home, "A rehearsal.", REHEARSED)
    fake.reply = lambda request: text(SAID)
    run_task(home, env, "How is the fund?")
    asked = rehearse(home, "What did we say?", ASK, closing="So be it.")
    found = steps(home, asked)["round/1/COORDINATOR/request/1"]
    assert ["4,711 EUR" in found["text"], "99 EUR" in found["text"]] == [True, True]


def test_a_page_of_an_older_version_is_found_by_a_language_model_unless_its_run_was_a_rehearsal(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    rehearsed = rehearse(home, "A rehearsal.", REHEARSED)
    folder = home / "session_states" / "archive" / "main" / "coordinator"
    page = folder / f"{rehearsed}.md"
    page.write_text(page.read_text().replace("rehearsed: yes\n", ""))
    unknown = page.read_text().replace(rehearsed, "20250101-000000-aaaaaaaa").replace("99 EUR", "17 EUR")
    (folder / "20250101-000000-aaaaaaaa.md").write_text(unknown)
    fake.reply = asking("Let me see.", ASK)
    found = steps(home, run_task(home, env, "What did we say?"))["round/1/COORDINATOR/request/1"]
    assert ["17 EUR" in found["text"], "99 EUR" in found["text"]] == [True, False]


def test_the_page_of_a_rehearsal_is_no_passage_for_a_language_model(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    rehearse(home, "A rehearsal.", REHEARSED)
    (home / "fund.md").write_text("# Fund\n\nThe heron fund holds 12 EUR.\n")
    fake.reply = asking("Let me see.", ASK.replace(", scope=memory", ""))
    found = steps(home, run_task(home, env, "What is written?"))["round/1/COORDINATOR/request/1"]
    assert ["12 EUR" in found["text"], "99 EUR" in found["text"]] == [True, False]


def test_the_script_of_a_rehearsal_is_no_passage_for_a_language_model(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "rehearsal.yaml").write_text('replies:\n  - role: AUDITOR\n    text: "The heron fund holds 99 EUR."\n')
    (home / "fund.yaml").write_text("funds:\n  - text: The heron fund holds 12 EUR.\n")
    fake.reply = asking("Let me see.", ASK.replace(", scope=memory", ""))
    found = steps(home, run_task(home, env, "What is written?"))["round/1/COORDINATOR/request/1"]
    assert ["12 EUR" in found["text"], "99 EUR" in found["text"]] == [True, False]


def test_a_language_model_does_not_go_on_with_a_rehearsal_and_does_all_of_it_again(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    script = {
        "replies": [{"role": "COORDINATOR", "text": REHEARSED}],
        "default": {"error": {"kind": "auth", "message": "no"}},
    }
    (home / ".script.yaml").write_text(json.dumps(script))
    drop_command(home, command("How is the fund?"))
    assert run_cli("run", "--once", "--model", "scripted:.script.yaml", cwd=home, env=env).returncode == 1
    [rehearsed] = receipts(home)
    fake.reply = lambda request: text(SAID)
    run_cli("resume", rehearsed["run_id"], "--model", "gemini:gemini-2.5-flash", cwd=home, env=env)
    run_cli("run", "--once", cwd=home, env=env)
    ended = next(each for each in receipts(home) if each["run_id"] == rehearsed["run_id"])
    assert (ended["status"], ended["error"]["code"], fake.requests) == ("failed", "drift", [])
    assert "is not told what was rehearsed" in ended["error"]["message"]
    run_cli("retry", rehearsed["run_id"], "--model", "gemini:gemini-2.5-flash", cwd=home, env=env)
    run_cli("run", "--once", cwd=home, env=env)
    assert SAID in (home / "artifacts" / "out.md").read_text()
    assert "99 EUR" not in "".join(message for request in fake.requests for message in request.all_texts)


def test_memory_quotes_an_agents_answer_and_not_the_task_it_was_given(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    task = "How much does the heron fund hold?"
    fake.reply = lambda request: text(SAID)
    run_task(home, env, task)
    found = run_cli("cortex", "query", task, "--scope", "memory", "--json", cwd=home)
    passages = [hit["quotation"].strip() for hit in json.loads(found.stdout)["hits"]]
    assert "4,711 EUR" in "".join(passages)
    assert task not in passages


@pytest.mark.parametrize("lines", ["", ":8-60"])
def test_a_language_model_cannot_read_the_page_of_a_rehearsal_and_a_rehearsal_can(
    home: Path, fake: FakeGemini, env: dict[str, str], lines: str
) -> None:
    rehearse(home, "A rehearsal.", REHEARSED)
    asks = f"[ORCHESTRATOR_REQUEST: READ_FILE(artifacts/a-rehearsal.md{lines})]"
    fake.reply = asking("Let me see.", asks)
    refused = steps(home, run_task(home, env, "What is written?"))["round/1/COORDINATOR/request/1"]
    assert refused["error_code"] == "rehearsed"
    assert refused["error"] == "a rehearsal wrote `artifacts/a-rehearsal.md`; a language model is not given it"
    assert "99 EUR" not in "".join(message for request in fake.requests for message in request.all_texts)
    read = steps(home, rehearse(home, "What did we say?", asks, closing="So be it."))["round/1/COORDINATOR/request/1"]
    assert "99 EUR" in read["text"]


def test_a_language_model_reads_the_page_of_a_language_model(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: text(SAID)
    run_task(home, env, "How is the fund?")
    fake.reply = asking("Let me see.", "[ORCHESTRATOR_REQUEST: READ_FILE(artifacts/how-is-the-fund.md)]")
    read = steps(home, run_task(home, env, "What is written?"))["round/1/COORDINATOR/request/1"]
    assert "4,711 EUR" in read["text"]


def test_an_input_that_a_rehearsal_wrote_is_given_and_the_page_says_so(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    rehearse(home, "A rehearsal.", REHEARSED)
    fake.reply = lambda request: text("Noted.")
    run_task(home, env, "Sum it up.", input_artifacts=["artifacts/a-rehearsal.md"])
    assert "99 EUR" in "".join(fake.requests[0].all_texts)
    assert "(a rehearsal wrote this page)" in (home / "artifacts" / "sum-it-up.md").read_text()
