"""Suites of test cases, the judgement of outputs, and the results of a training. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from fastjsonschema import JsonSchemaException

from council.ids import canonical_json
from council.specialists.specialist_spec import SpecialistSpec, TestCase, compiled

MIN_CASES = 8
MAX_CASES = 40  # each is a step, and for a prompt specialist a call
MIN_DIFFERENT_OUTPUTS = 3
MIN_CONFIDENCE = 0.75  # the source's gate: a training below it is rejected
_TOLERANCE = 1e-6  # between two numbers that are one
_DRAWS = 2_000  # of the bootstrap


class TestSuite(msgspec.Struct, frozen=True):
    """The cases of a specialist. The designer sees `visible`, the person's own first; `hidden` came from the request alone."""

    __test__ = False  # pytest collects by name

    visible: tuple[TestCase, ...]
    hidden: tuple[TestCase, ...]

    @property
    def cases(self) -> tuple[TestCase, ...]:
        return (*self.visible, *self.hidden)


class CaseTrial(msgspec.Struct, frozen=True, omit_defaults=True):
    """An output of a specialist, before anybody compares it. `error` says why there is none. `said` is its own confidence:
    recorded, never a gate. `level` names the isolation, empty where no code ran."""

    output: Any = None
    error: str = ""
    said: float | None = None
    level: str = ""
    duration_s: float = 0.0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None

    def judged(self, expected: Mapping[str, Any]) -> CaseResult:
        confidence = 0.0 if self.error else match(expected, self.output)
        return CaseResult(success=confidence == 1, confidence=confidence, **msgspec.structs.asdict(self))


class CaseResult(CaseTrial, kw_only=True, frozen=True, omit_defaults=True):
    """The outcome of one case. `confidence` is the share of the expected fields that match, 0 on an error."""

    success: bool
    confidence: float


class TrainingGain(msgspec.Struct, frozen=True):
    """The mean gain of a specialist over the same model without it, case by case, with its 95 % interval."""

    gain: float
    low: float
    high: float
    cases: int

    @property
    def is_better(self) -> bool:
        """True when the whole interval lies above zero."""
        return self.low > 0

    def __str__(self) -> str:
        interval = f"95 % interval {self.low:+.2f} to {self.high:+.2f}, {self.cases} hidden cases"
        told = f"Compared with the same model without it, its answers match by {self.gain:+.2f} ({interval})."
        return told if self.is_better else f"{told} It is no better, and so not worth having."


def judge_suite(suite: TestSuite, spec: SpecialistSpec) -> tuple[str, ...]:
    """The faults of a suite; empty for one that can be used."""
    cases, found = suite.cases, []
    if not MIN_CASES <= len(cases) <= MAX_CASES:
        found.append(f"it has {len(cases)} cases, and needs {MIN_CASES} to {MAX_CASES}")
    if len(suite.hidden) < len(suite.visible):
        found.append(f"{len(suite.hidden)} of {len(cases)} cases are hidden, and half of them must be")
    if suite.visible[: len(spec.examples)] != spec.examples:
        found.append("it does not begin with the person's own cases")
    inputs = [canonical_json(case.input) for case in cases]
    found += [f"case {n} has the input of an earlier one" for n, one in enumerate(inputs, 1) if one in inputs[: n - 1]]
    if len({canonical_json(case.expected_output) for case in cases}) < MIN_DIFFERENT_OUTPUTS:
        found.append(f"it has fewer than {MIN_DIFFERENT_OUTPUTS} different expected outputs")
    for number, case in enumerate(cases, start=1):
        if fault := schema_fault(spec.input_schema, case.input):
            found.append(f"the input of case {number} does not fit the input schema: {fault}")
        if all(value == {"any": True} for value in case.expected_output.values()):
            found.append(f"the expected output of case {number} names no value")
        if fault := expected_fault(spec.output_schema, case.expected_output):
            found.append(f"the expected output of case {number} {fault}")
    if not found:
        constant = max(_mean(match(case.expected_output, one.expected_output) for case in cases) for one in cases)
        echo = _mean(match(case.expected_output, case.input) for case in cases)
        for share, what in ((constant, "one answer for all of its cases"), (echo, "the input as the answer")):
            if share >= MIN_CONFIDENCE:
                found.append(f"{what} would reach {share:.2f}, and {MIN_CONFIDENCE} is enough to pass")
    return tuple(found)


