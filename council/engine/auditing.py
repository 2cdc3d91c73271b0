"""A run's records in the audit: refusals, changes, approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from council.audit.trail import Trail, record_refusals
from council.engine.records import Commit, RunHeader
from council.ids import STEWARD, sha256_hex
from council.storage.store import Store, Tx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from council.audit.log import Transaction
    from council.engine.runs import Run

T = TypeVar("T")

AUDIT_HEAD = "audit_head"  # the step that records the end of the chain as it was before the commit
MAX_FILES = 64  # of one commit in a record; the journal holds them all


async def audited_effect(run: Run, trail: Trail, step: str, change: Callable[[Transaction], T], type: type[T]) -> T:
    """An effect of a run with its records in the audit, in one transaction; see `Journal.effect`."""
    joined: list[Transaction] = []

    def write(tx: Tx) -> T:
        joined.append(trail.join(tx))
        return change(joined[-1])

    done = await run.effect(step, write, type=type)
    if joined:
        trail.settle(joined[-1])
    return done


class RunAudit:
    """The audit of runs. Without a trail nothing is recorded: for runs that change nothing of anybody's. Everything may be
    asked again for the same run, and then records nothing twice; everything raises StorageFailed."""

    def __init__(self, store: Store, trail: Trail | None, audited_as: Callable[[str], str]) -> None:
        self._store = store
        self._audited_as = audited_as
        self._trail = trail

    def head(self) -> str:
        """The end of the chain now."""
        return self._trail.head() if self._trail is not None else ""

    async def refused(self, header: RunHeader, refusals: Sequence[Mapping[str, str]]) -> None:
        """Records what was refused to a run so far: its end may be long in coming."""
        if refusals:
            await self._write(lambda done: record_refusals(done, header.run_id, actor_of(header), refusals))

    async def drift_accepted(self, run_id: str) -> None:
        """Records that the steward lets a run go on although what it asks has changed."""
        what, detail = "drift_accepted", {"run": run_id}
        await self._write(lambda done: done.record("approval", what, STEWARD.id, detail, run_id=run_id, step=what))

    def end(
        self, tx: Tx, header: RunHeader, committed: Commit, refusals: Sequence[Mapping[str, str]]
    ) -> tuple[str, Transaction | None]:
        """Records within a run's commit what it changes: the end of the chain then, and what `settle` wants afterwards. A
        commit is known by its own bytes: a run that goes on and ends again has another one."""
        if self._trail is None:
            return "", None
        transaction = self._trail.join(tx)
        record_refusals(transaction, header.run_id, actor_of(header), refusals)
        files = [{"path": file.final, "sha256": file.sha256} for file in committed.files[:MAX_FILES]]
        detail = {"type": header.type, "lane": header.lane, "status": committed.status, "files": files}
        step = f"commit-{sha256_hex(msgspec.json.encode(committed))[:16]}"
        action = self._audited_as(header.type)
        transaction.record("effect", action, actor_of(header), detail, run_id=header.run_id, step=step)
        return str(transaction.head), transaction

    async def displaced(self, header: RunHeader, wanted: str, final: str, sha256: str) -> None:
        """Records where a file of a commit went that a person's edit kept from its place."""
        detail = {"files": [{"path": final, "sha256": sha256}], "wanted": wanted}
        actor, run_id, step = actor_of(header), header.run_id, f"displaced-{sha256[:16]}"
        await self._write(lambda done: done.record("effect", "file_displaced", actor, detail, run_id=run_id, step=step))

    async def taken_away(self, header: RunHeader, path: str, sha256: str) -> None:
        """Records that a run takes an earlier page of its own away, before it does."""
        detail = {"files": [{"path": path, "sha256": ""}]}
        actor, run_id, step = actor_of(header), header.run_id, f"taken-away-{sha256[:16]}"
        await self._write(
            lambda done: done.record("effect", "page_taken_away", actor, detail, run_id=run_id, step=step)
        )

    def settle(self, done: Transaction | None) -> None:
        """Follows the commit."""
        if self._trail is not None and done is not None:
            self._trail.settle(done)

    async def _write(self, record: Callable[[Transaction], object]) -> None:
        if self._trail is None:
            return
        trail = self._trail

        def write(tx: Tx) -> Transaction:
            done = trail.join(tx)
            record(done)
            return done

        trail.settle(await self._store.write(write))


def actor_of(header: RunHeader) -> str:
    """The principal on whose behalf a run acts."""
    user = header.command.get("user")
    return str(user) if user else STEWARD.id
