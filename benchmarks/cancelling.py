"""How long a cancelled run's call goes on: from the drop of `cancel` to the provider's seeing its connection cut."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Figure, Row, Table
from council.engine.ledger import Ledger
from council.settings import builtin_personas_dir, init_home
from council.storage.command_drop import drop
from council.storage.reader import Reader
from tests import fake_gemini, fake_openai
from tests.fake_gemini import FakeGemini
from tests.fake_openai import FakeOpenAI

CANCELS = 10
_HANGS_S = 600.0  # far beyond what is measured: the provider itself never ends a call
_BAR_S = 1.0
_TIMEOUT_S = 30.0
_PAUSE_S = 0.02

Provider = FakeGemini | FakeOpenAI
Cancel = Callable[[Path, str], float]  # says when it began, by the monotonic clock


def measure(cancels: int = CANCELS) -> list[Table]:
    with FakeGemini(reply=lambda request: fake_gemini.slow(_HANGS_S)) as provider:
        raw = [_raw_s(provider, number) for number in range(cancels)]
    rows = [Row("a socket that is closed", raw)]
    with FakeGemini(reply=lambda request: fake_gemini.slow(_HANGS_S)) as provider:
        environ = {"GEMINI_API_KEY": "test-key-0123456789", "GOOGLE_GEMINI_BASE_URL": provider.root}
        rows += _rows("gemini:gemini-2.5-flash", provider, environ, cancels)
    with FakeOpenAI(reply=lambda request: fake_openai.slow(_HANGS_S)) as openai:
        environ = {"OPENAI_API_KEY": "test-key-0123456789", "OPENAI_BASE_URL": openai.url}
        rows += _rows("openai:gpt-4o-mini", openai, environ, cancels)
    slowest = [Figure(f"{row.name}, slowest", max(row.samples_s), "s", None, _BAR_S) for row in rows[1:]]
    return [
        Table(
            "A cancel that reaches a call in flight",
            "The real daemon, and a provider that would hang for ten minutes; until it sees its connection cut. The clock\n"
            "starts right before the command is dropped, or right before the process `council cancel` is started.",
            rows,
            slowest,
        )
    ]


def _raw_s(provider: Provider, number: int) -> float:
    """From the close of a socket whose request waits for its answer to the server's seeing it."""
    body = b"{}"
    head = f"POST /v1beta/models/x:generateContent HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", provider.port), _TIMEOUT_S) as connection:
        connection.sendall(head.encode() + body)
        provider.wait_for_requests(number + 1)
        closed_s = time.monotonic()
    return provider.wait_for_hang_ups(number + 1)[-1] - closed_s


def _rows(model: str, provider: Provider, environ: dict[str, str], cancels: int) -> list[Row]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COUNCIL_")}
    with tempfile.TemporaryDirectory(prefix="council-cancel-") as name:
        home = Path(name) / "home"
        init_home(home, personas_from=builtin_personas_dir())
        daemon = subprocess.Popen(
            [sys.executable, "-m", "council", "run", "--model", model],
            cwd=home, env=kept | environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            dropped, ordered = (
                [_cancelled_s(home, provider, start + number, cancel) for number in range(cancels)]
                for start, cancel in ((0, _drop), (cancels, _order))
            )
        finally:
            daemon.terminate()
            daemon.wait(_TIMEOUT_S)
    provider_name = model.partition(":")[0]
    return [
        Row(f"{provider_name}: cancel dropped", dropped),
        Row(f"{provider_name}: `council cancel`", ordered),
    ]


def _cancelled_s(home: Path, provider: Provider, number: int, cancel: Cancel) -> float:
    body = {"task_description": f"Decide question {number}.", "output_artifact_path": f"artifacts/{number}.md"}
    drop(home / "commands", f"{number}.json", json.dumps(body).encode())
    provider.wait_for_requests(number + 1)
    [run_id] = Ledger(Reader(home / ".council")).unfinished()
    began_s = cancel(home, run_id)
    cut_s = provider.wait_for_hang_ups(number + 1)[-1]
    _wait_for_ended_runs(home, number + 1)
    return cut_s - began_s


def _drop(home: Path, run_id: str) -> float:
    began_s = time.monotonic()
    drop(home / "commands", f"cancel-{run_id}.json", json.dumps({"type": "cancel", "run": run_id}).encode())
    return began_s


def _order(home: Path, run_id: str) -> float:
    began_s = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "council", "cancel", run_id],
        cwd=home, check=True, timeout=_TIMEOUT_S, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return began_s


def _wait_for_ended_runs(home: Path, count: int) -> None:
    give_up_at = time.monotonic() + _TIMEOUT_S
    while len(Ledger(Reader(home / ".council")).newest(count + 1, ended_only=True)) < count:
        assert time.monotonic() < give_up_at, "the cancelled run did not end"
        time.sleep(_PAUSE_S)
