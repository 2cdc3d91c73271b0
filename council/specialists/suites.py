"""Suites of test cases, the judgement of outputs, and the results of a training. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from council.specialists.specialist_spec import TestCase

MIN_CASES = 8
MIN_CONFIDENCE = 0.75  # the source's gate: a training below it is rejected


class TestSuite(msgspec.Struct, frozen=True):
    """The cases of a specialist. The designer sees `visible`, the person's own first; `hidden` came from the request alone."""

    __test__ = False  # pytest collects by name

    visible: tuple[TestCase, ...]
    hidden: tuple[TestCase, ...]

    @property
    def cases(self) -> tuple[TestCase, ...]:
        return (*self.visible, *self.hidden)


class CaseResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one case. `confidence` is the share of the expected fields that match, 0 on an error. `said` is the
    specialist's own confidence: recorded, never a gate. `level` names the isolation, empty where no code ran."""

    success: bool
    confidence: float
    output: Any = None
    error: str = ""
    said: float | None = None
    level: str = ""
    duration_s: float = 0.0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
