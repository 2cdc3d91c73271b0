"""Retention by age, number and size, by the daemon and by hand; and `council repair` after every kind of damage."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fake_gemini import FakeGemini, slow, text
from tests.harness import Daemon, command, drop_command, environment, receipts, run_cli

ENV = environment(COUNCIL_MODEL="offline")


def run_some(home: Path, count: int, **keys: Any) -> list[str]:
    """Ids of ended runs, oldest first. The run at 1 has the command id `kept`."""
    for number in range(count):
        body = command(f"Task {number}.", output_artifact_path=f"artifacts/{number}.md", **keys)
        drop_command(home, {**body, "id": "kept"} if number == 1 else body, f"{number}.json")
        assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    return [receipt["run_id"] for receipt in sorted(receipts(home), key=lambda receipt: receipt["title"])]


def folders(home: Path) -> set[str]:
    return {path.name for path in (home / ".council" / "runs").iterdir()}


def repair(home: Path, *arguments: str) -> dict[str, Any]:
    done = run_cli("repair", "--json", *arguments, cwd=home, env=ENV)
    return {"code": done.returncode, **json.loads(done.stdout)}


def rows(home: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(home / ".council" / "ledger.sqlite") as db:
        return db.execute(
            "SELECT run_id, status, title, artifact, ended_ns, pruned FROM runs ORDER BY run_id"
        ).fetchall()


def test_the_oldest_runs_go_first_and_an_id_outlives_its_run(home: Path) -> None:
    ids = run_some(home, 4)
    pages = {path.name: path.read_bytes() for path in (home / "artifacts").glob("*.md")}
    env = {**ENV, "COUNCIL_KEEP_RUNS": "2"}
    looked = run_cli("prune", "--dry-run", "--json", cwd=home, env=env)
    assert json.loads(looked.stdout)["pruned"] == ids[:2]
    assert folders(home) == set(ids)
    assert json.loads(run_cli("prune", "--json", cwd=home, env=env).stdout)["pruned"] == ids[:2]
    assert folders(home) == set(ids[2:])
    assert {path.name: path.read_bytes() for path in (home / "artifacts").glob("*.md")} == pages
    assert {receipt["run_id"] for receipt in receipts(home)} == set(ids[1:])
    refused = run_cli("replay", ids[1], cwd=home, env=ENV)
    assert "was pruned" in refused.stderr
    drop_command(home, {**command("Task 1.", output_artifact_path="artifacts/1.md"), "id": "kept"})
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert {receipt["run_id"] for receipt in receipts(home)} == set(ids[1:])  # answered, not run


def test_the_daemon_prunes_by_size_and_by_age(home: Path) -> None:
    ids = run_some(home, 3)
    long_ago = time.time() - 40 * 86_400
    with sqlite3.connect(home / ".council" / "ledger.sqlite") as db:
        db.execute("UPDATE runs SET ended_ns = ? WHERE run_id = ?", (int(long_ago * 1e9), ids[0]))
        db.execute("UPDATE runs SET bytes = 5000000 WHERE run_id = ?", (ids[2],))
    with Daemon(home, env={**ENV, "COUNCIL_KEEP_DAYS": "30"}) as daemon:
        assert daemon.wait("runs_pruned")["runs"] == ids[:1]
        daemon.stop()
    with Daemon(home, env={**ENV, "COUNCIL_KEEP_BYTES": "1048576"}) as daemon:
        assert daemon.wait("runs_pruned")["runs"] == ids[1:]
        daemon.stop()
    assert folders(home) == set()


def test_an_unfinished_run_is_never_pruned(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: slow(30)
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("turn_started")["run_id"]
        daemon.kill()
    long_ago = time.time() - 400 * 86_400
    for path in (home / ".council" / "runs" / run_id).iterdir():
        os.utime(path, (long_ago, long_ago))
    strict = {**env, "COUNCIL_KEEP_RUNS": "1", "COUNCIL_KEEP_DAYS": "1"}
    assert json.loads(run_cli("prune", "--json", cwd=home, env=strict).stdout)["pruned"] == []
    fake.reply = lambda request: text("words")
    assert run_cli("run", "--once", cwd=home, env=strict).returncode == 0
    assert [receipt["run_id"] for receipt in receipts(home)] == [run_id]


def test_a_prune_that_was_cut_off_is_completed(home: Path) -> None:
    ids = run_some(home, 2)
    runs = home / ".council" / "runs"
    (runs / ids[0]).rename(runs / f".pruned-{ids[0]}")
    run_cli("prune", cwd=home, env={**ENV, "COUNCIL_KEEP_RUNS": "1"})
    assert folders(home) == {ids[1]}
    assert repair(home) == {"code": 0, "dry_run": False, "findings": []}


def test_a_lost_or_damaged_ledger_is_built_anew(home: Path) -> None:
    run_some(home, 3)
    before = rows(home)
    with sqlite3.connect(home / ".council" / "ledger.sqlite") as db:
        db.execute("DELETE FROM runs WHERE title LIKE 'Task 1%'")
        db.execute("UPDATE runs SET status = 'failed'")
    looked = repair(home, "--dry-run")
    assert [finding["done"] for finding in looked["findings"]] == ["built anew"]
    assert rows(home) != before
    repair(home)
    assert rows(home) == before
    (home / ".council" / "ledger.sqlite").write_bytes(
        b"no database at all, but long enough to be looked at as one" * 99
    )
    repair(home)
    assert rows(home) == before
    assert repair(home)["findings"] == []


def spoil_receipt(home: Path, run_id: str) -> None:
    (home / ".council" / "receipts" / f"{run_id}.json").write_text("{")


def lose_marker_and_receipt(home: Path, run_id: str) -> None:
    (home / ".council" / "receipts" / f"{run_id}.json").unlink()


def leave_a_marker(home: Path, run_id: str) -> None:
    (home / ".council" / "active" / "20260101-000000-aaaaaaaa").touch()


def lose_the_id(home: Path, run_id: str) -> None:
    shutil.rmtree(home / ".council" / "ids")


def leave_files(home: Path, run_id: str) -> None:
    (home / "artifacts" / ".x.md.20260101-000000-aaaaaaaa.staged").write_text("half")
    (home / "session_states" / ".auditor_session.json.0123456789ab.tmp").write_text("half")
    (home / ".council" / "runs" / ".spare-01234567").mkdir()


def leave_an_empty_run(home: Path, run_id: str) -> None:
    folder = home / ".council" / "runs" / "20260101-000000-aaaaaaaa"
    folder.mkdir()
    (folder / "journal.jsonl").touch()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (spoil_receipt, "written again from the journal"),
        (lose_marker_and_receipt, "the next start goes on with it"),
        (leave_a_marker, "marks no run"),
        (lose_the_id, "the id 'kept' was bound to no run"),
        (leave_files, "is left of a process that was killed"),
        (leave_an_empty_run, "holds no record"),
    ],
)
def test_what_is_inconsistent_is_named_mended_and_then_in_order(home: Path, damage: Any, said: str) -> None:
    ids = run_some(home, 2)
    before = rows(home)
    damage(home, ids[1])
    tree = sorted(str(path) for path in home.rglob("*") if "ledger" not in path.name)
    looked = repair(home, "--dry-run")
    assert said in json.dumps(looked, ensure_ascii=False)
    assert sorted(str(path) for path in home.rglob("*") if "ledger" not in path.name) == tree
    assert repair(home)["code"] == 0
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0  # what was marked goes on
    assert repair(home)["findings"] == []
    assert [row[:4] for row in rows(home)] == [row[:4] for row in before]
    drop_command(home, {**command("Task 1.", output_artifact_path="artifacts/1.md"), "id": "kept"})
    run_cli("run", "--once", cwd=home, env=ENV)
    assert {receipt["run_id"] for receipt in receipts(home)} == set(ids)


def test_a_damaged_journal_is_named_with_its_place_and_set_aside_when_told(home: Path) -> None:
    [run_id] = run_some(home, 1)
    journal = home / ".council" / "runs" / run_id / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:2], lines[2].replace(b'"t"', b'"T"'), *lines[3:]])
    journal.write_bytes(damaged)
    named = repair(home)
    assert named["code"] == 1
    assert f"record 2 (byte {len(lines[0]) + len(lines[1])}) does not verify" in named["findings"][0]["what"]
    assert "--set-aside" in named["findings"][0]["fix"]
    assert repair(home, "--set-aside")["code"] == 0
    assert (home / ".council" / "damaged" / run_id / "journal.jsonl").read_bytes() == damaged
    assert run_cli("show", run_id, cwd=home, env=ENV).returncode == 0
    repair(home)
    assert repair(home)["findings"] == []


def test_repair_and_prune_say_who_holds_the_home(home: Path) -> None:
    with Daemon(home, env=ENV) as daemon:
        daemon.ready()
        for arguments in (("repair",), ("prune",)):
            refused = run_cli(*arguments, cwd=home, env=ENV)
            assert refused.returncode == 4
            assert str(daemon.process.pid) in refused.stderr
        daemon.stop()
