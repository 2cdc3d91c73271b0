"""The scheduler under a simulated clock: what it drops, skips, makes up for, and never repeats."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from council.app import commands_of
from council.commands.models import canonical_hash
from council.commands.parsing import parse_command
from council.daemon.schedule import Scheduler
from council.desk.all_systems import house
from council.desk.recurring_folder import Pause, RecurringFolder, load_sightings, save_pause, save_sightings
from council.engine.receipts import IdBinding, Receipt, Receipts, answer, bind
from council.engine.records import FileIdentity, RunStatus
from council.errors import StorageFailed
from council.events import Event, Events
from council.settings import Home
from council.storage.paths import ConfinedRoot
from council.storage.store import Store, Tx

COMMANDS = commands_of(house())


FRIDAY = datetime(2026, 11, 20, tzinfo=UTC)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


class HeldClock:
    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time

    def monotonic_s(self) -> float:
        return self.time.timestamp()


class World:
    """A home, a clock, a scheduler, and a stand-in for inbox and engine that takes commands and answers them."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.home.recurring.mkdir(parents=True)
        self.home.failed.mkdir()
        self.home.ensure_runtime()
        self.root = ConfinedRoot(folder)
        self.clock = HeldClock(FRIDAY)
        self.active: dict[str, str] = {}
        self.ran: list[str] = []
        self.events: list[Event] = []
        self.written = 0
        self.store = Store.open(self.home.runtime)
        self.restart()

    def close(self) -> None:
        self.store.close()
        self.root.close()

    def restart(self) -> None:
        """A new process: nothing is left but the disk."""
        self.store.close()
        self.store = Store.open(self.home.runtime)
        self.receipts = Receipts(self.store)
        events = Events()
        events.subscribe(self.events.append)
        self.folder = RecurringFolder(self.home, self.root, COMMANDS, max_bytes=100_000)
        self.scheduler = Scheduler(
            self.home, self.folder, self.store, lambda: self.active, events, self.clock, quiet_s=1.0
        )

    def write(self, name: str = "brief.json", schedule: Any = "0 7 * * *") -> Path:
        body = {"schedule": schedule, "task_description": "Sum up.", "output_artifact_path": "artifacts/{date}.md"}
        return self.write_text(json.dumps(body), name)

    def write_text(self, text: str, name: str, *, at: datetime | None = None) -> Path:
        """Long before the clock's time unless `at` is given; each write at a time of its own."""
        path = self.home.recurring / name
        path.write_text(text)
        self.written += 1
        mtime = (at or LONG_AGO + timedelta(seconds=self.written)).timestamp()
        os.utime(path, (mtime, mtime))
        return path

    def pause(self, since: datetime, *, holds: bool = True) -> None:
        self.store.write_now(lambda tx: save_pause(tx, "brief.json", Pause(holds, since)))

    def tick(self, now: datetime | None = None) -> float | None:
        self.clock.time = now or self.clock.time
        return self.scheduler.tick()

    def dropped(self) -> list[str]:
        """The ids in the inbox."""
        return [json.loads(path.read_bytes())["id"] for path in sorted(self.home.commands.glob("*.json"))]

    def begin(self) -> None:
        """Admits everything in the inbox, as the engine does: bind, then run. A new id or an ended bad one runs."""
        for path in sorted(self.home.commands.glob("*.json")):
            command = parse_command(COMMANDS, path.name, path.read_bytes())
            assert command.id is not None
            bound = self.receipts.bound(command.id)
            receipt = self.receipts.read(bound.run_id) if bound else None
            if receipt is None or receipt.status in ("failed", "cancelled"):
                run_id = f"run-{len(self.ran):03}"
                binding = IdBinding(command.id, canonical_hash(command), run_id)
                self.store.write_now(lambda tx, binding=binding: bind(tx, binding))  # type: ignore[misc]
                self.active[command.id] = run_id
                self.ran.append(command.id)
            else:
                path.unlink()

    def end(self, status: RunStatus = "succeeded") -> None:
        """Ends every run: receipt, then the file is taken."""
        for id_, run_id in self.active.items():
            identity = FileIdentity(f"{id_}.json", 1, 1, "0")
            self.receipts.answer(Receipt(run_id, status, "deliberate", identity, "0", "0", "then", "now", id=id_), 1)
            (self.home.commands / f"{id_}.json").unlink(missing_ok=True)
        self.active.clear()

    def work(self) -> None:
        self.begin()
        self.end()

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event.values() for event in self.events if event.kind == kind]

    def skipped(self) -> list[Receipt]:
        return [receipt for receipt in self.receipts.all() if receipt.status == "skipped"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_a_week_of_a_working_day_schedule_runs_five_times_each_at_its_minute(world: World) -> None:
    world.write(schedule={"cron": "0 7 * * 1-5", "zone": "Europe/Berlin"})
    for minute in range(7 * 24 * 60):
        world.tick(FRIDAY + timedelta(minutes=minute))
        world.work()
    assert world.ran == [f"brief.json@202611{day}T060000Z" for day in (20, 23, 24, 25, 26)]
    assert world.active == {}
    assert world.dropped() == []


def test_the_time_until_the_next_look_is_exact_so_a_sleeper_never_misses_and_never_looks_twice(world: World) -> None:
    world.write("hourly.json", "0 * * * *")
    world.write("daily.json", "30 7 * * *")
    world.tick(FRIDAY + timedelta(seconds=0.25))
    looks = 0
    while world.clock.time < FRIDAY + hours(24):
        seconds = world.tick()
        assert seconds is not None
        world.work()
        world.clock.time += timedelta(seconds=seconds)
        looks += 1
    assert looks == 25
    assert len([id_ for id_ in world.ran if id_.startswith("hourly")]) == 23
    assert [id_ for id_ in world.ran if id_.startswith("daily")] == ["daily.json@20261120T073000Z"]


def test_nothing_is_due_for_a_time_before_the_first_sighting(world: World) -> None:
    world.write()
    world.tick(FRIDAY + hours(7.5))
    world.tick(FRIDAY + hours(8))
    assert world.dropped() == []
    assert world.told("schedule_seen") == [{"file": "brief.json", "schedule": "0 7 * * * UTC"}]
    world.tick(FRIDAY + hours(31))
    assert world.dropped() == ["brief.json@20261121T070000Z"]


def test_the_dropped_file_is_a_valid_command_named_by_its_id(world: World) -> None:
    world.write()
    world.tick()
    world.tick(FRIDAY + hours(7))
    [path] = world.home.commands.glob("*.json")
    assert path.name == "brief.json@20261120T070000Z.json"
    dropped = json.loads(path.read_bytes())
    assert dropped["output_artifact_path"] == "artifacts/2026-11-20.md"
    assert dropped["session"] == "brief"
    assert world.told("schedule_due") == [
        {"file": "brief.json", "id": "brief.json@20261120T070000Z", "dropped": f"commands/{path.name}"}
    ]


def test_two_files_of_one_stem_do_not_stand_in_each_others_way(world: World) -> None:
    world.write("brief.json")
    world.write_text("schedule: 0 7 * * *\ntask_description: x\noutput_artifact_path: artifacts/y.md\n", "brief.yaml")
    world.tick()
    world.tick(FRIDAY + hours(7))
    assert world.dropped() == ["brief.json@20261120T070000Z", "brief.yaml@20261120T070000Z"]
    assert world.skipped() == []


def test_the_autumn_change_fires_once_and_the_spring_change_when_the_gap_ends(world: World) -> None:
    world.write(schedule={"cron": "30 2 * * *", "zone": "Europe/Berlin"})
    for start in (datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2027, 3, 27, 12, tzinfo=UTC)):
        save_sightings(world.store, {})
        world.restart()
        for minute in range(24 * 60):
            world.tick(start + timedelta(minutes=minute))
            world.work()
    assert world.ran == ["brief.json@20261025T003000Z", "brief.json@20270328T010000Z"]


