"""Changing what ended journals and receipts say: for `forget` alone.

A rewritten journal verifies and replays. It no longer knows the hashes of what was asked, nor any hash of a text whose other
words are still there. From such a hash a short missing text could be guessed. Identifiers, kinds and times are no text. Those
of the engine and of turns stand under known keys, those of a command under the `names` of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from council.engine import statements as sql
from council.engine.receipts import ArtifactRef, Receipt
from council.engine.records import (
    FORGOTTEN,
    Commit,
    CommitFile,
    FileIdentity,
    Record,
    Retry,
    RunHeader,
    StepResult,
    Waiting,
)
from council.engine.run_records import row_of
from council.ids import sha256_hex
from council.storage.store import Tx
from council.typed_json import convert, decode_json

Change = Callable[[str], str]
# Under these keys of what runs record stands no text of anybody, but one word: a hash, an identifier, a kind, a time.
_KEPT = frozenset({
    "$schema", "type", "session", "lane", "run_id", "order", "priority", "created", "finished", "at", "since", "time",
    "sha256", "sha256s", "command_sha256", "command_hash", "secret", "role", "asked_by", "model", "status", "finish",
    "code", "error_code", "kind", "event", "level", "logger", "action", "before", "price", "t",
    "outcome", "posture", "mode",
})  # fmt: skip
_PATHS = frozenset({"output_artifact_path", "output_path", "output"})


def changed(value: Any, change: Change) -> Any:
    """JSON values with `change` applied to every text in them; a hash of a text that stands beside it follows it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (list, tuple)):
        return [changed(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    after: dict[str, Any] = {}
    for key, item in value.items():
        if key in _KEPT and not (isinstance(item, str) and " " in item):
            after[key] = item
        elif key in ("asked", "drop") and isinstance(item, str):  # hashes of a question, and of an answer's file
            after[key] = FORGOTTEN
        elif key == "verdicts" and isinstance(item, dict):  # by the hashes of what was said
            after[key] = {f"{FORGOTTEN}-{at}": changed(verdict, change) for at, verdict in enumerate(item.values())}
        elif key in _PATHS and isinstance(item, str):
            after[key] = moved(item, change)
        else:
            after[key] = changed(item, change)
    text = value.get("text")  # the hash of a file is that file's own business
    if isinstance(text, str) and not value.get("path") and value.get("sha256") == sha256_hex(text):
        after["sha256"] = sha256_hex(after["text"])
    return after


def changed_words(value: Any, change: Change) -> Any:
    """JSON values with `change` applied to every text in them, whatever its key."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (list, tuple)):
        return [changed_words(item, change) for item in value]
    return {key: changed_words(item, change) for key, item in value.items()} if isinstance(value, dict) else value


def changed_command(command: dict[str, Any], names: frozenset[str], change: Change) -> dict[str, Any]:
    """A recorded command; only under `names` stand identifiers and paths."""
    return {
        key: changed({key: item}, change)[key] if key in names else changed_words(item, change)
        for key, item in command.items()
    }


def moved(path: str, change: Change) -> str:
    """The new path of a file of ours that has the text in its name: each segment is changed for itself."""
    return "/".join(change(segment) for segment in path.split("/"))


def changed_receipt(receipt: Receipt, change: Change, *, command_held: bool) -> Receipt:
    """`command_held`: the command's own words were changed, so its hashes go. An id that is changed is none any more; the
    id's binding still answers for it."""
    told = changed(msgspec.to_builtins(receipt), change) | {"details": changed_words(receipt.details, change)}
    after: Receipt = convert(told, Receipt)
    if receipt.artifact is not None:
        artifact = ArtifactRef(moved(receipt.artifact.path, change), receipt.artifact.sha256)
        after = msgspec.structs.replace(after, artifact=artifact)
    if after.id != receipt.id:
        after = msgspec.structs.replace(after, id=None)
    if not command_held:
        return after
    file = msgspec.structs.replace(after.command_file, sha256=FORGOTTEN)
    return msgspec.structs.replace(after, command_file=file, command_sha256=FORGOTTEN, command_hash=FORGOTTEN)


def command_held(header: RunHeader, names: frozenset[str], change: Change) -> bool:
    """`names` are those of its type. True when the words of the run's command, or the name of its file, are changed."""
    after = changed_command(header.command, names, change)
    return after != header.command or change(header.file.name) != header.file.name


def changed_records(records: Sequence[Record], names: frozenset[str], change: Change) -> list[Record]:
    """Record 0 and all others of an ended run, changed; `names` are those of its type of command. What the run committed has
    no hash until `with_artifact`."""
    header = records[0]
    assert isinstance(header, RunHeader)
    held = command_held(header, names, change)
    return [_changed_record(record, names, change, held) for record in records]


def _changed_record(record: Record, names: frozenset[str], change: Change, held: bool) -> Record:
    replace = msgspec.structs.replace
    match record:
        case RunHeader(file=file):
            command = changed_command(record.command, names, change)
            if command.get("id") != record.command.get("id"):
                command["id"] = None
            return replace(
                record,
                command=command,
                command_hash=FORGOTTEN if held else record.command_hash,
                file=FileIdentity(change(file.name), file.inode, file.mtime_ns, FORGOTTEN if held else file.sha256),
                output_path=moved(record.output_path, change),
                title=change(record.title),
            )
        case StepResult():
            out = msgspec.json.encode(changed(decode_json(record.out), change))
            return replace(record, request="", out=msgspec.Raw(out))
        case Waiting() | Retry():
            return replace(record, error=change(record.error))
        case Commit():
            receipt = changed_receipt(decode_json(record.receipt, Receipt), change, command_held=held)
            if receipt.artifact is not None:
                receipt = replace(receipt, artifact=ArtifactRef(receipt.artifact.path, FORGOTTEN))
            files = tuple(
                CommitFile(
                    staged=moved(file.staged, change),
                    final=moved(file.final, change),
                    sha256=FORGOTTEN,
                    replaces=None if file.replaces is None else (),
                    otherwise=moved(file.otherwise, change),
                )
                for file in record.files
            )
            encoded = msgspec.Raw(msgspec.json.encode(receipt))
            return replace(record, files=files, receipt=encoded, displaced=change(record.displaced))
        case _:
            return record


def with_artifact(records: Sequence[Record], sha256: str) -> list[Record]:
    """The records, the last commit naming a page with this hash."""
    last = max(at for at, record in enumerate(records) if isinstance(record, Commit))
    committed = records[last]
    assert isinstance(committed, Commit)
    receipt = decode_json(committed.receipt, Receipt)
    assert receipt.artifact is not None
    receipt = msgspec.structs.replace(receipt, artifact=ArtifactRef(receipt.artifact.path, sha256))
    first = msgspec.structs.replace(committed.files[0], sha256=sha256)
    after = msgspec.structs.replace(
        committed, files=(first, *committed.files[1:]), receipt=msgspec.Raw(msgspec.json.encode(receipt))
    )
    return [*records[:last], after, *records[last + 1 :]]


def write_records(tx: Tx, run: int, seqs: Sequence[int], records: Sequence[Record]) -> None:
    """Puts all records but the first, record 0, in the place of those with these numbers."""
    for seq, record in zip(seqs, records[1:], strict=True):
        row = row_of(record)
        tx.execute(sql.REWRITE_STEP, (row.request, row.out, run, seq))