def expected_fault(schema: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The reason why an expected output does not fit an output schema; empty where it does."""
    if stray := sorted(set(expected) - set(schema["properties"])):
        return f"has `{stray[0]}`, which the output schema does not name"
    given = {name: value for name, value in expected.items() if not _is_predicate(value)}
    properties = {name: part for name, part in schema["properties"].items() if name in given}
    fault = schema_fault({"type": "object", "properties": properties}, given)
    return f"does not fit the output schema: {fault}" if fault else ""


def schema_fault(schema: Mapping[str, Any], value: Any) -> str:
    """The reason why a value does not fit a JSON Schema; empty where it does."""
    try:
        compiled(schema)(value)
    except JsonSchemaException as error:
        return str(error)[:300].removeprefix("data").lstrip(". ") or "it does not fit"
    return ""


def match(expected: Mapping[str, Any], output: object) -> float:
    """The share of the expected fields that the output has: equal, or as a predicate says.

    Predicates are `{"any": true}`, `{"min": 1}`, `{"max": 9}`, `{"contains": "word"}`, `{"one_of": ["a", "b"]}`, and `min`
    with `max`.
    """

    def matches(expected: Any, found: Any) -> bool:
        if _equal(expected, found) or not _is_predicate(expected):
            return _equal(expected, found)
        if "one_of" in expected:
            return any(_equal(one, found) for one in expected["one_of"])
        if "contains" in expected:
            return isinstance(found, str) and _folded(str(expected["contains"])) in _folded(found)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        return "any" in expected or (
            is_number and expected.get("min", -math.inf) <= found <= expected.get("max", math.inf)
        )

    if not isinstance(output, Mapping):
        return 0.0
    return _mean(name in output and matches(value, output[name]) for name, value in expected.items())


def avg_confidence(results: Iterable[CaseResult]) -> float:
    """The source's `avg_confidence`: the mean over all cases, 0 for none."""
    return _mean(result.confidence for result in results)


def compared(with_: Sequence[float], without: Sequence[float]) -> TrainingGain:
    """The gain of each case with the specialist over the same case without it. The interval is a bootstrap of cases."""
    gains = [one - other for one, other in zip(with_, without, strict=True)]
    if not gains:
        return TrainingGain(0.0, 0.0, 0.0, 0)
    lot = random.Random(0)  # noqa: S311  statistics, not cryptography; the same interval each time
    means = sorted(_mean(lot.choices(gains, k=len(gains))) for _ in range(_DRAWS))
    tail = round(_DRAWS * 0.025)
    return TrainingGain(_mean(gains), means[tail], means[-tail - 1], len(gains))


def _is_predicate(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    keys, numbers = set(value), [part for part in value.values() if isinstance(part, int | float)]
    if keys == {"any"}:
        return value["any"] is True
    if keys == {"one_of"}:
        return isinstance(value["one_of"], list | tuple)
    return keys == {"contains"} or (bool(keys) and keys <= {"min", "max"} and len(numbers) == len(keys))


def _equal(expected: Any, found: Any) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, float | int) and isinstance(found, float | int):
        whole = isinstance(expected, int) and isinstance(found, int)
        return expected == found if whole else math.isclose(expected, found, rel_tol=1e-9, abs_tol=_TOLERANCE)
    if isinstance(expected, str) and isinstance(found, str):
        return _folded(expected) == _folded(found)
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return expected.keys() == found.keys() and all(_equal(part, found[name]) for name, part in expected.items())
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        return len(expected) == len(found) and all(map(_equal, expected, found))
    return bool(expected == found)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _mean(values: Iterable[float]) -> float:
    """Rounded, so that a mean that is 0.75 is not a hair below."""
    each = list(values)
    return round(math.fsum(each) / len(each), 9) if each else 0.0
