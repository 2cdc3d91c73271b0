"""Receipts: the durable answer to a command, one for each ended run, and the binding of command ids to runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from council.engine import statements as sql
from council.engine.records import DECIDED, FORGOTTEN, RESTORE, Commit, FileIdentity, RunStatus
from council.errors import IdConflict, JournalDamaged
from council.ids import canonical_json, sha256_hex
from council.storage.reader import Looking
from council.storage.store import Store, Tx
from council.typed_json import decode_json

_PAGE = 1_000
_NEWEST = 1_000  # looked through for one file: more do not end between two looks


class ArtifactRef(msgspec.Struct, frozen=True):
    """`path` is relative to the home."""

    path: str
    sha256: str


class ErrorRef(msgspec.Struct, frozen=True):
    code: str
    message: str
    fix: str = ""


class TokenCount(msgspec.Struct, frozen=True):
    """Tokens of a whole run; `unknown_calls` counts calls whose provider did not say."""

    input: int = 0
    output: int = 0
    cached: int = 0
    unknown_calls: int = 0


class PruneMark(msgspec.Struct, frozen=True):
    """The time at which a run's journal was let go of, and the setting that asked for it (keep_days, keep_runs or keep_bytes)."""

    at: str
    by: str


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a command. `cost_usd` is None when unknown, never zero for want of a price. `pruned`: the journal is
    gone, this receipt and the artifact stay. `took_ms`: from admission to the end of the work, None where an older version did
    not note it. `audit_head`: the end of the audit's chain with the records of the commit. `imported`: the run was made
    in another home. `details` are those of the type of command: the protocol of a deliberation, why its rounds ended."""

    run_id: str
    status: RunStatus
    type: str
    command_file: FileIdentity
    command_sha256: str
    command_hash: str
    created: str
    finished: str
    lane: str = ""
    id: str | None = None
    title: str = ""
    artifact: ArtifactRef | None = None
    error: ErrorRef | None = None
    notes: tuple[str, ...] = ()
    rounds: int = 0
    model: str = ""
    calls: int = 0
    tokens: TokenCount = TokenCount()
    cost_usd: float | None = None
    attempts: int = 1
    took_ms: int | None = None
    audit_head: str = ""
    pruned: PruneMark | None = None
    imported: bool = False
    details: dict[str, Any] = {}


class IdBinding(msgspec.Struct, frozen=True):
    """The run that answers for an id, among those of one `user` or of the steward. Outlives the run's own files. A
    `command_hash` that was forgotten fits any command."""

    id: str
    command_hash: str
    run_id: str
    user: str | None = None


class Receipts:
    """The receipts of a home, by run id. A receipt answers once the files of its run are in place."""

    def __init__(self, store: Looking) -> None:
        """`store`: a `Store`, where anything is to be changed."""
        self._store = store

    def read(self, run_id: str) -> Receipt | None:
        """The receipt of a run. None when the run has not ended (or is not known here). Raises StorageFailed."""
        row = self._store.read(lambda tx: tx.execute(sql.RECEIPT, (run_id,)).fetchone())
        return None if row is None else receipt_of(row[0], run_id)

    def decisions(self, run_id: str) -> list[ArtifactRef]:
        """The pages of a run that hold a decision, the newest first: one that was done again may have had several. Raises
        JournalDamaged, StorageFailed."""

        def look(tx: Tx) -> list[str]:
            ended, commits = tx.execute(sql.RECEIPT, (run_id,)), tx.execute(sql.COMMITS, (run_id,))
            return [*(row[0] for row in ended.fetchall()), *(_receipt_in(row[0], run_id) for row in commits.fetchall())]

        receipts = [receipt_of(encoded, run_id) for encoded in self._store.read(look)]
        return [each.artifact for each in receipts if each.artifact is not None and each.status in DECIDED]

    def newest_decision_at(self, path: str) -> list[str]:
        """The run that ended last with a decision at this path; empty for none. Raises StorageFailed."""
        return self._store.read(lambda tx: [row[0] for row in tx.execute(sql.NEWEST_DECISION_AT, (path,)).fetchall()])

    def all(self) -> Iterator[Receipt]:
        """All receipts, in the order of the run ids. Raises StorageFailed."""
        last = ""

        def look(tx: Tx) -> list[tuple[str, str]]:
            found: list[tuple[str, str]] = tx.execute(sql.RECEIPTS, (last, _PAGE)).fetchall()
            return found

        while rows := self._store.read(look):
            yield from (receipt_of(row[1], row[0]) for row in rows)
            last = rows[-1][0]

    def ended_since(self, ended_ns: int, *, file: str) -> list[Receipt]:
        """Receipts of the last few runs that ended later than that and came from a file of this name. Raises StorageFailed."""
        values = (ended_ns, _NEWEST, file)
        rows = self._store.read(lambda tx: tx.execute(sql.RECEIPTS_SINCE, values).fetchall())
        return [receipt_of(row[1], row[0]) for row in rows]

    def answer(self, receipt: Receipt, ended_ns: int, binding: IdBinding | None = None) -> None:
        """The receipt of what never was a run: a control command, an occurrence that was skipped. Raises StorageFailed."""

        def write(tx: Tx) -> None:
            if binding is not None:
                bind(tx, binding)
            answer(tx, receipt, ended_ns)

        self._open_store().write_now(write)

    def prune(self, run_id: str, pruned: PruneMark | None, also: Callable[[Tx], None] | None = None) -> bool:
        """Lets go of an ended run's journal and of what was kept of it; its receipt says so (None: says nothing, for it was
        forgotten). `also` is done in the same transaction. False when it has not ended. Raises StorageFailed."""

        def write(tx: Tx) -> bool:
            row = tx.execute(sql.RECEIPT, (run_id,)).fetchone()
            if row is None:
                return False
            receipt = msgspec.structs.replace(receipt_of(row[0], run_id), pruned=pruned)
            tx.execute(sql.DROP_STEPS, (run_id,))
            tx.execute(sql.DROP_KEPT, (run_id,))
            if also is not None:
                also(tx)
            encoded = msgspec.json.encode(receipt).decode()
            tx.execute(sql.PRUNE, (msgspec.json.encode(pruned).decode(), encoded, run_id))
            return True

        return self._open_store().write_now(write, durable=False)

    def rewrite(self, receipt: Receipt) -> None:
        """Replaces the receipt of a run that ended before. Raises StorageFailed."""
        self._open_store().write_now(lambda tx: rewrite_receipt(tx, receipt))

    def forget_command(self, run_id: str, shown_id: str) -> None:
        """The id of this run's command answers on, told as `shown_id`; the command's hash goes. Raises StorageFailed."""
        values = (shown_id, FORGOTTEN, run_id)
        self._open_store().write_now(lambda tx: tx.execute(sql.FORGET_COMMAND, values))

    def remove(self, run_id: str) -> None:
        """Removes a receipt whose run has no journal, and the id that it answers for. Raises StorageFailed."""

        def write(tx: Tx) -> None:
            removed = tx.execute(sql.REMOVE, (run_id,)).fetchall()
            if any(id_ for (id_,) in removed):
                tx.execute(sql.UNBIND, (run_id,))

        self._open_store().write_now(write, durable=False)

    def bound(self, id_: str, user: str | None = None) -> IdBinding | None:
        """The run that the id of a command of this user, else of the steward, belongs to. Raises StorageFailed."""
        row = self._store.read(lambda tx: tx.execute(sql.BOUND, (_key(id_, user),)).fetchone())
        return None if row is None else IdBinding(row[0], row[1], row[2], user)

    def answering(
        self, id_: str, user: str | None, command_hash: str, is_active: Callable[[str], bool]
    ) -> Receipt | None:
        """The receipt that already answers a command of this id; None when it is to run. Raises IdConflict."""
        bound = self.bound(id_, user)
        if bound is None:
            return None
        receipt = self.read(bound.run_id)
        if receipt is not None and receipt.status in ("failed", "cancelled"):
            return None
        if receipt is None and not is_active(bound.run_id):
            return None
        if bound.command_hash not in (command_hash, FORGOTTEN):
            message = f"the id {id_!r} belongs to run {bound.run_id}, whose command had other content."
            fix = "choose another id, or drop the same command again to get its receipt"
            raise IdConflict(message, fix=fix, field="id")
        return receipt

    def _open_store(self) -> Store:
        assert isinstance(self._store, Store), "opened to be read"
        return self._store


def receipt_of(encoded: str, run_id: str) -> Receipt:
    """Raises JournalDamaged."""
    try:
        return decode_json(encoded, Receipt)
    except msgspec.MsgspecError as error:
        raise JournalDamaged(f"the receipt of run {run_id} cannot be read ({error}).", fix=RESTORE) from error


def _receipt_in(commit: str, run_id: str) -> str:
    try:
        return bytes(decode_json(commit, Commit).receipt).decode()
    except msgspec.MsgspecError as error:
        raise JournalDamaged(f"a commit of run {run_id} cannot be read ({error}).", fix=RESTORE) from error


def rewrite_receipt(tx: Tx, receipt: Receipt) -> None:
    """Rewrites it with the columns that show it in lists."""
    artifact = receipt.artifact.path if receipt.artifact else ""
    encoded = msgspec.json.encode(receipt).decode()
    values = (receipt.title, receipt.command_file.name, receipt.id or "", artifact, encoded, receipt.run_id)
    tx.execute(sql.REWRITE_RUN, values)


def answer(tx: Tx, receipt: Receipt, ended_ns: int) -> None:
    """The receipt of what never was a run."""
    row = (
        receipt.run_id, receipt.status, receipt.type, receipt.title, receipt.created, receipt.finished,
        receipt.command_file.name, receipt.id or "", msgspec.json.encode(receipt).decode(), ended_ns,
    )  # fmt: skip
    tx.execute(sql.ANSWER, row)


def bind(tx: Tx, binding: IdBinding) -> None:
    """Binds the id to a run: from now on that run answers for it."""
    key = _key(binding.id, binding.user)
    tx.execute(sql.BIND, (key, binding.id, binding.command_hash, binding.run_id))


def _key(id_: str, user: str | None) -> str:
    """People choose ids without knowing of one another: each has their own."""
    return sha256_hex(id_ if user is None else canonical_json([user, id_]))
