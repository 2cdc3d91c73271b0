"""What a durable turn costs: against AutoGen, against a bare append, late in a task, and with much to remember."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.peers import AUTOGEN, autogen_python
from benchmarks.report import Figure, Row, Table
from council.agents.memory import KEPT_TASKS
from council.agents.session_file import MemoryMessage, RememberedTask, Session, Summary, decode_session, encode_session
from council.engine.ledger import Ledger
from council.settings import builtin_personas_dir, init_home
from council.storage.reader import Reader
from council.storage.store import Store
from council.storage.versions import DATABASE_FILE

TURNS = 300
REPEATS = 3
MESSAGES = 10_000
_ROLES = ("COORDINATOR", "STRATEGIST", "AUDITOR")
_SENTENCE = "The archive needs a storage engine that outlives its vendor. "
_SAID = (_SENTENCE * 35).strip()  # as long as the turns of the peers that were measured
_KILOBYTE = (_SENTENCE * 17).strip()
_TIMEOUT_S = 600
_RESTORED = 25  # times; as often as turns_autogen.py does it
_AROUND = 11  # turns of which the median is taken


def measure() -> list[Table]:
    """Two tables: turns, and restoring."""
    with tempfile.TemporaryDirectory(prefix="council-turns-") as name:
        scratch = Path(name)
        python = autogen_python(scratch)
        ours, theirs, appends_s, remembering = [], [], [], []
        for number in range(REPEATS):
            theirs.append(_autogen(python, scratch / f"autogen-{number}", "turns", TURNS, _SAID)["turns"])
            ours.append(_council(scratch / f"home-{number}"))
            appends_s += _bare_appends(scratch / f"appends-{number}", _line_bytes(ours[-1]))
            remembering.append(_council(scratch / f"remembering-{number}", remembered=MESSAGES))
        restored = _autogen(python, scratch / "restore", "restore", MESSAGES, _KILOBYTE)["restore_s"]
        return [
            _turns_table(ours, theirs, appends_s, remembering),
            _restore_table(restored, scratch / "home-0", remembering[0]["calls"] - ours[0]["calls"]),
        ]


def _turns_table(
    ours: list[dict[str, Any]],
    theirs: list[list[dict[str, float]]],
    appends_s: list[float],
    remembering: list[dict[str, Any]],
) -> Table:
    turns = [turn for run in ours for turn in run["turns"]]
    early, late = (_around(ours, at, "cpu_s") for at in (10, TURNS))
    later_wall = _around(ours, TURNS, "wall_s")
    mean_theirs = _mean(turn["cpu_s"] for run in theirs for turn in run)
    disk, text = sum(run["bytes"] for run in ours), sum(run["text_bytes"] for run in ours)
    return Table(
        f"A durable turn ({TURNS} turns, {REPEATS} times, a model that answers at once)",
        f"Ours: the real daemon over one command of {TURNS // 3} rounds, {len(_SAID)} characters a turn; from one turn's\n"
        "end to the next one's, without the prompt's body and the growing artifact (at most once a second): rows of their own.\n"
        "A turn is one synced transaction; its call's reservation is another one, not synced.\n"
        f"AutoGen: three assistant agents in turn, `save_state` after each, not synced ({AUTOGEN}).\n"
        "Append: a record of the same size and `fdatasync`.",
        [
            Row("append + fdatasync, wall", appends_s),
            Row("durable turn, wall", [turn["wall_s"] for turn in turns], appends_s, 5),
            Row("turn 10, CPU", early),
            Row(f"turn {TURNS}, CPU", late, early, 1.2),
            Row(f"turn {TURNS}, wall", later_wall, _around(ours, 10, "wall_s"), 1.2),
            Row("turn with no memory, CPU", [turn["cpu_s"] for turn in turns]),
            Row(
                f"turn with {MESSAGES} messages remembered, CPU",
                [turn["cpu_s"] for run in remembering for turn in run["turns"]],
                [turn["cpu_s"] for turn in turns],
                1.5,
            ),
            Row(f"prompt's body at turn {TURNS}, CPU", [item for run in ours for item in run["body_s"][TURNS - _AROUND : TURNS]]),
            Row("rendering the growing artifact once, CPU", [item for run in ours for item in run["rendered_s"]]),
        ],
        [
            Figure("CPU per turn, mean", _mean(turn["cpu_s"] for turn in turns) * 1e3, "ms", mean_theirs * 1e3, 0.5),
            Figure(
                "CPU of the whole run by its turns", _mean(run["whole_cpu_s"] for run in ours) / TURNS * 1e3, "ms",
                mean_theirs * 1e3,
            ),
            Figure("synced transactions per turn, most", max(turn["syncs"] for turn in turns), "", None, 1, exactly=True),
            Figure("synced transactions per turn, fewest", min(turn["syncs"] for turn in turns), "", None, 1, exactly=True),
            Figure("the database's growth, without memories / text said", disk, "bytes", text, 1.6),
        ],
    )  # fmt: skip


def _restore_table(theirs_s: list[float], home: Path, more_calls: int) -> Table:
    messages = MESSAGES // KEPT_TASKS
    data = encode_session(_session("AUDITOR", messages, _KILOBYTE))
    session_s = [_cpu_s(lambda: decode_session(data, "AUDITOR", "main")) for _ in range(_RESTORED)]
    ledger = Ledger(Reader(home / ".council"))
    [entry] = ledger.newest(1)
    return Table(
        f"Restoring {MESSAGES:,} messages of a kilobyte, CPU",
        "Ours: an agent's session file, checksum and types verified, nothing sent anywhere. AutoGen: `json` and `load_state`.",
        [
            Row("AutoGen", theirs_s),
            Row("session file", session_s, theirs_s, 0.5),
            Row(
                f"journal of {TURNS} turns",
                [_cpu_s(lambda: ledger.journal(entry.run_id).steps()) for _ in range(_RESTORED)],
            ),
        ],
        [Figure("more model calls of a run that restored them", more_calls, "calls", None, 0, exactly=True)],
    )


def _council(folder: Path, remembered: int = 0) -> dict[str, Any]:
    init_home(folder, personas_from=builtin_personas_dir())
    (folder / "council.toml").write_text('model = "scripted:script.yaml"\n')
    (folder / "script.yaml").write_text(f'default: {{text: "{_SAID}"}}\n')
    for role in _ROLES if remembered else ():
        session = _session(role, remembered // KEPT_TASKS, _KILOBYTE)
        (folder / "session_states" / f"{role.lower()}_session.json").write_bytes(encode_session(session))
    body = {"task_description": "Which engine?", "output_artifact_path": "artifacts/engine.md"}
    (folder / "commands" / "engine.json").write_text(json.dumps({**body, "config": {"max_rounds": TURNS // 3}}))
    told = _told(
        [sys.executable, "-m", "benchmarks.turns_council", str(folder)], cwd=Path(benchmarks.__file__).parents[1]
    )
    database = folder / ".council" / DATABASE_FILE
    with contextlib.closing(sqlite3.connect(database)) as raw:
        [memories] = raw.execute("SELECT sum(length(data)) FROM kept").fetchone()
    told["bytes"] = database.stat().st_size - memories - _new_database_bytes()
    [entry] = Ledger(Reader(folder / ".council")).newest(1)
    told["calls"] = entry.calls
    told["text_bytes"] = (TURNS + 1) * len(_SAID)  # the synthesis says it once more
    return told


def _new_database_bytes() -> int:
    with tempfile.TemporaryDirectory(prefix="council-new-") as name:
        Store.open(Path(name)).close()
        return (Path(name) / DATABASE_FILE).stat().st_size


def _session(role: str, messages: int, text: str) -> Session:
    said = tuple(MemoryMessage("model" if number % 2 else "user", text) for number in range(messages))
    tasks = tuple(
        RememberedTask(
            f"20260101-0000{number:02}-aaaaaaaa", "Engine", "succeeded", "2026-01-01T00:00:00Z", "Yes.", said
        )
        for number in range(KEPT_TASKS)
    )
    return Session(role, tasks=tasks, summary=Summary(_SENTENCE, tasks[-1].run_id, tasks[-1].run_id))


def _autogen(python: str, folder: Path, *arguments: object) -> dict[str, Any]:
    folder.mkdir()
    script = Path(__file__).with_name("turns_autogen.py")
    what, *rest = map(str, arguments)
    return _told([python, str(script), what, str(folder), *rest], cwd=folder)


def _told(command: Sequence[str], cwd: Path) -> dict[str, Any]:
    done = subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, timeout=_TIMEOUT_S)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _line_bytes(run: dict[str, Any]) -> int:
    return int(run["bytes"] / TURNS)


def _bare_appends(path: Path, size: int) -> list[float]:
    line, taken = b"x" * (size - 1) + b"\n", []
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(TURNS):
            started = time.perf_counter()
            os.write(fd, line)
            os.fdatasync(fd)
            taken.append(time.perf_counter() - started)
    finally:
        os.close(fd)
    return taken


def _around(runs: list[dict[str, Any]], turn: int, what: str) -> list[float]:
    last = min(turn + _AROUND // 2, TURNS)
    return [noted[what] for run in runs for noted in run["turns"][last - _AROUND : last]]


def _mean(values: Any) -> float:
    return statistics.fmean(values)


def _cpu_s(work: Any) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
