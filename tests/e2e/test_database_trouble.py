"""What may befall a home's database while the real process works, and what a person is told."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from council.errors import STATUS_EXIT
from council.storage.drivers import flaw_in
from tests import postgres
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    journal_lines,
    make_home,
    receipts,
    run_cli,
    run_ids,
    wait_until,
)

VARIES = re.compile(  # times, hashes of pages and the head of the audit, which hold times, and the command's place on the disk
    r'"(at|order|inode|mtime_ns|took_ms)":[0-9]+|[0-9-]{10}T[0-9:]{8}Z|'
    r'"sha256":"[0-9a-f]{64}"|"replaces":\[[^]]*\]|\b[0-9]+:[0-9a-f]{64}\b'
)
ENV = environment(COUNCIL_MODEL="offline")


def status(home: Path, env: dict[str, str] | None = None) -> dict[str, Any]:
    told = run_cli("status", "--json", cwd=home, env=env)
    assert told.returncode == 0, told.stderr
    view: dict[str, Any] = json.loads(told.stdout)
    return view


@pytest.fixture
def postgres_url(empty_postgres_url: str) -> str:
    """A daemon makes its tables here."""
    return empty_postgres_url


def test_a_database_that_is_replaced_under_the_daemon_is_told_and_neither_file_is_lost(
    home: Path, tmp_path: Path
) -> None:
    database = home / ".council" / "council.db"
    drop_command(home, command("One."))
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert run_cli("backup", str(tmp_path / "copy.db"), cwd=home, env=ENV).returncode == 0
    with Daemon(home, env=ENV) as daemon:
        daemon.ready()
        drop_command(home, command("Two.", output_artifact_path="artifacts/two.md"))
        daemon.wait("run_ended")
        database.rename(tmp_path / "old.db")
        shutil.copy(tmp_path / "copy.db", database)
        drop_command(home, command("Three.", output_artifact_path="artifacts/three.md"), "three.json")
        waiting = daemon.wait("command_waiting", file="three.json")
        assert "council.db was replaced while it was in use" in waiting["error"]
        wait_until(lambda: [one["file"] for one in status(home)["unadmitted"]] == ["three.json"], "status tells it")
        assert daemon.stop() == 0
    assert (flaw_in(database), flaw_in(tmp_path / "old.db")) == ("", "")
    assert [receipt["title"] for receipt in receipts(home)] == ["One"]
    with closing(sqlite3.connect(tmp_path / "old.db")) as old:
        assert old.execute("SELECT title FROM runs ORDER BY run").fetchall() == [("One",), ("Two",)]


def test_damage_that_is_met_on_the_way_ends_the_process_and_every_look_with_its_name(home: Path) -> None:
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    path = home / ".council" / "council.db"
    with closing(sqlite3.connect(path)) as database:
        roots = dict(database.execute("SELECT name, rootpage FROM sqlite_master").fetchall())
    with path.open("r+b") as file:
        for table in ("steps", "users"):
            file.seek((roots[table] - 1) * 8192)
            file.write(b"\0" * 8192)
    drop_command(home, command("Again."))
    for asked in (("run", "--once"), ("users", "list")):
        told = run_cli(*asked, cwd=home, env=ENV)
        assert (told.returncode, "`council restore` restores one" in told.stderr) == (1, True), (asked, told)
    with Daemon(home, env=ENV) as daemon:
        assert daemon.process.wait(60) == 1


def test_a_run_that_was_cancelled_under_a_lock_ends_when_the_lock_is_gone(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    home = make_home(tmp_path / "home", settings="settle_s = 0.5\nscan_interval_s = 0.5\nstorage_retry_s = 600\n")
    with Daemon(home, env=env) as daemon, closing(sqlite3.connect(":memory:")) as other:
        daemon.ready()
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        fake.wait_for_requests(2)
        other.isolation_level = None
        other.execute("ATTACH ? AS home", (str(home / ".council" / "council.db"),))
        other.execute("BEGIN IMMEDIATE")
        gate.open()
        assert daemon.wait("run_waiting", run_id=run_id)["reason"] == "storage"
        drop_command(home, {"type": "cancel", "run": run_id}, "cancel.json")
        daemon.wait("command_waiting", file="cancel.json")
        other.execute("ROLLBACK")
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
        assert daemon.stop() == 0


def test_a_run_that_ended_after_the_copy_is_not_worked_again(
    home: Path, tmp_path: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command("One."))
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        assert run_cli("backup", str(tmp_path / "copy.db"), cwd=home, env=env).returncode == 0
        gate.open()
        daemon.wait("run_ended")
        assert daemon.stop() == 0
    asked, page = len(fake.requests), (home / "artifacts" / "out.md").read_bytes()
    restored = run_cli("restore", str(tmp_path / "copy.db"), "--yes", cwd=home, env=env)
    assert f"ended since, and kept as ended: 1 run: {run_id}." in restored.stdout
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert (len(fake.requests), (home / "artifacts" / "out.md").read_bytes()) == (asked, page)
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]


def test_a_home_on_a_server_is_looked_at_before_it_is_begun_and_not_begun_beside_a_file(
    home: Path, postgres_url: str
) -> None:
    env = {**ENV, "COUNCIL_DATABASE_URL": postgres_url}
    before = sorted(home.rglob("*"))
    assert status(home, env)["recent"] == []
    assert run_cli("doctor", cwd=home, env=env).returncode == 0
    assert run_cli("doctor", "--model", "gemini", cwd=home, env=env).returncode == 3  # its key may lie in the vault
    assert sorted(home.rglob("*")) == before
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    for asked in (("status",), ("run", "--once")):
        refused = run_cli(*asked, cwd=home, env=env)
        assert "council.db has the data of this home" in refused.stderr
        assert refused.returncode != 0


@pytest.mark.parametrize(
    ("typed", "code"), [(("submit", "--wait", "--task", "Shall we?"), 0), (("ask", "hello"), STATUS_EXIT["degraded"])]
)
def test_the_first_command_in_a_home_on_a_server_waits_for_its_answer_and_finds_it(
    home: Path, postgres_url: str, typed: tuple[str, ...], code: int
) -> None:
    told = run_cli(*typed, cwd=home, env={**ENV, "COUNCIL_DATABASE_URL": postgres_url})
    assert (told.returncode, "no answer yet" in told.stderr) == (code, False), told
    assert told.stdout.strip()


def test_of_two_copies_of_a_home_on_a_server_one_daemon_works(
    home: Path, tmp_path: Path, postgres_programs: Path
) -> None:
    with postgres.server(postgres_programs) as server:
        env = {**ENV, "COUNCIL_DATABASE_URL": server.url}
        drop_command(home, command())
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
        other = Path(shutil.copytree(home, tmp_path / "other"))
        with Daemon(home, env=env) as daemon:
            daemon.ready()
            for asked in (("run",), ("submit", "--wait", "--task", "Again.")):
                refused = run_cli(*asked, cwd=other, env=env)
                assert (refused.returncode, "another daemon uses" in refused.stderr) == (4, True), refused
            assert daemon.stop() == 0


def test_a_server_that_stops_is_told_as_the_database_and_the_run_goes_on_when_it_is_back(
    tmp_path: Path, postgres_programs: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with postgres.server(postgres_programs) as server:
        settings = f"storage_retry_s = 600\ndatabase_url = {json.dumps(server.url)}\n"
        home = make_home(tmp_path / "home", settings=settings)
        with Daemon(home, env=env) as daemon:
            daemon.ready()
            drop_command(home, command())
            run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
            fake.wait_for_requests(2)
            server.stop()
            gate.open()
            assert daemon.wait("run_waiting", run_id=run_id)["reason"] == "storage"
            server.start()
            wait_until(lambda: status(home, env)["runs"][0]["status"] == "waiting", "status tells it")
            assert "waiting for the disk or the database" in run_cli("status", cwd=home, env=env).stdout
            drop_command(home, {"type": "resume", "run": run_id}, "resume.json")
            assert daemon.wait("run_ended", run_id=run_id)["status"] == "succeeded"
            told = run_cli("explain", run_id, cwd=home, env=env).stdout
            assert "the disk or the database failed" in " ".join(told.split())
            assert daemon.stop() == 0


def test_a_run_on_a_server_leaves_the_same_page_and_the_same_journal(tmp_path: Path, postgres_url: str) -> None:
    left = []
    for name, more in (("file", ""), ("server", f"database_url = {json.dumps(postgres_url)}\n")):
        home = make_home(tmp_path / name, settings=f'model = "offline"\n{more}')
        (home / "a.md").write_text("alpha is the first fact\n")
        drop_command(home, command("Which fact counts?", input_artifacts=["a.md"]))
        env = faulty_environment(COUNCIL_TEST_RUN_SECRET="5e" * 32)
        assert run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode == 0
        (run_id,) = run_ids(home)
        told = [*journal_lines(home, run_id), (home / "artifacts" / "out.md").read_text()]
        left.append([VARIES.sub("…", line.replace(run_id, "RUN")) for line in told])
    assert not (tmp_path / "server" / ".council" / "council.db").exists()
    assert left[0] == left[1]


@pytest.mark.parametrize("model", ["offline", "gemini"])
def test_a_look_and_a_drop_need_no_write_to_a_database_that_another_process_holds(home: Path, model: str) -> None:
    env = environment(COUNCIL_MODEL=model)
    with Daemon(home, env=ENV) as daemon, closing(sqlite3.connect(":memory:")) as other:
        daemon.ready()
        other.isolation_level = None
        other.execute("ATTACH ? AS home", (str(home / ".council" / "council.db"),))
        other.execute("BEGIN IMMEDIATE")
        (home / "facts.md").write_text("Mead is made of honey.")
        (home / "mine.json").write_text(json.dumps(command(input_artifacts=["facts.md"])))
        for asked in ("validate", "submit"):
            told = run_cli(asked, "mine.json", cwd=home, env=env)
            assert (told.returncode, "locked" in told.stderr) == (0, False), told.stderr
        daemon.wait("command_waiting", file="mine.json")
        other.execute("ROLLBACK")
        daemon.wait("run_ended")
        assert daemon.stop() == 0


@pytest.mark.parametrize("kind", ["file", "server"])
def test_status_tells_of_daemon_runs_and_inbox_also_while_the_database_is_out_of_reach(
    home: Path, kind: str, fake: FakeGemini, env: dict[str, str], gate: Gate, request: pytest.FixtureRequest
) -> None:
    env = {**env, "COUNCIL_STORAGE_RETRY_S": "1"}
    if kind == "server":
        env["COUNCIL_DATABASE_URL"] = request.getfixturevalue("postgres_url")
    database = home / ".council" / "council.db"
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        (home / "commands" / "notes.txt").write_text("No command.")
        wait_until(lambda: run_id in (home / ".council" / "state.json").read_text(), "the daemon tells of the run")
        if kind == "file":
            database.rename(home / "away.db")
        else:
            env["COUNCIL_DATABASE_URL"] = "postgresql://somebody@127.0.0.1:1/none"
        told = run_cli("status", cwd=home, env=env)
        assert (told.returncode, told.stderr) == (1, "")
        assert re.search(r"^daemon  [A-Z_]+, pid [0-9]+", told.stdout, re.MULTILINE)
        assert "degraded: database: the database " in told.stdout
        assert re.search(rf"^  {run_id}  (running|waiting)", told.stdout, re.MULTILINE)
        assert "skipped notes.txt" in told.stdout
        view = run_cli("status", "--json", cwd=home, env=env)
        assert (view.returncode, list(json.loads(view.stdout)["degraded"])) == (1, ["database"])
        if kind == "file":
            (home / "away.db").rename(database)
        gate.open()
        daemon.wait("run_ended", run_id=run_id)
        assert daemon.stop() == 0