@pytest.mark.parametrize(
    ("zone", "cron", "start", "runs"),
    [  # Lord Howe's clock is put back from 02:00 to 01:30, and put on from 02:00 to 02:30
        ("Australia/Lord_Howe", "0 */2 * * *", "2026-04-04T13:30", ["04T1530"]),
        ("Australia/Lord_Howe", "0 */3 * * *", "2026-04-04T13:30", ["04T1630"]),
        ("Australia/Lord_Howe", "40 * * * *", "2026-04-04T13:50", ["04T1440", "04T1510", "04T1610", "04T1710"]),
        ("Australia/Lord_Howe", "0 */3 * * *", "2026-10-03T14:00", ["03T1600"]),
        # Havana's clock is put on from midnight to 01:00
        ("America/Havana", "*/30 1 * * SUN", "2026-03-08T04:00", ["08T0500", "08T0530"]),
    ],
)
def test_a_clock_that_is_put_by_half_an_hour_or_at_midnight_loses_no_run(
    world: World, zone: str, cron: str, start: str, runs: list[str]
) -> None:
    world.write(schedule={"cron": cron, "zone": zone})
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    for minute in range(4 * 60):
        world.tick(begin + timedelta(minutes=minute))
        world.work()
    assert world.ran == [f"brief.json@{begin:%Y%m}{run}00Z" for run in runs]


