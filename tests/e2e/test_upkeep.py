"""Retention by age, number and size, by the daemon and by hand; and `council repair` after every kind of damage."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from council.engine.journal import JOURNAL, encode_line, read_records
from council.engine.records import Committed, Ended
from council.settings import Home
from council.upkeep.repair.repair import repair as mend
from council.upkeep.repair.site import Finding
from tests.fake_gemini import FakeGemini, slow, text
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    make_home,
    receipts,
    run_cli,
)

ENV = environment(COUNCIL_MODEL="offline")
DAY_S = 86_400
NOWHERE = "20260101-000000-aaaaaaaa"


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which three commands have ended one after the other; the second one's id is `kept`."""
    home = make_home(tmp_path_factory.mktemp("template") / "home", settings="settle_s = 0.5\nscan_interval_s = 0.5\n")
    for number in (1, 2, 3):
        body = command(f"Task {number}.", output_artifact_path=f"artifacts/{number}.md")
        drop_command(home, {**body, "id": "kept"} if number == 2 else body, f"{number}.json")
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    return home


@pytest.fixture
def home(three_runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(three_runs, tmp_path / "home"))


@pytest.fixture
def ids(home: Path) -> list[str]:
    """The runs of `home`, oldest first."""
    return ids_of(home)


def ids_of(home: Path) -> list[str]:
    return [receipt["run_id"] for receipt in sorted(receipts(home), key=lambda receipt: receipt["title"])]


def state(home: Path, *parts: str) -> Path:
    return home.joinpath(".council", *parts)


def folders(home: Path) -> set[str]:
    return {path.name for path in state(home, "runs").iterdir()}


def answers(home: Path) -> list[dict[str, Any]]:
    """The receipts but for their attempts: a run that a start goes on with counts one more."""
    return [{key: value for key, value in told.items() if key != "attempts"} for told in receipts(home)]


def lose_ledger(home: Path) -> None:
    for path in state(home).glob("ledger.sqlite*"):
        path.unlink()


def rows(home: Path) -> list[tuple[Any, ...]]:
    """Every row but the size of its folder, which is taken while the run still writes its last line."""
    with sqlite3.connect(state(home, "ledger.sqlite")) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(runs)") if row[1] != "bytes"]
        return db.execute(f"SELECT {', '.join(columns)} FROM runs ORDER BY run_id").fetchall()


def tree(home: Path) -> dict[str, bytes]:
    """All files but the lock and what SQLite leaves beside a file that it read."""
    skipped = ("lock", "ledger.sqlite-shm", "ledger.sqlite-wal")
    found = [path for path in home.rglob("*") if path.is_file() and path.name not in skipped]
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def prune(home: Path, *arguments: str, **settings: int) -> dict[str, Any]:
    env = {**ENV, **{f"COUNCIL_{key.upper()}": str(value) for key, value in settings.items()}}
    done = run_cli("prune", "--json", *arguments, cwd=home, env=env)
    return {"code": done.returncode, **json.loads(done.stdout)}


def repair(home: Path, *arguments: str) -> dict[str, Any]:
    done = run_cli("repair", "--json", *arguments, cwd=home, env=ENV)
    return {"code": done.returncode, **json.loads(done.stdout)}


def looked_at(home: Path) -> list[Finding]:
    """What `council repair --dry-run` would say, without a process for each look."""
    return mend(Home(home), dry_run=True, set_aside=False)


def in_order(home: Path) -> bool:
    found = looked_at(home)
    assert found == []
    return True


# ── retention ────────────────────────────────────────────────────────────────────────────────────────────────────────


def age(home: Path, ids: list[str]) -> None:
    """The first run ended 40 days ago, the second 20."""
    for run_id, days in ((ids[0], 40), (ids[1], 20)):
        ended = time.time() - days * DAY_S
        os.utime(state(home, "receipts", f"{run_id}.json"), (ended, ended))
    lose_ledger(home)


def test_the_size_of_a_run_is_that_of_its_folder_but_for_the_last_line(home: Path, ids: list[str]) -> None:
    """What a journal takes of the disk while it is written to is not counted: it is given back."""
    with sqlite3.connect(state(home, "ledger.sqlite")) as db:
        counted = dict(db.execute("SELECT run_id, bytes FROM runs").fetchall())
    for run_id in ids:
        files = [path for path in state(home, "runs", run_id).rglob("*") if path.is_file()]
        last_line = state(home, "runs", run_id, "journal.jsonl").read_bytes().splitlines(keepends=True)[-1]
        assert b'"t":"end"' in last_line
        assert counted[run_id] == sum(path.stat().st_size for path in files) - len(last_line)


