"""What becomes of the files in `commands/`: the good, the bad, the edited, the removed, and those a kill left behind."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from council.cli.main import main as council
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini, error, text
from tests.harness import (
    SCRIPTED,
    Daemon,
    command,
    drop_command,
    inbox,
    make_home,
    receipts,
    refusal,
    run_cli,
    scripted_home,
    wait_until,
    write_receipt,
)

SETTLE_S = 0.5


def serves_the_next(daemon: Daemon, name: str) -> None:
    """The daemon lives: a good command dropped now succeeds."""
    path = drop_command(daemon.home, command(output_artifact_path=f"artifacts/{Path(name).stem}.md"), name)
    assert daemon.wait("run_ended", file=path.name)["status"] == "succeeded"
    assert (daemon.home / "artifacts" / f"{Path(name).stem}.md").exists()
    assert daemon.process.poll() is None


def artifacts(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "artifacts").glob("*.md") if path.name != "README.md")


# ── bad files ────────────────────────────────────────────────────────────────────────────────────────────────────────


def body(config: str = "{}", more: str = "") -> bytes:
    lines = ["{", '  "task_description": "Choose.",', '  "output_artifact_path": "artifacts/x.md",']
    return "\n".join([*lines, f'  "config": {config}{more}', "}", ""]).encode()


BAD_FILES: dict[str, tuple[bytes, list[str]]] = {
    "malformed": (b'{"task_description": "a",\n "output_artifact_path": \'x.md\'}', ["line 2, column 26", "double quotes"]),
    "trailing-comma": (b'{"task_description": "a",\n}', ["line 2", "comma"]),
    "half": (body()[:50], ["line 3", "ends too early"]),
    "text-for-number": (body('{"max_rounds": "3"}'), ["line 4, column 28", "`config.max_rounds`", "whole number", '"3"']),
    "zero-rounds": (body('{"max_rounds": 0}'), ["line 4, column 28", "`config.max_rounds`", "is 0", "at least 1"]),
    "101-rounds": (body('{"max_rounds": 101}'), ["line 4, column 28", "`config.max_rounds`", "is 101", "at most 100"]),
    "not-a-number": (body('{"max_rounds": NaN}'), ["line 4, column 28", "NaN"]),
    "list": (b'[{"task_description": "a"}]', ["line 1, column 1", "object", "a list"]),
    "unknown-key": (body('{"max_round": 3}'), ["line 4, column 27", "`config.max_round`", "`max_rounds`"]),
    "unknown-top-key": (body(more=', "input_artefacts": []'), ["line 4", "`input_artefacts`", "`input_artifacts`"]),
    "missing-key": (b'{"output_artifact_path": "artifacts/x.md"}', ["line 1, column 1", "`task_description` is missing"]),
    "unknown-type": (body(more=', "type": "deliberat"'), ["line 4, column 25", "`type`", "'deliberate'"]),
    "type-no-text": (body(more=', "type": 7'), ["line 4, column 25", "`type`", "deliberate"]),
    "duplicate-key": (
        body().replace(b'"config"', b'"task_description"'),
        ["line 4", "`task_description`", "twice", "keep one"],
    ),
    "blank-task": (body().replace(b"Choose.", b"  "), ["line 2", "`task_description`", "blank"]),
    "large": (body(more=", " + " " * 300_000 + '"a": 1'), ["262144", "bytes"]),
    "binary": (b"\x7fELF\x00\x01\x02", ["line 1", "binary", "plain text"]),
    "latin-1": (body().replace(b"Choose", b"W\xe4hle"), ["line 2, column 25", "0xe4", "UTF-8"]),
    "utf-16": (body().decode().encode("utf-16"), ["UTF-16", "write it in UTF-8"]),
    "empty": (b"", ["empty"]),
    "blank": (b" \n\t\n", ["empty"]),
    "deep": (b"[" * 100_000, ["nested too deeply"]),
    "long-integer": (body('{"max_rounds": ' + "9" * 5_000 + "}"), ["number"]),
    "lone-surrogate": (body().replace(b"Choose.", b"\\ud800"), ["line 2", "`task_description`"]),
    "cancel-nothing": (b'{"type": "cancel", "run": "20260101-000000-nowhere0"}', ["20260101-000000-nowhere0", "status"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_command_is_set_aside_with_what_where_and_how_to_fix_it_and_the_daemon_goes_on(
    served: Daemon, case: str
) -> None:
    data, said = BAD_FILES[case]
    name = f"{case}.json"
    drop_command(served.home, data, name)
    event = served.wait("command_refused", file=name)
    note = refusal(served.home, name)
    for words in said:
        assert words in note
    assert "Fix: " in note
    assert "Fix: ." not in note
    assert ".." not in note
    assert event["moved_to"] == f"commands/failed/{name}"
    assert (served.home / "commands" / "failed" / name).read_bytes() == data
    assert name not in inbox(served.home)
    serves_the_next(served, f"after-{case}.json")


def a_symlink(path: Path, good: Path) -> None:
    path.symlink_to(good)


def a_dangling_symlink(path: Path, good: Path) -> None:
    path.symlink_to(good.with_name("nowhere.json"))


def a_fifo(path: Path, good: Path) -> None:
    os.mkfifo(path)


def a_hard_link(path: Path, good: Path) -> None:
    os.link(good, path)


def a_file_of_someone_else(path: Path, good: Path) -> None:
    theirs = good.with_name("theirs.json")
    theirs.write_bytes(good.read_bytes())
    os.chown(theirs, 12345, -1)
    theirs.rename(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (a_symlink, "link"),
        (a_dangling_symlink, "link"),
        (a_fifo, "regular file"),
        (a_hard_link, "hard link"),
        pytest.param(
            a_file_of_someone_else,
            "uid 12345",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away"),
        ),
    ],
)
def test_what_is_no_file_of_the_stewards_own_is_refused_and_its_target_left_alone(
    served: Daemon, tmp_path: Path, make: Callable[[Path, Path], None], said: str
) -> None:
    good = served.home / f"good-{make.__name__}.json"
    good.write_text(json.dumps(command(f"The task of {make.__name__}.")))
    name = f"{make.__name__}.json"
    make(served.home / "commands" / name, good)
    served.wait("command_refused", file=name)
    note = refusal(served.home, name)
    assert said in note
    assert "Fix: " in note
    assert name not in inbox(served.home)
    assert good.read_text() == json.dumps(command(f"The task of {make.__name__}."))
    serves_the_next(served, f"after-{make.__name__}.json")
    assert f"The task of {make.__name__}" not in [receipt["title"] for receipt in receipts(served.home)]


def test_a_file_that_may_not_be_read_is_set_aside_with_who_is_to_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: to root, every file is readable."""
    home = make_home(tmp_path / "home", settings='model = "offline"\n')
    drop_command(home, command())
    opened = os.open

    def denied(path: Any, *how: Any, **where: Any) -> int:
        if path == "command.json":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, *how, **where)

    monkeypatch.setattr(os, "open", denied)
    monkeypatch.setattr(sys, "argv", ["council", "--home", str(home), "run", "--once"])
    with pytest.raises(SystemExit):
        council()
    assert "give the user that runs Council read permission" in refusal(home, "command.json")


