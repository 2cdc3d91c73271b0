"""Plans: how soon a confirmation that is dropped counts, beside a cancel, and what it costs to apply fifty operations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.report import Figure, Row, Table
from council.app.home_store import open_store
from council.desk.desk import Desk
from council.engine.ledger import Ledger
from council.plans.register import newest_plans
from council.settings import Home, Settings, builtin_personas_dir, init_home
from council.storage.command_drop import drop
from council.storage.reader import Reader
from tests.planning import Planning, put

DECISIONS = 10
OPERATIONS = 50
APPLIES = 20
_APPLY_BAR_MS = 50.0
_TIMEOUT_S = 30.0
_PAUSE_S = 0.001


def measure(decisions: int = DECISIONS, applies: int = APPLIES) -> list[Table]:
    raw, applied, commits = _applied(applies)
    return [
        Table(
            "A confirmation that is dropped, beside a cancel",
            "The real daemon: from the drop of the command until its receipt stands in the database. The cancelled runs wait\n"
            "for a person.",
            _decided(decisions),
            [],
        ),
        Table(
            f"A plan of {OPERATIONS} operations",
            "Each operation inserts a row, after rights, rows and hash are checked. Beside it the same rows, written by hand\n"
            "in one transaction.",
            [Row(f"{OPERATIONS} inserts by hand", raw), Row("the plan applied", applied)],
            [
                Figure(
                    "the plan applied, median", sorted(applied)[len(applied) // 2] * 1000, "ms", None, _APPLY_BAR_MS
                ),
                Figure("synced transactions for it", commits, "", None, 1),
            ],
        ),
    ]


def _decided(decisions: int) -> list[Row]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COUNCIL_")}
    with tempfile.TemporaryDirectory(prefix="council-plans-") as name:
        home = Path(name) / "home"
        init_home(home, personas_from=builtin_personas_dir())
        daemon = subprocess.Popen(
            [sys.executable, "-m", "tests.sample_daemon", "run", "--model", "offline"],
            cwd=home, env={**kept, "PYTHONPATH": str(Path(__file__).parents[1])}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            confirmed, cancelled = [], []
            for number in range(decisions):
                operation = {"tool": "putPage", "arguments": {"title": f"page {number}"}}
                _answered_s(home, {"type": "plan", "kind": "pages", "operations": [operation]})
                [plan] = newest_plans(Reader(home / ".council"), 1)
                confirmed.append(_answered_s(home, {"type": "confirm", "plan": plan.plan_id}))
                drop(home / "commands", "learn.json", json.dumps({"type": "learn", "words": f"word {number}"}).encode())
                _until(lambda: any(run["status"] == "waiting" for run in _state(home)["runs"]))
                [run_id] = Ledger(Reader(home / ".council")).unfinished()
                cancelled.append(_answered_s(home, {"type": "cancel", "run": run_id}))
                _until(lambda: not Ledger(Reader(home / ".council")).unfinished())
        finally:
            daemon.terminate()
            daemon.wait(_TIMEOUT_S)
    return [Row("cancel dropped", cancelled), Row("confirm dropped", confirmed)]


def _answered_s(home: Path, body: dict[str, Any]) -> float:
    """The time until a control command has its receipt."""
    receipts = Desk(Home(home), {}).receipts
    began_ns, began_s = time.time_ns(), time.monotonic()
    dropped = drop(home / "commands", "decision.json", json.dumps(body).encode())
    _until(lambda: receipts.ended_since(began_ns, file=dropped.path.name))
    return time.monotonic() - began_s


def _state(home: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((home / ".council" / "state.json").read_bytes()))
    except (OSError, ValueError):
        return {"runs": []}


def _until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < give_up_at, "the daemon did not answer"
        time.sleep(_PAUSE_S)


def _applied(applies: int) -> tuple[list[float], list[float], int]:
    """Seconds by hand, seconds as plans, and the commits of the last apply."""
    raw, applied = [], []
    with tempfile.TemporaryDirectory(prefix="council-plans-") as name:
        home = Home(Path(name))
        home.ensure_runtime()
        with closing(open_store(home, Settings())) as store:
            at = Planning(store, home.runtime)
            at.applied(put("first"))
            for number in range(applies):
                plan = at.confirm(at.draft(*(put(f"{number}-{page}") for page in range(OPERATIONS))))
                statements: list[str] = []
                store._raw.set_trace_callback(statements.append if number == applies - 1 else None)
                began_s = time.perf_counter()
                at.apply(plan)
                applied.append(time.perf_counter() - began_s)
                store._raw.set_trace_callback(None)
                began_s = time.perf_counter()
                with store.transaction() as tx:
                    for page in range(OPERATIONS):
                        values = (f"raw-{number}-{page}", "raw", f"{number}-{page}", "")
                        tx.execute(
                            "INSERT INTO sample_pages (page_id, shelf, title, content) VALUES (?, ?, ?, ?)", values
                        )
                raw.append(time.perf_counter() - began_s)
    return raw, applied, sum(statement == "COMMIT" for statement in statements)
