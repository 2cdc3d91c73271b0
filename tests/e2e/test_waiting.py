"""Runs that wait: several orders for one of them at once, their slots, how long they may wait, what is asked meanwhile."""

from __future__ import annotations

import json
import signal
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    faulty_environment,
    receipts,
    run_cli,
    run_ids,
    scripted_home,
    unfinished,
    wait_until,
)

SETTINGS = """\
model = "scripted:script.yaml"
model_attempts = 1
settle_s = 0.5
scan_interval_s = 0.2
storage_retry_s = 0.1
"""
BUSY = """\
replies:
  - {role: STRATEGIST, purpose: turn, error: {kind: rate, message: "come back later"}}
default: {text: "So be it.", delay_s: 0.2}
"""


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    return scripted_home(tmp_path / "home", SETTINGS, BUSY)


def in_lane(lane: str, **keys: Any) -> dict[str, Any]:
    return command(f"The task of {lane}.", output_artifact_path=f"artifacts/{lane}.md", session=lane, **keys)


def noting(home: Path) -> dict[str, str]:
    """An environment in which each call of the scripted model is noted."""
    return faulty_environment(COUNCIL_TEST_CALLS=str(home.parent / "calls"))


def calls(home: Path, kind: str = "begin") -> Counter[str]:
    """How often each call began (or ended): by purpose and role."""
    lines = [line.split("\t") for line in (home.parent / "calls").read_text().splitlines()]
    return Counter(f"{line[2]} {line[4]}" for line in lines if line[0] == kind)


def ended(home: Path) -> list[dict[str, Any]]:
    return [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]


def answered(home: Path, name: str) -> bool:
    """Whether a dropped control command was taken, or set aside."""
    return not (home / "commands" / name).exists()


# ── two orders in one scan ───────────────────────────────────────────────────────────────────────────────────────────


def drop_both(daemon: Daemon, *bodies: dict[str, Any]) -> None:
    """Drops commands so that one scan sees them all."""
    daemon.signal(signal.SIGSTOP)
    for number, body in enumerate(bodies):
        drop_command(daemon.home, body, f"order{number}.json")
    daemon.signal(signal.SIGCONT)


def test_a_run_that_is_resumed_twice_at_once_is_executed_once(quick: Path) -> None:
    with Daemon(quick, env=noting(quick), module=FAULTY) as daemon:
        daemon.ready()
        drop_command(quick, command())
        run_id = daemon.wait("run_waiting")["run_id"]
        drop_both(daemon, {"type": "resume", "run": run_id}, {"type": "resume", "run": run_id})
        daemon.wait("run_ended", run_id=run_id)
        wait_until(lambda: answered(quick, "order0.json") and answered(quick, "order1.json"), "both orders answered")
        assert daemon.stop() == 0
    assert calls(quick) == {"turn COORDINATOR": 1, "turn STRATEGIST": 2, "turn AUDITOR": 1, "synthesis COORDINATOR": 1}
    [receipt] = ended(quick)
    assert (receipt["status"], receipt["attempts"]) == ("succeeded", 2)
    assert run_cli("replay", "--check", run_id, cwd=quick).returncode == 0


@pytest.mark.parametrize("first", ["cancel", "resume"])
def test_a_run_that_is_cancelled_with_another_order_in_one_scan_ends(quick: Path, first: str) -> None:
    (quick / "council.toml").write_text(SETTINGS + "max_parallel_runs = 1\n")
    with Daemon(quick, env=noting(quick), module=FAULTY) as daemon:
        daemon.ready()
        drop_command(quick, command())
        run_id = daemon.wait("run_waiting")["run_id"]
        drop_both(daemon, {"type": first, "run": run_id}, {"type": "cancel", "run": run_id})
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
        drop_command(quick, in_lane("other"))
        assert daemon.wait("run_ended", count=2)["status"] == "succeeded"  # the slot was given back
        assert daemon.stop() == 0


def test_a_cancel_that_waits_at_the_start_ends_the_run_and_leaves_its_slot(quick: Path) -> None:
    (quick / "council.toml").write_text(SETTINGS + "max_parallel_runs = 1\n")
    (quick / "script.yaml").write_text('default: {text: "So be it.", delay_s: 30}\n')
    drop_command(quick, in_lane("one"), "one.json")
    with Daemon(quick, env=noting(quick), module=FAULTY) as daemon:
        run_id = daemon.wait("turn_started")["run_id"]
        daemon.kill()
    (quick / "script.yaml").write_text('default: {text: "So be it."}\n')
    drop_command(quick, {"type": "cancel", "run": run_id}, "cancel.json")
    drop_command(quick, in_lane("two"), "two.json")
    with Daemon(quick, env=noting(quick), module=FAULTY) as daemon:
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
        daemon.wait("run_ended", count=2)
        assert daemon.stop() == 0
    assert {receipt["lane"]: receipt["status"] for receipt in ended(quick)} == {"one": "cancelled", "two": "succeeded"}


# ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_that_have_waited_take_a_slot_each_as_all_do(quick: Path) -> None:
    (quick / "council.toml").write_text(SETTINGS + "max_parallel_runs = 2\nmax_inline_wait_s = 1\n")
    (quick / "script.yaml").write_text(
        BUSY.replace('"}}', '", retry_after_s: 2}}').replace("error:", "times: 6, error:")
    )
    lanes = [f"lane{number}" for number in range(6)]
    for lane in lanes:
        drop_command(quick, in_lane(lane), f"{lane}.json")
    with Daemon(quick, env=noting(quick), module=FAULTY) as daemon:
        daemon.wait("run_ended", count=len(lanes))
        assert daemon.stop() == 0
        at_work: set[str] = set()
        most = 0
        for event in daemon.events:
            if event["event"] == "run_started":
                at_work.add(event["run_id"])
            elif event["event"] in ("run_waiting", "run_ended"):
                at_work.discard(event["run_id"])
            most = max(most, len(at_work))
    assert most == 2
    assert Counter(receipt["status"] for receipt in ended(quick)) == {"succeeded": len(lanes)}


# ── how long, and what is asked meanwhile ────────────────────────────────────────────────────────────────────────────

FOR_LONG = BUSY.replace('"}}', '", retry_after_s: 70000}}').replace("error:", "times: 0, error:")


def once(home: Path, **extra: str) -> int:
    env = {**noting(home), **extra}
    return run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode


@pytest.fixture
def parked(quick: Path) -> Path:
    """A home without a daemon, where a run waits for some 19 hours."""
    (quick / "script.yaml").write_text(FOR_LONG)
    drop_command(quick, command())
    assert once(quick) == 75
    return quick


def run_of(home: Path) -> str:
    [run_id] = run_ids(home)
    return run_id


def test_restarts_neither_use_up_a_wait_nor_ask_the_provider_again(parked: Path) -> None:
    for _ in range(3):
        assert once(parked) == 75
    assert calls(parked) == {"turn COORDINATOR": 1, "turn STRATEGIST": 1}
    assert ended(parked) == []


def test_another_run_respects_the_pause_after_a_restart_too(parked: Path) -> None:
    drop_command(parked, in_lane("other"), "other.json")
    assert once(parked) == 75
    assert calls(parked) == {"turn COORDINATOR": 1, "turn STRATEGIST": 1}


