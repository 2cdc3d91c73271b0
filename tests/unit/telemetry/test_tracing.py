"""Spans over an in-memory exporter: a whole run in this process, and what no event or call may do to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from council.app import build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.events import RunReturn, RunStart, RunWait, TurnEnd, TurnStart
from council.redaction import Redactor
from council.settings import Home, ProviderKeys, Settings
from council.telemetry import tracing
from council.telemetry.export import Telemetry, open_telemetry
from council.telemetry.switch import SpanDestination, wanted
from council.telemetry.tracing import trace_id_of
from tests.harness import command, drop_command, make_home, receipts

WANTED = SpanDestination("http://collector:4318/v1/traces", content=False)
SCRIPT = """\
model: rehearsal
replies:
  - {role: AUDITOR, purpose: turn, error: {kind: blocked, message: refused}, times: 0}
  - role: STRATEGIST
    purpose: turn
    text: "Look.\\n\\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]"
    times: 0
    usage: {input_tokens: 50, output_tokens: 5, cached_tokens: 20, thought_tokens: 2}
default: {text: "So be it.", usage: {input_tokens: 100, output_tokens: 10}}
"""


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def telemetry(spans: InMemorySpanExporter) -> Iterator[Telemetry]:
    opened = open_telemetry(WANTED, Redactor(), spans)
    yield opened
    opened.close()


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_the_tokens_of_all_calls_are_the_receipts(
    tmp_path: Path, telemetry: Telemetry, spans: InMemorySpanExporter
) -> None:
    root = make_home(tmp_path / "home")
    (root / "script.yaml").write_text(SCRIPT)
    (root / "a.md").write_text("alpha\n")
    drop_command(root, command(rounds=2))
    settings = Settings(model="scripted:script.yaml", watch="poll")
    app = build_app(Home(root), settings, ProviderKeys(), environ={}, telemetry=telemetry, systems=house())
    await Service(app, once=True).run()
    [receipt] = receipts(root)
    chats = [attributes_of(span) for span in spans.get_finished_spans() if span.name == "chat rehearsal"]
    assert len(chats) == receipt["calls"] == 7
    answered = [chat for chat in chats if "error.type" not in chat]
    assert sum(chat["gen_ai.usage.input_tokens"] for chat in answered) == receipt["tokens"]["input"] == 400
    assert sum(chat["gen_ai.usage.output_tokens"] for chat in answered) == receipt["tokens"]["output"]
    assert sum(chat.get("gen_ai.usage.cache_read.input_tokens", 0) for chat in answered) == receipt["tokens"]["cached"]
    assert {chat["error.type"] for chat in chats if chat not in answered} == {"blocked"}
    assert {chat["gen_ai.provider.name"] for chat in chats} == {"scripted"}
    strategist = next(chat for chat in answered if chat["gen_ai.agent.name"] == "STRATEGIST")
    assert strategist["gen_ai.usage.reasoning.output_tokens"] == 2


async def test_a_call_that_the_budget_refuses_is_no_span(
    tmp_path: Path, telemetry: Telemetry, spans: InMemorySpanExporter
) -> None:
    root = make_home(tmp_path / "home")
    (root / "script.yaml").write_text(SCRIPT)
    drop_command(root, command(config={"max_rounds": 3, "budget": {"max_calls": 3}}))
    app = build_app(
        Home(root),
        Settings(model="scripted:script.yaml", watch="poll"),
        ProviderKeys(),
        environ={},
        telemetry=telemetry,
        systems=house(),
    )
    await Service(app, once=True).run()
    names = [span.name for span in spans.get_finished_spans()]
    assert names.count("chat rehearsal") == receipts(root)[0]["calls"] == 3
    assert names.count("invoke_workflow council") == 1


def test_an_attempt_whose_end_nobody_told_is_ended_by_the_next(
    telemetry: Telemetry, spans: InMemorySpanExporter
) -> None:
    tell = telemetry.tracing.on_event
    tell(TurnStart(run_id="unknown", role="AUDITOR", round=1))
    for attempt in (1, 2):
        tell(RunStart(run_id="r", title="t", attempt=attempt))
        tell(TurnStart(run_id="r", role="AUDITOR", round=1))
    tell(TurnEnd(run_id="r", role="STRATEGIST", round=1, failure=""))
    tell(RunWait(run_id="r", reason="provider", seconds=1.0, until="", error=""))
    telemetry.close()
    ended = spans.get_finished_spans()
    runs = [attributes_of(span) for span in ended if span.name.startswith("invoke_workflow")]
    assert [(run["council.attempt"], run["council.status"]) for run in runs] == [(1, "queued"), (2, "waiting")]
    assert {span.context.trace_id for span in ended if span.context} == {trace_id_of("r")}
    assert len([span for span in ended if span.name == "invoke_agent AUDITOR"]) == 2


def test_what_is_open_at_the_end_is_ended_and_delivered(telemetry: Telemetry, spans: InMemorySpanExporter) -> None:
    telemetry.tracing.on_event(RunStart(run_id="r", title="t"))
    telemetry.close()
    assert [span.name for span in spans.get_finished_spans()] == ["invoke_workflow council"]


class Broken(SpanExporter):
    """Fails twice, then takes what it gets."""

    def __init__(self) -> None:
        self.calls = 0

    def export(self, spans: Any) -> SpanExportResult:
        self.calls += 1
        return SpanExportResult.FAILURE if self.calls <= 2 else SpanExportResult.SUCCESS


def test_a_failing_collector_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    target = SpanDestination("http://me:pass-word@collector:4318/v1/traces", content=False)
    telemetry = open_telemetry(target, Redactor(), Broken())
    for attempt in range(4):
        telemetry.tracing.on_event(RunStart(run_id=f"r{attempt}", title="t"))
        telemetry.tracing.on_event(RunReturn(run_id=f"r{attempt}"))
        telemetry._provider.force_flush()
    telemetry.close()
    said = [record.getMessage() for record in caplog.records]
    assert [message.split(" to ")[0] for message in said] == ["spans cannot be delivered"]
    assert "pass-word" not in caplog.text


@pytest.mark.parametrize(
    ("setting", "environ", "endpoint"),
    [
        (None, {}, None),
        ("http://a:4318", {}, "http://a:4318/v1/traces"),
        ("http://a:4318/v1/traces/", {}, "http://a:4318/v1/traces"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://b/x"}, "https://b/x/v1/traces"),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://b/x"}, "https://b/x"),
        ("http://a:4318", {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://b"}, "http://a:4318/v1/traces"),
        ("http://a:4318", {"OTEL_SDK_DISABLED": "TRUE"}, None),
        ("http://a:4318", {"OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)
def test_the_setting_wins_over_the_environment_and_off_over_both(
    setting: str | None, environ: dict[str, str], endpoint: str | None
) -> None:
    found = wanted(Settings(otel_endpoint=setting), environ)
    assert (found.endpoint if found else None) == endpoint


class Raising(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        raise OSError("no such thing")


def test_an_exporter_that_raises_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = open_telemetry(
        SpanDestination("http://user:secret@collector.test/v1/traces", False), Redactor(), Raising()
    )
    telemetry.tracing.on_event(RunStart(run_id="r1", title="t"))
    telemetry.close()
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith(
        "spans cannot be delivered to http://collector.test/v1/traces (OSError); runs continue without them."
    )


def test_every_name_is_one_of_the_conventions() -> None:
    known = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    ours = set(re.findall(r'"(gen_ai\.[a-z_.]+)"', Path(tracing.__file__).read_text()))
    assert len(ours) > 15
    assert ours - known == set()


@pytest.mark.parametrize(("value", "is_on"), [("true", True), ("false", False), (True, True)])
def test_a_switch_takes_true_and_false(value: object, is_on: bool) -> None:
    assert Settings(otel_content=value).otel_content is is_on  # type: ignore[arg-type]
