"""Receipts that cannot be read, and command ids that no run answers for: made again from what journals say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from council.engine.commit import standing
from council.engine.journal import committed_in
from council.engine.receipts import MAX_RECEIPT_BYTES, ArtifactRef, IdBinding, Receipt
from council.engine.records import Committed
from council.errors import StorageFailed
from council.ids import sha256_hex
from council.storage.files import read_limited
from council.upkeep.repair.site import Finding, Site, free_name, names_in

_MAX_BINDING_BYTES = 1 << 16


def receipts(site: Site) -> Iterator[Finding]:
    """Every receipt is read; a damaged one is written again from its journal."""
    for name in names_in(site.home.receipts):
        path = site.home.receipts / name
        if path.suffix != ".json" or name.startswith("."):
            continue
        try:
            receipt = _decoded(read_limited(path, MAX_RECEIPT_BYTES), path.stem)
        except StorageFailed as error:
            yield Finding(error.message, "left", error.fix)
            continue
        if receipt is None:
            yield _rewritten(site, path)
        else:
            site.answered[path.stem] = receipt


def _decoded(data: bytes, run_id: str) -> Receipt | None:
    try:
        receipt = msgspec.json.decode(data, type=Receipt)
    except msgspec.MsgspecError:
        return None
    return receipt if receipt.run_id == run_id else None


def _rewritten(site: Site, path: Path) -> Finding:
    run_id = path.stem
    what = f"{site.shown(path)} is no whole receipt of run {run_id}"
    committed = committed_in(site.journal(run_id))
    if committed is not None:
        return write_from(site, run_id, committed, what)
    aside = free_name(path.with_name(f"{path.name}.damaged"))
    note = f"no journal can tell what it said; set aside as {aside.name}, and a command with its id would run anew"
    return site.mended(what, note, lambda: path.replace(aside))


def write_from(site: Site, run_id: str, committed: Committed, what: str) -> Finding:
    """The receipt that a commit record holds, put in its place and in the order of ends."""
    receipt = msgspec.json.decode(committed.receipt, type=Receipt)
    if receipt.artifact is not None:
        place = standing(site.root, committed.files[0])
        receipt = msgspec.structs.replace(receipt, artifact=ArtifactRef(place, committed.files[0].sha256))
    ended_ns = site.end_from_elsewhere(run_id)
    site.answered[run_id], site.ends[run_id] = receipt, ended_ns
    return site.mended(what, "written again from its journal", lambda: site.receipts.rewrite(receipt, ended_ns))


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def ids(site: Site) -> Iterator[Finding]:
    """Bindings that cannot be read, that name no run, or that are missing. After the runs were looked at."""
    rightful = _rightful(site)
    bound = set()
    for name in names_in(site.home.runtime / "ids"):
        path = site.home.runtime / "ids" / name
        if path.suffix != ".json" or name.startswith("."):
            continue
        binding = _binding(path)
        if binding is None:
            yield from _unreadable(site, path, rightful)
        elif binding.run_id in site.answered or binding.run_id in site.unfinished:
            bound.add(binding.id)
        elif binding.id not in rightful:
            what = f"the id {binding.id!r} is bound to run {binding.run_id}, which is not there"
            yield site.mended(what, "freed: a command with this id runs", path.unlink)
    for id_, right in rightful.items():
        if id_ not in bound:
            yield _bind(site, right, f"the id {id_!r} was bound to no run")


def _rightful(site: Site) -> dict[str, IdBinding]:
    """Which run answers for each id: one under way, else the one that was admitted last."""
    found = {}
    # within one second their ids do not tell the order of admission; a second run of an id begins after the first's end
    for run_id in sorted(site.answered, key=lambda run_id: (site.answered[run_id].created, site.ended_ns(run_id))):
        receipt = site.answered[run_id]
        if receipt.id is not None:
            found[receipt.id] = IdBinding(receipt.id, receipt.command_hash, run_id)
    for run_id in sorted(site.unfinished):
        header = site.unfinished[run_id]
        id_ = header.command.get("id")
        if id_ is not None:
            found[id_] = IdBinding(id_, header.command_hash, run_id)
    return found


def _binding(path: Path) -> IdBinding | None:
    try:
        binding = msgspec.json.decode(read_limited(path, _MAX_BINDING_BYTES), type=IdBinding)
    except (msgspec.MsgspecError, StorageFailed):
        return None
    return binding if path.stem == sha256_hex(binding.id) else None


def _unreadable(site: Site, path: Path, rightful: dict[str, IdBinding]) -> Iterator[Finding]:
    """One whose id a run still tells is bound again with those that are missing."""
    if any(sha256_hex(id_) == path.stem for id_ in rightful):
        return
    aside = free_name(path.with_name(f"{path.name}.damaged"))
    what = f"{site.shown(path)} is no whole binding of an id"
    yield site.mended(what, f"no run tells its id; set aside as {aside.name}", lambda: path.replace(aside))


def _bind(site: Site, binding: IdBinding, what: str) -> Finding:
    return site.mended(what, f"bound to run {binding.run_id}", lambda: site.receipts.bind(binding))
