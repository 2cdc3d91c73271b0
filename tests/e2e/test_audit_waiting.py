"""Runs that wait, and what the audit says meanwhile; runs that wait for the audit itself."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests import postgres
from tests.harness import Daemon, command, drop_command, make_home, receipts, run_cli

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


def test_a_cancel_that_comes_while_the_audit_is_asked_ends_the_run(tmp_path: Path) -> None:
    home = scripted(tmp_path / "home")
    assert run_cli("users", "add", "anna", cwd=home).returncode == 0
    with (
        contextlib.closing(sqlite3.connect(home / ".council" / "council.db", isolation_level=None)) as database,
        Daemon(home) as daemon,
    ):
        database.execute("BEGIN EXCLUSIVE")
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]  # it is refused, and the run to be parked
        drop_command(home, {"type": "cancel", "run": run_id}, "cancel.json")
        daemon.wait("control", type="cancel")
        database.execute("COMMIT")
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
        drop_command(home, command("The next of its lane.", output_artifact_path="artifacts/next.md"))
        daemon.wait("run_ended", title="The next of its lane", status="succeeded")
    assert sorted(receipt["status"] for receipt in receipts(home)) == ["cancelled", "succeeded", "succeeded"]
    assert "so be it" not in (home / "artifacts" / "out.md").read_text().lower()


def test_a_run_waits_for_a_database_server_that_went_and_then_ends_once(
    tmp_path: Path, postgres_programs: Path
) -> None:
    with postgres.server(postgres_programs) as server:
        home = scripted(tmp_path / "home", f"database_url = {json.dumps(server.url)}\n")
        (home / "script.yaml").write_text(REST)
        assert run_cli("users", "add", "anna", cwd=home).returncode == 0
        with Daemon(home) as daemon:
            drop_command(home, command(), "first.json")
            daemon.wait("run_ended", status="succeeded")
            server.stop()
            drop_command(home, command("A second question?", output_artifact_path="artifacts/second.md"), "second.json")
            waiting = daemon.wait("run_waiting")
            assert waiting["reason"] == "storage"
            server.start()
            daemon.wait("run_ended", count=2, status="succeeded")
            assert daemon.stop() == 0
        assert [record["action"] for record in audited(home)] == ["user_added", "run_ended", "run_ended"]
        assert run_cli("audit", "verify", cwd=home).returncode == 0
