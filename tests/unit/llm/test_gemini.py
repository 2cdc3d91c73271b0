"""The Gemini adapter, through the real SDK, against the fake service on loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from council.errors import ModelError, ModelErrorKind
from council.llm.base import Message, ToolCall, ToolSpec, Usage
from council.llm.gemini import GeminiModel
from council.redaction import Secret
from tests import fake_gemini
from tests.fake_gemini import FakeGemini, FakeReply

KEY = "test-key-0123456789abcdef"
ASK = [Message("user", "What now?")]


@pytest.fixture
def fake() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        yield server


@pytest.fixture
async def model(fake: FakeGemini) -> AsyncIterator[GeminiModel]:
    model = GeminiModel(api_key=Secret(KEY), base_url=fake.url, request_timeout_s=20)
    yield model
    await model.aclose()


def always(fake: FakeGemini, reply: FakeReply) -> None:
    fake.reply = lambda request: reply


async def failure_of(model: GeminiModel, *, streamed: bool = False) -> ModelError:
    pieces: list[str] = []
    with pytest.raises(ModelError) as caught:
        await model.generate(ASK, system="s", on_text=pieces.append if streamed else None)
    return caught.value


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_system_text_goes_as_system_instruction_and_messages_stay_separate_contents(
    fake: FakeGemini, model: GeminiModel
) -> None:
    messages = [Message("user", "one"), Message("user", "two"), Message("model", "three"), Message("user", "four")]
    await model.generate(messages, system="You are STRATEGIST.")
    sent = fake.requests[0]
    assert sent.system == "You are STRATEGIST."
    assert sent.roles == ["user", "user", "model", "user"]
    assert sent.all_texts == ["one", "two", "three", "four"]
    assert sent.model == "gemini-2.5-flash"


async def test_without_a_system_text_no_instruction_is_sent(fake: FakeGemini, model: GeminiModel) -> None:
    await model.generate(ASK, system="")
    assert "systemInstruction" not in fake.requests[0].body


async def test_limits_and_temperature_are_sent_and_a_call_can_override_them(fake: FakeGemini) -> None:
    model = GeminiModel(api_key=Secret(KEY), base_url=fake.url, max_output_tokens=500, temperature=0.5)
    await model.generate(ASK, system="")
    await model.generate(ASK, system="", max_output_tokens=20, temperature=0.0)
    await model.aclose()
    configs = [request.body["generationConfig"] for request in fake.requests]
    assert configs == [{"maxOutputTokens": 500, "temperature": 0.5}, {"maxOutputTokens": 20, "temperature": 0.0}]


async def test_a_schema_asks_for_json_of_that_schema(fake: FakeGemini, model: GeminiModel) -> None:
    schema = {"type": "object", "properties": {"vote": {"type": "string"}}, "required": ["vote"]}
    always(fake, fake_gemini.text('{"vote": "yes"}'))
    reply = await model.generate(ASK, system="", schema=schema)
    config = fake.requests[0].body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == schema
    assert json.loads(reply.text) == {"vote": "yes"}


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_tools_are_declared_and_calls_come_back(fake: FakeGemini, model: GeminiModel, streamed: bool) -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    always(fake, fake_gemini.function_call("read_file", {"path": "a.md"}, id="c1", say="Let me look."))
    tools = [ToolSpec("read_file", "Reads a file.", parameters)]
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", tools=tools, on_text=pieces.append if streamed else None)
    declared = fake.requests[0].body["tools"][0]["functionDeclarations"]
    # The SDK sends this one field in snake case; the service reads both spellings.
    assert declared == [{"name": "read_file", "description": "Reads a file.", "parameters_json_schema": parameters}]
    assert reply.tool_calls == (ToolCall("read_file", {"path": "a.md"}, "c1"),)
    assert (reply.finish, reply.text) == ("tool_calls", "Let me look.")
    assert len(fake.requests) == 1


async def test_the_key_travels_in_a_header_and_not_in_the_address(fake: FakeGemini, model: GeminiModel) -> None:
    await model.generate(ASK, system="")
    assert fake.requests[0].api_key == KEY
    assert KEY not in fake.requests[0].path


async def test_the_timeout_is_told_to_the_server_in_seconds(fake: FakeGemini, model: GeminiModel) -> None:
    await model.generate(ASK, system="")
    assert fake.requests[0].headers["x-server-timeout"] == "20"


async def test_the_api_version_is_v1_unless_named(fake: FakeGemini, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_GENAI_API_VERSION", raising=False)
    for version in (None, "v1beta"):
        model = GeminiModel(api_key=Secret(KEY), base_url=fake.url, api_version=version)
        await model.generate(ASK, system="")
        await model.aclose()
    assert [request.path.split("/")[1] for request in fake.requests] == ["v1", "v1beta"]


async def test_the_environment_can_name_the_base_url(fake: FakeGemini, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
    model = GeminiModel(api_key=Secret(KEY))
    await model.generate(ASK, system="")
    await model.aclose()
    assert len(fake.requests) == 1


async def test_the_environment_cannot_divert_to_vertex_or_to_another_key(
    fake: FakeGemini, model: GeminiModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key-0123456789")
    await model.generate(ASK, system="")
    assert fake.requests[0].api_key == KEY
    assert fake.requests[0].path.startswith("/v1/models/")


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_an_answer_carries_text_finish_name_and_all_four_counts(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.text("Ship it.", thought="hm", prompt=100, output=10, thoughts=5, cached=60))
    reply = await model.generate(ASK, system="")
    assert (reply.text, reply.finish, reply.model) == ("Ship it.", "stop", "gemini:gemini-2.5-flash")
    assert reply.usage == Usage(input_tokens=100, output_tokens=15, cached_tokens=60, thought_tokens=5)


async def test_a_stream_gives_the_pieces_and_the_whole_reply(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.text("Ship it on Friday.", thought="hm", pieces=3, thoughts=5))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", on_text=pieces.append)
    assert pieces == ["Ship i", "t on F", "riday."]
    assert (reply.text, reply.finish) == ("Ship it on Friday.", "stop")
    assert reply.usage == Usage(input_tokens=12, output_tokens=12, thought_tokens=5)
    assert fake.requests[0].streamed


@pytest.mark.parametrize("streamed", [False, True])
async def test_text_cut_at_the_output_limit_is_a_reply_with_finish_length(
    fake: FakeGemini, model: GeminiModel, streamed: bool
) -> None:
    always(fake, fake_gemini.max_tokens("Ship i"))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", on_text=pieces.append if streamed else None)
    assert (reply.text, reply.finish) == ("Ship i", "length")


async def test_a_server_that_wants_to_continue_for_ever_gets_one_request(fake: FakeGemini, model: GeminiModel) -> None:
    candidate = {
        "content": {"role": "model", "parts": [{"text": "more"}]},
        "finishReason": "CONTINUATION",
        "continuationToken": "bmV4dA==",
    }
    always(fake, fake_gemini.raw(json.dumps({"candidates": [candidate]})))
    assert (await model.generate(ASK, system="")).finish == "length"
    assert len(fake.requests) == 1


async def test_unknown_fields_of_a_newer_service_are_tolerated(fake: FakeGemini, model: GeminiModel) -> None:
    answer = {
        "candidates": [{"content": {"parts": [{"text": "ok", "novel": 1}]}, "finishReason": "STOP", "x": {}}],
        "y": 2,
    }
    always(fake, fake_gemini.raw(json.dumps(answer)))
    assert (await model.generate(ASK, system="")).text == "ok"


# --- failures: every row of the table ---------------------------------------------------------------------------------

QUOTA_TEXT = (
    "You exceeded your current quota, please check your plan and billing details. "
    "* Quota exceeded for metric: generate_content_free_tier_requests, limit: 20, model: gemini-2.5-flash"
)
STATUS_ROWS: list[tuple[str, FakeReply, ModelErrorKind]] = [
    ("429", fake_gemini.error(429), "rate"),
    ("429 with the usual words about plan and billing", fake_gemini.error(429, message=QUOTA_TEXT), "rate"),
    ("429 prepaid credit", fake_gemini.error(429, message="Your prepayment credits are depleted."), "billing"),
    ("429 spending cap", fake_gemini.error(429, message="Your project has exceeded its spending cap."), "billing"),
    ("429 plan without the model", fake_gemini.error(429, message="Quota exceeded, limit: 0, model: x"), "billing"),
    ("400 bad key", fake_gemini.error(400, "API_KEY_INVALID", message="API key not valid."), "auth"),
    ("400 expired key", fake_gemini.error(400, message="API key expired. Please renew the API key."), "auth"),
    ("400 billing", fake_gemini.error(400, message="Please enable billing on your project."), "billing"),
    ("400", fake_gemini.error(400, message="The input token count exceeds the maximum."), "request"),
    ("400 about a field named billing", fake_gemini.error(400, message="Unknown name billing_address"), "request"),
    ("401", fake_gemini.error(401), "auth"),
    ("402", fake_gemini.error(402), "billing"),
    ("403", fake_gemini.error(403), "auth"),
    ("403 billing", fake_gemini.error(403, "BILLING_DISABLED", message="This API requires billing."), "billing"),
    ("404", fake_gemini.error(404), "not_found"),
    ("408", fake_gemini.error(408), "timeout"),
    ("413", fake_gemini.error(413), "request"),
    ("500", fake_gemini.error(500), "server"),
    ("502 html", fake_gemini.raw("<html><h1>Bad Gateway</h1></html>", status=502, content_type="text/html"), "server"),
    ("503", fake_gemini.error(503), "overload"),
    ("503 html", fake_gemini.raw("<html>busy</html>", status=503, content_type="text/html"), "overload"),
    ("504", fake_gemini.error(504), "timeout"),
    ("500 with a body that is a JSON string", fake_gemini.raw('"oops"', status=500), "server"),
    ("400 with an empty body", fake_gemini.raw("", status=400), "request"),
    ("204", fake_gemini.raw("", status=204), "protocol"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(("reply", "kind"), [row[1:] for row in STATUS_ROWS], ids=[row[0] for row in STATUS_ROWS])
async def test_an_error_status_becomes_the_kind_that_says_what_to_do(
    fake: FakeGemini, model: GeminiModel, reply: FakeReply, kind: ModelErrorKind, streamed: bool
) -> None:
    always(fake, reply)
    error = await failure_of(model, streamed=streamed)
    assert error.kind == kind
    assert "gemini:gemini-2.5-flash" in error.message
    assert error.model == "gemini:gemini-2.5-flash"
    assert error.fix != ""
    assert "<" not in error.message
    assert len(fake.requests) == 1


OTHER_ROWS: list[tuple[str, FakeReply, ModelErrorKind, ModelErrorKind]] = [
    ("connection dropped at once", fake_gemini.drop(), "network", "network"),
    ("connection dropped in the middle", fake_gemini.drop("Ship i"), "network", "network"),
    ("not JSON", fake_gemini.raw('{"candidates": ['), "protocol", "protocol"),
    ("JSON of another shape", fake_gemini.raw('{"candidates": "yes"}'), "empty", "protocol"),
    ("HTML with status 200", fake_gemini.raw("<html>log in</html>", content_type="text/html"), "protocol", "protocol"),
    ("redirect", fake_gemini.redirect("http://127.0.0.1:9/"), "network", "network"),
    ("prompt blocked", fake_gemini.blocked(), "blocked", "blocked"),
    ("prohibited prompt", fake_gemini.blocked("PROHIBITED_CONTENT"), "blocked", "blocked"),
    ("safety", fake_gemini.safety(), "blocked", "blocked"),
    ("safety after some text", fake_gemini.safety(partial="Ship i"), "blocked", "blocked"),
    ("recitation", fake_gemini.safety("RECITATION"), "blocked", "blocked"),
    ("personal data", fake_gemini.safety("SPII"), "blocked", "blocked"),
    ("malformed call", fake_gemini.safety("MALFORMED_FUNCTION_CALL"), "protocol", "protocol"),
    ("output limit spent on thinking", fake_gemini.max_tokens(), "length", "length"),
    ("no candidate", fake_gemini.empty(), "empty", "empty"),
    ("no text", fake_gemini.text(""), "empty", "empty"),
    ("white space", fake_gemini.text(" \n "), "empty", "empty"),
    ("an error in the middle", fake_gemini.error_in_stream(503), "overload", "overload"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(
    ("reply", "plain", "stream"), [row[1:] for row in OTHER_ROWS], ids=[row[0] for row in OTHER_ROWS]
)
async def test_an_answer_that_is_none_becomes_the_kind_that_says_what_to_do(
    fake: FakeGemini,
    model: GeminiModel,
    reply: FakeReply,
    plain: ModelErrorKind,
    stream: ModelErrorKind,
    streamed: bool,
) -> None:
    always(fake, reply)
    error = await failure_of(model, streamed=streamed)
    assert error.kind == (stream if streamed else plain)
    assert error.fix != ""


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "SPII", "LANGUAGE", "A_REASON_OF_TOMORROW"])
@pytest.mark.filterwarnings("ignore:A_REASON_OF_TOMORROW is not a valid")
async def test_a_blocked_answer_names_the_reason(fake: FakeGemini, model: GeminiModel, reason: str) -> None:
    always(fake, fake_gemini.safety(reason))
    error = await failure_of(model)
    assert error.kind == "blocked"
    assert reason in error.message
    assert error.data["reason"] == reason


async def test_an_error_object_without_a_code_in_a_stream_is_still_a_model_error(
    fake: FakeGemini, model: GeminiModel
) -> None:
    always(fake, fake_gemini.raw('data: {"error": {"message": "odd"}}\r\n\r\n', content_type="text/event-stream"))
    assert (await failure_of(model, streamed=True)).kind == "protocol"


async def test_a_base_url_that_is_none_is_a_request_error() -> None:
    model = GeminiModel(api_key=Secret(KEY), base_url="ftp://example.invalid")
    error = await failure_of(model)
    assert (error.kind, error.fatal) == ("request", True)
    assert "base URL" in error.fix
    await model.aclose()


async def test_a_read_timeout_of_the_transport_is_a_timeout(fake: FakeGemini, model: GeminiModel) -> None:
    import httpx2

    assert model._failure(httpx2.ReadTimeout("timed out")).kind == "timeout"
    assert model._failure(httpx2.ConnectTimeout("timed out")).kind == "timeout"


async def test_the_longer_of_header_and_retry_info_is_the_wait(fake: FakeGemini, model: GeminiModel) -> None:
    cases = [
        (fake_gemini.error(429, retry_after=7), 7.0),
        (fake_gemini.error(429, retry_delay="2s"), 2.0),
        (fake_gemini.error(429, retry_after=1, retry_delay="2.5s"), 2.5),
        (fake_gemini.error(503, retry_after=9, retry_delay="2s"), 9.0),
        (fake_gemini.error(429, retry_after="soon"), None),
        (fake_gemini.error(429, retry_after="inf"), None),
        (fake_gemini.error(429, retry_after=-3), 0.0),
        (fake_gemini.error(429), None),
    ]
    fake.reply = fake_gemini.in_turn(*(reply for reply, _ in cases))
    assert [(await failure_of(model)).retry_after_s for _ in cases] == [wait for _, wait in cases]


async def test_a_daily_quota_is_not_asked_again_after_seconds(fake: FakeGemini, model: GeminiModel) -> None:
    quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    always(fake, fake_gemini.error(429, message=QUOTA_TEXT, retry_delay="5s", quota_id=quota))
    error = await failure_of(model)
    assert (error.kind, error.retry_after_s) == ("rate", 3600)
    assert "daily quota" in error.fix


# --- the key ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", "   "])
async def test_a_key_that_is_empty_is_an_auth_error_before_any_call(
    fake: FakeGemini, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-the-environment-0123")
    model = GeminiModel(api_key=Secret(key), base_url=fake.url)
    error = await failure_of(model)
    assert error.kind == "auth"
    assert fake.requests == []
    await model.aclose()


# --- the fake as a process --------------------------------------------------------------------------------------------


async def test_the_fake_runs_as_a_process_with_a_script_and_a_record(tmp_path: Path) -> None:
    port_file, record, script = tmp_path / "port", tmp_path / "record.jsonl", tmp_path / "script.json"
    script.write_text(json.dumps([{"system": "AUDITOR", "reply": "error", "with": {"status": 503}}]))
    arguments = ["--port-file", port_file, "--record", record, "--script", script, "--max-seconds", "60"]
    process = subprocess.Popen([sys.executable, fake_gemini.__file__, *map(str, arguments)])
    try:
        async with asyncio.timeout(20):
            while not port_file.exists():
                await asyncio.sleep(0.01)
        model = GeminiModel(api_key=Secret(KEY), base_url=f"http://127.0.0.1:{port_file.read_text()}")
        with pytest.raises(ModelError, match="503"):
            await model.generate(ASK, system="You are AUDITOR.")
        assert (await model.generate(ASK, system="You are AUDITOR.")).text.startswith("AUDITOR ")
        await model.aclose()
    finally:
        process.terminate()
        assert process.wait(timeout=10) == 0
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["body"]["contents"][0]["parts"][0]["text"] for line in lines] == ["What now?", "What now?"]
    assert KEY not in record.read_text()
