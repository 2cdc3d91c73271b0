"""The arithmetic of an evaluation: accuracy, flips, calibration, costs, each with a bootstrap interval; and the verdict that
follows from the figures and nothing else. Pure.

The bootstrap draws whole questions, with replacement, and the same draw serves every arm: what is paired stays paired. An
interval runs from the 2.5th to the 97.5th percentile of the figure over all draws (linear between neighbours).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from council.evaluation.meter import Expense

Arm = Literal["single", "vote", "council"]
ARMS: tuple[Arm, ...] = ("single", "vote", "council")
BINS = 10  # of confidence, equally wide; the last one holds 1.0
LEVEL = 0.95


@dataclass(frozen=True)
class MarkedAnswer:
    """One arm's answer to one question. `confidence` is None where none can be read; `failed`: no answer at all."""

    right: bool
    confidence: float | None
    readable: bool
    spent: Expense
    failed: bool = False


@dataclass(frozen=True)
class QuestionRow:
    """One question answered by all arms. `kept`, `good`, `bad` and `other` count members by their first and last
    position. They were as right as before, wrong and then right, right and then wrong, or wrong both times and not
    the same. `first_round`: whether the majority of the first round's positions was right; None where nobody stated
    one."""

    id: str
    arms: Mapping[Arm, MarkedAnswer]
    good: int = 0
    bad: int = 0
    other: int = 0
    kept: int = 0
    first_round: bool | None = None