def test_a_command_set_aside_runs_once_it_is_mended_and_moved_back(served: Daemon) -> None:
    drop_command(served.home, body('{"max_rounds": 0}'), "mended.json")
    served.wait("command_refused", file="mended.json")
    aside = served.home / "commands" / "failed" / "mended.json"
    aside.write_bytes(body('{"max_rounds": 1}'))
    aside.rename(served.home / "commands" / "mended.json")
    assert served.wait("run_ended", file="mended.json")["status"] == "succeeded"


def test_two_bad_files_of_one_name_both_keep_their_bytes_and_their_note(served: Daemon) -> None:
    for number in (1, 2):
        drop_command(served.home, body(f'{{"max_rounds": {number}00000}}'), "twin.json")
        served.wait("command_refused", file="twin.json", count=number)
    failed = served.home / "commands" / "failed"
    assert b"100000" in (failed / "twin.json").read_bytes()
    assert "100000" in (failed / "twin.json.error.md").read_text()
    assert b"200000" in (failed / "twin-2.json").read_bytes()
    assert "200000" in (failed / "twin-2.json.error.md").read_text()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param(b"surrogate-key.json", b'{"\\ud800": 1}', id="an unknown key that is half a character"),
        pytest.param(b"surrogate-value.json", body('{"max_rounds": "\\ud800"}'), id="a value that is half a character"),
        pytest.param(b"surrogate-type.json", body(more=', "type": "\\ud800"'), id="a type that is half a character"),
        pytest.param(b"surrogate-twice.json", b'{"\\ud800": 1, "\\ud800": 2}', id="such a key twice"),
        pytest.param(b"\xff\xfe.json", b"{", id="a name that is not UTF-8"),
        pytest.param(b"n" * 250 + b".json", b"{", id="a name of 255 bytes"),
        pytest.param(b"two\nlines.json", b"{", id="a name of two lines"),
    ],
)
def test_no_name_and_no_text_is_odd_enough_to_end_the_daemon(quick: Path, name: bytes, data: bytes) -> None:
    with Daemon(quick) as daemon:
        daemon.ready()
        (quick / "new").write_bytes(data)
        os.rename(os.fsencode(quick / "new"), os.fsencode(quick / "commands") + b"/" + name)
        daemon.wait("command_refused")
        serves_the_next(daemon, "next.json")
    [note] = (quick / "commands" / "failed").glob("*.error.md")
    assert "Fix: " in note.read_text()
    assert len(list((quick / "commands" / "failed").iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (b"\xff\xfe.json", ["the file's name holds bytes that are not UTF-8"]),
        (b"n" * 250 + b".json", []),
        (b"two\nlines.json", ["the file's name holds a line break"]),
        ("turned \u202e.json".encode(), ["the file's name holds the character U+202E, which nothing shows"]),
    ],
)
def test_a_good_command_with_an_odd_name_runs_or_is_refused_and_the_daemon_goes_on(
    quick: Path, name: bytes, said: list[str]
) -> None:
    with Daemon(quick) as daemon:
        daemon.ready()
        (quick / "new").write_text(json.dumps(command()))
        os.rename(os.fsencode(quick / "new"), os.fsencode(quick / "commands") + b"/" + name)
        wait_until(lambda: not inbox(quick), "the odd file is dealt with")
        serves_the_next(daemon, "next.json")
    refused = [*(quick / "commands" / "failed").glob("*.error.md")]
    assert len(refused) + (quick / "artifacts" / "out.md").exists() == 1
    assert [part in note.read_text() for note, part in zip(refused, said, strict=True)] == [True for _ in said]


