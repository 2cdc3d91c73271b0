"""A system whose rows only plans change: three write tools, kinds of plans, and a run that applies its own plan."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StrictStr

from council.commands.models import RunBase
from council.commands.types import Admission, CommandType
from council.engine.runs import Finish, Outcome, Premises, Run
from council.errors import ToolRefused
from council.ids import STEWARD, Principal, canonical_json, sha256_hex
from council.plans.applying import PlanEnding, apply_handed_plan, await_person
from council.plans.approval import Proposal, ProposedOperation
from council.plans.plan import PlanKind
from council.plans.register import plan_in
from council.storage.store import Tx
from council.systems import Core, System
from council.tools.preview import Difference, Inverse, Preview
from council.tools.tool import Arguments, Tool, ToolResult

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

ACTIONS = ("putPage", "editPage", "removePage")


class PutPage(Arguments):
    title: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    content: StrictStr = ""
    shelf: StrictStr = "open"


class EditPage(Arguments):
    page: StrictStr
    title: StrictStr | None = None
    content: StrictStr | None = None
    shelf: StrictStr | None = None


class RemovePage(Arguments):
    page: StrictStr
    shelf: StrictStr | None = None


def _require(principal: Principal, shelf: str) -> None:
    """The shelf `closed` is for administrators."""
    if shelf == "closed" and principal.kind not in ("steward", "administrator"):
        raise ToolRefused(f"{principal.id} may not write on the closed shelf.", fix="ask an administrator")


def _row(connection: Connection, arguments: EditPage | RemovePage) -> RowMapping:
    from sqlalchemy import select

    from tests.sample_page_tables import sample_pages

    found = connection.execute(select(sample_pages).where(sample_pages.c.page_id == arguments.page)).mappings()
    row = found.one_or_none()
    if row is None or arguments.shelf not in (None, row["shelf"]):
        raise ToolRefused("There is no such page.", fix="name another one")
    return row


def _state(row: RowMapping) -> str:
    return sha256_hex(canonical_json(dict(row)))


def preview_put(connection: Connection, principal: Principal, arguments: PutPage, /) -> Preview:
    """Makes the table, which no migration does."""
    from sqlalchemy.schema import CreateTable

    from tests.sample_page_tables import sample_pages

    connection.execute(CreateTable(sample_pages, if_not_exists=True))
    _require(principal, arguments.shelf)
    return Preview(
        f"Puts the page “{arguments.title}” on the shelf {arguments.shelf}.",
        (Difference("title", "", arguments.title), Difference("content", "", arguments.content)),
    )


def put(connection: Connection, principal: Principal, arguments: PutPage, /) -> ToolResult:
    """A page “refuse” or “break” beside it, which no preview looks for, is what it does."""
    from sqlalchemy import select

    from tests.sample_page_tables import sample_pages

    _require(principal, arguments.shelf)
    beside = connection.scalars(select(sample_pages.c.title).where(sample_pages.c.shelf == arguments.shelf)).all()
    if "refuse" in beside:
        return ToolResult.refused("full", "the shelf is full.")
    if "break" in beside:
        raise RuntimeError("a defect")
    page = secrets.token_hex(8)
    values = {"page_id": page, "shelf": arguments.shelf, "title": arguments.title, "content": arguments.content}
    connection.execute(sample_pages.insert().values(values))
    return ToolResult(True, f"Put “{arguments.title}”.", inverse=Inverse("removePage", {"page": page}))


def preview_edit(connection: Connection, principal: Principal, arguments: EditPage, /) -> Preview:
    row = _row(connection, arguments)
    _require(principal, row["shelf"])
    given = {name: getattr(arguments, name) for name in ("title", "content") if getattr(arguments, name) is not None}
    differences = tuple(Difference(name, row[name], value) for name, value in given.items())
    return Preview(f"Changes the page “{row['title']}”.", differences, ("its readers",), True, _state(row))


def edit(connection: Connection, principal: Principal, arguments: EditPage, /) -> ToolResult:
    from tests.sample_page_tables import sample_pages

    row = _row(connection, arguments)
    _require(principal, row["shelf"])
    given = {name: getattr(arguments, name) for name in ("title", "content") if getattr(arguments, name) is not None}
    chosen = sample_pages.c.page_id == arguments.page
    connection.execute(sample_pages.update().where(chosen).values(given))
    before = {name: row[name] for name in given}
    return ToolResult(
        True, f"Changed “{row['title']}”.", inverse=Inverse("editPage", {"page": arguments.page, **before})
    )


def preview_remove(connection: Connection, principal: Principal, arguments: RemovePage, /) -> Preview:
    row = _row(connection, arguments)
    _require(principal, row["shelf"])
    return Preview(f"Removes the page “{row['title']}”.", (), ("its readers",), False, _state(row))


def remove(connection: Connection, principal: Principal, arguments: RemovePage, /) -> ToolResult:
    from tests.sample_page_tables import sample_pages

    row = _row(connection, arguments)
    _require(principal, row["shelf"])
    connection.execute(sample_pages.delete().where(sample_pages.c.page_id == arguments.page))
    return ToolResult(True, f"Removed “{row['title']}”.")


TOOLS = (
    Tool("putPage", "Puts a page on a shelf.", PutPage, "write", (), None, put, preview_put),
    Tool("editPage", "Changes a page.", EditPage, "write", (), None, edit, preview_edit),
    Tool("removePage", "Removes a page.", RemovePage, "danger", (), None, remove, preview_remove),
)
KINDS = (
    PlanKind("pages", ACTIONS),
    PlanKind("loose", ACTIONS, partial=True),
    PlanKind("adding", ("putPage",), draft_ttl_s=60.0),
    PlanKind("learning", ACTIONS, applied_by_run=True),
)


class LearnCommand(RunBase):
    """Learns something, and puts it on a shelf once a person agrees."""

    type: Annotated[Literal["learn"], Field(description="What kind of command this is.")]
    words: StrictStr


@dataclass
class Learning:
    run: Run
    core: Core

    async def work(self) -> None:
        plans, words = self.core.plans, self.run.header.command["words"]

        def draft(tx: Tx) -> str:
            wanted = Proposal("learning", (ProposedOperation("putPage", {"title": words}),))
            return plans.draft(plans.audit.join(tx), wanted, STEWARD, run_id=self.run.id).plan_id

        plan_id = await self.run.effect("draft", draft, type=str)
        await self.run.step("approved", lambda: self.approved(plan_id), type=bool)

        def close(tx: Tx) -> PlanEnding:
            return apply_handed_plan(plans, plans.audit.join(tx), plan_id, self.run.id)

        await self.run.effect("learned", close, type=PlanEnding)

    async def approved(self, plan_id: str) -> bool:
        plan = self.core.store.read(lambda tx: plan_in(tx, plan_id))
        assert plan is not None
        await_person(plan, self.core.plans.now_ms())
        return True

    def conclude(self, finish: Finish) -> Outcome:
        return Outcome("failed" if finish.error else "succeeded", None, error=finish.error)


def admit_learn(command: LearnCommand, premises: Premises) -> Admission:
    return Admission(f"Learn {command.words}")


PAGES = System(
    "pages",
    commands=(CommandType(LearnCommand, admit_learn),),
    handlers=lambda core: {"learn": lambda run: Learning(run, core)},
    tools=lambda core: TOOLS,
    plan_kinds=KINDS,
    tables="tests.sample_page_tables",
)


def pages_in(tx: Tx) -> list[tuple[Any, ...]]:
    """Shelf, title and content of all pages, by title."""
    from sqlalchemy import inspect, select

    from tests.sample_page_tables import sample_pages

    if not inspect(tx.core).has_table("sample_pages"):
        return []
    rows = tx.core.execute(select(sample_pages.c.shelf, sample_pages.c.title, sample_pages.c.content))
    return sorted(tuple(row) for row in rows)
