"""The audit as others hold it: nothing is loaded or opened before the first record. Imports no SQLAlchemy."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from council.errors import ConfigError, KeysRefused, StorageFailed

if TYPE_CHECKING:
    from council.audit.chain import Kind
    from council.audit.log import AuditLog

MAX_REFUSALS = 200  # of one run; that there were more is recorded as one


class Trail:
    """Opens the log once, when it is first wanted."""

    def __init__(self, opening: Callable[[], AuditLog]) -> None:
        self._opening = opening
        self._log: AuditLog | None = None
        self._lock = threading.Lock()

    def log(self) -> AuditLog:
        """Raises StorageFailed, KeysRefused, ConfigError."""
        with self._lock:
            if self._log is None:
                self._log = self._opening()
            return self._log

    def refuse(self, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Records what a door refused. Raises StorageFailed."""
        with _as_storage(), self.log().transaction() as transaction:
            transaction.record("refusal", action, actor, detail)

    async def record_refusals(self, run_id: str, actor: str, refusals: Sequence[Mapping[str, Any]]) -> str:
        """Records what was refused to a run so far, each once, however often it is asked; the head of the chain after that.
        Raises StorageFailed."""
        return await asyncio.to_thread(self._record_refusals, run_id, actor, refusals)

    async def after_commit(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Records what a run's commit changed, once. Raises StorageFailed."""
        await asyncio.to_thread(self._record, "effect", run_id, step, action, actor, detail)

    async def approved(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Records what a person approved for a run, once. Raises StorageFailed."""
        await asyncio.to_thread(self._record, "approval", run_id, step, action, actor, detail)

    def close(self) -> None:
        with self._lock:
            if self._log is not None:
                self._log.database.close()
                self._log = None

    def _record_refusals(self, run_id: str, actor: str, refusals: Sequence[Mapping[str, Any]]) -> str:
        with _as_storage(), self.log().transaction() as transaction:
            transaction.record_missing(
                "refusal", "request_refused", actor, refusals[:MAX_REFUSALS], run_id=run_id, step="refusal"
            )
            if len(refusals) > MAX_REFUSALS:
                detail = {"more_than": MAX_REFUSALS}
                transaction.record("refusal", "requests_refused", actor, detail, run_id=run_id, step="refusals")
        return str(transaction.head)

    def _record(self, kind: Kind, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        with _as_storage(), self.log().transaction() as transaction:
            transaction.record(kind, action, actor, detail, run_id=run_id, step=step)


@contextlib.contextmanager
def _as_storage() -> Iterator[None]:
    """A run waits for keys and database as it waits for a full disk: it goes on by itself."""
    try:
        yield
    except (KeysRefused, ConfigError) as error:
        raise StorageFailed(f"the audit cannot be written: {error.message}", fix=error.fix) from error
