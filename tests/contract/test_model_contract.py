"""What every `Model` keeps, whatever stands behind it. A new one joins by a line in `MODELS`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from council.errors import ModelError
from council.llm.base import Finish, Message, Model, Reply, Source, ToolSpec, TurnInfo, request_hash
from council.llm.cassette import FORMAT, CassetteCall, CassetteFailure, Header, RecordedRun, encode, load
from council.llm.gemini import GeminiModel
from council.llm.offline import OfflineModel
from council.llm.openai_compatible import OpenAICompatibleModel
from council.llm.openai_dialect import Server
from council.llm.replay import ReplayModel
from council.llm.retry import Retries, RetryingModel
from council.llm.scripted import ScriptedModel
from council.markup import without_thoughts
from council.redaction import Secret
from tests import fake_openai
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, default_reply, error, slow
from tests.fake_openai import FakeOpenAI

DOCUMENT = Source(
    "input:notes.md", "notes.md", "# Plan\n\nWe ship on Friday. The tests are missing.\n", sha256="0" * 64
)
ASK = [
    Message("user", f"Documents:\n{DOCUMENT.text}", sources=(DOCUMENT,)),
    Message("user", "So far nobody has spoken."),
    Message("user", "Round 1. Say what you think."),
]
TURN = TurnInfo(role="STRATEGIST", purpose="turn", round=1, max_rounds=3, task="Decide whether we ship on Friday.")
SYNTHESIS = TurnInfo(role="COORDINATOR", purpose="synthesis", round=3, max_rounds=3, task=TURN.task)


# A call that a model which can be kept waiting does not answer within the test.
HELD_ASK = [Message("user", "HELD")]
HELD = TurnInfo(role="HELD", purpose="turn", round=1, max_rounds=3, task="wait")


async def _one_turn_of_the_loop() -> None:
    await asyncio.sleep(0)


@dataclass(frozen=True)
class Candidate:
    """A model under test. `under_way` returns once the first call made has begun; `broken` is one that always fails."""

    model: Model
    broken: Model | None = None
    under_way: Callable[[], Awaitable[object]] = _one_turn_of_the_loop


@asynccontextmanager
async def gemini(tmp_path: Path) -> AsyncIterator[Candidate]:
    def reply(request: RecordedRequest) -> FakeReply:
        return slow(60) if request.texts == ["HELD"] else default_reply(request)

    key = Secret("test-key-0123456789")
    with FakeGemini(reply=reply) as fake, FakeGemini(reply=lambda request: error(503)) as failing:
        model, broken = GeminiModel(api_key=key, base_url=fake.url), GeminiModel(api_key=key, base_url=failing.url)
        yield Candidate(model, broken, lambda: asyncio.to_thread(fake.wait_for_requests, 1))
        await model.aclose()
        await broken.aclose()


@asynccontextmanager
async def scripted(tmp_path: Path) -> AsyncIterator[Candidate]:
    script, broken = tmp_path / "script.yaml", tmp_path / "broken.yaml"
    script.write_text("replies: [{role: HELD, text: late, delay_s: 3600, times: 0}]\ndefault: {text: I would ship.}")
    broken.write_text("default: {error: {kind: overload}}")
    yield Candidate(ScriptedModel.from_file(script), ScriptedModel.from_file(broken))


@asynccontextmanager
async def offline(tmp_path: Path) -> AsyncIterator[Candidate]:
    yield Candidate(OfflineModel())  # it cannot fail, so there is no broken one


@asynccontextmanager
async def retrying(tmp_path: Path) -> AsyncIterator[Candidate]:
    async with scripted(tmp_path) as inner:
        assert inner.broken is not None
        yield Candidate(RetryingModel(inner.model, Retries()), RetryingModel(inner.broken, Retries(initial_wait_s=0)))


@asynccontextmanager
async def openai_compatible(tmp_path: Path) -> AsyncIterator[Candidate]:
    def reply(request: fake_openai.RecordedRequest) -> fake_openai.FakeReply:
        return fake_openai.slow(60) if request.texts == ["HELD"] else fake_openai.default_reply(request)

    def refuse(request: fake_openai.RecordedRequest) -> fake_openai.FakeReply:
        return fake_openai.error(503)

    with FakeOpenAI(reply=reply) as fake, FakeOpenAI(reply=refuse) as failing:
        model, broken = (
            OpenAICompatibleModel("m-1", server=Server("openai", server.url), api_key=Secret("test-key-0123456789"))
            for server in (fake, failing)
        )
        yield Candidate(model, broken, lambda: asyncio.to_thread(fake.wait_for_requests, 1))
        await model.aclose()
        await broken.aclose()


@asynccontextmanager
async def thinking_openai_compatible(tmp_path: Path) -> AsyncIterator[Candidate]:
    """A server with few manners: it thinks aloud, counts nothing and takes neither JSON mode nor tools."""

    def reply(request: fake_openai.RecordedRequest) -> fake_openai.FakeReply:
        if request.texts == ["HELD"]:
            return fake_openai.slow(60)
        return fake_openai.text("<think>Hm.</think>\nI would ship.", counted=False, pieces=9)

    manners = fake_openai.Manners(response_format="none", stream_options=False, tools=False, system_role=False)
    with FakeOpenAI(reply=reply, manners=manners) as fake:
        model = OpenAICompatibleModel("m-1", server=Server("ollama", fake.url))
        yield Candidate(model, None, lambda: asyncio.to_thread(fake.wait_for_requests, 1))
        await model.aclose()


@asynccontextmanager
async def replay(tmp_path: Path) -> AsyncIterator[Candidate]:
    """Every request of this file is on the cassette."""
    systems = ("", "s", "You are STRATEGIST.", "You are COORDINATOR.")
    asked = [(system, ASK) for system in systems] + [("", HELD_ASK), ("", [Message("user", "What now?")])]
    requests = [request_hash("gemini:g", system, messages) for system, messages in asked]
    run = RecordedRun("20260101-000000-aaaaaaaa", "5e" * 32, "0" * 64, 0, "succeeded")
    head = Header(FORMAT, "0.1.0", 3, "gemini:g", (run,))
    replies = [CassetteCall("round/1/X", request, text="I would ship.", model="gemini:g") for request in requests]
    failures = [
        CassetteCall("round/1/X", request, failed=CassetteFailure("overload", "busy", "wait")) for request in requests
    ]
    models = []
    for name, calls in (("tape", replies), ("broken", failures)):
        (tmp_path / name).write_bytes(encode(head, calls))
        models.append(ReplayModel(load(tmp_path / name)))
    yield Candidate(*models)


MODELS = [gemini, openai_compatible, thinking_openai_compatible, scripted, offline, replay, retrying]
FAILING_MODELS = [gemini, openai_compatible, scripted, replay, retrying]


Opener = Callable[[Path], AbstractAsyncContextManager[Candidate]]


@pytest.fixture(params=MODELS, ids=lambda opener: opener.__name__)
async def candidate(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Candidate]:
    opener: Opener = request.param
    async with opener(tmp_path) as opened:
        yield opened


@pytest.fixture
def model(candidate: Candidate) -> Model:
    return candidate.model


class TestModelContract:
    async def test_a_turn_gets_a_reply_with_text_finish_and_the_models_name(self, model: Model) -> None:
        reply = await model.generate(ASK, system="You are STRATEGIST.", info=TURN)
        assert isinstance(reply, Reply)
        assert reply.text.strip() != ""
        assert reply.finish in get_args(Finish)
        assert reply.model == model.name

    async def test_a_synthesis_gets_a_reply(self, model: Model) -> None:
        reply = await model.generate(ASK, system="You are COORDINATOR.", info=SYNTHESIS)
        assert reply.text.strip() != ""

    async def test_a_request_without_info_gets_a_reply(self, model: Model) -> None:
        assert (await model.generate([Message("user", "What now?")], system="")).text.strip() != ""

    async def test_the_pieces_told_to_on_text_are_the_text_of_the_reply(self, model: Model) -> None:
        pieces: list[str] = []
        reply = await model.generate(ASK, system="You are STRATEGIST.", on_text=pieces.append, info=TURN)
        assert without_thoughts("".join(pieces)) == without_thoughts(reply.text)

    async def test_counted_tokens_are_not_negative_and_uncounted_are_none(self, model: Model) -> None:
        usage = (await model.generate(ASK, system="", info=TURN)).usage
        assert usage is None or min(usage.input_tokens, usage.output_tokens) > 0

    async def test_every_argument_is_accepted(self, model: Model) -> None:
        reply = await model.generate(
            ASK,
            system="You are STRATEGIST.",
            schema={"type": "object", "properties": {"vote": {"type": "string"}}},
            tools=[ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {}})],
            on_text=lambda piece: None,
            max_output_tokens=100,
            temperature=0.0,
            info=TURN,
        )
        assert reply.text.strip() != ""

    async def test_the_messages_are_left_as_they_were(self, model: Model) -> None:
        messages = list(ASK)
        await model.generate(messages, system="s", info=TURN)
        assert messages == ASK

    async def test_calls_at_the_same_time_all_get_a_reply(self, model: Model) -> None:
        replies = await asyncio.gather(*(model.generate(ASK, system="s", info=TURN) for _ in range(5)))
        assert [reply.model for reply in replies] == [model.name] * 5

    @pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
    async def test_a_call_is_cancelled_by_cancelling_its_task_and_the_model_lives_on(
        self, candidate: Candidate, streamed: bool
    ) -> None:
        pieces: list[str] = []
        on_text = pieces.append if streamed else None
        call = asyncio.create_task(candidate.model.generate(HELD_ASK, system="", on_text=on_text, info=HELD))
        await candidate.under_way()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await candidate.model.generate(ASK, system="", info=TURN)).text.strip() != ""

    async def test_the_name_is_told_and_does_not_change(self, model: Model) -> None:
        before = model.name
        await model.generate(ASK, system="", info=TURN)
        assert before != ""
        assert model.name == before

    def test_the_window_has_a_size(self, model: Model) -> None:
        assert model.context_tokens > 0

    async def test_closing_twice_is_closing_once_and_leaves_nothing_at_work(self, model: Model) -> None:
        before = asyncio.all_tasks()
        await model.generate(ASK, system="", info=TURN)
        await model.aclose()
        await model.aclose()
        assert asyncio.all_tasks() <= before

    async def test_a_model_that_was_never_asked_can_be_closed(self, model: Model) -> None:
        before = asyncio.all_tasks()
        await model.aclose()
        assert asyncio.all_tasks() <= before


@pytest.mark.parametrize("opener", FAILING_MODELS, ids=lambda opener: opener.__name__)
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_failing_model_raises_a_model_error_that_names_it(
    opener: Opener, streamed: bool, tmp_path: Path
) -> None:
    pieces: list[str] = []
    async with opener(tmp_path) as candidate:
        assert candidate.broken is not None
        with pytest.raises(ModelError) as caught:
            await candidate.broken.generate(ASK, system="", on_text=pieces.append if streamed else None, info=TURN)
        assert (caught.value.kind, caught.value.model) == ("overload", candidate.broken.name)
        assert caught.value.fix != ""
    assert pieces == []
