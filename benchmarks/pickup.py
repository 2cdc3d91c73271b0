"""From the drop of a command to its bytes being read, and to its run's record 0 being on the disk.

The clock starts right before the rename that gives the file its name. Two ways of dropping: `mv` from another folder,
and what every door of Council does (a synced temporary neighbour, renamed), whose own events the daemon sees first.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.report import Row, Table
from council.settings import builtin_personas_dir, init_home

DROPS = 200
_BLOCK = 5  # short, so that a neighbour that keeps the disk busy meets both
_PAUSE_S = (0.12, 0.18)  # longer than the daemon's last write after a run (state.json, 0.1 s), and no fixed beat
_TIMEOUT_S = 30.0
_BAR_READ = 5.0
_BAR_SYNCED = 5.0

Way = Literal["moved in", "a door's drop"]
_WAYS: tuple[Way, ...] = ("moved in", "a door's drop")


@dataclass
class Reader:
    """A process that picks files up, and what it told: seconds from the drop."""

    folder: Path
    process: subprocess.Popen[str]
    takes: bool  # it removes what it picked up
    read_s: dict[Way, list[float]] = field(default_factory=lambda: {way: [] for way in _WAYS})
    synced_s: dict[Way, list[float]] = field(default_factory=lambda: {way: [] for way in _WAYS})

    @classmethod
    def start(cls, module: str, folder: Path, *arguments: Path, takes: bool) -> Reader:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        reader = cls(folder, subprocess.Popen(command, stdout=subprocess.PIPE, text=True), takes)
        reader.told()  # it is ready
        return reader

    def told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"{self.process.args!r} ended"
        told: dict[str, Any] = json.loads(line)
        return told

    def measure(self, name: str, data: bytes, way: Way, outside: Path) -> None:
        path = self.folder / name
        temporary = outside / name if way == "moved in" else self.folder / f".{name}.tmp"
        _write_synced(temporary, data)
        dropped_ns = time.monotonic_ns()
        os.rename(temporary, path)
        told = self.told()
        assert told["name"] == name
        self.read_s[way].append((told["read_ns"] - dropped_ns) / 1e9)
        self.synced_s[way].append((told["synced_ns"] - dropped_ns) / 1e9)
        self._wait_until_taken(path)

    def _wait_until_taken(self, path: Path) -> None:
        if not self.takes:
            path.unlink()
            return
        give_up_at = time.monotonic() + _TIMEOUT_S
        while path.exists():
            assert time.monotonic() < give_up_at, f"{path} was not taken"
            time.sleep(0.002)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(_TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


def measure(drops: int = DROPS) -> list[Table]:
    """One table, reference rows first."""
    with tempfile.TemporaryDirectory(prefix="council-pickup-") as scratch:
        raw, daemon = _measured(Path(scratch), drops)
    return [
        Table(
            "Pick-up of a dropped command",
            "Raw: one process on inotify (`IN_CLOSE_WRITE | IN_MOVED_TO`, ctypes) that reads the file, then creates a\n"
            "1 KB file, appends and syncs it. Daemon: the real one (`Service`, `Inbox`, `Engine`), idle, with runs that\n"
            f"end at once. Blocks of {_BLOCK} drops alternate. The clock starts right before the rename.",
            [row for way in _WAYS for row in _rows(way, raw, daemon)],
        )
    ]


def _measured(scratch: Path, drops: int) -> tuple[Reader, Reader]:
    watched, journals, outside, home = (scratch / name for name in ("watched", "journals", "outside", "home"))
    for folder in (watched, journals, outside):
        folder.mkdir()
    init_home(home, personas_from=builtin_personas_dir())
    raw = Reader.start("benchmarks.pickup_raw", watched, watched, journals, takes=False)
    try:
        daemon = Reader.start("benchmarks.pickup_daemon", home / "commands", home, takes=True)
        try:
            _alternate([raw, daemon], drops, outside)
        finally:
            daemon.stop()
    finally:
        raw.stop()
    return raw, daemon


def _alternate(readers: list[Reader], drops: int, outside: Path) -> None:
    pause = random.Random(0)
    for reader in readers:
        reader.measure("warm-up.json", _command("warm-up"), "moved in", outside)
        reader.read_s["moved in"].clear()
        reader.synced_s["moved in"].clear()
    for start in range(0, drops, _BLOCK):
        for way in _WAYS:
            for reader in readers:
                for number in range(start, min(start + _BLOCK, drops)):
                    time.sleep(pause.uniform(*_PAUSE_S))
                    question = f"{way[0]}-{number:04}"
                    reader.measure(f"{question}.json", _command(question), way, outside)


def _command(question: str) -> bytes:
    """About a kilobyte, with an output path that no other run has used."""
    task = f"Decide question {question}. " + "The archive needs a storage engine that outlives its vendor. " * 14
    body = {"task_description": task, "output_artifact_path": f"artifacts/{question}.md", "config": {"max_rounds": 1}}
    return json.dumps(body).encode()


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _rows(way: Way, raw: Reader, daemon: Reader) -> list[Row]:
    return [
        Row(f"{way}: read, raw inotify", raw.read_s[way]),
        Row(f"{way}: read, daemon", daemon.read_s[way], raw.read_s[way], _BAR_READ),
        Row(f"{way}: synced, raw inotify + append + fdatasync", raw.synced_s[way]),
        Row(f"{way}: record 0 synced, daemon", daemon.synced_s[way], raw.synced_s[way], _BAR_SYNCED),
    ]
