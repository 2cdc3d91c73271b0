from __future__ import annotations

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from council import logs
from council.events import EventLines, RunStart
from council.logs import LogFile
from council.redaction import Redactor, Secret

KEY = "AIza-not-a-real-key-0001"
IDLE = '{"event": "idle"}'
logger = logging.getLogger("council.test")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "council.jsonl"


@pytest.fixture
def log_file(path: Path) -> Iterator[LogFile]:
    file = LogFile(path, Redactor([Secret(KEY)]))
    yield file
    file.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_and_log_records_stand_in_one_file_in_their_order(path: Path, log_file: LogFile) -> None:
    log_file.write_event(EventLines(str).of(RunStart(run_id="r-1", title="T")))
    logger.warning("something %s", "odd")
    first, second = lines(path)
    assert (first["event"], first["run_id"], first["title"]) == ("run_started", "r-1", "T")
    assert (second["level"], second["logger"], second["message"]) == ("warning", "council.test", "something odd")


def test_no_secret_reaches_the_file_neither_in_an_event_nor_in_a_record(path: Path, log_file: LogFile) -> None:
    log_file.write_event(EventLines(Redactor([Secret(KEY)]).redact).of(RunStart(run_id="r-1", title=f"key={KEY}")))
    logger.warning("the key is %s", KEY)
    assert KEY not in path.read_text()
    assert path.read_text().count("[secret]") == 2


def test_folder_and_file_are_for_their_owner_only(path: Path, log_file: LogFile) -> None:
    log_file.write_event(IDLE)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_file_gives_way_to_a_new_one_and_three_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 2_000)
    file = LogFile(path, Redactor())
    for number in range(100):
        file.write_event(json.dumps({"event": "idle", "number": number, "filler": "x" * 100}))
    file.close()
    names = sorted(found.name for found in path.parent.iterdir())
    assert names == ["council.jsonl", "council.jsonl.1", "council.jsonl.2"]
    assert all(found.stat().st_size <= 2_000 for found in path.parent.iterdir())
    assert lines(path)[-1]["number"] == 99


def test_after_the_end_nothing_more_is_written(path: Path) -> None:
    file = LogFile(path, Redactor())
    file.write_event(IDLE)
    file.close()
    logger.warning("too late")
    assert len(lines(path)) == 1


def test_a_log_that_cannot_be_written_is_said_once_and_stops_nothing(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = LogFile(path, Redactor())
    path.mkdir()
    file.write_event(IDLE)
    file.write_event(IDLE)
    file.close()
    assert capsys.readouterr().err.count("cannot be written") == 1
