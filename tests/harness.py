"""A real `council run` in a process of its own, for tests: start it, drop commands, wait for events, look at the disk."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from council.agents.session_file import Session, decode_session
from council.engine.ledger import Ledger
from council.engine.outputs import kept_data, kept_names
from council.engine.receipts import Receipt, Receipts
from council.engine.records import Commit, Continuation, Record
from council.engine.run_records import row_of
from council.settings import Home, builtin_personas_dir, init_home
from council.settings.layers import PROVIDER_NAMES
from council.storage.command_drop import drop
from council.storage.marks import set_mark
from council.storage.reader import Looking, Reader
from council.storage.store import Store, Tx
from tests import warm

T = TypeVar("T")

TIMEOUT_S = 60.0  # far beyond any wait here; only a defect reaches it
FAULTY = "tests.faults"  # the module in place of `council` for a process whose system calls fail or kill on demand


def make_home(folder: Path, *, settings: str = "") -> Path:
    """A home with the built-in personas; `settings` goes into its council.toml."""
    init_home(folder, personas_from=builtin_personas_dir())
    if settings:
        (folder / "council.toml").write_text(settings)
    return folder


SCRIPTED = 'model = "scripted:script.yaml"\nsettle_s = 0.5\nscan_interval_s = 0.2\n'


def scripted_home(folder: Path, settings: str = SCRIPTED, script: str = 'default: {text: "Nothing to add."}\n') -> Path:
    """A home whose model answers at once, in the daemon's own process."""
    home = make_home(folder, settings=settings)
    (home / "script.yaml").write_text(script)
    return home


def command(task: str = "Choose a storage engine for the archive.", **keys: Any) -> dict[str, Any]:
    """A command of the four keys; `rounds` is short for config.max_rounds."""
    rounds = keys.pop("rounds", 1)
    body: dict[str, Any] = {"task_description": task, "output_artifact_path": "artifacts/out.md"}
    return {**body, "config": {"max_rounds": rounds}, **keys}


def memory_of(home: Path, role: str = "COORDINATOR") -> Session:
    """The memory of an agent in the lane `main`."""
    file = home / "session_states" / f"{role.lower()}_session.json"
    session, damage = decode_session(file.read_bytes(), role, "main")
    assert session is not None, damage
    return session


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


def install_for(user: Path) -> None:
    """Puts a program into the folder of `user` where the pages have it."""
    program = user / "council" / ".venv" / "bin" / "council"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{Path(__file__).parents[1]}" exec "{sys.executable}" -m council "$@"\n')
    program.chmod(0o755)


def on_a_terminal(
    *arguments: str,
    cwd: Path,
    env: dict[str, str],
    timeout_s: float = TIMEOUT_S,
    answers: Sequence[tuple[str, str | Callable[[], None]]] = (),
    module: str = "council",
    ends_with: int = 0,
) -> str:
    """What `council …` writes, to its end, when a terminal is all it reads from and writes to. `answers`: what is typed, or
    done, each once the words before it have been written; a single key when the terminal takes keys, and not lines.
    `ends_with`: the exit code, or signal, that is meant."""
    ours, theirs = pty.openpty()
    said, deadline = b"", time.monotonic() + timeout_s
    asked, read_to = list(answers), 0
    with warm.start(module, arguments, cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
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
                if asked and (at := said.find(asked[0][0].encode(), read_to)) >= 0:
                    words, typed = asked.pop(0)
                    read_to = at + len(words)
                    if callable(typed):
                        typed()
                        continue
                    if len(typed) == 1:
                        wait_until(lambda: not termios.tcgetattr(ours)[3] & termios.ICANON, "it takes a key")
                    os.write(ours, typed.encode())
            assert time.monotonic() < deadline, f"council {' '.join(arguments)} goes on: {said[-3000:]!r}"
        finally:
            if time.monotonic() >= deadline:
                process.kill()
            os.close(ours)
    assert process.returncode == ends_with, said.decode()
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


# ── what a home keeps of its runs ────────────────────────────────────────────────────────────────────────────────────


def ledger(home: Path) -> Ledger:
    """The rows of a home's runs, to be looked at."""
    return Ledger(look(home))


def look(home: Path) -> Looking:
    """A home's database, to be looked at."""
    settings = home / "council.toml"
    url = tomllib.loads(settings.read_text()).get("database_url") if settings.exists() else None
    return ServersDatabase(home / ".council", url) if url else Reader(home / ".council")


class ServersDatabase:
    """A PostgreSQL database; each look has a connection of its own."""

    def __init__(self, runtime: Path, url: str) -> None:
        self._runtime = runtime
        self._url = url

    def read(self, look: Callable[[Tx], T]) -> T:
        with self.reading() as tx:
            return look(tx)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Tx]:
        with contextlib.closing(Store.open(self._runtime, self._url)) as store, store.reading() as tx:
            yield tx


@contextlib.contextmanager
def opened(home: Path) -> Iterator[Store]:
    """A home's database, to be changed beside the product."""
    Home(home).ensure_runtime()
    with contextlib.closing(Store.open(home / ".council")) as store:
        yield store


