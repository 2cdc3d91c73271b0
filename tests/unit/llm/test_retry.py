"""Retries: which errors, how long between, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import pytest

from council.errors import RETRYABLE, ModelError, ModelErrorKind
from council.llm.base import Message, OnText, Reply, ToolSpec, TurnInfo
from council.llm.retry import Retries, RetryingModel, with_fallbacks

ASK = [Message("user", "What now?")]
DONE = Reply("done", "stop", "fragile")

Outcome = Reply | BaseException | Callable[[OnText | None], Reply]


class FragileModel:
    """Gives its outcomes one after the other and keeps what it was asked."""

    name = "fragile"
    context_tokens = 1000

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)
        self.asked: list[dict[str, Any]] = []
        self.closed = 0

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[ToolSpec] = (),
        on_text: OnText | None = None,
        max_output_tokens: int | None = None,
        temperature: float | None = None,
        info: TurnInfo | None = None,
    ) -> Reply:
        self.asked.append(
            {
                "messages": messages, "system": system, "schema": schema, "tools": tools,
                "max_output_tokens": max_output_tokens, "temperature": temperature, "info": info,
            }
        )  # fmt: skip
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome if isinstance(outcome, Reply) else outcome(on_text)

    async def aclose(self) -> None:
        self.closed += 1


def failing(kind: ModelErrorKind = "server", retry_after_s: float | None = None) -> ModelError:
    return ModelError(kind, f"failed: {kind}", retry_after_s=retry_after_s)


class Patience:
    """Stands in for asyncio.sleep and notes the waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)  # others get their turn, as in a real wait


@pytest.fixture
def patience() -> Patience:
    return Patience()


@pytest.mark.parametrize("kind", sorted(RETRYABLE))
async def test_an_error_that_can_pass_is_tried_again(kind: ModelErrorKind, patience: Patience) -> None:
    inner = FragileModel(failing(kind), DONE)
    assert await RetryingModel(inner, Retries(sleep=patience)).generate(ASK, system="") == DONE
    assert len(inner.asked) == 2


@pytest.mark.parametrize("kind", sorted(set(get_args(ModelErrorKind)) - RETRYABLE))
async def test_an_error_that_stays_is_not_tried_again(kind: ModelErrorKind, patience: Patience) -> None:
    error = failing(kind)
    inner = FragileModel(error, DONE)
    with pytest.raises(ModelError) as caught:
        await RetryingModel(inner, Retries(sleep=patience)).generate(ASK, system="")
    assert caught.value is error
    assert (len(inner.asked), patience.waits) == (1, [])


async def test_another_exception_than_a_model_error_is_not_tried_again(patience: Patience) -> None:
    inner = FragileModel(RuntimeError("bug"), DONE)
    with pytest.raises(RuntimeError, match="bug"):
        await RetryingModel(inner, Retries(sleep=patience)).generate(ASK, system="")
    assert len(inner.asked) == 1


async def test_the_attempts_are_bounded_and_the_last_error_leaves(patience: Patience) -> None:
    errors = [failing("server"), failing("overload"), failing("network")]
    inner = FragileModel(*errors, DONE)
    with pytest.raises(ModelError) as caught:
        await RetryingModel(inner, Retries(attempts=3, sleep=patience)).generate(ASK, system="")
    assert caught.value is errors[-1]
    assert (len(inner.asked), len(patience.waits)) == (3, 2)


@pytest.mark.parametrize(("earlier", "unsent"), [(True, True), (False, False)], ids=["never heard", "heard once"])
async def test_a_call_found_no_connection_only_where_no_attempt_of_it_did(
    patience: Patience, earlier: bool, unsent: bool
) -> None:
    tries = [ModelError("network", "refused", unsent=each) for each in (earlier, True)]
    with pytest.raises(ModelError) as caught:
        await RetryingModel(FragileModel(*tries), Retries(attempts=2, sleep=patience)).generate(ASK, system="")
    assert caught.value.unsent is unsent


