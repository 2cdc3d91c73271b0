"""The arithmetic of an evaluation against values worked out by hand, and against a reference that takes the long way."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from council.evaluation.meter import Expense
from council.evaluation.statistics import (
    MIN_QUESTIONS,
    MIN_TO_RULE_OUT,
    Arm,
    EvaluationFigure,
    Figures,
    MarkedAnswer,
    QuestionRow,
    draw,
    figure,
    figures,
    percentile,
    ratio,
    verdict,
)


def marked(right: bool, confidence: float | None = 0.5, tokens: int = 100, **keys: Any) -> MarkedAnswer:
    return MarkedAnswer(right, confidence, confidence is not None, Expense(1, tokens, 0.001, 0.5), **keys)


def row(name: str, single: MarkedAnswer, vote: MarkedAnswer, council: MarkedAnswer, **keys: Any) -> QuestionRow:
    arms: dict[Arm, MarkedAnswer] = {"single": single, "vote": vote, "council": council}
    return QuestionRow(name, arms, **keys)


def by_rights(*rights: tuple[bool, bool, bool], vote_tokens: int = 100) -> list[QuestionRow]:
    """Rows of which only matters who was right: single, vote, council."""
    return [
        row(str(at), marked(single), marked(vote, tokens=vote_tokens), marked(council))
        for at, (single, vote, council) in enumerate(rights)
    ]


def of(rows: list[QuestionRow], resamples: int = 200, seed: int = 7) -> Figures:
    return figures(rows, resamples=resamples, seed=seed)


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_accuracy_flips_and_costs_are_what_a_hand_computes() -> None:
    rows = [
        row("a", marked(True), marked(True, tokens=390), marked(False, tokens=400), bad=2, kept=1, first_round=True),
        row("b", marked(False), marked(True, tokens=410), marked(True, tokens=400), good=1, other=1, first_round=False),
        row("c", marked(False), marked(False, tokens=400), marked(True, tokens=400), good=3, first_round=True),
        row("d", marked(True), marked(True, tokens=400), marked(True, tokens=400), kept=3),
    ]
    found = of(rows)
    assert {arm: each.accuracy.value for arm, each in found.arms.items()} == {
        "single": 0.5,
        "vote": 0.75,
        "council": 0.75,
    }
    assert found.council_less_vote.value == 0.0
    assert found.council_less_single.value == 0.25
    assert (found.good_flips.value, found.bad_flips.value) == (0.5, 0.25)
    assert (found.members_good.value, found.members_bad.value) == (1.0, 0.5)
    assert found.first_round.value == pytest.approx(2 / 3)
    assert found.counts == {
        "good_flips": 2,
        "bad_flips": 1,
        "only_council_right": 1,
        "only_vote_right": 1,
        "members_good": 4,
        "members_bad": 2,
        "members_other": 1,
        "members_kept": 4,
    }
    assert found.vote_to_council_tokens == 1.0
    assert found.arms["vote"].total == Expense(4, 1600, 0.004, 2.0)
    assert found.arms["vote"].tokens.value == 400


def test_calibration_is_what_a_hand_computes() -> None:
    answers = [marked(True, 0.9), marked(False, 0.95), marked(True, 1.0), marked(False, 0.25), marked(False, None)]
    found = of([row(str(at), each, each, each) for at, each in enumerate(answers)]).arms["single"]
    # (0.1² + 0.95² + 0² + 0.25²) / 4; the unreadable one has no confidence and does not count here, but in accuracy it does
    assert found.brier.value == pytest.approx((0.01 + 0.9025 + 0.0 + 0.0625) / 4)
    # the bin from 0.9 holds three, mean confidence 0.95, accuracy 2/3; the one from 0.2 one, 0.25 and 0
    assert found.ece.value == pytest.approx(3 / 4 * (0.95 - 2 / 3) + 1 / 4 * 0.25)
    assert [(each.low, each.count) for each in found.bins] == [(0.2, 1), (0.9, 3)]
    assert found.accuracy.value == 0.4
    assert found.unreadable == 1


def test_a_failed_answer_is_wrong_and_counted_beside_unreadable_ones() -> None:
    found = of([row("a", marked(True), marked(True), marked(False, None, failed=True))]).arms["council"]
    assert (found.accuracy.value, found.failed, found.unreadable) == (0.0, 1, 0)


def test_percentiles_are_linear_between_neighbours() -> None:
    assert percentile([1.0, 2.0, 4.0], 0.75) == 3.0
    assert percentile([], 0.5) is None


def test_an_unknown_price_is_unknown_and_never_zero() -> None:
    unpriced = MarkedAnswer(True, 0.5, True, Expense(1, 10, None, 0.1))
    found = of([row("a", marked(True), marked(True), unpriced)])
    assert found.arms["council"].total.usd is None
    assert found.arms["council"].usd == EvaluationFigure(None, None, None)


def test_no_question_gives_no_figure() -> None:
    found = of([])
    assert found.arms["vote"].accuracy == EvaluationFigure(None, None, None)
    assert verdict(found).word == "not_enough_questions"


# ── against a reference ──────────────────────────────────────────────────────────────────────────────────────────────


def the_long_way(rows: list[QuestionRow], drawn: list[int]) -> dict[str, float]:
    """All of it for one draw, written down without any of the code under test."""
    chosen = [rows[at] for at in drawn]
    right = {arm: [float(each.arms[arm].right) for each in chosen] for arm in ("single", "vote", "council")}  # type: ignore[index]
    result = {f"accuracy {arm}": sum(values) / len(values) for arm, values in right.items()}
    result["d"] = sum(c - v for c, v in zip(right["council"], right["vote"], strict=True)) / len(chosen)
    pairs = [(each.arms["council"].confidence, float(each.arms["council"].right)) for each in chosen]
    stated = [(confidence, hit) for confidence, hit in pairs if confidence is not None]
    result["brier"] = sum((confidence - hit) * (confidence - hit) for confidence, hit in stated) / len(stated)
    ece = 0.0
    for low in range(10):
        upper = 1.1 if low == 9 else (low + 1) / 10
        inside = [(c, h) for c, h in stated if low / 10 <= c < upper]
        if inside:
            confidence = sum(c for c, _ in inside) / len(inside)
            accuracy = sum(h for _, h in inside) / len(inside)
            ece += len(inside) / len(stated) * abs(confidence - accuracy)
    result["ece"] = ece
    return result


def test_every_interval_is_that_of_a_reference_that_takes_the_long_way() -> None:
    lot = random.Random(3)
    confidences = [0.05, 0.15, 0.35, 0.55, 0.65, 0.85, 0.95, 1.0]
    rows = [
        row(str(at), *(marked(lot.random() < 0.6, lot.choice(confidences)) for _ in range(3)))  # type: ignore[misc]
        for at in range(25)
    ]
    found = of(rows, resamples=400, seed=11)
    reference = [the_long_way(rows, drawn) for drawn in draw(25, 400, 11)]
    shown = {
        "accuracy single": found.arms["single"].accuracy,
        "accuracy vote": found.arms["vote"].accuracy,
        "accuracy council": found.arms["council"].accuracy,
        "d": found.council_less_vote,
        "brier": found.arms["council"].brier,
        "ece": found.arms["council"].ece,
    }
    for name, got in shown.items():
        values = sorted(each[name] for each in reference)
        assert got.low == pytest.approx(percentile(values, 0.025)), name
        assert got.high == pytest.approx(percentile(values, 0.975)), name
        assert got.value == pytest.approx(the_long_way(rows, list(range(25)))[name]), name


def test_the_bootstrap_approaches_the_exact_distribution_of_all_draws() -> None:
    values: list[float | None] = [0.0, 1.0, 1.0, 3.0, 10.0]
    exact = sorted(sum(chosen) / 5 for chosen in itertools.product([0.0, 1.0, 1.0, 3.0, 10.0], repeat=5))
    got = figure(ratio(values), 5, draw(5, 20_000, 1))
    assert got.low == pytest.approx(percentile(exact, 0.025), abs=0.21)
    assert got.high == pytest.approx(percentile(exact, 0.975), abs=0.41)


def test_a_seed_gives_the_same_intervals_again() -> None:
    rows = by_rights(*[(True, at % 3 == 0, at % 2 == 0) for at in range(30)])
    assert of(rows, seed=5) == of(rows, seed=5)
    assert of(rows, seed=5).council_less_vote != of(rows, seed=6).council_less_vote


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────

VOTE, COUNCIL, BOTH = (True, True, False), (False, False, True), (True, True, True)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (by_rights(*[VOTE] * 8, *[BOTH] * 12), "use_the_vote"),
        (by_rights(*[COUNCIL] * 8, *[BOTH] * 12), "use_the_council"),
        (by_rights(*[VOTE] * (MIN_QUESTIONS - 1)), "not_enough_questions"),
        (by_rights(*[COUNCIL] * (MIN_QUESTIONS - 1)), "not_enough_questions"),
        (by_rights(*[VOTE] * 2, *[COUNCIL] * 2, *[BOTH] * 26), "not_enough_questions"),
        (by_rights(*[BOTH] * (MIN_TO_RULE_OUT - 1)), "not_enough_questions"),
        (by_rights(*[BOTH] * MIN_TO_RULE_OUT), "use_the_vote"),
        (by_rights(*[COUNCIL] * 20, vote_tokens=89), "unequal_budgets"),
        (by_rights(*[COUNCIL] * 20, vote_tokens=111), "unequal_budgets"),
        (by_rights(*[COUNCIL] * 20, vote_tokens=110), "use_the_council"),
    ],
)
def test_the_verdict_follows_the_rule_and_nothing_else(rows: list[QuestionRow], word: str) -> None:
    assert verdict(of(rows)).word == word


def test_labels_that_change_sides_turn_the_verdict_round() -> None:
    lot = random.Random(9)
    rights = [(lot.random() < 0.5, (best := lot.random()) < 0.8, best > 0.7) for _ in range(80)]
    swapped = [(single, council, vote) for single, vote, council in rights]
    assert verdict(of(by_rights(*rights))).word == "use_the_vote"
    assert verdict(of(by_rights(*swapped))).word == "use_the_council"


def test_equal_confidences_lie_in_one_bin_whether_they_are_a_mean_or_not() -> None:
    mean = math.nextafter(0.8, 0)  # as the sum of equal confidences may come out
    found = of([row(str(number), marked(True, 0.8), marked(True, mean), marked(True, 0.8)) for number in range(3)])
    assert [[(each.low, each.count) for each in arm.bins] for arm in found.arms.values()] == [[(0.8, 3)]] * 3