@dataclass(frozen=True)
class EvaluationFigure:
    """A value with its interval; all None where there is nothing to compute it from."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Bin:
    """Answers whose confidence lies in [low, high), or in [low, high] for the last bin."""

    low: float
    high: float
    count: int
    mean_confidence: float
    accuracy: float


@dataclass(frozen=True)
class ArmFigures:
    accuracy: EvaluationFigure
    brier: EvaluationFigure
    ece: EvaluationFigure
    bins: tuple[Bin, ...]
    tokens: EvaluationFigure
    calls: EvaluationFigure
    seconds: EvaluationFigure
    usd: EvaluationFigure
    right: int
    unreadable: int
    failed: int
    total: Expense


@dataclass(frozen=True)
class Figures:
    """The figures of the questions that all arms answered. Costs are per question; differences are of accuracy.
    `good_flips` is the share of questions that the council got right and the single answer wrong, `bad_flips` that
    of the other way round. `members_good` and `members_bad` are the members per question that changed so between
    their first and last position."""

    questions: int
    arms: Mapping[Arm, ArmFigures]
    council_less_vote: EvaluationFigure
    council_less_single: EvaluationFigure
    vote_less_single: EvaluationFigure
    good_flips: EvaluationFigure
    bad_flips: EvaluationFigure
    members_good: EvaluationFigure
    members_bad: EvaluationFigure
    first_round: EvaluationFigure
    counts: Mapping[str, int]
    vote_to_council_tokens: float | None
    resamples: int
    seed: int


Draw = Sequence[int]  # indices of rows
Statistic = Callable[[Draw], float | None]


def figures(rows: Sequence[QuestionRow], *, resamples: int, seed: int) -> Figures:
    draws = draw(len(rows), resamples, seed)
    mean = partial(_mean, draws)
    right: dict[Arm, list[float | None]] = {arm: [float(row.arms[arm].right) for row in rows] for arm in ARMS}
    costs = {arm: sum((row.arms[arm].spent for row in rows), Expense()) for arm in ARMS}
    pairs = [(row.arms["single"].right, row.arms["council"].right) for row in rows]
    voted = [(row.arms["vote"].right, row.arms["council"].right) for row in rows]
    return Figures(
        questions=len(rows),
        arms={arm: _of_arm(rows, arm, draws) for arm in ARMS},
        council_less_vote=mean(_less(right["council"], right["vote"])),
        council_less_single=mean(_less(right["council"], right["single"])),
        vote_less_single=mean(_less(right["vote"], right["single"])),
        good_flips=mean([float(row.arms["council"].right and not row.arms["single"].right) for row in rows]),
        bad_flips=mean([float(row.arms["single"].right and not row.arms["council"].right) for row in rows]),
        members_good=mean([float(row.good) for row in rows]),
        members_bad=mean([float(row.bad) for row in rows]),
        first_round=mean([None if row.first_round is None else float(row.first_round) for row in rows]),
        counts={
            "good_flips": pairs.count((False, True)),
            "bad_flips": pairs.count((True, False)),
            "only_council_right": voted.count((False, True)),
            "only_vote_right": voted.count((True, False)),
            "members_good": sum(row.good for row in rows),
            "members_bad": sum(row.bad for row in rows),
            "members_other": sum(row.other for row in rows),
            "members_kept": sum(row.kept for row in rows),
        },
        vote_to_council_tokens=costs["vote"].tokens / costs["council"].tokens if costs["council"].tokens else None,
        resamples=resamples,
        seed=seed,
    )


def _mean(draws: Sequence[Draw], values: Sequence[float | None]) -> EvaluationFigure:
    return figure(ratio(values), len(values), draws)


def _less(left: Sequence[float | None], right: Sequence[float | None]) -> list[float | None]:
    return [(one or 0.0) - (other or 0.0) for one, other in zip(left, right, strict=True)]


def _of_arm(rows: Sequence[QuestionRow], arm: Arm, draws: Sequence[Draw]) -> ArmFigures:
    marked, mean = [row.arms[arm] for row in rows], partial(_mean, draws)
    total = sum((each.spent for each in marked), Expense())
    return ArmFigures(
        accuracy=mean([float(each.right) for each in marked]),
        brier=mean([brier(each) for each in marked]),
        ece=figure(expected_calibration_error(marked), len(rows), draws),
        bins=bins(marked),
        tokens=mean([float(each.spent.tokens) for each in marked]),
        calls=mean([float(each.spent.calls) for each in marked]),
        seconds=mean([each.spent.seconds for each in marked]),
        usd=mean([each.spent.usd for each in marked]) if total.usd is not None else EvaluationFigure(None, None, None),
        right=sum(each.right for each in marked),
        unreadable=sum(not each.readable and not each.failed for each in marked),
        failed=sum(each.failed for each in marked),
        total=total,
    )


def brier(answer: MarkedAnswer) -> float | None:
    """The square of how far the confidence was from what came: 0 is best, 0.25 is what 0.5 always costs."""
    return None if answer.confidence is None else (answer.confidence - float(answer.right)) ** 2


def bin_of(confidence: float) -> int:
    """A mean of confidences of 0.8 may come out as 0.7999…: it lies where they do."""
    return min(int(round(confidence * BINS, 9)), BINS - 1)


def bins(marked: Sequence[MarkedAnswer]) -> tuple[Bin, ...]:
    """Those that hold an answer."""
    found = []
    for number in range(BINS):
        held = [each for each in marked if each.confidence is not None and bin_of(each.confidence) == number]
        if held:
            sure = sum(each.confidence or 0.0 for each in held) / len(held)
            hit = sum(each.right for each in held) / len(held)
            found.append(Bin(number / BINS, (number + 1) / BINS, len(held), sure, hit))
    return tuple(found)


def expected_calibration_error(marked: Sequence[MarkedAnswer]) -> Statistic:
    """The distance of mean confidence and accuracy, over the bins by their share of the answers."""
    gaps = [None if each.confidence is None else float(each.right) - each.confidence for each in marked]
    places = [0 if each.confidence is None else bin_of(each.confidence) for each in marked]

    def statistic(drawn: Draw) -> float | None:
        sums = [0.0] * BINS
        count = 0
        for at in drawn:
            gap = gaps[at]
            if gap is not None:
                sums[places[at]] += gap
                count += 1
        return sum(map(abs, sums)) / count if count else None

    return statistic


def draw(count: int, resamples: int, seed: int) -> list[list[int]]:
    """`resamples` draws of `count` rows each, with replacement: the same for the same three numbers."""
    lot = random.Random(seed)  # noqa: S311  statistics, not cryptography
    return [lot.choices(range(count), k=count) for _ in range(resamples)] if count else []


def ratio(values: Sequence[float | None]) -> Statistic:
    """The mean of those that there are."""
    if None not in values:
        whole = [value for value in values if value is not None]
        return lambda drawn: sum(map(whole.__getitem__, drawn)) / len(drawn) if drawn else None

    def statistic(drawn: Draw) -> float | None:
        there = [value for value in map(values.__getitem__, drawn) if value is not None]
        return sum(there) / len(there) if there else None

    return statistic


def figure(statistic: Statistic, count: int, draws: Sequence[Draw]) -> EvaluationFigure:
    """The statistic of all rows, with its interval. A draw of which there is nothing to compute it from does not count."""
    drawn = sorted(value for value in map(statistic, draws) if value is not None)
    tail = (1 - LEVEL) / 2
    return EvaluationFigure(statistic(range(count)), percentile(drawn, tail), percentile(drawn, 1 - tail))


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Linear between neighbours; None of nothing."""
    if not ordered:
        return None
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