def swell(home: Path, ids: list[str]) -> None:
    """Every run holds a large result."""
    for run_id in ids:
        state(home, "runs", run_id, "blobs").mkdir(exist_ok=True)
        state(home, "runs", run_id, "blobs", "large").write_bytes(b"x" * 2_000_000)
    lose_ledger(home)


BOUNDS = [
    ("keep_days", 30, 1, age),
    ("keep_days", 10, 2, age),
    ("keep_runs", 1, 2, lambda home, ids: None),
    ("keep_bytes", 5_000_000, 1, swell),
]


@pytest.mark.parametrize(("setting", "bound", "count", "prepare"), BOUNDS)
def test_the_command_prunes_the_oldest_runs_until_the_bound_holds(
    home: Path, ids: list[str], setting: str, bound: int, count: int, prepare: Callable[[Path, list[str]], None]
) -> None:
    prepare(home, ids)
    run_cli("run", "--once", cwd=home, env=ENV)  # the ledger is filled again where it was lost
    state(home, "spend", "2020-01-01.jsonl").write_text("{}")
    before = tree(home)
    looked = prune(home, "--dry-run", **{setting: bound})
    assert tree(home) == before
    told = prune(home, **{setting: bound})
    assert [one["run_id"] for one in told["pruned"]] == ids[:count]
    assert {one["by"] for one in told["pruned"]} == {setting}
    assert told["removed"] == [".council/spend/2020-01-01.jsonl"]
    assert looked == {**told, "dry_run": True}
    assert folders(home) == set(ids[count:])
    assert not state(home, "spend", "2020-01-01.jsonl").exists()
    assert prune(home, **{setting: bound})["pruned"] == []
    assert in_order(home)


@pytest.mark.parametrize(("setting", "bound", "count", "prepare"), BOUNDS)
def test_the_daemon_prunes_by_itself(
    home: Path, ids: list[str], setting: str, bound: int, count: int, prepare: Callable[[Path, list[str]], None]
) -> None:
    prepare(home, ids)
    with Daemon(home, env={**ENV, f"COUNCIL_{setting.upper()}": str(bound)}) as daemon:
        told = daemon.wait("runs_pruned")
        assert (told["runs"], told["settings"]) == (ids[:count], [setting])
        assert folders(home).intersection(ids) == set(ids[count:])
        daemon.stop()
    assert folders(home) == set(ids[count:])
    assert in_order(home)


def test_a_daemon_that_drains_and_leaves_prunes_what_just_ended(home: Path, ids: list[str]) -> None:
    drop_command(home, command("Task 4.", output_artifact_path="artifacts/4.md"))
    assert run_cli("run", "--once", cwd=home, env={**ENV, "COUNCIL_KEEP_RUNS": "1"}).returncode == 0
    assert folders(home) == set(ids_of(home)[-1:])
    assert len(ids_of(home)) == 4


def test_what_is_no_journal_stays_and_the_id_still_answers(home: Path, ids: list[str]) -> None:
    kept = {name: data for name, data in tree(home).items() if name.startswith(("artifacts/", "session_states/"))}
    prune(home, keep_days=1, keep_runs=1)
    assert folders(home) == {ids[2]}
    after = tree(home)
    assert {name: after[name] for name in kept} == kept
    drop_command(home, {**command("Task 2.", output_artifact_path="artifacts/2.md"), "id": "kept"})
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert sorted(os.listdir(home / "commands")) == ["README.md"]
    assert ids_of(home) == ids  # answered by its receipt, not run again
    conflict = drop_command(home, {**command("Another task."), "id": "kept"})
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 2
    assert "id_conflict" in (home / "commands" / "failed" / f"{conflict.name}.error.md").read_text()


def test_every_command_says_of_a_pruned_run_when_it_was_pruned_and_by_what(home: Path, ids: list[str]) -> None:
    prune(home, keep_runs=1)
    shown = run_cli("show", ids[0], cwd=home, env=ENV)
    assert shown.returncode == 0
    assert "# Task 1" in shown.stdout
    at = json.loads(run_cli("show", ids[0], "--json", cwd=home, env=ENV).stdout)["pruned"]["at"]
    said = f"runed on {at} by keep_runs"
    assert said in shown.stdout
    for arguments in (("replay", ids[0]), ("diff", ids[0], ids[2]), ("diff", ids[2], ids[1])):
        refused = run_cli(*arguments, cwd=home, env=ENV)
        assert refused.returncode == 2
        assert said in refused.stderr
    assert said in run_cli("retry", ids[0], cwd=home, env=ENV).stderr
    shutil.rmtree(state(home, "logs"))
    with Daemon(home, env=ENV) as daemon:
        daemon.ready()
        daemon.stop()
    assert said in run_cli("logs", "--run", ids[0], cwd=home, env=ENV).stderr


