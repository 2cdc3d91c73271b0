"""Run folders, `.council/runs/<run_id>/`, and the spare one: made while nobody waits, renamed when a command comes.

Making a folder and a file takes the disk as long as the sync of record 0, and that sync half as long again in a file
that grows, so all of it is done ahead of the admission that somebody waits for. A spare is never a run: its name begins
with a dot.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from council.engine.journal import JOURNAL, FileJournal
from council.engine.journal_file import JournalFile
from council.engine.records import RunHeader
from council.errors import StorageFailed

SPARE = ".spare-"


class RunFolders:
    """The folders of one home's runs."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._spare: tuple[Path, JournalFile] | None = None  # the folder and its journal without a line

    def journal(self, run_id: str) -> Path:
        return self._runs / run_id / JOURNAL

    def begin(self, header: RunHeader) -> FileJournal:
        """A new run's journal; record 0 is on disk when this returns. Raises StorageFailed: then there is no run.

        The spare gets its name after the sync, so that the sync need not write the rename: a crash before the folder
        above is synced leaves a spare, which is no run, and a command file that runs anew.
        """
        folder = self._runs / header.run_id
        try:
            spare, file = self._spare or self._made()
            self._spare = None
            with _gone_on_error(spare):
                journal = FileJournal.begin(folder / JOURNAL, header, file)
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
                spare, file = self._made()
                with _gone_on_error(spare):
                    file.make_room()
                self._spare = spare, file

    def _made(self) -> tuple[Path, JournalFile]:
        folder = self._runs / f"{SPARE}{secrets.token_hex(4)}"
        folder.mkdir()
        with _gone_on_error(folder):
            return folder, JournalFile.create(folder / JOURNAL)

    def discard(self) -> None:
        """Removes the spare, and those that processes left which died. Only who holds the home's lock may."""
        if self._spare is not None:
            self._spare[1].rest()
            self._spare = None
        for folder in self._runs.glob(f"{SPARE}*"):
            shutil.rmtree(folder, ignore_errors=True)


def never_began(journal: FileJournal) -> bool:
    """Whether nothing was done for the run yet. Unless it is marked as active, its command file runs anew."""
    return journal.attempts == 0 and journal.step_count == 0 and journal.committed is None


@contextlib.contextmanager
def _gone_on_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
