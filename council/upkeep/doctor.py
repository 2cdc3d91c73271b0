"""Looks at everything a council needs to run, and says of each thing `ok`, `warn` or `fail` and what mends it.

Changes nothing but a probe file in each folder of the home, removed at once. Asks the model only when told to (`ping`).
What is not there yet is not mentioned.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import re
import shlex
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from council.agents.manifest import load_personas, require_roles, seeds_folder
from council.app.home_store import build_key_source, look_at
from council.app.knowledge_tools import read_rules
from council.audit.head_file import HEAD_FILE, lost_end
from council.commands.file_formats import NotACommand
from council.commands.recurring import parse_recurring
from council.commands.types import CommandTypes
from council.deliberation.deliberate_admission import TRIAD
from council.engine.ledger import Ledger
from council.errors import CommandInvalid, ConfigError, CouncilError, PathRefused, PersonaError, StorageFailed
from council.ids import Clock, SystemClock, timestamp
from council.keys.key_sources import require_keys
from council.knowledge.library import is_closed, is_denied
from council.redaction import Redactor
from council.safety.untrusted import plain_line
from council.sandbox.job import Level
from council.sandbox.probes import probe_zygote
from council.settings import Home, LoadedSettings, ProviderKeys, Settings, load_settings
from council.storage.command_drop import is_command_name
from council.storage.drivers import PostgresDriver, flaw_in, network_file_system
from council.storage.files import FileLock, read_limited, storage_failed
from council.storage.paths import ConfinedRoot
from council.storage.reader import Looking
from council.storage.versions import DATABASE_FILE
from council.turns.model_building import build_model, provider_of
from council.upkeep.copies import copies_of, day_of, flaw_of, set_aside
from council.upkeep.model_trial import trial
from council.upkeep.repair import damaged_sessions, session_files, strays

MIN_FREE_BYTES = 100 << 20  # a run's journal holds whole prompts: some megabytes each
LOW_FREE_BYTES = 1 << 30
_CLOCK_TOLERANCE = timedelta(minutes=2)  # between two machines that share a home
_MIN_INSTANCES_LEFT = 4
_MIN_WATCHES = 1024
_COPY_AGE = timedelta(days=2)  # the daemon makes one each day
_SHOWN = 3
_SHOWN_FILES = 10
_MAX_WALKED = 20_000
_MAX_KEY_FILE_BYTES = 64 << 10  # a file of credentials is short
_CREDENTIAL_NAME = re.compile(
    r"(?i)(?:pass(?:wd|word|phrase)s?|api[_-]?keys?|private[_-]?keys?|tokens?|secrets?)\.[a-z]{2,5}$"
)
_MAX_RECURRING_BYTES = 1 << 20  # no home can be set to take a larger command

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One finding. `fix` is a command or a sentence that mends it, empty when all is well."""

    name: str
    status: Status
    message: str
    fix: str = ""


def examine(
    home: Home,
    keys: ProviderKeys,
    types: CommandTypes,
    *,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    clock: Clock,
) -> list[Check]:
    """Every check that asks nothing of the outside."""
    settings_check, loaded = check_settings(home, flags, environ)
    checks = [Check("python", "ok", f"Python {platform.python_version()}")]
    checks += [*check_folders(home), check_file_system(home), settings_check]
    if loaded is not None:
        checks += [check_model(home, loaded.settings, keys), check_personas(home, loaded.settings)]
        checks += [check_keys(home, loaded.settings, keys, environ), check_watching(loaded.settings)]
        checks += [check_exposed(home, loaded.settings, keys.redactor), check_sandbox(loaded.settings)]
    checks += [*check_schedules(home, types), check_disk(home)]
    if loaded is not None:
        kept = check_kept(home, loaded.settings, clock)
        if any((check.name, check.status) == ("database", "fail") for check in kept):
            checks = [check for check in checks if check.name != "database"]  # met while the model's key was looked for
        checks += kept
    return checks


