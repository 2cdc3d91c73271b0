"""The changes that operations make: each by its tool, inside the writer's transaction, and taken back where that is asked."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from council.errors import CouncilError
from council.ids import Principal
from council.storage.store import Tx
from council.tools.registry import ToolRegistry
from council.tools.tool import ToolResult

log = logging.getLogger(__name__)


class PlanFailed(CouncilError):
    """A change that a tool did not make: nothing of its plan is there."""

    code = "plan_failed"
    http_status = 409


def make_change(tools: ToolRegistry, tx: Tx, principal: Principal, name: str, arguments: dict[str, Any]) -> ToolResult:
    """The result of a tool that made its change. Raises PlanFailed for anything else, but not for a database that takes
    nothing now: that is waited for."""
    tool = tools.get(name)
    if tool is None or tool.apply is None:
        raise PlanFailed(f"There is no tool {name}.", fix="apply the plan in a council that has this tool")
    try:
        result = tool.apply(tx.core, principal, tool.arguments.model_validate(arguments))
    except CouncilError:
        raise
    except Exception as error:
        from sqlalchemy.exc import DBAPIError, IntegrityError  # not at the top: the daemon applies plans seldom

        if isinstance(error, IntegrityError):  # its preview allowed it: another change of the plan came before
            raise PlanFailed(f"{name} clashes with a row that is there.", fix="draft the plan without it") from error
        if isinstance(error, DBAPIError):
            raise
        log.exception("the tool %s met a defect", name)
        message = f"{name} met an internal error ({type(error).__name__})."
        raise PlanFailed(message, fix="see the log, and report it") from error
    if not result.ok:
        raise PlanFailed(f"{name}: {result.error}", fix="draft the plan again")
    return result


@contextmanager
def all_or_nothing(tx: Tx) -> Iterator[None]:
    """Takes everything in the block back where it is refused."""
    tx.execute("SAVEPOINT plan")
    try:
        yield
    except CouncilError:
        tx.execute("ROLLBACK TO SAVEPOINT plan")
        tx.execute("RELEASE SAVEPOINT plan")
        raise
    tx.execute("RELEASE SAVEPOINT plan")


@contextmanager
def rolled_back(tx: Tx) -> Iterator[None]:
    """Takes everything in the block back, refused or not."""
    with all_or_nothing(tx):
        yield
        tx.execute("ROLLBACK TO SAVEPOINT plan")
