"""Files beside the runs: what killed processes left, what is known of our pages, memories, indexes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from council.app.safekeeping import build_memory
from council.engine.outputs import OutputLedger, Written
from council.engine.receipts import Receipt
from council.errors import PathRefused, StorageFailed
from council.ids import sha256_hex
from council.knowledge.cortex import catalog
from council.knowledge.cortex.catalog import CatalogDamaged
from council.knowledge.cortex.cortex import SCOPES
from council.storage.files import read_limited
from council.upkeep.doctor import DamagedSession, damaged_sessions
from council.upkeep.repair.site import Finding, Site, names_in

_MAX_WRITTEN_BYTES = 1 << 16


def temporaries(site: Site, found: list[Path]) -> Iterator[Finding]:
    """`found`: what lay there before the repair wrote files of its own."""
    for path in found:
        what = f"{site.shown(path)} is left of a process that was killed"
        yield site.mended(what, "removed", partial(path.unlink, missing_ok=True))


def taken(site: Site) -> Iterator[Finding]:
    """The daemon's to settle: only it knows what came in their place."""
    for name in names_in(site.home.commands):
        if name.startswith(".") and name.endswith(".taken"):
            yield Finding(f"commands/{name} was taken and not settled", "waits", "the next start settles it")


def outputs(site: Site) -> Iterator[Finding]:
    """What Council wrote where: without it, a page of ours counts as a person's, and the next goes beside it."""
    folder = site.home.runtime / "outputs"
    whole = set()
    for name in names_in(folder):
        path = folder / name
        if path.suffix != ".json" or name.startswith("."):
            continue
        if _is_whole(path):
            whole.add(path.stem)
        else:
            what = f"{site.shown(path)} does not tell what was written"
            yield site.mended(what, "removed: a page that a receipt names is noted again", path.unlink)
    for path_, receipt in _newest_pages(site).items():
        if sha256_hex(path_) not in whole and _stands(site, receipt):
            yield _noted(site, path_, receipt)


def _is_whole(path: Path) -> bool:
    try:
        written = msgspec.json.decode(read_limited(path, _MAX_WRITTEN_BYTES), type=Written)
    except (msgspec.MsgspecError, StorageFailed):
        return False
    return path.stem == sha256_hex(written.path)


def _newest_pages(site: Site) -> dict[str, Receipt]:
    newest: dict[str, Receipt] = {}
    for run_id in sorted(site.answered, key=site.ended_ns):
        receipt = site.answered[run_id]
        if receipt.artifact is not None:
            newest[receipt.artifact.path] = receipt
    return newest


def _stands(site: Site, receipt: Receipt) -> bool:
    assert receipt.artifact is not None
    try:
        return site.root.sha256(receipt.artifact.path) == receipt.artifact.sha256
    except PathRefused:
        return False


def _noted(site: Site, path: str, receipt: Receipt) -> Finding:
    assert receipt.artifact is not None
    ledger = OutputLedger(site.home.runtime / "outputs")
    note = partial(ledger.note, path, receipt.run_id, receipt.artifact.sha256, current=None, sync=True)
    return site.mended(f"{path} was not known as ours", "noted, as its receipt says", note)


# ── memory and indexes ───────────────────────────────────────────────────────────────────────────────────────────────


def memories(site: Site) -> Iterator[Finding]:
    """Session files that do not verify: the last good copy takes their place, as the next run would have it."""
    for session in damaged_sessions(site.home):
        what = f"{site.shown(session.path)} is damaged ({session.reason})"
        if not session.copy:
            note = f"there is no good copy: restore it from a backup, or `{session.reset}` begins anew"
            yield Finding(what, "left", note)
        else:
            yield site.mended(what, "set aside; the last good copy took its place", partial(_load, site, session))


def _load(site: Site, session: DamagedSession) -> None:
    build_memory(site.home).load(session.role, session.lane)


def indexes(site: Site) -> Iterator[Finding]:
    """Only named: a question rebuilds its index by itself."""
    for scope in SCOPES:
        folder = site.home.runtime / "cortex" / scope
        try:
            missing = catalog.load(folder / "catalog.json") is None and (folder / "index").exists()
            flaw = "its catalog is missing" if missing else ""
        except (CatalogDamaged, StorageFailed) as error:
            flaw = str(error)
        if flaw:
            note = "the next question rebuilds it (now: `council cortex index --rebuild`)"
            yield Finding(f"the index of {scope} cannot be used: {flaw}", "waits", note)
