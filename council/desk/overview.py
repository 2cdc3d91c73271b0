"""The state of a home: its daemon, the runs under way, what waits, and how the last runs ended."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council.budgets.spend import Totals, day_totals
from council.desk.desk import Desk
from council.desk.failed_folder import refused_files
from council.engine.ledger import Ledger
from council.errors import CommandInvalid, JournalDamaged, StorageFailed
from council.ids import timestamp, timestamp_of
from council.plans.register import waiting_plans
from council.storage.command_drop import is_command_name, is_left_alone
from council.storage.files import FileLock

if TYPE_CHECKING:
    from council.engine.ledger import RunEntry
    from council.plans.plan import Plan
    from council.settings import Home

FIRST_QUESTION = '`council submit --wait --task "…" DOCUMENT`'
UNOPENED = "database"  # of `degraded`, where a daemon waits until it can open the database, or nobody can read it
_RECENT = 10
_UNFINISHED = 100  # shown of those that no daemon works on: each is a journal to read
_NOTE_BYTES = 1 << 20


@dataclass(frozen=True)
class HomeState:
    """The state of a home. `daemon`: what it wrote into the lock, None where none runs. `runs`: those under way as the
    daemon tells them, else the first that have not ended; `unfinished`: how many these are in all. `unadmitted`: files
    that the disk or the database does not take now, each with the reason. `not_commands`: files in `commands/` and
    `commands/recurring/` that no command can be. `companions`: what runs beside the inbox. `degraded`:
    those that do not run as they should, with the reason. `edited_settings`: files that changed after the daemon read
    them. `refused`: how many files in `commands/failed/` could not
    become a run, and the newest with the reason. `plans`: those that wait for a person, with since when and for whom.
    `recent`: the last that ended, `artifact` with the page relative to the home, empty without one."""

    home: str
    state: str
    daemon: dict[str, Any] | None
    companions: list[str]
    degraded: dict[str, str]
    edited_settings: list[str]
    runs: list[dict[str, Any]]
    unadmitted: list[dict[str, str]]
    model: str | None
    unfinished: int | None
    not_commands: list[str]
    waiting_files: list[str]
    refused: dict[str, Any]
    plans: list[dict[str, str]]
    recent: list[dict[str, str]]

    def as_json(self) -> dict[str, Any]:
        """Plain values. `model` stands there while a daemon tells it, `unfinished` while none runs."""
        absent = {name for name in ("model", "unfinished") if getattr(self, name) is None}
        return {name: value for name, value in asdict(self).items() if name not in absent}


def overview(desk: Desk, unread: list[StorageFailed] | None = None) -> HomeState:
    """The state, without the database's part if it cannot be read: its error goes into `unread` and `degraded`. It is raised
    where no `unread` is given. Raises ConfigError, StorageFailed."""
    home = desk.home
    holder = FileLock.holder(home.lock_file)
    published: dict[str, Any] = {"state": "STOPPED"} if holder is None else _published(home)
    degraded = published.get("degraded", {})
    runs: list[dict[str, Any]] = published.get("runs", [])
    unfinished: int | None = None
    plans: list[Plan] = []
    recent: list[RunEntry] = []
    now = int(datetime.now(UTC).timestamp() * 1000)
    try:
        if holder is None:
            runs, unfinished = _under_way(desk.ledger, holder, published), len(desk.ledger.unfinished())
        if UNOPENED not in degraded:
            plans, recent = waiting_plans(desk.store, now), desk.ledger.newest(_RECENT, ended_only=True)
    except StorageFailed as error:
        if unread is None:
            raise
        unread.append(error)
        degraded = {**degraded, UNOPENED: str(error)}
    bound = {run["file"] for run in runs}
    meant = [name for name in _meant(home.commands) if name not in bound]
    not_commands = [name for name in meant if not is_command_name(name) or _is_note(home.commands / name)]
    not_recurring = [f"{home.recurring.name}/{name}" for name in _meant(home.recurring) if not is_command_name(name)]
    refused, newest = refused_files(home.failed)

    def redact(name: str) -> str:  # keys are loaded only where there is a name
        return desk.keys.redactor.redact(name)

    return HomeState(
        home=str(home.root),
        state=published["state"],
        daemon=holder,
        companions=published.get("companions", []),
        degraded=degraded,
        edited_settings=edited_settings(home, holder),
        runs=runs,
        unadmitted=published.get("unadmitted", []),
        model=published.get("model"),
        unfinished=unfinished,
        not_commands=list(map(redact, (*not_commands, *not_recurring))),
        waiting_files=[redact(name) for name in meant if name not in not_commands],
        refused={"count": refused, "newest": newest and {key: redact(text) for key, text in asdict(newest).items()}},
        plans=[
            {"plan": plan.plan_id, "title": plan.name, "state": plan.state(now)}
            | {"since": timestamp_of(plan.created_ms), "for": plan.principal}
            for plan in plans
        ],
        recent=list(map(in_short, recent)),
    )


def in_short(entry: RunEntry) -> dict[str, str]:
    """An ended run in a list of the last ones."""
    return {key: getattr(entry, key) for key in ("run_id", "status", "title", "artifact", "finished")}


def runs_under_way(desk: Desk) -> list[dict[str, Any]]:
    """The runs of `overview` alone. Raises StorageFailed."""
    holder = FileLock.holder(desk.home.lock_file)
    return _under_way(desk.ledger, holder, {} if holder is None else _published(desk.home))


def edited_settings(home: Home, daemon: dict[str, Any] | None) -> list[str]:
    """The files of settings that changed after the daemon read them; none without a daemon."""
    started = (daemon or {}).get("started")
    return home.settings_edited_since(started) if started else []


def spent_today(desk: Desk) -> Totals:
    """The spending of all runs of this day (UTC). Raises ConfigError, StorageFailed."""
    return day_totals(desk.store, f"{datetime.now(UTC):%Y-%m-%d}")


def _published(home: Home) -> dict[str, Any]:
    """The state of the daemon and of its runs, as it publishes them."""
    try:
        published = json.loads(home.state_file.read_bytes())
        return published if {"state", "runs", "model"} <= published.keys() else {"state": "STARTING"}
    except (OSError, ValueError, AttributeError):
        return {"state": "STARTING"}


def _under_way(ledger: Ledger, holder: dict[str, Any] | None, published: dict[str, Any]) -> list[dict[str, Any]]:
    if holder is not None:
        runs: list[dict[str, Any]] = published.get("runs", [])
        return runs
    return [_unfinished(ledger, run_id) for run_id in ledger.unfinished()[:_UNFINISHED]]


def _unfinished(ledger: Ledger, run_id: str) -> dict[str, Any]:
    try:
        journal = ledger.journal(run_id)
    except JournalDamaged:  # it fails alone at the next start, which says why
        [row] = ledger.starting_with(run_id, 1)
        told = {"title": row.title, "file": row.file, "lane": row.lane, "output": row.artifact}
        return {"run_id": run_id, "status": row.status, **told}
    header = journal.header
    run = {"run_id": run_id, "status": "queued", "begun": journal.begun, "title": header.title}
    run |= {"file": header.file.name, "lane": header.lane, "output": header.output_path}
    if not journal.waits:
        return run
    wait = journal.waits[-1]
    until = timestamp(datetime.fromisoformat(wait.since) + timedelta(seconds=wait.seconds))
    return {**run, "status": "waiting", "waiting_for": wait.reason, "until": until, "error": wait.error}


def _meant(folder: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        files = sorted(entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False))
        return [name for name in files if not is_left_alone(name)]
    return []


def _is_note(file: Path) -> bool:
    """True for Markdown that is no command: the inbox leaves it alone."""
    if file.suffix.lower() != ".md":
        return False
    from council.commands.file_formats import NotACommand, read_document  # not at the top: only a note needs YAML

    try:
        with file.open("rb") as stream:
            read_document(file.name, stream.read(_NOTE_BYTES))
    except NotACommand:
        return True
    except (CommandInvalid, OSError):
        pass  # a command with a fault, or gone meanwhile: the daemon says what is wrong
    return False
