"""The file beside the database that knows the end of the chain. Imports no SQLAlchemy."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from council.audit import statements as sql
from council.audit.chain import ChainHead, export_line
from council.storage.files import locked, read_limited, write_atomic
from council.storage.reader import Looking
from council.typed_json import decode_json

log = logging.getLogger(__name__)

HEAD_FILE = "audit.head"
DISPUTED = "audit.head.disputed-"
SETTLED = "audit.head.settled-"  # a disputed one that the steward has accepted
MAX_HEAD_BYTES = 4_096
_PATIENCE_S = 10.0  # somebody writes and syncs 200 bytes meanwhile


def read_head(path: Path) -> ChainHead | None:
    """None when there is no file. What is no head, or only a link to one, is borne out by nothing: it is set aside, and
    said. Raises StorageFailed."""
    if path.is_symlink():
        log.error("%s is a symbolic link, not a head file", path)
        return ChainHead("", 0, "link")
    try:
        data = read_limited(path, MAX_HEAD_BYTES)
    except FileNotFoundError:
        return None
    try:
        return decode_json(data, ChainHead)
    except msgspec.MsgspecError:
        log.error("%s does not contain the head of a chain", path)
        return ChainHead("", 0, data[:64].hex())


def lost_end(store: Looking, runtime: Path) -> str:
    """Says what the file knows and the database does not: a log was lost, or a database was set back. Empty for nothing.
    No signature is checked. Raises StorageFailed."""
    known = read_head(runtime / HEAD_FILE)
    row = store.read(lambda tx: tx.execute(sql.HEAD).fetchone())
    there = ChainHead("", 0, "") if row is None else ChainHead(*row)
    if known is None or not known.seq or (known.chain == there.chain and known.seq <= there.seq):
        return ""
    return f"{HEAD_FILE} names record {known.seq} of the audit, but the database ends with {there.seq}: later records are lost"


def write_head(path: Path, head: ChainHead) -> None:
    """Whole and synced: the first word of a chain. Raises StorageFailed."""
    with locked(path.parent, _PATIENCE_S):
        write_atomic(path, export_line(head))


def advance_head(path: Path, known: ChainHead | None, head: ChainHead) -> None:
    """The file that held `known` takes `head`, unless another process, quicker after its commit, has written a later one.
    Not synced: one that is behind is borne out all the same. Raises StorageFailed."""
    with locked(path.parent, _PATIENCE_S):
        now = read_head(path)
        if now is None or now == known or (now.chain == head.chain and now.seq < head.seq):
            write_atomic(path, export_line(head), sync=False)
