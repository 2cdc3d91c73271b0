"""The audit in the database: records are written in the transaction of the effect that they tell of.

The end of the chain is kept three times: in the database, in `.council/audit.head` (written after each transaction), and in
every artifact and receipt. A head file that the database no longer bears out is evidence. It is set aside, never overwritten,
and `verify` tells of it until a person removes it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from council.audit import statements as sql
from council.audit.chain import (
    ACCEPTED,
    FORGOT,
    GENESIS,
    RENEWED,
    ChainFinding,
    ChainHead,
    ChainVerdict,
    Kind,
    NamedFile,
    Record,
    detail_hash,
    detail_text,
    export_line,
    mac_of,
    note_files,
    verify,
)
from council.audit.head_file import DISPUTED, HEAD_FILE, SETTLED, advance_head, read_head, write_head
from council.errors import KeysRefused, StorageFailed
from council.ids import STEWARD, Clock, timestamp
from council.keys.keyring import Keyring
from council.redaction import Redactor
from council.storage.files import as_storage_failed
from council.storage.reader import Looking
from council.storage.store import Store, Tx

log = logging.getLogger(__name__)

_PAGE = 5_000  # records in memory at a time
_LOCK = 0x6175646974  # "audit": PostgreSQL's advisory lock of whoever appends
_SALT_BYTES = 16
_BEFORE_ALL = -(1 << 62)
_FORGET_AT_ONCE = 500  # record numbers in one detail


@dataclass
class Transaction:
    """An effect and its records, all or nothing. `tx` is for the effect's own statements."""

    tx: Tx
    _log: AuditLog
    _keys: Keyring
    head: ChainHead
    noted: ChainHead | None  # what the file beside the database knows
    borne_out: bool
    is_set_back: bool = False  # by a restore, which says so itself

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
        if run_id is not None and self.tx.execute(sql.KNOWN, (run_id, step)).fetchone() is not None:
            return False
        log, key, salt = self._log, self._keys.primary, secrets.token_hex(_SALT_BYTES)
        words = log.words_of(detail)
        record = Record(
            seq=self.head.seq + 1,
            at=timestamp(log.clock.now()),
            kind=kind,
            action=action,
            actor=log.redactor.redact(actor),
            run_id=run_id or "",
            step=step or "",
            detail=words,
            salt=salt,
            detail_sha256=detail_hash(words, salt),
            kid=key.kid,
            mac="",
        )
        record = msgspec.structs.replace(
            record, mac=mac_of(record, self.head.chain, self.head.mac, key.derive("audit"))
        )
        values = msgspec.structs.asdict(record) | {"run_id": run_id, "step": step}
        self.tx.execute(sql.APPEND, tuple(values.values()))
        self.tx.execute(sql.ADVANCE, (record.seq, record.mac))
        self.head = ChainHead(self.head.chain, record.seq, record.mac)
        return True

    def record_missing(
        self, kind: Kind, action: str, actor: str, details: Sequence[Mapping[str, Any]], *, run_id: str, step: str
    ) -> None:
        """Appends those of `details` that no record of this run and action tells yet, in whatever order they come. A run that
        goes on tells what it told before and more."""
        told = [row[0] for row in self.tx.execute(sql.TOLD, (run_id, action)).fetchall()]
        held = Counter(told)
        number = len(told)
        for detail in details:
            words = self._log.words_of(detail)
            if held[words]:
                held[words] -= 1
            else:
                number += 1
                self.record(kind, action, actor, detail, run_id=run_id, step=f"{step}-{number}")


