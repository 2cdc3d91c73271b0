"""The audit as others hold it: no key is loaded before the first record."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from council.errors import ConfigError, KeysRefused, StorageFailed
from council.storage.store import Tx

if TYPE_CHECKING:
    from council.audit.log import AuditLog, Transaction

log = logging.getLogger(__name__)

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

    @contextlib.contextmanager
    def _awaited(self) -> Iterator[AuditLog]:
        """A run waits for keys as it waits for a full disk, and goes on by itself: each is StorageFailed."""
        try:
            yield self.log()
        except (KeysRefused, ConfigError) as error:
            raise StorageFailed(f"the audit cannot be written: {error.message}", fix=error.fix) from error

    def refuse(self, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Records what a door refused. Raises StorageFailed."""
        with self._awaited() as log, log.transaction() as transaction:
            transaction.record("refusal", action, actor, detail)

    def head(self) -> str:
        """The end of the chain now. Raises StorageFailed."""
        with self._awaited() as log:
            return str(log.head())

    def join(self, tx: Tx) -> Transaction:
        """Appends within a run's transaction. Raises StorageFailed."""
        with self._awaited() as log:
            return log.joined(tx)

    def settle(self, done: Transaction) -> None:
        """Follows the commit. What cannot be noted beside the database now is with the next record."""
        try:
            self.log().settle(done)
        except StorageFailed as error:
            log.warning("the head file of the audit could not be written: %s", error)


def record_refusals(transaction: Transaction, run_id: str, actor: str, refusals: Sequence[Mapping[str, Any]]) -> None:
    """Records what was refused to a run so far, each once, however often it is asked."""
    transaction.record_missing(
        "refusal", "request_refused", actor, refusals[:MAX_REFUSALS], run_id=run_id, step="refusal"
    )
    if len(refusals) > MAX_REFUSALS:
        detail = {"more_than": MAX_REFUSALS}
        transaction.record("refusal", "requests_refused", actor, detail, run_id=run_id, step="refusals")