async def test_the_wait_doubles_up_to_the_longest(patience: Patience) -> None:
    inner = FragileModel(*[failing() for _ in range(5)], DONE)
    model = RetryingModel(inner, Retries(attempts=6, initial_wait_s=0.5, max_wait_s=3, sleep=patience))
    await model.generate(ASK, system="")
    assert patience.waits == [0.5, 1.0, 2.0, 3.0, 3.0]


async def test_the_provider_s_own_wait_counts_where_it_is_longer(patience: Patience) -> None:
    inner = FragileModel(failing("rate", 7.0), failing("rate", 0.1), DONE)
    await RetryingModel(inner, Retries(initial_wait_s=1.0, sleep=patience)).generate(ASK, system="")
    assert patience.waits == [7.0, 2.0]


async def test_a_wait_beyond_the_longest_is_left_to_the_caller(patience: Patience) -> None:
    inner = FragileModel(failing("rate", 61.0), DONE)
    with pytest.raises(ModelError) as caught:
        await RetryingModel(inner, Retries(max_wait_s=60, sleep=patience)).generate(ASK, system="")
    assert caught.value.retry_after_s == 61.0
    assert (len(inner.asked), patience.waits) == (1, [])


async def test_on_retry_hears_error_attempt_and_wait_before_each_wait(patience: Patience) -> None:
    first, second = failing("rate", 2.0), failing("server")
    heard: list[tuple[ModelError, int, float]] = []
    model = RetryingModel(
        FragileModel(first, second, DONE), Retries(on_retry=lambda *told: heard.append(told), sleep=patience)
    )
    await model.generate(ASK, system="")
    assert heard == [(first, 1, 2.0), (second, 2, 2.0)]


async def test_on_retry_hears_nothing_of_an_error_that_leaves(patience: Patience) -> None:
    heard: list[object] = []
    model = RetryingModel(
        FragileModel(failing()), Retries(attempts=1, on_retry=lambda *told: heard.append(told), sleep=patience)
    )
    with pytest.raises(ModelError):
        await model.generate(ASK, system="")
    assert heard == []


def speaking(outcome: Reply | ModelError) -> Callable[[OnText | None], Reply]:
    def speak(on_text: OnText | None) -> Reply:
        assert on_text is not None
        on_text("so far")
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    return speak


async def test_an_attempt_whose_text_was_shown_is_not_repeated(patience: Patience) -> None:
    inner = FragileModel(speaking(failing("network")), speaking(DONE))
    shown: list[str] = []
    with pytest.raises(ModelError, match="network"):
        await RetryingModel(inner, Retries(sleep=patience)).generate(ASK, system="", on_text=shown.append)
    assert (shown, len(inner.asked)) == (["so far"], 1)


async def test_a_streamed_attempt_that_failed_before_its_first_word_is_repeated(patience: Patience) -> None:
    inner = FragileModel(failing("overload"), speaking(DONE))
    shown: list[str] = []
    assert await RetryingModel(inner, Retries(sleep=patience)).generate(ASK, system="", on_text=shown.append) == DONE
    assert shown == ["so far"]


async def test_every_attempt_is_asked_the_same(patience: Patience) -> None:
    inner = FragileModel(failing(), DONE)
    asked = {
        "system": "s", "schema": {"type": "object"}, "tools": (ToolSpec("t", "d", {}),), "max_output_tokens": 9,
        "temperature": 0.2, "info": TurnInfo(role="AUDITOR"),
    }  # fmt: skip
    await RetryingModel(inner, Retries(sleep=patience)).generate(ASK, **asked)  # type: ignore[arg-type]
    assert inner.asked == [{"messages": ASK, **asked}] * 2


async def test_cancelling_ends_the_wait() -> None:
    waiting = asyncio.Event()

    async def wait_for_ever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    inner = FragileModel(failing(), DONE)
    call = asyncio.create_task(RetryingModel(inner, Retries(sleep=wait_for_ever)).generate(ASK, system=""))
    await waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(inner.asked) == 1


