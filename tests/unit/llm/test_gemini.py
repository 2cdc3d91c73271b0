"""The Gemini adapter, through the real SDK, against the fake service on loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from council.errors import ModelError, ModelErrorKind
from council.llm.base import Message, ToolCall, ToolSpec, Usage
from council.llm.gemini import GeminiModel
from council.redaction import Secret
from tests import fake_gemini
from tests.fake_gemini import FakeGemini, FakeReply
from tests.fake_server import no_way_in

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


async def test_tools_are_declared_and_calls_come_back(fake: FakeGemini, model: GeminiModel) -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    always(fake, fake_gemini.function_call("read_file", {"path": "a.md"}, id="c1", say="Let me look."))
    reply = await model.generate(ASK, system="", tools=[ToolSpec("read_file", "Reads a file.", parameters)])
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


async def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeGemini() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        model = GeminiModel(api_key=Secret(KEY), base_url="http://gemini.invalid", request_timeout_s=5)
        await model.generate(ASK, system="")
        await model.aclose()
        assert [request.path.split("models")[0] for request in proxy.requests] == ["http://gemini.invalid/v1/"]


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_an_answer_carries_text_finish_name_and_all_four_counts(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.text("Ship it.", thought="hm", prompt=100, output=10, thoughts=5, cached=60))
    reply = await model.generate(ASK, system="")
    assert (reply.text, reply.finish, reply.model) == ("Ship it.", "stop", "gemini:gemini-2.5-flash")
    assert reply.usage == Usage(input_tokens=100, output_tokens=15, cached_tokens=60, thought_tokens=5)


async def test_uncounted_tokens_are_unknown_and_not_zero(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.text("Ship it.", counted=False))
    assert (await model.generate(ASK, system="")).usage is None


async def test_a_stream_gives_the_pieces_and_the_whole_reply(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.text("Ship it on Friday.", thought="hm", pieces=3, thoughts=5))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", on_text=pieces.append)
    assert pieces == ["Ship i", "t on F", "riday."]
    assert (reply.text, reply.finish) == ("Ship it on Friday.", "stop")
    assert reply.usage == Usage(input_tokens=12, output_tokens=12, thought_tokens=5)
    assert fake.requests[0].streamed


async def test_a_streamed_function_call_is_returned(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.function_call("read_file", {"path": "a.md"}))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", on_text=pieces.append)
    assert reply.tool_calls == (ToolCall("read_file", {"path": "a.md"}),)
    assert pieces == []


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


async def test_a_stream_that_ends_in_good_order_without_a_finish_reason_is_no_reply(
    fake: FakeGemini, model: GeminiModel
) -> None:
    always(fake, fake_gemini.unfinished("Ship i"))
    error = await failure_of(model, streamed=True)
    assert (error.kind, error.retryable) == ("protocol", True)


async def test_an_error_object_without_a_code_in_a_stream_is_still_a_model_error(
    fake: FakeGemini, model: GeminiModel
) -> None:
    always(fake, fake_gemini.raw('data: {"error": {"message": "odd"}}\r\n\r\n', content_type="text/event-stream"))
    assert (await failure_of(model, streamed=True)).kind == "protocol"


async def test_a_refused_connection_is_a_network_error() -> None:
    with FakeGemini() as closed:
        url = closed.url
    model = GeminiModel(api_key=Secret(KEY), base_url=url)
    assert (await failure_of(model)).kind == "network"
    await model.aclose()


async def test_a_host_without_an_address_is_unreachable() -> None:
    model = GeminiModel(api_key=Secret(KEY), base_url="http://gemini.invalid")
    assert (await failure_of(model)).kind == "unreachable"
    await model.aclose()


async def test_a_connection_that_is_not_made_is_unreachable_within_a_short_limit() -> None:
    with no_way_in() as url:
        model = GeminiModel(api_key=Secret(KEY), base_url=url, request_timeout_s=1)
        assert (await failure_of(model)).kind == "unreachable"
        await model.aclose()


async def test_a_base_url_that_is_none_is_a_request_error() -> None:
    model = GeminiModel(api_key=Secret(KEY), base_url="ftp://example.invalid")
    error = await failure_of(model)
    assert (error.kind, error.fatal) == ("request", True)
    assert "base URL" in error.fix
    await model.aclose()


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_silence_beyond_the_limit_is_a_timeout(fake: FakeGemini, streamed: bool) -> None:
    always(fake, fake_gemini.slow(30))
    model = GeminiModel(api_key=Secret(KEY), base_url=fake.url, request_timeout_s=0.2)
    error = await failure_of(model, streamed=streamed)
    assert (error.kind, error.retryable) == ("timeout", True)
    await model.aclose()


async def test_the_limit_bounds_the_whole_call_and_not_each_chunk(fake: FakeGemini) -> None:
    always(fake, fake_gemini.text("x" * 1000, pieces=1000, between_s=0.05))
    model = GeminiModel(api_key=Secret(KEY), base_url=fake.url, request_timeout_s=0.5)
    error = await failure_of(model, streamed=True)
    assert error.kind == "timeout"
    assert "0.5 s" in error.message
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


async def test_a_retry_after_date_is_counted_from_now(fake: FakeGemini, model: GeminiModel) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    always(fake, fake_gemini.error(429, retry_after=format_datetime(later, usegmt=True)))
    wait_s = (await failure_of(model)).retry_after_s
    assert wait_s is not None
    assert 3500 < wait_s <= 3600


async def test_a_daily_quota_is_not_asked_again_after_seconds(fake: FakeGemini, model: GeminiModel) -> None:
    quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    always(fake, fake_gemini.error(429, message=QUOTA_TEXT, retry_delay="5s", quota_id=quota))
    error = await failure_of(model)
    assert (error.kind, error.retry_after_s) == ("rate", 3600)
    assert "daily quota" in error.fix


async def test_a_provider_page_is_cut_to_one_short_line(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.raw("<p>\nbusy\n</p>" * 5000, status=503, content_type="text/html"))
    message = (await failure_of(model)).message
    assert len(message) < 400
    assert "\n" not in message


# --- the key ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [KEY, f" {KEY}\n"], ids=["plain", "with white space"])
async def test_a_service_that_repeats_the_key_does_not_get_it_into_the_message(fake: FakeGemini, given: str) -> None:
    model = GeminiModel(api_key=Secret(given), base_url=fake.url)
    always(fake, fake_gemini.error(400, "API_KEY_INVALID", message="x" * 290 + KEY + " is not valid"))
    error = await failure_of(model)
    assert error.kind == "auth"
    assert KEY[:8] not in str(error)
    assert "GEMINI_API_KEY" in error.fix
    await model.aclose()


@pytest.mark.parametrize("key", ["", "   ", "abc\ndefghijklmnop", "schlüssel-0123456789", "two words 0123456789"])
async def test_a_key_that_cannot_be_one_is_an_auth_error_before_any_call(
    fake: FakeGemini, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-the-environment-0123")
    model = GeminiModel(api_key=Secret(key), base_url=fake.url)
    error = await failure_of(model)
    assert error.kind == "auth"
    assert "abc" not in error.message
    assert "schl" not in error.message
    assert fake.requests == []
    await model.aclose()


async def test_a_redirect_is_not_followed_with_the_key(fake: FakeGemini, model: GeminiModel) -> None:
    with FakeGemini() as elsewhere:
        always(fake, fake_gemini.redirect(f"{elsewhere.url}/v1/models/m:generateContent"))
        error = await failure_of(model)
        assert elsewhere.requests == []
    assert (error.kind, error.retryable) == ("network", True)


async def test_no_cause_hangs_on_the_error_that_could_quote_the_key(fake: FakeGemini, model: GeminiModel) -> None:
    always(fake, fake_gemini.error(500))
    error = await failure_of(model)
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_the_key_is_not_in_the_repr() -> None:
    assert KEY not in repr(vars(GeminiModel(api_key=Secret(KEY))))


# --- life -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_cancelling_the_task_ends_a_call_in_flight(fake: FakeGemini, model: GeminiModel, streamed: bool) -> None:
    always(fake, fake_gemini.slow(30))
    pieces: list[str] = []
    call = asyncio.create_task(model.generate(ASK, system="", on_text=pieces.append if streamed else None))
    await asyncio.to_thread(fake.wait_for_requests, 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    fake.reply = fake_gemini.default_reply
    assert (await model.generate(ASK, system="")).finish == "stop"


@pytest.mark.parametrize("mistake", [RuntimeError("listener"), ValueError("listener"), TypeError("listener")])
async def test_a_mistake_of_the_listener_is_not_taken_for_the_providers(model: GeminiModel, mistake: Exception) -> None:
    def listen(piece: str) -> None:
        raise mistake

    with pytest.raises(type(mistake), match="listener"):
        await model.generate(ASK, system="", on_text=listen)


async def test_calls_at_the_same_time_get_their_own_answers(fake: FakeGemini, model: GeminiModel) -> None:
    together = threading.Barrier(5)

    def reply(request: fake_gemini.RecordedRequest) -> FakeReply:
        together.wait(timeout=10)
        return fake_gemini.text(f"to {request.texts[0]}")

    fake.reply = reply
    replies = await asyncio.gather(*(model.generate([Message("user", str(n))], system="") for n in range(5)))
    assert [reply.text for reply in replies] == [f"to {n}" for n in range(5)]


async def test_after_closing_a_call_opens_the_connection_again(fake: FakeGemini, model: GeminiModel) -> None:
    await model.generate(ASK, system="")
    await model.aclose()
    await model.aclose()
    assert (await model.generate(ASK, system="")).finish == "stop"


def test_one_model_serves_several_event_loops_one_after_the_other(fake: FakeGemini) -> None:
    model = GeminiModel(api_key=Secret(KEY), base_url=fake.url)

    async def call() -> str:
        return (await model.generate(ASK, system="")).text

    assert asyncio.run(call()) == asyncio.run(call())
    asyncio.run(model.aclose())
    assert len(fake.requests) == 2


def test_importing_the_adapter_does_not_import_the_sdk() -> None:
    code = "import sys, council.llm.gemini; print(sorted({'google.genai', 'httpx2'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


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
