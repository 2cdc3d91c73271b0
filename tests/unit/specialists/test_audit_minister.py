"""The bounds of a promotion, and what the audit minister reads out of telemetry."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from council.specialists.audit_minister import audited
from council.specialists.lifecycle import lacks
from council.specialists.specialist_registry import Specialist, TelemetryRow
from tests.apprentices import SPEC

ONE = Specialist(
    "id-1", "email_validator", "anna", SPEC, execution_count=50, success_count=50, avg_confidence=0.9, suite_run="suite"
)


@pytest.mark.parametrize(
    ("changes", "is_eligible"),
    [
        ({"execution_count": 50, "success_count": 50}, True),
        ({"execution_count": 49, "success_count": 49}, False),
        ({"execution_count": 1000, "success_count": 900}, True),
        ({"execution_count": 1000, "success_count": 899}, False),
        ({"avg_confidence": 0.80}, True),
        ({"avg_confidence": sum([0.8] * 7) / 7}, True),
        ({"avg_confidence": 0.799}, False),
        ({"avg_confidence": None}, False),
    ],
)
def test_the_bounds_of_a_promotion(changes: dict[str, Any], is_eligible: bool) -> None:
    assert (lacks(msgspec.structs.replace(ONE, **changes)) == ()) is is_eligible


def use(number: int, **values: Any) -> TelemetryRow:
    told = {
        "run_id": f"run-{number}",
        "step": "handoff-1",
        "agent_id": "id-1",
        "version": 1,
        "user_id": "anna",
        "at": number,
    }
    return TelemetryRow(**{"kind": "use", "success": 1, **told, **values})


def test_the_auditor_tells_of_failures_errors_and_objections_of_the_present_version() -> None:
    rows = [use(number, success=0, error="data must contain ['host'] properties") for number in range(3)]
    rows += [use(4, objected=1), use(5, version=9, success=0), use(6, kind="training", run_id="suite", success=0)]
    report = audited(ONE, rows)
    for finding in (
        "it has 2 rules; fewer than 3 leave much open",
        "3 of 4 uses failed",
        "3 uses met the same error: data must contain ['host'] properties",
        "people objected to 1 of 4 uses",
        "its latest suite failed in 1 cases",
    ):
        assert finding in report.findings
    [proposal] = report.proposals
    assert (proposal.tool, proposal.arguments["specialist"]) == ("addRule", "id-1")
    assert proposal.arguments["rule"] == "Its output always has all of these fields: valid, host."


def test_a_rule_that_is_there_twice_is_to_go_before_another_comes() -> None:
    rules = ("It answers for every text.", "It names the host.", "it answers for every text")
    report = audited(msgspec.structs.replace(ONE, spec=msgspec.structs.replace(SPEC, dna_rules=rules)), [])
    assert [(one.tool, one.arguments["number"]) for one in report.proposals] == [("removeRule", 3)]
    sure = msgspec.structs.replace(ONE, spec=msgspec.structs.replace(SPEC, dna_rules=rules[:2]))
    assert [one.tool for one in audited(sure, []).proposals] == ["addRule"]
    assert audited(ONE, []).proposals == ()
