"""Runs that come from elsewhere, record by record: an exported journal, a home of an older version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from council.commands.models import LANE_PATTERN
from council.commands.types import CommandTypes
from council.engine import statements as sql
from council.engine.journal import admit
from council.engine.ledger import end_of
from council.engine.receipts import Receipt
from council.engine.records import Commit, Record, RunHeader, StepResult
from council.engine.run_records import row_of
from council.errors import PathRefused, UsageError
from council.storage.paths import check_relative
from council.storage.store import Store, Tx
from council.typed_json import decode_json, json_decoder

_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-z]{8}")
_SECRET = re.compile(r"[0-9a-f]{64}")
_decoder = json_decoder(Record)


def insert_run(tx: Tx, records: Sequence[Record], receipt: Receipt | None, ended_ns: int, *, is_open: bool) -> None:
    """`records`: record 0 and what was recorded after it. `receipt` None: the run has not ended."""
    header = records[0]
    assert isinstance(header, RunHeader)
    run = admit(tx, header)
    for seq, record in enumerate(records[1:], start=1):
        tx.execute(sql.APPEND, (run, seq, *row_of(record)))
    if receipt is not None:
        text_bytes = sum(len(record.out) for record in records if isinstance(record, StepResult))
        tx.execute(sql.END, end_of(receipt, text_bytes=text_bytes, ended_ns=ended_ns))
    if not is_open:
        tx.execute(sql.TAKEN, (header.run_id,))


def import_journal(store: Store, types: CommandTypes, data: bytes, ended_ns: int) -> RunHeader:
    """An ended run from the lines of `council journal --jsonl`, to be looked at and replayed, and never to go on. Raises
    UsageError for what is no such file, for a run that has not ended, and for one that is here already; StorageFailed."""
    records: list[Record] = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            records.append(_decoder.decode(line))
        except msgspec.MsgspecError as error:
            fix = "give a file that `council journal --jsonl` printed"
            raise UsageError(f"line {number} is not a record: {error}.", fix=fix) from None
    header, last = (records[0], records[-1]) if records else (None, None)
    if (
        not isinstance(header, RunHeader)
        or not isinstance(last, Commit)
        or any(isinstance(record, RunHeader) for record in records[1:])
        or not (_RUN_ID.fullmatch(header.run_id) and header.type in types)
    ):
        fix = "give a file that `council journal RUN --jsonl` printed"
        raise UsageError("this is not the journal of an ended run.", fix=fix)
    try:
        receipt = decode_json(last.receipt, Receipt)
    except msgspec.MsgspecError as error:
        raise UsageError(f"its receipt cannot be read: {error}.", fix="print the journal again") from None
    if receipt.run_id != header.run_id:
        raise UsageError(f"its receipt belongs to run {receipt.run_id[:64]}.", fix="print the journal again")
    try:
        _require_plausible(header, last, receipt, ended_ns)
    except (ValueError, PathRefused) as error:
        fix = "print the journal again where the run is; this file was changed"
        raise UsageError(f"it is not the journal of a run: {error}.", fix=fix) from None
    # What its receipt knows of the audit is another home's chain.
    receipt = msgspec.structs.replace(receipt, audit_head="", imported=True)

    def write(tx: Tx) -> None:
        if tx.execute(sql.ENDED_NS, (header.run_id,)).fetchone() is not None:
            raise UsageError(f"the run {header.run_id} is already here.", fix=f"`council show {header.run_id}`")
        insert_run(tx, records, receipt, ended_ns, is_open=False)

    store.write_now(write)
    return header


def _require_plausible(header: RunHeader, committed: Commit, receipt: Receipt, now_ns: int) -> None:
    """Raises ValueError, PathRefused: whatever reads a run counts on these."""
    if not _SECRET.fullmatch(header.secret):
        raise ValueError("its secret is not 32 bytes in hex")
    if not 0 <= header.order <= now_ns:
        raise ValueError(f"its order is {header.order}")
    if not re.fullmatch(LANE_PATTERN, header.lane) or receipt.lane != header.lane:
        raise ValueError(f"its lane is {header.lane[:64]!r}")
    for moment in (header.created, receipt.created, receipt.finished):
        if datetime.fromisoformat(moment).tzinfo is None:
            raise ValueError(f"{moment!r} is not a time in UTC")
    files = [path for file in committed.files for path in (file.staged, file.final, file.otherwise)]
    for path in (header.output_path, receipt.artifact.path if receipt.artifact else "", *files):
        if path:
            check_relative(path)
