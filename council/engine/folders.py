"""Run folders, `.council/runs/<run_id>/`, and the spare one: made while nobody waits, renamed when a command comes.

Making a folder and a file takes the disk as long as the sync of record 0, so both are done ahead of the admission that
somebody waits for. A spare is never a run: its name begins with a dot.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from council.engine.journal import JOURNAL, FileJournal, create_journal_file
from council.engine.records import RunHeader
from council.errors import StorageFailed

SPARE = ".spare-"


class RunFolders:
    """The folders of one home's runs."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._spare: tuple[Path, int] | None = None  # the folder and its empty journal, opened

    def journal(self, run_id: str) -> Path:
        return self._runs / run_id / JOURNAL

    def begin(self, header: RunHeader) -> FileJournal:
        """A new run's journal; record 0 is on disk when this returns. Raises StorageFailed: then there is no run.

        The spare gets its name after the sync, so that the sync need not write the rename: a crash before the folder
        above is synced leaves a spare, which is no run, and a command file that runs anew.
        """
        folder = self._runs / header.run_id
        try:
            spare, fd = self._spare or self._made()
            self._spare = None
            with _gone_on_error(spare):
                journal = FileJournal.begin(folder / JOURNAL, header, fd)
                spare.rename(folder)
            return journal
        except OSError as error:
            raise StorageFailed(
                f"cannot create run {header.run_id}: {error.strerror}.", fix="make room on the disk", errno=error.errno
            ) from error

    def prepare(self) -> None:
        """Makes the spare, if there is none. Where that fails there is none: `begin` tries again, and says why not."""
        if self._spare is None:
            with contextlib.suppress(OSError, StorageFailed):
                self._spare = self._made()

    def _made(self) -> tuple[Path, int]:
        folder = self._runs / f"{SPARE}{secrets.token_hex(4)}"
        folder.mkdir()
        with _gone_on_error(folder):
            return folder, create_journal_file(folder / JOURNAL)

    def discard(self) -> None:
        """Removes the spare, and those that processes left which died. Only who holds the home's lock may."""
        if self._spare is not None:
            os.close(self._spare[1])
            self._spare = None
        for folder in self._runs.glob(f"{SPARE}*"):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _gone_on_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
