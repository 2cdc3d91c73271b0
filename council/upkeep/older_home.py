"""Homes of versions that kept runs in files: brought over into the store once, whole or not at all.

What a file held that cannot be read stays out and is named. Of a journal the records before its first damaged line come, of a
receipt nothing. An unfinished run whose journal goes no further than record 0 runs anew from its command file. Files of
persons, memory, audit, users and vault were never there and stay as they are.
"""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from council.agents.memory import COPIES
from council.budgets import statements as spent
from council.engine import statements as sql
from council.engine.ledger import end_of
from council.engine.outputs import OutputEntry, keep_page, note_written
from council.engine.receipts import IdBinding, Receipt, answer, bind
from council.engine.records import Record, RunHeader, StepResult
from council.engine.run_import import insert_run
from council.settings import Home
from council.storage.files import as_storage_failed
from council.storage.marks import SET_MARK, mark, set_mark
from council.storage.store import Store, Tx
from council.typed_json import decode_json, json_decoder

T = TypeVar("T")

_FOLDERS = ("receipts", "ids", "outputs", "active", "spend", "pauses", "memory", "schedules", "runs")
_FILES = ("ledger.sqlite", "schedules.json", "calibration.json")
_MARK = "brought over"  # there from the end of the import to that of the files
_PREFIX = len('{"c":"00000000","r":')
_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-z]{8}")
_decoder = json_decoder(Record)


@dataclass
class ImportSummary:
    """The amount that was brought over, and the names of what could not be read."""

    runs: int = 0
    unfinished: int = 0
    receipts: int = 0
    calls: int = 0
    unread: list[str] = field(default_factory=list)

    @contextmanager
    def naming(self, what: str) -> Iterator[None]:
        """Leaves out what cannot be read in the block, and names it."""
        try:
            yield
        except (ValueError, msgspec.MsgspecError):
            self.unread.append(what)


def bring_over(home: Home, store: Store) -> ImportSummary:
    """Only for who holds the home's lock. The files go when all they said is in the store. Raises StorageFailed."""
    imported, runtime = ImportSummary(), home.runtime

    def bring_all(tx: Tx) -> None:
        unfinished = {path.name for path in _entries(runtime / "active")}
        receipts = dict(_receipts(runtime / "receipts", imported))
        runs = {path.name for path in _entries(runtime / "runs") if _RUN_ID.fullmatch(path.name)}
        for run_id in sorted(runs | receipts.keys()):
            _bring_run(tx, runtime / "runs" / run_id, receipts.get(run_id), run_id in unfinished, imported)
        for binding in _json_files(runtime / "ids", IdBinding, imported):
            bind(tx, binding)
        for entry in _json_files(runtime / "outputs", OutputEntry, imported):
            note_written(tx, entry)
        for path in _entries(runtime / "spend"):
            imported.calls += _bring_day(tx, path, imported)
        for path in sorted((runtime / "memory").rglob("*_session.json")):
            tx.execute(sql.KEEP, (COPIES, path.relative_to(runtime / "memory").as_posix(), path.read_bytes()))
        for file, name in (("schedules.json", "schedules"), ("calibration.json", "calibration")):
            if (runtime / file).is_file():
                with imported.naming(file):
                    tx.execute(SET_MARK, (name, json.dumps(json.loads((runtime / file).read_bytes()))))
        for path in _entries(runtime / "pauses"):
            with imported.naming(f"pauses/{path.name}"):
                tx.execute(SET_MARK, (f"pause/{path.name}", path.read_text(encoding="utf-8")))
        for path in _entries(runtime / "schedules"):  # a pause held whatever its file said, and after a resume
            if path.suffix == ".paused" or not path.with_suffix(".paused").exists():
                pause: dict[str, bool | str | None] = {"holds": path.suffix == ".paused", "since": None}
                with imported.naming(f"schedules/{path.name}"):
                    pause["since"] = datetime.fromisoformat(path.read_text(encoding="utf-8")).isoformat()
                tx.execute(SET_MARK, (f"schedule/{path.stem}", json.dumps(pause)))
        tx.execute(SET_MARK, (_MARK, "1"))

    if mark(store, _MARK) is None:  # else a process died while it removed the files
        store.write_now(bring_all)
        store.rebuild()
    with as_storage_failed(f"Cannot remove what was converted from {runtime}"):
        for name in _FOLDERS:  # `runs` last: while it is there the rest may be, too
            if (runtime / name).is_dir():
                shutil.rmtree(runtime / name)
        for name in _FILES:
            for ending in ("", "-wal", "-shm", ".behind", ".damaged"):
                (runtime / f"{name}{ending}").unlink(missing_ok=True)
    set_mark(store, _MARK, None)
    return imported


