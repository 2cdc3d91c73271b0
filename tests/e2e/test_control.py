"""`cancel`, `resume`, `retry` and `submit --wait` with and without a daemon: they end their own command, and run nothing else."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fake_gemini import FakeGemini, slow, text
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    journal,
    receipts,
    run_cli,
    run_ids,
)

NO_KEY = environment()


def in_lane(lane: str) -> dict[str, Any]:
    return command(f"The task of {lane}.", output_artifact_path=f"artifacts/{lane}.md", session=lane)


def run_of(home: Path, lane: str) -> str:
    [run_id] = [run_id for run_id in run_ids(home) if journal(home, run_id)[0]["lane"] == lane]
    return run_id


@pytest.fixture
def unfinished(home: Path, fake: FakeGemini, env: dict[str, str]) -> Path:
    """A home without a daemon, where runs of the lanes `one` and `two` were killed in their first call."""
    fake.reply = lambda request: slow(30)
    for lane in ("one", "two"):
        drop_command(home, in_lane(lane), f"{lane}.json")
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", count=2)
        fake.wait_for_requests(2)
        daemon.kill()
    fake.reply = lambda request: text("words")
    return home


def test_cancel_without_a_daemon_ends_that_run_and_leaves_the_others(unfinished: Path, fake: FakeGemini) -> None:
    untouched, calls = journal(unfinished, run_of(unfinished, "two")), len(fake.requests)
    done = run_cli("cancel", run_of(unfinished, "one"), cwd=unfinished, env=NO_KEY)
    assert (done.returncode, done.stderr) == (0, "")
    assert ": cancelled; what was said is in artifacts/one.md" in done.stdout
    assert "status: cancelled" in (unfinished / "artifacts" / "one.md").read_text()
    assert journal(unfinished, run_of(unfinished, "two")) == untouched
    assert len(fake.requests) == calls
    assert sorted(path.name for path in (unfinished / "commands").glob("*.json")) == ["two.json"]


def test_what_was_left_goes_on_with_the_next_daemon(unfinished: Path, env: dict[str, str]) -> None:
    run_cli("cancel", run_of(unfinished, "one"), cwd=unfinished, env=NO_KEY)
    assert run_cli("run", "--once", cwd=unfinished, env=env).returncode == 0
    assert "status: succeeded" in (unfinished / "artifacts" / "two.md").read_text()


def test_resume_and_retry_without_a_daemon_queue_and_leave(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, in_lane("one"))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    calls = len(fake.requests)
    done = run_cli("retry", run_of(home, "one"), cwd=home, env=NO_KEY)
    assert done.returncode == 0
    assert "is queued; it starts again when a daemon runs" in done.stdout
    again = run_cli("retry", "last", cwd=home, env=NO_KEY)
    assert again.returncode == 2
    assert f"the last run, {run_of(home, 'one')}, has not ended yet" in again.stderr
    assert len(fake.requests) == calls
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert len(fake.requests) == 2 * calls
    refused = run_cli("resume", run_of(home, "one"), cwd=home, env=NO_KEY)
    assert refused.returncode == 2
    assert "has already ended (succeeded)" in refused.stderr


def test_a_drained_command_runs_no_other_lane_but_what_stands_before_it(
    unfinished: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    untouched = journal(unfinished, run_of(unfinished, "two"))
    later = tmp_path / "later.json"
    later.write_text(json.dumps({**in_lane("one"), "task_description": "The second task of one."}))
    done = run_cli("submit", "--wait", str(later), cwd=unfinished, env=env)
    assert done.returncode == 0
    assert [receipt["lane"] for receipt in receipts(unfinished)] == ["one", "one"]
    assert journal(unfinished, run_of(unfinished, "two")) == untouched


def test_a_command_whose_daemon_died_in_its_run_is_finished_by_whoever_waits_for_it(
    unfinished: Path, env: dict[str, str]
) -> None:
    untouched = journal(unfinished, run_of(unfinished, "two"))
    done = run_cli("submit", "--wait", "commands/one.json", cwd=unfinished, env=env)
    assert (done.returncode, "words" in done.stdout) == (0, True)
    assert "status: succeeded" in (unfinished / "artifacts" / "one.md").read_text()
    assert journal(unfinished, run_of(unfinished, "two")) == untouched


def test_a_command_with_the_id_of_an_unfinished_run_gets_its_answer(
    home: Path, fake: FakeGemini, env: dict[str, str], tmp_path: Path
) -> None:
    fake.reply = lambda request: slow(30)
    drop_command(home, {**in_lane("one"), "id": "the-same"})
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started")
        daemon.kill()
    fake.reply = lambda request: text("words")
    again = tmp_path / "again.json"
    again.write_text(json.dumps({**in_lane("one"), "id": "the-same"}))
    done = run_cli("submit", "--wait", str(again), cwd=home, env=env)
    assert done.returncode == 0
    assert [receipt["lane"] for receipt in receipts(home)] == ["one"]


def test_with_a_daemon_a_control_command_waits_for_its_receipt(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: slow(60)
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, in_lane("one"))
        run_id = daemon.wait("turn_started")["run_id"]
        done = run_cli("cancel", run_id, "--json", cwd=home, env=NO_KEY)
        assert json.loads(done.stdout)["status"] == "cancelled"
        assert json.loads(done.stdout)["run_id"] == run_id
        refused = run_cli("cancel", run_id, cwd=home, env=NO_KEY)
        assert refused.returncode == 2
        assert "is not active" in refused.stderr
        daemon.stop()


@pytest.mark.parametrize(("protocol", "calls"), [("triad", 1), ("independent", 3)])
def test_a_cancel_cuts_every_call_in_flight_however_long_the_provider_would_have_taken(
    home: Path, fake: FakeGemini, env: dict[str, str], protocol: str, calls: int
) -> None:
    fake.reply = lambda request: slow(3600)
    body = in_lane("one")
    body["config"]["protocol"] = protocol
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, body)
        run_id = daemon.wait("run_started")["run_id"]
        fake.wait_for_requests(calls)
        drop_command(home, {"type": "cancel", "run": run_id}, "cancel.json")
        fake.wait_for_hang_ups(calls)
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
        assert len(fake.requests) == calls
        daemon.stop()
    assert "status: cancelled" in (home / "artifacts" / "one.md").read_text()
    assert {receipt["type"]: receipt["status"] for receipt in receipts(home)} == {
        "deliberate": "cancelled",
        "cancel": "succeeded",
    }


def test_the_timeout_of_submit_bounds_the_whole_wait_and_the_run_goes_on_later(
    home: Path, fake: FakeGemini, env: dict[str, str], tmp_path: Path
) -> None:
    fake.reply = lambda request: slow(1.5, "words")
    file = tmp_path / "slow.json"
    file.write_text(json.dumps({**in_lane("one"), "config": {"max_rounds": 5}}))
    done = run_cli("submit", "--wait", "--timeout-s", "1", str(file), cwd=home, env=env)
    assert done.returncode == 75
    assert "it continues when a daemon runs" in done.stderr
    assert receipts(home) == []
    fake.reply = lambda request: text("words")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]


def test_another_model_than_that_of_the_serving_daemon_is_refused_before_anything_is_sent(
    home: Path, fake: FakeGemini, env: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps(in_lane("one")))
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        for words in (
            ("submit", "--wait", str(file)),
            ("ask", "A private thing."),
            ("answer", "last", "A private thing."),
        ):
            done = run_cli(*words, "--model", "offline", cwd=home, env=env)
            assert done.returncode == 2, done.stdout
            assert "fix: leave --model out, or stop the daemon first" in done.stderr
        assert (sorted((home / "commands").glob("*.json")), fake.requests) == ([], [])
        assert daemon.stop() == 0
    assert receipts(home) == []


def test_a_folder_in_the_place_of_the_settings_is_said(home: Path) -> None:
    (home / "council.toml").unlink()
    (home / "council.toml").mkdir()
    done = run_cli("config", "show", cwd=home, env=NO_KEY)
    assert done.returncode == 3
    assert "is not a file" in done.stderr


def test_status_tells_what_in_the_inbox_is_no_command(home: Path) -> None:
    (home / "commands" / "notes.md").write_text("# Things to ask\n")
    (home / "commands" / "question.txt").write_text("What now?\n")
    for name in ("README.md", ".hidden.json", "task.md~", "old.json.error.md"):
        (home / "commands" / name).write_text("{}")
    (home / "commands" / "task.md").write_text("---\noutput_artifact_path: artifacts/x.md\n---\nWhat now?\n")
    view = json.loads(run_cli("status", "--json", cwd=home, env=NO_KEY).stdout)
    assert (view["waiting_files"], view["not_commands"]) == (["task.md"], ["notes.md", "question.txt"])
    told = run_cli("status", cwd=home, env=NO_KEY).stdout
    assert "inbox   task.md\nskipped notes.md, question.txt\n" in told
    assert "`council validate FILE` says why" in told


def test_status_says_how_many_files_it_does_not_name(home: Path) -> None:
    for number in range(12):
        (home / "commands" / f"{number:02}.json").write_text("{}")
        (home / "commands" / f"{number:02}.txt").write_text("What now?\n")
    view = json.loads(run_cli("status", "--json", cwd=home, env=NO_KEY).stdout)
    assert (len(view["waiting_files"]), len(view["not_commands"])) == (12, 12)
    told = run_cli("status", cwd=home, env=NO_KEY).stdout
    assert "08.json, 09.json … and 2 more\n" in told
    assert "08.txt, 09.txt … and 2 more\n" in told


# ── what a kill or a stop makes of them ──────────────────────────────────────────────────────────────────────────────


def noted(home: Path, **extra: str) -> dict[str, str]:
    return faulty_environment(COUNCIL_TEST_CALLS=str(home.parent / "calls"), **extra)


def calls_begun(home: Path) -> int:
    return (home.parent / "calls").read_text().count("begin\t")


@pytest.mark.parametrize("place", [" reopen ", "artifact-1.md", ".taken"])
@pytest.mark.parametrize("order", ["retry", "resume"])
def test_an_order_that_a_kill_cut_off_takes_effect_once(quick: Path, order: str, place: str) -> None:
    if_failed = 'replies:\n  - {role: AUDITOR, error: {kind: auth}}\ndefault: {text: "So be it."}\n'
    (quick / "script.yaml").write_text({"retry": 'default: {text: "So be it."}\n', "resume": if_failed}[order])
    drop_command(quick, in_lane("one"))
    run_cli("run", "--once", cwd=quick, env=noted(quick), module=FAULTY)
    begun = calls_begun(quick)
    (quick / "script.yaml").write_text('default: {text: "So be it."}\n')
    drop_command(quick, {"type": order, "run": run_of(quick, "one")}, "order.json")
    killed = run_cli(
        "run", "--once", cwd=quick, env=noted(quick, COUNCIL_TEST_FAULT=f"kill-at:1:{place}"), module=FAULTY
    )
    assert killed.returncode == -9
    assert run_cli("run", "--once", cwd=quick, env=noted(quick), module=FAULTY).returncode == 0
    assert sorted(path.name for path in (quick / "commands" / "failed").glob("order*")) == []
    assert calls_begun(quick) - begun == {"retry": 4, "resume": 2}[order]
    assert {receipt["type"]: receipt["status"] for receipt in receipts(quick)} == {
        "deliberate": "succeeded",
        order: "succeeded",
    }


# Twice for the row: the store writes the jobs of a transaction that failed again, each by itself.
@pytest.mark.parametrize("fault", ["fail-at:1-2:EIO: reopen ", "fail-at:1:EIO:artifact-1.md"])
def test_an_order_that_the_disk_refuses_stays_in_the_inbox_and_takes_effect_once(quick: Path, fault: str) -> None:
    drop_command(quick, in_lane("one"))
    run_cli("run", "--once", cwd=quick, env=noted(quick), module=FAULTY)
    run_id = run_of(quick, "one")
    drop_command(quick, {"type": "retry", "run": run_id}, "order.json")
    done = run_cli("run", "--once", cwd=quick, env=noted(quick, COUNCIL_TEST_FAULT=fault), module=FAULTY)
    assert (done.returncode, "order.json stays in the inbox" in done.stderr) == (0, True)
    assert calls_begun(quick) == 8
    assert {receipt["type"]: receipt["status"] for receipt in receipts(quick)} == {
        "deliberate": "succeeded",
        "retry": "succeeded",
    }
    assert sorted(path.name for path in (quick / "commands").iterdir()) == ["README.md"]
    assert run_cli("repair", "--dry-run", cwd=quick).stdout == "Everything is in order.\n"


@pytest.mark.parametrize("place", ["done finish", "event control"])
def test_a_cancel_that_a_kill_cut_off_or_followed_ends_the_run(quick: Path, place: str) -> None:
    (quick / "script.yaml").write_text('default: {text: "So be it.", delay_s: 60}\n')
    drop_command(quick, in_lane("one"))
    fault = {"COUNCIL_TEST_FAULT": f"kill-at:1:{place}"}
    with Daemon(quick, env=noted(quick, **fault), module=FAULTY) as daemon:
        daemon.wait("turn_started")
        drop_command(quick, {"type": "cancel", "run": run_of(quick, "one")}, "cancel.json")
        daemon.process.wait(60)
    (quick / "script.yaml").write_text('default: {text: "So be it."}\n')
    run_cli("run", "--once", cwd=quick, env=noted(quick), module=FAULTY)
    assert [receipt["status"] for receipt in receipts(quick) if receipt["type"] == "deliberate"] == ["cancelled"]
    assert calls_begun(quick) == 1


def test_a_cancel_that_is_told_again_after_a_crash_still_names_its_run(quick: Path) -> None:
    (quick / "script.yaml").write_text('default: {text: "So be it.", delay_s: 60}\n')
    drop_command(quick, in_lane("one"))
    fault = {"COUNCIL_TEST_FAULT": "kill-at:1:event control"}  # its receipt is written, and its file not taken
    with Daemon(quick, env=noted(quick, **fault), module=FAULTY) as daemon:
        run_id = daemon.wait("turn_started")["run_id"]
        drop_command(quick, {"type": "cancel", "run": run_id, "id": "stop-it"}, "cancel.json")
        daemon.process.wait(60)
    assert (quick / "commands" / "cancel.json").exists()
    with Daemon(quick, env=noted(quick), module=FAULTY) as daemon:
        assert daemon.wait("control", type="cancel")["run_id"] == run_id
        assert daemon.stop() == 0
    assert [receipt["id"] for receipt in receipts(quick) if receipt["type"] == "cancel"] == ["stop-it"]


def test_a_cancel_reaches_a_call_in_flight_while_the_daemon_stops(quick: Path) -> None:
    (quick / "script.yaml").write_text('default: {text: "So be it.", delay_s: 600}\n')
    drop_command(quick, in_lane("one"))
    with Daemon(quick, env=noted(quick), module=FAULTY) as daemon:
        run_id = daemon.wait("turn_started")["run_id"]
        daemon.signal(signal.SIGTERM)
        daemon.wait("stopping")
        done = run_cli("cancel", run_id, cwd=quick)
        assert (done.returncode, done.stderr) == (0, "")
        assert daemon.process.wait(60) == 0
    assert {receipt["type"]: receipt["status"] for receipt in receipts(quick)} == {
        "deliberate": "cancelled",
        "cancel": "succeeded",
    }


def test_a_page_that_was_edited_at_the_last_instant_is_left_and_the_receipt_says_why(quick: Path) -> None:
    drop_command(quick, in_lane("one"))
    fault = noted(quick, COUNCIL_TEST_FAULT=f"kill-at:1:.staged {quick}/artifacts/one.md")
    assert run_cli("run", "--once", cwd=quick, env=fault, module=FAULTY).returncode == -9
    (quick / "artifacts" / "one.md").write_text("Mine.\n")
    done = run_cli("run", "--once", cwd=quick, env=noted(quick), module=FAULTY)
    assert done.returncode == 0
    [receipt] = receipts(quick)
    assert (quick / "artifacts" / "one.md").read_text() == "Mine.\n"
    assert receipt["artifact"]["path"] == f"artifacts/one.{receipt['run_id']}.md"
    [note] = receipt["notes"]
    assert "`artifacts/one.md` was edited just before the decision was written" in note
    assert "was edited just before" in done.stdout
    records = json.loads(run_cli("audit", "tail", "--json", cwd=quick, env=noted(quick)).stdout)["records"]
    [displaced] = [record["detail"] for record in records if record["action"] == "file_displaced"]
    assert displaced == {"files": [receipt["artifact"]], "wanted": "artifacts/one.md"}


def test_last_and_the_beginning_of_an_id_name_a_run(unfinished: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    newest = max(run_of(unfinished, lane) for lane in ("one", "two"))
    assert f"Run {newest}: cancelled" in run_cli("cancel", "last", cwd=unfinished, env=NO_KEY).stdout
    assert f"Run {newest} is queued" in run_cli("resume", "last", cwd=unfinished, env=NO_KEY).stdout
    assert run_cli("run", "--once", cwd=unfinished, env=env).returncode == 0
    assert [receipt["status"] for receipt in receipts(unfinished) if receipt["type"] == "deliberate"] == 2 * [
        "succeeded"
    ]
    assert f"Run {newest} is queued" in run_cli("retry", newest[:-1], cwd=unfinished, env=NO_KEY).stdout


@pytest.mark.parametrize("word", ["cancel", "resume"])
def test_a_run_that_nobody_knows_is_refused_before_anything_is_dropped(home: Path, word: str) -> None:
    nothing = {"cancel": "no run is active", "resume": "there is no run to resume"}[word]
    for run, said in (("last", nothing), ("2026", "no run matches '2026'")):
        refused = run_cli(word, run, cwd=home, env=NO_KEY)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert said in refused.stderr
    assert [path.name for path in (home / "commands").iterdir()] == ["README.md"]
