"""What may befall the process and its disk, in the real process: signals, syncs that fail, a clock that goes back, files
that change hands at the last instant, memory that rots, an upgrade, a persona edited in mid-run.

Kills at random instants are in test_faults_kill.py, before each change to the disk in test_crash.py; disks that are full
or read-only in test_bad_input.py.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from council.engine.records import EPOCH
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini
from tests.faults import SYNCS
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    inbox,
    make_home,
    receipts,
    rows_of,
    run_cli,
    unfinished,
    wait_until,
)

SECRET = "c3" * 32
VARIES = {"id", "created", "finished", "attempts", "audit_head"}
SETTINGS = 'model = "scripted:script.yaml"\nsettle_s = 0.5\nscan_interval_s = 0.2\nstorage_retry_s = 0.1\n'
SCRIPT = """\
replies:
  - {role: COORDINATOR, round: 1, purpose: turn, times: 0, text: "The figures.\\n\\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"}
  - {role: COORDINATOR, purpose: synthesis, times: 0, text: "Do it [E1: a.md:1]."}
default: {text: "Nothing to add."}
"""


def scripted_home(folder: Path, settings: str = SETTINGS) -> Path:
    home = make_home(folder, settings=settings)
    (home / "script.yaml").write_text(SCRIPT)
    (home / "a.md").write_text("alpha is the first fact\n")
    (home / "b.md").write_text("beta is the second fact\n")
    return home


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    return scripted_home(tmp_path / "home")


def decision(home: Path, name: str = "out") -> tuple[dict[str, Any], str]:
    _, front, body = (home / "artifacts" / f"{name}.md").read_text().split("---\n", 2)
    return {key: value for key, value in yaml.safe_load(front).items() if key not in VARIES}, body


def titles(home: Path) -> list[str]:
    return sorted(receipt["title"] for receipt in receipts(home))


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sigterm_hands_back_what_runs_and_what_is_queued_and_all_of_it_goes_on(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = gate = Gate("STRATEGIST")
    for number, lane in enumerate(("one", "one", "two")):
        drop_command(home, command(f"Question {number}.", session=lane, output_artifact_path=f"artifacts/{number}.md"))
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", role="STRATEGIST", count=2)
        daemon.wait("run_queued", count=3)
        daemon.signal(signal.SIGTERM)
        daemon.wait("stopping")
        gate.open()
        assert daemon.process.wait(60) == 0
        handed_back = {event["run_id"] for event in daemon.all("run_handed_back")}
        assert len(handed_back) == 2
    assert receipts(home) == []
    assert len(inbox(home)) == 3
    with Daemon(home, "--once", env=env) as daemon:
        assert daemon.process.wait(60) == 0
        assert {event["run_id"] for event in daemon.all("run_recovered")} > handed_back
    assert titles(home) == ["Question 0", "Question 1", "Question 2"]
    assert {receipt["status"] for receipt in receipts(home)} == {"succeeded"}
    assert len(fake.requests) == 3 * 4
    assert inbox(home) == []


@pytest.mark.parametrize("answered", [True, False], ids=["the answer comes meanwhile", "no answer comes"])
def test_a_daemon_stopped_beyond_its_timeout_keeps_its_home_and_goes_on_when_continued(
    home: Path, fake: FakeGemini, env: dict[str, str], answered: bool
) -> None:
    (home / "council.toml").write_text("settle_s = 0.5\nscan_interval_s = 0.5\nrequest_timeout_s = 1\n")
    fake.reply = gate = Gate("STRATEGIST")
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", role="STRATEGIST")
        fake.wait_for_requests(2)
        daemon.signal(signal.SIGSTOP)
        if answered:
            gate.open()
        time.sleep(2.5)
        second = run_cli("run", cwd=home, env=env)
        assert second.returncode == 4
        assert str(daemon.process.pid) in second.stderr
        assert inbox(home) == ["command.json"]
        gate.open()
        daemon.signal(signal.SIGCONT)
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert daemon.stop() == 0
    assert len(receipts(home)) == 1
    assert len(fake.requests) <= 4 + 1  # the call that was in flight may be made again
    assert inbox(home) == []


def test_stopped_and_continued_at_random_the_outcome_is_the_uninterrupted_one(tmp_path: Path) -> None:
    rng = random.Random(7)
    env = environment(COUNCIL_TEST_RUN_SECRET=SECRET)
    homes = [scripted_home(tmp_path / name) for name in ("uninterrupted", "interrupted")]
    for home in homes:
        (home / "script.yaml").write_text(SCRIPT.replace('"Nothing to add."', '"Nothing to add.", delay_s: 0.05'))
        for number in range(12):
            body = command(
                f"Question {number}.", session=f"lane-{number % 4}", output_artifact_path=f"artifacts/{number}.md"
            )
            drop_command(home, body, f"{number:02}.json")
    reference, home = homes
    assert run_cli("run", "--once", cwd=reference, env=env).returncode == 0
    with Daemon(home, "--once", env=env) as daemon:
        daemon.wait("daemon_started")
        stops = 0
        while daemon.process.poll() is None and stops < 100:
            daemon.signal(signal.SIGSTOP)
            time.sleep(rng.uniform(0, 0.1))
            daemon.signal(signal.SIGCONT)
            time.sleep(rng.uniform(0, 0.1))
            stops += 1
        assert daemon.process.wait(60) == 0
        assert stops > 3
        assert len(daemon.all("run_ended")) == 12
    assert [decision(home, str(number)) for number in range(12)] == [decision(reference, str(n)) for n in range(12)]
    assert inbox(home) == []


# ── syncs that fail ──────────────────────────────────────────────────────────────────────────────────────────────────


def calls_made(log: Path) -> Counter[str]:
    """How often each call of a scripted model was begun."""
    lines = [line.split("\t", 1) for line in log.read_text().splitlines()]
    return Counter(call for word, call in lines if word == "begin")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run without a fault; its trace stands beside it."""
    home = scripted_home(tmp_path_factory.mktemp("uninterrupted") / "home")
    drop_command(home, command("Which fact counts?", input_artifacts=["a.md"]))
    env = faulty_environment(COUNCIL_TEST_FAULT_LOG=f"{home}.log", COUNCIL_TEST_RUN_SECRET=SECRET)
    assert run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode == 0
    return home


