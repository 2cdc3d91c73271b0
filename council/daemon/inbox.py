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
from pathlib import Path

from council.commands.models import CancelCommand, DeliberateCommand
from council.commands.parsing import NotACommand, Problem, Unparsable, parse_command
from council.engine.engine import Engine
from council.engine.records import FileIdentity, RunStatus
from council.engine.runs import Run
from council.errors import CommandInvalid, CouncilError, PathRefused, StorageFailed
from council.events import Events
from council.ids import Clock, sha256_hex
from council.settings import Home, Settings
from council.storage.drop import is_command_name
from council.storage.files import rename_noreplace, write_atomic
from council.storage.paths import ConfinedRoot, FileBytes

log = logging.getLogger(__name__)

_MAX_NAMESAKES = 10_000
_ADMISSIONS_PER_BREATH = 20  # then the loop runs: a crowd must not hold up the runs under way


@dataclass
class _Seen:
    """A file that is not a run yet: when it last changed (monotonic seconds), and whether it is no command at all."""

    mark: tuple[int, int, int]
    since_s: float
    ignored: bool = False


@dataclass
class ScanResult:
    """`pending`: files that may still become runs; `next_look_s`: when one of them is to be looked at again."""

    admitted: int = 0
    refused: int = 0
    pending: int = 0
    next_look_s: float | None = None


@dataclass
class _Bound:
    """A file that is a run's: the run, the file as it is known, how long it has been missing, in how many scans."""

    run: Run
    identity: FileIdentity
    missing_since_s: float | None = None
    missing_scans: int = 0


