"""A recurring command: a command file with one more key, `schedule`, and the moments at which it is due.

Pure. The one module that knows cron (`cronsim`): unlike croniter it fires a fixed local time once when the clock is put
back. Moments are in UTC; the schedule's zone counts for the clock face and for `{date}` and `{time}`.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, cast
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from council.commands.file_formats import MAX_PROBLEMS, Document, Loc, NotACommand, Problem, invalid, read_document
from council.commands.models import DEFAULT_LANE, CommandBase, RunBase
from council.commands.parsing import validate
from council.commands.types import DEFAULT_TYPE, CommandTypes, tag_of
from council.errors import CommandInvalid
from council.proposals import nearest, nearest_zone

PLACEHOLDERS = ("date", "time", "id")
DEFAULT_ZONE = "UTC"

_KEY = "schedule"
_EXAMPLE = "0 7 * * 1-5"
_CRON_FIX = f'give five fields: minute, hour, day of month, month, day of week, as in "{_EXAMPLE}"'
_DAY_FIX = "choose a day that exists"
_ZONE_FIX = 'name a zone, as in "Europe/Berlin"'
_MINUTE_S, _HOUR_S = 60, 3600
_SHORTHANDS = {  # of other crons
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
_MAX_CRON_CHARS = 200  # a list of every minute has 169
_MAX_NAME_CHARS = 180  # the command's id is the name and 17 characters, and has at most 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+ -]*")
_MAX_LANE_CHARS = 64
_PATH_KEYS = ("output_artifact_path", "input_artifacts")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_SCHEDULE_LINE = re.compile(rb"^schedule[ \t]*:", re.MULTILINE)
_SAMPLE = datetime(2026, 11, 20, 7, tzinfo=UTC)  # any moment will do: what is checked does not depend on it
# `latest` looks back this far first, so that a schedule of every minute is not counted through a year of downtime.
_WINDOWS = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366))


@dataclass(frozen=True)
class Schedule:
    """A cron expression of five fields and the IANA name of the zone whose clock it reads."""

    cron: str
    zone: str = DEFAULT_ZONE

    def __str__(self) -> str:
        return f"{self.cron} {self.zone}"

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Its moments later than `moment`, in order, each once, however the zone's clock is put."""
        last = moment
        for found in _ClockFaces(self.cron, moment.astimezone(ZoneInfo(self.zone))):
            utc = found.astimezone(UTC)
            # NOTE: started in the hour that the clock repeats, cronsim answers with moments of the first pass.
            if utc > last:
                last = utc
                yield utc

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """Its last moment later than `after` and not later than `until`."""
        for start in [*(until - window for window in _WINDOWS), after]:
            found = deque(takewhile(lambda moment: moment <= until, self.after(max(after, start))), maxlen=1)
            if found:
                return found[0]
        return None

    def local(self, moment: datetime) -> datetime:
        return moment.astimezone(ZoneInfo(self.zone))


class _ClockFaces(CronSim):
    """cronsim's search, which steps over moments where a clock is put at midnight, as in Havana, or by half an hour, as
    on Lord Howe Island: it counts hours from a midnight that is not there, and takes each hour to begin at minute 0."""

    def advance_hour(self) -> bool:
        self._land()
        return super().advance_hour()

    def tick(self, seconds: int = 1) -> None:
        if seconds <= _MINUTE_S or self.dt.tzinfo in (None, UTC):
            super().tick(seconds)
            return
        self._land()
        before, offset = self.dt, self.dt.utcoffset()
        super().tick(seconds - self.dt.minute * _MINUTE_S if seconds == _HOUR_S else seconds)
        change = (self.dt.utcoffset() or timedelta()) - (offset or timedelta())
        if change % timedelta(hours=1):
            self.dt = before
            while self.dt.utcoffset() == offset:
                super().tick(_MINUTE_S)

    def _land(self) -> None:
        """Moves from a face that the clock skips to the one that it shows then."""
        if self.dt.tzinfo is not None:
            self.dt = self.dt.astimezone(UTC).astimezone(self.dt.tzinfo)


