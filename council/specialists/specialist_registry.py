"""The registry of specialists: their rows, read and written inside a transaction. Decides nothing: `lifecycle` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from council.ids import new_run_id
from council.plans.plan import Plan
from council.specialists import statements as sql
from council.specialists.specialist_spec import SpecialistSpec, stored_spec
from council.specialists.suites import CaseResult, CaseTrial, TestSuite
from council.storage.reader import Looking
from council.storage.store import Tx
from council.typed_json import decode_json

if TYPE_CHECKING:
    from sqlalchemy import Connection

Status = Literal["unverified", "verified", "deprecated"]
ApprovalState = Literal["awaiting_confirmation", "awaiting_resources", "training", "completed", "rejected"]
Execute = Callable[[str, Sequence[object]], Any]  # `Tx.execute`, or the same over another view of a transaction


class Specialist(msgspec.Struct, frozen=True, omit_defaults=True):
    """A specialist as its row and its telemetry tell of it. Times are milliseconds since the epoch.

    The figures are those of its present version: uses, those that succeeded, and the mean confidence of its latest suite.
    `suite_model` answered that suite, in the run `suite_run`.
    """

    id: str
    role: str
    created_by: str
    spec: SpecialistSpec
    status: Status = "unverified"
    scope: Literal["user", "global"] = "user"
    version: int = 1
    parent: str = ""
    execution_count: int = 0
    success_count: int = 0
    avg_confidence: float | None = None
    admin_approved_by: str | None = None
    admin_approved_at: int | None = None
    created_at: int = 0
    last_used_at: int | None = None
    suite_at: int | None = None
    suite_model: str | None = None
    suite_run: str | None = None

    def serves(self, user: str) -> bool:
        """True for everybody where it is verified, else for its creator alone."""
        return self.status != "deprecated" and (self.scope == "global" or self.created_by == user)

    def has_new_model(self, model: str) -> bool:
        """True when its latest suite was answered by another model than this: it is to be examined again."""
        return bool(self.suite_model) and self.suite_model != model

    def badge(self, model: str) -> str:
        """The lines above each answer of one that nobody has verified, or that another `model` answers for than in its tests;
        empty for no model."""
        lines = []
        if self.status != "verified":
            figure = "" if self.avg_confidence is None else f" It reached {self.avg_confidence:.2f} in its own tests."
            told = f"{self.role}, version {self.version}, made for {self.created_by}.{figure}"
            lines.append(f"**Unverified specialist** {told}")
        if self.has_new_model(model) and model:
            told = f"{self.role} was tested with {self.suite_model}, and {model} answers now."
            lines.append(f"**Not yet tested with this model:** {told}")
        return "".join(f"{line}\n\n" for line in lines)


class SpecialistVersion(msgspec.Struct, frozen=True):
    """A version of a specialist. `change` says why it came."""

    agent_id: str
    version: int
    spec: SpecialistSpec
    suite: TestSuite
    change: str
    run_id: str
    plan_id: str
    created_at: int


class TelemetryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a training, or one use. `success` and `objected` are 0 or 1: somebody objected to a use later."""

    run_id: str
    step: str
    agent_id: str
    version: int
    user_id: str
    kind: Literal["training", "use"]
    success: int
    objected: int = 0
    confidence: float | None = None
    said: float | None = None
    error: str = ""
    level: str = ""
    model: str = ""
    duration_s: float = 0.0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    at: int


class Approval(msgspec.Struct, frozen=True):
    """A proposed specialist that waits for its person, or did. Resources are names of credentials."""

    id: str
    user_id: str
    state: ApprovalState
    needed_resources: tuple[str, ...]
    provided_resources: tuple[str, ...]
    run_id: str
    plan_id: str
    created_at: int
    expires_at: int


def specialists(store: Looking) -> list[Specialist]:
    """All there are, deprecated ones too: for review. Raises StorageFailed."""
    return store.read(lambda tx: rows_in(tx.execute, sql.ALL))