# ── downtime ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_downtime_only_the_latest_missed_occurrence_runs_and_the_others_are_told_in_one_line(
    world: World,
) -> None:
    world.write()
    world.tick()
    world.restart()
    world.tick(FRIDAY + hours(24 * 4 + 12))
    world.work()
    assert world.ran == ["brief.json@20261124T070000Z"]
    assert world.told("schedule_missed") == [
        {
            "file": "brief.json",
            "count": 4,
            "first": "2026-11-20T07:00:00Z",
            "capped": False,
            "latest": "2026-11-24T07:00:00Z",
        }
    ]
    world.restart()
    world.tick()
    world.work()
    assert len(world.ran) == 1


def test_a_year_of_missed_minutes_is_one_catch_up_and_a_capped_count(world: World) -> None:
    world.write(schedule="* * * * *")
    world.tick()
    world.tick(FRIDAY + timedelta(days=365, seconds=30))
    assert world.dropped() == ["brief.json@20271120T000000Z"]
    [missed] = world.told("schedule_missed")
    assert (missed["count"], missed["capped"]) == (10_000, True)


def test_a_clock_that_jumps_forward_is_one_catch_up_and_back_again_repeats_nothing(world: World) -> None:
    world.write(schedule="0 * * * *")
    world.tick()
    for now in (1, 2, 50, 1.5, 2, 3, 4):
        world.tick(FRIDAY + hours(now))
        world.work()
    assert world.ran == [f"brief.json@202611{stamp}0000Z" for stamp in ("20T01", "20T02", "22T02", "20T03", "20T04")]


def test_a_clock_set_back_by_a_moment_repeats_nothing(world: World) -> None:
    world.write()
    world.tick()
    world.tick(FRIDAY + hours(7))
    world.begin()
    seconds = world.tick(FRIDAY + hours(7) - timedelta(seconds=2))
    assert seconds == 2.0
    world.tick(FRIDAY + hours(7))
    world.end()
    world.tick(FRIDAY + hours(8))
    world.work()
    assert world.ran == ["brief.json@20261120T070000Z"]
    assert world.skipped() == []
    assert len(world.told("schedule_seen")) == 1


def test_a_clock_that_was_far_ahead_and_is_corrected_does_not_silence_a_schedule(world: World) -> None:
    world.write()
    world.tick(FRIDAY + timedelta(days=3650))
    world.tick(FRIDAY)
    world.tick(FRIDAY + hours(7))
    assert world.dropped() == ["brief.json@20261120T070000Z"]


