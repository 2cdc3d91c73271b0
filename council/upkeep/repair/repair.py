"""The order of a repair: what each part finds, the next one takes for true. Only for who holds the home's lock."""

from __future__ import annotations

from collections.abc import Iterator

from council.app.safekeeping import build_receipts
from council.engine.engine import EnginePaths
from council.settings import Home
from council.storage.paths import ConfinedRoot
from council.upkeep.leftovers import strays
from council.upkeep.repair import answers, files, rows, runs
from council.upkeep.repair.site import Finding, Site


def repair(home: Home, *, dry_run: bool, set_aside: bool) -> list[Finding]:
    """Everything found, in order. `dry_run` changes nothing; `set_aside` moves runs whose journal is damaged to
    `.council/damaged/`. Nothing that holds a record is deleted. Raises StorageFailed."""
    if not dry_run:
        home.ensure_runtime()
        EnginePaths.under(home.runtime).make()
    known, flaw = rows.read_rows(home)
    with ConfinedRoot(home.root) as root:
        site = Site(home, root, build_receipts(home), known, dry_run, set_aside)
        return list(_findings(site, flaw))


def _findings(site: Site, flaw: str) -> Iterator[Finding]:
    left_over = list(strays(site.home, site.active))
    yield from answers.receipts(site)
    yield from runs.half_done(site)
    yield from runs.runs(site)
    yield from runs.markers(site)
    yield from answers.ids(site)
    yield from files.outputs(site)
    yield from files.temporaries(site, left_over)
    yield from files.taken(site)
    yield from files.memories(site)
    yield from files.indexes(site)
    yield from rows.rows(site, flaw)
