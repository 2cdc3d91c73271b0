"""The lifecycle of a specialist (source: Kingdom, sections 3 and 11): promotion, demotion, deprecation, forks, rules, rollback.

Each is a write tool, which only a plan calls. A verified specialist does not change: who wants another one forks it, or has a
new version made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from pydantic import Field

from council.agents.manifest import by_name, load_personas
from council.commands.models import ROLE_PATTERN
from council.errors import EXIT_REFUSED, CouncilError
from council.ids import Principal, epoch_ms, new_run_id
from council.plans.plan import PlanKind
from council.safety.ministers import auditor
from council.specialists import statements as sql
from council.specialists.specialist_registry import (
    Execute,
    Specialist,
    SpecialistVersion,
    add_version,
    notify,
    rows_in,
    versions_in,
)
from council.specialists.specialist_spec import SpecialistSpec, as_agent_spec, shown_spec, spec_of, stopped_by_ministers
from council.storage.store import Tx, tx_over
from council.tools.preview import Difference, Inverse, Preview
from council.tools.tool import Arguments, Tool, ToolResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from council.systems import BareCore

MIN_USES, MIN_SUCCESS_PERCENT, MIN_SUITE_CONFIDENCE = 50, 90, 0.80  # the source's gates of a promotion
EXAMINED_MS = 86_400_000  # its suite must have passed again within a day: the model behind it may change
_ROUNDING = 1e-9  # a mean of many floats that is 0.80 may lie a hair below


class SpecialistRefused(CouncilError):
    """A change of a specialist that its state, its figures or its principal do not allow."""

    code = "specialist_refused"
    exit_code = EXIT_REFUSED
    http_status = 409


class SpecialistAbsent(SpecialistRefused):
    """No specialist of that name, or none that this person may see."""

    http_status = 404


def lacks(one: Specialist) -> tuple[str, ...]:
    """The conditions of a promotion that a specialist does not meet; empty for one that an administrator may look at."""
    found = [] if one.spec.is_whole else ["words of its spec were forgotten"]
    if one.execution_count < MIN_USES:
        found.append(f"{one.execution_count} of {MIN_USES} uses")
    if one.success_count * 100 < one.execution_count * MIN_SUCCESS_PERCENT:
        found.append(f"{one.success_count} of {one.execution_count} uses succeeded, less than {MIN_SUCCESS_PERCENT} %")
    if one.avg_confidence is None:
        found.append("no suite has examined this version")
    elif one.avg_confidence + _ROUNDING < MIN_SUITE_CONFIDENCE:
        found.append(f"its latest suite reached {one.avg_confidence:.3f}, less than {MIN_SUITE_CONFIDENCE:.2f}")
    return tuple(found)


def require_candidate(one: Specialist, principal: Principal) -> None:
    """Raises SpecialistRefused unless this person may promote it once its suite has passed again."""
    if not principal.is_administrator:
        raise SpecialistRefused("Only an administrator promotes a specialist.", fix="ask an administrator of this home")
    if one.status != "unverified":
        raise SpecialistRefused(f"{one.role} is {one.status}.", fix="only an unverified specialist is promoted")
    if missing := lacks(msgspec.structs.replace(one, avg_confidence=1.0)):
        raise SpecialistRefused(f"{one.role} is not eligible: {'; '.join(missing)}.", fix="let it be used first")


def require_keeper(one: Specialist, principal: Principal) -> None:
    """Raises SpecialistRefused unless this person may change or examine it: its creator while it is theirs alone, and
    administrators."""
    if one.status == "deprecated":
        raise SpecialistRefused(f"{one.role} is deprecated.", fix="create it again, or fork it")
    if not principal.is_administrator and (one.created_by != principal.id or one.scope == "global"):
        fix = "ask an administrator, or fork it and keep your own copy"
        raise SpecialistRefused(f"{one.role} is not yours to change or to examine.", fix=fix)


def require_whole_spec(role: str, spec: SpecialistSpec) -> None:
    """Raises SpecialistRefused for a spec of which words were forgotten."""
    if not spec.is_whole:
        message, fix = f"Words of the spec of {role} were forgotten.", "deprecate it, and have a new one made"
        raise SpecialistRefused(message, fix=fix)


def examinable(tx: Tx, name: str, principal: Principal) -> Specialist:
    """The specialist of that id or role, for its keeper. Raises SpecialistRefused."""
    found = named(rows_in(tx.execute, sql.ALL), name, principal)
    require_keeper(found, principal)
    require_whole_spec(found.role, found.spec)
    return found


def is_examined_again(execute: Execute, one: Specialist, now_ms: int) -> bool:
    """True where it passed its suite again after its training, and within a day."""
    trained = next(version.run_id for version in versions_in(execute, one.id) if version.version == one.version)
    within_a_day = one.suite_run != trained and now_ms - (one.suite_at or 0) <= EXAMINED_MS
    return within_a_day and execute(sql.NOT_PASSED, (one.suite_run,)).fetchone() is None


def named(every: Sequence[Specialist], name: str, principal: Principal) -> Specialist:
    """The specialist of that id or role, one's own before the verified one. Administrators see all. Raises SpecialistRefused."""
    seen = seen_by(every, principal)
    of_role = [one for one in seen if one.role == name]
    active = [one for one in of_role if one.status != "deprecated"]
    by_id, verified = [one for one in seen if one.id == name], [one for one in active if one.scope == "global"]
    own = [one for one in active if one.created_by == principal.id and one.scope == "user"]
    found = next(filter(None, (by_id, own, verified, active, of_role)), [])
    if len(found) == 1:
        return found[0]
    if found:
        told = ", ".join(f"{one.id} of {one.created_by}" for one in found)
        raise SpecialistRefused(f"{len(found)} specialists are called {name!r}.", fix=f"name one by its id: {told}")
    raise SpecialistAbsent(f"There is no specialist {name!r} for you.", fix="`council specialists list` shows them")


