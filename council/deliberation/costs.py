"""Calls, tokens and US dollars of a deliberation, and what kind of model they were spent on. Pure."""

from __future__ import annotations

from decimal import Decimal

from council.agents.turn import TurnResult
from council.deliberation.page_state import PageState
from council.engine.receipts import TokenCount
from council.llm.base import Usage
from council.llm.embeddings import EmbeddingCall

NOBODY = "none"
_MODES = {"offline": "offline-extractive", "scripted": "scripted", "cassette": "replay"}


def tokens_of(state: PageState) -> tuple[int, TokenCount]:
    """Calls made, and their tokens."""
    results = state.results()
    counted = [*(result.usage for result in results), *(call.usage for call in _embeddings(state))]
    known = [usage for usage in counted if usage is not None]
    count = TokenCount(
        input=sum(usage.input_tokens for usage in known),
        output=sum(usage.output_tokens for usage in known),
        cached=sum(usage.cached_tokens for usage in known),
        unknown_calls=len(counted) - len(known),
    )
    return len(counted), count


def cost_of(state: PageState) -> float | None:
    """US dollars of all calls, None when a price or a count is unknown."""
    costs = [cost_of_call(state, result) for result in state.results()]
    costs += [cost_of_embedding(state, call) for call in _embeddings(state)]
    known = [cost for cost in costs if cost is not None]
    return float(sum(known, Decimal(0))) if len(known) == len(costs) else None


def cost_of_call(state: PageState, result: TurnResult) -> Decimal | None:
    """US dollars of one call; None as in `cost_of`."""
    return _cost(state, result.model, result.usage)


def _cost(state: PageState, model: str, usage: Usage | None) -> Decimal | None:
    """US dollars of a call. A reply from a cassette costs nothing, whoever gave it first."""
    if mode_of(model) == "replay":
        return Decimal(0)
    price = state.prices.get(model)
    if price is None or (usage is None and not price.is_free):
        return None
    return price.cost(usage or Usage())


def cost_of_embedding(state: PageState, call: EmbeddingCall) -> Decimal | None:
    """US dollars of one call; None as in `cost_of`."""
    return _cost(state, call.model, call.usage)


def _embeddings(state: PageState) -> list[EmbeddingCall]:
    return [call for item in state.transcript.evidence() for call in item.embeddings]


def mode_of(model: str) -> str:
    """The kind of model behind the words: language-model, scripted, replay, offline-extractive; none in a run that
    asked nobody."""
    return _MODES.get(model.split(":")[0], "language-model") if model else NOBODY


def is_extract(model: str) -> bool:
    """True when the words are quoted from documents, with no language model behind them, now or when they were
    recorded."""
    return model.removeprefix("cassette:") == "offline"
