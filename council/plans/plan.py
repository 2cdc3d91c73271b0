"""A plan as a value: its operations, the hash over everything that it does, and its state at a moment. Pure.

`draft → confirmed → applied (→ undone)`, else `rejected`, `expired`, `superseded` or `failed`. Expiry is computed when
somebody looks: no timer has to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from council.ids import canonical_json, sha256_hex
from council.safety.untrusted import plain_line
from council.tools.preview import Inverse, Preview

State = Literal["draft", "confirmed", "applied", "undone", "rejected", "expired", "superseded", "failed"]
CONFIRMED_MS = 600_000  # ten minutes between a confirmation and its apply: the person still knows what it was about
UNDO_MS = 600_000  # later, others have built on what was applied
NAME_CHARS = 120
MAX_OPERATIONS = 200  # one transaction holds the writer: 200 operations take a fraction of a second


@dataclass(frozen=True)
class PlanKind:
    """A kind of plan, brought by a system. `tools`: the only ones that its operations may name.

    `partial`: operations that are refused before the first change are left out, and named in `refused`; else the whole plan
    fails. `draft_ttl_s`: how long a draft waits; None: as the setting `draft_ttl_s` says. `applied_by_run`: the run that
    drafted the plan waits for it, and applies it with its own closing effect.
    """

    name: str
    tools: tuple[str, ...]
    partial: bool = False
    draft_ttl_s: float | None = None
    applied_by_run: bool = False


class Operation(msgspec.Struct, frozen=True, rename={"client_request_id": "clientRequestId"}):
    """One call of a write tool. `client_request_id` is unique in a scope: the same id again changes nothing more."""

    tool: str
    arguments: dict[str, Any]
    client_request_id: str

    @property
    def digest(self) -> str:
        """SHA-256 of what it does: by this a `clientRequestId` that comes again is known to mean the same."""
        return sha256_hex(canonical_json([self.tool, self.arguments]))


class Advice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Words about a plan. They change nothing that it does, so no hash covers them."""

    title: str = ""
    rationale: str = ""
    risks: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


class OperationResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one operation. `left` is the state of its rows after the whole plan; `inverse` takes it back.
    `refused` says why it was left out, `code` in one word. `again`: an earlier plan had done it under the same
    `clientRequestId`. `undo`: "undone", or why it was kept."""

    text: str = ""
    refused: str = ""
    code: str = ""
    again: bool = False
    inverse: Inverse | None = None
    left: str = ""
    undo: str = ""


class PlanMark(NamedTuple):
    """A plan in a list, without what it would do."""

    plan_id: str
    principal: str
    state: State


class Plan(msgspec.Struct, frozen=True):
    """A plan as its row tells it. Times are milliseconds since the epoch, None for what did not happen.

    `hash` is the one that was drafted or confirmed; `is_whole` compares it with the operations. `run_id` names the run that
    drafted the plan, empty for a command of a person. `revises` is the plan in whose place it stands. `outcome` says why
    it was rejected or failed. `last_drop` names the command file that acted on it last.
    """

    plan_id: str
    kind: str
    principal: str
    stored: State
    scope: dict[str, Any]
    operations: tuple[Operation, ...]
    previews: tuple[Preview, ...]
    advice: Advice
    hash: str
    created_ms: int
    expires_ms: int
    confirmed_ms: int | None = None
    handed_ms: int | None = None
    applied_ms: int | None = None
    results: tuple[OperationResult, ...] = ()
    outcome: str = ""
    run_id: str = ""
    revises: str = ""
    last_drop: str = ""

    def state(self, at_ms: int) -> State:
        return state_at(at_ms, self.stored, self.expires_ms, self.confirmed_ms, self.handed_ms)

    @property
    def name(self) -> str:
        """One line for lists, without anything that a terminal obeys: an agent may have written it."""
        if self.advice.title or len(self.previews) == 1:
            return plain_line(self.advice.title or self.previews[0].summary, NAME_CHARS)
        more = f" … and {len(self.previews) - 1} more"
        return plain_line(self.previews[0].summary.rstrip("."), NAME_CHARS - len(more)) + more

    @property
    def confirmed_until_ms(self) -> int:
        return (self.confirmed_ms or 0) + CONFIRMED_MS

    @property
    def undo_until_ms(self) -> int:
        return (self.applied_ms or 0) + UNDO_MS

    @property
    def is_whole(self) -> bool:
        """False when somebody changed what the plan does since it was hashed."""
        return self.hash == plan_hash(self.kind, self.scope, self.principal, self.operations)

    @property
    def scope_key(self) -> str:
        """Within this a `clientRequestId` is unique: the kind's scope, else the principal's own."""
        return sha256_hex(canonical_json([self.kind, self.scope or self.principal]))


def without_words(plan: Plan, row_id: str, outcome: str) -> Plan:
    """The plan without the words of its operations on that row; only the ids stay. One that waits has failed with that
    `outcome`: nobody can see any more what it does."""
    operations, previews, results = list(plan.operations), list(plan.previews), list(plan.results)
    for at, operation in enumerate(plan.operations):
        inverse = results[at].inverse if at < len(results) else None
        if row_id not in (*operation.arguments.values(), *(inverse.arguments.values() if inverse else ())):
            continue
        ids = {name: value for name, value in operation.arguments.items() if name.endswith("Id")}
        operations[at] = msgspec.structs.replace(operation, arguments=ids)
        previews[at] = msgspec.structs.replace(previews[at], differences=(), undoable=False)
        if inverse is not None:
            results[at] = msgspec.structs.replace(results[at], inverse=None)
    plan = msgspec.structs.replace(plan, operations=tuple(operations), previews=tuple(previews), results=tuple(results))
    is_open = plan.stored in ("draft", "confirmed")
    return msgspec.structs.replace(plan, stored="failed", outcome=outcome) if is_open else plan


def plan_hash(kind: str, scope: dict[str, Any], principal: str, operations: tuple[Operation, ...]) -> str:
    """SHA-256 over canonical JSON of all that decides what a plan does."""
    asked = {"kind": kind, "scope": scope, "principal": principal, "operations": msgspec.to_builtins(operations)}
    return sha256_hex(canonical_json(asked))


def state_at(at_ms: int, stored: State, expires_ms: int, confirmed_ms: int | None, handed_ms: int | None) -> State:
    """The state of a plan at a moment. A confirmation that was not used in time is a draft again, an old draft has expired. A
    confirmed plan that was handed to its run stays confirmed."""
    if stored == "confirmed" and (handed_ms is not None or at_ms <= (confirmed_ms or 0) + CONFIRMED_MS):
        return "confirmed"
    if stored in ("draft", "confirmed"):
        return "draft" if at_ms <= expires_ms else "expired"
    return stored
