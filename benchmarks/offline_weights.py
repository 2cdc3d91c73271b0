"""Fits the weights of the offline engine's score: `python -m benchmarks.offline_weights`.

A logistic regression with a ridge, over all pairs of figures of the labelled sets that nothing explains. A pair is right
when both lines belong to one labelled disagreement and give its values. Each set is then scored by weights that are
fitted to the others. The arithmetic of totals is counted in, and is not fitted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.offline_sets import fitted_sets, labelled_documents, within
from council.llm.base import Message
from council.llm.offline.case import build_case
from council.llm.offline.mentions import Mention
from council.llm.offline.mismatches import WEIGHTS, Comparison
from council.llm.offline.text import Statement

_RIDGE = 1.0
_SHOWN = 6  # findings of a page
_STEPS = 30  # of Newton's method, which needs eight


@dataclass(frozen=True)
class Labelled:
    compared: Comparison
    totals: Sequence[Statement]
    labels: Sequence[dict[str, Any]]
    measured: NDArray[np.float64]
    right: NDArray[np.float64]


def read_labelled() -> list[Labelled]:
    sets = []
    for folder in fitted_sets():
        _, labels, sources, info = labelled_documents(folder)
        case = build_case([Message("user", "documents", sources)], info)
        compared = Comparison(case.corpus.statements)
        rows, right = [], []
        for (i, j), seen in compared.features().items():
            pair = compared.mentions[i], compared.mentions[j]
            met = [label for label in labels["numbers"] if all(_of(m.statement, label) for m in pair)]
            stated = any(all(_gives(m, label) for m in pair) for label in met)
            if stated or not met:  # other figures of two labelled lines teach nothing
                rows.append([seen.get(name, 0.0) for name in WEIGHTS])
                right.append(float(stated))
        totals = [wrong.row for wrong in case.wrong_sums]
        sets.append(Labelled(compared, totals, labels["numbers"], np.array(rows), np.array(right)))
    return sets


def fitted(sets: Sequence[Labelled]) -> dict[str, float]:
    measured = np.concatenate([each.measured for each in sets])
    right = np.concatenate([each.right for each in sets])
    spread = measured.std(0)
    spread[spread == 0] = 1.0
    scaled = measured / spread
    ridge = np.eye(len(WEIGHTS)) * _RIDGE
    ridge[0, 0] = 0.0
    weights = np.zeros(len(WEIGHTS))
    for _ in range(_STEPS):
        probable = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (right - probable) - ridge @ weights
        weights += np.linalg.solve((scaled.T * (probable * (1 - probable))) @ scaled + ridge, slope)
    return dict(zip(WEIGHTS, (weights / spread).tolist(), strict=True))


def found_by(weights: dict[str, float], told: Labelled) -> tuple[int, int, int]:
    """Findings, those of them that are right, and labelled disagreements found."""
    pairs = [(a.statement, b.statement) for a, b in told.compared.pairs(weights)[:_SHOWN]]
    findings = [*pairs, *((row,) for row in told.totals)]
    met = [{i for i, each in enumerate(told.labels) if all(_of(s, each) for s in found)} for found in findings]
    return len(findings), sum(map(bool, met)), len(set().union(*met))


def _of(said: Statement, label: dict[str, Any]) -> bool:
    return within((said.path, said.line, said.end_line), label)


def _gives(mention: Mention, label: dict[str, Any]) -> bool:
    shown = _plain(mention.shown)
    values = [_plain(value) for value in label["values"]]
    return any(
        shown == value or (len(shown) > 1 and shown in value) or (len(value) > 1 and value in shown) for value in values
    )


def _plain(text: str) -> str:
    return re.sub(r"\D", "", re.sub(r"[.,]00$", "", text)) or text.lower()


if __name__ == "__main__":
    sets = read_labelled()
    print({name: round(weight, 2) for name, weight in fitted(sets).items()})
    counts = [found_by(fitted(sets[:i] + sets[i + 1 :]), told) for i, told in enumerate(sets)]
    findings, right, found = (sum(column) for column in zip(*counts, strict=True))
    print(
        f"Each set left out in turn: {right} of {findings} right, {found} of {sum(len(s.labels) for s in sets)} found."
    )