def syncs_of(home: Path) -> int:
    """As many as `fail:fsync:` counts: of files, of folders and of the database."""
    names = [line.split()[1] for line in Path(f"{home}.log").read_text().splitlines()]
    return sum(name in SYNCS for name in names)


@pytest.mark.parametrize("start", range(1, 5))
def test_wherever_a_sync_fails_the_run_waits_goes_on_and_asks_no_model_twice(
    tmp_path: Path, uninterrupted: Path, start: int
) -> None:
    for number in range(start, syncs_of(uninterrupted) + 1, 4):
        home = scripted_home(tmp_path / str(number))
        env = faulty_environment(
            COUNCIL_TEST_FAULT=f"fail:fsync:{number}:EIO",
            COUNCIL_TEST_FAULT_LOG=f"{home}.log",
            COUNCIL_TEST_CALLS=f"{home}.calls",
            COUNCIL_TEST_RUN_SECRET=SECRET,
        )
        with Daemon(home, env=env, module=FAULTY) as daemon:
            daemon.ready()
            drop_command(home, command("Which fact counts?", input_artifacts=["a.md"]))
            assert daemon.wait("run_ended")["status"] == "succeeded", number
            assert len(daemon.all("run_queued")) == 1, number
            assert daemon.stop() == 0
        assert syncs_of(home) > number, number  # it was reached
        assert decision(home) == decision(uninterrupted), number
        assert sorted(calls_made(Path(f"{home}.calls")).values()) == [1, 1, 1, 1], number
        assert len(receipts(home)) == 1, number
        assert inbox(home) == [], number
        assert [path for path in home.rglob("*") if path.name.endswith((".tmp", ".staged"))] == [], number