def test_a_failing_run_of_a_command_with_a_long_name_ends_and_the_daemon_goes_on(quick: Path) -> None:
    name = "n" * 250 + ".json"
    with Daemon(quick) as daemon:
        daemon.ready()
        drop_command(quick, command(input_artifacts=["gone.md"]), name)
        assert daemon.wait("run_ended")["status"] == "failed"
        serves_the_next(daemon, "next.json")
    assert len(list((quick / "commands" / "failed").glob("nnn*.json"))) == 1


def test_a_file_where_the_folder_for_refused_commands_should_be_does_not_end_the_daemon(quick: Path) -> None:
    (quick / "commands" / "failed").write_text("mine")
    with Daemon(quick) as daemon:
        daemon.ready()
        drop_command(quick, b"[]", "bad.json")
        serves_the_next(daemon, "next.json")
    assert (quick / "commands" / "failed").read_text() == "mine"
    assert (quick / "commands" / "bad.json").read_bytes() == b"[]"


def test_a_command_written_in_two_pieces_runs_once_and_is_never_set_aside(tmp_path: Path) -> None:
    home = scripted_home(tmp_path / "home", SCRIPTED.replace("settle_s = 0.5", "settle_s = 5"))
    data = json.dumps(command()).encode()
    with Daemon(home) as daemon:
        daemon.ready()
        with (home / "commands" / "slow.json").open("wb", buffering=0) as stream:
            stream.write(data[:40])
            for number in range(3):  # scans that see the half
                serves_the_next(daemon, f"meanwhile-{number}.json")
            assert inbox(home) == ["slow.json"]
            stream.write(data[40:])
        assert daemon.wait("run_ended", file="slow.json")["status"] == "succeeded"
        serves_the_next(daemon, "next.json")
        assert [event for event in daemon.events if event["event"] == "command_refused"] == []
    assert len(receipts(home)) == 5
    assert not (home / "commands" / "failed").exists()


