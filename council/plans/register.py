"""Plans as rows: read, found and written. Loads no SQLAlchemy: `council status` asks here, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from council.engine import statements as engine_sql
from council.plans import statements as sql
from council.plans.plan import Advice, Operation, OperationResult, Plan, PlanKind, PlanMark, state_at, without_words
from council.storage.reader import Looking
from council.storage.store import Tx
from council.tools.preview import Preview
from council.typed_json import decode_json

_ENCODED: dict[str, Any] = {  # columns that hold JSON, and what it is
    "scope": dict[str, Any],
    "operations": tuple[Operation, ...],
    "previews": tuple[Preview, ...],
    "advice": Advice,
    "results": tuple[OperationResult, ...],
}


def plan_in(tx: Tx, plan_id: str, *, lock: bool = False) -> Plan | None:
    """The plan of that id. `lock`: nobody else changes its row until the transaction ends."""
    if lock:
        tx.execute(sql.LOCK, (plan_id,))
    return _one(tx.execute(sql.PLAN, (plan_id,)).fetchone())


def plan_of_drop(tx: Tx, drop: str) -> Plan | None:
    """The plan on which this very command file acted last."""
    return _one(tx.execute(sql.OF_DROP, (drop,)).fetchone())


def add_plan(tx: Tx, plan: Plan) -> None:
    tx.execute(sql.DRAFT, _values(plan))


def change_plan(tx: Tx, plan: Plan) -> Plan:
    """Writes all that the plan says now, and returns it."""
    values = _values(plan)
    tx.execute(sql.CHANGE, (*values[1:], values[0]))
    return plan


def conceal(tx: Tx, row_id: str, why: str) -> None:
    """Takes the words of operations on that row out of all plans: from now on they are shown to nobody."""
    for row in tx.execute(sql.NAMING, (f"%{row_id}%", f"%{row_id}%")).fetchall():
        change_plan(tx, without_words(_plan(row), row_id, why))


def plans_starting_with(store: Looking, prefix: str, count: int, principal: str | None = None) -> list[Plan]:
    """Plans whose id begins so, oldest first: of all, or of one principal. Raises StorageFailed."""
    return _looked(store, sql.STARTING_WITH, prefix, prefix + "~", principal or "", principal or "", count)


def newest_plans(store: Looking, count: int, principal: str | None = None) -> list[Plan]:
    """The newest first: all, or those of one principal. Raises StorageFailed."""
    return _looked(store, sql.NEWEST, count) if principal is None else _looked(store, sql.NEWEST_OF, principal, count)


def plan_marks(store: Looking, at_ms: int, principal: str | None = None) -> list[PlanMark]:
    """All plans, or those of one principal, with their states at that moment; the newest first. Raises StorageFailed."""
    rows = _rows(store, *((sql.MARKS,) if principal is None else (sql.MARKS_OF, principal)))
    return [PlanMark(plan_id, whose, state_at(at_ms, *moments)) for plan_id, whose, *moments in rows]


def plans_of_run(store: Looking, run_id: str) -> list[Plan]:
    """The plans that a run drafted, oldest first. Raises StorageFailed."""
    return _looked(store, sql.OF_RUN, run_id)


def lost_its_run(tx: Tx, plan: Plan, kind: PlanKind) -> bool:
    """True for a plan that was handed to the run that drafted it, where that run has ended since. Only a resume applies it."""
    if plan.handed_ms is None or not kind.applied_by_run:
        return False
    return plan.run_id not in {row[0] for row in tx.execute(engine_sql.UNFINISHED).fetchall()}


def waiting_plans(store: Looking, at_ms: int) -> list[Plan]:
    """The plans that wait for a person at that moment, oldest first. One that was handed to its run does not. Raises
    StorageFailed."""
    found = [plan for plan in _looked(store, sql.OPEN) if plan.handed_ms is None]
    return [plan for plan in found if plan.state(at_ms) in ("draft", "confirmed")]


def _looked(store: Looking, statement: str, *values: object) -> list[Plan]:
    return [_plan(row) for row in _rows(store, statement, *values)]


def _rows(store: Looking, statement: str, *values: object) -> list[Sequence[Any]]:
    return store.read(lambda tx: list(tx.execute(statement, values).fetchall()))


def _one(row: Sequence[Any] | None) -> Plan | None:
    return None if row is None else _plan(row)


def _plan(row: Sequence[Any]) -> Plan:
    named = dict(zip(sql.COLUMNS, row, strict=True))
    values = {name: decode_json(value, _ENCODED[name]) if name in _ENCODED else value for name, value in named.items()}
    return Plan(stored=values.pop("state"), **values)


def _values(plan: Plan) -> tuple[object, ...]:
    named = {name: getattr(plan, "stored" if name == "state" else name) for name in sql.COLUMNS}
    return tuple(msgspec.json.encode(value).decode() if name in _ENCODED else value for name, value in named.items())