@dataclass(frozen=True)
class RecurringCommand:
    """A valid recurring file: `file` is its name, `document` its keys without `schedule`."""

    file: str
    schedule: Schedule
    document: Document
    types: CommandTypes

    def id_at(self, moment: datetime) -> str:
        """`brief.yaml@20261120T070000Z`: one id per moment, whoever drops the command and how often."""
        return f"{self.file}@{_stamp(moment)}"

    @property
    def user(self) -> str | None:
        return cast("str | None", self.document.value.get("user"))

    def command_at(self, moment: datetime) -> CommandBase:
        return validate(self.types, self._filled(moment))

    def bytes_at(self, moment: datetime) -> bytes:
        """The command of one moment, as the file to be dropped."""
        return (json.dumps(self._filled(moment).value, indent=2, ensure_ascii=False) + "\n").encode()

    def _filled(self, moment: datetime) -> Document:
        local = self.schedule.local(moment)
        words = {"date": f"{local:%Y-%m-%d}", "time": f"{local:%H%M}", "id": _stamp(moment)}
        keys = self.document.value.items()
        value = {key: _replaced(part, words) if key in _PATH_KEYS else part for key, part in keys}
        if tag_of(value) == DEFAULT_TYPE:
            value.setdefault("session", default_lane(self.file))
        return Document({**value, "id": self.id_at(moment)}, self.document.locate)


def occurrence_pattern(file: str) -> re.Pattern[str]:
    """Matches the ids that `id_at` gives to commands of that file."""
    return re.compile(rf"{re.escape(file)}@\d{{8}}T\d{{6}}Z")


def parse_recurring(types: CommandTypes, name: str, data: bytes) -> RecurringCommand:
    """The recurring command in `data`, read by the ending of `name`. Raises Unparsable, CommandInvalid with the first
    problems, or NotACommand."""
    try:
        document = read_document(name, data)
    except NotACommand:
        front_matter = data.partition(b"\n---")[0]
        if front_matter.startswith(b"---") and _SCHEDULE_LINE.search(front_matter):
            raise invalid([Problem("is missing", 'add "output_artifact_path"', "output_artifact_path", 1, 1)]) from None
        raise
    if not isinstance(document.value, dict):
        validate(types, document)  # raises: it says what a command looks like
    command = {key: value for key, value in document.value.items() if key not in (_KEY, "$schema")}
    schedule, problems = _schedule(document)
    fits_an_id = len(name) <= _MAX_NAME_CHARS and _NAME.fullmatch(name)
    if not fits_an_id:
        allowed = f"at most {_MAX_NAME_CHARS} of A-Z a-z 0-9 . _ : + - space, first a letter or a digit"
        problems.append(Problem(f"the file's name becomes part of the command's id: {allowed}", "rename the file"))
    if "id" in document.value:
        fix = "remove it; to have it in a path, write {id} there"
        problems.append(Problem("is created for every occurrence", fix, "id", *document.locate(("id",))))
    problems += _placeholder_problems(document)
    recurring = RecurringCommand(name, schedule, Document(command, document.locate), types)
    try:
        sample = (recurring if fits_an_id else replace(recurring, file="file.json")).command_at(_SAMPLE)
        if not isinstance(sample, RunBase):
            message = f"cannot be {sample.type!r} in a recurring command"
            fix = f"make it one of {', '.join(type_.name for type_ in types if not type_.is_control)}"
            problems.append(Problem(message, fix, "type", *document.locate(("type",))))
    except CommandInvalid as error:
        problems += cast("list[Problem]", error.data["problems"])
    if problems:
        raise invalid(problems)
    return recurring


def _schedule(document: Document) -> tuple[Schedule, list[Problem]]:
    """The schedule (a stand-in when there are problems) and what is wrong with it."""
    stand_in, place = Schedule(_EXAMPLE), document.locate((_KEY,))
    if _KEY not in document.value:
        return stand_in, [Problem("is missing", f'add "{_KEY}": "{_EXAMPLE}"', _KEY, *document.locate(()))]
    given = document.value[_KEY]
    if isinstance(given, str):
        problems = _cron_problems(given, _KEY, place)
        return (stand_in if problems else Schedule(_normal(given))), problems
    if not isinstance(given, dict):
        message = "must be a cron expression in quotes, or an object with cron and zone"
        return stand_in, [Problem(message, _CRON_FIX, _KEY, *place)]

    def unknown(key: str) -> Problem:
        near = nearest(key, ("cron", "zone"))
        fix = f'did you mean "{near}"?' if near else "the keys are cron and zone"
        return Problem("is not a known key", fix, f"{_KEY}.{key}", *document.locate((_KEY, key)))

    problems = [unknown(key) for key in given if key not in ("cron", "zone")]
    if "cron" not in given:
        problems.append(Problem("is missing", f'add "cron": "{_EXAMPLE}"', f"{_KEY}.cron", *place))
    else:
        problems += _cron_problems(given["cron"], f"{_KEY}.cron", document.locate((_KEY, "cron")))
    zone, zone_place = given.get("zone", DEFAULT_ZONE), document.locate((_KEY, "zone"))
    if not isinstance(zone, str):
        return stand_in, [*problems, Problem("must be text in quotes", _ZONE_FIX, f"{_KEY}.zone", *zone_place)]
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # not there; not a name; a folder of zones
        near = nearest_zone(zone)
        message, fix = f"is {zone[:100]!r}, which is not a time zone", f'use "{near}"' if near else _ZONE_FIX
        problems.append(Problem(message, fix, f"{_KEY}.zone", *zone_place))
    return (stand_in if problems else Schedule(_normal(given["cron"]), zone)), problems