def test_a_half_written_command_is_not_set_aside_before_its_time(quick: Path) -> None:
    with Daemon(quick) as daemon:
        daemon.ready()
        began_s = time.monotonic()
        (quick / "commands" / "half.json").write_bytes(body()[:50])
        daemon.wait("command_refused", file="half.json")
        assert time.monotonic() - began_s >= SETTLE_S


def test_names_that_are_no_commands_and_folders_are_left_alone(quick: Path) -> None:
    commands = quick / "commands"
    good = json.dumps(command())
    names = [
        "readme.json", ".hidden.json", "x.json~", "x.tmp", "x.json.part", "x.swp", "x.error.md", "x.txt", "folder/x.json",
    ]  # fmt: skip
    for folder in ("folder", "x.json"):
        (commands / folder).mkdir()
    for name in names:
        (commands / name).write_text(good)
        os.utime(commands / name, (1_700_000_000, 1_700_000_000))  # long settled
    os.utime(commands / "x.json", (1_700_000_000, 1_700_000_000))
    before = sorted(commands.rglob("*"))
    with Daemon(quick) as daemon:
        daemon.ready()
        serves_the_next(daemon, "real.json")
        assert daemon.stop() == 0
    assert sorted(commands.rglob("*")) == before
    assert [(commands / name).read_text() for name in names] == [good] * len(names)
    assert len(receipts(quick)) == 1


# ── commands that change while their run goes on ─────────────────────────────────────────────────────────────────────


