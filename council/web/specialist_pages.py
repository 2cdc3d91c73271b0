"""The pages of specialists: those that a person may see, their figures, and what waits for a word or a credential.

A change of a specialist is a plan: its button drafts one, and leads to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.datastructures import FormData

from council.desk.credentials import stored_credentials
from council.desk.desk import Desk
from council.desk.plan_lookup import find_plan
from council.desk.specialists_desk import (
    examination,
    find_specialist,
    is_ready,
    listed,
    report,
    specialist_json,
    telemetry,
    trained,
    versions,
)
from council.desk.window import hand_in, ordered
from council.engine.ledger import RunEntry
from council.errors import UsageError
from council.events import ControlAct, Event, RunEnd, RunStart, RunWait
from council.plans.register import newest_plans
from council.redaction import Secret
from council.specialists.lifecycle import LIFECYCLE, lacks
from council.specialists.specialist_registry import approvals_of
from council.vault.sealing import place_of
from council.web.forms import texts_of
from council.web.pagination import Slice, slice_of
from council.web.plan_pages import PlanCard, card_of
from council.web.sign_in import Person
from council.web.window_pages import Filters, PageAction, WindowPage

Values = Mapping[str, Any]
_WAITING = ("awaiting_confirmation", "awaiting_resources", "training")
_NEWEST_USES = 40
_CHANGES = {  # of the buttons, by what they send
    "promote": "promoteSpecialist",
    "demote": "demoteSpecialist",
    "deprecate": "deprecateSpecialist",
    "fork": "forkSpecialist",
}


@dataclass(frozen=True)
class ProposedSpecialist:
    """A specialist that was designed and waits for its person. `state` is awaiting_confirmation, awaiting_resources or training.
    `credentials`: those that it needs, each with whether the vault has it. `card` is the plan that makes it."""

    role: str
    purpose: str
    rules: Sequence[str]
    hosts: Sequence[str]
    kind: str
    state: str
    credentials: Mapping[str, bool]
    card: PlanCard


@dataclass(frozen=True)
class SpecialistsPage:
    """The specialists that a person may see, with the chosen status if one is. `uses`: of each the newest uses, oldest first,
    1 for one that succeeded. `waiting` are those that wait for this person's word."""

    specialists: Slice[Values]
    status: str
    waiting: Sequence[ProposedSpecialist]


@dataclass(frozen=True)
class SpecialistPage:
    """One specialist. `suite`: the cases of its latest examination. `uses`: the newest first; administrators alone see those of
    other people. `findings` and `proposals` are the audit minister's once a review was asked for. `may`: the changes whose plan
    this person can draft. `examination`: for who may order one, the last; `is_ready`: a promotion needs none before it."""

    specialist: Values
    suite: Sequence[Values]
    uses: Slice[Values]
    versions: Slice[Values]
    findings: Sequence[str] | None
    proposals: Sequence[Values]
    may: Sequence[str]
    examination: RunEntry | None
    is_ready: bool


def specialists_page(desk: Desk, who: Person, filters: Filters) -> SpecialistsPage:
    status = filters.get("status", "")
    seen = listed(desk, who.id)
    fitting = [one for one in seen if (one.status == status if status else one.status != "deprecated")]
    part = slice_of(fitting, filters, "specialists")
    rows: list[Values] = []
    for one in part.rows:
        uses = [row.success and not row.objected for row in telemetry(desk, one) if row.kind == "use"]
        rows.append({**specialist_json(one, desk.settings.model), "uses": [int(use) for use in uses[-_NEWEST_USES:]]})
    return SpecialistsPage(part.showing(rows), status, proposed(desk, who))


