"""Plans over a store of their own, with a clock that stands still: what the daemon does about plans, without the daemon."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from council.app import kinds_of
from council.audit.log import AuditLog, Transaction
from council.audit.trail import Trail
from council.ids import STEWARD, Principal, sha256_hex
from council.keys.keyring import Keyring, new_key
from council.plans.applying import PlanEnding, apply_plan
from council.plans.approval import NO_EDITS, Edits, PlanRefused, Plans, Proposal, ProposedOperation
from council.plans.confirmation_token import confirmation_token
from council.plans.plan import Plan
from council.plans.register import plan_in
from council.plans.undo import undo_plan
from council.redaction import Redactor
from council.storage.store import Store
from council.systems import System
from council.tools.registry import ToolRegistry
from tests.sample_pages import PAGES, pages_in

T = TypeVar("T")

KEYS = Keyring((new_key(),))
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


class StillClock:
    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at

    def monotonic_s(self) -> float:
        return self.at.timestamp()

    def pass_s(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def trail_of(store: Store, runtime: Path) -> Trail:
    """A trail in this store, signed with KEYS."""
    return Trail(lambda: AuditLog(store, lambda: KEYS, runtime, StillClock()))


class Planning:
    """What a person and the daemon do with plans; each call is one transaction, refusals are recorded as the daemon does."""

    def __init__(self, store: Store, runtime: Path, keys: Keyring = KEYS, system: System = PAGES) -> None:
        """Of a `system` whose tools need no more than store, clock and the home's zone."""
        settings = SimpleNamespace(timezone="Europe/Sofia")
        self.store = store
        self.clock = StillClock()
        self.log = AuditLog(store, lambda: keys, runtime, self.clock)
        self.keys = keys
        self.plans = Plans(
            kinds=kinds_of([system]),
            tools=ToolRegistry(system.tools(SimpleNamespace(store=store, clock=self.clock, settings=settings))),
            audit=Trail(lambda: self.log),
            keys=lambda: keys,
            redactor=Redactor(),
            clock=self.clock,
            draft_ttl_s=30 * 86_400.0,
        )

    def done(self, action: str, by: Principal, work: Callable[[Transaction], T]) -> T:
        """Raises PlanRefused, which is recorded then."""
        refused = None
        with self.log.transaction() as done:
            try:
                result = work(done)
            except PlanRefused as refusal:
                self.plans.refused(done, action, by.id, refusal)
                refused = refusal
        if refused is not None:
            raise refused
        return result

    def draft(
        self, *operations: tuple[str, dict[str, Any]], kind: str = "pages", by: Principal = STEWARD, **how: Any
    ) -> Plan:
        wanted = tuple(ProposedOperation(name, arguments) for name, arguments in operations)
        return self.propose(Proposal(kind, wanted, **how), by)

    def propose(self, proposal: Proposal, by: Principal = STEWARD, **how: Any) -> Plan:
        return self.done("plan", by, lambda done: self.plans.draft(done, proposal, by, **how))

    def confirm(self, plan: Plan, edits: Edits = NO_EDITS, by: Principal = STEWARD, **how: Any) -> Plan:
        return self.done("confirm", by, lambda done: self.plans.confirm(done, plan.plan_id, by, edits, **how))

    def reject(self, plan: Plan, comment: str = "", by: Principal = STEWARD) -> Plan:
        return self.done("reject", by, lambda done: self.plans.reject(done, plan.plan_id, by, comment))

    def apply(self, plan: Plan, by: Principal = STEWARD, token: str = "", at_ms: int | None = None) -> PlanEnding:
        moment = self.plans.now_ms() if at_ms is None else at_ms
        token_sha256 = sha256_hex(token) if token else ""
        return self.done(
            "apply", by, lambda done: apply_plan(self.plans, done, plan.plan_id, by, moment, token_sha256=token_sha256)
        )

    def undo(self, plan: Plan, by: Principal = STEWARD) -> PlanEnding:
        return self.done("undo", by, lambda done: undo_plan(self.plans, done, plan.plan_id, by, self.plans.now_ms()))

    def applied(self, *operations: tuple[str, dict[str, Any]], **how: Any) -> Plan:
        """A plan that was drafted, confirmed and applied."""
        ending = self.apply(self.confirm(self.draft(*operations, **how)))
        assert ending.error is None
        return ending.plan

    def token(self, plan: Plan) -> str:
        return confirmation_token(plan, self.keys.primary)

    def now(self, plan: Plan) -> Plan:
        """The plan as its row tells it now."""
        found = self.store.read(lambda tx: plan_in(tx, plan.plan_id))
        assert found is not None
        return found

    def pages(self) -> list[tuple[str, str, str]]:
        """Shelf, title and content of every page."""
        return self.store.read(pages_in)

    def page_id(self, title: str) -> str:
        row = self.store.read(
            lambda tx: tx.execute("SELECT page_id FROM sample_pages WHERE title = ?", (title,)).fetchone()
        )
        return str(row[0])

    def actions(self) -> list[str]:
        """The actions in the audit, oldest first."""
        return [record.action for record in self.log.tail(100)]


def put(title: str, content: str = "", **more: Any) -> tuple[str, dict[str, Any]]:
    return "putPage", {"title": title, "content": content, **more}
