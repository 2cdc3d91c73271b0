"""The store: what an ordinary command syncs, what 100,000 ended runs cost later ones, a backup beside a working daemon, kills."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.report import Figure, Row, Table
from council.engine.journal import Journal, admit
from council.engine.ledger import Ledger
from council.engine.receipts import Receipt
from council.engine.records import EPOCH, FileIdentity, Record, RunHeader, StepResult
from council.engine.run_import import insert_run
from council.settings import builtin_personas_dir, init_home
from council.storage.reader import Reader
from council.storage.store import Store, Tx
from tests.kills import kill_at_random, made_home, made_reference, outlive

FEW, MANY = 100, 100_000
KILLS = 200
_KILLS_PER_HOME = 5
_STEPS = 12
_TEXT = "The archive needs a storage engine that outlives its vendor. " * 25
_TIMES = 200
_ALONE_S = 10
_TIMEOUT_S = 600
_SYNC = re.compile(r"\b(?:fsync|fdatasync)\(")


def measure() -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="council-store-") as name:
        return [*_syncs(Path(name)), *_at_scale(Path(name)), *_kills(Path(name))]


# ── syncs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _syncs(scratch: Path) -> list[Table]:
    """Counted by strace, where there is one: the difference between two commands and one, so that no start counts."""
    if shutil.which("strace") is None:
        return []
    one, two = (_synced(scratch / f"syncs-{count}", count) for count in (1, 2))
    fixed = two - one - 4
    return [
        Table(
            "Syncs of an ordinary command",
            "One round of three agents over a document, and the closing call, counted by `strace`: a second command beside\n"
            "the first, less one for each of its four calls.",
            [],
            [Figure("syncs beside one per call", fixed, "syncs", None, 10)],
        )
    ]


def _synced(home: Path, commands: int) -> int:
    _make(home)
    for number in range(commands):
        _drop(home, number, "main")
    trace = home / "trace"
    command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace), *_daemon()]
    subprocess.run(command, cwd=home, check=True, timeout=_TIMEOUT_S, stdout=subprocess.DEVNULL)
    return len(_SYNC.findall(trace.read_text()))


# ── at scale ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _at_scale(scratch: Path) -> list[Table]:
    few, many = scratch / "few", scratch / "many"
    for home, count in ((few, FEW), (many, MANY)):
        _make(home)
        _fill(home, count)
    rows = []
    asked: list[tuple[str, Callable[[Path], list[float]]]] = [
        ("admission", _admissions), ("step", _recorded_steps), ("find by prefix", _found), ("`council status`", _statuses),
    ]  # fmt: skip
    for name, ask in asked:
        few_s, many_s = ask(few), ask(many)
        rows += [Row(f"{name} at {FEW} ended runs", few_s), Row(f"{name} at {MANY:,}", many_s, few_s, 1.5)]
    alone_s, beside_s, backup_s = _worst_commits(many)
    size = (many / ".council" / "council.db").stat().st_size
    return [
        Table(
            f"{MANY:,} ended runs of {_STEPS} steps ({size / 1e9:.2f} GB)",
            "Rows written by the product's own classes; the longest of the commits that a backup met, made by another process.",
            rows,
            [
                Figure("longest commit beside a backup", beside_s * 1e3, "ms", None, 100),
                Figure("longest commit without one", alone_s * 1e3, "ms"),
                Figure("the backup", backup_s, "s"),
            ],
        )
    ]


def _fill(home: Path, count: int) -> None:
    store = Store.open(home / ".council")
    try:
        for first in range(0, count, 500):
            runs = [_ended_run(number) for number in range(first, min(first + 500, count))]
            store.write_now(partial(_insert, runs))
        store.sweep()
    finally:
        store.close()


def _insert(runs: list[tuple[list[Record], Receipt, int]], tx: Tx) -> None:
    for run in runs:
        insert_run(tx, *run, is_open=False)


def _header(run_id: str, number: int) -> RunHeader:
    file = FileIdentity(f"{number}.json", number, number, "0" * 64)
    return RunHeader(
        run_id, EPOCH, "2026-01-01T00:00:00Z", "main", "deliberate", {"task_description": "Which engine?"}, "0" * 64, file,
        "00" * 32, f"artifacts/{number}.md", f"Question {number}", number,
    )  # fmt: skip


def _ended_run(number: int) -> tuple[list[Record], Receipt, int]:
    run_id = f"20260101-{number:06}-aaaaaaaa"
    header = _header(run_id, number)
    out = msgspec.Raw(msgspec.json.encode({"text": _TEXT}))
    steps = [StepResult(f"round/{step}/AUDITOR", "", out, number) for step in range(_STEPS)]
    receipt = Receipt(
        run_id, "succeeded", "deliberate", header.file, "0" * 64, "0" * 64, header.created, header.created
    )
    return [header, *steps], receipt, number + 1


def _admissions(home: Path) -> list[float]:
    store = Store.open(home / ".council")
    try:
        times = []
        for _ in range(_TIMES):
            header = _header(f"20260201-{random.randrange(10**6):06}-{random.randrange(10**8):08}", 1)
            began_s = time.perf_counter()
            store.write_now(lambda tx, header=header: admit(tx, header))  # type: ignore[misc]
            times.append(time.perf_counter() - began_s)
        store.write_now(lambda tx: tx.execute("DELETE FROM runs WHERE run_id >= '20260201'"))
        return times
    finally:
        store.close()


def _recorded_steps(home: Path) -> list[float]:
    store = Store.open(home / ".council")
    header = _header("20260301-000000-bbbbbbbb", 1)
    run = store.write_now(lambda tx: admit(tx, header))
    journal = Journal(header, run, store)

    async def record() -> list[float]:
        times = []
        for number in range(_TIMES):
            began_s = time.perf_counter()
            await journal.step(f"step/{number}", _said, type=str)
            times.append(time.perf_counter() - began_s)
        return times

    try:
        return asyncio.run(record())
    finally:
        store.write_now(lambda tx: tx.execute("DELETE FROM steps WHERE run = ?", (run,)))
        store.write_now(lambda tx: tx.execute("DELETE FROM runs WHERE run = ?", (run,)))
        store.close()


async def _said() -> str:
    return _TEXT


def _found(home: Path) -> list[float]:
    ledger = Ledger(Reader(home / ".council"))
    times = []
    for _ in range(_TIMES):
        began_s = time.perf_counter()
        assert ledger.starting_with("20260101-000042", 10)
        times.append(time.perf_counter() - began_s)
    return times


def _statuses(home: Path) -> list[float]:
    times = []
    for _ in range(9):
        began_s = time.perf_counter()
        subprocess.run([sys.executable, "-m", "council", "status"], cwd=home, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began_s)
    return times


def _worst_commits(home: Path) -> tuple[float, float, float]:
    """Seconds: the longest commit alone, the longest while another process made a backup, and how long that took."""
    store = Store.open(home / ".council")

    async def longest(is_over: Callable[[], bool]) -> float:
        """As a daemon commits: the log grows, and is moved into the file."""
        times, change = [], "UPDATE runs SET finished = ? WHERE run = 1"
        while not is_over():
            began_s = time.perf_counter()
            await store.write(partial(Tx.execute, sql=change, values=(f"{began_s}",)))
            times.append(time.perf_counter() - began_s)
            await asyncio.sleep(0.002)
        return max(times)

    try:
        until_s = time.perf_counter() + _ALONE_S
        alone_s = asyncio.run(longest(lambda: time.perf_counter() > until_s))
        command = [sys.executable, "-m", "council", "backup", str(home / "backup.db")]
        began_s = time.perf_counter()
        backup = subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL)
        beside_s = asyncio.run(longest(lambda: backup.poll() is not None))
    finally:
        store.close()
    assert backup.returncode == 0
    return alone_s, beside_s, time.perf_counter() - began_s


# ── kills ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _kills(scratch: Path) -> list[Table]:
    """Homes over four lanes, each killed at random instants and then left alone."""
    reference = made_reference(scratch / "reference")
    acknowledged = 0
    for seed in range(KILLS // _KILLS_PER_HOME):
        home = made_home(scratch / f"killed-{seed}")
        kill = partial(kill_at_random, home, rng=random.Random(seed))
        acknowledged += outlive(home, reference, [kill] * _KILLS_PER_HOME)
    return [
        Table(
            f"{KILLS} random SIGKILLs over four lanes",
            f"{acknowledged:,} writes were acknowledged, by the trace of the real process. After each fifth kill the\n"
            "home is left alone: every command has then ended once, with the decision and memory of a home without a kill,\n"
            "and no call was made twice but those in flight. Anything else ends this benchmark with an error.",
            [],
            [Figure("acknowledged writes missing", 0, "writes", None, 0, exactly=True)],
        )
    ]


def _make(home: Path) -> None:
    init_home(home, personas_from=builtin_personas_dir())
    (home / "council.toml").write_text('model = "scripted:script.yaml"\n')
    (home / "script.yaml").write_text("default: {text: Nothing to add.}\n")
    (home / "offer.md").write_text("The van costs 19,900 EUR.\n")
    (home / ".council").mkdir(mode=0o700, exist_ok=True)


def _drop(home: Path, number: int, lane: str) -> None:
    body = {
        "task_description": f"Decide question {number}.",
        "input_artifacts": ["offer.md"],
        "output_artifact_path": f"artifacts/{number}.md",
        "session": lane,
        "config": {"max_rounds": 1},
    }
    temporary = home / "commands" / f".{number}.tmp"
    temporary.write_text(json.dumps(body))
    os.rename(temporary, home / "commands" / f"{number:05}.json")


def _daemon() -> list[str]:
    return [sys.executable, "-m", "council", "run", "--once"]
