"""Specialists as every door asks for them: those that a person may see, their figures, a rating, and the plans about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from council.desk.desk import Desk
from council.desk.drop_and_wait import Errand, control
from council.desk.plan_lookup import moment, now_ms
from council.engine import statements as engine_sql
from council.engine.ledger import RunEntry
from council.errors import UsageError
from council.ids import STEWARD, Principal
from council.specialists import lifecycle
from council.specialists import statements as sql
from council.specialists.audit_minister import AuditReport, audited
from council.specialists.specialist_registry import (
    Specialist,
    SpecialistVersion,
    TelemetryRow,
    specialists,
    telemetry_in,
    versions_in,
)
from council.users.people import principal_in


def principal_of(desk: Desk, user: str) -> Principal:
    """Raises NoPrincipal, StorageFailed."""
    return desk.store.read(lambda tx: principal_in(tx, user))


def listed(desk: Desk, user: str) -> list[Specialist]:
    """See `seen_by`. Raises NoPrincipal, StorageFailed."""
    return lifecycle.seen_by(specialists(desk.store), principal_of(desk, user))


def find_specialist(desk: Desk, name: str, user: str) -> Specialist:
    """The one that this name means for this person. Raises SpecialistRefused, NoPrincipal, StorageFailed."""
    return lifecycle.named(specialists(desk.store), name, principal_of(desk, user))


def versions(desk: Desk, one: Specialist) -> list[SpecialistVersion]:
    return desk.store.read(lambda tx: versions_in(tx.execute, one.id))


def telemetry(desk: Desk, one: Specialist) -> list[TelemetryRow]:
    """The rows of its trainings and uses, oldest first."""
    return desk.store.read(lambda tx: telemetry_in(tx.execute, sql.ROWS_OF, one.id))


def examination(desk: Desk, one: Specialist) -> RunEntry | None:
    """The last run that let it take its suite again, ended or not."""
    asked = ("train_specialist", f'%"role":"{one.id}"%', 1)
    rows = desk.store.read(lambda tx: tx.execute(engine_sql.NEWEST_MAYBE_OF_USER, asked).fetchall())
    return next((entry for lane, *_ in rows for entry in desk.ledger.in_lane(lane)), None)


def is_ready(desk: Desk, one: Specialist) -> bool:
    """True where the plan of a promotion needs no examination before it."""
    return desk.store.read(lambda tx: lifecycle.is_examined_again(tx.execute, one, now_ms()))


def report(desk: Desk, one: Specialist, user: str) -> AuditReport:
    """The audit minister's word on it. The uses of a verified one are other people's. Raises SpecialistRefused."""
    if one.scope == "global" and not principal_of(desk, user).is_administrator:
        fix = "ask an administrator, or fork it"
        raise lifecycle.SpecialistRefused(f"Only an administrator audits {one.role}, which everybody uses.", fix=fix)
    return audited(one, telemetry(desk, one))


def last_use(desk: Desk, user: str) -> str:
    """The run that last used a specialist for this person. Raises UsageError where none did."""
    rows = [row for one in specialists(desk.store) for row in telemetry(desk, one)]
    uses = [row for row in rows if row.kind == "use" and row.user_id == user]
    if not uses:
        raise UsageError(f"no run of {user} used a specialist.", fix="`council specialists list` shows all")
    return max(uses, key=lambda row: (row.at, row.run_id)).run_id


def rate_uses(desk: Desk, run_id: str, user: str, *, is_good: bool) -> list[TelemetryRow]:
    """The uses of a run, as the person for whom it worked rates them, with the audit record. Raises UsageError, KeysRefused."""
    with desk.safe() as safe, safe.trail.log().transaction() as done:
        principal = principal_in(done.tx, user)
        rows = telemetry_in(done.tx.execute, sql.USES_OF_RUN, run_id)
        if not rows:
            raise UsageError(f"the run {run_id} used no specialist.", fix="`council status` shows runs")
        if any(row.user_id != user for row in rows):
            fix = "let that person rate it"
            raise UsageError(f"the run {run_id} worked for {rows[0].user_id}, not for {user}.", fix=fix)
        done.tx.execute(sql.OBJECT, (int(not is_good), run_id))
        detail = {"run": run_id, "rating": "good" if is_good else "bad"}
        done.record("effect", "specialist_rated", principal.id, detail)
        return telemetry_in(done.tx.execute, sql.USES_OF_RUN, run_id)


def creation_command(request: str, user: str, *, changes: str = "", examples_file: str = "") -> dict[str, Any]:
    """A command that has a specialist made. Raises UsageError for a file of examples that cannot be read."""
    body: dict[str, Any] = {"type": "create_specialist", "request": request}
    if examples_file:
        try:
            body["examples"] = json.loads(Path(examples_file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            fix = 'write a list such as [{"input": {…}, "expected_output": {…}}]'
            raise UsageError(f"{examples_file} holds no cases: {error}.", fix=fix) from None
    return body | ({"changes": changes} if changes else {}) | ({} if user == STEWARD.id else {"user": user})


def trained(desk: Desk, one: Specialist, user: str, *, for_promotion: bool = False) -> Errand:
    """A command that lets a specialist take its suite again, dropped. Raises SpecialistRefused for one that this person could
    not promote afterwards, PathRefused, StorageFailed."""
    if for_promotion:
        lifecycle.require_candidate(one, principal_of(desk, user))
    return control(desk, "train_specialist", _whose(user), role=one.id, title=f"Train {one.role}")


def proposed(desk: Desk, user: str, *operations: tuple[str, dict[str, Any]], title: str = "") -> Errand:
    """A command that drafts a plan about specialists, dropped. Raises PathRefused, StorageFailed."""
    asked = [{"tool": tool, "arguments": arguments} for tool, arguments in operations]
    return control(desk, "plan", _whose(user), kind=lifecycle.LIFECYCLE.name, operations=asked, title=title)


def _whose(user: str) -> str | None:
    return None if user == STEWARD.id else user


def specialist_json(one: Specialist, model: str) -> dict[str, Any]:
    """A specialist as programs read it. `model` is the home's."""
    found: dict[str, Any] = msgspec.to_builtins(one)
    found |= {"lacks": list(lifecycle.lacks(one)), "new_model": one.has_new_model(model)}
    times = ("created_at", "admin_approved_at", "last_used_at", "suite_at")
    return found | {name: told for name in times if (told := moment(getattr(one, name)))}