@dataclass(eq=False)
class AuditLog:
    """The chain of one database. Safe to use from several threads and processes: one appends at a time. It records only where
    `store` is a `Store`. `redactor` takes secrets out of what is recorded. `_keys` is asked for each transaction, for they
    may be rotated."""

    store: Looking
    _keys: Callable[[], Keyring]
    _runtime: Path
    clock: Clock
    redactor: Redactor = field(default_factory=Redactor)

    @property
    def _file(self) -> Path:
        return self._runtime / HEAD_FILE

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Effect and records are committed together when the block ends. Raises StorageFailed, KeysRefused."""
        with self._open_store().transaction() as tx:
            transaction = self.joined(tx)
            yield transaction
        try:
            self.settle(transaction)
        except StorageFailed as error:
            raise StorageFailed(
                f"the change is made and recorded, but the head file is not updated. {error.message}", fix=error.fix
            ) from error

    def sweep(self) -> None:
        """See `Store.sweep`. Raises StorageFailed."""
        self._open_store().sweep()

    def _open_store(self) -> Store:
        assert isinstance(self.store, Store), "opened to be read"
        return self.store

    def joined(self, tx: Tx) -> Transaction:
        """Appends within somebody's transaction; `settle` comes after its commit. Raises KeysRefused, StorageFailed."""
        tx.alone(_LOCK)
        keys, head = self._keys(), _head(tx)
        known = read_head(self._file)
        if head is None:  # the file comes first: a chain without one has lost it
            head = ChainHead(secrets.token_hex(16), 0, GENESIS)
            if known is None:
                known = head
                write_head(self._file, head)
            elif known.seq == 0:  # a process died right here
                head = known
            tx.execute(sql.BEGIN_CHAIN, (head.chain, head.mac))
        require_signer(tx, lambda: keys)
        return Transaction(tx, self, keys, head, known, known is None or _bears_out(tx, head, known))

    def settle(self, done: Transaction) -> None:
        """Notes the end of the chain beside the database, which has committed it. Raises StorageFailed."""
        known = done.noted
        if known is not None and not done.borne_out:
            if not done.is_set_back:
                log.error(
                    "the audit was changed: its head file names record %d, which is not in the database", known.seq
                )
            write_head(self._runtime / f"{DISPUTED}{known.seq}-{known.mac[:8]}", known)
        if done.noted != done.head:
            advance_head(self._file, done.noted, done.head)

    def words_of(self, detail: Mapping[str, Any]) -> str:
        """The words as a record holds them. Raises ValueError when it is larger than a record takes."""
        return detail_text(self.redactor.in_texts(detail))

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def head(self) -> ChainHead:
        """The end of the chain now. Raises StorageFailed."""
        return self.store.read(_head) or ChainHead("", 0, GENESIS)

    def tail(self, count: int, *, skip: int = 0, kind: str = "", action: str = "", actor: str = "") -> list[Record]:
        """The last records but the last `skip` ones, oldest first; empty words mean any. Raises StorageFailed."""
        wanted = (kind, kind, action, action, actor, actor, count, skip)
        rows = self.store.read(lambda tx: tx.execute(sql.TAIL, wanted).fetchall())
        return [_record(row) for row in reversed(rows)]

    def count(self, *, kind: str = "", action: str = "", actor: str = "") -> int:
        """Counts the records; empty words mean any. Raises StorageFailed."""
        wanted = (kind, kind, action, action, actor, actor)
        return int(self.store.read(lambda tx: tx.execute(sql.COUNT, wanted).fetchone())[0])

    def of(self, actions: Collection[str], after: int = _BEFORE_ALL) -> Iterator[Record]:
        """The records of these actions behind the number `after`, oldest first. Raises StorageFailed."""
        with self.store.reading() as tx:
            yield from (record for record in _all(tx, after) if record.action in actions)

    def latest(self, actions: Collection[str], **named: str) -> Record | None:
        """The last record of these actions whose detail begins so, or is forgotten. Raises StorageFailed."""
        beginning = detail_text(named).removesuffix("}")
        found: list[Record] = []
        with self.store.reading() as tx:
            for action in actions:
                row = tx.execute(sql.LATEST, (action, len(beginning), beginning)).fetchone()
                found += [_record(row)] if row is not None else []
        return max(found, key=lambda record: record.seq, default=None)

    def export(self) -> Iterator[bytes]:
        """The chain as JSON lines: its head, then every record. Raises StorageFailed."""
        with self.store.reading() as tx:
            head = _head(tx)
            if head is not None:
                yield export_line(head)
                yield from map(export_line, _all(tx))

    def files(self) -> dict[str, NamedFile]:
        """The files that the records name, by their path, each as the last of them tells. Raises StorageFailed."""
        files: dict[str, NamedFile] = {}
        with self.store.reading() as tx:
            for record in _all(tx):
                note_files(files, record)
        return files

    def accept(self, files: Mapping[str, str]) -> None:
        """Records that the steward knows these files (path and SHA-256, empty: gone). Raises StorageFailed, KeysRefused."""
        with self.transaction() as transaction:
            detail = {"files": [{"path": path, "sha256": sha256} for path, sha256 in files.items()]}
            transaction.record("approval", ACCEPTED, STEWARD.id, detail)

    def renew(self, to_run: str) -> None:
        """Records that the steward accepts what older ends say of a chain that is gone. These are those in receipts of runs up
        to `to_run`, and the disputed heads, which are put away. Raises StorageFailed, KeysRefused."""
        with self.transaction() as transaction:
            detail = {"receipts_to": to_run, "disputed": [str(head) for _, head in self._disputed()]}
            transaction.record("approval", RENEWED, STEWARD.id, detail)
        with as_storage_failed(f"Cannot set aside the disputed head file in {self._runtime}"):
            for path in self._runtime.glob(f"{DISPUTED}*"):
                path.rename(path.with_name(path.name.replace(DISPUTED, SETTLED)))

    def renewed_to(self) -> str:
        """The last run whose receipt may know another chain, empty for none. Raises StorageFailed."""
        told = [json.loads(record.detail)["receipts_to"] for record in self.of((RENEWED,)) if record.detail]
        return str(max(told, default=""))

    def verify(self, noted: Iterable[tuple[str, ChainHead]] = (), *, disputed: bool = True) -> ChainVerdict:
        """Checks every record against its key. The end is compared with the file beside the database, the heads that are
        `disputed`, and `noted`, ends that stand elsewhere. Raises StorageFailed, KeysRefused."""
        anchors = list(noted)
        missing = False
        with self.store.reading() as tx:
            file = read_head(self._file)
            head = _head(tx)
            if file is not None:
                anchors.append((f"the file {HEAD_FILE}", file))
            elif head is not None:
                missing = True
            anchors += self._disputed() if disputed else ()
            if head is None:
                head = ChainHead(file.chain if file is not None else "", 0, GENESIS)
            keys = self._keys()
            derived = {key.kid: key.derive("audit") for key in keys.keys}
            verdict = verify(_all(tx), head, anchors, derived.get)
        if missing:
            told = "is missing, so it cannot show if the end of the chain was cut off."
            finding = ChainFinding("head_missing", 0, f"the file {HEAD_FILE} {told}")
            verdict = replace(verdict, findings=(*verdict.findings, finding))
        return verdict

    # ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────

    def holding(self, is_in: Callable[[str], bool], runs: Collection[str]) -> list[int]:
        """The numbers of the records whose words hold something, or that are of those runs. Raises StorageFailed."""
        with self.store.reading() as tx:
            told = (record for record in _all(tx) if record.detail is not None and record.action != FORGOT)
            return [record.seq for record in told if record.run_id in runs or is_in(record.detail or "")]

    def forget(self, is_in: Callable[[str], bool], by_run: str, runs: Collection[str]) -> int:
        """Takes the words out of those records, for good: they stay in the chain, which says that they were forgotten. How
        many. They are looked for beside who writes. Raises StorageFailed."""
        found = self.holding(is_in, runs)
        for first in range(0, len(found), _FORGET_AT_ONCE):
            some = found[first : first + _FORGET_AT_ONCE]
            with self.transaction() as transaction:
                for seq in some:
                    transaction.tx.execute(sql.BLANK, (seq,))
                transaction.record("effect", FORGOT, STEWARD.id, {"records": some, "by_run": by_run})
        return len(found)

    # ── the head ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _disputed(self) -> Iterator[tuple[str, ChainHead]]:
        for path in sorted(self._runtime.glob(f"{DISPUTED}*")):
            head = read_head(path)
            if head is not None:
                yield f"the file {path.name}", head


