"""Lanes, slots and a provider's limits through the real daemon; a silent provider, a large answer."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import (
    Daemon,
    command,
    drop_command,
    environment,
    execute,
    inbox,
    receipts,
    run_cli,
    run_ids,
    steps,
    unfinished,
    wait_until,
)


class Waiting:
    """A model that answers nobody before it is told to, and knows how many asked it at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()
        self._told = threading.Event()

    def __call__(self, request: RecordedRequest) -> FakeReply:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self._told.wait(30)
        with self._lock:
            self.now -= 1
        return text(f"To request {request.index} I say: so be it.")

    def go_on(self) -> None:
        self._told.set()


def drop_in(home: Path, lane: str, name: str) -> None:
    body = command(f"The task {name}.", output_artifact_path=f"artifacts/{name}.md", session=lane, rounds=1)
    drop_command(home, body, f"{name}.json")


def under_way(events: list[dict[str, Any]]) -> list[set[str]]:
    """The titles of the runs that went on at once, after each start and end."""
    found: list[set[str]] = [set()]
    for event in events:
        if event["event"] == "run_started":
            found.append(found[-1] | {event["title"]})
        elif event["event"] == "run_ended":
            found.append(found[-1] - {event["title"]})
    return found


def test_lanes_run_side_by_side_up_to_max_parallel_runs_and_each_lane_in_its_order(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = model = Waiting()
    for lane, name in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("c", "c1")):
        drop_in(home, lane, name)
    with Daemon(home, env={**env, "COUNCIL_MAX_PARALLEL_RUNS": "2"}) as daemon:
        wait_until(lambda: model.now == 2, "two runs that ask")
        model.go_on()
        daemon.wait("run_ended", count=4)
        at_once = under_way(daemon.events)
    assert model.most == 2
    assert max(map(len, at_once)) == 2
    assert {"The task a1", "The task b1"} in at_once
    assert not any({"The task a1", "The task a2"} <= titles for titles in at_once)


def test_no_more_calls_than_a_provider_allows_are_made_at_once_however_many_runs_ask(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = model = Waiting()
    for name in ("a", "b", "c"):
        drop_in(home, name, name)
    with Daemon(home, env={**env, "COUNCIL_MAX_PROVIDER_CALLS": "1"}) as daemon:
        daemon.wait("turn_started", count=3)
        wait_until(lambda: model.now == 1, "a run that asks")
        model.go_on()
        daemon.wait("run_ended", count=3)
    assert model.most == 1
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"] * 3


def test_a_restart_takes_up_more_unfinished_runs_than_it_may_have_files_open(home: Path) -> None:
    (home / "script.yaml").write_text('default: {text: "So be it.", delay_s: 30}\n')
    env = environment(COUNCIL_MODEL="scripted:script.yaml")
    for number in range(60):
        drop_in(home, "main", f"q{number}")
    with Daemon(home, env=env) as daemon:
        daemon.wait("run_queued", count=60)
        wait_until(lambda: len(unfinished(home)) == 60, "marks of all runs")
        daemon.kill()
    (home / "script.yaml").write_text('default: {text: "So be it."}\n')
    line = ["bash", "-c", 'ulimit -n 50; exec "$@"', "bash", sys.executable, "-m", "council", "run", "--once"]
    done = subprocess.run(line, cwd=home, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"] * 60
    assert len(run_ids(home)) == 60


def test_a_journal_that_says_nothing_at_start_is_named_and_its_command_not_run_twice(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = model = Waiting()
    drop_in(home, "main", "a")
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("turn_started")["run_id"]
        daemon.kill()
    model.go_on()
    execute(home, "UPDATE runs SET header = '{'")
    asked = len(fake.requests)
    failed = run_cli("run", "--once", cwd=home, env=env)
    assert failed.returncode == 1
    assert f"record 0 of run {run_id} cannot be read" in failed.stderr
    assert "Traceback" not in failed.stderr
    [receipt] = receipts(home)
    assert (receipt["run_id"], receipt["status"], receipt["error"]["code"]) == (run_id, "failed", "journal_damaged")
    assert (inbox(home), [path.name for path in (home / "commands" / "failed").iterdir()]) == ([], [f"a.{run_id}.json"])
    assert len(fake.requests) == asked


def test_after_three_turns_in_a_row_without_an_answer_the_run_ends_with_what_was_said(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("I say: so be it.") if request.index == 0 else error(500)
    drop_command(home, command(rounds=3))
    assert run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_MODEL_ATTEMPTS": "1"}).returncode == 1
    assert len(fake.requests) == 4
    [receipt] = receipts(home)
    assert "3 turns in a row gave no answer" in receipt["error"]["message"]
    page = (home / "artifacts" / "out.md").read_text()
    assert "\nstatus: failed\n" in page
    assert "I say: so be it." in page


def test_a_large_answer_outlives_a_kill(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    large = "All of it counts. " * 20_000
    hold = threading.Event()

    def reply(request: RecordedRequest) -> FakeReply:
        if request.index == 1:
            hold.wait(30)
        return text(large if request.index == 0 else f"To request {request.index} I say: so be it.")

    fake.reply = reply
    drop_command(home, command(rounds=1))
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("run_started")["run_id"]
        fake.wait_for_requests(2)
        daemon.kill()
    hold.set()
    assert steps(home, run_id)["round/1/COORDINATOR"]["text"] == large[: 1 << 18].strip()
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 7  # of so long an answer the end is cut off
    assert len(fake.requests) == 4 + 1
    assert run_cli("replay", run_id, cwd=home).stdout == (home / "artifacts" / "out.md").read_text()
