"""What is done with text from outside: the request parser, the echo check and the guardrails on a megabyte, the race of
100,000 reads against a folder that turns into a link and back all the time, and forged requests on every way."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
import timeit
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Figure, Table
from council.errors import PathRefused
from council.safety.echoes import OutsideTexts
from council.safety.guardrails import check
from council.storage.paths import ConfinedRoot
from council.tools.tokens import parse
from tests.fake_gemini import FakeGemini
from tests.forgeries import SURFACES, attack
from tests.harness import environment, make_home

MB = 1_000_000
ATTEMPTS = 100_000
_REPEATS = 5
_CANARY = b"outside"
_TOKEN = "[ORCHESTRATOR_REQUEST: READ_FILE(docs/a.md)]"
REPLIES = {
    "prose": "The archive grows by 40 GB a month, says `needs.md`. " + "It will outgrow the disk in spring.\n",
    "open tokens": "[ORCHESTRATOR_REQUEST: READ_FILE(",
    "good tokens": f"{_TOKEN}\n",
    "quoted tokens": f"> {_TOKEN}\n",
    "backticks": "`",
}
_SWAP = """
    import ctypes, os, sys
    exchange = ctypes.CDLL(None).renameat2
    exchange.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    one, other = map(os.fsencode, sys.argv[1:])
    assert exchange(-100, one, -100, other, 2) == 0
    print("swapping", flush=True)
    benchmark = os.getppid()
    while os.getppid() == benchmark:
        exchange(-100, one, -100, other, 2)
"""


def measure() -> list[Table]:
    """Three tables: text of 1 MB (and a tenth of it as the reference), the race, and forged requests."""
    figures = []
    for name, piece in REPLIES.items():
        figures += _ten_times(f"parse a reply of 1 MB: {name}", parse, piece, bar_ms=50)
    figures += _ten_times("remember requests in 1 MB of prose", _remember, REPLIES["prose"])
    figures += _ten_times(
        "guardrails on a tool result of 1 MB", lambda text: check("tool_result", text), REPLIES["prose"]
    )
    return [
        Table(
            "Text from outside",
            f"Best of {_REPEATS}. The second line of each pair is 1 MB over 100 KB of the same text.",
            [],
            figures,
        ),
        _race(),
        _forged(),
    ]


def _remember(text: str) -> None:
    outside = OutsideTexts()
    outside.add(text)
    outside.read()


def _ten_times(name: str, work: Callable[[str], object], piece: str, *, bar_ms: float | None = None) -> list[Figure]:
    small, large = (_best_ms(work, (piece * (size // len(piece) + 1))[:size]) for size in (MB // 10, MB))
    return [
        Figure(name, large, "ms", None, bar_ms),
        Figure("… and ten times the input", large, "ms", small, bar_ms and 15),
    ]


def _best_ms(work: Callable[[str], object], text: str) -> float:
    return min(timeit.repeat(lambda: work(text), number=1, repeat=_REPEATS)) * 1e3  # without the garbage collector


def _race() -> Table:
    with tempfile.TemporaryDirectory(prefix="council-race-") as name:
        home, outside = Path(name).resolve() / "home", Path(name).resolve() / "outside"
        (home / "swap").mkdir(parents=True)
        outside.mkdir()
        (home / "swap" / "note.md").write_bytes(b"good")
        (outside / "note.md").write_bytes(_CANARY)
        (home / "decoy").symlink_to(outside)
        swapper = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(_SWAP), home / "swap", home / "decoy"], stdout=subprocess.PIPE
        )
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            with ConfinedRoot(home) as root:
                ours, ours_us = _attempts(lambda: root.read("swap/note.md").data)
            naive, naive_us = _attempts(lambda: _naive_read(home, "swap/note.md"))
        finally:
            swapper.kill()
            swapper.wait()
    assert naive > 0, "the control did not leak: the race proves nothing here"
    return Table(
        "A folder that turns into a link and back",
        f"{ATTEMPTS:,} reads each while another process exchanges the two in a loop (RENAME_EXCHANGE). The control resolves the\n"
        "path, compares it with the root, and opens it.",
        [],
        [
            Figure("secrets read through the confined walk", ours, "", None, 0, exactly=True),
            Figure("secrets read through the control", naive, ""),
            Figure("one attempt, confined walk", ours_us, "µs", naive_us),
        ],
    )


def _forged() -> Table:
    figures = []
    for surface in SURFACES:
        with tempfile.TemporaryDirectory(prefix="council-forged-") as name, FakeGemini() as fake:
            home = make_home(Path(name) / "home", settings="settle_s = 0.5\nscan_interval_s = 0.5\n")
            env = environment(GEMINI_API_KEY="a-key-of-no-account-0123", GOOGLE_GEMINI_BASE_URL=fake.url)
            found = attack(home, fake, env, surface)
            figures += [
                Figure(f"{surface}: asked for", found.asked, ""),
                Figure("… refused by the tripwire", found.by_tripwire, ""),
                Figure("… refused by the boundary", found.by_boundary, ""),
                Figure("… fulfilled", found.fulfilled, "", None, 0, exactly=True),
            ]
    return Table(
        "Forged requests for files outside the boundary",
        "Each way by which text that no model thought of reaches an agent, through the real daemon, against a model that obeys\n"
        "every request that it can read: 13 wrappers by 22 spellings, three of which the tripwire does not read.",
        [],
        figures,
    )


def _attempts(read: Callable[[], bytes]) -> tuple[int, float]:
    """How many of the attempts leaked, and what one took, in microseconds."""
    leaked = 0
    times = []
    for _ in range(ATTEMPTS):
        began_s = time.perf_counter()
        with contextlib.suppress(PathRefused, OSError):
            leaked += read() == _CANARY
        times.append(time.perf_counter() - began_s)
    return leaked, statistics.median(times) * 1e6


def _naive_read(home: Path, relative: str) -> bytes:
    if not os.path.realpath(home / relative).startswith(f"{home}/"):
        return b""
    return (home / relative).read_bytes()


if __name__ == "__main__":
    for found in measure():
        print(found.title)
        for figure in found.figures:
            print(f"  {figure.name}: {figure.value:.4g} {figure.unit} ({figure.compared:.4g}) {figure.verdict}")
