"""Retention by age, number and size, by the daemon and by hand; a damaged database; `council repair` after what may befall
the files beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from council.settings import Home
from council.upkeep.repair import Flaw
from council.upkeep.repair import repair as mend
from tests.fake_gemini import FakeGemini, slow, text
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    execute,
    faulty_environment,
    inbox,
    kept_pages,
    make_home,
    opened,
    receipts,
    rows_of,
    run_cli,
    run_ids,
    wait_until,
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


def tree(home: Path) -> dict[str, bytes]:
    """All files but the lock, and of the database what it says."""
    found = [path for path in home.rglob("*") if path.is_file() and not path.name.startswith(("lock", "council.db"))]
    with closing(sqlite3.connect(home / ".council" / "council.db")) as database:
        said = "\n".join(database.iterdump()).encode()
    return {str(path.relative_to(home)): path.read_bytes() for path in found} | {"database": said}


def prune(home: Path, *arguments: str, **settings: int) -> dict[str, Any]:
    env = {**ENV, **{f"COUNCIL_{key.upper()}": str(value) for key, value in settings.items()}}
    done = run_cli("prune", "--json", *arguments, cwd=home, env=env)
    return {"code": done.returncode, **json.loads(done.stdout)}


def repair(home: Path, *arguments: str) -> dict[str, Any]:
    done = run_cli("repair", "--json", *arguments, cwd=home, env=ENV)
    return {"code": done.returncode, **json.loads(done.stdout)}


def looked_at(home: Path) -> list[Flaw]:
    """What `council repair --dry-run` would say, without a process for each look."""
    with opened(home) as store:
        return mend(Home(home), store, dry_run=True)


def in_order(home: Path) -> bool:
    found = looked_at(home)
    assert found == []
    return True


# ── retention ────────────────────────────────────────────────────────────────────────────────────────────────────────


def age(home: Path, ids: list[str]) -> None:
    """The first run ended 40 days ago, the second 20."""
    for run_id, days in ((ids[0], 40), (ids[1], 20)):
        ended_ns = int((time.time() - days * DAY_S) * 1e9)
        execute(home, "UPDATE runs SET ended_ns = ? WHERE run_id = ?", ended_ns, run_id)


def swell(home: Path, ids: list[str]) -> None:
    """Every run holds a large result."""
    execute(home, "UPDATE runs SET text_bytes = 2000000")


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
    old = "INSERT INTO spending (run_id, call, attempt, day, state, closing, tokens, seconds) "
    old += "VALUES ('x', 'x', 0, '2020-01-01', 'end', 0, 1, 0)"
    execute(home, old)
    before = tree(home)
    looked = prune(home, "--dry-run", **{setting: bound})
    assert tree(home) == before
    told = prune(home, **{setting: bound})
    assert [one["run_id"] for one in told["pruned"]] == ids[:count]
    assert {one["by"] for one in told["pruned"]} == {setting}
    assert looked == {**told, "dry_run": True}
    assert run_ids(home) == ids[count:]
    assert rows_of(home, "SELECT 1 FROM spending WHERE day = '2020-01-01'") == []
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
        assert run_ids(home) == ids[count:]
        daemon.stop()
    assert run_ids(home) == ids[count:]
    assert in_order(home)


def test_a_daemon_that_drains_and_leaves_prunes_what_just_ended(home: Path, ids: list[str]) -> None:
    drop_command(home, command("Task 4.", output_artifact_path="artifacts/4.md"))
    assert run_cli("run", "--once", cwd=home, env={**ENV, "COUNCIL_KEEP_RUNS": "1"}).returncode == 0
    assert run_ids(home) == ids_of(home)[-1:]
    assert len(ids_of(home)) == 4


def test_what_is_no_journal_stays_and_the_id_still_answers(home: Path, ids: list[str]) -> None:
    kept = {name: data for name, data in tree(home).items() if name.startswith(("artifacts/", "session_states/"))}
    prune(home, keep_days=1, keep_runs=1)
    assert run_ids(home) == [ids[2]]
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
    in_zone = f"runed on {datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M} by keep_runs"
    assert in_zone in shown.stdout
    for arguments in (("replay", ids[0]), ("diff", ids[0], ids[2]), ("diff", ids[2], ids[0])):
        refused = run_cli(*arguments, cwd=home, env=ENV)
        assert refused.returncode == 2
        assert said in refused.stderr
    assert said in run_cli("retry", ids[0], cwd=home, env=ENV).stderr
    shutil.rmtree(home / ".council" / "logs")
    with Daemon(home, env=ENV) as daemon:
        daemon.ready()
        daemon.stop()
    assert in_zone in run_cli("logs", "--run", ids[0], cwd=home, env=ENV).stderr


def test_the_log_of_one_run_holds_its_lines_only(home: Path, ids: list[str]) -> None:
    lines = [
        json.loads(line)
        for line in run_cli("logs", "-n", "999", "--json", "--run", ids[1], cwd=home).stdout.splitlines()
    ]
    assert {line["run_id"] for line in lines} == {ids[1]}
    assert {"run_queued", "turn_ended", "run_ended"} <= {line["event"] for line in lines}
    assert run_cli("logs", "--run", NOWHERE, cwd=home).returncode == 2


def test_a_new_artifact_at_the_path_of_a_pruned_run_keeps_the_page_that_it_displaces(
    home: Path, ids: list[str]
) -> None:
    page = (home / "artifacts" / "1.md").read_bytes()
    prune(home, keep_runs=1)
    drop_command(home, command("Task 4, in the place of the first.", output_artifact_path="artifacts/1.md"))
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    newest = ids_of(home)[-1]
    assert run_ids(home) == [ids[2], newest]
    assert kept_pages(home, newest) == {f"artifact-of-{ids[0]}.md": page}
    assert in_order(home)


def test_an_unfinished_run_is_never_pruned(home: Path, ids: list[str], fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: slow(30)
    drop_command(home, command("Task 4."))
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("turn_started")["run_id"]
        daemon.kill()
    execute(home, "UPDATE runs SET created = '2020-01-01T00:00:00Z', place = 1")
    execute(home, "UPDATE runs SET ended_ns = 1 WHERE ended_ns IS NOT NULL")
    pruned = prune(home, keep_runs=1, keep_days=1)["pruned"]
    assert sorted(one["run_id"] for one in pruned) == sorted(ids)
    assert run_ids(home) == [run_id]
    fake.reply = lambda request: text("words")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert ids_of(home) == [*ids, run_id]


def test_a_run_that_is_to_go_on_is_not_pruned_before_it_has_ended_again(home: Path, ids: list[str]) -> None:
    age(home, ids)
    assert run_cli("retry", ids[0], cwd=home, env=ENV).returncode == 0
    assert [one["run_id"] for one in prune(home, keep_days=30)["pruned"]] == []
    assert run_cli("run", "--once", cwd=home, env={**ENV, "COUNCIL_KEEP_DAYS": "30"}).returncode == 0
    assert run_ids(home) == ids
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
    assert count >= 4
    for number in range(3, count + 1):
        victim = Path(shutil.copytree(home, tmp_path / str(number)))
        killed = faulty_environment(COUNCIL_TEST_FAULT=f"kill-before:{number}", **env)
        assert run_cli("prune", cwd=victim, env=killed, module=FAULTY).returncode == -9, number
        assert run_cli("show", ids[1], cwd=victim, env=ENV).returncode == 0, number
        assert run_cli("run", "--once", cwd=victim, env={**ENV, **env}).returncode == 0, number
        assert run_ids(victim) == [ids[2]], number
        told = {receipt["run_id"]: receipt.get("pruned", {}).get("by") for receipt in receipts(victim)}
        assert told == {ids[0]: "keep_runs", ids[1]: "keep_runs", ids[2]: None}, number
        assert looked_at(victim) == [], number


# ── a damaged database ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def copied(three_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same home with a daily copy, which a daemon made."""
    home = Path(shutil.copytree(three_runs, tmp_path_factory.mktemp("copied") / "home"))
    with Daemon(home, env=ENV) as daemon:
        wait_until(lambda: list((home / ".council" / "copies").glob("*.db")), "the daily copy")
        assert daemon.stop() == 0
    return home


