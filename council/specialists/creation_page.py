"""The page of a creation or an examination: what came of it, the design, the ministers' words, the cases. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from council.artifacts.page import Page, Section, Table
from council.engine.runs import Finish
from council.ids import readable_json
from council.specialists.creation_state import CreationState
from council.specialists.specialist_spec import SpecialistSpec
from council.specialists.suites import CaseResult, TestSuite, avg_confidence
from council.turns.account import Account


def build_page(state: CreationState, finish: Finish | None) -> Page:
    """The page, ended or still growing."""
    spec, suite = state.spec, state.suite
    heading, answer = state.answer(finish)
    sections = []
    for number, (guardian, validator) in enumerate(state.reviews, start=1):
        safety = f"Guardian: {guardian.verdict}, risk {guardian.risk_level}: {guardian.reason}."
        validity = f"Validator: {validator.verdict}." + "".join(f" {issue}." for issue in validator.issues)
        sections.append(Section(f"Design {number}", (safety, validity), "bullets"))
    if state.plan is not None:
        sections.append(Section("The plan", (f"Plan {state.plan.plan_id}.", *state.plan.findings), "bullets"))
    if state.results:
        told = [f"avg_confidence: {avg_confidence(state.results):.2f}."]
        told += [str(state.comparison)] if state.comparison is not None else []
        sections.append(Section("Training", tuple(told), "bullets"))
    return Page(
        title=state.header.title,
        front_matter=state.front_matter(
            state.status(finish) if finish is not None else None,
            finish,
            specialist=spec.role if spec is not None else None,
            plan=state.plan.plan_id if state.plan is not None else None,
        ),
        notes=tuple(state.notes(finish)),
        heading=heading,
        answer=answer,
        task=state.request,
        tables=tuple(_tables(spec, suite, state.results)),
        sections=tuple(sections),
    )


def account_of(state: CreationState, protocol: str, finish: Finish | None) -> Account:
    """The account, for `council explain`."""
    ended = finish is not None and finish.error is None
    return state.account(
        protocol,
        build_page(state, finish),
        reads=tuple(item.as_read() for item in (state.bench.evidence if state.bench else ())),
        stopped="registered" if ended else "",
        stopped_because=state.outcome.rstrip(".") if ended else "",
    )


def _tables(spec: SpecialistSpec | None, suite: TestSuite | None, results: Sequence[CaseResult]) -> Iterator[Table]:
    if spec is not None:
        rows = [("role", spec.role), ("purpose", spec.purpose), ("kind", spec.kind)]
        rows += [("input", readable_json(spec.input_schema)), ("output", readable_json(spec.output_schema))]
        rows += [("credential", name) for name in spec.credentials]
        yield Table("The specialist", ("Field", "Value"), tuple(rows), spec.dna_rules)
    if suite is not None:
        found = [*results, *[None] * (len(suite.cases) - len(results))]
        cases = []
        for number, (case, result) in enumerate(zip(suite.cases, found, strict=True), start=1):
            name = f"{number}, hidden" if number > len(suite.visible) else str(number)
            came = ("", "", "")
            if result is not None:
                came = (result.error or readable_json(result.output), f"{result.confidence:.2f}", result.level)
            cases.append((name, readable_json(case.input), readable_json(case.expected_output), *came))
        yield Table("Cases", ("Case", "Input", "Expected", "Answer", "Confidence", "Isolation"), tuple(cases))
