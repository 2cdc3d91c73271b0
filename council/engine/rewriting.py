"""Changing what ended journals say: for `forget` alone. A rewritten journal verifies, replays, and no longer knows the
hashes of what was asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from council.engine.journal import encode_line, read_blob, read_records, store_blob
from council.engine.records import Committed, Record, RunHeader, StepDone, Waiting
from council.storage.files import write_atomic

Change = Callable[[str], str]
# Values under these keys are no text of anybody: hashes, ids, places, kinds.
_KEPT = frozenset({
    "$schema", "type", "session", "id", "run_id", "sha256", "command_sha256", "command_hash", "secret", "role", "model",
    "status", "code", "kind", "lane", "order", "priority", "output_artifact_path", "created", "finished", "at",
})  # fmt: skip


def changed(value: Any, change: Change) -> Any:
    """JSON values with `change` applied to every text in them."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (list, tuple)):
        return [changed(item, change) for item in value]
    if isinstance(value, dict):
        return {key: item if key in _KEPT else changed(item, change) for key, item in value.items()}
    return value


def rewrite_journal(path: Path, change: Change, *, artifact: tuple[str, str] | None = None) -> None:
    """Applies `change` to every text of an ended run's journal, its blobs included, whole or not at all. `artifact`: an old
    and a new SHA-256 of the page that it committed. Raises JournalDamaged, StorageFailed or OSError."""
    records, _, _ = read_records(path, path.read_bytes())
    before = {record.blob for record in records if isinstance(record, StepDone) and record.blob}
    after = [_changed_record(path, record, change, artifact) for record in records]
    write_atomic(path, b"".join(encode_line(record) for record in after))
    for blob in before - {record.blob for record in after if isinstance(record, StepDone)}:
        (path.parent / "blobs" / blob).unlink(missing_ok=True)


def _changed_record(path: Path, record: Record, change: Change, artifact: tuple[str, str] | None) -> Record:
    replace = msgspec.structs.replace
    if isinstance(record, RunHeader):
        return replace(record, command=changed(record.command, change), title=change(record.title))
    if isinstance(record, Waiting):
        return replace(record, error=change(record.error))
    if isinstance(record, StepDone):
        encoded = read_blob(path, record.blob) if record.blob else bytes(record.out)
        new = _changed_json(encoded, change)
        if record.blob:
            return replace(record, request="", blob=store_blob(path, new))
        return replace(record, request="", out=msgspec.Raw(new))
    if isinstance(record, Committed):
        files = record.files
        receipt = _changed_json(bytes(record.receipt), change)
        if artifact is not None and files:
            files = tuple(replace(file, sha256=artifact[1]) if file.sha256 == artifact[0] else file for file in files)
            receipt = receipt.replace(artifact[0].encode(), artifact[1].encode())
        return replace(record, files=files, receipt=msgspec.Raw(receipt), displaced=change(record.displaced))
    return record


def _changed_json(encoded: bytes, change: Change) -> bytes:
    return msgspec.json.encode(changed(msgspec.json.decode(encoded), change))
