"""The audit as others hold it: nothing is loaded or opened before the first record. Imports no SQLAlchemy."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from council.errors import ConfigError, KeysRefused, StorageFailed

if TYPE_CHECKING:
    from council.audit.log import AuditLog

MAX_REFUSALS = 200  # of one run; a run that asks in vain more often says the same again


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

    async def before_commit(self, run_id: str, actor: str, refusals: Sequence[Mapping[str, Any]]) -> str:
        """Records what was refused to a run, once, however often it is asked; the head of the chain after that. Raises
        StorageFailed."""
        return await asyncio.to_thread(self._before_commit, run_id, actor, refusals)

    async def after_commit(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Records what a run's commit changed, once. Raises StorageFailed."""
        await asyncio.to_thread(self._after_commit, run_id, step, action, actor, detail)

    def close(self) -> None:
        with self._lock:
            if self._log is not None:
                self._log.database.close()
                self._log = None

    def _before_commit(self, run_id: str, actor: str, refusals: Sequence[Mapping[str, Any]]) -> str:
        with _as_storage(), self.log().transaction() as transaction:
            for number, refused in enumerate(refusals[:MAX_REFUSALS], start=1):
                step = f"refusal-{number}"
                transaction.record("refusal", "request_refused", actor, refused, run_id=run_id, step=step)
        return str(transaction.head)

    def _after_commit(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        with _as_storage(), self.log().transaction() as transaction:
            transaction.record("effect", action, actor, detail, run_id=run_id, step=step)


@contextlib.contextmanager
def _as_storage() -> Iterator[None]:
    """A run waits for keys and database as it waits for a full disk: it goes on by itself."""
    try:
        yield
    except (KeysRefused, ConfigError) as error:
        raise StorageFailed(f"the audit cannot be written: {error.message}", fix=error.fix) from error
