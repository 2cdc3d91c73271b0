"""Receipts: the durable answer to a command, one JSON file per ended run, and the binding of command ids to runs."""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from council.commands.models import ResumeCommand, RetryCommand
from council.engine.journal import JOURNAL, FileJournal
from council.engine.records import FORGOTTEN, FileIdentity, RunStatus
from council.errors import CommandInvalid, Drift, IdConflict
from council.ids import sha256_hex
from council.storage.files import as_storage_failed, write_atomic

log = logging.getLogger(__name__)

MAX_RECEIPT_BYTES = 1 << 20
_SHOWN_STEPS = 40


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


class Pruned(msgspec.Struct, frozen=True):
    """When the run's folder was let go of, and which setting asked for it (keep_days, keep_runs or keep_bytes)."""

    at: str
    by: str


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a command. `cost_usd` is None when unknown, never zero for want of a price. `pruned`: the journal is
    gone, this receipt and the artifact stay. `took_ms`: from admission to the end of the work, None where an older version did
    not note it. `audit_head`: the end of the audit's chain just before the commit."""

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
    pruned: Pruned | None = None


class IdBinding(msgspec.Struct, frozen=True):
    """Which run answers for an id. Outlives the run's own files. A `command_hash` that was forgotten fits any command."""

    id: str
    command_hash: str
    run_id: str


