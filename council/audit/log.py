"""The audit in the database: records are written in the transaction of the effect that they tell of.

The end of the chain is kept three times: in the database, in `.council/audit.head` (written after each transaction), and
in every artifact and receipt. A head file that the database no longer bears out is evidence: it is set aside, never
overwritten, and `verify` tells of it until a person removes it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, func, select, text

from council.audit.chain import (
    FORGOT,
    GENESIS,
    RENEWED,
    Finding,
    Head,
    Kind,
    Record,
    Verdict,
    detail_hash,
    detail_text,
    export_line,
    mac_of,
    verify,
)
from council.audit.head_file import DISPUTED, HEAD_FILE, SETTLED, advance_head, read_head, write_head
from council.audit.tables import chain as chain_table
from council.audit.tables import records as record_table
from council.errors import KeysRefused, StorageFailed
from council.ids import STEWARD, Clock, timestamp
from council.keys.keyring import Keyring
from council.redaction import Redactor
from council.storage.database import Database
from council.storage.files import as_storage_failed

log = logging.getLogger(__name__)

_PAGE = 5_000  # records in memory at a time
_LOCK = 0x6175646974  # "audit": PostgreSQL's advisory lock of whoever appends
_SALT_BYTES = 16
_FORGET_AT_ONCE = 500  # record numbers in one detail


@dataclass
class Transaction:
    """An effect and its records, all or nothing. `connection` is for the effect's own statements."""

    connection: Connection
    _log: AuditLog
    head: Head

    def record(
        self,
        kind: Kind,
        action: str,
        actor: str,
        detail: Mapping[str, Any],
        *,
        run_id: str | None = None,
        step: str | None = None,
    ) -> bool:
        """Appends a record. False when there is one of this run and step: then nothing is done again."""
        if run_id is not None and self._is_known(run_id, step):
            return False
        self.head = self._log.append(self.connection, self.head, kind, action, actor, detail, run_id, step)
        return True

    def record_missing(
        self, kind: Kind, action: str, actor: str, details: Sequence[Mapping[str, Any]], *, run_id: str, step: str
    ) -> None:
        """Appends those of `details` that no record of this run and action tells yet, in whatever order they come: a run
        that goes on tells what it told before and more."""
        mine = (record_table.c.run_id == run_id) & (record_table.c.action == action)
        told = self.connection.execute(select(record_table.c.detail).where(mine)).scalars().all()
        held = Counter(told)
        number = len(told)
        for detail in details:
            words = self._log.words_of(detail)
            if held[words]:
                held[words] -= 1
            else:
                number += 1
                self.record(kind, action, actor, detail, run_id=run_id, step=f"{step}-{number}")

    def _is_known(self, run_id: str, step: str | None) -> bool:
        found = select(record_table.c.seq).where(record_table.c.run_id == run_id, record_table.c.step == step)
        return self.connection.execute(found).first() is not None