def require_signer(tx: Tx, keys: Callable[[], Keyring]) -> None:
    """A chain goes on under keys that verify it: raises KeysRefused where its last record is signed with another."""
    row = tx.execute(sql.LAST_SIGNED_WITH).fetchone()
    if row is not None and keys().get(row[0]) is None:
        raise KeysRefused(
            f"the audit of this database is signed with the key {row[0][:16]}, which this home does not have.",
            fix="use its original keys (docs/keys.md). They differ if CREDENTIAL_ENCRYPTION_KEY was set "
            "or removed, or if another home uses the same database",
        )


def _head(tx: Tx) -> ChainHead | None:
    row = tx.execute(sql.HEAD).fetchone()
    return None if row is None else ChainHead(*row)


def _bears_out(tx: Tx, head: ChainHead, known: ChainHead) -> bool:
    if known.chain != head.chain:
        return False
    if known.seq == 0:
        return known.mac == GENESIS
    row = tx.execute(sql.MAC, (known.seq,)).fetchone()
    return row is not None and bool(row[0] == known.mac)


def _all(tx: Tx, last: int = _BEFORE_ALL) -> Iterator[Record]:
    """Reads all in order behind the number `last`; without one, those included whose numbers no record has."""
    while rows := tx.execute(sql.PAGE, (last, _PAGE)).fetchall():
        yield from map(_record, rows)
        last = rows[-1][0]


def _record(row: Sequence[Any]) -> Record:
    seq, at, kind, action, actor, run_id, step, *rest = row
    return Record(seq, at, kind, action, actor, run_id or "", step or "", *rest)
