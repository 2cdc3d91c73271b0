"""The OpenAI-compatible adapter, over a real connection, against a fake server that has the manners of the real ones."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from council.errors import ModelError, ModelErrorKind
from council.llm import openai_compatible
from council.llm.base import Message, ToolCall, ToolSpec, Usage
from council.llm.openai_compatible import OpenAICompatibleModel
from council.llm.openai_dialect import Server
from council.llm.providers import ListedModel
from council.redaction import Secret
from tests import fake_openai
from tests.fake_openai import FakeOpenAI, FakeReply, Manners

KEY = "sk-test-0123456789abcdef"
ASK = [Message("user", "What now?")]
SCHEMA = {"type": "object", "properties": {"vote": {"type": "string"}}, "required": ["vote"]}
TOOL = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
BOTH_WAYS = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


def at(fake: FakeOpenAI, *, key: str | None = KEY, **settings: Any) -> OpenAICompatibleModel:
    known = {name: settings.pop(name) for name in list(settings) if name in Server.__dataclass_fields__}
    server = Server(**{"name": "openai", "base_url": fake.url, "key_env": "OPENAI_API_KEY", **known})
    secret = Secret(key) if key is not None else None
    return OpenAICompatibleModel("small-1", server=server, api_key=secret, **{"request_timeout_s": 20, **settings})


@pytest.fixture
async def model(fake: FakeOpenAI) -> AsyncIterator[OpenAICompatibleModel]:
    model = at(fake)
    yield model
    await model.aclose()


def always(fake: FakeOpenAI, reply: FakeReply) -> None:
    fake.reply = lambda request: reply


async def said(model: OpenAICompatibleModel, *, streamed: bool, **asked: Any) -> tuple[str, list[str]]:
    pieces: list[str] = []
    reply = await model.generate(ASK, system="s", on_text=pieces.append if streamed else None, **asked)
    return reply.text, pieces


async def failure_of(model: OpenAICompatibleModel, *, streamed: bool = False, **asked: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await said(model, streamed=streamed, **asked)
    return caught.value


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_system_and_messages_go_as_roles_and_neighbours_of_one_role_become_one(fake: FakeOpenAI) -> None:
    fake.manners = Manners(alternating=True)
    messages = [Message("user", "one"), Message("user", "two"), Message("model", "three"), Message("user", "four")]
    model = at(fake)
    await model.generate(messages, system="You are STRATEGIST.")
    await model.aclose()
    [sent] = fake.requests
    assert sent.messages == [
        {"role": "system", "content": "You are STRATEGIST."},
        {"role": "user", "content": "one\n\ntwo"},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": "four"},
    ]
    assert sent.model == "small-1"


async def test_without_a_system_text_no_system_message_is_sent(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    await model.generate(ASK, system="")
    assert fake.requests[0].roles == ["user"]


async def test_limits_and_temperature_are_sent_and_a_call_can_override_them(fake: FakeOpenAI) -> None:
    model = at(fake, max_output_tokens=500, temperature=0.5)
    await model.generate(ASK, system="")
    await model.generate(ASK, system="", max_output_tokens=20, temperature=0.0)
    await model.aclose()
    sent = [(request.body["max_tokens"], request.body["temperature"]) for request in fake.requests]
    assert sent == [(500, 0.5), (20, 0.0)]


async def test_without_a_temperature_none_is_sent(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    await model.generate(ASK, system="")
    assert set(fake.requests[0].body) == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize(
    ("mode", "sent"),
    [
        ("schema", {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}),
        ("object", {"type": "json_object"}),
        ("none", None),
    ],
)
async def test_a_schema_asks_for_json_as_the_server_has_it(fake: FakeOpenAI, mode: str, sent: object) -> None:
    model = at(fake, json_mode=mode)
    await model.generate(ASK, system="", schema=SCHEMA)
    await model.aclose()
    assert fake.requests[0].body.get("response_format") == sent


@pytest.mark.parametrize("system", ["", "Be brief."])
async def test_json_mode_is_asked_for_with_the_word_that_some_servers_insist_on(fake: FakeOpenAI, system: str) -> None:
    fake.manners = Manners(json_word=True)
    model = at(fake, json_mode="object")
    await model.generate(ASK, system=system, schema=SCHEMA)
    await model.generate(ASK, system="Answer in JSON.", schema=SCHEMA)
    await model.aclose()
    assert fake.requests[0].system == f"{system}\n\nAnswer with one JSON object.".lstrip()
    assert fake.requests[1].system == "Answer in JSON."


async def test_the_key_travels_in_a_header_and_a_server_without_one_gets_none(fake: FakeOpenAI) -> None:
    for key in (f" {KEY}\n", None):
        model = at(fake, key=key)
        await model.generate(ASK, system="")
        await model.aclose()
    assert [request.authorization for request in fake.requests] == [f"Bearer {KEY}", ""]
    assert KEY not in json.dumps([request.body for request in fake.requests])


async def test_headers_of_the_server_are_sent(fake: FakeOpenAI) -> None:
    model = at(fake, headers={"X-Team": "archive"})
    await model.generate(ASK, system="")
    await model.aclose()
    assert fake.requests[0].headers["x-team"] == "archive"


@pytest.mark.parametrize("suffix", ["", "/", "/chat/completions"])
async def test_a_base_url_may_end_as_people_write_it(fake: FakeOpenAI, suffix: str) -> None:
    model = at(fake, base_url=fake.url + suffix)
    await model.generate(ASK, system="")
    await model.aclose()
    assert fake.requests[0].path == "/v1/chat/completions"


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_an_answer_carries_text_finish_name_and_all_four_counts(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    always(fake, fake_openai.text("Ship it.", reasoning="hm", prompt=100, output=15, reasoning_tokens=5, cached=60))
    reply = await model.generate(ASK, system="")
    assert (reply.text, reply.finish, reply.model) == ("Ship it.", "stop", "openai:small-1")
    assert reply.usage == Usage(input_tokens=100, output_tokens=15, cached_tokens=60, thought_tokens=5)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, Usage(10, 30)),  # thinking left out
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 8}, Usage(10, 5, 8)),
        ({"prompt_tokens": 0, "completion_tokens": 5}, None),
        ({"prompt_tokens": "10", "completion_tokens": 5}, None),
        ({"prompt_tokens": -1, "completion_tokens": 5}, None),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": None}, Usage(10, 5)),
        ({}, None),
        ([], None),
    ],
)
async def test_counts_are_taken_as_far_as_they_can_be(
    fake: FakeOpenAI, model: OpenAICompatibleModel, counts: object, usage: Usage | None
) -> None:
    choice = {"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}
    always(fake, fake_openai.raw(json.dumps({"choices": [choice], "usage": counts})))
    assert (await model.generate(ASK, system="")).usage == usage


async def test_a_stream_gives_the_pieces_and_the_whole_reply_with_its_counts(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    always(fake, fake_openai.text("Schön: ship it.", reasoning="hm", pieces=3, reasoning_tokens=5, comments=True))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", on_text=pieces.append)
    assert pieces == ["Schön", ": shi", "p it."]
    assert (reply.text, reply.finish) == ("Schön: ship it.", "stop")
    assert reply.usage == Usage(input_tokens=12, output_tokens=7, thought_tokens=5)
    assert fake.requests[0].body["stream_options"] == {"include_usage": True}


async def test_a_server_that_does_not_stream_is_heard_in_one_piece(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    always(fake, fake_openai.text("Ship it.", streams=False))
    assert await said(model, streamed=True) == ("Ship it.", ["Ship it."])


@BOTH_WAYS
async def test_tools_are_offered_and_calls_come_back(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool
) -> None:
    always(fake, fake_openai.tool_call("read_file", '{"path": "a.md"}', id="c1", say="Let me look."))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", tools=[TOOL], on_text=pieces.append if streamed else None)
    function = {"name": "read_file", "description": "Reads a file.", "parameters": TOOL.parameters}
    assert fake.requests[0].body["tools"] == [{"type": "function", "function": function}]
    assert reply.tool_calls == (ToolCall("read_file", {"path": "a.md"}, "c1"),)
    assert (reply.finish, reply.text) == ("tool_calls", "Let me look.")


@BOTH_WAYS
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call"])
async def test_a_call_is_one_whatever_the_server_says_of_its_end(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool, finish: str
) -> None:
    always(fake, fake_openai.tool_call("list_files", "", finish=finish))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", tools=[TOOL], on_text=pieces.append if streamed else None)
    assert (reply.finish, reply.tool_calls) == ("tool_calls", (ToolCall("list_files", {}, "call_1"),))
    assert pieces == []


async def test_fragments_of_calls_without_a_number_are_joined_by_their_id(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    always(fake, fake_openai.tool_call("read_file", '{"path": "a.md"}', numbered=False))
    reply = await model.generate(ASK, system="", tools=[TOOL], on_text=lambda piece: None)
    assert reply.tool_calls == (ToolCall("read_file", {"path": "a.md"}, "call_1"),)


async def test_two_whole_calls_that_share_a_number_are_two(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    def call(id: str, path: str) -> dict[str, Any]:
        function = {"name": "read_file", "arguments": json.dumps({"path": path})}
        return fake_openai.chunk({"tool_calls": [{"index": 0, "id": id, "function": function}]})

    always(fake, FakeReply((call("a", "1.md"), call("b", "2.md"), fake_openai.chunk({}, "tool_calls"))))
    reply = await model.generate(ASK, system="", tools=[TOOL], on_text=lambda piece: None)
    assert [called.arguments["path"] for called in reply.tool_calls] == ["1.md", "2.md"]


@BOTH_WAYS
@pytest.mark.parametrize("finish", ["length", "max_tokens", "model_length"])
async def test_text_cut_at_the_output_limit_is_a_reply_with_finish_length(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool, finish: str
) -> None:
    always(fake, fake_openai.text("Ship i", finish=finish))
    pieces: list[str] = []
    reply = await model.generate(ASK, system="", on_text=pieces.append if streamed else None)
    assert (reply.text, reply.finish) == ("Ship i", "length")


@BOTH_WAYS
@pytest.mark.parametrize("finish", ["stop", "eos_token", "end_turn", "STOP", None])
async def test_a_whole_answer_is_one_by_any_of_the_names_for_it(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool, finish: str | None
) -> None:
    always(fake, fake_openai.text("Ship it.", finish=finish))
    assert (await said(model, streamed=streamed))[0] == "Ship it."


@BOTH_WAYS
async def test_content_as_a_list_of_parts_is_its_text(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool
) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    always(fake, fake_openai.parts(thought, {"type": "text", "text": "Ship "}, {"type": "text", "text": "it."}))
    assert (await said(model, streamed=streamed))[0] == "Ship it."


async def test_unknown_fields_of_a_newer_server_are_tolerated(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    choice = {"message": {"content": "ok", "novel": 1}, "finish_reason": "stop", "logprobs": None}
    always(fake, fake_openai.raw(json.dumps({"choices": [choice], "error": None, "x": {}})))
    assert (await model.generate(ASK, system="")).text == "ok"


# --- thoughts ---------------------------------------------------------------------------------------------------------


@BOTH_WAYS
@pytest.mark.parametrize("pieces", [1, 2, 5, 60])
@pytest.mark.parametrize(
    "answer", ["<think>\nFirst </thi nk...\n</think>\n\nShip it.", "\n <THINKING>a</thinking><think>b</think> Ship it."]
)
async def test_thoughts_are_no_part_of_the_reply(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool, pieces: int, answer: str
) -> None:
    always(fake, fake_openai.text(answer, pieces=pieces))
    text, heard = await said(model, streamed=streamed)
    assert text == "Ship it."
    assert "".join(heard) == (answer if streamed else "")


@BOTH_WAYS
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_in_a_field_of_its_own_is_no_part_of_the_reply(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool, field: str
) -> None:
    always(fake, fake_openai.text("Ship it.", reasoning="Let me see.", reasoning_field=field))
    text, heard = await said(model, streamed=streamed)
    assert text == "Ship it."
    assert "".join(heard) in ("", "Ship it.")


@pytest.mark.parametrize("answer", ["<thin ice is cold", "<", "  a </think in words", "x < y"])
async def test_what_only_begins_like_a_thought_is_told_whole(
    fake: FakeOpenAI, model: OpenAICompatibleModel, answer: str
) -> None:
    always(fake, fake_openai.text(answer, pieces=40))
    text, heard = await said(model, streamed=True)
    assert text == "".join(heard) == answer


@BOTH_WAYS
async def test_a_thought_that_began_in_the_prompt_is_taken_out(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool
) -> None:
    always(fake, fake_openai.text("First I see.\n</think>\n\nShip it."))
    assert (await said(model, streamed=streamed))[0] == "Ship it."


@BOTH_WAYS
async def test_a_limit_reached_while_thinking_is_told_as_that(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool
) -> None:
    for reply in (
        fake_openai.text("<think>and so on", finish="length"),
        fake_openai.text("", reasoning="and so on", finish="length"),
        fake_openai.text("", reasoning="and so on", finish="length", reasoning_tokens=6),
    ):
        always(fake, reply)
        error = await failure_of(model, streamed=streamed)
        assert error.kind == "length"
        assert "thinking" in error.message
        assert "max_output_tokens" in error.fix


# --- what a server refuses, once --------------------------------------------------------------------------------------


@BOTH_WAYS
@pytest.mark.parametrize("by_name", [True, False], ids=["by name", "without a word"])
async def test_json_mode_that_is_refused_is_left_out_once_and_remembered(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool, by_name: bool
) -> None:
    fake.manners = Manners(response_format="none", names_response_format=by_name)
    for _ in range(2):
        await said(model, streamed=streamed, schema=SCHEMA)
    assert ["response_format" in request.body for request in fake.requests] == [True, False, False]


async def test_a_request_that_is_refused_for_another_reason_is_asked_once_more_and_json_mode_stays(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    always(fake, fake_openai.error(400, "Bad request"))
    for _ in range(2):
        assert (await failure_of(model, schema=SCHEMA)).kind == "request"
    assert ["response_format" in request.body for request in fake.requests] == [True, False] * 2


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
async def test_a_failure_that_is_not_about_json_mode_is_not_asked_again(
    fake: FakeOpenAI, model: OpenAICompatibleModel, status: int
) -> None:
    always(fake, fake_openai.error(status))
    await failure_of(model, schema=SCHEMA)
    assert len(fake.requests) == 1


async def test_a_stream_from_a_server_that_knows_no_usage_there_is_had_without(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    fake.manners = Manners(stream_options=False)
    always(fake, fake_openai.text("Ship it.", counted=False))
    for _ in range(2):
        assert (await said(model, streamed=True))[0] == "Ship it."
    assert ["stream_options" in request.body for request in fake.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("wanted", "sent"), [("max_completion_tokens", "max_tokens"), ("max_tokens", "max_completion_tokens")]
)
async def test_the_token_limit_goes_by_the_name_that_the_server_knows(fake: FakeOpenAI, wanted: Any, sent: str) -> None:
    fake.manners = Manners(token_limit_field=wanted)
    model = at(fake, token_limit_field=sent, max_output_tokens=99)
    for _ in range(2):
        await model.generate(ASK, system="")
    await model.aclose()
    assert [request.body.get(wanted) for request in fake.requests] == [None, 99, 99]
    assert sent not in fake.requests[1].body


async def test_native_tools_that_the_model_does_not_have_are_left_out(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    fake.manners = Manners(tools=False)
    for _ in range(2):
        await said(model, streamed=False, tools=[TOOL])
    assert ["tools" in request.body for request in fake.requests] == [True, False, False]
    assert model.native_tools is False


async def test_a_template_without_a_system_role_gets_that_text_first_in_the_users(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    fake.manners = Manners(system_role=False, alternating=True)
    for _ in range(2):
        await model.generate(ASK, system="You are STRATEGIST.")
    assert [request.roles for request in fake.requests] == [["system", "user"], ["user"], ["user"]]
    assert fake.requests[1].texts == ["You are STRATEGIST.\n\nWhat now?"]


async def test_a_server_that_refuses_everything_is_asked_a_bounded_number_of_times(fake: FakeOpenAI) -> None:
    fake.manners = Manners(
        response_format="none", stream_options=False, token_limit_field="max_completion_tokens", tools=False,
        system_role=False,
    )  # fmt: skip
    model = at(fake)
    text, _ = await said(model, streamed=True, schema=SCHEMA, tools=[TOOL])
    assert text.startswith("MODEL has read")
    assert len(fake.requests) == 6
    always(fake, fake_openai.error(400, "unknown max_tokens max_completion_tokens stream_options tools json_schema"))
    await failure_of(model, streamed=True, schema=SCHEMA, tools=[TOOL])
    await model.aclose()
    assert len(fake.requests) < 10


# --- failures: every row of the table ---------------------------------------------------------------------------------

OPENAI_QUOTA = "You exceeded your current quota, please check your plan and billing details."
RATE = "Rate limit reached for small-1 on requests per min. You can increase your limit by adding a payment method."
VLLM_CONTEXT = (
    "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens (808 in the messages, "
    "8192 in the completion). Please reduce the length of the messages or completion."
)
LLAMA_CONTEXT = (
    "the request exceeds the available context size. try increasing the context size or enable context shift"
)
TGI_CONTEXT = "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 900 and 8192"
HF_CREDITS = (
    "You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO to get 20x more."
)
HF_UNSUPPORTED = "The requested model 'small-1' is not supported by any provider you have enabled."
HTML = "<html><h1>Bad Gateway</h1></html>"
e = fake_openai.error
raw = fake_openai.raw
STATUS_ROWS: list[tuple[str, FakeReply, ModelErrorKind]] = [
    ("openai: bad key", e(401, "Incorrect API key provided", code="invalid_api_key"), "auth"),
    ("vllm: bad key", e(401, "Unauthorized", shape="string"), "auth"),
    ("403", e(403, "This authentication method does not have sufficient permissions", shape="string"), "auth"),
    ("400 bad key", e(400, "API key not valid. Please pass a valid API key."), "auth"),
    ("openrouter: no key", e(401, "No auth credentials found", shape="openrouter"), "auth"),
    ("openrouter: moderation", e(403, "Your chosen model requires moderation and your input was flagged", shape="openrouter"), "blocked"),  # noqa: E501
    ("azure: filter", e(400, "The response was filtered due to the content management policy", code="content_filter"), "blocked"),
    ("openai: quota", e(429, OPENAI_QUOTA, type="insufficient_quota", code="insufficient_quota"), "billing"),
    ("openai: rate", e(429, RATE, type="requests", code="rate_limit_exceeded"), "rate"),
    ("429 empty", raw("", status=429), "rate"),
    ("hf: credits", e(402, HF_CREDITS, shape="string"), "billing"),
    ("openrouter: credits", e(402, "Insufficient credits. Add more using https://…", shape="openrouter"), "billing"),
    ("openrouter: in flight", e(402, "In-flight budget", shape="openrouter", retry_after=3), "rate"),
    ("403 billing", e(403, "Billing is not active on this account."), "billing"),
    ("openai: model", e(404, "The model `small-1` does not exist", code="model_not_found"), "not_found"),
    ("vllm: model", e(404, "The model `small-1` does not exist.", type="NotFoundError", shape="vllm"), "not_found"),
    ("ollama: model", e(404, 'model "small-1" not found, try pulling it first', type="api_error"), "not_found"),
    ("hf: model", e(400, HF_UNSUPPORTED, code="model_not_supported"), "not_found"),
    ("openrouter: model", e(400, "small-1 is not a valid model ID", shape="openrouter"), "not_found"),
    ("no such page", raw("404 page not found", status=404, content_type="text/plain"), "not_found"),
    ("fastapi: no such page", e(404, "Not Found", shape="detail"), "not_found"),
    ("405", e(405, "Method Not Allowed", shape="detail"), "not_found"),
    ("vllm: context", e(400, VLLM_CONTEXT, shape="vllm"), "request"),
    ("openai: context", e(400, VLLM_CONTEXT, code="context_length_exceeded"), "request"),
    ("llama.cpp: context", e(400, LLAMA_CONTEXT, type="exceed_context_size_error", code=400, n_ctx=256), "request"),
    ("llama.cpp: context, older", e(500, LLAMA_CONTEXT, type="exceed_context_size_error", code=500), "request"),
    ("tgi: context", e(422, TGI_CONTEXT, shape="string"), "request"),
    ("413", raw("too large", status=413), "request"),
    ("400", e(400, "Invalid 'messages[0].content'"), "request"),
    ("400 about a field named billing", e(400, "Unknown name billing_address", code="unknown_field"), "request"),
    ("408", e(408), "timeout"),
    ("409", e(409), "server"),
    ("hf: provider failed", e(424, "Request failed", shape="string"), "server"),
    ("500", e(500, "internal", type="server_error"), "server"),
    ("ollama: runner died", e(500, "llama runner process has terminated", type="api_error"), "server"),
    ("502 html", raw(HTML, status=502, content_type="text/html"), "server"),
    ("503 html", raw(HTML, status=503, content_type="text/html"), "overload"),
    ("hf: loading", e(503, "Model small-1 is currently loading", shape="string"), "overload"),
    ("llama.cpp: loading", e(503, "Loading model", type="unavailable_error", code=503), "overload"),
    ("ollama: busy", e(503, "server busy, please try again. maximum pending requests exceeded"), "overload"),
    ("504", e(504), "timeout"),
    ("524", raw(HTML, status=524, content_type="text/html"), "timeout"),
    ("529", e(529, "Overloaded", type="overloaded_error"), "overload"),
    ("500 with a body that is a JSON string", raw('"oops"', status=500), "server"),
    ("500 with a body nested too deeply", raw("[" * 60_000, status=500), "server"),
    ("400 with an empty body", raw("", status=400), "request"),
    ("204", raw("", status=204), "protocol"),
    ("openrouter: 200, provider down", fake_openai.error_in_200("Provider returned error", 502, provider_name="x", raw="down"), "server"),  # noqa: E501
    ("openrouter: 200, rate", fake_openai.error_in_200("Provider returned error", 429, raw="slow down"), "rate"),
    ("openrouter: 200, credits", fake_openai.error_in_200("Insufficient credits", 402), "billing"),
    ("openrouter: 200, code in words", fake_openai.error_in_200("no", "rate_limit_exceeded"), "rate"),
    ("openrouter: 200, no code", fake_openai.error_in_200("Internal", None), "server"),
    ("200 with an error string", raw('{"error": "model is overloaded"}'), "server"),
    ("llama.cpp: 200, context", raw(json.dumps({"error": {"code": 400, "message": LLAMA_CONTEXT}})), "request"),
]  # fmt: skip


@BOTH_WAYS
@pytest.mark.parametrize(("reply", "kind"), [row[1:] for row in STATUS_ROWS], ids=[row[0] for row in STATUS_ROWS])
async def test_a_refusal_becomes_the_kind_that_says_what_to_do(
    fake: FakeOpenAI, model: OpenAICompatibleModel, reply: FakeReply, kind: ModelErrorKind, streamed: bool
) -> None:
    always(fake, reply)
    error = await failure_of(model, streamed=streamed)
    assert error.kind == kind
    assert "openai:small-1" in error.message
    assert error.model == "openai:small-1"
    assert error.fix != ""
    assert "<h1" not in error.message
    assert len(fake.requests) == 1


OTHER_ROWS: list[tuple[str, FakeReply, ModelErrorKind, ModelErrorKind]] = [
    ("connection dropped at once", fake_openai.drop(), "network", "network"),
    ("connection dropped in the middle", fake_openai.drop("Ship i"), "network", "network"),
    ("not JSON", raw('{"choices": ['), "protocol", "protocol"),
    ("JSON nested too deeply", raw("[" * 100_000), "protocol", "protocol"),
    ("JSON of another shape", raw('{"choices": "yes"}'), "protocol", "protocol"),
    ("JSON without choices", raw('{"answer": "yes"}'), "protocol", "protocol"),
    ("a JSON list", raw("[1]"), "protocol", "protocol"),
    ("a choice that is none", raw('{"choices": [7]}'), "protocol", "protocol"),
    ("HTML with status 200", raw("<html>log in</html>", content_type="text/html"), "protocol", "protocol"),
    ("an event that is not JSON", raw("data: {\n\n", content_type="text/event-stream"), "protocol", "protocol"),
    ("an event of another shape", raw("data: 7\n\n", content_type="text/event-stream"), "protocol", "protocol"),
    ("broken UTF-8", raw(b'data: "\xff"\n\n', content_type="text/event-stream"), "protocol", "protocol"),
    ("redirect", fake_openai.redirect("http://127.0.0.1:9/"), "network", "network"),
    ("filtered", fake_openai.text("", finish="content_filter"), "blocked", "blocked"),
    ("filtered after some text", fake_openai.text("Ship i", finish="content_filter"), "blocked", "blocked"),
    ("refusal", FakeReply((fake_openai.chunk({"refusal": "I can't."}), fake_openai.chunk({}, "stop"))), "blocked", "blocked"),
    ("aborted", fake_openai.text("Ship i", finish="abort"), "server", "server"),
    ("deepseek: overloaded", fake_openai.text("Ship i", finish="insufficient_system_resource"), "overload", "overload"),
    ("an end of tomorrow", fake_openai.text("Ship i", finish="novel"), "protocol", "protocol"),
    ("output limit before a word", fake_openai.text("", finish="length"), "length", "length"),
    ("output limit within a call", fake_openai.tool_call("f", '{"path": "a', finish="length"), "length", "length"),
    ("arguments that are not JSON", fake_openai.tool_call("f", "{path}"), "protocol", "protocol"),
    ("arguments that are a list", fake_openai.tool_call("f", "[1]"), "protocol", "protocol"),
    ("a call without a name", fake_openai.tool_call("", "{}"), "protocol", "protocol"),
    ("no choice", fake_openai.no_choices(), "empty", "empty"),
    ("choices null", raw('{"choices": null}'), "empty", "empty"),
    ("no text", fake_openai.text(""), "empty", "empty"),
    ("white space", fake_openai.text(" \n "), "empty", "empty"),
    ("only reasoning", fake_openai.text("", reasoning="hm"), "empty", "empty"),
    ("an error in the middle", fake_openai.error_in_stream("Provider disconnected", 502), "server", "server"),
    ("a rate limit in the middle", fake_openai.error_in_stream("slow down", "rate_limit_exceeded"), "rate", "rate"),
]  # fmt: skip


@BOTH_WAYS
@pytest.mark.parametrize(
    ("reply", "plain", "stream"), [row[1:] for row in OTHER_ROWS], ids=[row[0] for row in OTHER_ROWS]
)
async def test_an_answer_that_is_none_becomes_the_kind_that_says_what_to_do(
    fake: FakeOpenAI,
    model: OpenAICompatibleModel,
    reply: FakeReply,
    plain: ModelErrorKind,
    stream: ModelErrorKind,
    streamed: bool,
) -> None:
    always(fake, reply)
    error = await failure_of(model, streamed=streamed)
    assert error.kind == (stream if streamed else plain)
    assert error.fix != ""
    assert len(fake.requests) == 1


async def test_a_stream_that_only_says_done_is_whole(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    always(fake, FakeReply((fake_openai.chunk({"content": "Ship it."}),)))
    assert (await said(model, streamed=True))[0] == "Ship it."


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (e(400, VLLM_CONTEXT, shape="vllm"), "context_tokens in [providers.openai]"),
        (e(404, "The model `small-1` does not exist", code="model_not_found"), "council models list"),
        (raw("404 page not found", status=404), "/v1/chat/completions: check base_url in [providers.openai]."),
        (e(401), "OPENAI_API_KEY"),
        (e(503), "the fault is not yours: the model is busy or still loading."),
        (e(500), "the fault is not yours: the provider failed."),
        (e(400, "Unsupported value: 'temperature' does not support 0.2 with this model."), "leave `temperature` unset"),
    ],
)
async def test_the_fix_says_where(fake: FakeOpenAI, model: OpenAICompatibleModel, reply: FakeReply, words: str) -> None:
    always(fake, reply)
    assert words in (await failure_of(model)).fix


async def test_a_base_url_without_v1_is_told_how_it_usually_ends(fake: FakeOpenAI) -> None:
    model = at(fake, base_url=fake.url.removesuffix("/v1"))
    fix = (await failure_of(model)).fix
    assert fix.endswith("/chat/completions: check base_url in [providers.openai], which usually ends in /v1.")
    await model.aclose()


async def test_a_server_says_how_it_is_started_and_a_model_had(fake: FakeOpenAI) -> None:
    manners = Manners(models=("other",))
    fake.manners = manners
    known = {"name": "ollama", "key_env": None, "start": "`ollama serve`", "fetch": "ollama pull {model}"}
    model = at(fake, **known)
    assert (await failure_of(model)).fix.startswith("`ollama pull small-1`, or choose a model that is there")
    await model.aclose()
    fake.close()
    error = await failure_of(model)
    assert (error.kind, error.retryable) == ("network", True)
    assert "is the server running (`ollama serve`)?" in error.fix
    await model.aclose()


async def test_a_router_passes_on_what_the_provider_behind_it_said(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    always(fake, fake_openai.error_in_200("Provider returned error", 502, provider_name="Acme", raw="disk on fire"))
    assert "502: Provider returned error (Acme disk on fire)" in (await failure_of(model)).message


async def test_a_validation_error_does_not_repeat_the_prompt(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    fault = {"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {"x": "our documents"}}
    always(fake, raw(json.dumps({"detail": [fault]}), status=422))
    error = await failure_of(model)
    assert (error.kind, error.message) == ("request", "openai:small-1 answered 422: body.messages: Field required.")


@pytest.mark.parametrize(
    "url", ["ftp://example.invalid", "example.invalid", "http://", "http://[::1", "http://h:99999/v1"]
)
async def test_a_base_url_that_is_none_is_a_request_error(fake: FakeOpenAI, url: str) -> None:
    model = at(fake, base_url=url)
    error = await failure_of(model)
    assert (error.kind, error.fatal) == ("request", True)
    assert "base_url" in error.fix
    await model.aclose()


@BOTH_WAYS
async def test_an_answer_without_an_end_is_cut_off(
    fake: FakeOpenAI, model: OpenAICompatibleModel, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_compatible, "MAX_ANSWER_BYTES", 50_000)
    always(fake, fake_openai.text("x" * 100_000, pieces=50))
    error = await failure_of(model, streamed=streamed)
    assert error.kind == "protocol"
    assert "is too large" in error.message


async def test_one_event_without_an_end_is_cut_off(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    always(fake, raw("data: " + "x" * 3_000_000, content_type="text/event-stream"))
    assert "is too large" in (await failure_of(model, streamed=True)).message


async def test_the_wait_that_a_server_asks_for_is_told(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    reset = {"X-RateLimit-Reset": str(int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1000))}
    cases: list[tuple[FakeReply, float | None]] = [
        (e(429, retry_after=7), 7.0),
        (e(429, headers=(("retry-after-ms", "1500"),)), 1.5),
        (e(429, "Please try again in 6s."), 6.0),
        (e(429, "Please try again in 1m2.5s."), 62.5),
        (e(429, "Please try again in 250ms."), 0.25),
        (e(429, "Please try again in 6s.", retry_after=1), 1.0),
        (e(503, retry_after="soon"), None),
        (e(429, retry_after="inf"), None),
        (e(429, retry_after=-3), 0.0),
        (e(429), None),
    ]
    fake.reply = fake_openai.in_turn(*(reply for reply, _ in cases))
    assert [(await failure_of(model)).retry_after_s for _ in cases] == [wait for _, wait in cases]
    always(fake, e(429, "free-models-per-day", shape="openrouter", metadata={"headers": reset}))
    wait_s = (await failure_of(model)).retry_after_s
    assert wait_s is not None
    assert 3500 < wait_s <= 3600


# --- what models there are --------------------------------------------------------------------------------------------


async def test_a_server_is_asked_what_models_it_has_and_how_much_they_hold(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    fake.listed = [
        {"id": "vllm", "max_model_len": 4096},
        {"id": "openrouter", "context_length": 200_000},
        {"id": "llama.cpp", "meta": {"n_ctx_train": 8192}},
        {"id": "hf", "providers": [{"provider": "a"}, {"provider": "b", "context_length": 32_768}]},
        {"id": "ollama", "meta": None},
        {"object": "no id"},
    ]
    assert await model.list_models() == [
        ListedModel("vllm", 4096),
        ListedModel("openrouter", 200_000),
        ListedModel("llama.cpp", 8192),
        ListedModel("hf", 32_768),
        ListedModel("ollama"),
    ]


async def test_a_list_that_cannot_be_had_is_a_model_error(fake: FakeOpenAI) -> None:
    fake.manners = Manners(key="another-key-0123456789")
    model = at(fake)
    with pytest.raises(ModelError) as caught:
        await model.list_models()
    assert caught.value.kind == "auth"
    fake.manners = Manners()
    fake.listed = [7]
    with pytest.raises(ModelError) as caught:
        await model.list_models()
    assert caught.value.kind == "protocol"
    await model.aclose()


# --- streams and calls as some servers send them -----------------------------------------------------------------------


async def test_a_stream_that_something_on_its_way_took_for_plain_text_is_a_stream(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    events = "".join(
        f"data: {json.dumps(fake_openai.chunk({'content': piece}, finish))}\n\n"
        for piece, finish in (("Ship ", None), ("it.", "stop"))
    )
    fake.reply = lambda request: raw(events, content_type="text/plain; charset=utf-8")
    heard: list[str] = []
    reply = await model.generate([Message("user", "x")], system="s", on_text=heard.append)
    assert (reply.text, heard) == ("Ship it.", ["Ship ", "it."])


async def test_whole_calls_without_a_number_or_an_id_are_as_many_calls(
    fake: FakeOpenAI, model: OpenAICompatibleModel
) -> None:
    chunks = [
        fake_openai.chunk(
            {"tool_calls": [{"function": {"name": "READ_FILE", "arguments": json.dumps({"path": path})}}]}
        )
        for path in ("a.md", "b.md")
    ]
    fake.reply = lambda request: FakeReply((*chunks, fake_openai.chunk({}, "tool_calls")))
    reply = await model.generate([Message("user", "x")], system="s", on_text=lambda piece: None)
    assert [call.arguments["path"] for call in reply.tool_calls] == ["a.md", "b.md"]


async def test_what_is_no_answer_is_quoted(fake: FakeOpenAI, model: OpenAICompatibleModel) -> None:
    fake.reply = lambda request: raw("<html><h1>Sign in</h1> to the network</html>", content_type="text/html")
    assert "begins with: Sign in to the network" in (await failure_of(model)).message
    fake.reply = lambda request: raw('{"detail": "Not authenticated"}')
    assert 'holds no choices, and says {"detail": "Not authenticated"}' in (await failure_of(model)).message
