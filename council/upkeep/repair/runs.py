"""Run folders and their markers: what holds no run, what no start would find, what cannot be read.

A damaged journal is never guessed at: an unfinished run is ended by the next start with what can still be read, anything
else is named with its place, and moved to `.council/damaged/` when the steward says so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from council.engine.folders import SPARE, never_began
from council.engine.journal import JOURNAL, FileJournal, committed_in, decode_line
from council.engine.records import RunHeader
from council.errors import JournalDamaged, StorageFailed
from council.ids import SystemClock
from council.upkeep.repair.answers import write_from
from council.upkeep.repair.site import Finding, Site, free_name, names_in
from council.upkeep.retention import PRUNED, complete_one

_ANEW = "its command runs anew if its file is still in commands/"
_SPEND = "spend"  # how the names of spend logs begin: nothing durable hangs on them


def half_done(site: Site) -> Iterator[Finding]:
    """What a kill left of making or pruning a folder."""
    for name in names_in(site.home.runs):
        folder = site.home.runs / name
        if name.startswith(SPARE):
            yield site.mended(f"runs/{name} was made ahead for a run", "removed", partial(shutil.rmtree, folder))
        elif name.startswith(PRUNED):
            complete = partial(complete_one, folder, site.receipts, SystemClock())
            yield site.mended(f"runs/{name} was being pruned", "removed", complete)


def runs(site: Site) -> Iterator[Finding]:
    """Every run folder. After the receipts were looked at."""
    for name in names_in(site.home.runs):
        folder = site.home.runs / name
        if name.startswith("."):
            continue
        if not folder.is_dir():
            yield Finding(f"runs/{name} is no folder of a run", "left", "move it out of .council/runs/")
        else:
            yield from _examined(site, folder)


def markers(site: Site) -> Iterator[Finding]:
    """Markers of runs that are not there. After the runs were looked at."""
    for name in sorted(site.active):
        if not (site.home.runs / name).exists():
            yield site.mended(f"active/{name} marks no run", "removed", site.marker(name).unlink)


def _examined(site: Site, folder: Path) -> Iterator[Finding]:
    try:
        journal = FileJournal.read(folder / JOURNAL)
        journal.steps()  # the large ones are checked against their names
    except JournalDamaged as error:
        yield from _unreadable(site, folder, error)
    except StorageFailed as error:
        if (folder / JOURNAL).exists():
            yield Finding(error.message, "left", "give this user access to it")
        else:
            yield _recordless(site, folder)
    else:
        if journal.header.run_id != folder.name:
            yield _aside(site, folder, f"runs/{folder.name} holds the journal of run {journal.header.run_id}")
        elif folder.name in site.active:
            yield from _marked(site, journal)
        elif folder.name in site.answered:
            yield from _answered(site, journal)
        else:
            yield _unmarked(site, folder, journal)


# ── journals that can be read ────────────────────────────────────────────────────────────────────────────────────────


def _marked(site: Site, journal: FileJournal) -> Iterator[Finding]:
    """A run that the next start takes up. Its marker also says that its command file was not taken yet: it stays."""
    run_id = journal.header.run_id
    site.unfinished[run_id] = journal.header
    if run_id in site.answered and journal.committed is not None:
        yield Finding(f"run {run_id} has ended and is still marked", "waits", "the next start takes its command file")
    elif journal.committed is not None:
        yield Finding(f"run {run_id} is committed and not in place", "waits", "the next start completes it")


def _answered(site: Site, journal: FileJournal) -> Iterator[Finding]:
    run_id = journal.header.run_id
    receipt = site.answered[run_id]
    if journal.committed is None and journal.reopened:
        yield _mark(site, journal, f"run {run_id} was told to go on, and no start would find it")
    elif journal.committed is None:
        yield _aside(site, site.home.runs / run_id, f"run {run_id} has a receipt and its journal no end")
    elif receipt.pruned is not None:
        whole = msgspec.structs.replace(receipt, pruned=None)
        rewrite = partial(site.receipts.rewrite, whole, site.ended_ns(run_id))
        yield site.mended(f"run {run_id} was pruned and has its folder again", "its receipt says so no more", rewrite)


def _unmarked(site: Site, folder: Path, journal: FileJournal) -> Finding:
    """Neither a receipt nor a marker."""
    run_id = folder.name
    if journal.committed is not None and journal.ended is not None:
        return write_from(site, run_id, journal.committed, f"run {run_id} has ended and has no receipt")
    if journal.committed is not None:
        return _mark(site, journal, f"run {run_id} is committed and not in place, and no start would find it")
    if never_began(journal) and not _holds_more(folder):
        site.gone.add(run_id)
        return site.mended(f"run {run_id} never began", f"removed: {_ANEW}", partial(shutil.rmtree, folder))
    return _mark(site, journal, f"run {run_id} has not ended, and no start would find it")


def _mark(site: Site, journal: FileJournal, what: str) -> Finding:
    run_id = journal.header.run_id
    site.unfinished[run_id] = journal.header
    return site.mended(what, "marked: the next start goes on with it", site.marker(run_id).touch)


# ── journals that cannot ─────────────────────────────────────────────────────────────────────────────────────────────


def _unreadable(site: Site, folder: Path, error: JournalDamaged) -> Iterator[Finding]:
    run_id = folder.name
    header = _header(folder / JOURNAL)
    if error.data.get("records") == 0:
        yield _recordless(site, folder)
    elif header is None or header.run_id != run_id or run_id in site.answered:
        yield _aside(site, folder, error.message)
    elif run_id in site.active:
        site.unfinished[run_id] = header
        yield Finding(error.message, "waits", "the next start ends the run with what can still be read of it")
    else:
        yield from _unanswered(site, folder, header, error)


def _unanswered(site: Site, folder: Path, header: RunHeader, error: JournalDamaged) -> Iterator[Finding]:
    """Nobody looks at it, and nothing answers for it: it gets its receipt if the end can be read, else an end."""
    committed = committed_in(folder / JOURNAL)
    if committed is not None:
        yield write_from(site, folder.name, committed, f"run {folder.name} has ended and has no receipt")
        yield _aside(site, folder, error.message)
        return
    site.unfinished[folder.name] = header
    note = "marked: the next start ends the run with what can still be read of it"
    yield site.mended(error.message, note, site.marker(folder.name).touch)


def _header(journal: Path) -> RunHeader | None:
    try:
        with journal.open("rb") as stream:
            record = decode_line(stream.readline().removesuffix(b"\n"))
    except OSError:
        return None
    return record if isinstance(record, RunHeader) else None


def _recordless(site: Site, folder: Path) -> Finding:
    """Without one whole record it is what a kill left of an admission, unless it holds more than that leaves."""
    what = f"runs/{folder.name} holds no whole record"
    if folder.name in site.answered or _holds_more(folder):
        return _aside(site, folder, what)

    def remove() -> None:
        shutil.rmtree(folder)
        site.marker(folder.name).unlink(missing_ok=True)

    site.active.discard(folder.name)
    return site.mended(what, f"removed: {_ANEW}", remove)


def _holds_more(folder: Path) -> bool:
    """Whether there is anything but a journal and what was spent."""
    return any(name != JOURNAL and not name.startswith(_SPEND) for name in names_in(folder))


def _aside(site: Site, folder: Path, what: str) -> Finding:
    """Left where it is, or moved out of the way when the steward said so."""
    what = what.rstrip(".")
    anew = "" if folder.name in site.answered else f"; {_ANEW}"
    if not site.set_aside:
        return Finding(what, "left", f"restore it from a backup, or `council repair --set-aside` moves it away{anew}")
    target = free_name(site.home.runtime / "damaged" / folder.name)

    def move() -> None:
        target.parent.mkdir(mode=0o700, exist_ok=True)
        os.rename(folder, target)
        with contextlib.suppress(FileNotFoundError):
            site.marker(folder.name).unlink()

    site.active.discard(folder.name)
    return site.mended(what, f"moved to {site.shown(target)}{anew}", move)
