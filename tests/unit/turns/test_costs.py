"""The cost of calls: for one, for a sum, and where nobody knows."""

from __future__ import annotations

from decimal import Decimal

import pytest

from council.budgets.prices import Price
from council.engine.receipts import TokenCount
from council.llm.base import Usage, is_extract, mode_of
from council.turns.costs import cost_of, sum_of, tokens_of, told_cost
from council.turns.result import TurnResult

PRICES = {"gemini:g": Price(Decimal(1), Decimal(4)), "scripted:s": Price(Decimal(0), Decimal(0)), "openai:x": None}


USAGE = Usage(1_000_000, 500_000)


def call(model: str = "gemini:g", usage: Usage | None = USAGE) -> TurnResult:
    return TurnResult("text", model, usage=usage)


@pytest.mark.parametrize(
    ("result", "cost"),
    [
        (call(), Decimal(3)),
        (call(usage=None), None),
        (call("openai:x"), None),
        (call("openai:never-heard-of"), None),
        (call("scripted:s", None), Decimal(0)),
        (call("cassette:gemini:g", None), Decimal(0)),
    ],
    ids=["priced", "not counted", "no price", "unknown", "free, not counted", "from a cassette"],
)
def test_a_call_costs_what_its_tokens_cost_and_is_unknown_where_they_are(
    result: TurnResult, cost: Decimal | None
) -> None:
    assert cost_of(result, PRICES) == cost


def test_a_sum_is_unknown_as_soon_as_one_part_is() -> None:
    assert sum_of([call(), call("scripted:s")], PRICES) == 3.0
    assert sum_of([call(), call(usage=None)], PRICES) is None
    assert sum_of([], PRICES) == 0.0


@pytest.mark.parametrize(
    ("usd", "told"),
    [
        (None, "unknown"),
        (0.0, "none"),
        (0.000042345, "0.000042 USD"),
        (0.001, "0.001 USD"),
        (0.0999, "0.10 USD"),
        (0.5, "0.50 USD"),
        (1234.567, "1,234.57 USD"),
    ],
)
def test_a_cost_is_told_to_the_cent_and_below_ten_cents_to_two_figures(usd: float | None, told: str) -> None:
    assert told_cost(usd) == told


def test_tokens_are_counted_where_they_are_known_and_the_other_calls_told() -> None:
    assert tokens_of([call(), call(usage=Usage(1, 2, 3)), call(usage=None)]) == TokenCount(1_000_001, 500_002, 3, 1)


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        ("gemini:g", "language-model"),
        ("offline", "offline-extractive"),
        ("scripted:s", "scripted"),
        ("cassette:gemini:g", "replay"),
        ("", "none"),
    ],
)
def test_the_kind_of_model_is_told_by_its_name(model: str, mode: str) -> None:
    assert mode_of(model) == mode


@pytest.mark.parametrize(
    ("model", "extracts"),
    [
        ("offline", True),
        ("cassette:offline", True),
        ("cassette:gemini:g", False),
        ("gemini:offline", False),
        ("", False),
    ],
)
def test_an_extract_is_what_no_language_model_said(model: str, extracts: bool) -> None:
    assert is_extract(model) is extracts
