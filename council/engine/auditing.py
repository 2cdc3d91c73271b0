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

MAX_FILES = 64  # of one commit in a record; the journal holds them all


async def audited_effect(run: Run, trail: Trail, step: str, change: Callable[[Transaction], T], type: type[T]) -> T:
    """An effect of a run with its records in the audit, in one transaction; see `Run.effect`."""
    joined: list[Transaction] = []

    def write(tx: Tx) -> T:
        joined.append(trail.join(tx))
        return change(joined[-1])

    done = await run.effect(step, write, type=type)
    if joined:
        trail.settle(joined[-1])
    return done


class RunAudit:
    """The audit of runs. Everything may be asked again for the same run, and then records nothing twice; everything raises
    StorageFailed."""

    def __init__(self, store: Store, trail: Trail, audited_as: Callable[[str], str]) -> None:
        self._store = store
        self._audited_as = audited_as
        self.trail = trail

    async def refused(self, header: RunHeader, refusals: Sequence[Mapping[str, str]]) -> None:
        """Records what was refused to a run so far: its end may be long in coming."""
        if refusals:
            await self._write(lambda done: record_refusals(done, header.run_id, actor_of(header), refusals))

    async def drift_accepted(self, run_id: str) -> None:
        """Records that the steward lets a run go on although what it asks has changed."""
        what, detail = "drift_accepted", {"run": run_id}
        await self._write(lambda done: done.record("approval", what, STEWARD.id, detail, run_id=run_id, step=what))

    def end(self, tx: Tx, header: RunHeader, committed: Commit, refusals: Sequence[Mapping[str, str]]) -> Transaction:
        """Records within a run's commit what it changes; the trail settles it afterwards. A commit is known by its own bytes: a
        run that goes on and ends again has another one."""
        transaction = self.trail.join(tx)
        record_refusals(transaction, header.run_id, actor_of(header), refusals)
        files = [{"path": file.final, "sha256": file.sha256} for file in committed.files[:MAX_FILES]]
        detail = {"type": header.type, "lane": header.lane, "status": committed.status, "files": files}
        step = f"commit-{sha256_hex(msgspec.json.encode(committed))[:16]}"
        action = self._audited_as(header.type)
        transaction.record("effect", action, actor_of(header), detail, run_id=header.run_id, step=step)
        return transaction

    async def displaced(self, header: RunHeader, wanted: str, final: str, sha256: str) -> None:
        """Records where a file of a commit went that a person's edit kept from its place."""
        detail = {"files": [{"path": final, "sha256": sha256}], "wanted": wanted}
        await self._effect(header, "file_displaced", detail, f"displaced-{sha256[:16]}")

    async def taken_away(self, header: RunHeader, path: str, sha256: str) -> None:
        """Records that a run takes an earlier page of its own away, before it does."""
        detail = {"files": [{"path": path, "sha256": ""}]}
        await self._effect(header, "page_taken_away", detail, f"taken-away-{sha256[:16]}")

    async def _effect(self, header: RunHeader, action: str, detail: Mapping[str, object], step: str) -> None:
        actor, run_id = actor_of(header), header.run_id
        await self._write(lambda done: done.record("effect", action, actor, detail, run_id=run_id, step=step))

    async def _write(self, record: Callable[[Transaction], object]) -> None:
        def write(tx: Tx) -> Transaction:
            done = self.trail.join(tx)
            record(done)
            return done

        self.trail.settle(await self._store.write(write))


def actor_of(header: RunHeader) -> str:
    """The principal on whose behalf a run acts."""
    user = header.command.get("user")
    return str(user) if user else STEWARD.id
