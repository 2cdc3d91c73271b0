"""Runs that wait: several orders for one of them at once, their slots, how long they may wait, what is asked meanwhile."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    faulty_environment,
    make_home,
    receipts,
    run_cli,
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
    home = make_home(tmp_path / "home", settings=SETTINGS)
    (home / "script.yaml").write_text(BUSY)
    return home


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
