"""Runs put into a store without being run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from council.engine.journal import Journal, admit
from council.engine.receipts import IdBinding, Receipt, bind
from council.engine.records import EPOCH, FileIdentity, Record, RunHeader, StepResult
from council.engine.run_import import insert_run
from council.storage.store import Store, Tx

DROP = FileIdentity("command.json", 1, 2, "0" * 64)
AT = "2026-11-20T00:00:00Z"


def header(run_id: str, **values: object) -> RunHeader:
    made = RunHeader(run_id, EPOCH, AT, "main", "deliberate", {}, "h", DROP, "00" * 32, title=f"Task {run_id}")
    return msgspec.structs.replace(made, **values)


def receipt(run_id: str, **values: object) -> Receipt:
    made = Receipt(run_id, "succeeded", "deliberate", DROP, "0" * 64, "0" * 64, AT, AT, lane="main", title=run_id)
    return msgspec.structs.replace(made, **values)


def begun(store: Store, run_id: str, **values: object) -> Journal:
    """A run that was admitted."""
    told = header(run_id, **values)
    return Journal(told, store.write_now(lambda tx: admit(tx, told)), store)


def ended(store: Store, run_id: str, ended_ns: int, *, text_chars: int = 200, **values: object) -> None:
    """A run of one step that has ended; `values` are of its receipt, a title is of both. Its id, if any, answers for it."""
    told = receipt(run_id, **values)
    titled = {"title": told.title} if "title" in values else {}
    step = StepResult("one", "", msgspec.Raw(msgspec.json.encode("x" * (text_chars - 2))))
    records: Sequence[Record] = [header(run_id, command={"id": told.id}, **titled), step]

    def write(tx: Tx) -> None:
        insert_run(tx, records, told, ended_ns, is_open=False)
        if told.id is not None:
            bind(tx, IdBinding(told.id, told.command_hash, run_id))

    store.write_now(write)
