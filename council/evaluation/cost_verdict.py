"""The verdict on the two that cost the same: a rule over the figures and nothing else, so that other labels give
another verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from council.evaluation.statistics import Figures

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