def overwritten(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def renamed_over(path: Path, data: bytes) -> None:
    new = path.with_name(".new")
    new.write_bytes(data)
    os.replace(new, path)


@pytest.mark.parametrize("change", [overwritten, renamed_over])
def test_a_command_changed_in_mid_run_finishes_as_it_was_and_then_runs_as_it_is(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate, change: Callable[[Path, bytes], None]
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        path = drop_command(home, command("The first question.", output_artifact_path="artifacts/1.md"))
        daemon.wait("turn_started", role="STRATEGIST")
        change(path, json.dumps(command("The second question.", output_artifact_path="artifacts/2.md")).encode())
        gate.open()
        daemon.wait("run_ended", count=2, status="succeeded")
        assert daemon.stop() == 0
    asked = ["first" if "The first question." in request.texts[0] else "second" for request in fake.requests]
    assert asked == ["first"] * 4 + ["second"] * 4
    assert "The first question." in (home / "artifacts" / "1.md").read_text()
    assert "The second question." in (home / "artifacts" / "2.md").read_text()
    assert inbox(home) == []
    assert len(receipts(home)) == 2


def test_a_command_broken_in_mid_run_finishes_as_it_was_and_the_broken_one_is_set_aside(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        path = drop_command(home, command())
        daemon.wait("turn_started", role="STRATEGIST")
        path.write_bytes(b"[]")
        gate.open()
        daemon.wait("run_ended", status="succeeded")
        daemon.wait("command_refused", file="command.json")
    assert (home / "commands" / "failed" / "command.json").read_bytes() == b"[]"
    assert len(receipts(home)) == 1


def test_a_command_touched_in_mid_run_or_dropped_again_afterwards_runs_again(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        path = drop_command(home, command())
        data = path.read_bytes()
        daemon.wait("turn_started", role="STRATEGIST")
        os.utime(path)
        gate.open()
        daemon.wait("run_ended", count=2, status="succeeded")
        wait_until(lambda: not path.exists(), "the touched command is taken")
        path.write_bytes(data)
        daemon.wait("run_ended", count=3, status="succeeded")
        wait_until(lambda: not path.exists(), "the rewritten command is taken")
    assert len(receipts(home)) == 3
    assert len(fake.requests) == 12


def moved_back(path: Path, data: bytes, away: Path) -> None:
    away.rename(path)


def written_anew(path: Path, data: bytes, away: Path) -> None:
    new = path.with_name(".new")
    new.write_bytes(data)
    new.rename(path)


@pytest.mark.parametrize("restore", [moved_back, written_anew])
def test_a_command_removed_in_mid_run_and_soon_restored_changes_nothing(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate, restore: Callable[[Path, bytes, Path], None]
) -> None:
    (home / "council.toml").write_text("settle_s = 5\nscan_interval_s = 0.1\n")
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        path = drop_command(home, command())
        data = path.read_bytes()
        daemon.wait("turn_started", role="STRATEGIST")
        path.rename(home / "away.json")
        daemon.scan()  # and miss it
        restore(path, data, home / "away.json")
        daemon.scan()  # and see it again
        gate.open()
        assert daemon.wait("run_ended")["status"] == "succeeded"
        serves_the_next(daemon, "next.json")
        assert daemon.stop() == 0
    assert [receipt["command_file"]["name"] for receipt in receipts(home)].count("command.json") == 1
    assert len(fake.requests) == 8
    assert inbox(home) == []


def test_a_command_removed_in_mid_run_ends_it_cancelled_with_what_was_said(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        path = drop_command(home, command())
        daemon.wait("turn_started", role="STRATEGIST")
        path.unlink()
        assert daemon.wait("run_ended")["status"] == "cancelled"
        gate.open()
        serves_the_next(daemon, "next.json")
    cancelled = next(receipt for receipt in receipts(home) if receipt["command_file"]["name"] == "command.json")
    assert cancelled["status"] == "cancelled"
    artifact = (home / cancelled["artifact"]["path"]).read_text()
    assert "\nstatus: cancelled\n" in artifact
    assert "The words of the first speaker." in artifact
    assert inbox(home) == []


def test_a_queued_command_that_is_removed_never_asks_a_model(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        daemon.wait("turn_started", role="STRATEGIST")
        second = drop_command(home, command("Never asked.", output_artifact_path="artifacts/2.md"), "second.json")
        daemon.wait("run_queued", file="second.json")
        second.unlink()
        assert daemon.wait("run_ended", file="second.json")["status"] == "cancelled"
        gate.open()
        assert daemon.wait("run_ended", file="command.json")["status"] == "succeeded"
    assert all("Never asked." not in json.dumps(request.body) for request in fake.requests)
    assert "\nstatus: cancelled\n" in (home / "artifacts" / "2.md").read_text()


def test_a_cancel_command_ends_a_running_run_and_leaves_a_receipt_only(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        drop_command(home, {"type": "cancel", "run": run_id}, "stop.json")
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
        gate.open()
        serves_the_next(daemon, "next.json")
    by_file = {receipt["command_file"]["name"]: receipt for receipt in receipts(home)}
    assert by_file["command.json"]["status"] == "cancelled"
    assert by_file["stop.json"]["type"] == "cancel"
    assert by_file["stop.json"]["status"] == "succeeded"
    assert "artifact" not in by_file["stop.json"]
    assert "The words of the first speaker." in (home / "artifacts" / "out.md").read_text()
    assert artifacts(home) == ["next.md", "out.md"]
    assert inbox(home) == []
    assert not (home / "commands" / "failed").exists()


# ── order, ids, crowds ───────────────────────────────────────────────────────────────────────────────────────────────


def test_commands_dropped_during_a_run_run_after_it_in_the_order_of_their_drop(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    names = ["z.json", "m.json", "a.json", "k.json"]
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        for name in names:
            drop_command(home, command(output_artifact_path=f"artifacts/{name[0]}.md"), name)
            daemon.wait("run_queued", file=name)
        gate.open()
        daemon.wait("run_ended", count=4, status="succeeded")
    assert [event["file"] for event in daemon.events if event["event"] == "run_started"] == names
    ends = [event["file"] for event in daemon.events if event["event"] in ("run_started", "run_ended")]
    assert ends == [name for name in names for _ in range(2)]


def test_the_order_of_drop_outlives_a_kill(home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate) -> None:
    names = ["z.json", "m.json", "a.json", "k.json", "x.json", "b.json"]
    for number, name in enumerate(names):
        path = drop_command(home, command(output_artifact_path=f"artifacts/{name[0]}.md"), name)
        os.utime(path, (1_700_000_000 + number,) * 2)  # two drops within one tick of the clock have no order
    with Daemon(home, env=env) as daemon:
        daemon.wait("run_queued", count=len(names))
        daemon.wait("turn_started", role="STRATEGIST")
        daemon.kill()
    gate.open()
    with Daemon(home, "--once", env=env) as daemon:
        assert daemon.process.wait(60) == 0
        daemon.wait("run_ended", count=len(names))
        assert [event["file"] for event in daemon.events if event["event"] == "run_started"] == names


def test_the_same_id_and_content_is_answered_by_the_first_run_also_while_it_goes_on(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(id="order-7"), "first.json")
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        drop_command(home, command(id="order-7"), "second.json")
        daemon.wait("command_waits_for_id", file="second.json")
        assert (home / "commands" / "second.json").exists()
        gate.open()
        assert daemon.wait("command_answered", file="second.json")["run_id"] == run_id
        drop_command(home, command(id="order-7"), "third.json")
        assert daemon.wait("command_answered", file="third.json")["run_id"] == run_id
        wait_until(lambda: inbox(home) == [], "all three are taken")
        assert daemon.stop() == 0
    assert [receipt["run_id"] for receipt in receipts(home)] == [run_id]
    assert len(fake.requests) == 4
    assert f"second.json has the id of run {run_id}, which has not ended" in run_cli("logs", cwd=home).stdout


def test_the_same_id_with_another_content_is_a_conflict_also_while_the_first_run_goes_on(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(id="order-7"), "first.json")
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        drop_command(home, command("Something else.", id="order-7"), "second.json")
        gate.open()
        daemon.wait("command_refused", file="second.json", code="id_conflict")
        drop_command(home, command("Something else.", id="order-7"), "third.json")
        daemon.wait("command_refused", file="third.json", code="id_conflict")
    for name in ("second.json", "third.json"):
        note = refusal(home, name)
        assert "`id_conflict`" in note
        assert "order-7" in note
        assert run_id in note
        assert "choose another id" in note
    assert len(receipts(home)) == 1


def test_the_same_id_after_a_failed_run_is_a_new_attempt(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: error(400, "API_KEY_INVALID")
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(id="order-7"))
        assert daemon.wait("run_ended")["status"] == "failed"
        fake.reply = lambda request: text("It works now.")
        drop_command(home, command(id="order-7"))
        assert daemon.wait("run_ended", count=2)["status"] == "succeeded"
        drop_command(home, command(id="order-7"))
        second = daemon.wait("run_ended", count=2)["run_id"]
        assert daemon.wait("command_answered")["run_id"] == second
    assert sorted(receipt["status"] for receipt in receipts(home)) == ["failed", "succeeded"]
    assert "It works now." in (home / "artifacts" / "out.md").read_text()


def test_an_id_is_remembered_over_a_restart(quick: Path) -> None:
    for _ in range(2):
        drop_command(quick, command(id="order-7"))
        assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert len(receipts(quick)) == 1
    assert inbox(quick) == []


def test_sixty_commands_from_before_and_after_the_start_run_exactly_once(quick: Path) -> None:
    def drop_all(numbers: range) -> None:
        for number in numbers:
            data = json.dumps(command(f"Question {number}.", output_artifact_path=f"artifacts/{number}.md"))
            (quick / "commands" / f"c{number}.json").write_text(data)

    drop_all(range(20))
    with Daemon(quick) as daemon:
        daemon.wait("run_queued")
        drop_all(range(20, 60))
        daemon.wait("run_ended", count=60)
        daemon.wait("idle")
        assert daemon.stop() == 0
        assert {event["status"] for event in daemon.events if event["event"] == "run_ended"} == {"succeeded"}
    answered = sorted(receipt["command_file"]["name"] for receipt in receipts(quick))
    assert answered == sorted(f"c{number}.json" for number in range(60))
    assert artifacts(quick) == sorted(f"{number}.md" for number in range(60))
    assert all(f"Question {number}" in (quick / "artifacts" / f"{number}.md").read_text() for number in range(60))
    assert inbox(quick) == []


def test_without_file_events_the_timed_scan_finds_commands(tmp_path: Path) -> None:
    home = scripted_home(tmp_path / "home", SCRIPTED + 'watch = "poll"\n')
    with Daemon(home) as daemon:
        daemon.ready()
        serves_the_next(daemon, "polled.json")
    assert artifacts(home) == ["polled.md"]


# ── after a kill ─────────────────────────────────────────────────────────────────────────────────────────────────────


def leftover(home: Path, data: bytes, *, same: bool) -> Path:
    """A `.taken` file as a kill between receipt and unlink leaves it; `same`: the receipt's own file."""
    [receipt] = receipts(home)
    taken = home / "commands" / f".{receipt['run_id']}.taken"
    taken.write_bytes(data)
    if same:
        status = taken.stat()
        receipt["command_file"].update(inode=status.st_ino, mtime_ns=status.st_mtime_ns)
        write_receipt(home, receipt)
    return taken


def test_a_taking_that_a_kill_cut_off_is_completed_at_the_next_start(quick: Path) -> None:
    data = json.dumps(command()).encode()
    drop_command(quick, data)
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    taken = leftover(quick, data, same=True)
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert not taken.exists()
    assert inbox(quick) == []
    assert len(receipts(quick)) == 1


def test_a_taken_command_of_a_failed_run_goes_to_the_failed_ones_at_the_next_start(quick: Path) -> None:
    data = json.dumps(command(input_artifacts=["gone.md"])).encode()
    drop_command(quick, data)
    assert run_cli("run", "--once", cwd=quick).returncode == 1
    [kept] = (quick / "commands" / "failed").iterdir()
    kept.unlink()
    leftover(quick, data, same=True)
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert [path.read_bytes() for path in (quick / "commands" / "failed").iterdir()] == [data]
    assert inbox(quick) == []
    assert len(receipts(quick)) == 1


@pytest.mark.parametrize("linked", [False, True], ids=["taken only", "its old name is already linked again"])
def test_a_taken_file_that_is_not_the_admitted_one_is_a_new_command(quick: Path, linked: bool) -> None:
    drop_command(quick, command("The first question.", output_artifact_path="artifacts/1.md"))
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    new = json.dumps(command("The second question.", output_artifact_path="artifacts/2.md")).encode()
    taken = leftover(quick, new, same=False)
    if linked:
        os.link(taken, quick / "commands" / "command.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert sorted(receipt["title"] for receipt in receipts(quick)) == ["The first question", "The second question"]
    assert artifacts(quick) == ["1.md", "2.md"]
    assert inbox(quick) == []
    assert not (quick / "commands" / "failed").exists()


def killed_in_mid_run(home: Path, env: dict[str, str], **keys: Any) -> str:
    """The id of a run that was killed while STRATEGIST was thinking."""
    drop_command(home, command(**keys))
    with Daemon(home, env=env) as daemon:
        run_id: str = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        daemon.kill()
    return run_id


def test_what_has_the_name_of_a_taken_command_at_start_is_a_new_command(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    run_id = killed_in_mid_run(home, env)
    data = (home / "commands" / "command.json").read_bytes()
    (home / "commands" / "command.json").rename(home / "commands" / f".{run_id}.taken")
    drop_command(home, data)
    gate.open()
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert len(receipts(home)) == 2
    assert inbox(home) == []


def test_a_command_rewritten_while_no_daemon_ran_runs_after_the_unfinished_run(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    run_id = killed_in_mid_run(home, env, output_artifact_path="artifacts/1.md")
    new = json.dumps(command("The second question.", output_artifact_path="artifacts/2.md"))
    (home / "commands" / "command.json").write_text(new)
    gate.open()
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert len(receipts(home)) == 2
    assert "\nstatus: succeeded\n" in (home / "artifacts" / "1.md").read_text()
    assert run_id in (home / "artifacts" / "1.md").read_text()
    assert "The second question." in (home / "artifacts" / "2.md").read_text()
    assert inbox(home) == []
