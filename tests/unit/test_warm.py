"""A process that a warm server starts is, for its program, one that was started from nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.harness import TIMEOUT_S, environment

PROBE = """\
import gc, json, os, signal, sys, threading, time
if "wait" in sys.argv:
    print("waiting", flush=True)
    time.sleep(600)
if "fail" in sys.argv:
    sys.exit(75)
mask = os.umask(0)
files = {number: os.path.basename(os.readlink(f"/proc/self/fd/{number}")).split(":")[0] for number in (0, 1, 2)}
print(json.dumps({
    "name": __name__,
    "argv": sys.argv,
    "path": sys.path,
    "cwd": os.getcwd(),
    "environment": {key: value for key, value in os.environ.items() if key != "LC_CTYPE"},
    "files": [files, [number for number in range(3, 64) if os.path.exists(f"/proc/self/fd/{number}")]],
    "stdin": sys.stdin.read(),
    "streams": [[s.encoding, s.errors, s.line_buffering, s.isatty()] for s in (sys.stdin, sys.stdout, sys.stderr)],
    "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)],
    "mask": [mask, [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]],
    "threads": threading.active_count(),
    "collector": [gc.isenabled(), gc.get_threshold()],
}))
if "raise" in sys.argv:
    raise RuntimeError("as asked")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "probe.py").write_text(PROBE)
    return tmp_path


def probe(folder: Path, *arguments: str, said: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    env = environment(GREETING="grüß dich", **extra)
    with warm.start("probe", arguments, cwd=folder, env=env, stdin=subprocess.PIPE) as process:
        stdout, stderr = process.communicate(said, TIMEOUT_S)
    return subprocess.CompletedProcess(type(process).__name__, process.returncode, stdout, stderr)


def seen(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("extra", [{}, {"PYTHONPATH": warm.REPOSITORY}], ids=["plain", "with the tests in its path"])
def test_a_warm_process_finds_what_a_cold_one_finds(
    folder: Path, extra: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hot = probe(folder, "a b", "", said="words ö\n", **extra)
    monkeypatch.setenv("COUNCIL_TEST_COLD", "1")
    cold = probe(folder, "a b", "", said="words ö\n", **extra)
    assert (hot.args, cold.args) == ("WarmProcess", "Popen")
    assert seen(hot) == seen(cold)
    assert (hot.returncode, hot.stderr) == (cold.returncode, cold.stderr) == (0, "")


def test_its_end_is_told_with_the_code_or_the_signal(folder: Path) -> None:
    assert probe(folder, "fail").returncode == 75
    raised = probe(folder, "raise")
    assert raised.returncode == 1
    assert raised.stderr.rstrip().endswith("RuntimeError: as asked")
    for number in (signal.SIGKILL, signal.SIGTERM):
        with warm.start("probe", ["wait"], cwd=folder, env=environment()) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.01)
            process.send_signal(number)
            assert process.wait(TIMEOUT_S) == -number
            assert process.poll() == -number


def printed(folder: Path, module: str) -> set[str]:
    """What two processes of a module print, one after the other."""
    found = set()
    for _ in range(2):
        with warm.start(module, [], cwd=folder, env=environment()) as process:
            found.add(process.communicate(timeout=TIMEOUT_S)[0])
    return found


def test_one_process_and_the_next_have_different_hash_seeds(folder: Path) -> None:
    (folder / "hashes.py").write_text("print(hash('a word'))\n")
    assert len(printed(folder, "hashes")) == 2


def test_whoever_asks_in_the_same_folder_shares_the_servers(folder: Path) -> None:
    (folder / "parent.py").write_text("import os\nprint(os.getppid())\n")
    (folder / "other.py").write_text(
        "import pathlib\nfrom tests import warm\nfrom tests.harness import environment\n"
        "with warm.start('parent', [], cwd=pathlib.Path.cwd(), env=environment()) as process:\n"
        "    print(process.communicate()[0], end='')\n"
    )
    here = printed(folder, "parent")
    env = {**os.environ, "PYTHONPATH": warm.REPOSITORY}
    done = subprocess.run([sys.executable, "other.py"], cwd=folder, env=env, capture_output=True, text=True, check=True)
    assert len(here) == 2
    assert done.stdout in here


@pytest.mark.parametrize("extra", [{"PYTHONPATH": "/elsewhere"}, {"LC_ALL": "C"}, {"TZ": "Asia/Tokyo"}], ids=str)
def test_what_the_interpreter_itself_is_told_is_told_to_one_from_nothing(folder: Path, extra: dict[str, str]) -> None:
    assert probe(folder, **extra).args == "Popen"