@pytest.mark.parametrize("share", [0.3, 0.6, 0.8, 0.95])
def test_a_disk_that_syncs_no_more_never_gets_a_run_to_say_that_it_ended(
    tmp_path: Path, uninterrupted: Path, share: float
) -> None:
    home = scripted_home(tmp_path / "home")
    first = int(share * syncs_of(uninterrupted))
    fault = {"COUNCIL_TEST_FAULT": f"fail:fsync:{first}:EIO:1000000", "COUNCIL_TEST_CALLS": f"{home}.calls"}
    with Daemon(home, env=faulty_environment(**fault, COUNCIL_TEST_RUN_SECRET=SECRET), module=FAULTY) as daemon:
        daemon.ready()
        drop_command(home, command("Which fact counts?", input_artifacts=["a.md"]))
        waiting = daemon.wait("run_waiting", count=2)
        assert waiting["reason"] == "storage"
        assert os.strerror(5) in waiting["error"]
        assert daemon.all("run_ended") == []
        assert inbox(home) == ["command.json"]
        daemon.kill()
    env = faulty_environment(COUNCIL_TEST_CALLS=f"{home}.calls", COUNCIL_TEST_RUN_SECRET=SECRET)
    assert run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode == 0
    assert decision(home) == decision(uninterrupted)
    assert sum(calls_made(Path(f"{home}.calls")).values()) <= 4 + 1
    assert len(receipts(home)) == 1
    assert inbox(home) == []


def test_a_file_that_cannot_be_taken_at_the_end_of_a_run_holds_neither_it_nor_its_lane(quick: Path) -> None:
    env = faulty_environment(COUNCIL_TEST_FAULT=f"fail-at:1:EIO:unlink {quick}/commands/.")
    with Daemon(quick, env=env, module=FAULTY) as daemon:
        daemon.ready()
        for number in (1, 2):
            drop_question(quick, number)
        assert "annot remove" in daemon.wait("run_waiting", reason="storage")["error"]
        ended = [daemon.wait("run_ended", count=count) for count in (1, 2)]
        daemon.wait("idle", count=2)
        assert daemon.stop() == 0
    assert [event["status"] for event in ended] == ["succeeded"] * 2
    assert "defect" not in daemon.stderr
    assert len(receipts(quick)) == 2
    assert inbox(quick) == []
    assert unfinished(quick) == set()


def test_a_refused_command_stays_until_its_note_can_be_written(quick: Path) -> None:
    drop_command(quick, b"{}", "bad.json")
    trace = quick.parent / "trace"
    fault = "fail-at:1:ENOSPC:.bad.json.error.md"
    env = faulty_environment(COUNCIL_TEST_FAULT=fault, COUNCIL_TEST_FAULT_LOG=str(trace))
    with Daemon(quick, env=env, module=FAULTY) as daemon:
        daemon.wait("command_refused")
        assert "bad.json stays in the inbox: " in daemon.stderr
    moves = [line for line in trace.read_text().splitlines() if "rename" in line and "commands/bad.json" in line]
    assert len([line for line in moves if " done " not in line]) == 1  # and never back: each move wakes a scan
    assert sorted(os.listdir(quick / "commands" / "failed")) == ["bad.json", "bad.json.error.md"]


def test_status_says_why_a_refused_command_stays_in_the_inbox(quick: Path) -> None:
    (quick / "commands" / "failed").write_text("no folder")
    drop_command(quick, b"{}", "bad.json")
    with Daemon(quick) as daemon:
        waiting = daemon.wait("command_waiting", file="bad.json", reason="storage")
        assert "cannot make failed/" in waiting["error"]

        def left() -> list[dict[str, str]]:
            return list(json.loads(run_cli("status", "--json", cwd=quick).stdout)["unadmitted"])

        wait_until(lambda: left() == [{"file": "bad.json", "error": waiting["error"]}], "status shows it")
        assert f"bad.json stays in the inbox: {waiting['error']}" in run_cli("status", cwd=quick).stdout
        (quick / "commands" / "failed").unlink()
        daemon.wait("command_refused", file="bad.json")
        wait_until(lambda: left() == [], "it has left the inbox")


