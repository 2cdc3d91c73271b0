"""Suites: their rules, what matches, and what a comparison says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from council.specialists.specialist_spec import SpecialistSpec, TestCase
from council.specialists.suites import (
    MIN_CONFIDENCE,
    CaseResult,
    TestSuite,
    avg_confidence,
    compared,
    judge_suite,
    match,
)

SPEC = SpecialistSpec(
    "tally",
    "Counts the letters and says what it thinks.",
    ("Count.",),
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    {"type": "object", "properties": {"letters": {"type": "integer"}, "said": {"type": "string"}}},
    examples=(TestCase({"word": "plum"}, {"letters": 4, "said": "four"}),),
)
WORDS = ("plum", "pear", "fig", "apple", "quince", "date", "cherry", "")
CASES = tuple(TestCase({"word": word}, {"letters": len(word), "said": {"contains": word}}) for word in WORDS[1:])
GOOD = TestSuite((*SPEC.examples, *CASES[:3]), CASES[3:])


def result(confidence: float) -> CaseResult:
    return CaseResult(success=confidence == 1, confidence=confidence)


@pytest.mark.parametrize(
    ("expected", "output", "share"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, 1.0),
        ({"a": 1, "b": 2}, {"a": 1}, 0.5),
        ({"a": 0.3}, {"a": 0.1 + 0.2}, 1.0),
        ({"a": 1.0}, {"a": 1.00001}, 0.0),
        ({"a": 1_000_000}, {"a": 1_000_001}, 0.0),
        ({"a": 1_000_000.0}, {"a": 1_000_000.5}, 0.0),
        ({"a": 1e15}, {"a": 1e15 + 0.5}, 1.0),
        ({"a": "Two  Words"}, {"a": " two words "}, 1.0),
        ({"a": "Two  Words"}, {"a": "twowords"}, 0.0),
        ({"a": True}, {"a": 1}, 0.0),
        ({"a": 1}, {"a": True}, 0.0),
        ({"a": {"any": True}}, {"a": [1]}, 1.0),
        ({"a": {"any": True}}, {}, 0.0),
        ({"a": {"min": 1, "max": 3}}, {"a": 2}, 1.0),
        ({"a": {"min": 1, "max": 3}}, {"a": 4}, 0.0),
        ({"a": {"min": 1}}, {"a": True}, 0.0),
        ({"a": {"contains": "Sofia"}}, {"a": "in sofia, now"}, 1.0),
        ({"a": {"one_of": ["x", 2]}}, {"a": 2.0}, 1.0),
        ({"a": {"one_of": ["x", 2]}}, {"a": 3}, 0.0),
        ({"a": [1, {"b": "C"}]}, {"a": [1.0, {"b": "c"}]}, 1.0),
        ({"a": [1]}, {"a": [1, 1]}, 0.0),
        ({"a": None}, {"a": None}, 1.0),
        ({"a": 1}, "a", 0.0),
        ({}, {"a": 1}, 0.0),
    ],
)
def test_an_output_matches_by_the_share_of_its_fields(expected: dict[str, Any], output: Any, share: float) -> None:
    assert match(expected, output) == share


@pytest.mark.parametrize(("shares", "passes"), [((1, 1, 1, 0), True), ((0.749,) * 8, False), ((0.75,) * 3, True)])
def test_the_gate_is_at_three_quarters(shares: tuple[float, ...], passes: bool) -> None:
    assert (avg_confidence(map(result, shares)) >= MIN_CONFIDENCE) is passes
    assert avg_confidence(map(result, (2 / 3, 1, 2 / 3, 2 / 3, 1, 2 / 3, 2 / 3, 2 / 3))) == 0.75
    assert avg_confidence(()) == 0


def test_a_good_suite_has_no_fault() -> None:
    assert judge_suite(GOOD, SPEC) == ()


def suite(visible: tuple[TestCase, ...] = GOOD.visible, hidden: tuple[TestCase, ...] = GOOD.hidden) -> TestSuite:
    return TestSuite(visible, hidden)


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (suite(hidden=GOOD.hidden[:3]), "it has 7 cases"),
        (suite(visible=(*GOOD.visible, GOOD.hidden[0]), hidden=GOOD.hidden[1:]), "half of them must be"),
        (suite(visible=tuple(reversed(GOOD.visible))), "the person's own cases"),
        (suite(hidden=(*GOOD.hidden[1:], GOOD.hidden[1])), "case 8 has the input of an earlier one"),
        (suite(hidden=(*GOOD.hidden[1:], TestCase({"word": 3}, {"letters": 1}))), "does not fit the input schema"),
        (suite(hidden=(*GOOD.hidden[1:], TestCase({"word": "x"}, {"letters": "1"}))), "does not fit the output schema"),
        (suite(hidden=(*GOOD.hidden[1:], TestCase({"word": "x"}, {"colour": 1}))), "has `colour`"),
        (suite(hidden=(*GOOD.hidden[1:], TestCase({"word": "x"}, {"said": {"any": True}}))), "names no value"),
    ],
)
def test_a_suite_with_a_fault_is_made_again(made: TestSuite, fault: str) -> None:
    assert any(fault in found for found in judge_suite(made, SPEC))


def test_a_suite_that_one_answer_or_an_echo_would_pass_is_made_again() -> None:
    spec = msgspec.structs.replace(SPEC, examples=(), output_schema=SPEC.input_schema)
    same = [TestCase({"word": f"w{n}"}, {"word": ("a", "b", "c")[max(0, n - 7)]}) for n in range(10)]
    assert any("one answer" in found for found in judge_suite(TestSuite(tuple(same[:5]), tuple(same[5:])), spec))
    echo = [TestCase({"word": f"w{n}"}, {"word": f"W{n}"}) for n in range(8)]
    assert any("the input" in found for found in judge_suite(TestSuite(tuple(echo[:4]), tuple(echo[4:])), spec))
    two = [TestCase({"word": f"w{n}"}, {"word": "ab"[n % 2]}) for n in range(8)]
    assert any("3 different" in found for found in judge_suite(TestSuite(tuple(two[:4]), tuple(two[4:])), spec))


def test_a_comparison_is_paired_and_says_when_a_specialist_is_not_worth_having() -> None:
    better = compared((1, 1, 1, 1), (0, 0.5, 0, 0))
    assert better.is_better
    assert (better.gain, better.cases) == (0.875, 4)
    assert "not worth having" not in str(better)
    even = compared((1, 0, 1, 0.5), (1, 0.5, 0, 0.5))
    assert not even.is_better
    assert even.low < 0 < even.high
    assert "not worth having" in str(even)
    assert not compared((), ()).is_better
    assert compared((1, 0, 1, 1), (0, 0, 1, 0)) == compared((1, 0, 1, 1), (0, 0, 1, 0))