class Receipts:
    """The receipts of a home, read and written by run id."""

    def __init__(
        self, receipts: Path, ids: Path, written: Callable[[Receipt, int], None] = lambda receipt, ended_ns: None
    ) -> None:
        """`written` is told of each new receipt and when it was written, in nanoseconds since the epoch."""
        self._receipts = receipts
        self._ids = ids
        self._written = written

    def write(self, receipt: Receipt) -> None:
        """Atomic and synced. Raises StorageFailed."""
        write_atomic(self._receipts / f"{receipt.run_id}.json", _encoded(receipt))
        self._written(receipt, self.written_ns(receipt.run_id))

    def rewrite(self, receipt: Receipt, ended_ns: int | None = None) -> None:
        """As `write`, of a run that ended before: `ended_ns` (nanoseconds since the epoch; that of the receipt that is
        there, if not given) keeps its place in the order."""
        ended_ns = self.written_ns(receipt.run_id) if ended_ns is None else ended_ns
        write_atomic(self._receipts / f"{receipt.run_id}.json", _encoded(receipt), mtime_ns=ended_ns)
        self._written(receipt, ended_ns)

    def mark_pruned(self, run_id: str, pruned: Pruned) -> None:
        """Notes in the receipt that the run's folder is gone; without a (whole) receipt nothing. Raises StorageFailed."""
        receipt = self.read(run_id)
        if receipt is not None and receipt.pruned is None:
            self.rewrite(msgspec.structs.replace(receipt, pruned=pruned), self.written_ns(run_id))

    def remove(self, run_id: str) -> None:
        """Only for a receipt that answers for no id and whose run has no folder. Raises StorageFailed."""
        with as_storage_failed(f"Cannot remove the receipt of run {run_id}"):
            (self._receipts / f"{run_id}.json").unlink(missing_ok=True)

    def read(self, run_id: str) -> Receipt | None:
        """None when the run has not ended (or is not known here)."""
        try:
            with (self._receipts / f"{run_id}.json").open("rb") as stream:
                return msgspec.json.decode(stream.read(MAX_RECEIPT_BYTES), type=Receipt)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError:
            log.error("the receipt of run %s is damaged; it counts as none", run_id)
            return None

    def withdraw(self, run_id: str, into: Path) -> None:
        """Keeps the receipt of a run that goes on after all in its folder, numbered: it no longer answers. Raises
        StorageFailed."""
        number = 1
        while (kept := into / f"receipt-{number}.json").exists():
            number += 1
        with as_storage_failed(f"Cannot keep the receipt of run {run_id}"):
            (self._receipts / f"{run_id}.json").rename(kept)

    def written_ns(self, run_id: str) -> int:
        """When the receipt was written, in nanoseconds since the epoch; 0 when there is none."""
        try:
            return (self._receipts / f"{run_id}.json").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def run_ids(self) -> list[str]:
        """All ended runs, oldest first."""
        try:
            return sorted(path.stem for path in self._receipts.iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return []

    def bind(self, binding: IdBinding) -> None:
        self._ids.mkdir(parents=True, exist_ok=True)
        write_atomic(self._id_path(binding.id), msgspec.json.encode(binding))

    def forget_command(self, id_: str, run_id: str, shown_id: str) -> None:
        """The id still answers for the run: `shown_id` is what its binding says of it, and the command's hash goes. Raises
        StorageFailed."""
        bound = self.bound(id_)
        if bound is not None and bound.run_id == run_id:
            write_atomic(self._id_path(id_), msgspec.json.encode(IdBinding(shown_id, FORGOTTEN, run_id)))

    def bound(self, id_: str) -> IdBinding | None:
        try:
            return msgspec.json.decode(self._id_path(id_).read_bytes(), type=IdBinding)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError:
            log.error("the binding of the id %r is damaged; it counts as none", id_)
            return None

    def answering(self, id_: str, command_hash: str, is_active: Callable[[str], bool]) -> Receipt | None:
        """The receipt that already answers a command of this id; None when it is to run. Raises IdConflict, and
        CommandInvalid when what says so is damaged: it may have run."""
        bound = self.bound(id_)
        if bound is None:
            _require_absent(self._id_path(id_), id_)
            return None
        receipt = self.read(bound.run_id)
        if receipt is not None and receipt.status in ("failed", "cancelled"):
            return None
        if receipt is None and not is_active(bound.run_id):
            _require_absent(self._receipts / f"{bound.run_id}.json", id_)
            return None  # bound, but the process died before there was a run
        if bound.command_hash not in (command_hash, FORGOTTEN):
            raise IdConflict(
                f"the id {id_!r} belongs to run {bound.run_id}, which was asked something else.",
                fix="choose another id, or drop the same command again to get its receipt",
                field="id",
            )
        return receipt

    def _id_path(self, id_: str) -> Path:
        return self._ids / f"{sha256_hex(id_)}.json"


def _require_absent(damaged: Path, id_: str) -> None:
    if damaged.exists():
        raise CommandInvalid(
            f"whether a command with the id {id_!r} has run cannot be told: {damaged.parent.name}/{damaged.name} is damaged.",
            fix="stop the daemon, and `council repair` makes it again; then move this file back",
            field="id",
        )


def _encoded(receipt: Receipt) -> bytes:
    return (json.dumps(msgspec.to_builtins(receipt), indent=2, ensure_ascii=False) + "\n").encode()


def require_reopenable(receipts: Receipts, folder: Path, command: ResumeCommand | RetryCommand) -> Receipt:
    """The receipt of the ended run whose folder this is, if the run can go on as `command` asks. Raises CommandInvalid
    with the reason when it cannot, JournalDamaged or StorageFailed when its journal cannot be read."""
    run_id = folder.name
    receipt = receipts.read(run_id)
    if receipt is None:
        raise not_resumable(run_id, "is not known here", "`council status` lists the last runs")
    if not (folder / JOURNAL).exists():
        fix = "drop its command again to run it anew" if receipt.lane else "`council status` lists the last runs"
        raise not_resumable(run_id, why_no_journal(receipt), fix)
    if isinstance(command, ResumeCommand):
        _require_resumable(receipt, accept_drift=command.accept_drift)
    elif command.from_:
        _require_step(FileJournal.read(folder / JOURNAL), command.from_)
    return receipt


def _require_step(journal: FileJournal, name: str) -> None:
    if journal.recorded(name):
        return
    names = [step.name for step in journal.steps()]
    near = difflib.get_close_matches(name, names, n=1)
    known = f"its steps: {', '.join(names[:_SHOWN_STEPS])}{', …' if len(names) > _SHOWN_STEPS else ''}"
    fix = f"did you mean {near[0]!r}? {known}" if near else known
    raise CommandInvalid(f"the run {journal.header.run_id!r} recorded no step {name!r}.", fix=fix, field="from")


def _require_resumable(receipt: Receipt, *, accept_drift: bool) -> None:
    run_id = receipt.run_id
    if receipt.status not in ("failed", "cancelled"):
        raise not_resumable(run_id, f"ended {receipt.status}", f"`council retry {run_id}` does its work again")
    if receipt.error is not None and receipt.error.code == Drift.code and not accept_drift:
        raise not_resumable(run_id, "was ended by drift", "say accept_drift: true (--accept-drift) to go on")


def why_no_journal(receipt: Receipt) -> str:
    """For "the run …": what became of a journal that is not there."""
    if receipt.pruned is not None:
        return f"was pruned on {receipt.pruned.at} by {receipt.pruned.by}: its journal is gone"
    if receipt.command_sha256 == FORGOTTEN:
        return "has no journal any more: it was forgotten"
    if not receipt.lane:
        return f"is no run: it is the receipt of a {receipt.type} command"
    return "has lost its journal: nothing pruned it, so it was moved or removed by hand"


def not_resumable(run_id: str, reason: str, fix: str) -> CommandInvalid:
    return CommandInvalid(f"the run {run_id!r} {reason}.", fix=fix, field="run")
