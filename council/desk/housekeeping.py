"""Looking after what a home keeps: repair, retention, copies of the database, the doctor's checks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from council.app.home_store import build_key_source
from council.audit.chain import RESTORED
from council.audit.log import require_signer
from council.desk.desk import Desk
from council.errors import UsageError
from council.ids import STEWARD, SystemClock
from council.keys.key_sources import require_keys
from council.storage.reader import is_older, require_brought_over
from council.storage.store import Tx
from council.storage.versions import DATABASE_FILE
from council.upkeep.copies import CopyLoss, copies_of, copy_database, flaw_of, require_whole, taken_back
from council.upkeep.doctor import Check, examine, ping
from council.upkeep.older_home import bring_over
from council.upkeep.repair import Flaw, repair
from council.upkeep.retention import Due, Retention

_AUDITED = 500  # run ids in one record


def repair_home(desk: Desk, *, dry_run: bool) -> list[Flaw]:
    """Mends what is wrong in a home that no daemon works on; `dry_run` only looks. Raises DaemonRunning, StorageFailed."""
    home = desk.home
    flaws: list[Flaw] = []
    if not home.runtime.is_dir():
        return flaws
    with desk.held(), desk.safe() as safe:
        if is_older(home.runtime):
            what = "an older version made this home: its runs are in files"
            if dry_run:
                flaws.append(Flaw(what, "mended", "to be moved into the database"))
            else:
                done = bring_over(home, safe.store)
                runs = f"runs {done.runs}, of them unfinished {done.unfinished}"
                flaws.append(Flaw(what, "mended", f"moved into the database: {runs}; calls to models {done.calls:,}"))
                lost = [f".council/{name} could not be read" for name in done.unread]
                flaws += [Flaw(each, "left", "restore it from a backup") for each in lost]
        return flaws + repair(home, safe.store, dry_run=dry_run)


@dataclass(frozen=True)
class PruneSummary:
    """The runs whose journals go, the receipts that go, and how many runs are kept."""

    gone: list[Due]
    removed: list[str]
    kept: int


def prune_home(desk: Desk, *, dry_run: bool) -> PruneSummary:
    """Lets go of the oldest runs; `dry_run` only says which. Raises DaemonRunning, StorageFailed."""
    if dry_run:  # takes no lock: nothing is changed, and a daemon may run
        retention = Retention(desk.store, desk.settings, SystemClock(), desk.tables)
        due = retention.due()
        return PruneSummary(due, retention.surplus(), retention.kept() - len(due))
    with desk.held(), desk.safe() as safe:
        retention = Retention(safe.store, desk.settings, SystemClock(), desk.tables)
        gone = list(retention.prune(retention.due()))
        return PruneSummary(gone, list(retention.tidy()), retention.kept())


def back_up(desk: Desk, file: Path) -> int:
    """Copies the database; the size of the copy in bytes. Raises UsageError, StorageFailed."""
    if file.exists():
        raise UsageError(f"{file} already exists.", fix="name another file, or move that one away")
    require_brought_over(desk.home.runtime)
    if desk.settings.database_url is not None:
        raise UsageError("this home's database is in PostgreSQL.", fix="use pg_dump, or the server's own backups")
    copy_database(desk.home, file.absolute())
    return file.stat().st_size


def chosen_copy(desk: Desk, copy: Path | None) -> tuple[Path, list[str]]:
    """The whole copy that may take the database's place, and the flaws of newer ones: the newest whole daily copy where none
    is named. Raises UsageError, and DaemonRunning while somebody holds the home: nobody is asked in vain."""
    if desk.settings.database_url is not None:
        raise UsageError("this home's database is in PostgreSQL.", fix="restore it with the server's own tools")
    flaws: list[str] = []
    if copy is not None:
        database = desk.home.runtime / DATABASE_FILE
        if copy.exists() and database.exists() and copy.samefile(database):
            fix = "name a copy: `council doctor` names those there are"
            raise UsageError(f"{copy} is the database of this home itself.", fix=fix)
        require_whole(copy)
    for daily in copies_of(desk.home) if copy is None else ():
        if not (flaw := flaw_of(daily)):
            copy = daily
            break
        flaws.append(flaw)
    if copy is None:
        what = " ".join(("no daily copy here is whole:", *flaws)) if flaws else "there is no daily copy here."
        raise UsageError(what, fix="name a file that `council backup` made")
    with desk.held():
        return copy, flaws


def take_back(desk: Desk, copy: Path) -> tuple[Path | None, CopyLoss]:
    """Returns where the database before the copy lies now (None: there was none), and what the copy lacks. Raises
    DaemonRunning, StorageFailed, and KeysRefused for the copy of a home with other keys; nothing is changed then."""

    def admit(tx: Tx) -> None:
        source = build_key_source(desk.home, desk.settings, desk.keys, desk.environ)
        require_signer(tx, partial(require_keys, source))

    with desk.held():
        aside, lost = taken_back(desk.home, copy.absolute(), admit)
        with desk.safe() as safe, safe.trail.log().transaction() as transaction:  # the audit of the copy ends before it
            end, known = transaction.head, transaction.noted
            if known is not None and known.seq > end.seq and (known.chain == end.chain or not end.seq):
                transaction.is_set_back, lost = True, replace(lost, records=(end.seq, known.seq))
            detail = {"copy": copy.name, "runs": list(lost.runs[:_AUDITED]), "calls": lost.calls, "tokens": lost.tokens}
            detail |= {"ended": list(lost.ended[:_AUDITED])} if lost.ended else {}
            transaction.record("effect", RESTORED, STEWARD.id, detail)
    return aside, lost


def checks_of(desk: Desk, *, online: bool) -> list[Check]:
    """The doctor's checks, without secrets. `online`: the model is asked one tiny question, too."""
    checks = examine(desk.home, desk.keys, desk.commands, flags=desk.flags, environ=desk.environ, clock=SystemClock())
    if online and not any(check.name == "settings" and check.status == "fail" for check in checks):
        checks.append(asyncio.run(ping(desk.home, desk.settings, desk.keys)))
    redact = desk.keys.redactor.redact
    return [replace(check, message=redact(check.message), fix=redact(check.fix)) for check in checks]