def _bring_run(
    tx: Tx, folder: Path, receipt: tuple[Receipt, int] | None, is_open: bool, imported: ImportSummary
) -> None:
    records = _records(folder, imported)
    header = records[0] if records else None
    if not isinstance(header, RunHeader):
        if receipt is not None:
            told, ended_ns = receipt
            answer(tx, told, ended_ns)
            imported.receipts += 1
            if told.lane:  # a run whose journal is gone, not a control command
                pruned = "" if told.pruned is None else msgspec.json.encode(told.pruned).decode()
                tx.execute(sql.AS_RUN, (told.lane, pruned, told.run_id))
                tx.execute(sql.END, end_of(told, text_bytes=0, ended_ns=ended_ns))
        return
    if receipt is None and len(records) == 1 and not is_open:
        return
    insert_run(tx, records, *(receipt or (None, 0)), is_open=is_open or receipt is None)
    for page in sorted(folder.glob("artifact*.md")):
        keep_page(tx, header.run_id, page.name, page.read_bytes())
    imported.runs += 1
    imported.unfinished += receipt is None


def _records(folder: Path, imported: ImportSummary) -> list[Record]:
    """Up to the first line that does not verify. What a kill tore off at the end is no loss; anything else is named."""
    path = folder / "journal.jsonl"
    if not path.is_file():
        return []
    records: list[Record] = []
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip(b"\0 ")]
    for line in lines:
        record = _record(line.rstrip(b" "), folder / "blobs")
        if record is None:
            if (left := len(lines) - len(records)) > 1:
                imported.unread.append(f"runs/{folder.name}: {left} records from {len(records)} on")
            break
        if record is not _ENDED:
            records.append(record)
    return records


_ENDED: Any = object()  # a record that this version does not have: the run's receipt says as much


def _record(line: bytes, blobs: Path) -> Record | None:
    payload = line[_PREFIX:-1]
    if line != b'{"c":"%08x","r":%b}' % (zlib.crc32(payload), payload):
        return None
    try:
        value = json.loads(payload)
        if value["t"] == "end":
            return _ENDED  # type: ignore[no-any-return]
        record: Record = _decoder.decode(payload)
        if blob := value.get("blob"):
            assert isinstance(record, StepResult)
            return msgspec.structs.replace(record, out=msgspec.Raw((blobs / blob).read_bytes()))
        return record
    except (ValueError, KeyError, OSError):
        return None


def _receipts(folder: Path, imported: ImportSummary) -> Iterator[tuple[str, tuple[Receipt, int]]]:
    for path in _entries(folder):
        with imported.naming(f"receipts/{path.name}"):
            receipt = decode_json(path.read_bytes(), Receipt)
            # To the second, and within one in the order of the ids. The file's own time changes when a home is copied.
            ended_ns = int(datetime.fromisoformat(receipt.finished).timestamp()) * 1_000_000_000
            yield receipt.run_id, (receipt, ended_ns)


def _json_files(folder: Path, type: type[T], imported: ImportSummary) -> Iterator[T]:
    for path in _entries(folder):
        with imported.naming(f"{folder.name}/{path.name}"):
            yield decode_json(path.read_bytes(), type)


def _bring_day(tx: Tx, path: Path, imported: ImportSummary) -> int:
    """The spending of one day: a call counts as reserved until a line settles it or takes it back."""
    try:
        day = date.fromisoformat(path.stem).isoformat()
    except ValueError:
        return 0
    calls: dict[tuple[str, str], _SpendLine] = {}
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    for number, line in enumerate(lines, start=1):
        try:
            entry = decode_json(line, _SpendLine)
        except msgspec.MsgspecError:
            if number < len(lines):  # what a kill tore off at the end is no loss
                imported.unread.append(f"{path.parent.name}/{path.name}: line {number}")
            continue
        if entry.t == "void":
            calls.pop((entry.run_id, entry.call), None)
        else:
            calls[entry.run_id, entry.call] = entry
    for entry in calls.values():
        reserved = (entry.run_id, entry.call, 0, day, int(entry.closing), entry.tokens, entry.usd)
        tx.execute(spent.RESERVE, reserved)
        if entry.t == "end":
            tx.execute(spent.SETTLE, (entry.tokens, entry.usd, entry.seconds, entry.run_id, entry.call))
    return len(calls)


class _SpendLine(msgspec.Struct, frozen=True):
    """`t`: `begin` reserves a call, `end` settles it, and `void` takes it back."""

    t: str
    run_id: str
    call: str
    tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0
    closing: bool = False


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []
