"""A real `council run` in a process of its own, for tests: start it, drop commands, wait for events, look at the disk."""

from __future__ import annotations

import itertools
import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from council.settings import builtin_personas_dir, init_home
from council.settings.sources import PROVIDER_NAMES
from council.storage.drop import drop
from tests import warm

TIMEOUT_S = 60.0  # far beyond any wait here; only a defect reaches it
FAULTY = "tests.faults"  # the module in place of `council` for a process whose system calls fail or kill on demand


def make_home(folder: Path, *, settings: str = "") -> Path:
    """A home with the built-in personas; `settings` goes into its council.toml."""
    init_home(folder, personas_from=builtin_personas_dir())
    if settings:
        (folder / "council.toml").write_text(settings)
    return folder


def command(task: str = "Choose a storage engine for the archive.", **keys: Any) -> dict[str, Any]:
    """A command of the four keys; `rounds` is short for config.max_rounds."""
    rounds = keys.pop("rounds", 1)
    body: dict[str, Any] = {"task_description": task, "output_artifact_path": "artifacts/out.md"}
    return {**body, "config": {"max_rounds": rounds}, **keys}


def drop_command(home: Path, body: dict[str, Any] | bytes, name: str = "command.json") -> Path:
    """Drops a command whole, as every door does."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return drop(home / "commands", name, data).path


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without anything that configures a council or a model, plus `extra`."""
    names = (*PROVIDER_NAMES, "OPENAI_BASE_URL", "OLLAMA_HOST", "OLLAMA_CONTEXT_LENGTH")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("COUNCIL_") and key not in names}
    return {**kept, "PYTHONUNBUFFERED": "1", **extra}


def faulty_environment(**extra: str) -> dict[str, str]:
    """`environment` for the module FAULTY; `extra` holds COUNCIL_TEST_FAULT and its like (see tests/faults.py)."""
    return environment(PYTHONPATH=str(Path(__file__).parents[1]), **extra)


def run_cli(
    *arguments: str,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = TIMEOUT_S,
    module: str = "council",
) -> subprocess.CompletedProcess[str]:
    """`council …`, to its end."""
    with warm.start(module, arguments, cwd=cwd, env=env or environment(), stdin=subprocess.PIPE) as process:
        try:
            stdout, stderr = process.communicate(stdin.decode(), timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def on_a_terminal(*arguments: str, cwd: Path, env: dict[str, str], timeout_s: float = TIMEOUT_S) -> str:
    """What `council …` writes, to its end, when a terminal is all it reads from and writes to."""
    ours, theirs = pty.openpty()
    said, deadline = b"", time.monotonic() + timeout_s
    with subprocess.Popen(
        [sys.executable, "-m", "council", *arguments], cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
                try:
                    piece = os.read(ours, 65_536)
                except OSError:  # how Linux tells that the other end is closed
                    break
                if not piece:  # and how macOS does
                    break
                said += piece
            assert time.monotonic() < deadline, f"council {' '.join(arguments)} goes on: {said[-3000:]!r}"
        finally:
            if time.monotonic() >= deadline:
                process.kill()
            os.close(ours)
    return said.decode().replace("\r\n", "\n")


class Daemon:
    """A running `council run`; its events are the JSON lines it prints."""

    def __init__(self, home: Path, *arguments: str, env: dict[str, str] | None = None, module: str = "council") -> None:
        self.home = home
        self.events: list[dict[str, Any]] = []
        self._seen = threading.Condition()
        self._stderr: list[str] = []
        said = ("--home", str(home), "run", "--log-format", "json", *arguments)
        self.process = warm.start(module, said, cwd=home, env=env or environment())
        self._threads = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()

    def _read_events(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._seen:
                self.events.append(json.loads(line))
                self._seen.notify_all()
        with self._seen:
            self._seen.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._stderr.extend(self.process.stderr)

    @property
    def stderr(self) -> str:
        return "".join(self._stderr)

    def wait(self, kind: str, *, count: int = 1, timeout_s: float = TIMEOUT_S, **match: Any) -> dict[str, Any]:
        """The `count`th event of that kind (and those values); fails loudly when the process ends or time is up."""
        found: list[dict[str, Any]] = []
        looked_at = 0
        deadline = time.monotonic() + timeout_s
        with self._seen:
            while True:
                found += (
                    event
                    for event in itertools.islice(self.events, looked_at, None)
                    if event["event"] == kind and all(event.get(key) == value for key, value in match.items())
                )
                looked_at = len(self.events)
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                alive = self.process.poll() is None or any(thread.is_alive() for thread in self._threads)
                over = left <= 0 or not alive
                assert not over, f"no {kind} #{count} {match}: {self.events[-5:]}\n{self.stderr[-3000:]}"
                self._seen.wait(min(left, 0.5))

    def all(self, kind: str) -> list[dict[str, Any]]:
        """The events of that kind so far."""
        return [event for event in self.events if event["event"] == kind]

    def ready(self) -> Daemon:
        self.wait("idle")
        return self

    def scan(self, times: int = 3) -> None:
        """Returns when the daemon has looked at its inbox so many times more: each time at a file that it sets aside."""
        for number in range(times):
            path = drop_command(self.home, b"[]", f"not-a-command-{len(self.events)}-{number}.json")
            self.wait("command_refused", file=path.name)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)


def wait_until(condition: Any, what: str, timeout_s: float = TIMEOUT_S, *, every_s: float = 0.02) -> Any:
    """Polls the disk until `condition()` is true; for what no event announces."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"timed out: {what}"
        time.sleep(every_s)


def receipts(home: Path) -> list[dict[str, Any]]:
    """All receipts, oldest first."""
    folder = home / ".council" / "receipts"
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]


def front_matter(page: str) -> dict[str, Any]:
    """The keys above an artifact's text."""
    assert page.startswith("---\n")
    keys = yaml.safe_load(page.split("\n---\n")[0].removeprefix("---\n"))
    assert isinstance(keys, dict)
    return keys


def inbox(home: Path) -> list[str]:
    """What lies in commands/, hidden files too, besides the README and the folder of what was set aside."""
    return sorted(path.name for path in (home / "commands").iterdir() if path.name not in ("README.md", "failed"))


def refusal(home: Path, name: str) -> str:
    """The note beside a file that could not become a run."""
    return (home / "commands" / "failed" / f"{name}.error.md").read_text()
