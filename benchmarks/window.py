"""What the window costs: its first page over a long record of runs, its weight, and streams that nothing happens on."""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2

from benchmarks.report import Figure, Table, percentile_s
from benchmarks.world import cpu_s
from council.engine.run_import import insert_run
from council.storage.store import Tx
from tests.harness import make_home, opened
from tests.rows import header, receipt
from tests.site import Site
from tests.world_client import free_port

RUNS, LOOKS, STREAMS, IDLE_S = 10_000, 40, 200, 20.0
_SETTINGS = 'model = "offline"\nhttp_requests_per_minute = 100000\n'
_ASSET = re.compile(r'(?:src|href)="(/static/[^"]+)"')
_PAGES = ("/now", "/runs", "/chat")


def measure(runs: int = RUNS, looks: int = LOOKS, streams: int = STREAMS, idle_s: float = IDLE_S) -> list[Table]:
    with _window(runs) as (site, pid), site.signed_in() as client:
        figures = [
            Figure(
                f"`{path}` with {runs:,} runs, median of {looks}",
                _taken_ms(client, path, looks),
                "ms",
                bar=100 if path == _PAGES[0] else None,
            )
            for path in _PAGES
        ]
        figures += [
            Figure(f"weight of `{path}` with all that it loads", _weight_kib(client, path), "KiB", bar=200 / 1.024)
            for path in _PAGES
        ]
        figures.append(
            Figure(
                f"CPU with {streams} streams that nothing happens on",
                _idle(pid, site, client, streams, idle_s),
                "% of a core",
                bar=5,
            )
        )
    how = (
        "Pages are asked for one after the other over one connection of a person who is signed in; the time is the client's, to\n"
        "the last byte. The weight is that of the answers as they are sent, without a cache."
    )
    return [Table("The window", how, [], figures)]


@contextlib.contextmanager
def _window(runs: int) -> Iterator[tuple[Site, int]]:
    with tempfile.TemporaryDirectory(prefix="council-window-") as name:
        home = make_home(Path(name) / "home", settings=_SETTINGS)

        def fill(tx: Tx) -> None:
            for number in range(runs):
                run_id = f"20261120-{number // 3600:02}{number // 60 % 60:02}{number % 60:02}-{number:08}"
                told = receipt(run_id, title=f"Which engine keeps archive {number}?")
                insert_run(tx, [header(run_id)], told, 1_795_000_000_000_000_000 + number, is_open=False)

        with opened(home) as store:
            store.write_now(fill)
        site = Site(home, free_port())
        with site.serving() as daemon:
            yield site, daemon.process.pid


def _taken_ms(client: httpx2.Client, path: str, looks: int) -> float:
    taken_s = []
    for _ in range(looks + 3):  # the first fill caches
        began_s = time.perf_counter()
        answer = client.get(path)
        taken_s.append(time.perf_counter() - began_s)
        assert answer.status_code == 200, answer.text
    return percentile_s(taken_s[3:], 50) * 1e3


def _weight_kib(client: httpx2.Client, path: str) -> float:
    page = client.get(path)
    assets = dict.fromkeys(_ASSET.findall(page.text))
    assert assets, "the page loads no style"
    return sum(answer.num_bytes_downloaded for answer in (page, *map(client.get, assets))) / 1024


def _idle(pid: int, site: Site, client: httpx2.Client, streams: int, idle_s: float) -> float:
    limits = httpx2.Limits(max_connections=streams)
    with (
        httpx2.Client(base_url=site.url, cookies=client.cookies, timeout=None, limits=limits) as many,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(streams):
            answer = stack.enter_context(many.stream("GET", "/now.live"))
            assert answer.status_code == 200, answer.status_code
            next(answer.iter_raw())
        time.sleep(2)  # the opening of the streams is over
        spent_s = cpu_s(pid)
        time.sleep(idle_s)
        return (cpu_s(pid) - spent_s) / idle_s * 100
