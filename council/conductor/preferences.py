"""Preferences of a person (source: The Conductor, "Context Scopes", global): set by command, and facts kept by a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from pydantic import Field

from council.audit.trail import Trail
from council.commands.types import Admission
from council.conductor import statements as sql
from council.conductor.commands import MAX_VALUE_CHARS, PrefsCommand
from council.engine.records import FileIdentity
from council.engine.runs import ControlAnswer, Premises
from council.errors import CouncilError
from council.ids import Clock, Principal, epoch_ms, sha256_hex
from council.plans.plan import PlanKind
from council.redaction import Redactor
from council.safety.untrusted import plain_line, spelled_out
from council.storage.reader import Looking
from council.storage.store import Store, Tx, tx_over
from council.tools.preview import Inverse, Preview
from council.tools.tool import Arguments, Tool, ToolResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from council.audit.log import Transaction

LONG_TERM = "long_term_memory"
KEEPING = PlanKind("memory", ("keepFact", "dropFact"))
_MAX_FACTS = 50  # in a prompt, newest last
_STYLES = ("language", "verbosity", "tone", "style", "humor")


class Preferences(msgspec.Struct, frozen=True):
    """The preferences of one person. `facts` are what they let agents remember; none unless they opted in."""

    values: dict[str, str] = {}
    facts: tuple[str, ...] = ()

    @property
    def remembers(self) -> bool:
        """True when the person opted in to long-term memory."""
        return self.values.get(LONG_TERM) == "on"

    @property
    def as_prompt(self) -> str:
        """The lines about how the person wants to be answered; empty without any. An older version took several lines for one."""
        given = {name: plain_line(self.values[name], MAX_VALUE_CHARS) for name in _STYLES if name in self.values}
        return "\n".join(f"- {name}: {value}" for name, value in given.items())


def preferences_of(store: Looking, user: str) -> Preferences:
    """Raises StorageFailed."""

    def look(tx: Tx) -> Preferences:
        kept = _kept(tx, user)
        if not kept.remembers:
            return kept
        return Preferences(kept.values, tuple(_facts(tx, user).values())[-_MAX_FACTS:])

    return store.read(look)


def _kept(tx: Tx, user: str) -> Preferences:
    return Preferences(dict(map(tuple, tx.execute(sql.PREFERENCES, (user,)).fetchall())))


def _facts(tx: Tx, user: str) -> dict[str, str]:
    return dict(map(tuple, tx.execute(sql.FACTS, (user,)).fetchall()))


def admit_prefs(command: PrefsCommand, premises: Premises) -> Admission:
    """Admits every change: it is the person's own."""
    return Admission(f"prefs {command.action} {command.name or 'all'}")


@dataclass(frozen=True)
class PrefsHandler:
    """Obeys `prefs`."""

    store: Store
    redactor: Redactor
    audit: Trail

    async def __call__(self, command: PrefsCommand, principal: Principal, file: FileIdentity) -> ControlAnswer:
        def write(tx: Tx) -> Transaction:
            user, name = principal.id, command.name
            done = self.audit.join(tx)
            told = {"action": command.action, "name": name}  # a value is the person's own
            done.record("effect", "prefs", user, told)
            if command.action == "set":
                tx.execute(sql.SET_PREFERENCE, (user, name, self.redactor.redact(command.value or "")))
                return done
            if name in (None, "facts"):
                tx.execute(sql.FORGET_FACTS, (user,))
            if name is None:
                tx.execute(sql.FORGET_PREFERENCES, (user,))
            elif name != "facts":
                tx.execute(sql.FORGET_PREFERENCE, (user, name))
            return done

        self.audit.settle(await self.store.write(write))
        if command.action == "set":
            return ControlAnswer((f"{command.name} is {spelled_out(command.value or '')}.",))
        return ControlAnswer((f"{command.name or 'Every preference, and every fact,'} is forgotten.",))


class Fact(Arguments):
    """A fact that an agent may remember about the person."""

    fact: Annotated[str, Field(min_length=3, max_length=300, description="one sentence about the person")]


class FactId(Arguments):
    """A fact that is kept."""

    fact_id: Annotated[str, Field(min_length=1, max_length=64)]


class NotOptedIn(CouncilError):
    """The person does not want anything remembered."""

    code = "memory_off"
    http_status = 409


def fact_tools(clock: Clock) -> list[Tool]:
    """`keepFact`, and `dropFact`, which takes it back."""

    def keep_preview(connection: Connection, principal: Principal, arguments: Fact, /) -> Preview:
        if not _kept(tx_over(connection), principal.id).remembers:
            fix = "`council prefs set long_term_memory on`"
            raise NotOptedIn("long-term memory is off, so no fact is kept.", fix=fix)
        is_known = _fact_id(principal, arguments.fact) in _facts(tx_over(connection), principal.id)
        return Preview(summary=f"Remember: {arguments.fact}", state=str(is_known))

    def keep(connection: Connection, principal: Principal, arguments: Fact, /) -> ToolResult:
        from council.conductor.tables import kept_facts  # not at the top: SQLAlchemy

        fact_id = _fact_id(principal, arguments.fact)
        if fact_id not in _facts(tx_over(connection), principal.id):
            at_ms = epoch_ms(clock)
            row = {"fact_id": fact_id, "user_id": principal.id, "fact": arguments.fact, "at_ms": at_ms}
            connection.execute(kept_facts.insert().values(row))
        inverse = Inverse("dropFact", {"fact_id": fact_id})
        return ToolResult(ok=True, title="keepFact", text=f"Remembered: {arguments.fact}", inverse=inverse)

    def drop_preview(connection: Connection, principal: Principal, arguments: FactId, /) -> Preview:
        fact = _facts(tx_over(connection), principal.id).get(arguments.fact_id)
        return Preview(summary=f"Forget: {fact or 'a fact that is gone'}", state=str(fact is not None))

    def drop(connection: Connection, principal: Principal, arguments: FactId, /) -> ToolResult:
        tx_over(connection).execute(sql.FORGET_FACT, (principal.id, arguments.fact_id))
        return ToolResult(ok=True, title="dropFact", text="Forgotten.")

    return [
        Tool("keepFact", "keeps a fact about the person", Fact, "write", (), apply=keep, preview=keep_preview),
        Tool("dropFact", "forgets a fact about the person", FactId, "write", (), apply=drop, preview=drop_preview),
    ]


def _fact_id(principal: Principal, fact: str) -> str:
    return sha256_hex(f"{principal.id}\n{fact}")[:32]