def check_kept(home: Home, settings: Settings, clock: Clock) -> list[Check]:
    """Checks what only the database tells, once it can be read."""
    checks = [*check_database(home, settings)]
    if any(check.status == "fail" for check in checks):
        return checks
    store = look_at(home, settings)
    if settings.database_url is None and (home.runtime / DATABASE_FILE).exists():
        checks += [*check_sqlite(), *check_copies(home, store, clock), *check_set_aside(home)]
    if lost := lost_end(store, home.runtime):
        fix = "council audit verify; then council restore, if a copy has the records, or council audit renew to accept their loss"
        checks.append(Check("lost records", "warn", lost, fix))
    return [*checks, *check_memory(home, store), *check_leftovers(home, store), check_clock(store, clock)]


async def ping(home: Home, settings: Settings, keys: ProviderKeys) -> Check:
    try:
        tried = await trial(home, settings, keys, settings.model, SystemClock(), features=False)
    except CouncilError as error:
        return Check("model answers", "fail", error.message, error.fix)
    return Check("model answers", "ok", f"{tried.model} answered: {tried.words}")


# ── the machine ──────────────────────────────────────────────────────────────────────────────────────────────────────


def check_disk(home: Home) -> Check:
    free = shutil.disk_usage(home.root).free
    shown = f"{free / (1 << 30):.1f} GiB free"
    if free < MIN_FREE_BYTES:
        return Check("disk", "fail", shown, f"make room: df -h {shlex.quote(str(home.root))}")
    if free < LOW_FREE_BYTES:
        return Check("disk", "warn", shown, f"make room soon: df -h {shlex.quote(str(home.root))}")
    return Check("disk", "ok", shown)


def check_clock(store: Looking, clock: Clock) -> Check:
    """A clock that was put back would sort new runs before old ones."""
    now = clock.now()
    finished = Ledger(store).newest_finish()
    newest = datetime.fromisoformat(finished) if finished else None
    fix = "set the clock: timedatectl set-ntp true"
    if newest is not None and newest > now + _CLOCK_TOLERANCE:
        return Check("clock", "fail", f"it is {timestamp(now)}, before the newest receipt ({timestamp(newest)})", fix)
    return Check("clock", "ok", timestamp(now))


def check_watching(settings: Settings, proc: Path = Path("/proc")) -> Check:
    """Checks that the system can wake the inbox; the timed scan remains when it cannot."""
    name = "watching"
    every = f"commands/ is scanned every {settings.scan_interval_s:g} s"
    if settings.watch == "poll":
        return Check(name, "ok", f"polling: {every}")
    if not sys.platform.startswith("linux"):
        return Check(name, "ok", "file events of the system" if sys.platform == "darwin" else every)
    limits = proc / "sys" / "fs" / "inotify"
    try:
        watches, instances = (int((limits / f"max_user_{kind}").read_text()) for kind in ("watches", "instances"))
    except (OSError, ValueError):
        fix = "council run with COUNCIL_WATCH=poll"
        return Check(name, "warn", f"the limits of inotify cannot be read; {every}", fix)
    links: list[Path] = []
    for process in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or may not be looked at
            links += (process / "fd").iterdir()
    used = 0  # by this user's processes
    for link in links:
        with contextlib.suppress(OSError):
            used += os.readlink(link) == "anon_inode:inotify" and link.parents[1].stat().st_uid == os.geteuid()
    shown = f"inotify: {watches} watches, {used} of {instances} instances in use"
    if instances - used < _MIN_INSTANCES_LEFT:
        return Check(name, "warn", f"{shown}; else {every}", "sudo sysctl fs.inotify.max_user_instances=1024")
    if watches < _MIN_WATCHES:
        return Check(name, "warn", f"{shown}; else {every}", "sudo sysctl fs.inotify.max_user_watches=65536")
    return Check(name, "ok", shown)


def check_sandbox(settings: Settings) -> Check:
    """Tries to get out of the cage for foreign code. Without one it is refused, and all else works."""
    probe = asyncio.run(probe_zygote(settings))
    if probe.level is None:
        return Check("sandbox", "warn", f"foreign code is refused: {probe.message}", probe.fix)
    enough = probe.level >= Level.L2
    return Check("sandbox", "ok" if enough else "warn", f"{probe.level.name}: {probe.message}", probe.fix)


# ── the home ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_folders(home: Home) -> Iterator[Check]:
    for folder in (home.commands, home.artifacts, home.personas, home.session_states, home.runtime):
        name, place, made = f"{folder.name}/", shlex.quote(str(folder)), f"council init {shlex.quote(str(home.root))}"
        if not folder.is_dir() and os.path.lexists(folder):
            what = "a symbolic link that leads to no folder" if folder.is_symlink() else "a file, and not a folder"
            yield Check(name, "fail", f"is {what}", f"mv {place} {shlex.quote(f'{folder}.aside')} && {made}")
            continue
        if not folder.is_dir() and folder == home.runtime:
            yield Check(name, "ok", "not there yet; the first run makes it")
            continue
        if not folder.is_dir():
            yield Check(name, "fail", "is missing", made)
            continue
        if folder == home.session_states and folder.is_symlink():
            yield Check(name, "fail", "is a symbolic link", "replace the link with the folder itself")
            continue
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".council-doctor-"):
                pass
        except OSError as error:
            is_denied = isinstance(error, PermissionError)
            fix = f"chmod u+rwx {place}" if is_denied else storage_failed(error, name).fix
            yield Check(name, "fail", f"cannot be written ({error.strerror})", fix)
            continue
        if folder == home.runtime and folder.stat().st_mode & 0o077:
            yield Check(name, "warn", "others may read the prompts in it", f"chmod 700 {place}")
        else:
            yield Check(name, "ok", "exists and can be written")


def check_file_system(home: Home) -> Check:
    """A rename is atomic inside one file system only."""
    name = "one file system"
    folders = [folder for folder in (home.commands, home.failed, home.artifacts, home.runtime) if folder.is_dir()]
    devices = {folder.stat().st_dev for folder in folders}
    if len(devices) > 1:
        others = [folder for folder in folders if folder.stat().st_dev != folders[0].stat().st_dev]
        where = f"{', '.join(f'{folder.relative_to(home.root)}/' for folder in others)} is on another file system"
        message = f"{where} than commands/, so files cannot be moved there in one step"
        return Check(name, "fail", message, "mount the home as a whole, not its folders")
    return Check(name, "ok", "files are moved in one step")


def check_settings(
    home: Home, flags: Mapping[str, object], environ: Mapping[str, str]
) -> tuple[Check, LoadedSettings | None]:
    try:
        loaded = load_settings(home, flags=flags, environ=environ)
    except ConfigError as error:
        return Check("settings", "fail", error.message, error.fix), None
    if loaded.warnings:
        return Check("settings", "warn", "; ".join(loaded.warnings), "council config show"), loaded
    changed = sum(source != "default" for source in loaded.sources.values())
    return Check("settings", "ok", f"valid, {changed} changed from the default"), loaded


