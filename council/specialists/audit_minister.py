"""The audit minister (source: Kingdom, "Minister Council"): reads a specialist's telemetry, and proposes rules to add or remove.

A pure function of what was recorded. Its proposals are plans, which a person decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from council.plans.approval import ProposedOperation
from council.safety.ministers import auditor
from council.safety.untrusted import plain_line
from council.specialists.specialist_registry import Specialist, TelemetryRow
from council.specialists.specialist_spec import as_agent_spec

MIN_RULES = 3
_HIGH_FAILURE_RATE = 0.5  # the original's warning
_OFTEN = 3  # uses that met one error: no chance
_UNSURE = "If something that it needs is missing or uncertain, it says so and does not guess."
_ERROR_CHARS = 160


class AuditReport(msgspec.Struct, frozen=True):
    """The findings, in words, and the operations of the plan that would mend them."""

    findings: tuple[str, ...]
    proposals: tuple[ProposedOperation, ...]


def audited(one: Specialist, rows: Sequence[TelemetryRow]) -> AuditReport:
    """The report on the present version. `rows` are all of its telemetry."""
    uses = [row for row in rows if row.kind == "use" and row.version == one.version]
    found = list(auditor(as_agent_spec(one.spec)).findings)
    if len(one.spec.dna_rules) < MIN_RULES:
        found.append(f"it has {len(one.spec.dna_rules)} rules; fewer than {MIN_RULES} leave much open")
    failed = [row for row in uses if not row.success]
    if uses and len(failed) >= _HIGH_FAILURE_RATE * len(uses):
        found.append(f"{len(failed)} of {len(uses)} uses failed")
    errors = Counter(plain_line(row.error, _ERROR_CHARS) for row in failed if row.error)
    often = [(error, count) for error, count in errors.most_common(_OFTEN) if count >= _OFTEN]
    found += [f"{count} uses met the same error: {error}" for error, count in often]
    if objections := sum(row.objected for row in uses):
        found.append(f"people objected to {objections} of {len(uses)} uses")
    in_suite = [row for row in rows if row.kind == "training" and row.run_id == one.suite_run and not row.success]
    found += [f"its latest suite failed in {len(in_suite)} cases"] if in_suite else []
    return AuditReport(tuple(found), tuple(proposals(one, failed)))


def proposals(one: Specialist, failed: Sequence[TelemetryRow]) -> Iterator[ProposedOperation]:
    """Rules that would answer the findings: a rule that is there twice goes, what no rule says is added."""
    rules = [" ".join(rule.lower().split()).rstrip(".") for rule in one.spec.dna_rules]
    twice = [number for number, rule in enumerate(rules, start=1) if rule in rules[: number - 1]]
    if twice:  # one at a time: each plan is a version
        yield ProposedOperation("removeRule", {"specialist": one.id, "number": twice[0]})
        return
    findings = auditor(as_agent_spec(one.spec)).findings
    if any(finding.startswith("no rule says what it does when") for finding in findings):
        yield ProposedOperation("addRule", {"specialist": one.id, "rule": _UNSURE})
        return
    fields = ", ".join(one.spec.output_schema.get("required", ()))
    if fields and sum("must contain" in row.error for row in failed) >= _OFTEN:
        rule = f"Its output always has all of these fields: {fields}."
        if rule not in one.spec.dna_rules:
            yield ProposedOperation("addRule", {"specialist": one.id, "rule": rule})
