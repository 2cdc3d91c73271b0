"""The commit of staged files: paths and hashes only, whatever the files are.

`stage` puts every file, synced, beside its final place; then the journal's commit record is the point of no return;
then `roll_forward` renames. After a crash `roll_forward` alone completes the commit from the record.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from council.engine.records import CommitFile
from council.errors import PathRefused
from council.ids import sha256_hex
from council.storage.paths import ConfinedRoot

_AT_ONCE = 16  # files of a commit, which take some 100 µs each; then the loop runs


@dataclass(frozen=True)
class Output:
    """A file to commit. `replaces` and `is_copy`: see CommitFile."""

    path: str
    data: bytes
    replaces: tuple[str, ...] | None = None
    otherwise: str = ""
    is_copy: bool = False


@dataclass(frozen=True)
class StoreEntry:
    """Bytes that are kept in the store, and never seen in a folder."""

    owner: str
    name: str
    data: bytes


def stage(root: ConfinedRoot, outputs: list[Output], run_id: str) -> tuple[CommitFile, ...]:
    """Writes every output beside its final place, and syncs all but copies. It belongs in a thread: while a file system syncs,
    even making a file may wait. Raises StorageFailed; then nothing stays staged."""
    staged: list[CommitFile] = []
    try:
        with root.folders() as opened:
            for output in outputs:
                temporary = root.stage(output.path, output.data, run_id, opened)
                digest = sha256_hex(output.data)
                staged.append(
                    CommitFile(temporary, output.path, digest, output.replaces, output.otherwise, output.is_copy)
                )
        root.sync(file.staged for file in staged if not file.is_copy)
    except BaseException:
        unstage(root, tuple(staged))
        raise
    return tuple(staged)


def unstage(root: ConfinedRoot, files: tuple[CommitFile, ...]) -> None:
    """Removes staged files whose commit was never recorded."""
    for file in files:
        with contextlib.suppress(PathRefused):
            root.unlink(file.staged)


async def roll_forward(root: ConfinedRoot, files: tuple[CommitFile, ...]) -> list[str]:
    """Renames what is still staged; where each file now stands, in order. Safe to repeat. Raises StorageFailed."""
    finals: list[str] = []
    with root.folders() as opened:
        for file in files:
            if len(finals) % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            target = file.final
            if file.replaces is not None and file.otherwise:
                known = (None, file.sha256, *file.replaces)
                target = file.final if root.fingerprint(file.final) in known else file.otherwise
            try:
                root.rename(file.staged, target, opened)
            except PathRefused:
                if root.kind(file.staged) != "absent":
                    raise
                target = standing(root, file)  # it was renamed before a crash
            finals.append(target)
    placed = [final for final, file in zip(finals, files, strict=True) if not file.is_copy]
    await asyncio.to_thread(root.sync_folders, placed)
    return finals


def standing(root: ConfinedRoot, file: CommitFile) -> str:
    """The place of a file whose commit was rolled forward. Changes nothing."""
    if not file.otherwise or root.fingerprint(file.final) == file.sha256:
        return file.final
    return file.otherwise if root.fingerprint(file.otherwise) == file.sha256 else file.final