def specialist_page(desk: Desk, who: Person, filters: Filters) -> SpecialistPage:
    one = find_specialist(desk, filters["name"], who.id)
    rows = telemetry(desk, one)
    known = [
        {"version": each.version, "change": each.change, "created_at": each.created_at} for each in versions(desk, one)
    ]
    review = report(desk, one, who.id) if filters.get("review") else None
    is_keeper = who.is_administrator or (one.created_by == who.id and one.scope == "user")
    last = examination(desk, one) if is_keeper else None
    is_used = not lacks(msgspec.structs.replace(one, avg_confidence=1.0))
    is_free = last is None or bool(last.finished)
    may = ["train"] if is_keeper and is_free and one.status != "deprecated" else []
    may += ["promote"] if who.is_administrator and is_free and is_used and one.status == "unverified" else []
    may += ["demote"] if who.is_administrator and one.status == "verified" else []
    may += ["deprecate"] if is_keeper and one.status != "deprecated" else []
    seen = [row for row in rows if row.kind == "use" and (who.is_administrator or row.user_id == who.id)]
    uses = [msgspec.to_builtins(row) for row in seen]
    in_suite = [row for row in rows if row.kind == "training" and row.run_id == one.suite_run]
    return SpecialistPage(
        specialist=specialist_json(one, desk.settings.model),
        suite=[{"success": row.success, "confidence": row.confidence} for row in in_suite],
        uses=slice_of(uses[::-1], filters, "uses", 20),
        versions=slice_of(known[::-1], filters, "versions", 20),
        findings=None if review is None else review.findings,
        proposals=() if review is None else [msgspec.to_builtins(each) for each in review.proposals],
        may=[*may, "fork"],
        examination=last,
        is_ready=is_ready(desk, one),
    )


def proposed(desk: Desk, who: Person) -> list[ProposedSpecialist]:
    """The specialists that wait for this person's word or credential."""
    found = []
    stored = {(one.place.user, one.place.role, one.place.key) for one in stored_credentials(desk)}
    for approval in approvals_of(desk.store, who.id):
        if approval.state not in _WAITING:
            continue
        plan = find_plan(desk, approval.plan_id)
        spec = plan.operations[0].arguments["spec"]
        found.append(
            ProposedSpecialist(
                role=spec["role"],
                purpose=spec["purpose"],
                rules=spec["dna_rules"],
                hosts=sorted({str(one["url"]).partition("://")[2].split("/")[0] for one in spec.get("requests", ())}),
                kind=spec.get("kind", "prompt"),
                state=approval.state,
                credentials={name: (who.id, spec["role"], name) in stored for name in approval.needed_resources},
                card=card_of(desk, who, plan),
            )
        )
    return found


def create(desk: Desk, who: Person, filters: Filters, sent: FormData) -> str:
    """Drops the wish, or stores a credential that one of this person's proposals needs."""
    texts = texts_of(sent)
    if "credential" not in texts:
        ordered(desk, who.user, {"type": "create_specialist", "request": texts.get("request", "")})
        return "/now"
    role, name, value = texts.get("role", ""), texts["credential"], Secret(texts.get("value", "").strip())
    if not any(one.role == role and name in one.credentials for one in proposed(desk, who)):
        raise UsageError(f"no specialist that waits for you needs {name[:80]!r}.", fix="look at what waits again")
    if not value:
        raise UsageError("the value is empty.", fix="paste the credential")
    with desk.safe() as safe:
        safe.vault().set(place_of(who.id, role, name), value)
    return "/now" if texts.get("back") == "/now" else "/specialists"


def change(desk: Desk, who: Person, filters: Filters, sent: FormData) -> str:
    """Drafts the plan of a change, and leads to it. A promotion is preceded by an examination, as on the command line."""
    one, texts = find_specialist(desk, filters["name"], who.id), texts_of(sent)
    word = texts.get("do", "")
    if word == "train" or (word == "promote" and not is_ready(desk, one)):
        trained(desk, one, who.id, for_promotion=word == "promote")
        return f"/specialists/{one.id}"
    if word == "review":
        operations = [(each.tool, dict(each.arguments)) for each in report(desk, one, who.id).proposals]
    elif word in _CHANGES:
        role = {"role": texts["role"]} if word == "fork" and texts.get("role") else {}
        operations = [(_CHANGES[word], {"specialist": one.id, **role})]
    else:
        raise UsageError(f"a specialist has no change {word[:60]!r}.", fix="go back to the specialist")
    asked = [{"tool": tool, "arguments": arguments} for tool, arguments in operations]
    hand_in(desk, {"type": "plan", "kind": LIFECYCLE.name, "operations": asked}, who.user)
    return f"/plans/{newest_plans(desk.store, 1, who.id)[0].plan_id}"


def _hears(event: Event, asked: Filters) -> bool:
    return isinstance(event, ControlAct | RunStart | RunWait | RunEnd)


_ALL = WindowPage("/specialists", "Specialists", "specialists/all.html", specialists_page, hears=_hears)
_ONE = WindowPage("/specialists/{name}", "", "specialists/one.html", specialist_page, hears=_hears)
PAGES: tuple[WindowPage[Any], ...] = (_ALL, _ONE)
ACTIONS = (PageAction("/specialists", _ALL, create), PageAction("/specialists/{name}", _ONE, change))
