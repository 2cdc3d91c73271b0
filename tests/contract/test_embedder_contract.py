"""What every `Embedder` keeps, whatever stands behind it. A new one joins by a line in `EMBEDDERS`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from council.errors import ModelError, ModelErrorKind
from council.ids import SystemClock
from council.llm.embeddings import Embedder, EmbedderAround
from council.llm.gemini import GeminiEmbedder, GeminiModel
from council.llm.openai_compatible import OpenAIEmbedder
from council.llm.openai_dialect import Server
from council.llm.provider_limits import Bucket
from council.llm.retry import Retries
from council.redaction import Secret
from tests import fake_gemini, fake_openai
from tests.fake_gemini import FakeGemini
from tests.fake_openai import FakeOpenAI

KEY = Secret("test-key-0123456789")
TEXTS = ["The car is red.", "Walrus facts.", "An automobile, parked."]


@dataclass
class Candidate:
    """An embedder under test. `answer_with` sets what its server says next; `make` builds another with other settings."""

    embedder: Embedder
    replies: Any
    answer_with: Callable[[Any], None]
    calls: Callable[[], int]
    make: Callable[..., Embedder]


def _answer_with(server: Any) -> Callable[[Any], None]:
    def set_reply(reply: Any) -> None:
        server.embed_reply = lambda request: reply

    return set_reply


@asynccontextmanager
async def gemini() -> AsyncIterator[Candidate]:
    with FakeGemini() as fake:

        def make(dimensions: int | None = 8, timeout_s: float = 20) -> Embedder:
            client = GeminiModel("gemini-embedding-001", api_key=KEY, base_url=fake.url, request_timeout_s=timeout_s)
            return GeminiEmbedder(client, "gemini-embedding-001", dimensions=dimensions)

        embedder = make()
        yield Candidate(embedder, fake_gemini, _answer_with(fake), lambda: len(fake.embeddings), make)
        await embedder.aclose()


@asynccontextmanager
async def openai_compatible() -> AsyncIterator[Candidate]:
    with FakeOpenAI() as fake:

        def make(dimensions: int | None = 8, timeout_s: float = 20) -> Embedder:
            server = Server("openai", fake.url, key_env="OPENAI_API_KEY")
            return OpenAIEmbedder("e-1", server=server, api_key=KEY, dimensions=dimensions, request_timeout_s=timeout_s)

        embedder = make()
        yield Candidate(embedder, fake_openai, _answer_with(fake), lambda: len(fake.embeddings), make)
        await embedder.aclose()


@asynccontextmanager
async def wrapped() -> AsyncIterator[Candidate]:
    """One in a bucket, with retries around it: the same promises."""
    async with openai_compatible() as inner:

        def make(dimensions: int | None = 8, timeout_s: float = 20) -> Embedder:
            bucket = Bucket(SystemClock(), max_concurrent=2, max_per_minute=None, max_pause_s=0)
            limited = EmbedderAround(inner.make(dimensions=dimensions, timeout_s=timeout_s), bucket)
            return EmbedderAround(limited, Retries(attempts=2, max_wait_s=0, initial_wait_s=0))

        yield Candidate(make(), inner.replies, inner.answer_with, inner.calls, make)


EMBEDDERS: list[Callable[[], AbstractAsyncContextManager[Candidate]]] = [gemini, openai_compatible, wrapped]


@pytest.fixture(params=EMBEDDERS, ids=lambda open_candidate: open_candidate.__name__)
async def candidate(request: pytest.FixtureRequest) -> AsyncIterator[Candidate]:
    async with request.param() as opened:
        yield opened


def near(one: Any, other: Any) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_each_text_gets_a_vector_of_length_one_in_its_place(candidate: Candidate) -> None:
    car, walrus, automobile = (await candidate.embedder.embed(TEXTS)).vectors
    assert [round(math.hypot(*vector), 5) for vector in (car, walrus, automobile)] == [1, 1, 1]
    assert near(car, automobile) > 0.9 > 0.1 > near(car, walrus)


async def test_it_says_its_name_and_its_limits(candidate: Candidate) -> None:
    provider, _, model_id = candidate.embedder.name.partition(":")
    assert (provider in ("gemini", "openai"), bool(model_id)) == (True, True)
    assert (candidate.embedder.dimensions, candidate.embedder.max_texts > 0) == (8, True)
    text = "ä" * (candidate.embedder.max_text_bytes // 2)
    full = await candidate.embedder.embed([text] * candidate.embedder.max_texts)
    assert len(full.vectors) == candidate.embedder.max_texts


async def test_a_question_may_be_asked_and_calls_at_once_do_not_mix(candidate: Candidate) -> None:
    questions = [candidate.embedder.embed([text], purpose="question") for text in TEXTS]
    alone = [(await candidate.embedder.embed([text])).vectors[0] for text in TEXTS]
    at_once = [embedded.vectors[0] for embedded in await asyncio.gather(*questions)]
    assert at_once == alone


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "the input is too long", "request"),
        (401, "no such key", "auth"),
        (402, "pay first", "billing"),
        (404, "the model does not exist", "not_found"),
        (500, "internal", "server"),
        (503, "busy", "overload"),
    ],
)
async def test_a_refusal_is_a_model_error_of_its_kind_with_what_to_do(
    candidate: Candidate, status: int, message: str, kind: ModelErrorKind
) -> None:
    candidate.answer_with(candidate.replies.error(status, message))
    with pytest.raises(ModelError) as caught:
        await candidate.embedder.embed(TEXTS)
    assert (caught.value.kind, bool(caught.value.fix)) == (kind, True)
    assert KEY.reveal() not in str(caught.value)


async def test_a_limit_says_how_long_to_wait(candidate: Candidate) -> None:
    candidate.answer_with(candidate.replies.error(429, "slow down", retry_after=7))
    with pytest.raises(ModelError) as caught:
        await candidate.embedder.embed(TEXTS)
    assert caught.value.kind == "rate"
    assert caught.value.retry_after_s is not None
    assert 6 < caught.value.retry_after_s <= 7


async def test_a_dropped_connection_is_of_the_network(candidate: Candidate) -> None:
    candidate.answer_with(candidate.replies.drop())
    with pytest.raises(ModelError) as caught:
        await candidate.embedder.embed(TEXTS)
    assert caught.value.kind == "network"


async def test_a_server_that_does_not_answer_is_a_timeout(candidate: Candidate) -> None:
    candidate.answer_with(candidate.replies.slow(60))
    hasty = candidate.make(timeout_s=0.2)
    with pytest.raises(ModelError) as caught:
        await hasty.embed(TEXTS)
    assert caught.value.kind == "timeout"
    await hasty.aclose()


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0] * 8] * 2,
        [[1.0] * 8] * 4,
        [[1.0] * 8, [1.0] * 8, [1.0] * 7],
        [[1.0] * 7] * 3,
        [[1.0] * 8, [0.0] * 8, [1.0] * 8],
        [[1.0] * 8, [1e308] * 8, [1.0] * 8],
        [[1.0] * 8, [], [1.0] * 8],
        [],
    ],
    ids=["too few", "too many", "ragged", "other size", "zero", "endless", "empty", "none"],
)
async def test_vectors_that_cannot_be_used_are_a_protocol_error(candidate: Candidate, rows: list[list[float]]) -> None:
    candidate.answer_with(candidate.replies.vectors(rows))
    with pytest.raises(ModelError) as caught:
        await candidate.embedder.embed(TEXTS)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("body", ["", "<html>", "[1, 2]", '{"data": 5, "embeddings": null}', "null"])
async def test_an_answer_of_another_shape_is_a_protocol_error(candidate: Candidate, body: str) -> None:
    candidate.answer_with(candidate.replies.raw(body))
    with pytest.raises(ModelError) as caught:
        await candidate.embedder.embed(TEXTS)
    assert caught.value.kind == "protocol"


async def test_it_can_be_used_again_after_it_was_closed(candidate: Candidate) -> None:
    await candidate.embedder.embed(TEXTS)
    await candidate.embedder.aclose()
    assert len((await candidate.embedder.embed(TEXTS)).vectors) == 3
    assert candidate.calls() == 2


# ── what is particular to one of them ────────────────────────────────────────────────────────────────────────────────


async def test_gemini_is_told_what_a_text_is_for_and_how_long_a_vector_is_to_be() -> None:
    async with gemini() as candidate:
        with FakeGemini() as fake:
            client = GeminiModel("gemini-embedding-001", api_key=KEY, base_url=fake.url)
            embedder = GeminiEmbedder(client, "gemini-embedding-001")
            await embedder.embed(["a", "b"])
            await embedder.embed(["c"], purpose="question")
            await embedder.aclose()
            sent = [
                [(each["taskType"], each["outputDimensionality"]) for each in request.body["requests"]]
                for request in fake.embeddings
            ]
    assert sent == [[("RETRIEVAL_DOCUMENT", 768)] * 2, [("RETRIEVAL_QUERY", 768)]]
    assert candidate.calls() == 0


async def test_an_openai_server_may_answer_in_any_order_and_its_count_is_taken_over() -> None:
    async with openai_compatible() as candidate:
        rows = [[1.0] + [0.0] * 7, [0.0, 1.0] + [0.0] * 6]
        candidate.answer_with(fake_openai.vectors(rows, counted=41, backwards=True))
        embedded = await candidate.embedder.embed(["a", "b"])
        assert [list(vector) for vector in embedded.vectors] == rows
        assert embedded.usage is not None
        assert embedded.usage.input_tokens == 41
        candidate.answer_with(fake_openai.vectors(rows, counted=None))
        assert (await candidate.embedder.embed(["a", "b"])).usage is None


async def test_a_bucket_holds_all_calls_back_when_the_provider_asks_for_it() -> None:
    async with openai_compatible() as candidate:
        bucket = Bucket(SystemClock(), max_concurrent=2, max_per_minute=None, max_pause_s=1)
        limited = EmbedderAround(candidate.embedder, bucket)
        candidate.answer_with(fake_openai.error(429, "slow down", retry_after=600))
        for _ in range(3):
            with pytest.raises(ModelError):
                await limited.embed(["a"])
        assert candidate.calls() == 1


async def test_the_longest_vectors_of_a_full_call_are_no_answer_that_is_too_large() -> None:
    """64 vectors of 4,096 numbers with all their digits come to some six megabytes in one line."""
    row = [0.012345678901234567 + number / 1e9 for number in range(4_096)]
    with FakeGemini() as fake:
        fake.embed_reply = lambda request: fake_gemini.vectors([row] * 64)
        client = GeminiModel("gemini-embedding-001", api_key=Secret("k" * 20), base_url=fake.url)
        embedder = GeminiEmbedder(client, "gemini-embedding-001", dimensions=4_096)
        embedded = await embedder.embed(["text"] * embedder.max_texts)
        await embedder.aclose()
    assert [len(vector) for vector in embedded.vectors] == [4_096] * 64
