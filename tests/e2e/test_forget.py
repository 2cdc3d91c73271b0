"""A text that a person wants gone is gone from everything that Council keeps, whatever dies when; and replay shows the gap."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_gemini import FakeGemini, slow, text
from tests.harness import Daemon, command, drop_command, receipts, run_cli

SECRET = "Grete Ölmann's number is 555-0172"  # as JSON it has two spellings
TASK = f"Decide whether {SECRET} is the right one."
ANSWER = f"The council would call. {SECRET}, and nobody else."


def holding(home: Path) -> list[str]:
    """Files below the home in which the text stands, in any spelling."""
    spellings = [SECRET.encode(), json.dumps(SECRET)[1:-1].encode()]
    files = [path for path in home.rglob("*") if path.is_file()]
    return [
        path.relative_to(home).as_posix()
        for path in files
        if any(spelling in path.read_bytes() for spelling in spellings)
    ]


@pytest.fixture
def told(home: Path, fake: FakeGemini, env: dict[str, str]) -> Path:
    """A home whose agents were told the text, said it, remember it, archived it and had it indexed."""
    fake.reply = lambda request: text(ANSWER)
    (home / "notes.md").write_text("The steward wrote this, and Council has no business in it.\n")
    drop_command(home, command(TASK, input_artifacts=["notes.md"], rounds=2))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert run_cli("memory", "reset", "auditor", "--yes", cwd=home, env=env).returncode == 0  # into the archive
    for scope in ("files", "memory"):
        run_cli("cortex", "query", "number", "--scope", scope, cwd=home, env=env)
    kinds = {name.split("/")[0] for name in holding(home)}
    assert kinds == {".council", "artifacts", "session_states"}
    return home


def deliberated(home: Path) -> str:
    [run_id] = [receipt["run_id"] for receipt in receipts(home) if receipt["type"] == "deliberate"]
    return str(run_id)


def test_nothing_is_left_and_the_gap_is_shown(told: Path, env: dict[str, str]) -> None:
    done = run_cli("forget", SECRET, "--yes", "--json", cwd=told, env=env)
    assert done.returncode == 0, done.stderr
    receipt = json.loads(done.stdout)
    assert holding(told) == []
    [record] = [json.loads(path.read_bytes()) for path in (told / ".council" / "forgotten").iterdir()]
    assert record["run_id"] == receipt["run_id"]
    assert record["counts"] == {"runs": 1, "artifacts": 1, "receipts": 1, "memory": 5, "logs": 1}
    mark = f"[forgotten {record['sha256'][:12]}]"
    page = (told / "artifacts" / "out.md").read_text()
    assert f"The council would call. {mark}, and nobody else." in page
    replayed = run_cli("replay", deliberated(told), cwd=told, env=env)
    assert replayed.stdout == page
    assert run_cli("replay", "--check", deliberated(told), cwd=told, env=env).returncode == 0
    assert mark in run_cli("show", deliberated(told), cwd=told, env=env).stdout
    assert mark in run_cli("memory", "show", "strategist", cwd=told, env=env).stdout
    assert run_cli("repair", cwd=told, env=env).stdout == "Everything is in order.\n"


def test_no_index_finds_it_any_more(told: Path, env: dict[str, str]) -> None:
    before = run_cli("cortex", "query", "0172", "--scope", "memory", cwd=told, env=env)
    assert "555" in before.stdout
    assert run_cli("forget", SECRET, "--yes", cwd=told, env=env).returncode == 0
    for scope in ("files", "memory"):
        found = run_cli("cortex", "query", "0172 number Grete", "--scope", scope, cwd=told, env=env)
        assert "555" not in found.stdout


def test_what_comes_later_is_not_told_and_our_artifact_is_still_ours(
    told: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    assert run_cli("forget", SECRET, "--yes", cwd=told, env=env).returncode == 0
    calls = len(fake.requests)
    fake.reply = lambda request: text("A new answer.")
    drop_command(told, command("Decide again."))
    assert run_cli("run", "--once", cwd=told, env=env).returncode == 0
    assert not any("555-0172" in json.dumps(request.body) for request in fake.requests[calls:])
    assert "A new answer." in (told / "artifacts" / "out.md").read_text()
    assert [path.name for path in (told / "artifacts").glob("out*")] == ["out.md"]


def test_what_a_person_wrote_is_left_and_named(told: Path, env: dict[str, str]) -> None:
    page = told / "artifacts" / "out.md"
    page.write_text(page.read_text() + "\nMy own remark.\n")
    done = run_cli("forget", SECRET, "--yes", "--json", cwd=told, env=env)
    assert "left as they are: `artifacts/out.md`" in json.loads(done.stdout)["notes"][-1]
    assert holding(told) == ["artifacts/out.md"]
    assert page.read_text().endswith("My own remark.\n")


def test_it_may_be_killed_at_any_change_to_the_disk(told: Path, tmp_path: Path, env: dict[str, str]) -> None:
    for number in (3, 9, 15, 21, 27, 33, 39, 45):
        home = tmp_path / f"killed-{number}" / "home"
        home.parent.mkdir()
        subprocess.run(["cp", "-a", str(told), str(home)], check=True)
        drop_command(home, {"type": "forget", "text": SECRET}, "forget.json")
        killed = subprocess.run(
            [sys.executable, "-m", "tests.faults", "--home", str(home), "run", "--once"],
            env={**env, "COUNCIL_TEST_FAULT": f"kill-before:{number}"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=False,
        )
        assert killed.returncode == -9
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
        assert holding(home) == []
        assert run_cli("replay", "--check", deliberated(home), cwd=home, env=env).returncode == 0
        assert run_cli("repair", cwd=home, env=env).returncode == 0


def test_an_unfinished_run_that_holds_it_is_named_and_nothing_is_changed(
    told: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: slow(60)
    before = holding(told)
    with Daemon(told, env=env) as daemon:
        body = command(f"Another: {SECRET}", session="other", output_artifact_path="artifacts/other.md")
        drop_command(told, body, "other.json")
        other = daemon.wait("turn_started")["run_id"]
        refused = run_cli("forget", SECRET, "--yes", cwd=told, env=env)
        assert refused.returncode == 1
        assert f"the unfinished run {other} holds the text" in refused.stderr
        assert set(before) <= set(holding(told))
        run_cli("cancel", other, cwd=told, env=env)
        assert run_cli("forget", SECRET, "--yes", cwd=told, env=env).returncode == 0
        daemon.stop()
    assert [name for name in holding(told) if not name.startswith("commands/failed/")] == []


def test_it_takes_its_turn_in_its_lane(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: slow(0.3, ANSWER)
    drop_command(home, command(TASK), "a.json")
    drop_command(home, {"type": "forget", "text": SECRET}, "b.json")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert {receipt["type"]: receipt["status"] for receipt in receipts(home)} == {
        "deliberate": "succeeded",
        "forget": "succeeded",
    }
    assert holding(home) == []
    assert re.search(r"\[forgotten [0-9a-f]{12}\]", (home / "artifacts" / "out.md").read_text())


def test_a_text_too_short_is_refused(home: Path, env: dict[str, str]) -> None:
    refused = run_cli("forget", "ab", "--yes", cwd=home, env=env)
    assert refused.returncode == 2
    assert "text" in refused.stderr