def garble(database: Path) -> None:
    database.write_bytes(b"no database at all, but long enough to be looked at as one" * 999)


def garble_pages(database: Path) -> None:
    data = bytearray(database.read_bytes())
    data[8192:] = b"\x7f" * (len(data) - 8192)
    database.write_bytes(data)


def cut_off(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


def empty(database: Path) -> None:
    os.truncate(database, 0)


def bytes_of(database: Path) -> bytes:
    """But for the page that counts who opened it; none where there is no file."""
    return database.read_bytes()[8192:] if database.exists() else b""


DAMAGES = [garble, garble_pages, cut_off, empty, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_database_is_named_and_never_replaced_in_silence_and_its_copy_takes_its_place(
    copied: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    home = Path(shutil.copytree(copied, tmp_path / "copied"))
    database, ids, told = home / ".council" / "council.db", ids_of(home), receipts(home)
    damage(database)
    damaged = bytes_of(database)
    drop_command(home, {**command("Task 2.", output_artifact_path="artifacts/2.md"), "id": "kept"})
    refused = run_cli("run", "--once", cwd=home, env=ENV)
    assert refused.returncode == 1
    assert "the database .council/council.db" in refused.stderr
    assert "`council restore`" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert bytes_of(database) == damaged
    assert inbox(home) == ["command.json"]
    assert run_cli("doctor", cwd=home, env=ENV).returncode == 3
    assert run_cli("restore", "--yes", cwd=home, env=ENV).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=ENV).returncode == 0
    assert (receipts(home), ids_of(home), inbox(home)) == (told, ids, [])


def test_a_copy_that_was_cut_short_is_named_and_the_whole_one_before_it_takes_the_databases_place(
    copied: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(copied, tmp_path / "copied"))
    [daily] = (home / ".council" / "copies").glob("*.db")
    older = Path(shutil.copy(daily, daily.with_name("council-20200101.db")))
    cut_off(daily)
    cut_off(home / ".council" / "council.db")
    told = run_cli("doctor", "--model", "gemini", cwd=home).stdout  # its key may lie in the vault
    assert [line.split()[1] for line in told.splitlines() if line.startswith("fail")] == ["database"]
    assert f"daily copies: {daily.name} (not whole), {older.name} (whole)" in told
    assert f"fix: council restore (restores {older.name})" in told
    restored = run_cli("restore", "--yes", cwd=home, env=ENV)
    assert (restored.returncode, f"{daily} is not a complete copy" in restored.stderr) == (0, True)
    assert f"{older.name} is the database now" in restored.stdout
    looked = run_cli("doctor", cwd=home, env=ENV).stdout
    assert re.search(
        r"ok +set aside +council\.db\.before-restore \([0-9.]+ MiB, last written on \S+\): .*removed", looked
    )
    for damaged in (older, home / ".council" / "council.db"):
        cut_off(damaged)
    refused = run_cli("restore", "--yes", cwd=home, env=ENV)
    assert (refused.returncode, "no daily copy here is whole" in refused.stderr) == (2, True)
    assert "restore FILE" in run_cli("doctor", cwd=home, env=ENV).stdout


def test_a_database_is_not_restored_from_itself_nor_from_a_device(home: Path, ids: list[str]) -> None:
    assert "/dev/null is not a regular file" in run_cli("restore", "/dev/null", "--yes", cwd=home, env=ENV).stderr
    same = run_cli("restore", ".council/council.db", "--yes", cwd=home, env=ENV)
    assert (same.returncode, "is the database of this home itself" in same.stderr) == (2, True)
    assert not (home / ".council" / "council.db.before-restore").exists()
    assert run_ids(home) == ids


# ── repair ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def leave_temporaries(home: Path) -> None:
    (home / "artifacts" / f".x.md.{NOWHERE}.staged").write_text("half")
    (home / "session_states" / ".auditor_session.json.0123456789ab.tmp").write_text("half")


def leave_half_copies(home: Path) -> None:
    (home / ".council" / "copies").mkdir(exist_ok=True)
    for half in ("copies/.council-20261126.db.partial", ".council.db.restored", ".council.db.restored-journal"):
        shutil.copy(home / ".council" / "council.db", home / ".council" / half)


def leave_an_old_drop(home: Path) -> None:
    half = home / "commands" / ".x.json.0123456789ab.tmp"
    half.write_text("half")
    os.utime(half, (1, 1))


def take_a_file(home: Path) -> None:
    (home / "commands" / f".{NOWHERE}.taken").write_text('{"type": "note"')


def spoil_memory(home: Path) -> None:
    (home / "session_states" / "auditor_session.json").write_text("{")


def spoil_index(home: Path) -> None:
    folder = home / ".council" / "cortex" / "files"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "catalog.json").write_text("{")


LEFT = [
    (leave_temporaries, "mended", "is left over from a process that was killed"),
    (leave_half_copies, "mended", "is left over from a process that was killed"),
    (leave_an_old_drop, "mended", "is left over from a process that was killed"),
    (take_a_file, "waits", "the next start completes this"),
    (spoil_memory, "mended", "the last good copy was restored"),
]


@pytest.mark.parametrize(("damage", "outcome", "said"), LEFT, ids=lambda value: getattr(value, "__name__", None))
def test_what_is_inconsistent_is_named_mended_and_then_in_order(
    home: Path, ids: list[str], damage: Callable[[Path], None], outcome: str, said: str
) -> None:
    damage(home)
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
    run_cli("run", "--once", cwd=home, env=ENV)  # which also does whatever waits for a start
    assert in_order(home)
    for role in ("coordinator", "strategist", "auditor"):
        session = json.loads((home / "session_states" / f"{role}_session.json").read_bytes())
        assert [task["run_id"] for task in session["tasks"]] == ids


def test_a_drop_that_another_process_may_be_making_is_left_alone(home: Path, ids: list[str]) -> None:
    half = home / "commands" / ".x.json.0123456789ab.tmp"
    half.write_text("half")
    person = home / "artifacts" / ".notes.tmp"
    person.write_text("a person's")
    assert in_order(home)
    assert half.exists()
    assert person.exists()


def test_a_damaged_index_is_only_named(home: Path, ids: list[str]) -> None:
    spoil_index(home)
    [found] = repair(home)["findings"]
    assert found["outcome"] == "waits"
    assert "council cortex index --rebuild" in found["note"]
    assert run_cli("cortex", "index", "--rebuild", cwd=home, env=ENV).returncode == 0
    assert in_order(home)


def test_memory_without_a_good_copy_needs_a_person(home: Path, ids: list[str]) -> None:
    spoil_memory(home)
    execute(home, "DELETE FROM kept WHERE name = 'auditor_session.json'")
    done = run_cli("repair", cwd=home, env=ENV)
    assert done.returncode == 1
    assert "session_states/auditor_session.json is damaged (not JSON)" in done.stdout
    assert "council memory reset AUDITOR --lane main" in done.stdout
    assert "1 for a person" in done.stdout


def test_a_link_in_the_place_of_a_memory_is_for_a_person_as_no_run_gets_past_it(home: Path, ids: list[str]) -> None:
    memory = home / "session_states" / "auditor_session.json"
    memory.rename(home / "elsewhere.json")
    memory.symlink_to(home / "elsewhere.json")
    [flaw] = repair(home)["findings"]
    assert (flaw["outcome"], flaw["note"]) == ("left", "replace the link with the folder or file itself")
    assert "`session_states/auditor_session.json` is a symbolic link" in run_cli("doctor", cwd=home, env=ENV).stdout
    memory.unlink()
    (home / "elsewhere.json").rename(memory)
    assert in_order(home)


# ── who may ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_repair_prune_and_restore_say_who_holds_the_home_and_a_look_at_retention_needs_no_lock(
    home: Path, ids: list[str]
) -> None:
    with Daemon(home, env=ENV) as daemon:
        daemon.ready()
        assert run_cli("backup", "copy.db", cwd=home, env=ENV).returncode == 0
        for arguments in (("repair",), ("repair", "--dry-run"), ("prune",), ("restore", "copy.db")):
            refused = run_cli(*arguments, cwd=home, env=ENV)
            assert refused.returncode == 4
            assert str(daemon.process.pid) in refused.stderr
            assert "Replace the database" not in refused.stderr  # nobody is asked in vain
        assert "is a directory" in run_cli("restore", ".", cwd=home, env=ENV).stderr
        assert [one["run_id"] for one in prune(home, "--dry-run", keep_runs=1)["pruned"]] == ids[:2]
        daemon.stop()
    assert run_ids(home) == ids


def test_a_home_in_which_nothing_ran_is_in_order_and_stays_as_it_is(tmp_path: Path) -> None:
    home = make_home(tmp_path / "fresh")
    done = run_cli("repair", cwd=home, env=ENV)
    assert (done.returncode, done.stdout) == (0, "Everything is in order.\n")
    assert not (home / ".council").exists()
    assert prune(home, "--dry-run")["pruned"] == []
    assert not (home / ".council").exists()
