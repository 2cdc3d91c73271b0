"""A command that a door drops, and stays for; the drain is the door's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from council.cli.status_command import progress_line
from council.desk.desk import Desk
from council.desk.drop_and_wait import Errand, control, wait_for_end
from council.engine.receipts import IdBinding, Receipts
from council.engine.records import FORGOTTEN, NOT_KEPT, FileIdentity
from council.errors import CommandInvalid, DaemonRunning, UsageError, WaitTimeout
from council.storage.command_drop import DroppedFile
from council.storage.store import Store
from tests.rows import begun, ended, receipt

NAME = "command.json"  # as `tests.rows` names what its runs came from
DATA = b'{"id": "mine"}'


def identity(dropped: DroppedFile, sha256: str = "") -> FileIdentity:
    return FileIdentity(dropped.path.name, dropped.inode, dropped.mtime_ns, sha256 or dropped.sha256)


def nothing(name: str, left_s: float) -> None:
    """A drain that does not take the file up."""


def test_the_command_lies_whole_in_the_inbox_before_anybody_waits(desk: Desk) -> None:
    errand = Errand(desk, NAME, DATA)
    assert errand.dropped.path == desk.home.commands / NAME
    assert errand.dropped.path.read_bytes() == DATA


def test_what_lies_there_already_is_not_dropped_again(desk: Desk) -> None:
    there = Errand(desk, NAME, DATA).dropped
    Errand(desk, NAME, DATA, there)
    assert [path.name for path in desk.home.commands.glob("*.json")] == [NAME]


@pytest.mark.parametrize("sha256", ["", NOT_KEPT, FORGOTTEN])
def test_without_a_daemon_the_door_drains_that_one_file_and_its_receipt_is_the_answer(
    desk: Desk, store: Store, sha256: str
) -> None:
    errand = Errand(desk, NAME, DATA)
    drained: list[str] = []

    def drain(name: str, left_s: float) -> None:
        drained.append(name)
        assert 0 < left_s <= 5
        errand.dropped.path.unlink()
        ended(store, "r1", 7, command_file=identity(errand.dropped, sha256))

    assert errand.wait(5, drain).run_id == "r1"
    assert drained == [NAME]


def test_a_receipt_of_other_bytes_in_the_same_place_is_no_answer(desk: Desk, store: Store) -> None:
    errand = Errand(desk, NAME, DATA)

    def drain(name: str, left_s: float) -> None:
        errand.dropped.path.unlink()
        for run_id, sha256, ended_ns in (("r1", "1" * 64, 7), ("r2", "", 8), ("r3", "3" * 64, 9)):
            ended(store, run_id, ended_ns, command_file=identity(errand.dropped, sha256))

    assert errand.wait(5, drain).run_id == "r2"


def test_a_receipt_of_an_older_drop_of_the_name_is_no_answer(desk: Desk, store: Store) -> None:
    ended(store, "r0", 7, command_file=FileIdentity(NAME, 1, 1, "0" * 64))
    errand = Errand(desk, NAME, DATA)

    def drain(name: str, left_s: float) -> None:
        errand.dropped.path.unlink()
        ended(store, "r1", 8, command_file=identity(errand.dropped))

    assert errand.wait(5, drain).run_id == "r1"


def test_a_door_that_others_were_quicker_than_tries_again(desk: Desk, store: Store) -> None:
    errand, tries = Errand(desk, NAME, DATA), []

    def drain(name: str, left_s: float) -> None:
        tries.append(name)
        if len(tries) <= 5:
            raise DaemonRunning("another process drains a file of its own.")
        errand.dropped.path.unlink()
        ended(store, "r1", 7, command_file=identity(errand.dropped))

    assert errand.wait(30, drain).run_id == "r1"


@pytest.mark.parametrize(("name", "data"), [(NAME, DATA), ("command.yaml", b"id: mine\n")])
def test_an_id_that_was_answered_before_is_answered_by_that_run(
    desk: Desk, store: Store, name: str, data: bytes
) -> None:
    Receipts(store).answer(receipt("r0", id="mine"), 1, IdBinding("mine", "h", "r0"))
    errand = Errand(desk, name, data)
    assert errand.wait(5, lambda name, left_s: errand.dropped.path.unlink()).run_id == "r0"


def aside(desk: Desk, dropped: DroppedFile, note: str) -> Callable[[str, float], None]:
    """A drain that sets the file aside with a note."""

    def drain(name: str, left_s: float) -> None:
        desk.home.failed.mkdir(exist_ok=True)
        dropped.path.rename(desk.home.failed / name)
        (desk.home.failed / f"{name}.error.md").write_text(note)

    return drain


def test_a_file_that_was_set_aside_raises_what_its_note_says(desk: Desk) -> None:
    errand = Errand(desk, NAME, DATA)
    with pytest.raises(CommandInvalid, match="`task_description` is missing") as refused:
        errand.wait(
            5, aside(desk, errand.dropped, "# command.json\n\n- **`task_description` is missing**\n  Fix: add it.\n")
        )
    assert refused.value.fix.startswith("add it; see ")
    assert refused.value.fix.endswith(f"{NAME}.error.md")


def test_a_note_of_another_file_is_not_taken_for_this_one(desk: Desk, tmp_path: Path) -> None:
    errand = Errand(desk, NAME, DATA)

    def drain(name: str, left_s: float) -> None:
        desk.home.failed.mkdir(exist_ok=True)
        errand.dropped.path.rename(tmp_path / "kept.json")  # so that its inode is nobody else's
        (desk.home.failed / NAME).write_text("another")
        (desk.home.failed / f"{NAME}.error.md").write_text("- **is wrong**\n")

    with pytest.raises(WaitTimeout, match=r"no answer to command\.json within 0\.3 s"):
        errand.wait(0.3, drain)


def test_a_file_that_no_drain_takes_up_is_given_up(desk: Desk) -> None:
    with pytest.raises(UsageError, match="was not accepted"):
        Errand(desk, NAME, DATA).wait(5, nothing)


def test_a_daemon_that_starts_in_this_instant_answers_in_place_of_the_drain(desk: Desk, store: Store) -> None:
    errand = Errand(desk, NAME, DATA)

    def drain(name: str, left_s: float) -> None:
        errand.dropped.path.unlink()
        ended(store, "r1", 7, command_file=identity(errand.dropped))
        raise DaemonRunning("somebody has it", fix="")

    assert errand.wait(5, drain).run_id == "r1"


def test_while_a_daemon_works_its_run_is_shown_and_nothing_is_drained(desk: Desk) -> None:
    errand = Errand(desk, NAME, DATA)
    seen: list[object] = []

    class Watching:
        def __enter__(self) -> Callable[[object], None]:
            return seen.append

        def __exit__(self, *_: object) -> None: ...

    def drained(name: str, left_s: float) -> None:
        raise AssertionError

    with desk.held():
        run = {"run_id": "r1", "inode": errand.dropped.inode, "status": "running"}
        desk.home.state_file.write_text(json.dumps({"runs": [{"inode": 0}, run]}))
        with pytest.raises(WaitTimeout):
            errand.wait(0.25, drained, Watching)
    assert seen[0] == run
    assert errand.run() == run


def test_a_run_that_stands_in_line_is_shown_behind_the_one_that_has_the_turn_of_its_lane(desk: Desk) -> None:
    errand = Errand(desk, NAME, DATA)
    others = [
        {"run_id": f"r{lane}", "inode": 0, "status": "running", "lane": lane} for lane in ("other", "main", "main")
    ]
    run = {"run_id": "r3", "inode": errand.dropped.inode, "status": "queued", "lane": "main"}
    desk.home.state_file.parent.mkdir(exist_ok=True)
    desk.home.state_file.write_text(json.dumps({"runs": [*others, run]}))
    assert errand.run() == {**run, "behind": "rmain"}
    assert progress_line(errand.run() or {}) == "queued behind run rmain"
    desk.home.state_file.write_text(json.dumps({"runs": [others[0], run]}))
    assert errand.run() == run  # its lane is free: it waits for a slot


def test_a_control_command_is_a_file_like_any_other(desk: Desk) -> None:
    dropped = control(desk, "retry", run="r1", **{"from": "round/2"}).dropped
    assert (dropped.path.name, json.loads(dropped.path.read_bytes())) == (
        "retry.json", {"type": "retry", "run": "r1", "from": "round/2"},
    )  # fmt: skip


def test_the_end_of_a_cancelled_run_is_waited_for(desk: Desk, store: Store) -> None:
    ended(store, "r1", 1, status="cancelled")
    begun(store, "r2")
    assert wait_for_end(desk, "r1", 1).status == "cancelled"
    with pytest.raises(WaitTimeout, match="run r2 has not ended"):
        wait_for_end(desk, "r2", 0.1)
