"""Specialists put into a store without being made: a spec, its suite, the rows of a training and of uses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from council.ids import STEWARD, Principal
from council.plans.plan import Plan
from council.settings import Home, builtin_personas_dir, init_home
from council.specialists import specialist_registry as registry
from council.specialists import statements as sql
from council.specialists.lifecycle import LIFECYCLE, lifecycle_tools
from council.specialists.specialist_registry import Specialist, TelemetryRow
from council.specialists.specialist_spec import SpecialistSpec, TestCase
from council.specialists.suites import CaseResult, TestSuite
from council.storage.store import Store
from council.systems import System
from council.users.enrolment import add_user
from tests.planning import Planning

CODE = """
def run(input):
    email = input["email"].strip()
    name, at, host = email.partition("@")
    valid = bool(name) and "." in host.strip(".") and " " not in email and "@" not in host
    return {"valid": valid, "host": host if valid else ""}
"""
SPEC = SpecialistSpec(
    role="email_validator",
    purpose="Checks if a text is a valid e-mail address, and names its host.",
    dna_rules=("It answers for every text.", "If it is not sure, it says that the address is not valid."),
    input_schema={"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]},
    output_schema={
        "type": "object",
        "properties": {"valid": {"type": "boolean"}, "host": {"type": "string"}},
        "required": ["valid", "host"],
    },
    kind="code",
    code=CODE,
)


def _case(email: str, host: str = "") -> TestCase:
    return TestCase({"email": email}, {"valid": bool(host), "host": host})


SUITE = TestSuite(
    visible=(
        _case("anna@example.org", "example.org"),
        _case("anna"),
        _case("b@mail.test", "mail.test"),
        _case("@x.org"),
    ),
    hidden=(_case("c@sub.example.org", "sub.example.org"), _case("d e@x.org"), _case("f@@x.org"), _case("g@nohost")),
)
PASSED = tuple(CaseResult(success=True, confidence=1.0, level="L2") for _ in SUITE.cases)
NOON_MS = 1_795_348_800_000  # that of `planning.NOON`
ANNA, BERT, HANA = Principal("anna", "user"), Principal("bert", "user"), Principal("hana", "administrator")


def registered(
    store: Store,
    user: str = "anna",
    *,
    spec: SpecialistSpec = SPEC,
    run_id: str = "run-1",
    now_ms: int = NOON_MS,
    **how: Any,
) -> str:
    """The id of a specialist that was registered so."""
    asked = {"spec": spec, "suite": SUITE, "results": PASSED, "plan_id": "plan-1", **how}
    return store.write_now(lambda tx: registry.register(tx, user=user, run_id=run_id, now_ms=now_ms, **asked))


def used(
    store: Store,
    agent_id: str,
    successes: int,
    failures: int = 0,
    *,
    version: int = 1,
    at_ms: int = NOON_MS,
    name: str = "use",
) -> None:
    """So many uses are recorded."""
    rows = [
        TelemetryRow(
            run_id=f"{name}-{number}",
            step="handoff-1",
            agent_id=agent_id,
            version=version,
            user_id="anna",
            kind="use",
            success=int(number < successes),
            at=at_ms,
        )
        for number in range(successes + failures)
    ]
    store.write_now(lambda tx: [registry.record(tx, row) for row in rows])


def examined(
    store: Store, agent_id: str, confidence: float = 1.0, *, run_id: str = "exam", now_ms: int = NOON_MS + 1
) -> None:
    """Its suite was taken again by its present version."""
    results = [msgspec.structs.replace(one, confidence=confidence, success=confidence == 1) for one in PASSED]

    def write(tx: Any) -> None:
        [one] = [each for each in registry.rows_in(tx.execute, sql.ALL) if each.id == agent_id]
        registry.record_training(
            tx, agent_id, one.version, results, user="hana", run_id=run_id, model="gemini:fake", now_ms=now_ms
        )

    store.write_now(write)


def row(store: Store, agent_id: str) -> Specialist:
    """A specialist as it is now."""
    [found] = [each for each in registry.specialists(store) if each.id == agent_id]
    return found


class Office:
    """The plans of specialists over a store: `anna` and `bert` are users, `hana` is an administrator."""

    def __init__(self, store: Store, home: Home) -> None:
        init_home(home.root, personas_from=builtin_personas_dir())
        self.store = store
        system = System(
            "specialists",
            tools=lambda core: lifecycle_tools(SimpleNamespace(clock=core.clock, home=home)),  # type: ignore[arg-type]
            plan_kinds=(LIFECYCLE,),
        )
        self.planning = Planning(store, home.runtime, system=system)
        for principal in (ANNA, BERT, HANA):
            add_user(self.planning.log, principal.id, principal.id.title(), [principal.kind])

    def draft(self, tool: str, by: Principal = STEWARD, **arguments: Any) -> Plan:
        """Raises PlanRefused."""
        return self.planning.draft((tool, arguments), kind=LIFECYCLE.name, by=by)

    def done(self, tool: str, by: Principal = STEWARD, **arguments: Any) -> Plan:
        """The plan, drafted, confirmed and applied, a second later than the one before."""
        self.planning.clock.pass_s(1)
        plan = self.planning.confirm(self.draft(tool, by, **arguments), by=by)
        ending = self.planning.apply(plan, by=by)
        assert ending.error is None, ending.error
        return ending.plan

    def notices(self, user: str) -> list[str]:
        """What a person was told, oldest first."""
        rows = self.store.read(
            lambda tx: tx.execute(
                "SELECT text FROM notifications WHERE user_id = ? ORDER BY notification_id", (user,)
            ).fetchall()
        )
        return [text for (text,) in rows]
