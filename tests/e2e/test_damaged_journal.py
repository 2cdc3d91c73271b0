"""A journal that is damaged in the middle never costs an ended run its receipt or its decision, and no run is run twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness import FAULTY, command, drop_command, faulty_environment, make_home, receipts, run_cli

SETTINGS = 'model = "scripted:script.yaml"\nsettle_s = 0.5\nscan_interval_s = 0.2\n'
SCRIPT = 'default: {text: "Keep the ledger in one file."}\n'


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    home = make_home(tmp_path / "home", settings=SETTINGS)
    (home / "script.yaml").write_text(SCRIPT)
    return home


def folder_of(home: Path) -> Path:
    [folder] = (home / ".council" / "runs").glob("2*")
    return folder


def damage(home: Path, line: int = 4) -> bytes:
    """Flips a byte of one line of the journal; what it holds then."""
    journal = folder_of(home) / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) > line + 1
    lines[line] = lines[line].replace(b"e", b"E", 1)
    journal.write_bytes(b"".join(lines))
    return journal.read_bytes()


def deliberations(home: Path) -> list[dict[str, Any]]:
    return [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]


@pytest.mark.parametrize("order", [["retry"], ["retry", "--from", "round/1/STRATEGIST"], ["resume"]])
def test_an_order_that_a_damaged_journal_refuses_leaves_the_run_as_it_ended(quick: Path, order: list[str]) -> None:
    drop_command(quick, command())
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    before, page, journal = deliberations(quick), (quick / "artifacts" / "out.md").read_bytes(), damage(quick)
    word, *options = order
    assert run_cli(word, before[0]["run_id"], *options, cwd=quick).returncode == 2
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert deliberations(quick) == before
    assert (quick / "artifacts" / "out.md").read_bytes() == page
    assert (folder_of(quick) / "journal.jsonl").read_bytes() == journal
    assert "does not verify" in run_cli("repair", "--dry-run", cwd=quick).stdout


def journals_said(home: Path) -> tuple[int, list[tuple[str, str]]]:
    """The exit code of `council doctor`, and what it says of journals."""
    done = run_cli("doctor", "--json", cwd=home)
    return done.returncode, [
        (check["status"], check["message"])
        for check in json.loads(done.stdout)["checks"]
        if check["name"] == "journals"
    ]


def test_doctor_names_a_damaged_journal_and_changes_nothing(quick: Path) -> None:
    drop_command(quick, command())
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert journals_said(quick) == (0, [("ok", "1 run, all whole")])
    journal, damaged = damage(quick), folder_of(quick) / "journal.jsonl"
    begun = quick / ".council" / "runs" / "20990101-000000-abcdefgh"
    begun.mkdir()
    (begun / "journal.jsonl").write_bytes(b"\n" * 4096)  # a process died before its run had a record
    code, [(status, message)] = journals_said(quick)
    assert (code, status) == (0, "warn")
    assert message.startswith(f"{damaged}: record ")
    assert message.endswith("does not verify.")
    assert damaged.read_bytes() == journal


def killed(home: Path, fault: str) -> None:
    drop_command(home, command())
    calls = str(home.parent / "calls")
    env = faulty_environment(COUNCIL_TEST_FAULT=fault, COUNCIL_TEST_CALLS=calls)
    assert run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode == -9


def calls_made(home: Path) -> int:
    return (home.parent / "calls").read_text().count("begin\t")


@pytest.mark.parametrize("place", [".staged out.md", ".taken"])
def test_a_run_that_was_killed_behind_its_commit_ends_as_it_said_whatever_befell_its_journal(
    quick: Path, place: str
) -> None:
    killed(quick, f"kill-at:1:{place}")
    journal = damage(quick)
    calls = calls_made(quick)
    env = faulty_environment(COUNCIL_TEST_CALLS=str(quick.parent / "calls"))
    assert run_cli("run", "--once", cwd=quick, env=env, module=FAULTY).returncode == 0
    [receipt] = deliberations(quick)
    assert receipt["status"] == "succeeded"
    assert "Keep the ledger in one file." in (quick / "artifacts" / "out.md").read_text()
    assert "status: succeeded" in (quick / "artifacts" / "out.md").read_text()
    assert (folder_of(quick) / "journal.jsonl").read_bytes() == journal
    assert list((quick / "commands").glob("*.json")) == []
    assert list((quick / ".council" / "active").iterdir()) == []
    assert run_cli("run", "--once", cwd=quick, env=env, module=FAULTY).returncode == 0
    assert calls_made(quick) == calls
    assert len(deliberations(quick)) == 1


def test_what_stood_on_the_page_of_an_unfinished_run_is_kept(quick: Path) -> None:
    killed(quick, "kill-at:1:event synthesis")
    page = (quick / "artifacts" / "out.md").read_bytes()
    damage(quick)
    calls = calls_made(quick)
    # The salvage, too, dies half-way, and the run is still not asked for again.
    env = faulty_environment(COUNCIL_TEST_FAULT="kill-at:1:event run_started")
    assert run_cli("run", "--once", cwd=quick, env=env, module=FAULTY).returncode == -9
    env = faulty_environment(COUNCIL_TEST_CALLS=str(quick.parent / "calls"))
    assert run_cli("run", "--once", cwd=quick, env=env, module=FAULTY).returncode == 1
    [receipt] = deliberations(quick)
    assert receipt["error"]["code"] == "journal_damaged"
    assert calls_made(quick) == calls
    assert (folder_of(quick) / "artifact-1.md").read_bytes() == page