def run_ids(home: Path) -> list[str]:
    """Of all runs that have a journal, in the order of their ids."""
    return [entry.run_id for entry in ledger(home).since() if ledger(home).has_journal(entry.run_id)]


def journal(home: Path, run_id: str) -> list[dict[str, Any]]:
    """A run's records, record 0 first; also while the run is under way."""
    return [json.loads(line) for line in journal_lines(home, run_id)]


def journal_lines(home: Path, run_id: str) -> list[str]:
    """The same as JSON, each record as `council journal --jsonl` prints it."""
    return [msgspec.json.encode(record).decode() for record in ledger(home).records(run_id)]


def steps(home: Path, run_id: str) -> dict[str, Any]:
    """What each step of a run brought, in the order in which they were recorded."""
    return {record["name"]: record["out"] for record in journal(home, run_id) if record["t"] == "done"}


def receipts(home: Path) -> list[dict[str, Any]]:
    """All receipts, in the order in which their commands were admitted."""
    return [json.loads(msgspec.json.encode(found)) for found in Receipts(look(home)).all()]


def receipt(home: Path, run_id: str) -> dict[str, Any]:
    found = Receipts(look(home)).read(run_id)
    assert found is not None, f"{run_id} has no receipt"
    return dict(json.loads(msgspec.json.encode(found)))


def withdrawn_receipts(home: Path, run_id: str) -> list[dict[str, Any]]:
    """The receipts of a run that went on after all, oldest first."""
    records = ledger(home).records(run_id)
    ended = [record for record in records if isinstance(record, Commit | Continuation)]
    return [
        json.loads(bytes(record.receipt))
        for record, after in itertools.pairwise(ended)
        if isinstance(record, Commit) and isinstance(after, Continuation)
    ]


def unfinished(home: Path) -> set[str]:
    """The runs that the next start goes on with."""
    return set(ledger(home).unfinished())


def kept_pages(home: Path, run_id: str) -> dict[str, bytes]:
    """The pages that were kept with a run, by name: `artifact.md` is its own when a later run took its place."""
    store = look(home)
    return {name: kept_data(store, run_id, name) or b"" for name in kept_names(store, run_id)}


def settled(home: Path, run_id: str) -> list[dict[str, Any]]:
    """What each call of a run came to (`call`, `tokens`, `usd`, `seconds`)."""
    rows = rows_of(home, "SELECT call, tokens, usd, seconds FROM spending WHERE run_id = ? AND state = 'end'", run_id)
    return [dict(zip(("call", "tokens", "usd", "seconds"), row, strict=True)) for row in rows]


def rows_of(home: Path, statement: str, *values: object) -> list[Any]:
    """What a statement finds in a home's database."""
    found: list[Any] = look(home).read(lambda tx: tx.execute(statement, values).fetchall())
    return found


def execute(home: Path, statement: str, *values: object) -> None:
    """Changes a home's database as no part of the product does."""
    with opened(home) as store:
        store.write_now(lambda tx: tx.execute(statement, values))


def rewrite_journal(home: Path, run_id: str, change: Callable[[list[Record]], Iterable[Record]]) -> None:
    """Puts other records in the place of an ended run's."""
    before = ledger(home).records(run_id)
    header, *records = change(before)

    def write(tx: Tx) -> None:
        number = tx.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()[0]
        tx.execute("UPDATE runs SET header = ? WHERE run = ?", (msgspec.json.encode(header).decode(), number))
        tx.execute("DELETE FROM steps WHERE run = ?", (number,))
        for seq, record in enumerate(records, start=1):
            values = (number, seq, *row_of(record))
            tx.execute(
                "INSERT INTO steps (run, seq, kind, name, request, at_ms, out) VALUES (?, ?, ?, ?, ?, ?, ?)", values
            )

    with opened(home) as store:
        store.write_now(write)


def lose_journal(home: Path, run_id: str) -> None:
    """Takes an ended run's journal away; its receipt stays."""
    execute(home, "UPDATE runs SET header = NULL WHERE run_id = ?", run_id)


def write_receipt(home: Path, told: dict[str, Any]) -> None:
    """Puts this receipt in the place of the run's."""
    with opened(home) as store:
        Receipts(store).rewrite(msgspec.convert(told, Receipt))


def take_back_commit(home: Path, run_id: str) -> None:
    """What is kept of an ended run is again what a kill right before its commit leaves; its files stay."""

    def until_commit(records: list[Record]) -> list[Record]:
        return list(itertools.takewhile(lambda record: not isinstance(record, Commit), records))

    rewrite_journal(home, run_id, until_commit)
    statement = "UPDATE runs SET open = 1, ended_ns = NULL, receipt = NULL, status = 'queued' WHERE run_id = ?"
    execute(home, statement, run_id)


def calibrate(home: Path, characters_per_token: dict[str, float]) -> None:
    """Lets the home know how a model's tokenizer counts."""
    with opened(home) as store:
        set_mark(store, "calibration", json.dumps(characters_per_token))


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