def visible_to(store: Looking, user: str) -> list[Specialist]:
    """Those that serve this person: one's own, and the verified ones whose role is not one's own; none of which words were
    forgotten. Raises StorageFailed."""

    def look(tx: Tx) -> list[Specialist]:
        found: dict[str, Specialist] = {}
        for one in rows_in(tx.execute, sql.OF_USER, user):
            if one.spec.is_whole:
                found.setdefault(one.role, one)
        return list(found.values())

    return store.read(look)


def specialist_of(store: Looking, role: str, user: str) -> Specialist | None:
    """The specialist of that role that serves this person. Raises StorageFailed."""
    return next((one for one in visible_to(store, user) if one.role == role), None)


def rows_in(execute: Execute, statement: str, *values: object) -> list[Specialist]:
    """The specialists that a statement of `statements` finds."""
    found = []
    for row in execute(statement, values).fetchall():
        named = dict(zip(sql.COLUMNS, row, strict=True))
        found.append(Specialist(spec=stored_spec(named["role"], named.pop("spec_snapshot")), **named))
    return found


def versions_in(execute: Execute, agent_id: str) -> list[SpecialistVersion]:
    """All versions of a specialist, oldest first."""
    found = []
    for version, spec, suite, *rest in execute(sql.VERSIONS, (agent_id,)).fetchall():
        decoded = stored_spec("", spec), decode_json(suite, TestSuite)
        found.append(SpecialistVersion(agent_id, version, *decoded, *rest))
    return found


def telemetry_in(execute: Execute, statement: str, value: str) -> list[TelemetryRow]:
    """Rows of `task_telemetry` by ROWS_OF or USES_OF_RUN."""
    rows = execute(statement, (value,)).fetchall()
    return [TelemetryRow(**dict(zip(sql.TELEMETRY, row, strict=True))) for row in rows]


def register(
    tx: Tx,
    *,
    spec: SpecialistSpec,
    suite: TestSuite,
    results: Sequence[CaseResult],
    user: str,
    run_id: str,
    plan_id: str,
    now_ms: int,
    parent: str = "",
    model: str = "",
    is_edited: bool = False,
) -> str:
    """The id of a new specialist, unverified and this user's alone. Its training is recorded, and the user is told. A specialist
    of the same role that the user has already gets its next version. `model` answered the suite."""
    agent_id, status = tx.execute(sql.OWN, (user, spec.role)).fetchone() or ("", "")
    change = "made anew after its deprecation" if status == "deprecated" else "designed anew as a new version"
    if not agent_id:
        agent_id = new_run_id(datetime.fromtimestamp(now_ms / 1000, UTC))
        tx.execute(sql.ADD, (agent_id, spec.role, user, msgspec.json.encode(spec).decode(), now_ms, parent))
        change = f"designed anew, to follow the verified {parent}" if parent else "designed for the first time"
    change += ", and edited in its plan" if is_edited else ""
    version = add_version(tx.execute, agent_id, spec, suite, change, now_ms, run_id=run_id, plan_id=plan_id)
    record_training(tx, agent_id, version, results, user=user, run_id=run_id, model=model, now_ms=now_ms)
    text = f"Your specialist {spec.role}, version {version}, has passed its training. It is unverified, and only you can use it."
    notify(tx.core, [user], text, now_ms)
    return str(agent_id)


def add_version(
    execute: Execute,
    agent_id: str,
    spec: SpecialistSpec,
    suite: TestSuite,
    change: str,
    now_ms: int,
    *,
    run_id: str = "",
    plan_id: str = "",
) -> int:
    """The number of the specialist's next version, which is unverified and the present one from now on."""
    known = versions_in(execute, agent_id)
    version = known[-1].version + 1 if known else 1
    encoded = msgspec.json.encode(spec).decode()
    values = (agent_id, version, encoded, msgspec.json.encode(suite).decode(), change, run_id, plan_id, now_ms)
    execute(sql.ADD_VERSION, values)
    execute(sql.CHANGE, (encoded, version, agent_id))
    return version


