"""The inbox: which files in `commands/` become runs, when, and how they are taken at the end (promise *Commands*).

The directory is the truth: a scan compares it with what is known; events only wake a scan. A file stays where it was
dropped until its run ends. Nothing here is ever deleted unless its bytes were admitted and their run has its receipt.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from dataclasses import dataclass
from typing import Any

from council.audit.trail import Trail
from council.commands.file_formats import NotACommand, Unparsable, located, problems_of, read_document
from council.commands.models import CommandBase, ControlBase, RunBase
from council.commands.parsing import parse_command
from council.commands.types import CommandTypes
from council.daemon.command_file_moves import RunFile, Taking, is_admitted, printable
from council.deadline import beside_the_loop
from council.engine.admission import refusing
from council.engine.engine import Engine
from council.engine.records import FileIdentity
from council.engine.runs import ActiveRun
from council.errors import CommandInvalid, PathRefused, StorageFailed, TookTooLong
from council.events import CommandAnswer, CommandDelay, CommandRefusal, CommandWait, ControlAct, Events
from council.ids import STEWARD, Clock, sha256_hex
from council.settings import Home, Settings
from council.storage.command_drop import is_command_name, require_owner
from council.storage.paths import ConfinedRoot, FileBytes

log = logging.getLogger(__name__)

_ADMISSIONS_PER_BREATH = 20  # then the loop runs: a crowd must not hold up the runs under way
_SCAN_S = 1.0  # then the directory is listed anew: what came meanwhile may be urgent
_LISTING_SHARE = 4.0  # but a scan takes at least so many times what its listing took: it must do more than list
_CROWD = 100  # files that wait for their admission; among more of them control commands are looked for first
_LOOK_AHEAD_S = 0.25  # of each scan
_AUDITED_CHARS = 600

_Mark = tuple[int, int, int]  # inode, size, time of the last change


@dataclass
class _Arrival:
    """A file that is not a run yet: when it last changed (monotonic seconds), and whether it is no command at all."""

    mark: _Mark
    since_s: float
    ignored: bool = False
    audited: bool = False


@dataclass
class ScanResult:
    """The outcome of one scan.

    `pending`: files that may still become runs. `next_look_s`: the time until one of them is to be looked at again.
    `cut_short`: time was up before every file was looked at.
    """

    admitted: int = 0
    refused: int = 0
    pending: int = 0
    next_look_s: float | None = None
    cut_short: bool = False

    def look_within(self, seconds: float | None) -> None:
        """Brings the next look forward to then; None changes nothing."""
        if seconds is not None:
            due = max(0.01, seconds)
            self.next_look_s = due if self.next_look_s is None else min(self.next_look_s, due)


@dataclass(eq=False)
class Inbox:
    """Watches over one home's `commands/`. `_only`: the one file that counts, for a door that drains its own drop and leaves."""

    _home: Home
    _root: ConfinedRoot
    _types: CommandTypes
    _engine: Engine
    _taking: Taking
    _settings: Settings
    _events: Events
    _clock: Clock
    _audit: Trail
    _only: str | None = None

    def __post_init__(self) -> None:
        self._seen: dict[str, _Arrival] = {}
        self._listed: set[str] = set()
        self._looked_at: set[tuple[str, _Mark]] = set()  # while the process is about to stop
        self._unread: list[str] = []  # of a crowd, not looked at yet; the newest last
        self._waits: dict[str, tuple[_Mark, str]] = {}  # and the run whose end each waits for
        self._closed: dict[str, _Mark] = {}
        self.refused_count = 0
        self.unadmitted: dict[str, str] = {}  # files that the disk or the store does not take now, and what it says

    @property
    def waits_for_a_run(self) -> bool:
        """True when a file waits for the end of the run that has its id."""
        return bool(self._waits)

    def file_closed(self, name: str) -> None:
        """A writer closed this file, or moved it here: what it holds now is whole."""
        if is_command_name(name):
            with contextlib.suppress(OSError):
                self._closed[name] = _mark(os.lstat(self._home.commands / name))

    # ── at start ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def adopt(self, runs: list[ActiveRun]) -> None:
        """Binds files to the unfinished runs they belong to, and completes takings that a crash cut off."""
        by_id = {run.id: run for run in runs}
        taken = set()
        for path in sorted(self._home.commands.glob(".*.taken")):
            run_id = path.name[1 : -len(".taken")]
            taken.add(run_id)
            if run_id not in by_id:
                self._taking.settle_orphan(path, self._engine.receipt(run_id))
        for receipt in self._engine.lost:
            self._taking.keep(receipt.command_file.name, receipt.run_id)
        for run in runs:
            # Without its file a run is missing it, and will be cancelled as any other; a reopened run has none.
            if run.id not in taken and not run.is_reopened:
                # The file of a run that has ended may have been taken already: then only the very same one is still its.
                found = None if run.has_ended else self._file_of(run)
                self._taking.bound[run.header.file.name] = RunFile(run, found or run.header.file)

    def _file_of(self, run: ActiveRun) -> FileIdentity | None:
        """The file with the run's name, if it holds the run's bytes: that run's file, whatever inode it has now."""
        name = run.header.file.name
        found = self._read(name)
        if not isinstance(found, FileBytes) or not is_admitted(found, run.header.file):
            return None
        return FileIdentity(name, found.inode, found.mtime_ns, run.header.file.sha256)

    # ── scanning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def scan(self) -> ScanResult:
        """Looks at the directory: admits what is ready, sets aside what never will be, notes what is gone. A crowd takes
        several scans, the oldest files first; the time that runs get in between does not count."""
        result = ScanResult()
        began_s = self._clock.monotonic_s()
        try:
            present = self._list()
        except OSError as error:
            log.error("commands/ cannot be read (%s); it is tried again", error.strerror)
            self._wait(result, self._settings.scan_interval_s)
            return result
        by_name: tuple[dict[str, Any], ...] = (self._seen, self._closed, self._waits, self.unadmitted)
        for known in by_name:
            for name in known.keys() - present.keys():
                del known[name]
        listed_s = self._clock.monotonic_s() - began_s
        await self._obey_arrivals(present, result)
        until_s = self._clock.monotonic_s() + max(_SCAN_S, _LISTING_SHARE * listed_s)
        with self._engine.gathering():
            await self._consider_all(present, until_s, result)
        await self._look_for_missing(present, result)
        return result

    async def _consider_all(self, present: dict[str, os.stat_result], until_s: float, result: ScanResult) -> None:
        considered = 0
        for name, status in sorted(present.items(), key=lambda item: (item[1].st_mtime_ns, item[0])):
            if (bound := self._taking.bound.get(name)) is not None:
                if bound.missing_since_s is not None:
                    # Back with the same bytes it is the same file, whatever its inode.
                    bound.identity = self._file_of(bound.run) or bound.identity
                bound.missing_since_s, bound.missing_scans = None, 0
                continue
            await self._consider(name, status, result)
            considered += 1
            if considered % _ADMISSIONS_PER_BREATH:
                continue
            breath_s = self._clock.monotonic_s()
            if breath_s > until_s:
                result.cut_short = True
                self._wait(result, 0)
                break
            await asyncio.sleep(0)
            until_s += self._clock.monotonic_s() - breath_s

    async def _obey_arrivals(self, present: dict[str, os.stat_result], result: ScanResult) -> None:
        """Admits control commands first, the newest first: a cancel does not stand in line behind a crowd."""
        arrived, self._listed = present.keys() - self._listed, set(present)
        if len(present) - len(self._taking.bound) <= _CROWD:
            self._unread.clear()
            return
        self._unread += sorted(arrived, key=lambda name: present[name].st_mtime_ns)
        until_s = self._clock.monotonic_s() + _LOOK_AHEAD_S
        while self._unread and self._clock.monotonic_s() < until_s:
            name = self._unread.pop()
            if name in present and name not in self._taking.bound and await self._is_control(name):
                await self._consider(name, present.pop(name), result)

    async def obey(self) -> None:
        """Looks for control commands alone, once at each file: the process is about to stop, and all else waits."""
        try:
            present = self._list()
        except OSError as error:
            log.error("commands/ cannot be read (%s)", error.strerror)
            return
        marks = {(name, _mark(status)) for name, status in present.items() if name not in self._taking.bound}
        self._looked_at &= marks
        until_s = self._clock.monotonic_s() + _LOOK_AHEAD_S
        for name, mark in sorted(marks - self._looked_at, key=lambda found: -present[found[0]].st_mtime_ns):
            if self._clock.monotonic_s() > until_s:
                return
            self._looked_at.add((name, mark))
            if await self._is_control(name):
                await self._consider(name, present[name], ScanResult())

    async def _is_control(self, name: str) -> bool:
        found = self._read(name)
        if isinstance(found, FileBytes) and any(word in found.data for word in self._types.control_words):
            with contextlib.suppress(NotACommand, CommandInvalid):
                return isinstance(await self._parsed(name, found.data), ControlBase)
        return False

    async def _parsed(self, name: str, data: bytes) -> CommandBase:
        try:
            return await beside_the_loop("reading it", len(data), lambda: parse_command(self._types, name, data))
        except TookTooLong as error:
            fix = "put the material into files, and name them as input_artifacts"
            raise CommandInvalid(error.message, fix=fix) from error

    def _list(self) -> dict[str, os.stat_result]:
        present = {}
        with os.scandir(self._home.commands) as entries:
            for entry in entries:
                if self._only and entry.name != self._only:
                    continue
                if entry.name not in self._listed and not is_command_name(entry.name):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    present[entry.name] = status
        return present

    async def _consider(self, name: str, status: os.stat_result, result: ScanResult) -> None:
        now = self._clock.monotonic_s()
        mark = _mark(status)
        waiting_mark, run_id = self._waits.get(name, (None, ""))
        if waiting_mark == mark and run_id in self._engine.active:
            result.pending += 1  # looked at again when a run ends
            return
        self._waits.pop(name, None)
        seen = self._seen.get(name)
        if seen is None or seen.mark != mark:
            age_s = max(0.0, self._clock.now().timestamp() - status.st_mtime_ns / 1e9)  # its time may lie in the future
            seen = self._seen[name] = _Arrival(mark, now - age_s)
            self.unadmitted.pop(name, None)
        if seen.ignored:
            return
        unchanged_s = now - seen.since_s
        # Half a JSON file does not parse; half a YAML or Markdown file may, so these wait for the close or for quiet.
        may_grow = not name.lower().endswith(".json") and self._closed.get(name) != mark
        if may_grow and unchanged_s < self._settings.quiet_s:
            self._wait(result, self._settings.quiet_s - unchanged_s)
            return
        try:
            await self._admit(name, status, result)
        except NotACommand:
            seen.ignored = True
        except Unparsable as error:
            if unchanged_s >= self._settings.settle_s:
                await self._set_aside(name, error, result)
            else:
                self._wait(result, self._settings.settle_s - unchanged_s)
        except CommandInvalid as error:
            await self._set_aside(name, error, result)
        except StorageFailed as error:
            self._leave(name, error, result)
        except Exception as error:  # a defect of ours: one file must not end the daemon, and its text may hold anything
            log.exception("%s met a defect", printable(name))
            problem = f"an internal error met this file ({type(error).__name__})"
            await self._set_aside(name, CommandInvalid(problem, fix="report it, with the file and the log"), result)
        else:
            self.unadmitted.pop(name, None)

    def _leave(self, name: str, error: StorageFailed, result: ScanResult) -> None:
        log.error("%s stays in the inbox: %s", printable(name), error)
        if name not in self.unadmitted:
            self.unadmitted[name] = str(error)
            self._events.publish(CommandDelay(file=printable(name), reason="storage", error=str(error)))
        self._wait(result, self._settings.scan_interval_s)

    def _wait(self, result: ScanResult, seconds: float) -> None:
        result.pending += 1
        result.look_within(seconds)

    async def _admit(self, name: str, status: os.stat_result, result: ScanResult) -> None:
        if not name.isprintable() or printable(name) != name:
            fix = "give it a plain name and drop it again"
            odd = next(char for char in name if not char.isprintable())
            what = "a line break" if odd in "\r\n" else f"the character U+{ord(odd):04X}, which nothing shows"
            what = what if printable(name) == name else "bytes that are not UTF-8"
            raise CommandInvalid(f"the file's name holds {what}", fix=fix)
        if self._taking.redact(name) != name:
            raise CommandInvalid("the file's name has a secret in it", fix="rename it and drop it again")
        found = self._read(name)
        if found is None:
            return
        if isinstance(found, CommandInvalid):
            raise found
        require_owner(self._home.root, name, status)
        command = await self._parsed(name, found.data)
        identity = FileIdentity(name, found.inode, found.mtime_ns, sha256_hex(found.data))
        try:
            with refusing():
                if isinstance(command, RunBase):
                    await self._submit(command, identity, _mark(status), result)
                    return
                receipt, run_id = await self._engine.obey(command, identity)
        except CommandInvalid as error:
            if error.field and error.line is None:  # where in the file the field stands that admission refused
                document = read_document(name, found.data)
                error.line, error.column = document.locate(tuple(error.field.split(".")))
                if "problems" in error.data:
                    error.data["problems"] = located(problems_of(error), document)
            raise
        is_known = command.id is not None and receipt.command_file != identity
        answer = CommandAnswer(run_id=receipt.run_id, file=name, id=command.id)
        act = ControlAct(run_id=run_id, file=name, type=command.type, title=receipt.title)
        self._events.publish(answer if is_known else act)
        result.admitted += 1
        self._taking.take(name, identity, receipt.run_id, "succeeded")

    async def _submit(self, command: RunBase, identity: FileIdentity, mark: _Mark, result: ScanResult) -> None:
        name = identity.name
        answering = self._engine.run_in_progress(command)
        if answering is not None:
            self._engine.ask_for(answering)
            self._waits[name] = (mark, answering.id)
            self._events.publish(CommandWait(run_id=answering.id, file=name, id=command.id))
            result.pending += 1
            return
        admitted = await self._engine.admit(command, identity)
        self._seen.pop(name, None)
        self._closed.pop(name, None)
        result.admitted += 1
        self._taking.mended(name)
        if isinstance(admitted, ActiveRun):
            self._taking.bound[name] = RunFile(admitted, identity)
        else:
            self._events.publish(CommandAnswer(run_id=admitted.run_id, file=name, id=command.id))
            self._taking.take(name, identity, admitted.run_id, "succeeded")

    def _read(self, name: str) -> FileBytes | CommandInvalid | None:
        """The file's bytes, the reason they are refused, or None when it is gone."""
        try:
            return self._root.read(f"commands/{name}", max_bytes=self._settings.max_command_bytes)
        except PathRefused as error:
            if error.reason == "not_found":
                return None
            if error.reason == "too_large":  # it may still be written to
                limit = self._settings.max_command_bytes
                message = f"the file is larger than the {limit} bytes that a command may have (max_command_bytes)"
                return Unparsable(message, fix="put the material into files and name them as input_artifacts")
            if error.reason == "hard_link":  # it may be in the middle of a link and unlink
                return Unparsable(f"{error.message} (a hard link)", fix="drop a copy, not a hard link")
            if error.reason == "permission":
                return CommandInvalid(
                    error.message, fix="give the user that runs Council read permission, and drop it again"
                )
            return CommandInvalid(error.message, fix="drop a regular file with a plain name")

    # ── what is gone ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _look_for_missing(self, present: dict[str, os.stat_result], result: ScanResult) -> None:
        now = self._clock.monotonic_s()
        for name, bound in list(self._taking.bound.items()):
            if name in present or (self._only is not None and name != self._only):
                continue
            bound.missing_scans += 1
            if bound.missing_since_s is None:
                bound.missing_since_s = now
            missing_s = now - bound.missing_since_s
            if bound.missing_scans >= 2 and missing_s >= self._settings.settle_s:
                bound.missing_since_s = None
                try:
                    await self._engine.cancel(bound.run.id, "its command file was removed")
                except StorageFailed as error:
                    log.error("run %s: %s", bound.run.id, error)
            else:
                result.look_within(self._settings.settle_s - missing_s)

    async def _set_aside(self, name: str, error: CommandInvalid, result: ScanResult) -> None:
        # A refusal by a rule of who may ask for what is audited, once for each file; what cannot be read is none.
        is_refusal = bool(error.data.get("refused")) or isinstance(error.__cause__, PathRefused)
        seen = self._seen.get(name)
        try:
            if is_refusal and seen is not None and not seen.audited:
                reason = printable(error.message)[:_AUDITED_CHARS]
                detail = {"file": printable(name), "code": error.code, "reason": reason}
                self._audit.refuse("command_refused", STEWARD.id, detail)
                seen.audited = True
            moved_to = self._taking.set_aside(name, error)
        except FileNotFoundError:
            return
        except StorageFailed as failure:
            self._leave(name, failure, result)
            return
        self._seen.pop(name, None)
        self.unadmitted.pop(name, None)
        self.refused_count += 1
        result.refused += 1
        self._events.publish(
            CommandRefusal(
                file=printable(name),
                code=error.code,
                error=printable(error.message),
                fix=printable(error.fix),
                moved_to=printable(moved_to),
            )
        )


def _mark(status: os.stat_result) -> _Mark:
    return status.st_ino, status.st_size, status.st_mtime_ns