class AuditLog:
    """The chain of one database. Safe to use from several threads and processes: one appends at a time."""

    def __init__(
        self,
        database: Database,
        keys: Callable[[], Keyring],
        runtime: Path,
        clock: Clock,
        redactor: Redactor | None = None,
    ) -> None:
        """`redactor` takes secrets out of what is recorded; `keys` is asked at each use, for they may be rotated."""
        self.database = database
        self._keys = keys
        self._runtime = runtime
        self._file = runtime / HEAD_FILE
        self._clock = clock
        self._redactor = redactor or Redactor()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Effect and records are committed together when the block ends. Raises StorageFailed, KeysRefused."""
        with self.database.begin() as connection:
            if not self.database.is_sqlite:  # SQLite's transaction holds the write lock already
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            head = self._head(connection) or self._begin(connection)
            self._require_own(connection, head)
            known = self._read_file()
            borne_out = known is None or self._bears_out(connection, known)
            transaction = Transaction(connection, self, head)
            yield transaction
        if known is not None and not borne_out:
            self._dispute(known)
        if known != transaction.head:
            self._note(known, transaction.head)

    def append(
        self,
        connection: Connection,
        head: Head,
        kind: Kind,
        action: str,
        actor: str,
        detail: Mapping[str, Any],
        run_id: str | None,
        step: str | None,
    ) -> Head:
        key = self._keys().primary
        words = self.words_of(detail)
        salt = secrets.token_hex(_SALT_BYTES)
        record = Record(
            seq=head.seq + 1,
            at=timestamp(self._clock.now()),
            kind=kind,
            action=action,
            actor=self._redactor.redact(actor),
            run_id=run_id or "",
            step=step or "",
            detail=words,
            salt=salt,
            detail_sha256=detail_hash(words, salt),
            kid=key.kid,
            mac="",
        )
        record = msgspec.structs.replace(record, mac=mac_of(record, head.chain, head.mac, key.derive("audit")))
        row = msgspec.structs.asdict(record) | {"run_id": run_id, "step": step}
        connection.execute(record_table.insert().values(**row))
        connection.execute(chain_table.update().values(seq=record.seq, mac=record.mac))
        return Head(head.chain, record.seq, record.mac)

    def words_of(self, detail: Mapping[str, Any]) -> str:
        """As a record holds it. Raises ValueError when it is larger than a record takes."""
        return detail_text(self._redactor.in_texts(detail))

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def chain(self) -> str:
        """The id of the chain, empty before its first record. Raises StorageFailed."""
        with self.database.reading() as connection:
            head = self._head(connection)
        return head.chain if head is not None else ""

    def tail(self, count: int) -> list[Record]:
        """The last records, oldest first. Raises StorageFailed."""
        with self.database.reading() as connection:
            rows = connection.execute(select(record_table).order_by(record_table.c.seq.desc()).limit(count)).all()
        return [_record(row) for row in reversed(rows)]

    def of(self, actions: Collection[str]) -> Iterator[Record]:
        """The records of these actions, oldest first. Raises StorageFailed."""
        with self.database.reading() as connection:
            yield from _all(connection, record_table.c.action.in_(actions))

    def latest(self, actions: Collection[str], **named: str) -> Record | None:
        """The last record of these actions whose detail begins with what is `named`, or that may have done so: its words were
        forgotten. Raises StorageFailed."""
        beginning = detail_text(named).removesuffix("}")
        columns = record_table.c
        begins = func.substr(columns.detail, 1, len(beginning)) == beginning  # LIKE folds case in SQLite
        found = select(record_table).where(columns.action.in_(actions), begins | columns.detail.is_(None))
        with self.database.reading() as connection:
            row = connection.execute(found.order_by(columns.seq.desc()).limit(1)).first()
        return None if row is None else _record(row)

    def export(self) -> Iterator[bytes]:
        """The chain as JSON lines: its head, then every record. Raises StorageFailed."""
        with self.database.reading() as connection:
            head = self._head(connection)
            if head is not None:
                yield export_line(head)
                yield from map(export_line, _all(connection))

    def renew(self, to_run: str) -> None:
        """Records that the steward accepts what older ends say of a chain that is gone: those in receipts of runs up to
        `to_run`, and the disputed heads, which are put away. Raises StorageFailed, KeysRefused."""
        with self.transaction() as transaction:
            detail = {"receipts_to": to_run, "disputed": [str(head) for _, head in self._disputed()]}
            transaction.record("approval", RENEWED, STEWARD.id, detail)
        with as_storage_failed(f"Cannot put away what is disputed in {self._runtime}"):
            for path in self._runtime.glob(f"{DISPUTED}*"):
                path.rename(path.with_name(path.name.replace(DISPUTED, SETTLED)))

    def renewed_to(self) -> str:
        """The last run whose receipt may know another chain, empty for none. Raises StorageFailed."""
        told = [json.loads(record.detail)["receipts_to"] for record in self.of((RENEWED,)) if record.detail]
        return str(max(told, default=""))

    def verify(self, noted: Iterable[tuple[str, Head]] = (), *, disputed: bool = True) -> Verdict:
        """Every record against its key, and the end against the file beside the database, against the heads that are
        `disputed`, and against `noted`, ends that stand elsewhere. Raises StorageFailed, KeysRefused."""
        anchors = list(noted)
        missing = False
        with self.database.reading() as connection:
            file = self._read_file()
            head = self._head(connection)
            if file is not None:
                anchors.append((f"the file {HEAD_FILE}", file))
            elif head is not None:
                missing = True
            anchors += self._disputed() if disputed else ()
            if head is None:
                head = Head(file.chain if file is not None else "", 0, GENESIS)
            keys = self._keys()
            derived = {key.kid: key.derive("audit") for key in keys.keys}
            verdict = verify(_all(connection), head, anchors, derived.get)
        if missing:
            verdict = _with_missing_file(verdict)
        return verdict

    # ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────

    def holding(self, is_in: Callable[[str], bool], runs: Collection[str]) -> list[int]:
        """The numbers of the records whose words hold something, or that are of those runs. Raises StorageFailed."""
        with self.database.reading() as connection:
            return [record.seq for record in _all(connection) if _concerns(record, is_in, runs)]

    def forget(self, is_in: Callable[[str], bool], by_run: str, runs: Collection[str]) -> int:
        """Takes the words out of those records, for good: they stay in the chain, which says that they were forgotten. How
        many. Raises StorageFailed, also while another process reads."""
        with self.transaction() as transaction:
            connection = transaction.connection
            found = [record.seq for record in _all(connection) if _concerns(record, is_in, runs)]
            for first in range(0, len(found), _FORGET_AT_ONCE):
                some = found[first : first + _FORGET_AT_ONCE]
                where = record_table.c.seq.in_(some)
                connection.execute(record_table.update().where(where).values(detail=None, salt=None))
                transaction.record("effect", FORGOT, STEWARD.id, {"records": some, "by_run": by_run})
        if found:
            self.database.sweep()
        return len(found)

    # ── the head ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _head(self, connection: Connection) -> Head | None:
        row = connection.execute(select(chain_table)).first()
        return None if row is None else Head(row.chain, row.seq, row.mac)

    def _begin(self, connection: Connection) -> Head:
        """The file comes first: a chain without one has lost it."""
        self._keys()
        head = Head(secrets.token_hex(16), 0, GENESIS)
        known = self._read_file()
        if known is None:
            write_head(self._file, head)
        elif known.seq == 0:  # a process died right here
            head = known
        connection.execute(chain_table.insert().values(id=1, chain=head.chain, seq=0, mac=head.mac))
        return head

    def _require_own(self, connection: Connection, head: Head) -> None:
        """A chain goes on under keys that verify it. Raises KeysRefused."""
        signed = select(record_table.c.kid).where(record_table.c.seq == head.seq)
        kid = connection.execute(signed).scalar()
        if kid is not None and self._keys().get(kid) is None:
            raise KeysRefused(
                f"the audit of this database is signed with the key {kid[:16]}, which is not among the keys here.",
                fix="use the keys that it was begun with (docs/security.md, Keys): where CREDENTIAL_ENCRYPTION_KEY was set "
                "or taken away, or another home uses the same database, those are others",
            )

    def _bears_out(self, connection: Connection, known: Head) -> bool:
        head = self._head(connection)
        if head is None or known.chain != head.chain:
            return False
        if known.seq == 0:
            return known.mac == GENESIS
        found = select(record_table.c.mac).where(record_table.c.seq == known.seq)
        return bool(connection.execute(found).scalar() == known.mac)

    def _read_file(self) -> Head | None:
        return read_head(self._file)

    def _note(self, known: Head | None, head: Head) -> None:
        try:
            advance_head(self._file, known, head)
        except StorageFailed as error:
            raise StorageFailed(f"it is done and recorded, but not noted. {error.message}", fix=error.fix) from error

    def _dispute(self, known: Head) -> None:
        log.error("the audit was changed: its head file knows record %d, which the database does not hold", known.seq)
        write_head(self._runtime / f"{DISPUTED}{known.seq}-{known.mac[:8]}", known)

    def _disputed(self) -> Iterator[tuple[str, Head]]:
        for path in sorted(self._runtime.glob(f"{DISPUTED}*")):
            head = read_head(path)
            if head is not None:
                yield f"the file {path.name}", head


def _all(connection: Connection, *where: ColumnElement[bool]) -> Iterator[Record]:
    """In order, those included whose numbers no record has."""
    page = select(record_table).where(*where).order_by(record_table.c.seq).limit(_PAGE)
    rows = connection.execute(page).all()
    while rows:
        yield from map(_record, rows)
        rows = connection.execute(page.where(record_table.c.seq > rows[-1].seq)).all()


def _record(row: Any) -> Record:
    return Record(
        row.seq, row.at, row.kind, row.action, row.actor, row.run_id or "", row.step or "",
        row.detail, row.salt, row.detail_sha256, row.kid, row.mac,
    )  # fmt: skip


def _concerns(record: Record, is_in: Callable[[str], bool], runs: Collection[str]) -> bool:
    if record.detail is None or record.action == FORGOT:
        return False
    return record.run_id in runs or is_in(record.detail)


def _with_missing_file(verdict: Verdict) -> Verdict:
    message = f"the file {HEAD_FILE} is missing: whether the end of the chain was cut off cannot be told from it."
    return replace(verdict, findings=(*verdict.findings, Finding("head_missing", 0, message)))
