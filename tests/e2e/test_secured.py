"""Nothing that others see rests on a step whose record is not on the disk: in the real process, whose syncs in the
background happen as late as they may, so that all that could come before them does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.harness import FAULTY, command, drop_command, faulty_environment, receipts, run_cli

_CHANGE = re.compile(r"\d+ (?P<what>[a-z-]+) (?P<fd>\d*) ?(?P<rest>.*)")
_DONE = re.compile(r'"t":"done","name":"([^"]+)"')
# What is noted before a call is made (that a step begins, what it may cost); a view.
_RESTS_ON_NOTHING = re.compile(r'"t":"begin","(?:name|call)"|/\.council/spend |\{"state":|\.state\.json')


def asks_for_files(home: Path) -> str:
    """A scripted model; of two files that it wants it gets one, and the other is refused."""
    wanted = (
        "Let us look.\n[ORCHESTRATOR_REQUEST: READ_FILE(README.md)]\n[ORCHESTRATOR_REQUEST: READ_FILE(../../key)]\n"
    )
    replies = [{"purpose": "turn", "round": 1, "times": 0, "text": wanted}]
    script = {"model": "rehearsal", "replies": replies, "default": {"text": "Keep it on one disk."}}
    (home / "script.yaml").write_text(yaml.safe_dump(script))
    (home / "README.md").write_text("The disk holds 40 GB.\n")
    return "scripted:script.yaml"


def changes_before_the_sync(trace: list[str], steps: list[str]) -> Iterator[str]:
    """What was changed while a step's record was not on the disk, with that step; `steps` gets the names of all."""
    unsynced: dict[str, str] = {}
    for line in trace:
        if (change := _CHANGE.fullmatch(line)) is None or change["what"] == "event":
            continue
        if change["what"] == "fdatasync":
            unsynced.pop(change["fd"], None)
        elif not _RESTS_ON_NOTHING.search(line):
            yield from (f"{step}: {line}" for step in unsynced.values())
        if found := _DONE.search(line):
            unsynced[change["fd"]] = found[1]
            steps.append(found[1])


@pytest.mark.parametrize("protocol", ["triad", "independent", "review"])
def test_nothing_is_changed_between_a_steps_record_and_its_sync(home: Path, tmp_path: Path, protocol: str) -> None:
    trace = tmp_path / "trace"
    body = command()
    body["config"] |= {"protocol": protocol, "max_rounds": 2}
    drop_command(home, body)
    env = faulty_environment(
        COUNCIL_MODEL=asks_for_files(home), COUNCIL_TEST_SYNCS="late", COUNCIL_TEST_FAULT_LOG=str(trace)
    )
    run_cli("run", "--once", cwd=home, env=env, module=FAULTY)
    assert [receipt["rounds"] for receipt in receipts(home)] == [2]
    steps: list[str] = []
    assert list(changes_before_the_sync(trace.read_text().split("\n"), steps)) == []
    assert {"round/1/AUDITOR/request/2", "round/2/AUDITOR", "synthesis", "finish"} <= set(steps)
