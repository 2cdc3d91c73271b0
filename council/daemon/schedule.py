"""The scheduler: when a recurring command is due, it drops a command, as any other door does. It starts no run itself.

An occurrence is dropped before that is remembered, so none is lost. Its command's id says which one it is, so none runs
twice, whatever a kill or a clock that is set back leaves behind.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile

import msgspec

from council.commands.file_formats import NotACommand
from council.commands.recurring import RecurringCommand, occurrence_pattern
from council.desk.recurring_folder import (
    NEVER_PAUSED,
    Pause,
    RecurringFile,
    RecurringFolder,
    Sighting,
    load_pauses,
    load_sightings,
    save_sightings,
)
from council.engine.admission import answered
from council.engine.receipts import IdBinding, Receipts
from council.errors import CommandInvalid, StorageFailed
from council.events import Events, ScheduleDrop, ScheduleMiss, ScheduleRefusal, ScheduleSighting, ScheduleSkip
from council.ids import Clock, timestamp
from council.settings import Home
from council.storage.command_drop import drop
from council.storage.store import Store

log = logging.getLogger(__name__)

MAX_COUNTED = 10_000  # missed occurrences are counted up to here: a week of every minute, a tenth of a second
_STORAGE_RETRY_S = 30.0  # a full disk is looked at again this often


@dataclass
class _Reading:
    mark: tuple[int, int, int]
    file: RecurringFile | None
    counted_from: datetime | None = None
    due: datetime | None = None


@dataclass(eq=False)
class Scheduler:
    """Watches over one home's `commands/recurring/`. `_active_ids`: the command ids of the runs under way, with their runs.
    `quiet_s`: a file that changed more recently may still be written to; nothing is dropped from it, and nothing said
    against it."""

    _home: Home
    _folder: RecurringFolder
    _store: Store
    _active_ids: Callable[[], Mapping[str, str]]
    _events: Events
    _clock: Clock
    quiet_s: float

    def __post_init__(self) -> None:
        self._receipts = Receipts(self._store)
        self._known: dict[str, _Reading] = {}
        self._sightings = load_sightings(self._store)
        self._unsaved = False

    def tick(self) -> float | None:
        """Drops what is due. Seconds until something is due again, None when nothing is known to be."""
        now = self._clock.now()
        try:
            listing = self._folder.list()
            self._folder.remove_orphans(listing)
            for name in self._known.keys() - listing.files.keys():
                del self._known[name]
            for name in self._sightings.keys() - listing.files.keys():
                del self._sightings[name]
                self._unsaved = True
            pauses = load_pauses(self._store) if listing.files else {}
            looks = [
                self._look_at(name, status, pauses.get(name, NEVER_PAUSED), now)
                for name, status in sorted(listing.files.items())
            ]
            if self._unsaved:
                save_sightings(self._store, self._sightings)
                self._unsaved = False
        except StorageFailed as error:
            log.error("schedules: %s", error)
            return _STORAGE_RETRY_S
        return min((seconds for seconds in looks if seconds is not None), default=None)

    def _look_at(self, name: str, status: os.stat_result, pause: Pause, now: datetime) -> float | None:
        is_fresh = 0 <= now.timestamp() - status.st_mtime < self.quiet_s
        try:
            known = self._read(name, status, is_fresh=is_fresh)
            if known is None:
                return self.quiet_s
            if known.file is None or pause.holds:
                return None
            schedule = known.file.command.schedule
            sighting = self._sight(known.file.command, pause.since, now)
            if known.counted_from != sighting.counted_from:
                known.counted_from = sighting.counted_from
                known.due = next(schedule.after(sighting.counted_from), None)
            if known.due is None:
                return None
            if known.due > now:
                return (known.due - now).total_seconds()
            if is_fresh and not name.lower().endswith(".json"):
                return self.quiet_s  # half a JSON file does not parse; half a YAML or Markdown file may
            fired = self._fire(known.file, sighting, known.due, now)
            self._remember(name, msgspec.structs.replace(sighting, last_fire=fired))
            following = next(schedule.after(now), None)
            return (following - now).total_seconds() if following else None
        except StorageFailed as error:
            log.error("commands/recurring/%s: %s", name, error)
            return _STORAGE_RETRY_S

    def _read(self, name: str, status: os.stat_result, *, is_fresh: bool) -> _Reading | None:
        """The file's content, parsed again only when it changed; None when it is not yet to be judged."""
        mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._known.get(name)
        if known is not None and known.mark == mark:
            return known
        file = None
        try:
            file = self._folder.read(name, status)
            self._folder.remove_page(name)
        except FileNotFoundError:
            return None
        except NotACommand:
            self._folder.remove_page(name)
        except CommandInvalid as error:
            if is_fresh:
                return None
            note = self._folder.write_page(name, error)
            self._events.publish(
                ScheduleRefusal(file=name, code=error.code, error=error.message, fix=error.fix, note=note)
            )
        self._known[name] = _Reading(mark, file)
        return self._known[name]

    def _sight(self, command: RecurringCommand, resumed: datetime | None, now: datetime) -> Sighting:
        """The memory of the file, made or mended. A new file, a new schedule, and a clock that was set back begin to
        count now; a resumed file began when it was resumed."""
        old = self._sightings.get(command.file)
        sighting = old
        if sighting is None or sighting.schedule != str(command.schedule) or sighting.counted_from > now:
            last_fire = sighting.last_fire if sighting and sighting.last_fire and sighting.last_fire <= now else None
            sighting = Sighting(now, str(command.schedule), last_fire)
            if old is None or old.schedule != sighting.schedule:
                self._events.publish(ScheduleSighting(file=command.file, schedule=sighting.schedule))
        if resumed is not None and sighting.counted_from < resumed <= now:
            sighting = msgspec.structs.replace(sighting, first_seen=resumed)
        if sighting != old:
            self._remember(command.file, sighting)
        return sighting

    def _remember(self, name: str, sighting: Sighting) -> None:
        self._sightings[name] = sighting
        self._unsaved = True

    def _fire(self, file: RecurringFile, sighting: Sighting, due: datetime, now: datetime) -> datetime:
        """Settles everything that is due: the latest occurrence is dropped or skipped, older ones are told of."""
        command, commands = file.command, self._home.commands
        latest = command.schedule.latest(due, now) or due
        id_ = command.id_at(latest)
        # It may have been dropped or skipped before: the memory of it was lost, or the clock set back.
        bound = self._receipts.bound(id_, command.user)
        if bound is not None and (id_ in self._active_ids() or self._receipts.read(bound.run_id) is not None):
            return latest
        if (commands / f"{id_}.json").exists() or (self._home.failed / f"{id_}.json").exists():
            return latest
        older = takewhile(lambda moment: moment < latest, command.schedule.after(sighting.counted_from))
        missed = [timestamp(moment) for moment in islice(older, MAX_COUNTED)]
        if missed:
            self._events.publish(
                ScheduleMiss(
                    file=command.file,
                    count=len(missed),
                    first=missed[0],
                    capped=len(missed) == MAX_COUNTED,
                    latest=timestamp(latest),
                )
            )
        pattern = occurrence_pattern(command.file)
        running = next((run_id for id_, run_id in self._active_ids().items() if pattern.fullmatch(id_)), None)
        if running is not None:
            self._skip(file, latest, f"run {running} of an earlier occurrence has not ended", now)
            return latest
        waiting = [name for name in sorted(os.listdir(commands)) if pattern.match(name) and name.endswith(".json")]
        if waiting:
            self._skip(file, latest, f"commands/{waiting[0]} of an earlier occurrence is still waiting", now)
        else:
            dropped = drop(commands, f"{id_}.json", command.bytes_at(latest))
            self._events.publish(ScheduleDrop(file=command.file, id=id_, dropped=f"commands/{dropped.path.name}"))
        return latest

    def _skip(self, file: RecurringFile, moment: datetime, reason: str, now: datetime) -> None:
        """The receipt is all that a skipped occurrence leaves; its id is bound, so that it never runs later."""
        command, id_ = file.command.command_at(moment), file.command.id_at(moment)
        told = answered(command, file.identity, "skipped", now, title=id_, notes=(f"Skipped: {reason}.",))
        binding = IdBinding(id_, told.command_hash, told.run_id, command.user)
        self._receipts.answer(told, ended_ns=int(now.timestamp() * 1e9), binding=binding)
        self._events.publish(ScheduleSkip(file=file.command.file, id=id_, reason=reason, receipt=told.run_id))
