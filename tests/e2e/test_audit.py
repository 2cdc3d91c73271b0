"""The audit of a real daemon: what is in it, what a person is shown of it, and what was done to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.harness import Daemon, command, drop_command, environment, inbox, make_home, receipts, run_cli, wait_until

OFFLINE = 'model = "offline"\nsettle_s = 0.5\nscan_interval_s = 0.5\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = make_home(tmp_path / "home", settings=OFFLINE)
    (home / "a.md").write_text("The archive holds ten files.\n")
    return home


def run(home: Path, **keys: Any) -> dict[str, Any]:
    """One command to its end; the newest receipt."""
    drop_command(home, command(**keys))
    done = run_cli("run", "--once", cwd=home)
    assert "Traceback" not in done.stderr
    return receipts(home)[-1]


def audited(home: Path) -> list[dict[str, Any]]:
    done = run_cli("audit", "tail", "-n", "100", "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = json.loads(done.stdout)["records"]
    return records


def database(home: Path) -> Path:
    return home / ".council" / "council.db"


def verified(home: Path, *arguments: str) -> tuple[int, list[str]]:
    done = run_cli("audit", "verify", "--json", *arguments, cwd=home)
    return done.returncode, [finding["code"] for finding in json.loads(done.stdout)["findings"]]


def states(home: Path) -> dict[str, str]:
    """How each file is that the chain names, if it is not as recorded."""
    files = json.loads(run_cli("audit", "verify", "--json", cwd=home).stdout)["files"]
    return {file["path"]: file["state"] for file in files if file["state"] != "as recorded"}


def head_on_page(home: Path) -> str:
    [line] = [line for line in (home / "artifacts" / "out.md").read_text().splitlines() if "audit_head" in line]
    return line.split('"')[1]


def test_a_run_is_recorded_with_what_it_wrote_and_its_page_shows_the_chain(home: Path) -> None:
    receipt = run(home, input_artifacts=["a.md"])
    first = head_on_page(home)
    assert first == f"0:{'0' * 64}"
    [record] = audited(home)
    assert (record["kind"], record["action"], record["run_id"]) == ("effect", "run_ended", receipt["run_id"])
    assert {"path": "artifacts/out.md", "sha256": receipt["artifact"]["sha256"]} in record["detail"]["files"]
    run(home, task="Another question?", input_artifacts=["a.md"])
    assert head_on_page(home) == f"1:{record['mac']}"
    assert verified(home, "--head", head_on_page(home)) == (0, [])


def test_what_was_refused_is_recorded_and_a_missing_file_is_no_refusal(home: Path) -> None:
    run(home, input_artifacts=["a.md", "../outside.md", ".env", "none.md"])
    refused = {record["detail"]["request"] for record in audited(home) if record["kind"] == "refusal"}
    assert refused == {"../outside.md", ".env"}


def test_a_command_that_may_not_write_there_is_recorded(home: Path) -> None:
    drop_command(home, command(output_artifact_path="../outside.md"))
    run_cli("run", "--once", cwd=home)
    [record] = audited(home)
    assert (record["kind"], record["action"]) == ("refusal", "command_refused")
    assert record["detail"]["file"] == "command.json"


def test_a_change_of_memory_and_a_forgetting_are_recorded_and_the_words_go(home: Path) -> None:
    run(home, task="Where is the blue heron?", input_artifacts=["a.md"], output_artifact_path="artifacts/heron.md")
    assert run_cli("memory", "reset", "auditor", "--yes", cwd=home).returncode == 0
    assert run_cli("forget", "heron", "--yes", cwd=home).returncode == 0
    actions = [record["action"] for record in audited(home)]
    assert actions == ["run_ended", "memory_changed", "details_forgotten", "files_rewritten", "text_forgotten"]
    files = [path for path in (home / ".council").iterdir() if path.name.startswith("council.db")]
    assert not [path.name for path in files if b"heron" in path.read_bytes()]
    assert audited(home)[0]["detail"] is None
    assert verified(home) == (0, [])


def test_a_page_that_was_edited_or_removed_is_found_until_the_steward_accepts_it(home: Path) -> None:
    run(home, input_artifacts=["a.md"])
    first = run(home, task="A second question?", output_artifact_path="artifacts/second.md")
    assert (verified(home), states(home)) == ((0, []), {})
    page, second = home / "artifacts" / "out.md", home / "artifacts" / "second.md"
    page.write_text(page.read_text().replace("##", "###", 1))
    second.unlink()
    assert verified(home) == (1, [])
    assert states(home) == {"artifacts/out.md": "changed", "artifacts/second.md": "missing"}
    told = run_cli("audit", "verify", cwd=home)
    assert told.returncode == 1
    assert f"missing: artifacts/second.md, which run {first['run_id']} wrote\n" in told.stdout
    assert "1 changed, 1 missing." in told.stdout
    accepted = run_cli("audit", "accept", "artifacts/out.md", "artifacts/second.md", cwd=home)
    assert accepted.stdout == "Accepted as it is now: artifacts/out.md\nAccepted as gone: artifacts/second.md\n"
    assert (verified(home), states(home)) == (
        (0, []),
        {"artifacts/out.md": "accepted", "artifacts/second.md": "accepted"},
    )
    assert audited(home)[-1]["kind"] == "approval"
    page.write_text("Another edit.\n")
    assert (verified(home), states(home)["artifacts/out.md"]) == ((1, []), "changed")
    assert "changed since you accepted it: artifacts/out.md\n" in run_cli("audit", "verify", cwd=home).stdout
    refused = run_cli("audit", "accept", "a.md", cwd=home)
    assert (refused.returncode, "the audit names no file 'a.md'" in refused.stderr) == (2, True)


def test_memory_that_was_edited_by_hand_is_found(home: Path) -> None:
    run(home, input_artifacts=["a.md"])
    path = home / "session_states" / "auditor_session.json"
    path.write_text(path.read_text().replace("}", " }", 1))
    assert (verified(home), states(home)) == ((1, []), {"session_states/auditor_session.json": "changed"})


def test_a_page_that_a_person_edited_before_it_is_replaced_is_not_the_chains_and_the_page_beside_it_is(
    home: Path,
) -> None:
    run(home, input_artifacts=["a.md"])
    page = home / "artifacts" / "out.md"
    page.write_text("Mine.\n")
    beside = run(home, task="A second question?", input_artifacts=["a.md"])["artifact"]["path"]
    assert beside != "artifacts/out.md"
    assert states(home) == {"artifacts/out.md": "changed"}
    assert run_cli("audit", "accept", "artifacts/out.md", cwd=home).returncode == 0
    assert verified(home) == (0, [])


def test_what_a_forgetting_rewrites_is_as_recorded_again(home: Path) -> None:
    run(home, task="Where is the blue heron?", input_artifacts=["a.md"], output_artifact_path="artifacts/heron.md")
    run(home, task="Where is the red kite?", input_artifacts=["a.md"], output_artifact_path="artifacts/kite.md")
    other = run(home, task="Where is the otter?", input_artifacts=["a.md"], output_artifact_path="artifacts/otter.md")
    before = (home / "session_states" / "auditor_session.json").read_bytes()
    assert run_cli("forget", "blue heron", "--yes", cwd=home).returncode == 0
    assert (home / "session_states" / "auditor_session.json").read_bytes() != before
    assert (verified(home), states(home)) == ((0, []), {})
    assert run_cli("forget", "--run", other["run_id"], "--yes", cwd=home).returncode == 0
    assert not (home / "artifacts" / "otter.md").exists()
    assert (verified(home), states(home)) == ((0, []), {})


def test_a_database_set_back_with_its_head_is_found_by_the_pages(home: Path) -> None:
    run(home, input_artifacts=["a.md"])
    runtime = home / ".council"
    kept = [name for name in ("council.db", "audit.head") if shutil.copy(runtime / name, home.parent / name)]
    run(home, task="A second question?", input_artifacts=["a.md"])
    run(home, task="A third question?", input_artifacts=["a.md"])
    for name in kept:
        shutil.copy(home.parent / name, runtime / name)
    assert verified(home) == (1, ["truncated", "page_unknown"])


def test_the_last_run_cannot_be_taken_back_unseen(home: Path) -> None:
    """Its page is of a run that nobody knows, and its receipt knows a head that is not there."""
    run(home, input_artifacts=["a.md"])
    runtime = home / ".council"
    kept = [name for name in ("council.db", "audit.head") if shutil.copy(runtime / name, home.parent / name)]
    receipt = run(home, task="A second question?", input_artifacts=["a.md"], output_artifact_path="artifacts/two.md")
    assert verified(home, "--head", receipt["audit_head"]) == (0, [])
    for name in kept:
        shutil.copy(home.parent / name, runtime / name)
    assert verified(home) == (1, ["page_unknown"])
    assert verified(home, "--head", receipt["audit_head"]) == (1, ["truncated", "page_unknown"])
    said = run_cli("audit", "verify", cwd=home).stdout
    assert f"artifacts/two.md belongs to run {receipt['run_id']}" in said


@pytest.mark.parametrize("place", ["session_states", ".council/audit.head"])
def test_a_link_in_the_place_of_memory_or_head_is_refused_by_name(home: Path, place: str) -> None:
    run(home, input_artifacts=["a.md"])
    elsewhere = home.parent / "elsewhere"
    (home / place).rename(elsewhere)
    (home / place).symlink_to(elsewhere)
    drop_command(home, command("And now?"))
    done = run_cli("run", "--once", cwd=home)
    assert done.returncode != 0
    assert f"{place} is a symbolic link" in done.stderr
    assert [each["status"] for each in receipts(home)] == ["succeeded"]
    (home / place).unlink()
    elsewhere.rename(home / place)
    assert run_cli("run", "--once", cwd=home).returncode == 0
    assert [each["status"] for each in receipts(home)] == ["succeeded", "succeeded"]


@pytest.mark.parametrize(
    "place",
    ["session_states", "session_states/side", "session_states/side/auditor_session.json", ".council/audit.head"],
)
@pytest.mark.parametrize("moment", ["before the drop", "in mid-run"])
def test_a_link_in_the_place_of_memory_or_head_beside_a_daemon_fails_the_run_and_names_it(
    home: Path, fake: FakeGemini, env: dict[str, str], place: str, moment: str
) -> None:
    run(home, input_artifacts=["a.md"], session="side")
    elsewhere = home.parent / "elsewhere"

    def swap() -> None:
        (home / place).rename(elsewhere)
        (home / place).symlink_to(elsewhere)

    def reply(request: RecordedRequest) -> FakeReply:
        if moment == "in mid-run" and len(fake.requests) == 2:
            swap()
        return text("Take SQLite.")

    fake.reply = reply
    with Daemon(home, "--model", "gemini:gemini-2.5-flash", env=env) as daemon:
        daemon.ready()
        if moment == "before the drop":
            swap()
        before = {path: path.read_bytes() for path in [elsewhere, *elsewhere.rglob("*")] if path.is_file()}
        drop_command(home, command("And now?", session="side"))
        assert daemon.wait("run_ended")["status"] == "failed"
    assert re.search(
        rf"{place}['`]? is (?:refused: it leads through )?a symbolic link", receipts(home)[-1]["error"]["message"]
    )
    assert {path: path.read_bytes() for path in before} == before
    refused = run_cli("vault", "set", "key", cwd=home, stdin=b"some-value-0123456789")
    assert (refused.returncode == 0) == (place != "session_states")
    assert ("head_mismatch" in verified(home)[1]) == (place == ".council/audit.head")  # the link was set aside


@pytest.mark.parametrize("also", [[], ["council.db.lock"], ["audit.head"]])
def test_a_database_taken_away_is_not_begun_anew(home: Path, also: list[str]) -> None:
    run(home, input_artifacts=["a.md"])
    for name in ("council.db", *also):
        (home / ".council" / name).unlink()
    refused = run_cli("audit", "verify", cwd=home)
    assert (refused.returncode, "council.db is gone" in refused.stderr) == (1, True)
    assert run_cli("run", "--once", cwd=home).returncode != 0
    assert not database(home).exists()


def test_a_chain_begun_anew_is_a_finding_until_the_steward_accepts_it(home: Path) -> None:
    for task in ("A question?", "A second one?"):
        run(home, task=task, input_artifacts=["a.md"])
    refused = run_cli("audit", "renew", "--yes", cwd=home)
    assert (refused.returncode, "nothing to accept" in refused.stderr) == (2, True)
    for name in ("council.db", "council.db-wal", "council.db-shm", "council.db.lock", "audit.head"):
        (home / ".council" / name).unlink(missing_ok=True)
    run(home, task="A third one?", input_artifacts=["a.md"])
    assert verified(home)[0] == 1
    accepted = run_cli("audit", "renew", "--yes", cwd=home)
    assert (accepted.returncode, accepted.stderr) == (0, "")
    assert verified(home) == (0, [])
    assert [(record["kind"], record["action"]) for record in audited(home)] == [
        ("effect", "run_ended"),
        ("approval", "chain_renewed"),
    ]
    run(home, task="A fourth one?", input_artifacts=["a.md"])
    assert verified(home) == (0, [])
    with sqlite3.connect(home / ".council" / "council.db") as database:
        database.execute("DELETE FROM audit_records WHERE seq > 1")
        database.execute("UPDATE audit_chain SET seq = 1, mac = (SELECT mac FROM audit_records WHERE seq = 1)")
    (home / ".council" / "audit.head").unlink()
    assert "truncated" in verified(home)[1]  # the acceptance is gone as well
    assert "the chain itself is damaged" in run_cli("audit", "renew", "--yes", cwd=home).stderr


def test_a_restore_of_a_copy_from_before_the_first_record_logs_no_error(home: Path, tmp_path: Path) -> None:
    assert run_cli("run", "--once", cwd=home).returncode == 0
    assert run_cli("backup", str(tmp_path / "copy.db"), cwd=home).returncode == 0
    run(home, input_artifacts=["a.md"])
    restored = run_cli("restore", str(tmp_path / "copy.db"), "--yes", cwd=home)
    assert (restored.returncode, restored.stderr) == (0, "")
    assert "The audit of the copy ends at record 0; its head was at record 1." in restored.stdout


def test_after_a_restore_the_first_finding_says_that_a_copy_was_taken_back(home: Path, tmp_path: Path) -> None:
    run(home, input_artifacts=["a.md"])
    assert run_cli("backup", str(tmp_path / "copy.db"), cwd=home).returncode == 0
    run(home, task="A second one?", input_artifacts=["a.md"])
    restored = run_cli("restore", str(tmp_path / "copy.db"), "--yes", cwd=home)
    assert (restored.returncode, restored.stderr) == (0, "")
    assert "The audit of the copy ends at record 1; its head was at record 2." in restored.stdout
    first, *others = run_cli("audit", "verify", cwd=home).stdout.splitlines()
    assert re.search(r"A copy of the database was taken back on \S+Z \(record [0-9]+\)\.$", first)
    assert all("taken back" not in line for line in others)
    assert run_cli("audit", "renew", "--yes", cwd=home).returncode == 0
    (home / "artifacts" / "out.md").write_text('---\nid: "20260101-000000-aaaaaaaa"\n---\n')
    assert "taken back" not in run_cli("audit", "verify", cwd=home).stdout


def test_an_export_is_checked_anywhere_and_a_torn_one_is_told(home: Path) -> None:
    run(home, input_artifacts=["a.md"])
    of_page = run_cli("audit", "verify", "artifacts/out.md", cwd=home)
    assert (of_page.returncode, "Without FILE, the chain of this home is checked" in of_page.stdout) == (1, True)
    run(home, task="Again?", input_artifacts=["a.md"])
    exported = run_cli("audit", "export", cwd=home).stdout
    file = home.parent / "audit.jsonl"
    file.write_text(exported)
    assert verified(home, str(file)) == (0, [])
    file.write_text(exported[:-40])
    assert verified(home, str(file)) == (1, ["torn_tail", "truncated"])
    file.write_text(exported.replace("run_ended", "run_enden", 1))
    assert verified(home, str(file))[1][0] == "bad_record"


def test_a_command_waits_for_a_database_that_another_process_locks_and_then_runs_once(home: Path) -> None:
    run(home, input_artifacts=["a.md"])
    with Daemon(home) as daemon, closing(sqlite3.connect(database(home), isolation_level=None)) as blocker:
        daemon.ready()
        blocker.execute("BEGIN IMMEDIATE")
        drop_command(home, command("A question?", input_artifacts=["a.md"]))
        wait_until(lambda: "command.json stays in the inbox: the database" in daemon.stderr, "it is refused")
        assert inbox(home) == ["command.json"]
        blocker.execute("ROLLBACK")
        daemon.wait("run_ended", status="succeeded")
        assert daemon.stop() == 0
    assert [record["action"] for record in audited(home)] == ["run_ended", "run_ended"]
    assert verified(home) == (0, [])


def test_a_daemon_does_not_start_beside_a_process_that_locks_its_database_and_names_it(home: Path) -> None:
    run(home, input_artifacts=["a.md"])
    with closing(sqlite3.connect(database(home), isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        done = run_cli("run", "--once", cwd=home)
    assert (done.returncode, ".council/council.db" in done.stderr, "is locked" in done.stderr) == (1, True, True)


def test_a_database_of_a_newer_program_stops_the_start(home: Path) -> None:
    run(home, input_artifacts=["a.md"])
    with sqlite3.connect(home / ".council" / "council.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    done = run_cli("run", "--once", cwd=home)
    assert done.returncode == 3
    assert "database_too_new" in done.stderr


def test_a_home_with_a_database_url_keeps_nothing_of_it_in_sqlite(home: Path, postgres_url: str) -> None:
    (home / "council.toml").write_text(f"{OFFLINE}database_url = {json.dumps(postgres_url)}\n")
    run(home, input_artifacts=["a.md"])
    assert [record["action"] for record in audited(home)] == ["run_ended"]
    assert verified(home) == (0, [])
    assert not (home / ".council" / "council.db").exists()


def test_users_act_with_less_authority_and_must_exist(home: Path) -> None:
    assert run_cli("users", "add", "anna", "--name", "Anna", cwd=home).returncode == 0
    assert run_cli("users", "add", "anna", cwd=home).returncode == 2
    receipt = run(home, input_artifacts=["a.md"], user="anna")
    assert receipt["status"] == "succeeded"
    assert [record["actor"] for record in audited(home)][-1] == "anna"
    drop_command(home, command(user="bert"), name="bert.json")
    drop_command(home, {"type": "memory", "role": "AUDITOR", "action": "reset", "user": "anna"}, name="reset.json")
    run_cli("run", "--once", cwd=home)
    failed = home / "commands" / "failed"
    assert "no such user" in (failed / "bert.json.error.md").read_text()
    assert "not an administrator" in (failed / "reset.json.error.md").read_text()
    refused = {record["detail"]["file"] for record in audited(home) if record["action"] == "command_refused"}
    assert refused == {"bert.json", "reset.json"}
    granted = run_cli("users", "roles", "anna", "--grant", "administrator", "--json", cwd=home)
    assert json.loads(granted.stdout)["users"][0]["roles"] == ["administrator", "user"]
    drop_command(home, {"type": "memory", "role": "AUDITOR", "action": "reset", "user": "anna"}, name="again.json")
    run_cli("run", "--once", cwd=home)
    wait_until(lambda: [receipt["type"] for receipt in receipts(home)].count("memory") == 1, "the change of memory")


def test_a_user_without_a_role_may_nothing_any_more(home: Path) -> None:
    run_cli("users", "add", "anna", cwd=home)
    revoked = run_cli("users", "roles", "anna", "--revoke", "user", "--json", cwd=home)
    assert json.loads(revoked.stdout)["users"][0]["roles"] == []
    drop_command(home, command(user="anna"))
    run_cli("run", "--once", cwd=home)
    assert receipts(home) == []
    assert "has no role here" in (home / "commands" / "failed" / "command.json.error.md").read_text()
    [record] = [record for record in audited(home) if record["action"] == "command_refused"]
    assert (record["kind"], record["detail"]["file"]) == ("refusal", "command.json")


def test_an_idle_daemon_has_loaded_no_sqlalchemy_not_even_after_a_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its C extensions show in the memory of a process that has loaded it, as `forget` does."""
    monkeypatch.setenv("COUNCIL_TEST_COLD", "1")

    def has_sqlalchemy() -> bool:
        return "/sqlalchemy/" in Path(f"/proc/{daemon.process.pid}/maps").read_text()

    with Daemon(home) as daemon:
        daemon.ready()
        wait_until(lambda: any((home / ".council" / "copies").glob("council-*.db")), "the hourly upkeep has run")
        assert not has_sqlalchemy()
        drop_command(home, command(input_artifacts=["a.md"]))
        assert daemon.wait("run_ended")["status"] == "succeeded"
        daemon.wait("idle", count=2)
        assert not has_sqlalchemy()
        drop_command(home, {"type": "forget", "text": "The archive holds ten files."}, "forget.json")
        assert daemon.wait("run_ended", count=2)["status"] == "succeeded"
        assert has_sqlalchemy()


def test_a_home_that_cannot_be_written_is_verified_and_examined(home: Path) -> None:
    run(home)
    bare = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")

    def as_reader(*arguments: str) -> subprocess.CompletedProcess[str]:
        told = [*(bare if os.geteuid() == 0 else ()), sys.executable, "-m", "council", *arguments]
        return subprocess.run(told, cwd=home, env=environment(), capture_output=True, text=True, check=False)

    places = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in places}
    database = home / ".council" / "council.db"
    database.chmod(0o400)
    alone = as_reader("doctor")
    database.chmod(modes[database])
    assert (alone.returncode, f"fix: chmod u+rw {database}" in alone.stdout) == (3, True), alone.stdout
    for path in reversed(places):
        path.chmod(modes[path] & 0o555)
    try:
        verified, examined = as_reader("audit", "verify"), as_reader("doctor")
    finally:
        for path in places:
            path.chmod(modes[path])
    assert (verified.returncode, "1 record is intact" in verified.stdout) == (0, True), verified.stderr
    assert (examined.returncode, "fix: chmod u+rwx" in examined.stdout) == (3, True), examined.stderr
    assert "database         1 run" in examined.stdout
