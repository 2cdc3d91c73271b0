"""A crowd in the inbox: every file is answered once, none is lost, and nobody waits behind it who must not."""

from __future__ import annotations

import json
import os
import resource
from collections import Counter
from pathlib import Path
from typing import Any

from tests.harness import Daemon, command, drop_command, make_home, receipts, run_cli, wait_until

ANSWERED = 3_000
RUNNING = 100  # more than the daemon may open files
LANES = 8
DESCRIPTORS = 80  # far fewer than runs that wait, and than runs that have ended
TIMEOUT_S = 900.0  # a defect's, not a crowd's
SETTINGS = f"""\
model = "scripted:script.yaml"
settle_s = 600
scan_interval_s = 0.2
max_parallel_runs = {LANES + 1}
"""
SCRIPT = """\
replies:
  - {round: 2, times: 0, delay_s: 3600, text: "At last."}
default: {text: "Nothing to add."}
"""


def order(id_: str, **keys: Any) -> dict[str, Any]:
    return command(f"The order {id_}.", id=id_, output_artifact_path=f"artifacts/{id_}.md", **keys)


def write_crowd(folder: Path) -> dict[str, bytes]:
    """Copies of one order, and between them orders of their own, lane by lane. What is in which file."""
    folder.mkdir()
    same = json.dumps(order("the-one")).encode()
    own_every = (ANSWERED + RUNNING) // RUNNING
    crowd = {}
    for number in range(ANSWERED + RUNNING):
        own = number % own_every == 0
        data = json.dumps(order(f"own-{number}", session=f"lane-{number % LANES}")).encode() if own else same
        crowd[f"c{number:05}.json"] = data
    for name, data in crowd.items():
        (folder / name).write_bytes(data)
    return crowd


def test_3000_answered_by_one_receipt_and_100_that_run_are_each_answered_once_and_a_cancel_passes_them(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path / "home", settings=SETTINGS)
    (home / "script.yaml").write_text(SCRIPT)
    drop_command(home, order("the-one"), "first.json")
    assert run_cli("run", "--once", cwd=home).returncode == 0
    [first] = receipts(home)
    crowd = write_crowd(home / "crowd")
    ids = Counter(json.loads(data)["id"] for data in crowd.values())
    assert (ids["the-one"], len(ids) - 1) == (ANSWERED, RUNNING)
    drop_command(home, order("slow", rounds=2, session="slow"), "slow.json")
    with Daemon(home) as daemon:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        slow = daemon.wait("turn_started", round=2)["run_id"]
        for name in crowd:
            os.rename(home / "crowd" / name, home / "commands" / name)
        drop_command(home, {"type": "cancel", "run": slow}, "cancel.json")
        daemon.wait("run_ended", run_id=slow, status="cancelled")
        assert len(os.listdir(home / "commands")) > len(crowd) / 2, "the cancel came before the crowd was through"
        commands = home / "commands"
        wait_until(lambda: os.listdir(commands) == ["README.md"], "every file is taken", TIMEOUT_S, every_s=0.2)
        assert daemon.stop() == 0
        events = daemon.events
    answered = [event for event in events if event["event"] == "command_answered"]
    assert {event["run_id"] for event in answered} == {first["run_id"]}
    ran = [event["file"] for event in events if event["event"] == "run_queued" and event["file"] != "slow.json"]
    assert sorted([*ran, *(event["file"] for event in answered)]) == sorted(crowd)
    assert [event for event in events if event["event"] == "command_refused"] == []
    assert [event for event in events if event["event"] == "run_waiting"] == []
    by_status = Counter((receipt["type"], receipt["status"]) for receipt in receipts(home))
    assert by_status == {
        ("deliberate", "succeeded"): RUNNING + 1,
        ("deliberate", "cancelled"): 1,
        ("cancel", "succeeded"): 1,
    }
    assert Counter(receipt.get("id") for receipt in receipts(home)) == {None: 1, "slow": 1, **dict.fromkeys(ids, 1)}
    for lane in range(LANES):
        queued = [event["run_id"] for event in events if event["event"] == "run_queued" and event["file"] in ran]
        assert queued
        session = json.loads((home / "session_states" / f"lane-{lane}" / "auditor_session.json").read_bytes())
        archived = list((home / "session_states" / "archive" / f"lane-{lane}" / "auditor").glob("*.md"))
        assert len(archived) == sum(1 for name in ran if int(name[1:6]) % LANES == lane)
        assert {task["run_id"] for task in session["tasks"]} <= {path.stem for path in archived}
