"""Events are types: one union, told on the wire by the same words as ever, with a schema for whoever streams them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from council.daemon.terminal import JsonLines, event_line
from council.events import AnyEvent, Event, EventLines, Events, RunEnd, RunFailure, SpeechPiece, TurnStart
from council.ids import SystemClock
from council.redaction import Redactor

END = RunEnd(
    run_id="r-1",
    status="failed",
    artifact="",
    error=RunFailure("drift", "It drifted.", "resume"),
    notes=("n",),
    file="c",
)


def test_an_event_is_told_by_its_word_its_run_and_its_values_in_their_order() -> None:
    stream = io.StringIO()
    tell = JsonLines(stream, SystemClock(), EventLines(Redactor().redact))

    tell(END)
    tell(SpeechPiece(run_id="r-1", role="AUDITOR", text="for people"))

    [line] = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert list(line) == ["time", "event", "run_id", "status", "artifact", "error", "notes", "title", "calls", "file"]
    assert (line["event"], line["run_id"]) == ("run_ended", "r-1")
    assert line["error"] == {"code": "drift", "message": "It drifted.", "fix": "resume"}


def test_every_type_of_event_is_in_the_union_and_comes_back_from_json() -> None:
    assert set(Event.__subclasses__()) == set(get_args(AnyEvent))
    for event in (END, TurnStart(role="AUDITOR", round=2)):
        assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event


def test_the_schema_tells_the_types_apart_by_kind() -> None:
    mapping = msgspec.json.schema(AnyEvent)["discriminator"]

    assert mapping["propertyName"] == "kind"
    assert set(mapping["mapping"]) == {kind.__struct_config__.tag for kind in get_args(AnyEvent)}


def test_a_listener_that_fails_keeps_no_event_from_the_others() -> None:
    events, heard = Events(), []

    def fail(event: Event) -> None:
        raise RuntimeError(event.kind)

    events.subscribe(fail)
    events.subscribe(heard.append)
    events.publish(END)

    assert heard == [END]
    assert event_line(END) == "[FAILED] It drifted.\n    Fix: resume"


@pytest.mark.parametrize("ending", ["full", "closed"])
def test_a_full_or_closed_output_is_warned_of_once_and_then_left_alone(
    ending: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = open("/dev/full" if ending == "full" else tmp_path / "out", "w")  # noqa: SIM115 - closed below
    events = Events()
    events.subscribe(JsonLines(stream, SystemClock(), EventLines(Redactor().redact)))
    if ending == "closed":
        stream.close()
    for _ in range(3):
        events.publish(END)
    stream.close()
    [record] = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert "told here no more" in record.message