def test_a_folder_that_became_a_link_behind_the_commit_is_waited_for_and_the_page_is_never_put_elsewhere(
    quick: Path, tmp_path: Path
) -> None:
    drop_command(quick, command("Question 1.", output_artifact_path="artifacts/sub/1.md"))
    fault = faulty_environment(COUNCIL_TEST_FAULT=f"kill-at:1:.staged {quick}/artifacts/sub/1.md")
    assert run_cli("run", "--once", cwd=quick, env=fault, module=FAULTY).returncode == -9
    folder, elsewhere = quick / "artifacts" / "sub", tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = sorted(path.name for path in elsewhere.iterdir())
    with Daemon(quick) as daemon:
        assert daemon.wait("run_waiting", count=2)["reason"] == "storage"
        assert sorted(path.name for path in elsewhere.iterdir()) == before
        folder.unlink()
        elsewhere.rename(folder)
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert daemon.stop() == 0
    assert "status: succeeded" in (folder / "1.md").read_text()


def test_a_run_that_waits_for_the_disk_to_end_is_not_cancelled_any_more_and_resume_ends_it_at_once(quick: Path) -> None:
    fault = {"COUNCIL_TEST_FAULT": "fail-at:1:EIO:sql UPDATE runs SET status"}
    with Daemon(quick, env=faulty_environment(COUNCIL_STORAGE_RETRY_S="600", **fault), module=FAULTY) as daemon:
        daemon.ready()
        drop_question(quick, 1)
        run_id = daemon.wait("run_waiting")["run_id"]
        refused = run_cli("cancel", run_id, cwd=quick)
        assert refused.returncode == 2
        assert "has done its work and is ending" in refused.stderr
        assert run_cli("resume", run_id, cwd=quick).returncode == 0
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert daemon.stop() == 0
    assert unfinished(quick) == set()


# ── the clock ────────────────────────────────────────────────────────────────────────────────────────────────────────

DAY_S = 86_400