def test_the_log_of_one_run_holds_its_lines_only(home: Path, ids: list[str]) -> None:
    lines = [
        json.loads(line)
        for line in run_cli("logs", "-n", "999", "--json", "--run", ids[1], cwd=home).stdout.splitlines()
    ]
    assert {line["run_id"] for line in lines} == {ids[1]}
    assert {"run_queued", "turn_ended", "run_ended"} <= {line["event"] for line in lines}
    assert run_cli("logs", "--run", NOWHERE, cwd=home).returncode == 2


def test_a_new_artifact_at_the_path_of_a_pruned_run_does_not_bring_its_folder_back(home: Path, ids: list[str]) -> None:
    page = (home / "artifacts" / "1.md").read_bytes()
    prune(home, keep_runs=1)
    drop_command(home, command("Task 4, in the place of the first.", output_artifact_path="artifacts/1.md"))
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    newest = ids_of(home)[-1]
    assert folders(home) == {ids[2], newest}
    assert state(home, "runs", newest, f"artifact-of-{ids[0]}.md").read_bytes() == page
    assert in_order(home)


def test_an_unfinished_run_is_never_pruned(home: Path, ids: list[str], fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: slow(30)
    drop_command(home, command("Task 4."))
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("turn_started")["run_id"]
        daemon.kill()
    long_ago = time.time() - 400 * DAY_S
    for path in (*state(home, "runs", run_id).iterdir(), *state(home, "receipts").iterdir()):
        os.utime(path, (long_ago, long_ago))
    lose_ledger(home)
    pruned = prune(home, keep_runs=1, keep_days=1)["pruned"]
    assert sorted(one["run_id"] for one in pruned) == sorted(ids)
    assert [name for name in folders(home) if not name.startswith(".")] == [run_id]
    fake.reply = lambda request: text("words")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert ids_of(home) == [*ids, run_id]


def test_a_run_that_is_to_go_on_is_not_pruned_before_it_has_ended_again(home: Path, ids: list[str]) -> None:
    age(home, ids)
    assert run_cli("retry", ids[0], cwd=home, env=ENV).returncode == 0
    with sqlite3.connect(state(home, "ledger.sqlite")) as db:  # as if the ledger knew nothing of it
        db.execute("UPDATE runs SET ended_ns = 1, status = 'succeeded' WHERE run_id = ?", (ids[0],))
    assert [one["run_id"] for one in prune(home, keep_days=30)["pruned"]] == []
    assert run_cli("run", "--once", cwd=home, env={**ENV, "COUNCIL_KEEP_DAYS": "30"}).returncode == 0
    assert folders(home) == set(ids)
    assert len(ids_of(home)) == len(ids) + 1  # the receipt of the retry itself


def test_a_prune_that_is_killed_before_any_change_to_the_disk_leaves_nothing_that_anything_trips_over(
    home: Path, ids: list[str], tmp_path: Path
) -> None:
    changes = tmp_path / "trace"
    env = {"COUNCIL_MODEL": "offline", "COUNCIL_KEEP_RUNS": "1"}
    counted = shutil.copytree(home, tmp_path / "counted")
    traced = faulty_environment(COUNCIL_TEST_FAULT="count", COUNCIL_TEST_FAULT_LOG=str(changes), **env)
    assert run_cli("prune", cwd=counted, env=traced, module=FAULTY).returncode == 0
    count = int(changes.read_text().splitlines()[-1].split()[0])
    assert count > 8
    for number in range(2, count + 1, 2):
        victim = Path(shutil.copytree(home, tmp_path / str(number)))
        killed = faulty_environment(COUNCIL_TEST_FAULT=f"kill-before:{number}", **env)
        assert run_cli("prune", cwd=victim, env=killed, module=FAULTY).returncode == -9, number
        assert run_cli("show", ids[1], cwd=victim, env=ENV).returncode == 0, number
        assert run_cli("run", "--once", cwd=victim, env={**ENV, **env}).returncode == 0, number
        assert folders(victim) == {ids[2]}, number
        told = {receipt["run_id"]: receipt.get("pruned", {}).get("by") for receipt in receipts(victim)}
        assert told == {ids[0]: "keep_runs", ids[1]: "keep_runs", ids[2]: None}, number
        assert looked_at(victim) == [], number


# ── the run ledger ───────────────────────────────────────────────────────────────────────────────────────────────────


def garble(home: Path) -> None:
    state(home, "ledger.sqlite").write_bytes(b"no database at all, but long enough to be looked at as one" * 99)


def garble_pages(home: Path) -> None:
    path = state(home, "ledger.sqlite")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x7f" * (len(data) - 4096)
    path.write_bytes(data)


def edit_rows(home: Path) -> None:
    with sqlite3.connect(state(home, "ledger.sqlite")) as db:
        db.execute("DELETE FROM runs WHERE title LIKE 'Task 1%'")
        db.execute("UPDATE runs SET status = 'failed', pruned = 0")
        db.execute(
            "INSERT INTO runs (run_id, status, type, lane, title, created, file) VALUES ('x', 'queued', '', '', '', '', '')"
        )


@pytest.mark.parametrize("damage", [lose_ledger, garble, garble_pages, edit_rows])
def test_a_ledger_that_is_lost_or_wrong_is_built_anew_as_it_was(
    home: Path, ids: list[str], damage: Callable[[Path], None]
) -> None:
    prune(home, keep_runs=2)
    with sqlite3.connect(state(home, "ledger.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = rows(home)
    damage(home)
    damaged = tree(home)
    looked = repair(home, "--dry-run")
    assert (looked["code"], looked["mended"], looked["left"]) == (0, 1, 0)
    assert "ledger" in looked["findings"][0]["what"]
    assert tree(home) == damaged
    assert repair(home)["mended"] == 1
    assert rows(home) == before
    assert in_order(home)


def test_a_ledger_that_another_process_has_locked_stops_no_run_and_lacks_none_in_the_end(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings='model = "offline"\nsettle_s = 0.5\nscan_interval_s = 0.2\n')
    with Daemon(home) as daemon:
        daemon.ready()
        run_while_locked(daemon, "one")
        drop_command(home, command("two"))
        daemon.wait("run_ended", count=2)
        assert recent_titles(home) == ["two", "one"]
        run_while_locked(daemon, "three")
        daemon.kill()
        assert [event for event in daemon.events if event["event"] == "run_waiting"] == []
    assert recent_titles(home) == ["two", "one"]
    drop_command(home, command("four"))
    assert run_cli("run", "--once", cwd=home).returncode == 0
    assert recent_titles(home) == ["four", "three", "two", "one"]


def run_while_locked(daemon: Daemon, task: str) -> None:
    ended = len([event for event in daemon.events if event["event"] == "run_ended"])
    path = daemon.home / ".council" / "ledger.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as locking:
        locking.execute("BEGIN IMMEDIATE")
        drop_command(daemon.home, command(task))
        assert daemon.wait("run_ended", count=ended + 1)["status"] == "succeeded"


def recent_titles(home: Path) -> list[str]:
    return [entry["title"] for entry in json.loads(run_cli("status", "--json", cwd=home).stdout)["recent"]]


@pytest.mark.parametrize("damage", [garble, garble_pages])
def test_a_damaged_ledger_stops_no_run_and_a_look_at_it_says_what_mends_it(
    home: Path, ids: list[str], damage: Callable[[Path], None]
) -> None:
    damage(home)
    looked = run_cli("status", cwd=home, env=ENV)
    assert looked.returncode == 1
    assert "council repair" in looked.stderr
    drop_command(home, command("Task 4.", output_artifact_path="artifacts/4.md"))
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0  # fills it again where it was begun anew
    recent = json.loads(run_cli("status", "--json", cwd=home, env=ENV).stdout)["recent"]
    assert [run["run_id"] for run in recent] == ids_of(home)[::-1]


def test_three_thousand_runs_are_listed_found_and_pruned(home: Path, ids: list[str]) -> None:
    template = json.loads(state(home, "receipts", f"{ids[0]}.json").read_bytes())
    records, _, _ = read_records(Path("journal"), state(home, "runs", ids[0], JOURNAL).read_bytes())
    for number in range(3_000):
        run_id = f"20250101-{number // 3600:02}{number // 60 % 60:02}{number % 60:02}-{number:08}"
        path = state(home, "receipts", f"{run_id}.json")
        path.write_text(json.dumps({**template, "run_id": run_id, "title": f"Old task {number}"}))
        os.utime(path, (1_735_700_000 + number, 1_735_700_000 + number))
        header = msgspec.structs.replace(records[0], run_id=run_id)  # type: ignore[type-var]
        end = Committed("succeeded", (), msgspec.Raw(path.read_bytes()))
        state(home, "runs", run_id).mkdir()
        lines = [encode_line(record) for record in (header, end, Ended("succeeded"))]  # type: ignore[list-item]
        state(home, "runs", run_id, JOURNAL).write_bytes(b"".join(lines))
    [found] = repair(home)["findings"]
    assert (found["what"], found["note"]) == (
        "rows of the run ledger: 3000 missing",
        "built anew from receipts and journals, 3003 rows",
    )
    recent = json.loads(run_cli("status", "--json", cwd=home, env=ENV).stdout)["recent"]
    assert [run["run_id"] for run in recent[:3]] == ids[::-1]
    assert recent[3]["title"] == "Old task 2999"
    shown = json.loads(run_cli("show", "20250101-004959", "--json", cwd=home, env=ENV).stdout)
    assert shown["title"] == "Old task 2999"
    ambiguous = run_cli("show", "20250101-0049", cwd=home, env=ENV)
    assert "means 60 runs" in ambiguous.stderr
    told = prune(home, keep_runs=2_900)
    assert [one["run_id"][:15] for one in told["pruned"]] == [f"20250101-00{n // 60:02}{n % 60:02}" for n in range(103)]
    assert told["kept"] == 2_900
    assert in_order(home)


# ── what a crash or a hand leaves ────────────────────────────────────────────────────────────────────────────────────
# Each spoils the home around the run whose id is `kept`.


def spoil_receipt(home: Path, run_id: str) -> None:
    state(home, "receipts", f"{run_id}.json").write_text("{")


def swap_receipts(home: Path, run_id: str) -> None:
    other = next(path for path in state(home, "receipts").iterdir() if path.stem != run_id)
    shutil.copy(other, state(home, "receipts", f"{run_id}.json"))


def lose_receipt(home: Path, run_id: str) -> None:
    state(home, "receipts", f"{run_id}.json").unlink()


def cut(home: Path, run_id: str, kind: str) -> None:
    """The journal as it was before its first record of that kind."""
    path = state(home, "runs", run_id, JOURNAL)
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if f'"t":"{kind}"'.encode() in line)
    path.write_bytes(b"".join(lines[:at]))


def lose_receipt_and_end(home: Path, run_id: str) -> None:
    lose_receipt(home, run_id)
    cut(home, run_id, "end")


def lose_receipt_and_commit(home: Path, run_id: str) -> None:
    lose_receipt(home, run_id)
    cut(home, run_id, "commit")


def lose_receipt_and_mark(home: Path, run_id: str) -> None:
    lose_receipt_and_end(home, run_id)
    state(home, "active", run_id).touch()


def leave_its_marker(home: Path, run_id: str) -> None:
    state(home, "active", run_id).touch()


def leave_a_marker(home: Path, run_id: str) -> None:
    state(home, "active", NOWHERE).touch()


def lose_ids(home: Path, run_id: str) -> None:
    shutil.rmtree(state(home, "ids"))


def spoil_ids(home: Path, run_id: str) -> None:
    for path in state(home, "ids").iterdir():
        path.write_text("{")


def bind_an_id_to_nothing(home: Path, run_id: str) -> None:
    [path] = state(home, "ids").iterdir()
    path.write_text(path.read_text().replace(run_id, NOWHERE))


def leave_temporaries(home: Path, run_id: str) -> None:
    (home / "artifacts" / f".x.md.{NOWHERE}.staged").write_text("half")
    (home / "session_states" / ".auditor_session.json.0123456789ab.tmp").write_text("half")
    state(home, "runs", run_id, ".journal.jsonl.0123456789ab.tmp").write_text("half")


def leave_an_old_drop(home: Path, run_id: str) -> None:
    half = home / "commands" / ".x.json.0123456789ab.tmp"
    half.write_text("half")
    os.utime(half, (1, 1))


def leave_a_spare(home: Path, run_id: str) -> None:
    state(home, "runs", ".spare-01234567").mkdir()


def leave_a_pruning(home: Path, run_id: str) -> None:
    hidden = state(home, "runs", f".pruned-keep_days-{NOWHERE}")
    (hidden / "blobs").mkdir(parents=True)
    (hidden / "blobs" / "x").write_text("half")


def leave_an_empty_run(home: Path, run_id: str) -> None:
    state(home, "runs", NOWHERE).mkdir()
    state(home, "runs", NOWHERE, JOURNAL).touch()


def leave_a_torn_admission(home: Path, run_id: str) -> None:
    leave_an_empty_run(home, run_id)
    state(home, "runs", NOWHERE, JOURNAL).write_bytes(state(home, "runs", run_id, JOURNAL).read_bytes()[:100])
    state(home, "active", NOWHERE).touch()


def leave_a_run_that_never_began(home: Path, run_id: str) -> None:
    records, _, _ = read_records(Path("journal"), state(home, "runs", run_id, JOURNAL).read_bytes())
    state(home, "runs", NOWHERE).mkdir()
    header = msgspec.structs.replace(records[0], run_id=NOWHERE)  # type: ignore[type-var]
    state(home, "runs", NOWHERE, JOURNAL).write_bytes(encode_line(header))


def take_a_file(home: Path, run_id: str) -> None:
    (home / "commands" / f".{NOWHERE}.taken").write_text('{"type": "note"')


def spoil_outputs(home: Path, run_id: str) -> None:
    for path in state(home, "outputs").iterdir():
        path.write_text("{")


def spoil_memory(home: Path, run_id: str) -> None:
    (home / "session_states" / "auditor_session.json").write_text("{")


def spoil_index(home: Path, run_id: str) -> None:
    state(home, "cortex", "files").mkdir(parents=True, exist_ok=True)
    state(home, "cortex", "files", "catalog.json").write_text("{")


DAMAGES: list[tuple[Callable[[Path, str], None], str, str]] = [
    (spoil_receipt, "mended", "written again from its journal"),
    (swap_receipts, "mended", "written again from its journal"),
    (lose_receipt, "mended", "written again from its journal"),
    (lose_receipt_and_end, "mended", "committed and not in place, and no start would find it"),
    (lose_receipt_and_commit, "mended", "has not ended, and no start would find it"),
    (lose_receipt_and_mark, "waits", "the next start completes it"),
    (leave_its_marker, "waits", "the next start takes its command file"),
    (leave_a_marker, "mended", "marks no run"),
    (lose_ids, "mended", "the id 'kept' was bound to no run"),
    (spoil_ids, "mended", "the id 'kept' was bound to no run"),
    (bind_an_id_to_nothing, "mended", "the id 'kept' was bound to no run"),
    (leave_temporaries, "mended", "is left of a process that was killed"),
    (leave_an_old_drop, "mended", "is left of a process that was killed"),
    (leave_a_spare, "mended", "was made ahead for a run"),
    (leave_a_pruning, "mended", "was being pruned"),
    (leave_an_empty_run, "mended", "holds no whole record"),
    (leave_a_torn_admission, "mended", "holds no whole record"),
    (leave_a_run_that_never_began, "mended", "never began"),
    (take_a_file, "waits", "the next start settles it"),
    (spoil_outputs, "mended", "was not known as ours"),
    (spoil_memory, "mended", "the last good copy took its place"),
]


@pytest.mark.parametrize(("damage", "outcome", "said"), DAMAGES, ids=lambda value: getattr(value, "__name__", None))
def test_what_is_inconsistent_is_named_mended_and_then_in_order(
    home: Path, ids: list[str], damage: Callable[[Path, str], None], outcome: str, said: str
) -> None:
    before, told_before = rows(home), answers(home)
    damage(home, ids[1])
    damaged = tree(home)
    looked = looked_at(home)
    assert tree(home) == damaged
    found = repair(home)
    assert [(finding["what"], finding["outcome"]) for finding in found["findings"]] == [
        (finding.what, finding.outcome) for finding in looked
    ]
    assert (found["code"], found["left"]) == (0, 0)
    [named, *_] = [finding for finding in found["findings"] if said in f"{finding['what']}: {finding['note']}"]
    assert named["outcome"] == outcome
    again = drop_command(home, {**command("Task 2.", output_artifact_path="artifacts/2.md"), "id": "kept"})
    run_cli("run", "--once", cwd=home, env=ENV)  # which also does whatever waits for a start
    assert in_order(home)
    assert [row[:10] for row in rows(home)] == [row[:10] for row in before]
    assert answers(home) == told_before  # the command with the same id was answered, not run again
    assert not again.exists()
    for role in ("coordinator", "strategist", "auditor"):
        session = json.loads((home / "session_states" / f"{role}_session.json").read_bytes())
        assert [task["run_id"] for task in session["tasks"]] == ids


def test_a_page_is_known_as_ours_again_and_the_next_one_takes_its_place(home: Path, ids: list[str]) -> None:
    shutil.rmtree(state(home, "outputs"))
    (home / "artifacts" / "2.md").write_text("edited by a person")
    found = repair(home)
    assert [finding["what"] for finding in found["findings"]] == [
        f"artifacts/{number}.md was not known as ours" for number in (1, 3)
    ]
    for number in (1, 2):
        drop_command(home, command("Again.", output_artifact_path=f"artifacts/{number}.md"), f"{number}.json")
        assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert "Again." in (home / "artifacts" / "1.md").read_text()
    assert (home / "artifacts" / "2.md").read_text() == "edited by a person"


def test_a_drop_that_another_process_may_be_making_is_left_alone(home: Path, ids: list[str]) -> None:
    half = home / "commands" / ".x.json.0123456789ab.tmp"
    half.write_text("half")
    person = home / "artifacts" / ".notes.tmp"
    person.write_text("a person's")
    assert in_order(home)
    assert half.exists()
    assert person.exists()


def test_a_damaged_index_is_only_named(home: Path, ids: list[str]) -> None:
    spoil_index(home, ids[1])
    [found] = repair(home)["findings"]
    assert found["outcome"] == "waits"
    assert "council cortex index --rebuild" in found["note"]
    assert run_cli("cortex", "index", "--rebuild", cwd=home, env=ENV).returncode == 0
    assert in_order(home)


def test_memory_without_a_good_copy_needs_a_person(home: Path, ids: list[str]) -> None:
    spoil_memory(home, ids[1])
    state(home, "memory", "auditor_session.json").unlink()
    done = run_cli("repair", cwd=home, env=ENV)
    assert done.returncode == 1
    assert "session_states/auditor_session.json is damaged (not JSON)" in done.stdout
    assert "council memory reset AUDITOR --lane main" in done.stdout
    assert "1 for a person" in done.stdout


def test_a_receipt_that_nothing_can_tell_again_is_set_aside(home: Path, ids: list[str]) -> None:
    prune(home, keep_runs=1)
    spoil_receipt(home, ids[1])
    found = repair(home)
    assert "no journal can tell what it said" in found["findings"][0]["note"]
    assert state(home, "receipts", f"{ids[1]}.json.damaged").read_text() == "{"
    assert "freed: a command with this id runs" in json.dumps(found["findings"])
    assert in_order(home)
    drop_command(home, {**command("Task 2.", output_artifact_path="artifacts/2.md"), "id": "kept"})
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert len(ids_of(home)) == 3


# ── damaged journals ─────────────────────────────────────────────────────────────────────────────────────────────────


def spoil_line(home: Path, run_id: str, number: int) -> int:
    """Turns a letter of one record; the byte at which that record begins."""
    path = state(home, "runs", run_id, JOURNAL)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"t"', b'"T"')
    path.write_bytes(b"".join(lines))
    return sum(len(line) for line in lines[:number])


def test_a_damaged_journal_is_named_with_its_place_and_set_aside_when_told(home: Path, ids: list[str]) -> None:
    byte = spoil_line(home, ids[1], 2)
    damaged = state(home, "runs", ids[1], JOURNAL).read_bytes()
    before = tree(home)
    named = repair(home)
    assert (named["code"], named["left"]) == (1, 1)
    assert f"{JOURNAL}: record 2 (byte {byte}) does not verify" in named["findings"][0]["what"]
    assert "--set-aside" in named["findings"][0]["note"]
    assert tree(home) == before
    assert repair(home, "--dry-run", "--set-aside")["code"] == 0
    assert tree(home) == before
    assert repair(home, "--set-aside")["code"] == 0
    assert state(home, "damaged", ids[1], JOURNAL).read_bytes() == damaged
    assert in_order(home)
    assert run_cli("show", ids[1], cwd=home, env=ENV).returncode == 0
    assert "was set aside as damaged" in run_cli("replay", ids[1], cwd=home, env=ENV).stderr
    drop_command(home, {**command("Task 2.", output_artifact_path="artifacts/2.md"), "id": "kept"})
    run_cli("run", "--once", cwd=home, env=ENV)
    assert ids_of(home) == ids


def test_a_receipt_is_written_again_from_a_journal_that_is_damaged_elsewhere(home: Path, ids: list[str]) -> None:
    told = receipts(home)
    spoil_line(home, ids[1], 2)
    lose_receipt(home, ids[1])
    found = repair(home, "--set-aside")
    assert [finding["outcome"] for finding in found["findings"]][:2] == ["mended", "mended"]
    assert receipts(home) == told
    assert in_order(home)


def test_a_blob_that_is_gone_is_named(home: Path, ids: list[str]) -> None:
    path = state(home, "runs", ids[0], JOURNAL)
    records, _, _ = read_records(path, path.read_bytes())
    steps = [number for number, record in enumerate(records) if hasattr(record, "blob")]
    records[steps[0]] = msgspec.structs.replace(records[steps[0]], out=msgspec.Raw(b"null"), blob="0" * 64)  # type: ignore[type-var]
    path.write_bytes(b"".join(encode_line(record) for record in records))
    [found] = repair(home)["findings"]
    assert (found["outcome"], f"blobs/{'0' * 64}" in found["what"]) == ("left", True)
    assert repair(home, "--set-aside")["code"] == 0
    assert in_order(home)


def test_an_unfinished_run_with_a_damaged_journal_waits_for_the_start_that_ends_it(home: Path, ids: list[str]) -> None:
    lose_receipt_and_commit(home, ids[2])
    spoil_line(home, ids[2], 3)
    found = repair(home)
    assert found["code"] == 0
    assert "the next start ends the run with what can still be read of it" in found["findings"][0]["note"]
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 1
    [receipt] = [receipt for receipt in receipts(home) if receipt["run_id"] == ids[2]]
    assert (receipt["status"], receipt["error"]["code"]) == ("failed", "journal_damaged")
    assert in_order(home)


def test_an_unfinished_run_of_which_nobody_can_say_what_it_was_is_set_aside(home: Path, ids: list[str]) -> None:
    lose_receipt_and_commit(home, ids[1])
    leave_its_marker(home, ids[1])
    spoil_line(home, ids[1], 0)
    left = repair(home)
    assert left["code"] == 1
    assert "record 0 (byte 0) does not verify" in left["findings"][0]["what"]
    assert repair(home, "--set-aside")["code"] == 0
    assert list(state(home, "active").iterdir()) == []
    assert in_order(home)
    drop_command(home, {**command("Task 2.", output_artifact_path="artifacts/2.md"), "id": "kept"})
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert len(ids_of(home)) == 3


def test_a_copy_of_a_run_under_another_name_is_never_taken_for_a_run(home: Path, ids: list[str]) -> None:
    shutil.copytree(state(home, "runs", ids[0]), state(home, "runs", NOWHERE))
    before = receipts(home)
    left = repair(home)
    assert left["findings"][0]["what"] == f"runs/{NOWHERE} holds the journal of run {ids[0]}"
    assert list(state(home, "active").iterdir()) == []
    assert repair(home, "--set-aside")["code"] == 0
    assert in_order(home)
    assert receipts(home) == before


def test_a_run_that_came_back_from_a_backup_is_no_longer_pruned(home: Path, ids: list[str], tmp_path: Path) -> None:
    backup = shutil.copytree(state(home, "runs", ids[0]), tmp_path / "backup")
    prune(home, keep_runs=2)
    shutil.copytree(backup, state(home, "runs", ids[0]))
    found = repair(home)
    assert found["findings"][0]["what"] == f"run {ids[0]} was pruned and has its folder again"
    assert "pruned" not in json.loads(run_cli("show", ids[0], "--json", cwd=home, env=ENV).stdout)
    assert run_cli("replay", "--check", ids[0], cwd=home, env=ENV).returncode == 0
    assert in_order(home)


# ── who may ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_repair_and_prune_say_who_holds_the_home_and_a_look_at_retention_needs_no_lock(
    home: Path, ids: list[str]
) -> None:
    with Daemon(home, env=ENV) as daemon:
        daemon.ready()
        for arguments in (("repair",), ("repair", "--dry-run"), ("prune",)):
            refused = run_cli(*arguments, cwd=home, env=ENV)
            assert refused.returncode == 4
            assert str(daemon.process.pid) in refused.stderr
        assert [one["run_id"] for one in prune(home, "--dry-run", keep_runs=1)["pruned"]] == ids[:2]
        daemon.stop()
    assert folders(home) == set(ids)


def test_a_home_in_which_nothing_ran_is_in_order_and_stays_as_it_is(tmp_path: Path) -> None:
    home = make_home(tmp_path / "fresh")
    done = run_cli("repair", cwd=home, env=ENV)
    assert (done.returncode, done.stdout) == (0, "Everything is in order.\n")
    assert not (home / ".council").exists()
    assert prune(home, "--dry-run")["pruned"] == []
    assert not (home / ".council").exists()