def record_training(
    tx: Tx,
    agent_id: str,
    version: int,
    results: Sequence[CaseResult],
    *,
    user: str,
    run_id: str,
    model: str,
    now_ms: int,
) -> None:
    """The rows of one whole suite, one for each case in its order."""
    for number, result in enumerate(results, start=1):
        row = row_of(
            result, run_id=run_id, step=f"training/{version}/{number}", agent_id=agent_id, version=version, user_id=user,
            kind="training", model=model, at=now_ms,
        )  # fmt: skip
        record(tx, row)


def row_of(trial: CaseTrial, **known: Any) -> TelemetryRow:
    """A row with the figures of a trial. Its output stands on the page."""
    figures = msgspec.structs.asdict(trial)
    del figures["output"]
    return TelemetryRow(**{**figures, "success": int(figures.get("success", not trial.error)), **known})


def record(tx: Tx, row: TelemetryRow) -> None:
    """Writes a row in the place of the one that an earlier try of the same step left."""
    tx.execute(sql.DROP_TELEMETRY, (row.run_id, row.step))
    tx.execute(sql.ADD_TELEMETRY, tuple(getattr(row, name) for name in sql.TELEMETRY))


def notify(connection: Connection, users: Sequence[str], text: str, now_ms: int) -> None:
    """Tells each of these people one line."""
    from council.users.notifications import notice  # not at the top: it loads SQLAlchemy

    for user in users:
        connection.execute(notice(new_run_id(datetime.fromtimestamp(now_ms / 1000, UTC)), user, text, now_ms))


def approval_drafted(
    tx: Tx, plan: Plan, spec: SpecialistSpec, suite: TestSuite, *, user: str, run_id: str, provided: Sequence[str] = ()
) -> None:
    """A proposal that waits for its person, written with its plan, whose id it has. The vault has `provided` already."""
    proposed = (msgspec.json.encode(spec).decode(), msgspec.json.encode(suite).decode())
    names = (_names(spec.credentials), _names(provided))
    row = (plan.plan_id, user, *proposed, *names, run_id, plan.plan_id, plan.created_ms, plan.expires_ms)
    tx.execute(sql.DRAFTED, row)


def approval_provided(tx: Tx, approval_id: str, provided: Sequence[str]) -> None:
    """Notes which of its credentials the vault has now."""
    tx.execute(sql.PROVIDED, (_names(provided), approval_id))


def approval_trained(tx: Tx, approval_id: str, results: Sequence[CaseResult]) -> None:
    """Keeps the results of its training, whatever comes of them."""
    tx.execute(sql.TRAINED, (msgspec.json.encode(results).decode(), approval_id))


def training_in(tx: Tx, run_id: str) -> tuple[str, SpecialistSpec, tuple[CaseResult, ...]]:
    """The last plan of a run, the spec as it was drafted, and the results of the training for it."""
    plan_id, spec, results = tx.execute(sql.TRAINING, (run_id,)).fetchone()
    drafted = decode_json(spec, SpecialistSpec)
    return str(plan_id), drafted, decode_json(results, tuple[CaseResult, ...])


def approvals_of(store: Looking, user: str) -> list[Approval]:
    """The approvals of one person, oldest first. Raises StorageFailed."""

    def look(tx: Tx) -> list[Approval]:
        found = []
        for row in tx.execute(sql.APPROVALS, (user,)).fetchall():
            named = dict(zip(Approval.__struct_fields__, row, strict=True))
            for name in ("needed_resources", "provided_resources"):
                named[name] = tuple(decode_json(named[name]))
            found.append(Approval(**named))
        return found

    return store.read(look)


def _names(names: Sequence[str]) -> str:
    return msgspec.json.encode(sorted(names)).decode()