class WrongClock:
    """The clock of the processes that get its `env`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, seconds: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._file)

    def env(self, **extra: str) -> dict[str, str]:
        return faulty_environment(COUNCIL_TEST_CLOCK=str(self._file), **extra)


@pytest.fixture
def clock(tmp_path: Path) -> WrongClock:
    return WrongClock(tmp_path / "clock")


def drop_question(home: Path, number: int, **keys: Any) -> None:
    body = command(f"Question {number}.", output_artifact_path=f"artifacts/{number}.md", **keys)
    drop_command(home, body, f"q{number}.json")


def test_a_clock_set_back_changes_neither_the_order_of_a_lane_nor_any_answer(quick: Path, clock: WrongClock) -> None:
    (quick / "script.yaml").write_text(SCRIPT.replace('"Nothing to add."', '"Nothing to add.", delay_s: 0.2'))
    with Daemon(quick, env=clock.env(), module=FAULTY) as daemon:
        daemon.ready()
        for number in (0, 1):
            drop_question(quick, number)
        daemon.wait("run_queued", count=2)
        clock.set(-DAY_S)
        for number in (2, 3):
            drop_question(quick, number)
            daemon.wait("run_queued", title=f"Question {number}")
        daemon.kill()
    clock.set(-2 * DAY_S)
    with Daemon(quick, env=clock.env(), module=FAULTY) as daemon:
        daemon.wait("run_recovered")
        (quick / "commands" / "q4.yaml").write_text(
            "task_description: Question 4.\noutput_artifact_path: artifacts/4.md\nconfig: {max_rounds: 1}\n"
        )
        daemon.wait("run_ended", title="Question 4", status="succeeded")
        assert daemon.stop() == 0
    asked = [f"Question {number}" for number in range(5)]
    assert titles(quick) == asked
    assert len({receipt["run_id"] for receipt in receipts(quick)}) == 5
    remembered = json.loads((quick / "session_states" / "auditor_session.json").read_bytes())["tasks"]
    assert [task["title"] for task in remembered] == asked
    assert inbox(quick) == []


def test_a_clock_set_back_spends_no_day_twice(tmp_path: Path, clock: WrongClock) -> None:
    home = scripted_home(tmp_path / "home", SETTINGS + "day_max_calls = 8\n")

    def answered(numbers: list[int]) -> list[int]:
        """Which of these questions get an answer on the day that the clock shows; the next one waits for another day."""
        for number in numbers:
            drop_question(home, number)
        with Daemon(home, env=clock.env(COUNCIL_TEST_CALLS=f"{home}.calls"), module=FAULTY) as daemon:
            assert daemon.wait("run_waiting")["reason"] == "budget"
            daemon.kill()
        return sorted(int(receipt["title"].split()[1]) for receipt in receipts(home))

    assert answered([0, 1, 2]) == [0, 1]
    clock.set(-DAY_S)
    assert answered([3, 4]) == [0, 1, 2, 3]
    clock.set(0)
    assert answered([]) == [0, 1, 2, 3]
    clock.set(DAY_S)
    assert run_cli("run", "--once", cwd=home, env=clock.env(), module=FAULTY).returncode == 0
    assert titles(home) == [f"Question {number}" for number in range(5)]
    assert sum(calls_made(Path(f"{home}.calls")).values()) == 4 * 4
    by_day = "SELECT count(*) FROM spending WHERE state = 'end' GROUP BY day ORDER BY day"
    assert rows_of(home, by_day) == [(8,), (8,), (4,)]


# ── the taking ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "instant",
    [
        pytest.param("place-after:1:sql UPDATE runs SET receipt", id="in the commit"),
        pytest.param("place-before:1:.taken", id="just before the taking"),
        pytest.param("place-after:1:.taken", id="between the taking and the look"),
        pytest.param("place-before:2:.taken", id="between the look and the removal"),
    ],
)
def test_a_command_renamed_in_at_the_last_instant_is_never_lost_and_runs_on_its_own(quick: Path, instant: str) -> None:
    drop_command(quick, command("The first question.", output_artifact_path="artifacts/1.md"))
    new = quick / "new.json"
    new.write_text(json.dumps(command("The second question.", output_artifact_path="artifacts/2.md")))
    target = quick / "commands" / "command.json"
    with Daemon(quick, env=faulty_environment(COUNCIL_TEST_FAULT=f"{instant}:{new}:{target}"), module=FAULTY) as daemon:
        daemon.wait("run_ended", title="The first question", status="succeeded")
        daemon.wait("run_ended", title="The second question", status="succeeded")
        wait_until(lambda: inbox(quick) == [], "both are taken")
        assert daemon.stop() == 0
    assert not new.exists()
    assert titles(quick) == ["The first question", "The second question"]
    assert sorted(path.name for path in (quick / "artifacts").glob("[12].md")) == ["1.md", "2.md"]
    assert not (quick / "commands" / "failed").exists()


def test_two_commands_renamed_in_during_one_taking_both_run(quick: Path) -> None:
    drop_command(quick, command("Question 1.", output_artifact_path="artifacts/1.md"))
    third = quick / "third.json"
    third.write_text(json.dumps(command("Question 3.", output_artifact_path="artifacts/3.md")))
    target = quick / "commands" / "command.json"
    (quick / "script.yaml").write_text(SCRIPT.replace('"Nothing to add."', '"Nothing to add.", delay_s: 0.2'))
    fault = f"place-before:1:rename-noreplace:{third}:{target}"  # just before the second goes back to its name
    with Daemon(quick, env=faulty_environment(COUNCIL_TEST_FAULT=fault), module=FAULTY) as daemon:
        daemon.wait("turn_started")
        second = quick / "second.json"
        second.write_text(json.dumps(command("Question 2.", output_artifact_path="artifacts/2.md")))
        second.rename(target)
        daemon.wait("run_ended", count=3, status="succeeded")
        wait_until(lambda: inbox(quick) == [], "all are taken")
        assert daemon.stop() == 0
    assert titles(quick) == ["Question 1", "Question 2", "Question 3"]


@pytest.mark.parametrize(
    "instant",
    [
        pytest.param("kill-at:1:.taken", id="before the taking"),
        pytest.param("kill-at:2:.taken", id="between the look and the removal"),
        pytest.param("kill-at:1:sql UPDATE runs SET open", id="after the removal"),
    ],
)
def test_the_same_bytes_dropped_again_after_a_kill_in_the_taking_are_a_command_of_their_own(
    quick: Path, instant: str
) -> None:
    body = json.dumps(command()).encode()
    drop_command(quick, body)
    env = faulty_environment(COUNCIL_TEST_FAULT=instant)
    assert run_cli("run", "--once", cwd=quick, env=env, module=FAULTY).returncode == -9
    (quick / "again").write_bytes(body)
    os.replace(quick / "again", quick / "commands" / "command.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert [receipt["status"] for receipt in receipts(quick)] == ["succeeded", "succeeded"]
    assert inbox(quick) == []


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


@pytest.mark.parametrize("damage", [cut, flipped])
def test_a_memory_cut_or_flipped_anywhere_costs_no_run_and_no_memory(
    quick: Path, damage: Callable[[bytes, int], bytes]
) -> None:
    rng = random.Random(11)
    session = quick / "session_states" / "strategist_session.json"
    with Daemon(quick) as daemon:
        daemon.ready()
        drop_question(quick, 0)
        daemon.wait("run_ended", title="Question 0")
        for number in range(1, 19):
            data = session.read_bytes()
            damaged = damage(data, rng.randrange(len(data) - 1))  # the last newline is no part of it
            session.write_bytes(damaged)
            drop_question(quick, number)
            assert daemon.wait("run_ended", title=f"Question {number}")["status"] == "succeeded"
            page = (quick / "artifacts" / f"{number}.md").read_text()
            assert "strategist_session.json was damaged (" in page, number
            assert "the last good copy was restored" in page, number
            tasks = json.loads(session.read_bytes())["tasks"]
            assert [task["title"] for task in tasks] == [f"Question {n}" for n in range(number + 1)]
        assert daemon.stop() == 0


# ── an upgrade, an edited persona ────────────────────────────────────────────────────────────────────────────────────


def killed_in_mid_run(home: Path, env: dict[str, str], fake: FakeGemini) -> str:
    """The id of a run that was killed while STRATEGIST was thinking, in the first of two rounds."""
    fake.reply = gate = Gate("STRATEGIST")
    drop_command(home, command(rounds=2))
    with Daemon(home, env=env) as daemon:
        run_id: str = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        fake.wait_for_requests(2)
        daemon.kill()
    gate.open()
    return run_id


def test_an_unfinished_run_goes_on_under_another_version_of_the_same_epoch(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    run_id = killed_in_mid_run(home, env, fake)
    newer = {**env, **faulty_environment(COUNCIL_TEST_VERSION="9.9.9")}
    newer.update({key: env[key] for key in ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL")})
    with Daemon(home, "--once", env=newer, module=FAULTY) as daemon:
        assert daemon.wait("daemon_started")["version"] == "9.9.9"
        assert daemon.process.wait(60) == 0
    [receipt] = receipts(home)
    assert (receipt["run_id"], receipt["status"]) == (run_id, "succeeded")
    assert len(fake.requests) == 7 + 1
    assert inbox(home) == []


def test_an_unfinished_run_of_another_epoch_ends_by_drift_with_what_was_said_and_frees_its_lane(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    run_id = killed_in_mid_run(home, env, fake)
    drop_command(home, command("The next one.", output_artifact_path="artifacts/next.md"), "next.json")
    newer = {
        **faulty_environment(COUNCIL_TEST_EPOCH=str(EPOCH + 1)),
        **{key: env[key] for key in env if "COUNCIL" not in key},
    }
    newer["PYTHONPATH"] = faulty_environment()["PYTHONPATH"]
    assert run_cli("run", "--once", cwd=home, env=newer, module=FAULTY).returncode == 1
    ended = {receipt["run_id"]: receipt for receipt in receipts(home)}
    drifted = ended.pop(run_id)
    assert (drifted["status"], drifted["error"]["code"]) == ("failed", "drift")
    assert f"epoch {EPOCH}" in drifted["error"]["message"]
    assert [receipt["status"] for receipt in ended.values()] == ["succeeded"]
    page = (home / "artifacts" / "out.md").read_text()
    assert "\nstatus: failed\n" in page
    assert "The words of the first speaker." in page
    assert [path.name for path in (home / "commands" / "failed").iterdir()] == [f"command.{run_id}.json"]
    assert run_cli("resume", run_id, "--accept-drift", cwd=home, env=newer).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=newer, module=FAULTY).returncode == 0
    assert "\nstatus: succeeded\n" in (home / "artifacts" / "out.md").read_text()


def ask_in_other_words(home: Path) -> None:
    """As a version with other prompts would: every recorded request has another hash."""
    with closing(sqlite3.connect(home / ".council" / "council.db")) as raw, raw:
        raw.execute("UPDATE steps SET request = 'other words' WHERE request != ''")


@pytest.mark.parametrize("other", ["epoch", "prompts"])
def test_a_run_that_drift_ended_shows_what_was_said_and_replay_shows_the_same(
    home: Path, fake: FakeGemini, env: dict[str, str], other: str
) -> None:
    run_id = killed_in_mid_run(home, env, fake)
    later = {**env, "PYTHONPATH": faulty_environment()["PYTHONPATH"]}
    if other == "epoch":
        later["COUNCIL_TEST_EPOCH"] = str(EPOCH + 1)
    else:
        ask_in_other_words(home)
    assert run_cli("run", "--once", cwd=home, env=later, module=FAULTY).returncode == 1
    page = (home / "artifacts" / "out.md").read_bytes()
    assert b"The words of the first speaker." in page
    assert b"drift" in page
    replayed = run_cli("replay", run_id, cwd=home, env=later)
    assert replayed.stdout.encode() == page


def test_an_ended_run_is_told_whatever_words_this_version_would_ask_in(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, command("Which engine?"))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    ask_in_other_words(home)
    assert run_cli("replay", "last", "--check", cwd=home, env=env).stdout == "artifacts/out.md matches the journal.\n"
    told = json.loads(run_cli("explain", "last", "--json", cwd=home, env=env).stdout)
    assert len(told["calls"]) == receipts(home)[0]["calls"]
    assert told["missing"] == []


@pytest.mark.parametrize("change", ["edited", "removed", "broken"])
def test_a_run_keeps_the_personas_it_began_with_whatever_becomes_of_their_files(
    home: Path, fake: FakeGemini, env: dict[str, str], change: str
) -> None:
    run_id = killed_in_mid_run(home, env, fake)
    persona = home / "personas" / "auditor.md"
    whole = persona.read_text()
    if change == "removed":
        persona.unlink()
    elif change == "broken":
        persona.write_text("---\nrole: [\n---\n")
    else:
        persona.write_text(f"{whole}\nSpeak of herons alone.\n")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    assert (receipt["run_id"], receipt["status"]) == (run_id, "succeeded")
    asked = [request.system for request in fake.requests if "You are AUDITOR" in request.system]
    assert len(asked) == 2
    assert all("herons" not in system and "AUDITOR" in system for system in asked)
    persona.write_text(f"{whole}\nSpeak of herons alone.\n")
    drop_command(home, command("The next one."))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [next_asked] = [request.system for request in fake.requests if "You are AUDITOR" in request.system][2:]
    assert "Speak of herons alone." in next_asked