def seen_by(every: Sequence[Specialist], principal: Principal) -> list[Specialist]:
    """Those that a person may see: an administrator all, for review; anybody else those that serve them, and their own."""
    if principal.is_administrator:
        return list(every)
    return [one for one in every if one.serves(principal.id) or one.created_by == principal.id]


# ── what a plan may hold ─────────────────────────────────────────────────────────────────────────────────────────────


class OfSpecialist(Arguments):
    """A specialist."""

    specialist: Annotated[str, Field(min_length=2, max_length=64, description="its role, or its id")]


class NewFork(OfSpecialist):
    """A copy of one's own."""

    role: Annotated[str, Field(pattern=ROLE_PATTERN, description="the copy's role; else the same")] | None = None


class NewRule(OfSpecialist):
    """A rule to be added at the end."""

    rule: Annotated[str, Field(min_length=8, max_length=500, description="one sentence that it must follow")]


class OldRule(OfSpecialist):
    """A rule to be removed."""

    number: Annotated[int, Field(ge=1, le=200, description="the rule's number, from 1")]


class OldVersion(OfSpecialist):
    """A version to go back to."""

    version: Annotated[int, Field(ge=1, description="the version's number")]


@dataclass(frozen=True)
class LifecycleChange:
    """A change that its principal may make. `write` makes it; nothing of it is written before."""

    summary: str
    write: Callable[[], None]
    differences: tuple[Difference, ...] = ()
    affects: tuple[str, ...] = ()
    inverse: Inverse | None = None