def _normal(cron: str) -> str:
    return " ".join(cron.split())


def _cron_problems(cron: object, field: str, place: tuple[int | None, int | None]) -> list[Problem]:
    if not isinstance(cron, str):
        return [Problem("must be text in quotes", _CRON_FIX, field, *place)]
    shown = f"is {cron[:_MAX_CRON_CHARS]!r}, not a cron expression"
    if len(cron) > _MAX_CRON_CHARS or len(cron.split()) != 5:  # cronsim would take a sixth field, for seconds
        meant = _SHORTHANDS.get(cron.strip().lower())
        return [Problem(f"{shown} of five fields", f'write "{meant}"' if meant else _CRON_FIX, field, *place)]
    try:
        next(Schedule(cron).after(_SAMPLE))
        return []
    except CronSimError as error:
        if _day_never_comes(cron):
            return [Problem(f"is {cron!r}, but no such day ever comes", _DAY_FIX, field, *place)]
        return [Problem(f"{shown}: {str(error)[:1].lower()}{str(error)[1:]}", _CRON_FIX, field, *place)]
    except StopIteration:
        return [Problem(f"is {cron!r}, but no such day comes in 50 years", _DAY_FIX, field, *place)]


def _day_never_comes(cron: str) -> bool:
    """True for a refused expression whose day and month are each right by themselves."""
    minute, hour, day, month, weekday = cron.split()
    try:
        for days in (f"{day} *", f"* {month}"):
            CronSim(f"{minute} {hour} {days} {weekday}", _SAMPLE)
    except CronSimError:
        return False
    return True


def _replaced(part: Any, words: dict[str, str]) -> Any:
    if isinstance(part, str):
        return _PLACEHOLDER.sub(lambda found: words.get(found[1], found[0]), part)
    return [_replaced(entry, words) for entry in part] if isinstance(part, list) else part


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def default_lane(file: str) -> str:
    """The lane of a recurring file that names none: `Morning Brief.yaml` has `morning-brief`. Never a reserved name."""
    lane = re.sub(r"[^a-z0-9_]+", "-", PurePosixPath(file).stem.lower()).strip("-_")
    if lane in ("", DEFAULT_LANE, "archive") or lane.startswith("ask-"):
        lane = f"recurring-{lane}"
    return lane[:_MAX_LANE_CHARS].strip("-")


def _placeholder_problems(document: Document) -> list[Problem]:
    found: list[tuple[Loc, object]] = [(("output_artifact_path",), document.value.get("output_artifact_path"))]
    inputs = document.value.get("input_artifacts")
    if isinstance(inputs, list):
        found += [(("input_artifacts", index), entry) for index, entry in enumerate(inputs)]
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)

    def unknown(loc: Loc, word: str) -> Problem:
        message = f"contains {{{word}}}, which is not a placeholder; known: {known}"
        near = nearest(word, PLACEHOLDERS)
        fix = f"use {{{near}}}" if near else "use one of them"
        return Problem(message, fix, ".".join(str(part) for part in loc), *document.locate(loc))

    words = [(loc, word) for loc, text in found if isinstance(text, str) for word in _PLACEHOLDER.findall(text)]
    wrong = [(loc, word) for loc, word in words if word not in PLACEHOLDERS]
    return [unknown(loc, word) for loc, word in wrong[: MAX_PROBLEMS + 1]]
