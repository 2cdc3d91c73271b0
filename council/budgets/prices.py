"""Prices of a model's tokens: an override table, then the bundled ones of `genai-prices`. An unknown price is unknown,
never zero."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from council.llm.base import Usage

_MILLION = Decimal(1_000_000)
_NOTHING = Decimal(0)
_SELLERS = {"gemini": "google", "openai": "openai", "openrouter": "openrouter"}  # as the price table calls them


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens; a part of the input that a cache served may cost less. A call of more than
    `long_above` input tokens costs `long` instead."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    long_above: int = 0
    long: Price | None = None

    @property
    def is_free(self) -> bool:
        return not (self.input or self.output or self.cached or self.long is not None)

    def cost(self, usage: Usage) -> Decimal:
        if self.is_free:
            return _NOTHING
        if self.long is not None and usage.input_tokens > self.long_above:
            return self.long.cost(usage)
        cached = self.input if self.cached is None else self.cached
        fresh_tokens = max(0, usage.input_tokens - usage.cached_tokens)
        return (fresh_tokens * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / _MILLION


def price_of(model: str, overrides: Mapping[str, Price]) -> Price | None:
    """The price of `provider:id`, None when nobody knows it. Our own stand-ins for a model cost nothing. An override
    may name the model, its id, or a provider for all of its models; then count the bundled prices (genai-prices,
    offline)."""
    provider, _, model_id = model.partition(":")
    for name in (model, model_id, provider):
        if name in overrides:
            return overrides[name]
    if provider in ("offline", "scripted", "cassette"):
        return Price(_NOTHING, _NOTHING, _NOTHING)
    # A model of that name elsewhere has another price: a server that is not in the table is not looked up.
    seller = _SELLERS.get(provider)
    if seller is None:
        return None
    from genai_prices import Usage as PricedUsage  # not at the top: the table is large
    from genai_prices import calc_price
    from genai_prices.types import TieredPrices

    try:
        known = calc_price(PricedUsage(input_tokens=1), model_ref=model_id, provider_id=seller).model_price
    except LookupError:
        return None
    listed = (known.input_mtok, known.output_mtok, known.cache_read_mtok)
    tiered = [each for each in listed if isinstance(each, TieredPrices)]
    input_, output, cached = (each.base if isinstance(each, TieredPrices) else each for each in listed)
    short = Price(input_ or _NOTHING, output or _NOTHING, cached)
    if not tiered:
        return short
    input_, output, cached = (each.tiers[-1].price if isinstance(each, TieredPrices) else each for each in listed)
    long = Price(input_ or _NOTHING, output or _NOTHING, cached)
    return msgspec.structs.replace(short, long_above=min(each.tiers[0].start for each in tiered), long=long)