@dataclass(frozen=True)
class Registrar:
    """One principal before the registry, inside a transaction. Each method names the change that a plan may make."""

    connection: Connection
    principal: Principal
    now_ms: int
    personas: Collection[str]  # all names of the agents in `personas/`, in capitals

    @property
    def execute(self) -> Execute:
        return tx_over(self.connection).execute

    def find(self, name: str) -> Specialist:
        return named(rows_in(self.execute, sql.ALL), name, self.principal)

    def promote(self, one: Specialist, _: OfSpecialist) -> LifecycleChange:
        """Makes it everybody's: only for an administrator, with the figures, after its suite passed again."""
        require_candidate(one, self.principal)
        if missing := lacks(one):
            raise SpecialistRefused(f"{one.role} is not eligible: {'; '.join(missing)}.", fix="let it be used first")
        if not is_examined_again(self.execute, one, self.now_ms):
            fix = f"`council specialists promote {one.role}` lets it pass its suite again, and drafts the plan"
            raise SpecialistRefused(f"The suite of {one.role} was not passed again within a day.", fix=fix)
        everybodys = (each.role for each in rows_in(self.execute, sql.OF_USER, ""))
        if absent := one.spec.lacks((*everybodys, *self.personas, *one.spec.tools)):  # its suite had its tools
            message = f"{one.role} depends on {', '.join(absent)}, which not everybody has."
            raise SpecialistRefused(message, fix="promote that one first, or bring it back")
        older = next((row[0] for row in self.execute(sql.GLOBAL, (one.role,)).fetchall()), None)
        other = self.find(older) if older else None
        if other is not None and (other.id, other.created_by) != (one.parent, one.created_by):
            both = f"{one.role} of {one.created_by} ({one.id}) and {other.role} of {other.created_by} ({other.id})"
            raise SpecialistRefused(f"Two specialists would have one role: {both}.", fix="fork it with another role")

        def write() -> None:
            if other is not None:
                self.execute(sql.DEPRECATE, (other.id,))
            self.execute(sql.PROMOTE, (self.principal.id, self.now_ms, one.id))
            everybody = [row[0] for row in self.execute(sql.USERS, ()).fetchall()]
            told = f"The specialist {one.role} is verified: everybody can use it."
            notify(self.connection, everybody, told, self.now_ms)

        findings = auditor(as_agent_spec(one.spec)).findings
        suite = f"{one.avg_confidence:.3f} by {one.suite_model or 'no model'}"
        figures = [f"uses: {one.execution_count}", f"succeeded: {one.success_count}"]
        figures += [f"latest suite: {suite}", f"version: {one.version}"]
        differences = (
            Difference("status", "unverified, only for its creator", "verified, for everybody"),
            Difference("figures", "", "\n".join(figures)),
            Difference("the Auditor's findings", "", "\n".join(findings) or "none"),
            *_differences(None, one.spec),
        )
        instead = f", in place of {other.id}" if other is not None else ""
        summary = f"Promotes {one.role}, version {one.version}, of {one.created_by}{instead}"
        return LifecycleChange(summary, write, differences, ("everybody of this home",))

    def demote(self, one: Specialist, _: OfSpecialist) -> LifecycleChange:
        """Makes it its creator's alone again."""
        if not self.principal.is_administrator:
            fix = "ask an administrator of this home"
            raise SpecialistRefused("Only an administrator demotes a specialist.", fix=fix)
        if one.status != "verified":
            raise SpecialistRefused(f"{one.role} is {one.status}.", fix="only a verified specialist is demoted")
        own = next((row[0] for row in self.execute(sql.OWN, (one.created_by, one.role)).fetchall()), None)
        if own:
            both = f"{one.id} and {own}, both {one.role} of {one.created_by}"
            raise SpecialistRefused(f"Two specialists would have one role: {both}.", fix="deprecate it instead")
        change = Difference("status", "verified, for everybody", "unverified, only for its creator")
        write = self._told(one, sql.DEMOTE, "is unverified again: it serves only you")
        summary = f"Demotes {one.role} of {one.created_by}"
        return LifecycleChange(summary, write, (change,), ("everybody of this home",))

    def deprecate(self, one: Specialist, _: OfSpecialist) -> LifecycleChange:
        require_keeper(one, self.principal)
        change = Difference("status", one.status, "deprecated")
        write = self._told(one, sql.DEPRECATE, "is deprecated: nobody can use it any more")
        affects = "everybody of this home" if one.scope == "global" else one.created_by
        return LifecycleChange(f"Deprecates {one.role} of {one.created_by}", write, (change,), (affects,))

    def fork(self, one: Specialist, asked: NewFork) -> LifecycleChange:
        """Makes an unverified copy for the principal alone. It names its parent, and has no figures yet. Raises SpecRefused, too,
        for a role that no specialist can have."""
        role = asked.role or one.role
        require_whole_spec(one.role, one.spec)
        if self.execute(sql.OWN, (self.principal.id, role)).fetchall():
            raise SpecialistRefused(f"You have a specialist {role} already.", fix="give the copy another role")
        if role.upper() in self.personas:
            raise SpecialistRefused(f"There is an agent {role} already.", fix="give the copy another role")
        spec = spec_of(msgspec.to_builtins(msgspec.structs.replace(one.spec, role=role)))

        def write() -> None:
            agent_id = new_run_id(datetime.fromtimestamp(self.now_ms / 1000, UTC))
            encoded = msgspec.json.encode(spec).decode()
            self.execute(sql.ADD, (agent_id, role, self.principal.id, encoded, self.now_ms, one.id))
            suite = self._version(one, one.version).suite
            add_version(self.execute, agent_id, spec, suite, f"forked from {one.role} ({one.id})", self.now_ms)

        return LifecycleChange(f"Forks {one.role} of {one.created_by} as your own {role}", write)

    def add_rule(self, one: Specialist, asked: NewRule) -> LifecycleChange:
        return self._with_rules(one, (*one.spec.dna_rules, asked.rule), f"adds a rule: {asked.rule}")

    def remove_rule(self, one: Specialist, asked: OldRule) -> LifecycleChange:
        rules = list(one.spec.dna_rules)
        if asked.number > len(rules):
            raise SpecialistRefused(f"{one.role} has {len(rules)} rules.", fix=f"give a number from 1 to {len(rules)}")
        gone = rules.pop(asked.number - 1)
        return self._with_rules(one, tuple(rules), f"removes rule {asked.number}: {gone}")

    def rollback(self, one: Specialist, asked: OldVersion) -> LifecycleChange:
        """Brings back the spec and the figures of an earlier version."""
        self._require_changeable(one)
        older = self._version(one, asked.version)
        require_whole_spec(one.role, older.spec)
        if older.version == one.version:
            raise SpecialistRefused(f"{one.role} has version {one.version} already.", fix="name another version")
        encoded = msgspec.json.encode(older.spec).decode()
        write = partial(self.execute, sql.CHANGE, (encoded, older.version, one.id))
        summary = f"Takes {one.role} from version {one.version} to {older.version}"
        return LifecycleChange(summary, write, _differences(one.spec, older.spec), inverse=_back_to(one))

    # ── details ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _with_rules(self, one: Specialist, rules: tuple[str, ...], change: str) -> LifecycleChange:
        self._require_changeable(one)
        require_whole_spec(one.role, one.spec)
        spec = msgspec.structs.replace(one.spec, dna_rules=rules)
        if reason := stopped_by_ministers(spec, spec.tools):
            raise SpecialistRefused(f"With these rules the ministers stop it: {reason}.", fix="word the rule otherwise")
        suite = self._version(one, one.version).suite
        write = partial(add_version, self.execute, one.id, spec, suite, change, self.now_ms)
        summary = f"Changes {one.role} of {one.created_by}: {change}"
        return LifecycleChange(summary, write, _differences(one.spec, spec), inverse=_back_to(one))  # type: ignore[arg-type]

    def _version(self, one: Specialist, number: int) -> SpecialistVersion:
        known = {version.version: version for version in versions_in(self.execute, one.id)}
        if number not in known:
            told = ", ".join(map(str, known))
            raise SpecialistRefused(f"{one.role} has no version {number}.", fix=f"its versions: {told}")
        return known[number]

    def _told(self, one: Specialist, statement: str, what: str) -> Callable[[], None]:
        def write() -> None:
            self.execute(statement, (one.id,))
            if one.created_by != self.principal.id:
                notify(self.connection, [one.created_by], f"Your specialist {one.role} {what}.", self.now_ms)

        return write

    def _require_changeable(self, one: Specialist) -> None:
        require_keeper(one, self.principal)
        if one.status == "verified":
            fix = "fork it, or have a new version made and promoted"
            raise SpecialistRefused(f"{one.role} is verified, and a verified spec does not change.", fix=fix)