def check_keys(home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> Check:
    """Checks that audit and vault have the keys they had: none are made, and nothing is opened."""
    if not (home.runtime / HEAD_FILE).exists():
        return Check("keys", "ok", "none used yet; the audit and the vault create theirs when they first need them")
    try:
        source = build_key_source(home, settings, keys, environ)
        return Check("keys", "ok", f"{len(require_keys(source).keys)} in {source.name}")
    except CouncilError as error:
        return Check("keys", "fail", error.message, error.fix)


def check_model(home: Home, settings: Settings, keys: ProviderKeys) -> Check:
    """Tries to build the chosen model: its key or its script must be there. The key itself is not tried."""
    provider, _, detail = settings.model.partition(":")
    try:
        if provider == "gemini" and keys.get("GEMINI_API_KEY") is None and keys.get("GOOGLE_API_KEY") is None:
            fix = f"echo 'GEMINI_API_KEY=…' >> {shlex.quote(str(home.root / '.env'))}, or use --model offline"
            return Check("model", "fail", f"{settings.model} needs a key, and GEMINI_API_KEY is not set", fix)
        if provider == "scripted" and not (home.root / detail).is_file():
            return Check("model", "fail", f"the script {detail} does not exist", "write it, or choose another model")
        build_model(home, settings, keys, settings.model)
        if provider == "offline":
            return Check("model", "ok", "offline: extractive, no language model")
        found, setup = provider_of(home, settings, keys, settings.model)
        has_key = any(keys.get(name) is not None for name in found.keys_of(setup.options))
        return Check("model", "ok", f"{settings.model}{', its key is set' if has_key else ''}")
    except CouncilError as error:  # of the vault, too
        return Check("database" if isinstance(error, StorageFailed) else "model", "fail", error.message, error.fix)


def check_personas(home: Home, settings: Settings) -> Check:
    try:
        personas = load_personas(home.personas, seeds_folder(home, settings))
        require_roles(personas, TRIAD)
    except PersonaError as error:
        return Check("personas", "fail", error.message, error.fix)
    return Check("personas", "ok", ", ".join(sorted(personas)))


def check_exposed(home: Home, settings: Settings, redactor: Redactor) -> Check:
    """Files that agents may read and that look like credentials, by their names or by what they hold."""
    rules, found = read_rules(home.root, settings), []
    whole = True
    with ConfinedRoot(home.root) as root:
        try:
            for path in root.walk(max_entries=_MAX_WALKED, skip=partial(is_closed, rules)):
                if not is_denied(rules, path) and (_CREDENTIAL_NAME.search(path) or _holds_a_key(root, path, redactor)):
                    found.append(path)
        except PathRefused:
            whole = False
    looked = "" if whole else f" (among the first {_MAX_WALKED} entries)"
    if not found:
        return Check("credentials", "ok", f"no readable file looks like one{looked}")
    shown = ", ".join(plain_line(path, 80) for path in found[:_SHOWN_FILES])
    more = f" and {len(found) - _SHOWN_FILES} more" if len(found) > _SHOWN_FILES else ""
    fix = "move them out of the home, or add them to deny in council.toml"
    return Check("credentials", "warn", f"agents may read what looks like credentials: {shown}{more}{looked}", fix)


def _holds_a_key(root: ConfinedRoot, path: str, redactor: Redactor) -> bool:
    try:
        data = root.read(path, max_bytes=_MAX_KEY_FILE_BYTES).data
    except (PathRefused, StorageFailed):  # too large, gone meanwhile, or of somebody else
        return False
    text = data.decode("utf-8", "replace")
    return redactor.redact(text) != text


def check_memory(home: Home, store: Looking) -> Iterator[Check]:
    """Checksums of all session files. A damaged one is a warning: its last good copy takes its place when it is read. No run
    gets past a link."""
    count = len(session_files(home))
    damaged = damaged_sessions(home, store)
    for session in damaged:
        fix = "council repair (or nothing: the next run restores the last good copy)" if session.copy else session.fix
        yield Check("memory", "fail" if session.stops else "warn", session.what, fix)
    if not damaged:
        whole = f"{count} session file{'s' if count != 1 else ''}, all whole"
        yield Check("memory", "ok", whole if count else "nothing remembered yet")


def check_database(home: Home, settings: Settings) -> Iterator[Check]:
    """The database, read through, and its daily copies; nothing where there is none yet."""
    name = "database"
    path = home.runtime / DATABASE_FILE
    if settings.database_url is not None:
        try:
            Ledger(look_at(home, settings)).count()
            where = PostgresDriver(settings.database_url).where
            yield Check(name, "ok", f"PostgreSQL at {where}; back it up with the server's tools")
        except CouncilError as error:
            yield Check(name, "fail", error.message, error.fix)
        return
    network = network_file_system(home.runtime) if path.exists() else ""
    if network:
        yield Check(name, "fail", f"the home is on a network drive ({network})", "move it to a local disk")
    copies = copies_of(home)
    none = "; no daily copy yet"
    newest = f"; daily copies: {', '.join(copy.name for copy in copies)}" if copies else none
    try:
        flaw = flaw_in(path) if path.exists() else ""
        count = 0 if flaw else Ledger(look_at(home, settings)).count()
        problem = f"{path.name} is damaged ({flaw})" if flaw else ""
        fix = "council restore FILE, with a file that `council backup` made"
    except CouncilError as error:
        flaw, problem, fix = "", error.message.removesuffix("."), error.fix
    if problem:
        flaws = {copy.name: flaw_of(copy) for copy in copies}
        judged = ", ".join(f"{copy} ({'not whole' if spoilt else 'whole'})" for copy, spoilt in flaws.items())
        whole = [copy for copy, spoilt in flaws.items() if not spoilt]
        fix = f"council restore (restores {whole[0]})" if flaw and whole else fix
        yield Check(name, "fail", f"{problem}{f'; daily copies: {judged}' if copies else none}", fix)
        return
    if not path.exists():
        return
    runs = f"{count} run{'s' if count != 1 else ''}, SQLite {sqlite3.sqlite_version}{newest}"
    if os.access(path, os.W_OK):
        yield Check(name, "ok", runs)
    else:
        is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
        fix = "make the file system writable" if is_read_only else f"chmod u+rw {shlex.quote(str(path))}"
        yield Check(name, "fail", f"{runs}; this user cannot write {path.name}", fix)


def check_sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Iterator[Check]:
    """The defect that its authors name "WAL-reset": from 3.7.0 on, mended in 3.51.3. Council itself cannot meet it."""
    if version < (3, 51, 3):
        shown = ".".join(map(str, version))
        when = "if another program writes to the database while Council does (the WAL-reset bug)"
        fix = "let nothing but Council write there, or install SQLite 3.51.3"
        yield Check("sqlite", "warn", f"{shown} may lose data {when}", fix)


def check_copies(home: Home, store: Looking, clock: Clock) -> Iterator[Check]:
    """The newest daily copy against what happened since."""
    ledger, fix = Ledger(store), "council backup FILE now; a daemon that stays (council run) makes one each day"
    copies, first = copies_of(home), ledger.first_created()
    finished = ledger.newest_finish()
    if not copies:
        if first and clock.now() - datetime.fromisoformat(first) > _COPY_AGE:
            yield Check("daily copies", "warn", f"there is none, although the first run was on {first}", fix)
    elif finished and datetime.fromisoformat(finished) - day_of(copies[0]) > _COPY_AGE:
        told = f"the newest is {copies[0].name}, but the newest run was on {finished}"
        yield Check("daily copies", "warn", told, fix)


def check_set_aside(home: Home) -> Iterator[Check]:
    """The databases that restores have replaced: nothing else lets go of them but `forget`."""
    shown = []
    for path in set_aside(home):
        if path.name.endswith(("-wal", "-shm")):
            continue
        status = path.stat()
        day = datetime.fromtimestamp(status.st_mtime, UTC)
        shown.append(f"{path.name} ({status.st_size / (1 << 20):.1f} MiB, last written on {day:%Y-%m-%d})")
    if shown:
        told = "replaced by `council restore`, and may be removed: rm .council/council.db.before-restore*"
        yield Check("set aside", "ok", f"{_listed(shown)}: {told}")


def check_schedules(home: Home, types: CommandTypes) -> Iterator[Check]:
    """The recurring commands; nothing in a home without any."""
    folder = home.commands / "recurring"
    names = [name for name in _names(folder, "*") if is_command_name(name)]
    bad = 0
    for name in names:
        try:
            parse_recurring(types, name, read_limited(folder / name, _MAX_RECURRING_BYTES))
        except NotACommand:
            continue
        except OSError as error:
            bad += 1
            why = error.strerror or str(error)
            yield Check("schedules", "warn", f"commands/recurring/{name}: {why}", "make it readable")
        except (CommandInvalid, StorageFailed) as error:
            bad += 1
            yield Check("schedules", "warn", f"commands/recurring/{name}: {error.message}", error.fix)
    if names and not bad:
        yield Check("schedules", "ok", f"{len(names)} recurring command{'s' if len(names) != 1 else ''}")


def check_leftovers(home: Home, store: Looking) -> Iterator[Check]:
    """Names who holds the home; and, when nobody does, what an end without warning left behind."""
    holder = FileLock.holder(home.lock_file)
    if holder is not None:
        running = f"running, pid {holder.get('pid', '?')} on {holder.get('host', '?')}"
        edited = home.settings_edited_since(str(holder["started"])) if "started" in holder else []
        if edited:
            told = f"{running}; it does not know the changes in {' and '.join(edited)}"
            yield Check("daemon", "warn", told, "restart it")
        else:
            yield Check("daemon", "ok", running)
        return
    yield Check("daemon", "ok", "not running")
    once = "council run --once"
    if unfinished := Ledger(store).unfinished():
        yield Check("unfinished runs", "warn", f"{_listed(unfinished)}: they continue at the next start", once)
    if taken := _names(home.commands, ".*.taken"):
        yield Check("taken files", "warn", f"{_listed(taken)}: the next start completes them", once)
    staged = list(strays(home, store, unfinished))
    if staged:
        shown = [str(path.relative_to(home.root)) for path in staged]
        yield Check("temporary files", "warn", f"{_listed(shown)}: left by a process that was killed", "council repair")


def _names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern)) if folder.is_dir() else []


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