MIN_QUESTIONS = 20  # below it the percentiles of a bootstrap promise more than they hold
TOLERANCE = 0.10  # by how much the tokens of vote and council may differ and still be called equal
WORTH_IT = 0.05  # a gain in accuracy below it is none that a council is worth
MIN_TO_RULE_OUT = 60  # 3 / 60 is WORTH_IT: fewer questions without a difference do not rule one out (rule of three)

Word = Literal["use_the_vote", "use_the_council", "not_enough_questions", "unequal_budgets"]

RULE = (
    f"d is the accuracy of the council minus that of the vote, with its 95 % interval. No verdict where the tokens of the "
    f"two differ by more than {100 * TOLERANCE:.0f} %. With at least {MIN_QUESTIONS} questions: the council where the interval "
    f"lies above 0, the vote where it lies below 0. With at least {MIN_TO_RULE_OUT}: also the vote where the interval lies below "
    f"+{WORTH_IT:.2f}, for then a gain worth a council is ruled out. Otherwise there are not enough questions to tell."
)


@dataclass(frozen=True)
class EvaluationVerdict:
    word: Word
    sentence: str


def verdict(found: Figures) -> EvaluationVerdict:
    d = found.council_less_vote
    tokens = found.vote_to_council_tokens
    if d.value is None or d.low is None or d.high is None or tokens is None:
        return EvaluationVerdict("not_enough_questions", "Not enough questions to tell: none was answered by all arms.")
    if abs(tokens - 1) > TOLERANCE + 1e-9:  # 1.1 - 1 is more than 0.1
        return EvaluationVerdict(
            "unequal_budgets",
            f"No verdict: the vote spent {100 * tokens:.0f} % of the council's tokens, and only equal budgets can be compared.",
        )
    shown = f"d = {d.value:+.3f}, 95 % interval {d.low:+.3f} to {d.high:+.3f}, {found.questions} questions"
    if found.questions >= MIN_QUESTIONS and d.low > 0:
        return EvaluationVerdict("use_the_council", f"Use the council: it is right more often than the vote ({shown}).")
    if found.questions >= MIN_QUESTIONS and d.high < 0:
        return EvaluationVerdict("use_the_vote", f"Use the vote: it is right more often than the council ({shown}).")
    if found.questions >= MIN_TO_RULE_OUT and d.high < WORTH_IT:
        reason = f"a gain of {WORTH_IT:.2f} or more by the council is ruled out, and the vote is simpler"
        return EvaluationVerdict("use_the_vote", f"Use the vote: {reason} ({shown}).")
    return EvaluationVerdict("not_enough_questions", f"Not enough questions to tell ({shown}).")
