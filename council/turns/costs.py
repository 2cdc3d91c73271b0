"""The cost of calls to models in tokens and US dollars. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from council.budgets.prices import Price
from council.engine.receipts import TokenCount
from council.llm.base import Usage, mode_of
from council.turns.result import ModelCall, TurnResult


def cost_of(result: TurnResult, prices: Mapping[str, Price | None]) -> Decimal | None:
    """US dollars of one call, None when a price or a count is unknown. A reply from a cassette costs nothing, nor does a failure
    that used nothing."""
    if mode_of(result.model) == "replay" or (result.failure is not None and result.usage == Usage()):
        return Decimal(0)
    price = prices.get(result.model)
    if price is None or (result.usage is None and not price.is_free):
        return None
    return price.cost(result.usage or Usage())


def sum_of(results: Sequence[TurnResult], prices: Mapping[str, Price | None]) -> float | None:
    known = [cost for result in results if (cost := cost_of(result, prices)) is not None]
    return float(sum(known, Decimal(0))) if len(known) == len(results) else None


def told_cost(usd: float | None) -> str:
    """A cost for a person: to the cent, and to two figures below ten cents."""
    if usd is None:
        return "unknown"
    if usd == 0:
        return "none"
    return f"{usd:,.2f} USD" if round(usd, 3) >= 0.1 else f"{Decimal(f'{usd:.2g}'):f} USD"


def tokens_of(results: Sequence[TurnResult]) -> TokenCount:
    known = [result.usage for result in results if result.usage is not None]
    return TokenCount(
        input=sum(usage.input_tokens for usage in known),
        output=sum(usage.output_tokens for usage in known),
        cached=sum(usage.cached_tokens for usage in known),
        unknown_calls=len(results) - len(known),
    )


def priced(calls: Iterable[ModelCall], prices: Mapping[str, Price | None]) -> tuple[ModelCall, ...]:
    return tuple(msgspec.structs.replace(call, usd=sum_of([call.result], prices)) for call in calls)
