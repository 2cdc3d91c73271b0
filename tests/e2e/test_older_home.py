"""A home of a version that kept its runs in files: refused by name, then imported once, and its unfinished run goes on."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from council.engine.outputs import all_written
from council.engine.receipts import Receipts
from council.storage.marks import MARK, SET_MARK
from tests.harness import (
    FAULTY,
    command,
    drop_command,
    environment,
    faulty_environment,
    journal_lines,
    kept_pages,
    look,
    make_home,
    opened,
    receipts,
    rows_of,
    run_cli,
    run_ids,
    steps,
)

SETTINGS = 'model = "scripted:script.yaml"\nsettle_s = 0.2\nwatch = "poll"\n'
OF_BEFORE = {"alembic_version", "audit_chain", "audit_records", "users", "roles", "user_credentials"}
FOLDERS = {"receipts", "ids", "outputs", "active", "spend", "pauses", "memory", "runs"}
SPENT = "SELECT run_id, call, state, tokens, usd FROM spending WHERE state = 'end' ORDER BY 1, 2"
IDENTIFIED = command("First of all.", id="the-first")


def live(home: Path, **faults: str) -> int:
    return run_cli("run", "--once", cwd=home, env=faulty_environment(**faults), module=FAULTY).returncode


@pytest.fixture
def known(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Such a home with two ended runs and one that was killed after its first turn, and what the database told of them."""
    home = make_home(tmp_path / "home", settings=SETTINGS)
    (home / "script.yaml").write_text('default: {text: "Nothing to add."}\n')
    drop_command(home, IDENTIFIED)
    assert live(home) == 0
    drop_command(home, command("Second of all."))
    assert live(home) == 0
    drop_command(home, command("Third, and cut off.", output_artifact_path="artifacts/third.md"), "third.json")
    kill = {"COUNCIL_TEST_FAULT": "kill-at:1:event turn_ended", "COUNCIL_TEST_FAULT_LOG": f"{home}.log"}
    assert live(home, **kill) == -9
    with opened(home) as store:
        store.write_now(lambda tx: tx.execute(SET_MARK, ("schedules", '{"weekly.json": "2026-11-20T00:00:00Z"}')))
    told = {
        "journals": {run_id: journal_lines(home, run_id) for run_id in run_ids(home)},
        "receipts": receipts(home),
        "kept": kept_pages(home, run_ids(home)[0]),
        "spent": rows_of(home, SPENT),
    }
    to_files(home, told)
    return home, told


def to_files(home: Path, told: dict[str, Any]) -> None:
    """Writes the files of that version, and leaves the tables alone that its database had."""
    runtime = home / ".council"
    for folder in FOLDERS:
        (runtime / folder).mkdir()
    for run_id, lines in told["journals"].items():
        (runtime / "runs" / run_id).mkdir()
        sealed = [b'{"c":"%08x","r":%b}\n' % (zlib.crc32(line.encode()), line.encode()) for line in lines]
        (runtime / "runs" / run_id / "journal.jsonl").write_bytes(b"".join(sealed))
    first, _, third = told["journals"]
    for name, page in told["kept"].items():
        (runtime / "runs" / first / name).write_bytes(page)
    (runtime / "active" / third).touch()
    for receipt in told["receipts"]:
        (runtime / "receipts" / f"{receipt['run_id']}.json").write_text(json.dumps(receipt))
    (runtime / "ids" / "a.json").write_bytes(msgspec.json.encode(Receipts(look(home)).bound("the-first")))
    for number, entry in enumerate(all_written(look(home))):
        (runtime / "outputs" / f"{number}.json").write_bytes(msgspec.json.encode(entry))
    spent = [
        json.dumps({"t": word, "call": call, "tokens": tokens, "usd": usd, "seconds": 0.1, "run_id": run_id})
        for run_id, call, _, tokens, usd in told["spent"]
        for word in ("begin", "end")
    ]
    (runtime / "spend" / "2026-11-22.jsonl").write_text("\n".join([*spent, '{"t":"begin","ca']))
    (runtime / "schedules.json").write_text('{"weekly.json": "2026-11-20T00:00:00Z"}')
    with closing(sqlite3.connect(runtime / "council.db")) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if name not in OF_BEFORE:
                database.execute(f'DROP TABLE "{name}"')
        database.execute("UPDATE alembic_version SET version_num = '0003'")
        database.commit()


def test_it_is_refused_by_name_until_a_daemon_or_repair_converts_it_and_then_says_what_it_said(
    known: tuple[Path, dict[str, Any]],
) -> None:
    home, told = known
    refused = run_cli("status", cwd=home, env=environment())
    assert refused.returncode == 3
    assert "some of what it keeps is in files" in refused.stderr
    assert "`council repair` converts them" in refused.stderr
    assert (
        "some of what it keeps is in files; no daily copy yet\n"
        in run_cli("doctor", cwd=home, env=environment()).stdout
    )
    converted = run_cli("repair", cwd=home, env=environment())
    assert "moved into the database: runs 3, of them unfinished 1" in converted.stdout, converted.stderr
    assert {run_id: journal_lines(home, run_id) for run_id in run_ids(home)} == told["journals"]
    assert (receipts(home), rows_of(home, SPENT)) == (told["receipts"], told["spent"])
    assert kept_pages(home, run_ids(home)[0]) == told["kept"]
    assert rows_of(home, MARK.replace("?", "'schedules'")) == [('{"weekly.json": "2026-11-20T00:00:00Z"}',)]
    assert FOLDERS & {path.name for path in (home / ".council").iterdir()} == set()
    for run_id in run_ids(home)[:2]:
        assert run_cli("replay", run_id, "--check", cwd=home, env=environment()).returncode == 0
    verified = run_cli("audit", "verify", cwd=home, env=environment())
    assert verified.returncode == 0, verified.stdout


def test_its_unfinished_run_goes_on_at_the_next_step_and_its_ids_answer(known: tuple[Path, dict[str, Any]]) -> None:
    home, told = known
    third = list(told["journals"])[-1]
    drop_command(home, IDENTIFIED, "again.json")
    assert live(home, COUNCIL_TEST_CALLS=f"{home}.calls", COUNCIL_TEST_FAULT_LOG=f"{home}.log") == 0
    [brought] = [line for line in Path(f"{home}.log").read_text().splitlines() if " event home_brought_over " in line]
    counted = json.loads(brought[brought.index("{") :])
    assert (counted["runs"], counted["unfinished"], counted["unread"]) == (3, 1, [])
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"] * 3
    assert Path(f"{home}.calls").read_text().count("begin") == 3
    assert list(steps(home, third))[:3] == ["start", "window", "round/1/COORDINATOR"]
    assert "status: succeeded" in (home / "artifacts" / "third.md").read_text()
    assert [path.name for path in (home / "commands").glob("*.json")] == []