def test_a_wait_is_over_when_its_time_is_by_the_clock_however_often_it_was_begun_anew(
    parked: Path, tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    for hours, code in (
        (19.2, 75),
        (28, 75),
        (47.5, 1),
    ):  # of 48 that a run may wait; it is asked to wait 19.4 each time
        clock.write_text(str(hours * 3600))
        assert once(parked, COUNCIL_TEST_CLOCK=str(clock)) == code
    assert calls(parked)["turn STRATEGIST"] == 3  # the pauses were over at 19.4 and 47.4 hours
    [receipt] = ended(parked)
    assert receipt["error"]["code"] == "max_wait"
    assert "waited 47 h 30 min" in receipt["error"]["message"]
    page = (parked / "artifacts" / "out.md").read_text()
    assert f"council resume {receipt['run_id']}` asks again" in page


def test_a_clock_that_is_set_back_makes_no_pause_longer(parked: Path, tmp_path: Path) -> None:
    (tmp_path / "clock").write_text(str(-30 * 86_400))
    done = run_cli(
        "run",
        "--once",
        cwd=parked,
        env={**noting(parked), "COUNCIL_TEST_CLOCK": str(tmp_path / "clock")},
        module=FAULTY,
    )
    assert done.returncode == 75
    [waiting] = [json.loads(line) for line in done.stdout.splitlines() if '"run_waiting"' in line]
    assert 69_000 < waiting["seconds"] <= 70_000


@pytest.mark.parametrize("with_daemon", [True, False], ids=["daemon", "no daemon"])
def test_a_run_that_is_told_to_go_on_asks_its_provider_again(parked: Path, with_daemon: bool) -> None:
    run_id = run_of(parked)
    for times in (2, 3):
        told(parked, run_id, with_daemon)
        assert calls(parked)["turn STRATEGIST"] == times
    (parked / "script.yaml").write_text('default: {text: "So be it."}\n')
    told(parked, run_id, with_daemon)
    [receipt] = ended(parked)
    assert (receipt["status"], calls(parked)["turn COORDINATOR"]) == ("succeeded", 1)


def told(home: Path, run_id: str, with_daemon: bool) -> None:
    """`council resume`, with a daemon that then runs or before one."""
    order = {"type": "resume", "run": run_id}
    if not with_daemon:
        assert run_cli("resume", run_id, cwd=home).returncode == 0
        once(home)
        return
    with Daemon(home, env=noting(home), module=FAULTY) as daemon:
        daemon.wait("run_waiting")
        drop_command(home, order, "resume.json")
        daemon.wait("control")
        wait_until(lambda: ended(home) or len(events(daemon, "run_waiting")) > 1, "the run waits again, or has ended")
        assert daemon.stop() == 0


def events(daemon: Daemon, kind: str) -> list[dict[str, Any]]:
    return [event for event in daemon.events if event["event"] == kind]


def test_a_run_that_waited_too_long_asks_again_when_it_is_resumed(parked: Path, tmp_path: Path) -> None:
    (tmp_path / "clock").write_text(str(40 * 3600))
    assert once(parked, COUNCIL_TEST_CLOCK=str(tmp_path / "clock")) == 1
    run_id = run_of(parked)
    assert f"Run {run_id} is queued" in run_cli("resume", "last", cwd=parked).stdout
    (parked / "script.yaml").write_text('default: {text: "So be it."}\n')
    assert once(parked) == 0
    assert [receipt["status"] for receipt in ended(parked)] == ["succeeded"]


# ── what is said of it ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_run_waits_for_is_said_without_a_daemon_and_on_its_page(parked: Path) -> None:
    run_id = run_of(parked)
    view = json.loads(run_cli("status", "--json", cwd=parked).stdout)
    assert (view["state"], view["unfinished"], view["waiting_files"]) == ("STOPPED", 1, [])
    [run] = view["runs"]
    assert (run["run_id"], run["status"], run["waiting_for"]) == (run_id, "waiting", "provider")
    assert "come back later" in run["error"]
    human = run_cli("status", cwd=parked).stdout
    assert f"{run_id}  waiting for the provider: Choose a storage engine for the archive" in human
    until = f"{datetime.fromisoformat(run['until']).astimezone():%Y-%m-%d %H:%M}"
    told = f"It waits until {until}; `council resume {run_id}` continues it sooner. Reason: scripted:script: come back later"
    assert told in human
    page = (parked / "artifacts" / "out.md").read_text()
    assert "The council waits for the provider: scripted:script: come back later" in page
    assert "This page grows" not in page


def test_a_daemon_says_until_when_a_run_waits(parked: Path) -> None:
    with Daemon(parked, env=noting(parked), module=FAULTY) as daemon:
        until = datetime.fromisoformat(daemon.wait("run_waiting")["until"]).astimezone()
        wait_until(lambda: "It waits until" in run_cli("status", cwd=parked).stdout, "the wait is shown")
        human = run_cli("status", cwd=parked).stdout
        sooner = f"`council resume {run_of(parked)}` continues it sooner"
        assert f"It waits until {until:%Y-%m-%d %H:%M}; {sooner}. Reason: the provider asked to wait" in human
        assert daemon.stop() == 0


def test_a_queue_that_no_daemon_works_on_is_shown(quick: Path) -> None:
    (quick / "script.yaml").write_text('default: {text: "So be it.", delay_s: 30}\n')
    for name in ("first", "second"):
        drop_command(quick, command(f"The {name} task."), f"{name}.json")
    with Daemon(quick, env=noting(quick), module=FAULTY) as daemon:
        daemon.wait("turn_started")
        daemon.wait("run_queued", count=2)
        wait_until(lambda: len(unfinished(quick)) == 2, "both are marked")
        daemon.kill()
    runs = json.loads(run_cli("status", "--json", cwd=quick).stdout)["runs"]
    assert [(run["status"], run["title"]) for run in runs] == [
        ("queued", "The first task"),
        ("queued", "The second task"),
    ]