def _back_to(one: Specialist) -> Inverse:
    return Inverse("rollbackSpecialist", {"specialist": one.id, "version": one.version})


def _differences(before: SpecialistSpec | None, after: SpecialistSpec) -> tuple[Difference, ...]:
    """The parts of a spec that differ; all of them where there was none before."""
    old, new = {} if before is None else shown_spec(before), shown_spec(after)
    texts = [(name, old.get(name, ""), new.get(name, "")) for name in {**old, **new}]
    return tuple(Difference(*text) for text in texts if text[1] != text[2])


_VERBS: tuple[tuple[str, str, type[Arguments], Callable[[Registrar, Specialist, Any], LifecycleChange]], ...] = (
    ("promoteSpecialist", "makes a specialist everybody's", OfSpecialist, Registrar.promote),
    ("demoteSpecialist", "makes a specialist serve only its creator again", OfSpecialist, Registrar.demote),
    ("deprecateSpecialist", "takes a specialist out of use", OfSpecialist, Registrar.deprecate),
    ("forkSpecialist", "copies a specialist for the person", NewFork, Registrar.fork),
    ("addRule", "adds a rule to a specialist", NewRule, Registrar.add_rule),
    ("removeRule", "removes a rule of a specialist", OldRule, Registrar.remove_rule),
    ("rollbackSpecialist", "takes a specialist back to an earlier version", OldVersion, Registrar.rollback),
)
LIFECYCLE = PlanKind("specialists", tuple(name for name, *_ in _VERBS))


def lifecycle_tools(core: BareCore) -> list[Tool]:
    def change(
        act: Callable[..., LifecycleChange], connection: Connection, principal: Principal, arguments: OfSpecialist, /
    ) -> tuple[Specialist, LifecycleChange]:
        now_ms = epoch_ms(core.clock)
        registrar = Registrar(connection, principal, now_ms, by_name(load_personas(core.home.personas)))
        one = registrar.find(arguments.specialist)
        return one, act(registrar, one, arguments)

    def preview(act: Callable[..., LifecycleChange], *asked: Any) -> Preview:
        one, made = change(act, *asked)
        state = f"{one.id} {one.version} {one.status} {one.scope}"
        return Preview(made.summary, made.differences, made.affects, made.inverse is not None, state)

    def apply(name: str, act: Callable[..., LifecycleChange], *asked: Any) -> ToolResult:
        _, made = change(act, *asked)
        made.write()
        return ToolResult(ok=True, title=name, text=f"{made.summary}.", inverse=made.inverse)

    return [
        Tool(name, told, arguments, "write", (), None, partial(apply, name, act), partial(preview, act))
        for name, told, arguments, act in _VERBS
    ]
