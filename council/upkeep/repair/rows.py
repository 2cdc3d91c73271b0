"""The run ledger compared with receipts and journals, which are the truth, and built anew where it differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from council.engine.journal import FileJournal
from council.engine.ledger import Entry, Ledger, entry_of_header, entry_of_receipt
from council.errors import JournalDamaged, StorageFailed
from council.settings import Home
from council.upkeep.repair.site import Finding, Site, names_in


def ledger_file(home: Home) -> Path:
    return home.runtime / "ledger.sqlite"


def read_rows(home: Home) -> tuple[dict[str, Entry], str]:
    """The rows of the ledger, and what is wrong with its file; nothing is changed."""
    if not ledger_file(home).exists():
        return {}, "is missing"
    try:
        ledger = Ledger(ledger_file(home), read_only=True)
        try:
            flaw = ledger.flaw()
            return ({}, f"is damaged ({flaw})") if flaw else ({row.run_id: row for row in ledger.all()}, "")
        finally:
            ledger.close()
    except StorageFailed as error:
        return {}, f"cannot be read ({error.message.rstrip('.')})"


def rows(site: Site, flaw: str) -> Iterator[Finding]:
    """`flaw`: what `read_rows` said of the file. Comes last: it tells what all else has become."""
    right = {entry.run_id: entry for entry in _from_disk(site)}
    if flaw and not right and not ledger_file(site.home).exists():
        return  # nothing ran here yet
    wrong = sum(_told(site.rows[run_id]) != _told(right[run_id]) for run_id in right.keys() & site.rows.keys())
    missing = len(right.keys() - site.rows.keys())
    surplus = len(site.rows.keys() - right.keys())
    if flaw:
        what = f"the run ledger {flaw}"
    elif wrong or missing or surplus:
        counts = ((wrong, "wrong"), (missing, "missing"), (surplus, "of no run"))
        what = f"rows of the run ledger: {', '.join(f'{count} {word}' for count, word in counts if count)}"
    else:
        return
    note = f"built anew from receipts and journals, {len(right)} rows"
    yield site.mended(what, note, lambda: _rebuild(site.home, list(right.values())))


def _rebuild(home: Home, entries: list[Entry]) -> None:
    ledger = Ledger(ledger_file(home))
    try:
        ledger.rebuild(entries)
    finally:
        ledger.close()


def _from_disk(site: Site) -> Iterator[Entry]:
    for run_id, receipt in sorted(site.answered.items()):
        yield entry_of_receipt(receipt, folder=site.home.runs / run_id, ended_ns=site.ended_ns(run_id))
    for name in names_in(site.home.runs):
        if name.startswith(".") or name in site.answered or name in site.gone:
            continue
        try:
            header = FileJournal.read(site.journal(name)).header
        except (JournalDamaged, StorageFailed):
            continue
        if header.run_id == name:
            yield entry_of_header(header, "queued")


def _told(entry: Entry) -> Entry:
    """A row without the size of its folder, which was taken while the run still wrote its last line."""
    return msgspec.structs.replace(entry, bytes=0)
