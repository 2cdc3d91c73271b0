"""What the audit and the vault cost: recording, verifying 100,000 records, reading a secret, a rotation."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.report import Figure, Table
from council.app.home_store import open_store
from council.audit.log import AuditLog
from council.ids import SystemClock
from council.keys.key_sources import KeyFile, load_or_create
from council.redaction import Secret
from council.settings import Home, Settings
from council.vault.database import DatabaseVault
from council.vault.sealing import CredentialPlace

RECORDS = 100_000
SINGLE = 200
SECRETS = 1_000
READS = 200
_FILE = {"path": "artifacts/a.md", "sha256": "0" * 64}


def measure() -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="council-audit-") as name:
        home = Home(Path(name) / "home")
        home.root.mkdir()
        home.ensure_runtime()
        source = KeyFile(Path(name) / "keys.json", home.root)
        keys = load_or_create(source)
        database = open_store(home, Settings())
        try:
            log = AuditLog(database, lambda: keys, home.runtime, SystemClock())
            return [
                _audit(log),
                _vault(AuditLog(database, partial(load_or_create, source), home.runtime, SystemClock()), source),
            ]
        finally:
            database.close()


def _audit(log: AuditLog) -> Table:
    def record_singly() -> None:
        for number in range(SINGLE):
            _record(log, number)

    def fill() -> None:
        with log.transaction() as transaction:
            for number in range(SINGLE, RECORDS):
                transaction.record("effect", "run_ended", "steward", {"number": number, "files": [_FILE]})

    single_s = _timed(record_singly) / SINGLE
    fill_s = _timed(fill)
    verify_s = _timed(lambda: _require_whole(log))
    return Table(
        "The audit's chain",
        f"SQLite, synced. {SINGLE} records in transactions of their own, the rest of {RECORDS:,} in one; then every record,\n"
        "its key, its words and the end of the chain are checked.",
        [],
        [
            Figure("a record in its own transaction", single_s * 1e3, "ms"),
            Figure(f"writing {RECORDS - SINGLE:,} records at once", fill_s, "s"),
            Figure(f"verifying {RECORDS:,} records", verify_s, "s", bar=10),
        ],
    )


def _record(log: AuditLog, number: int) -> None:
    with log.transaction() as transaction:
        transaction.record("effect", "run_ended", "steward", {"number": number})


def _require_whole(log: AuditLog) -> None:
    verdict = log.verify()
    assert (verdict.records, verdict.findings) == (RECORDS, ()), verdict


def _vault(log: AuditLog, source: KeyFile) -> Table:
    vault = DatabaseVault(log, source, SystemClock())
    places = [CredentialPlace("anna", "CALLER", f"key_{number}") for number in range(SECRETS)]
    set_s = _timed(lambda: [vault.set(place, Secret(f"value of {place}")) for place in places]) / SECRETS
    read_s = _timed(lambda: [vault.get(place, actor="anna", purpose="a call") for place in places[:READS]]) / READS
    rotate_s = _timed(vault.rotate)
    return Table(
        "The vault",
        f"In the same database: {SECRETS:,} secrets, each set and read with its audit record; then all sealed anew.",
        [],
        [
            Figure("setting a secret", set_s * 1e3, "ms"),
            Figure("reading a secret", read_s * 1e3, "ms"),
            Figure(f"rotating {SECRETS:,} secrets", rotate_s, "s"),
        ],
    )


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    for table in measure():
        print(
            table.title,
            *((figure.name, round(figure.value, 3), figure.unit, figure.verdict) for figure in table.figures),
        )
