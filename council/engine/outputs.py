"""Where runs put their files, and which bytes there are ours.

A ledger remembers, per path, the SHA-256 of what we last wrote (and, while a write is under way, of what we are about
to write). A file whose bytes it does not know belongs to a person: it is left, and the run's file goes beside it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path, PurePosixPath

import msgspec

from council.errors import PathRefused
from council.ids import sha256_hex
from council.storage.files import write_atomic
from council.storage.paths import ConfinedRoot

_MAX_KEPT_BYTES = 64 << 20


class Written(msgspec.Struct, frozen=True):
    """What stands at `path`: `sha256s` are the bytes we were about to write and the ones they were to replace."""

    path: str
    run_id: str
    sha256s: tuple[str, ...]


class OutputLedger:
    """One small file per output path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str) -> Written | None:
        try:
            return msgspec.json.decode(self._file(path).read_bytes(), type=Written)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError:
            return None  # a damaged entry claims nothing: the file is then treated as a person's, and kept

    def note(self, path: str, run_id: str, sha256: str, *, current: str | None, sync: bool) -> None:
        """To be called before the bytes with `sha256` take the place of ours with the hash `current` (None: of nothing).
        Whichever of the two a crash leaves there, it is known as ours."""
        entry = Written(path, run_id, tuple(dict.fromkeys(known for known in (sha256, current) if known)))
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._file(path), msgspec.json.encode(entry), sync=sync)

    def entries(self) -> list[Written]:
        """All that is known; an entry that is damaged or changes just now is left out."""
        found = []
        for file in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(FileNotFoundError, msgspec.MsgspecError):
                found.append(msgspec.json.decode(file.read_bytes(), type=Written))
        return found

    def drop(self, path: str) -> None:
        """Nothing at `path` is ours any more."""
        self._file(path).unlink(missing_ok=True)

    def _file(self, path: str) -> Path:
        return self._folder / f"{sha256_hex(path)}.json"


class OutputFile:
    """One run's artifact: where it goes, and the care taken with what stands there."""

    def __init__(self, root: ConfinedRoot, ledger: OutputLedger, runs: Path, path: str, run_id: str) -> None:
        self._root = root
        self._ledger = ledger
        self._runs = runs
        self._run_id = run_id
        self.wanted = path
        self.path = path
        self.displaced = ""  # why the file does not go to the wanted path, a sentence about it

    @property
    def beside(self) -> str:
        """Where the file goes when the wanted path is somebody else's: `<slug>.<run_id>.md`."""
        pure = PurePosixPath(self.wanted)
        return str(pure.with_name(f"{pure.stem}.{self._run_id}{pure.suffix}"))

    def step_aside(self, reason: str, path: str = "") -> None:
        """The file goes beside the wanted path (or to `path`), and `reason` says why."""
        self.path = path or self.beside
        self.displaced = reason

    def grow(self, data: bytes) -> None:
        """Puts `data` there now, without a sync: the next version or the commit replaces it."""
        current = self.settle()
        self._ledger.note(self.path, self._run_id, sha256_hex(data), current=current, sync=False)
        self._root.write_atomic(self.path, data, sync=False)

    def claim(self, data: bytes) -> tuple[str, tuple[str, ...], str]:
        """Before a commit of `data`: (final path, hashes it may replace, path beside it)."""
        current = self.settle()
        self._ledger.note(self.path, self._run_id, sha256_hex(data), current=current, sync=True)
        entry = self._ledger.read(self.path)
        return self.path, entry.sha256s if entry else (), self.beside

    def keep(self) -> None:
        """What stands there of this run, as `artifact-<n>.md` in its folder. Raises StorageFailed."""
        for path in (self.wanted, self.beside) if self.wanted else ():
            entry, here = self._ledger.read(path), self._hash(path)
            if here and entry is not None and entry.run_id == self._run_id and here in entry.sha256s:
                keep_artifact(self._root, self._runs / self._run_id, path, here)

    def settle(self) -> str | None:
        """Chooses the path by what stands at the wanted one now; the SHA-256 of ours that is to be replaced, if any."""
        if not self.displaced:
            current = self._hash(self.path)
            entry = self._ledger.read(self.path)
            if current == "" or (current is not None and (entry is None or current not in entry.sha256s)):
                self.step_aside("was edited since Council wrote it (or is not ours), and was left as it is")
            else:
                if current is not None and entry is not None and entry.run_id != self._run_id:
                    self._keep_old(entry.run_id)
                return current
        return self._hash(self.path) or None

    def _hash(self, path: str) -> str | None:
        """None when nothing is there, empty when what is there is no file."""
        try:
            return self._root.sha256(path)
        except PathRefused:
            return ""

    def _keep_old(self, owner: str) -> None:
        kept = self._runs / owner / "artifact.md"
        if not kept.parent.is_dir():  # pruned: its folder must not come back
            kept = self._runs / self._run_id / f"artifact-of-{owner}.md"
        data = self._root.read(self.path, max_bytes=_MAX_KEPT_BYTES).data
        if not kept.exists():
            write_atomic(kept, data)
        elif kept.read_bytes() != data:  # its run was done again since, and that page's place is taken, too
            write_atomic(_free(kept), data)


def keep_artifact(root: ConfinedRoot, folder: Path, path: str, sha256: str) -> None:
    """Before a run goes on: its artifact, if it still stands there unchanged, as `artifact-<n>.md` in the run's folder.
    Raises StorageFailed."""
    try:
        data = root.read(path, max_bytes=_MAX_KEPT_BYTES).data
    except PathRefused:
        return  # gone, or no file any more: then a person has seen to it
    if sha256_hex(data) != sha256:
        return
    write_atomic(_free(folder / "artifact.md"), data)


def _free(path: Path) -> Path:
    """The first of `<stem>-1<ext>`, `<stem>-2<ext>`, … that is not there."""
    number = 1
    while (free := path.with_stem(f"{path.stem}-{number}")).exists():
        number += 1
    return free


class PlacedOutput(OutputFile):
    """Where an ended run's artifact went: nothing is looked at and nothing written."""

    def __init__(self, wanted: str, path: str, displaced: str) -> None:
        self.wanted = wanted
        self.path = path
        self.displaced = displaced

    @property
    def beside(self) -> str:
        return self.wanted

    def grow(self, data: bytes) -> None:
        """An ended run does not grow."""