async def test_a_cancelled_attempt_is_not_repeated(patience: Patience) -> None:
    inner = FragileModel(asyncio.CancelledError(), DONE)
    with pytest.raises(asyncio.CancelledError):
        await RetryingModel(inner, Retries(sleep=patience)).generate(ASK, system="")
    assert len(inner.asked) == 1


async def test_calls_at_the_same_time_do_not_share_their_attempts(patience: Patience) -> None:
    inner = FragileModel(*[failing() for _ in range(4)], *[DONE] * 4)
    model = RetryingModel(inner, Retries(attempts=2, sleep=patience))
    replies = await asyncio.gather(*(model.generate(ASK, system="") for _ in range(4)))
    assert replies == [DONE] * 4
    assert patience.waits == [1.0] * 4


async def test_name_window_and_closing_are_those_of_the_inner_model() -> None:
    inner = FragileModel()
    model = RetryingModel(inner, Retries())
    await model.aclose()
    assert (model.name, model.context_tokens, inner.closed) == ("fragile", 1000, 1)


async def test_a_model_that_cannot_be_reached_is_asked_once_a_minute_where_another_one_answers(
    patience: Patience,
) -> None:
    now_s = [0.0]
    first, second = FragileModel(failing("unreachable"), failing("unreachable"), DONE), FragileModel(DONE, DONE, DONE)
    chain = with_fallbacks([first, second], lambda: now_s[-1], Retries(sleep=patience))
    asked = []
    for at_s in (0.0, 59.0, 60.0, 121.0):
        now_s.append(at_s)
        reply = await chain.generate(ASK, system="")
        asked.append((len(first.asked), len(second.asked), [each.kind for each in reply.replaced]))
    assert asked == [(1, 1, ["unreachable"]), (1, 2, ["unreachable"]), (2, 3, ["unreachable"]), (3, 3, [])]
    assert patience.waits == []


async def test_the_last_model_of_a_chain_is_tried_again_and_no_other_is_passed_over_when_it_fails(
    patience: Patience,
) -> None:
    first = FragileModel(failing("unreachable"), failing("overload"), DONE)
    second = FragileModel(failing("unreachable"), failing("unreachable"))
    chain = with_fallbacks([first, second], lambda: 0.0, Retries(attempts=2, sleep=patience))
    with pytest.raises(ModelError) as told:
        await chain.generate(ASK, system="")
    assert (told.value.kind, len(second.asked)) == ("unreachable", 2)
    assert (await chain.generate(ASK, system="")).replaced == ()
    assert patience.waits == [1.0, 1.0]


async def test_a_model_that_was_passed_over_is_asked_before_a_call_fails(patience: Patience) -> None:
    now_s = [0.0]
    first = FragileModel(failing("unreachable"), DONE, failing("overload"))
    second = FragileModel(DONE, failing("auth"), DONE)
    chain = with_fallbacks([first, second], lambda: now_s[-1], Retries(attempts=1, sleep=patience))
    await chain.generate(ASK, system="")
    now_s.append(30.0)
    replaced = (await chain.generate(ASK, system="")).replaced
    assert [each.kind for each in replaced] == ["auth"]
    assert [each.kind for each in (await chain.generate(ASK, system="")).replaced] == ["overload"]
    assert (len(first.asked), len(second.asked)) == (3, 3)


async def test_a_call_that_fails_tells_what_the_model_that_was_passed_over_says_now(patience: Patience) -> None:
    first, second = FragileModel(failing("unreachable"), failing("overload")), FragileModel(DONE, failing("auth"))
    chain = with_fallbacks([first, second], lambda: 0.0, Retries(attempts=1, sleep=patience))
    await chain.generate(ASK, system="")
    with pytest.raises(ModelError, match="failed: overload Fallback fragile: failed: auth"):
        await chain.generate(ASK, system="")