class Inbox:
    """Watches over one home's `commands/`."""

    def __init__(
        self, home: Home, root: ConfinedRoot, engine: Engine, settings: Settings, events: Events, clock: Clock
    ) -> None:
        self._home = home
        self._root = root
        self._engine = engine
        self._settings = settings
        self._events = events
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._bound: dict[str, _Bound] = {}
        self._only: str | None = None
        self._waiting_ids: set[str] = set()
        self._closed: set[str] = set()
        self.refused_count = 0
        engine.on_ended = self.take

    @property
    def waits_for_a_run(self) -> bool:
        """True when a file waits for the end of the run that has its id."""
        return bool(self._waiting_ids)

    def only(self, name: str) -> None:
        """From now on only this file counts: for a door that drains its own drop and leaves."""
        self._only = name

    def file_closed(self, name: str) -> None:
        """A writer closed this file, or moved it here: what it holds now is whole."""
        if is_command_name(name):
            self._closed.add(name)

    # ── at start ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def adopt(self, runs: list[Run]) -> None:
        """Binds files to the unfinished runs they belong to, and completes takings that a crash cut off."""
        by_id = {run.id: run for run in runs}
        taken = set()
        for path in sorted(self._home.commands.glob(".*.taken")):
            run_id = path.name[1 : -len(".taken")]
            taken.add(run_id)
            if run_id not in by_id:
                self._settle_orphan(path)
        for run in runs:
            identity = self._file_of(run) if run.id not in taken else None
            if identity is not None:
                self._bound[identity.name] = _Bound(run, identity)

    def _settle_orphan(self, path: Path) -> None:
        """A `.taken` file of a run that is over: the taking was proven; what is left is to look at it, as always."""
        receipt = self._engine.receipt(path.name[1 : -len(".taken")])
        if receipt is not None:
            self._settle_taken(path, receipt.command_file, receipt.run_id, receipt.status)
        else:
            self._put_back(path, path.name[1 : -len(".taken")] + ".json")

    def _file_of(self, run: Run) -> FileIdentity | None:
        """The file with the run's name, if it holds the run's bytes: that run's file, whatever inode it has now."""
        name = run.header.file.name
        found = self._read(name)
        if not isinstance(found, FileBytes) or sha256_hex(found.data) != run.header.file.sha256:
            return None
        return FileIdentity(name, found.inode, found.mtime_ns, run.header.file.sha256)

    # ── scanning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def scan(self) -> ScanResult:
        """Looks at the whole directory once: admits what is ready, sets aside what never will be, notes what is gone."""
        result = ScanResult()
        breath = _ADMISSIONS_PER_BREATH
        present = self._list()
        self._forget_absent(present)
        for name, status in sorted(present.items(), key=lambda item: (item[1].st_mtime_ns, item[0])):
            bound = self._bound.get(name)
            if bound is not None:
                bound.missing_since_s, bound.missing_scans = None, 0
                continue
            self._consider(name, status, result)
            handled = result.admitted + result.refused
            if handled > breath:
                breath = handled + _ADMISSIONS_PER_BREATH
                await asyncio.sleep(0)
        self._look_for_missing(present, result)
        return result

    def _list(self) -> dict[str, os.stat_result]:
        present = {}
        with os.scandir(self._home.commands) as entries:
            for entry in entries:
                if not is_command_name(entry.name) or (self._only and entry.name != self._only):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if not stat.S_ISDIR(status.st_mode):
                        present[entry.name] = status
        return present

    def _forget_absent(self, present: dict[str, os.stat_result]) -> None:
        for name in [name for name in self._seen if name not in present]:
            del self._seen[name]
        self._closed &= present.keys()

    def _consider(self, name: str, status: os.stat_result, result: ScanResult) -> None:
        now = self._clock.monotonic_s()
        mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        seen = self._seen.get(name)
        if seen is None or seen.mark != mark:
            seen = self._seen[name] = _Seen(mark, now - self._age_s(status))
        if seen.ignored:
            return
        unchanged_s = now - seen.since_s
        if not self._is_whole(name, unchanged_s):
            self._wait(result, self._settings.quiet_s - unchanged_s)
            return
        try:
            self._admit(name, status, result)
        except NotACommand:
            seen.ignored = True
        except Unparsable as error:
            if unchanged_s >= self._settings.settle_s:
                self._set_aside(name, error, result)
            else:
                self._wait(result, self._settings.settle_s - unchanged_s)
        except CommandInvalid as error:
            self._set_aside(name, error, result)
        except StorageFailed as error:
            log.error("%s stays in the inbox: %s", name, error)
            self._wait(result, self._settings.scan_interval_s)

    def _is_whole(self, name: str, unchanged_s: float) -> bool:
        """Half a JSON file does not parse; half a YAML or Markdown file may, so these wait for the close or for quiet."""
        return name.lower().endswith(".json") or name in self._closed or unchanged_s >= self._settings.quiet_s

    def _age_s(self, status: os.stat_result) -> float:
        """How long a file seen for the first time has been unchanged; zero when its time lies in the future."""
        return max(0.0, self._clock.now().timestamp() - status.st_mtime_ns / 1e9)

    def _wait(self, result: ScanResult, seconds: float) -> None:
        result.pending += 1
        due = max(0.01, seconds)
        result.next_look_s = due if result.next_look_s is None else min(result.next_look_s, due)

    def _admit(self, name: str, status: os.stat_result, result: ScanResult) -> None:
        found = self._read(name)
        if found is None:
            return
        if isinstance(found, CommandInvalid):
            raise found
        self._require_owner(name, status)
        command = parse_command(name, found.data)
        identity = FileIdentity(name, found.inode, found.mtime_ns, sha256_hex(found.data))
        if isinstance(command, CancelCommand):
            self._control(name, command, identity, result)
        else:
            self._submit(name, command, identity, result)

    def _submit(self, name: str, command: DeliberateCommand, identity: FileIdentity, result: ScanResult) -> None:
        if self._engine.id_in_progress(command):
            if name not in self._waiting_ids:
                self._waiting_ids.add(name)
                self._events.publish("command_waits_for_id", file=name, id=command.id)
            result.pending += 1  # looked at again when a run ends
            return
        self._waiting_ids.discard(name)
        try:
            admitted = self._engine.admit(command, identity)
        except PathRefused as error:
            raise CommandInvalid(error.message, fix=error.fix) from error
        self._seen.pop(name, None)
        self._closed.discard(name)
        result.admitted += 1
        if isinstance(admitted, Run):
            self._bound[name] = _Bound(admitted, identity)
        else:
            self._events.publish("command_answered", admitted.run_id, file=name, id=command.id)
            self._take_file(name, identity, admitted.run_id, "succeeded")

    def _control(self, name: str, command: CancelCommand, identity: FileIdentity, result: ScanResult) -> None:
        if not self._engine.cancel(command.run, f"by {name}"):
            raise CommandInvalid(
                f"the run {command.run!r} is not active.", fix="see `council status` for the runs that are", field="run"
            )
        receipt = self._engine.answer_control(command, identity)
        self._events.publish("control", command.run, file=name, type=command.type)
        result.admitted += 1
        self._take_file(name, identity, receipt.run_id, "succeeded")

    def _read(self, name: str) -> FileBytes | CommandInvalid | None:
        """The file's bytes, the reason they are refused, or None when it is gone."""
        try:
            return self._root.read(f"commands/{name}", max_bytes=self._settings.max_command_bytes)
        except PathRefused as error:
            if error.reason == "not_found":
                return None
            if error.reason in (
                "too_large",
                "hard_link",
            ):  # it may still be written to, or be in the middle of a link+unlink
                return Unparsable(error.message, fix=error.fix)
            return CommandInvalid(error.message, fix="drop a regular file")

    def _require_owner(self, name: str, status: os.stat_result) -> None:
        if status.st_uid not in (os.geteuid(), os.stat(self._home.root).st_uid):
            raise CommandInvalid(
                f"commands/{name} belongs to uid {status.st_uid}, who is neither the home's owner nor the daemon's user.",
                fix="drop it as the home's owner",
            )

    # ── what is gone ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _look_for_missing(self, present: dict[str, os.stat_result], result: ScanResult) -> None:
        now = self._clock.monotonic_s()
        for name, bound in list(self._bound.items()):
            if name in present:
                continue
            bound.missing_scans += 1
            if bound.missing_since_s is None:
                bound.missing_since_s = now
            missing_s = now - bound.missing_since_s
            if bound.missing_scans >= 2 and missing_s >= self._settings.settle_s:
                self._engine.cancel(bound.run.id, "its command file was removed")
                bound.missing_since_s = None
            else:
                due = max(0.01, self._settings.settle_s - missing_s)
                result.next_look_s = due if result.next_look_s is None else min(result.next_look_s, due)

    # ── taking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, run: Run, status: RunStatus) -> None:
        """The run's file leaves the inbox: gone, or in `failed/`; a file that changed meanwhile stays, as a new command."""
        bound = self._bound.pop(run.header.file.name, None)
        identity = bound.identity if bound is not None and bound.run is run else run.header.file
        self._take_file(identity.name, identity, run.id, status)

    def _take_file(self, name: str, admitted: FileIdentity, run_id: str, status: RunStatus) -> None:
        taken = self._home.commands / f".{run_id}.taken"
        if not taken.exists():
            try:
                os.rename(self._home.commands / name, taken)
            except FileNotFoundError:
                return  # the steward removed it; there is nothing left to take
        self._settle_taken(taken, admitted, run_id, status)

    def _settle_taken(self, taken: Path, admitted: FileIdentity, run_id: str, status: RunStatus) -> None:
        if not self._is_same(taken, admitted):
            self._put_back(taken, admitted.name)
        elif status == "failed":
            path = Path(admitted.name)
            self._home.failed.mkdir(exist_ok=True)
            _move_beside(taken, self._home.failed / f"{path.stem}.{run_id}{path.suffix}")
        else:
            os.unlink(taken)

    def _is_same(self, taken: Path, admitted: FileIdentity) -> bool:
        try:
            found = self._root.read(f"commands/{taken.name}", max_bytes=self._settings.max_command_bytes)
        except PathRefused:
            return False
        same_drop = (found.inode, found.mtime_ns) == (admitted.inode, admitted.mtime_ns)
        return same_drop and sha256_hex(found.data) == admitted.sha256

    def _put_back(self, taken: Path, name: str) -> None:
        back = _move_beside(taken, self._home.commands / name)
        self._events.publish("command_changed", file=back.name)

    # ── setting aside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _set_aside(self, name: str, error: CommandInvalid, result: ScanResult) -> None:
        self._home.failed.mkdir(exist_ok=True)
        try:
            aside = _move_beside(self._home.commands / name, self._home.failed / name)
        except FileNotFoundError:
            return
        note = aside.with_name(f"{aside.name}.error.md")
        write_atomic(note, error_page(name, error).encode(), mode=0o644)
        self._seen.pop(name, None)
        self.refused_count += 1
        result.refused += 1
        self._events.publish(
            "command_refused",
            file=name,
            code=error.code,
            error=error.message,
            fix=error.fix,
            moved_to=f"commands/failed/{aside.name}",
        )


def _move_beside(source: Path, target: Path) -> Path:
    """Renames without overwriting; a taken name gets a number before its ending. Where the file is now."""
    for number in range(1, _MAX_NAMESAKES):
        place = target if number == 1 else target.with_name(f"{target.stem}-{number}{target.suffix}")
        try:
            rename_noreplace(source, place)
            return place
        except FileExistsError:
            continue
    raise StorageFailed(f"{target.parent.name}/ holds too many files called {target.name}.", fix="tidy that folder")


def error_page(name: str, error: CouncilError) -> str:
    """What stands beside a command that could not become a run."""
    lines = [f"# `{name}` could not become a run", "", f"Error code: `{error.code}`", ""]
    problems = error.data.get("problems")
    if isinstance(problems, list) and all(isinstance(problem, Problem) for problem in problems):
        for problem in problems:
            lines += [f"- **{problem}**", f"  Fix: {problem.fix}."]
    else:
        lines += [f"- **{error.message}**", f"  Fix: {error.fix}." if error.fix else ""]
    lines += ["", f"Correct the file beside this note and move it back to `commands/{name}`. Nothing was run.", ""]
    return "\n".join(lines)
