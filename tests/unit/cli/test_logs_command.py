from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import typer
from typer.testing import CliRunner

from council.cli.context import CliState
from council.cli.logs_command import GrowingFile, logs, readable
from tests.harness import make_home

app = typer.Typer()
app.command()(logs)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = make_home(tmp_path) / ".council" / "logs" / "council.jsonl"
    path.parent.mkdir(parents=True)
    return path


def line(number: int) -> str:
    record = {"time": "2026-11-20T22:54:13.000Z", "level": "info", "logger": "council.x", "message": f"number {number}"}
    return json.dumps(record) + "\n"


def shown(log: Path, *options: str) -> list[str]:
    state = CliState(home_flag=log.parents[2], environ={})
    result = CliRunner().invoke(app, options, obj=state, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout.splitlines()


def test_the_newest_lines_are_printed_oldest_first(log: Path) -> None:
    log.write_text("".join(line(number) for number in range(10)))
    assert shown(log, "-n", "2") == [f"2026-11-20 22:54:13  info council.x: number {number}" for number in (8, 9)]


def test_a_line_has_its_time_in_the_zone_of_the_home() -> None:
    assert readable(line(1), ZoneInfo("Asia/Tokyo")) == "2026-11-21 07:54:13  info council.x: number 1"


def test_fifty_lines_are_printed_unless_told_otherwise(log: Path) -> None:
    log.write_text("".join(line(number) for number in range(80)))
    assert len(shown(log)) == 50


def test_rotated_files_fill_up_what_the_newest_one_lacks(log: Path) -> None:
    for name, numbers in (("council.jsonl.2", (0, 1)), ("council.jsonl.1", (2, 3)), ("council.jsonl", (4, 5))):
        (log.parent / name).write_text("".join(line(number) for number in numbers))
    assert [text[-1] for text in shown(log, "-n", "5")] == ["1", "2", "3", "4", "5"]


def test_json_prints_the_lines_as_they_stand(log: Path) -> None:
    log.write_text(line(1) + line(2))
    assert shown(log, "--json") == [line(1).strip(), line(2).strip()]


def test_events_read_as_the_daemons_own_terminal_says_them() -> None:
    event = {"time": "2026-11-20T22:54:13.000Z", "event": "run_ended", "run_id": "r-1", "status": "succeeded"}
    rest = {"artifact": "artifacts/a.md", "error": None, "notes": [], "title": "T"}
    assert (
        readable(json.dumps({**event, **rest}), UTC)
        == "2026-11-20 22:54:13  r-1  [SUCCESS] Artifact saved to artifacts/a.md"
    )


def test_an_event_of_another_version_is_shown_with_its_values() -> None:
    event = {"time": "2026-11-20T22:54:13.000Z", "event": "run_ended", "run_id": "r-1", "outcome": "fine"}
    assert readable(json.dumps(event), UTC) == "2026-11-20 22:54:13  r-1  run_ended outcome=fine"


def test_what_is_not_json_is_shown_as_it_is() -> None:
    assert readable('{"torn', UTC) == '{"torn'


def test_terminal_escapes_in_a_message_are_not_passed_on() -> None:
    record = {"time": "2026-11-20T22:54:13.000Z", "level": "info", "logger": "x", "message": "\x1b[2Jgone"}
    assert "\x1b" not in readable(json.dumps(record), UTC)


def test_following_goes_on_over_a_rotation_without_losing_a_line(log: Path) -> None:
    log.write_text(line(1))
    followed = GrowingFile(log)
    with log.open("a") as stream:
        stream.write(line(2))
    assert list(followed.new_lines()) == [line(2).strip()]
    with log.open("a") as stream:
        stream.write(line(3))
    log.rename(log.with_name("council.jsonl.1"))
    log.write_text(line(4))
    assert list(followed.new_lines()) == [line(3).strip(), line(4).strip()]


def test_half_a_line_is_held_back_until_it_is_whole(log: Path) -> None:
    log.write_text("")
    followed = GrowingFile(log)
    whole = line(1)
    with log.open("a") as stream:
        stream.write(whole[:20])
        stream.flush()
        assert list(followed.new_lines()) == []
        stream.write(whole[20:])
    assert list(followed.new_lines()) == [whole.strip()]
