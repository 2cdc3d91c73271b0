"""Runs that wait, and what the audit says meanwhile; runs that wait for the audit itself."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import postgres
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    faulty_environment,
    make_home,
    receipts,
    run_cli,
    wait_until,
)

SETTINGS = (
    'model = "scripted:script.yaml"\nmodel_attempts = 1\nsettle_s = 0.5\nscan_interval_s = 0.2\nstorage_retry_s = 0.3\n'
)
ASKS = '  - {role: COORDINATOR, purpose: turn, text: "I need it.\\n\\n[ORCHESTRATOR_REQUEST: READ_FILE(.env)]"}\n'
BUSY = '  - {role: STRATEGIST, purpose: turn, error: {kind: rate, message: "come back later"}}\n'
REST = 'default: {text: "So be it."}\n'


def scripted(home: Path, settings: str = "") -> Path:
    make_home(home, settings=SETTINGS + settings)
    (home / "script.yaml").write_text(f"replies:\n{ASKS}{BUSY}{REST}")
    return home


def audited(home: Path) -> list[dict[str, Any]]:
    done = run_cli("audit", "tail", "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = json.loads(done.stdout)["records"]
    return records


def test_a_run_that_waits_has_its_refusals_in_the_audit_and_ends_with_each_once(tmp_path: Path) -> None:
    home = scripted(tmp_path / "home")
    with Daemon(home) as daemon:
        drop_command(home, command())
        assert daemon.wait("run_waiting")["reason"] == "provider"
        [refused] = audited(home)
        assert (refused["kind"], refused["detail"]["request"]) == (
            "refusal",
            "[ORCHESTRATOR_REQUEST: READ_FILE(.env)]",
        )
        daemon.kill()
    (home / "script.yaml").write_text(f"replies:\n{ASKS}{REST}")
    assert run_cli("run", "--once", cwd=home).returncode == 0
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]
    assert [record["action"] for record in audited(home)] == ["request_refused", "run_ended"]
    assert run_cli("audit", "verify", cwd=home).returncode == 0


def test_a_cancel_that_comes_while_the_database_is_locked_ends_the_run(tmp_path: Path) -> None:
    home = scripted(tmp_path / "home")
    slow = BUSY.replace("{role", "{delay_s: 0.5, role")
    (home / "script.yaml").write_text(f"replies:\n{ASKS}{slow}{REST}")
    calls = tmp_path / "calls"
    with Daemon(home, env=faulty_environment(COUNCIL_TEST_CALLS=str(calls)), module=FAULTY) as daemon:
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]  # it is refused, and the run to be parked
        wait_until(lambda: "STRATEGIST" in calls.read_text(), "the call is reserved")
        with locked(home):
            drop_command(home, {"type": "cancel", "run": run_id}, "cancel.json")
            wait_until(lambda: "cancel.json stays in the inbox" in daemon.stderr, "it is refused")
            assert daemon.all("run_ended") == []
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
        daemon.wait("control", type="cancel")
        drop_command(home, command("The next of its lane.", output_artifact_path="artifacts/next.md"))
        daemon.wait("run_ended", title="The next of its lane", status="succeeded")
    assert sorted(receipt["status"] for receipt in receipts(home)) == ["cancelled", "succeeded", "succeeded"]
    assert "so be it" not in (home / "artifacts" / "out.md").read_text().lower()


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another process writes, and takes its time."""
    with contextlib.closing(sqlite3.connect(home / ".council" / "council.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


def waits(home: Path) -> list[str]:
    status = json.loads(run_cli("status", "--json", cwd=home).stdout)
    return [run["waiting_for"] for run in status["runs"]]


def test_a_run_waits_for_a_database_that_another_process_locks_and_asks_nobody_twice(tmp_path: Path) -> None:
    home = scripted(tmp_path / "home")
    (home / "script.yaml").write_text('default: {text: "So be it.", delay_s: 0.5}\n')
    calls = tmp_path / "calls"
    with Daemon(home, env=faulty_environment(COUNCIL_TEST_CALLS=str(calls)), module=FAULTY) as daemon:
        drop_command(home, command())
        wait_until(lambda: calls.exists() and "STRATEGIST" in calls.read_text(), "the call is reserved")
        with locked(home):
            waiting = daemon.wait("run_waiting", reason="storage")
            assert "council.db" in waiting["error"]
            wait_until(lambda: waits(home) == ["storage"], "status shows it")
        assert daemon.wait("run_ended")["status"] == "succeeded"
    assert calls.read_text().count("begin") == 4


def test_status_shows_a_command_that_waits_for_a_locked_database(tmp_path: Path) -> None:
    home = scripted(tmp_path / "home")
    (home / "script.yaml").write_text(REST)
    with Daemon(home) as daemon:
        daemon.wait("idle")
        with locked(home):
            drop_command(home, command(), "late.json")
            waiting = daemon.wait("command_waiting", file="late.json", reason="storage")
            assert "council.db" in waiting["error"]

            def shown() -> list[dict[str, str]]:
                return list(json.loads(run_cli("status", "--json", cwd=home).stdout)["unadmitted"])

            wait_until(lambda: shown() == [{"file": "late.json", "error": waiting["error"]}], "status shows it")
            told = run_cli("status", cwd=home).stdout
            assert f"late.json stays in the inbox: {waiting['error']}" in told
        daemon.wait("run_ended", status="succeeded")
        wait_until(lambda: shown() == [], "it is a run")
        assert len(daemon.all("command_waiting")) == 1


def test_a_run_waits_for_a_database_server_that_went_and_then_ends_once(
    tmp_path: Path, postgres_programs: Path
) -> None:
    with postgres.server(postgres_programs) as server:
        home = scripted(tmp_path / "home", f"database_url = {json.dumps(server.url)}\n")
        (home / "script.yaml").write_text('default: {text: "So be it.", delay_s: 0.5}\n')
        assert run_cli("users", "add", "anna", cwd=home).returncode == 0
        with Daemon(home) as daemon:
            drop_command(home, command(), "first.json")
            daemon.wait("run_ended", status="succeeded")
            drop_command(home, command("A second question?", output_artifact_path="artifacts/second.md"), "second.json")
            daemon.wait("run_started", count=2)
            server.stop()
            waiting = daemon.wait("run_waiting")
            assert waiting["reason"] == "storage"
            server.start()
            daemon.wait("run_ended", count=2, status="succeeded")
            assert daemon.stop() == 0
        assert [record["action"] for record in audited(home)] == ["user_added", "run_ended", "run_ended"]
        assert run_cli("audit", "verify", cwd=home).returncode == 0
