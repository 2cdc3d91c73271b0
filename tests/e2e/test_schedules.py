"""Schedules with the real daemon, and plain cron with the crontab lines of `docs/schedules.md`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from council.desk.recurring_folder import Sighting, save_sightings
from tests.fake_gemini import FakeGemini, slow
from tests.harness import TIMEOUT_S, Daemon, command, make_home, opened, receipts, run_cli

REPO = Path(__file__).parents[2]
DOCS = REPO / "docs" / "schedules.md"
MONTHLY = "0 0 1 * *"  # nothing comes due while a test runs, but for the first minute of a month


def recurring(home: Path, name: str = "brief.json", schedule: str = MONTHLY, **keys: Any) -> Path:
    folder = home / "commands" / "recurring"
    folder.mkdir(exist_ok=True)
    body = command(**keys) | {"output_artifact_path": "artifacts/brief-{id}.md", "schedule": schedule}
    (folder / name).write_text(json.dumps(body))
    return folder / name


def seen_long_ago(home: Path, name: str = "brief.json", schedule: str = MONTHLY, days: float = 100) -> None:
    """As after a downtime: the daemon saw the file then, and nothing was dropped since."""
    first_seen = datetime.now(UTC) - timedelta(days=days)
    with opened(home) as store:
        save_sightings(store, {name: Sighting(first_seen, f"{schedule} UTC")})


def test_after_downtime_the_latest_occurrence_alone_runs_and_a_second_start_does_not_run_it_again(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    path = recurring(home)
    seen_long_ago(home)
    with Daemon(home, env=env) as daemon:
        daemon.wait("schedule_missed", file="brief.json")
        ended = daemon.wait("run_ended", status="succeeded")
        assert daemon.stop() == 0
    latest = datetime.now(UTC).replace(day=1)
    id_ = f"brief.json@{latest:%Y%m%d}T000000Z"
    assert ended["file"] == f"{id_}.json"
    [receipt] = receipts(home)
    assert receipt["id"] == id_
    assert receipt["artifact"]["path"] == f"artifacts/brief-{latest:%Y%m%d}T000000Z.md"
    assert (home / receipt["artifact"]["path"]).exists()
    assert (home / "session_states" / "brief" / "auditor_session.json").exists()
    assert path.exists()
    calls = len(fake.requests)
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        assert daemon.stop() == 0
    assert len(receipts(home)) == 1
    assert len(fake.requests) == calls


def test_once_drops_what_is_due_and_drains_it(home: Path, env: dict[str, str]) -> None:
    recurring(home)
    seen_long_ago(home)
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    assert receipt["status"] == "succeeded"
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert len(receipts(home)) == 1


def test_submit_wait_runs_its_own_command_and_no_schedule(home: Path, env: dict[str, str]) -> None:
    recurring(home)
    seen_long_ago(home)
    (home / "mine.json").write_text(json.dumps(command()))
    assert run_cli("submit", "--wait", "mine.json", cwd=home, env=env).returncode == 0
    assert [receipt["command_file"]["name"] for receipt in receipts(home)] == ["mine.json"]


def test_an_occurrence_that_comes_due_while_one_runs_is_skipped_and_its_id_is_answered_never_run(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    recurring(home)
    seen_long_ago(home, days=100)
    fake.reply = lambda request: slow(60)
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started")
        daemon.kill()
    # The same file, on a schedule of every minute that has been counted since yesterday: one is due at the start.
    recurring(home, schedule="* * * * *")
    seen_long_ago(home, schedule="* * * * *", days=1)
    with Daemon(home, env=env) as daemon:
        skipped = daemon.wait("schedule_skipped")
        daemon.kill()
    assert "of an earlier occurrence has not ended" in skipped["reason"]
    [receipt] = [receipt for receipt in receipts(home) if receipt["status"] == "skipped"]
    assert receipt["id"] == skipped["id"]
    (home / "commands" / "recurring" / "brief.json").unlink()
    for path in (home / "commands").glob("*.json"):
        path.unlink()
    assert run_cli("show", receipt["run_id"], cwd=home, env=env).stdout.splitlines() == [
        f"{receipt['id']}: skipped.",
        f"Skipped: {skipped['reason']}.",
    ]


def test_a_bad_file_leaves_the_daemon_alive_and_is_picked_up_when_it_is_mended(home: Path, env: dict[str, str]) -> None:
    path = recurring(home, schedule="0 0 1 *")
    note = path.with_name("brief.json.error.md")
    with Daemon(home, env=env) as daemon:
        daemon.wait("schedule_refused", file="brief.json")
        assert "five fields" in note.read_text()
        recurring(home)
        daemon.wait("schedule_seen", file="brief.json")
        assert not note.exists()
        assert daemon.stop() == 0


def test_a_daemon_keeps_to_a_pause_and_list_shows_what_the_daemon_saw(home: Path, env: dict[str, str]) -> None:
    recurring(home)
    seen_long_ago(home)
    assert run_cli("schedule", "pause", "brief", cwd=home, env=env).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert receipts(home) == []
    assert run_cli("schedule", "resume", "brief", cwd=home, env=env).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert receipts(home) == []
    [row] = json.loads(run_cli("schedule", "list", "--json", cwd=home, env=env).stdout)
    assert (row["file"], row["paused"], row["error"], row["last"]) == ("brief.json", False, None, None)


# ── plain cron ───────────────────────────────────────────────────────────────────────────────────────────────────────


def crontab() -> tuple[list[str], list[str]]:
    """The documented lines: settings of the environment, and entries."""
    lines = DOCS.read_text().split("```crontab\n")[1].split("```")[0].splitlines()
    settings = [line for line in lines if re.match(r"[A-Z_]+=", line)]
    return settings, [line for line in lines if line not in settings]


def as_cron_runs_it(template: str, home: Path) -> subprocess.CompletedProcess[str]:
    """The documented line that submits this template, with the documented environment and none other, but that its program
    is this checkout's."""
    settings, entries = crontab()
    [entry] = [entry for entry in entries if template in entry]
    shell_command = entry.split(maxsplit=5)[5].replace("/home/anna/decisions", str(home))
    program = home.parent / "bin" / "council"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{REPO}" exec "{sys.executable}" -m council "$@"\n')
    program.chmod(0o755)
    environment = [line.replace("/home/anna/council/.venv/bin", str(program.parent)) for line in settings]
    environment += [f"HOME={home.parent}", "LOGNAME=anna", "SHELL=/bin/sh"]
    return subprocess.run(
        ["/usr/bin/env", "-i", *environment, "/bin/sh", "-c", shell_command],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture
def offline_home(tmp_path: Path) -> Path:
    """A home as the documentation has it: templates beside the inbox, everything else in council.toml."""
    home = make_home(tmp_path / "decisions", settings='model = "offline"\nsettle_s = 0.5\n')
    (home / "templates").mkdir()
    (home / "needs.md").write_text("# Needs\nThe archive grows by 40 GB a month.\n")
    for name in ("costs.json", "risks.json"):
        (home / "templates" / name).write_text(json.dumps(command(input_artifacts=["needs.md"])))
    return home


def test_the_documented_crontab_line_drops_its_file_and_a_second_one_does_not_overwrite_it(offline_home: Path) -> None:
    for expected in (["costs.json"], ["costs-2.json", "costs.json"]):
        done = as_cron_runs_it("costs.json", offline_home)
        assert done.returncode == 0, done.stderr
        assert "Dropped" in done.stdout
        assert sorted(path.name for path in (offline_home / "commands").glob("*.json")) == expected


def test_the_documented_crontab_line_that_waits_runs_the_command_and_prints_the_answer(offline_home: Path) -> None:
    done = as_cron_runs_it("risks.json", offline_home)
    assert done.returncode == 0, done.stderr
    assert "[SUCCESS] Artifact saved to artifacts/out.md" in done.stderr
    assert "Status: succeeded." in done.stdout.splitlines()[-1]
    assert [receipt["status"] for receipt in receipts(offline_home)] == ["succeeded"]


def test_a_crontab_line_whose_run_fails_ends_with_the_documented_code(offline_home: Path) -> None:
    (offline_home / "needs.md").unlink()
    assert as_cron_runs_it("risks.json", offline_home).returncode == 1
    (offline_home / "templates" / "risks.json").write_text("{}")
    assert as_cron_runs_it("risks.json", offline_home).returncode == 2
    (offline_home / "personas").rename(offline_home / "elsewhere")
    assert as_cron_runs_it("risks.json", offline_home).returncode == 3


def test_a_recurring_command_that_admission_would_refuse_gets_a_note_beside_it_and_drops_nothing(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path / "home", settings='model = "offline"\n')
    folder = home / "commands" / "recurring"
    folder.mkdir()
    (folder / "out.json").write_text(
        json.dumps({"schedule": "* * * * *", "task_description": "x", "output_artifact_path": "../x.md"})
    )
    (folder / "end.json").write_text(json.dumps({"schedule": "* * * * *", "type": "cancel", "run": "r-1"}))
    for path in folder.iterdir():
        os.utime(path, (1, 1))  # long finished: a file just written is not judged yet
    assert run_cli("run", "--once", cwd=home).returncode == 0
    assert "output_artifact_path" in (folder / "out.json.error.md").read_text()
    note = (folder / "end.json.error.md").read_text()
    assert "cannot be 'cancel' in a recurring command" in note
    assert run_cli("init", cwd=home).returncode == 0
    schema = json.loads((home / "commands" / ".schema" / "recurring.schema.json").read_text())
    can_recur = schema["properties"]["type"]["enum"]
    assert {"deliberate", "ask", "memory", "forget", "create_specialist"} <= {*can_recur}
    assert {"cancel", "confirm", "plan", "prefs", "retry", "world_init"}.isdisjoint(can_recur)
    assert f"make it one of {', '.join(can_recur)}" in note
    assert not (home / "commands" / "failed").exists()