# ── kills ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fate", ["dropped", "running", "succeeded", "failed", "cancelled", "set aside"])
def test_a_kill_between_drop_and_memory_never_runs_an_occurrence_twice(
    world: World, monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    world.write()
    world.tick()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("council.daemon.schedule.save_sightings", killed)
        with pytest.raises(KeyboardInterrupt):
            world.tick(FRIDAY + hours(7))
    if fate == "set aside":
        name = "brief.json@20261120T070000Z.json"
        os.rename(world.home.commands / name, world.home.failed / name)
    if fate in ("running", "succeeded", "failed", "cancelled"):
        world.begin()
    if fate in ("succeeded", "failed", "cancelled"):
        world.end(cast(RunStatus, fate))
    before = sorted(path.name for path in world.home.commands.iterdir())
    world.restart()
    world.tick(FRIDAY + hours(7.1))
    assert sorted(path.name for path in world.home.commands.iterdir()) == before
    assert world.skipped() == []
    world.restart()
    assert world.tick(FRIDAY + hours(7.2)) == hours(23.8).total_seconds()


def test_a_kill_before_the_drop_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write()
    world.tick()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("council.daemon.schedule.drop", killed)
        with pytest.raises(KeyboardInterrupt):
            world.tick(FRIDAY + hours(7))
    world.restart()
    world.tick(FRIDAY + hours(7.1))
    assert world.dropped() == ["brief.json@20261120T070000Z"]


def test_a_skip_that_cannot_be_written_binds_no_id_and_leaves_the_occurrence_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(schedule="0 * * * *")
    world.tick()
    world.tick(FRIDAY + hours(1))
    world.begin()

    def refused(tx: Tx, receipt: Receipt, ended_ns: int) -> None:
        answer(tx, receipt, ended_ns)
        raise StorageFailed("no room.", fix="make some")

    with monkeypatch.context() as patch:
        patch.setattr("council.engine.receipts.answer", refused)
        world.tick(FRIDAY + hours(2))
    assert world.receipts.bound("brief.json@20261120T020000Z") is None
    world.restart()
    world.tick(FRIDAY + hours(2.1))
    assert [receipt.id for receipt in world.skipped()] == ["brief.json@20261120T020000Z"]


def test_a_full_disk_stops_nothing_and_the_occurrence_is_dropped_when_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write()
    world.write("other.json", "0 7 * * *")
    world.tick()

    def full(*_: object) -> None:
        raise StorageFailed("no room.", fix="make some")

    with monkeypatch.context() as patch:
        patch.setattr("council.daemon.schedule.drop", full)
        assert world.tick(FRIDAY + hours(7)) == 30.0
    world.tick(FRIDAY + hours(7) + timedelta(seconds=30))
    assert len(world.dropped()) == 2


# ── overlap ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_while_an_occurrence_runs_the_next_is_skipped_with_a_receipt_and_never_runs_later(world: World) -> None:
    world.write(schedule="0 * * * *")
    world.tick()
    world.tick(FRIDAY + hours(1))
    world.begin()
    world.tick(FRIDAY + hours(2))
    [receipt] = world.skipped()
    assert receipt.id == "brief.json@20261120T020000Z"
    assert receipt.title == receipt.id
    assert receipt.command_file.name == "recurring/brief.json"
    assert receipt.notes == ("Skipped: run run-000 of an earlier occurrence has not ended.",)
    bound = world.receipts.bound("brief.json@20261120T020000Z")
    assert bound is not None
    assert bound.run_id == receipt.run_id
    assert world.told("schedule_skipped")[0]["receipt"] == receipt.run_id
    world.end()
    for hour in (2.1, 3):
        world.tick(FRIDAY + hours(hour))
        world.work()
    assert world.ran == ["brief.json@20261120T010000Z", "brief.json@20261120T030000Z"]


def test_a_command_that_still_lies_in_the_inbox_is_an_earlier_occurrence_too(world: World) -> None:
    world.write(schedule="0 * * * *")
    world.tick()
    world.tick(FRIDAY + hours(1))
    world.tick(FRIDAY + hours(2))
    assert world.dropped() == ["brief.json@20261120T010000Z"]
    [receipt] = world.skipped()
    assert "commands/brief.json@20261120T010000Z.json of an earlier occurrence is still waiting" in receipt.notes[0]


def test_the_run_of_another_schedule_or_of_a_person_is_no_overlap(world: World) -> None:
    world.write(schedule="0 * * * *")
    world.tick()
    world.active.update({"other.json@20261120T000000Z": "a", "brief.json@release": "b", "brief.json": "c"})
    world.tick(FRIDAY + hours(1))
    assert world.dropped() == ["brief.json@20261120T010000Z"]


def test_a_catch_up_while_a_run_goes_on_is_skipped(world: World) -> None:
    world.write()
    world.tick()
    world.tick(FRIDAY + hours(7))
    world.begin()
    world.restart()
    world.tick(FRIDAY + hours(24 * 3 + 8))
    assert [receipt.id for receipt in world.skipped()] == ["brief.json@20261123T070000Z"]
    assert world.told("schedule_missed")[0]["count"] == 2


# ── files that change ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reworded_task_keeps_its_catch_up_and_a_changed_schedule_counts_from_when_it_is_seen(world: World) -> None:
    path = world.write()
    world.tick()
    world.write_text(path.read_text().replace("Sum up.", "Sum up again."), path.name)
    world.restart()
    world.tick(FRIDAY + hours(8))
    [dropped] = world.home.commands.glob("*.json")
    assert json.loads(dropped.read_bytes())["task_description"] == "Sum up again."
    world.work()
    world.write(schedule="0 9 * * *")
    world.tick(FRIDAY + hours(10))
    assert world.dropped() == []
    world.tick(FRIDAY + hours(33))
    assert world.dropped() == ["brief.json@20261121T090000Z"]


def test_an_unchanged_file_is_parsed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write()
    world.tick()

    def parsed_again(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(RecurringFolder, "read", parsed_again)
    assert world.tick(FRIDAY + hours(1)) == hours(6).total_seconds()


def test_a_removed_file_is_forgotten_and_counts_anew_when_it_comes_back(world: World) -> None:
    path = world.write()
    world.tick()
    path.unlink()
    assert world.tick(FRIDAY + hours(6)) is None
    assert load_sightings(world.store) == {}
    world.write()
    world.tick(FRIDAY + hours(8))
    assert world.dropped() == []


def test_a_bad_file_stays_with_a_note_beside_it_that_goes_when_it_is_mended(world: World) -> None:
    world.write("good.json")
    path = world.write(schedule={"cron": "0 7 * * *", "zone": "Europe/Berlim"})
    world.tick()
    world.tick()
    page = path.with_name("brief.json.error.md")
    assert "`schedule.zone` is 'Europe/Berlim'" in page.read_text()
    assert 'Fix: use "Europe/Berlin".' in page.read_text()
    assert "Correct the file in its place" in page.read_text()
    assert path.exists()
    [refused] = world.told("schedule_refused")
    assert refused["file"] == "brief.json"
    assert refused["note"] == "commands/recurring/brief.json.error.md"
    world.write(schedule={"cron": "0 7 * * *", "zone": "Europe/Berlin"})
    world.tick(FRIDAY + hours(1))
    assert not page.exists()
    world.tick(FRIDAY + hours(7))
    assert len(world.dropped()) == 2


def test_a_file_that_breaks_after_it_was_seen_catches_up_once_when_it_is_mended(world: World) -> None:
    path = world.write()
    good = path.read_text()
    world.tick()
    world.write_text("{", path.name)
    world.tick(FRIDAY + hours(7))
    assert world.dropped() == []
    world.write_text(good, path.name)
    world.tick(FRIDAY + hours(9))
    assert world.dropped() == ["brief.json@20261120T070000Z"]


def test_the_note_of_a_bad_file_that_is_gone_goes_too_even_over_a_restart(world: World) -> None:
    path = world.write(schedule="x")
    world.tick()
    path.unlink()
    world.restart()
    world.tick()
    assert list(world.home.recurring.iterdir()) == []


def test_a_file_just_written_is_neither_dropped_from_nor_told_off(world: World) -> None:
    text = "schedule: 0 * * * *\ntask_description: x\noutput_artifact_path: artifacts/y.md\n"
    world.write_text(text, "brief.yaml")
    world.tick()
    now = FRIDAY + hours(1)
    world.write_text(text + "input_artifacts: [a.md]\n", "brief.yaml", at=now - timedelta(seconds=0.5))
    world.write_text("{", "half.json", at=now - timedelta(seconds=0.5))
    assert world.tick(now) == 1.0
    assert world.dropped() == []
    assert world.told("schedule_refused") == []
    world.tick(now + timedelta(seconds=1))
    assert world.dropped() == ["brief.yaml@20261120T010000Z"]
    assert [data["file"] for data in world.told("schedule_refused")] == ["half.json"]


@pytest.mark.parametrize("name", ["README.json", ".brief.json", "brief.json~", "brief.json.tmp", "brief.txt"])
def test_names_that_are_no_commands_do_not_count(world: World, name: str) -> None:
    world.write(name)
    assert world.tick() is None
    assert world.events == []


def test_links_are_refused_and_a_linked_folder_holds_nothing(world: World, tmp_path: Path) -> None:
    target = world.write("real.json")
    (world.home.recurring / "link.json").symlink_to(target)
    world.tick()
    assert [data["file"] for data in world.told("schedule_refused")] == ["link.json"]
    world.home.recurring.rename(tmp_path / "elsewhere")
    world.home.recurring.symlink_to(tmp_path / "elsewhere")
    assert world.tick() is None


def test_without_the_folder_there_is_nothing_to_do_and_nothing_is_written(world: World) -> None:
    world.home.recurring.rmdir()
    assert world.tick() is None
    assert load_sightings(world.store) == {}


def test_a_file_of_somebody_else_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    owner = os.stat(world.home.root)
    fields = list(owner)
    fields[4] = 4242
    real = os.stat
    monkeypatch.setattr(
        os, "stat", lambda path, **kw: os.stat_result(fields) if path == world.home.root else real(path, **kw)
    )
    world.tick()
    [refused] = world.told("schedule_refused")
    assert "belongs to uid" in refused["error"]


# ── pausing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_paused_schedule_drops_nothing_and_what_fell_into_the_pause_is_not_made_up_for(world: World) -> None:
    world.write(schedule="0 * * * *")
    world.tick()
    world.pause(FRIDAY + hours(0.5))
    world.pause(FRIDAY + hours(0.6))
    for hour in (1, 2, 3):
        assert world.tick(FRIDAY + hours(hour)) is None
    world.restart()
    assert world.tick(FRIDAY + hours(3.2)) is None
    world.pause(FRIDAY + hours(3.5), holds=False)
    assert world.tick(FRIDAY + hours(3.5)) == hours(0.5).total_seconds()
    assert world.dropped() == []
    world.tick(FRIDAY + hours(4))
    assert world.dropped() == ["brief.json@20261120T040000Z"]


def test_a_pause_that_begins_and_ends_while_no_daemon_runs_holds_back_its_occurrences_too(world: World) -> None:
    world.write(schedule="0 * * * *")
    world.tick()
    world.pause(FRIDAY + hours(0.5))
    world.pause(FRIDAY + hours(3.5), holds=False)
    world.restart()
    world.tick(FRIDAY + hours(3.6))
    assert world.dropped() == []
    world.restart()
    world.tick(FRIDAY + hours(6.5))
    assert world.dropped() == ["brief.json@20261120T060000Z"]
