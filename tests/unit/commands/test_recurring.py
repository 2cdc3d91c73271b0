"""Recurring commands: what a file may say, the moments of a schedule, and the command of one moment."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.app import commands_of
from council.commands.file_formats import NotACommand, Problem, Unparsable
from council.commands.parsing import parse_command
from council.commands.recurring import Schedule, default_lane, occurrence_pattern, parse_recurring
from council.deliberation.commands import DeliberateCommand
from council.desk.all_systems import house
from council.errors import CommandInvalid

COMMANDS = commands_of(house())


DOCS = Path(__file__).parents[3] / "docs" / "schedules.md"
MOMENT = datetime(2026, 11, 20, 7, tzinfo=UTC)
BODY = {"task_description": "Sum up.", "output_artifact_path": "artifacts/{date}.md"}


def body(**keys: object) -> bytes:
    return json.dumps({"schedule": "0 7 * * 1-5", **BODY, **keys}).encode()


def problems(name: str, data: bytes) -> list[Problem]:
    with pytest.raises(CommandInvalid) as error:
        parse_recurring(COMMANDS, name, data)
    found = error.value.data["problems"]
    assert isinstance(found, list)
    return found


def moments(cron: str, zone: str, start: datetime, days: float) -> list[str]:
    """The moments in UTC, `day hour:minute`."""
    end = start + timedelta(days=days)
    return [f"{moment:%d %H:%M}" for moment in takewhile(lambda found: found <= end, Schedule(cron, zone).after(start))]


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("brief.json", body(schedule={"cron": "0 7 * * 1-5", "zone": "Europe/Berlin"})),
        (
            "brief.yaml",
            b"schedule: {cron: 0  7 * * 1-5, zone: Europe/Berlin}\ntask_description: Sum up.\n"
            b"output_artifact_path: artifacts/{date}.md\n",
        ),
        (
            "brief.md",
            b"---\nschedule:\n  cron: '0 7 * * 1-5'\n  zone: Europe/Berlin\n"
            b"output_artifact_path: artifacts/{date}.md\n---\nSum up.\n",
        ),
    ],
)
def test_json_yaml_and_markdown_say_the_same(name: str, data: bytes) -> None:
    recurring = parse_recurring(COMMANDS, name, data)
    assert recurring.schedule == Schedule("0 7 * * 1-5", "Europe/Berlin")
    command = recurring.command_at(MOMENT)
    assert isinstance(command, DeliberateCommand)
    assert command.task_description == "Sum up."
    assert command.output_artifact_path == "artifacts/2026-11-20.md"
    assert command.id == f"{name}@20261120T070000Z"
    assert command.session == "brief"


def test_a_schedule_without_a_zone_reads_the_clock_of_utc() -> None:
    assert parse_recurring(COMMANDS, "a.json", body()).schedule == Schedule("0 7 * * 1-5", "UTC")
    assert parse_recurring(COMMANDS, "a.json", body(schedule={"cron": "5 4 * * *"})).schedule == Schedule(
        "5 4 * * *", "UTC"
    )


def test_the_dropped_bytes_are_an_ordinary_command_with_the_same_meaning() -> None:
    recurring = parse_recurring(COMMANDS, "a.json", body(**{"$schema": "x.json", "config": {"max_rounds": 2}}))
    dropped = json.loads(recurring.bytes_at(MOMENT))
    assert set(dropped) == {"task_description", "output_artifact_path", "config", "id", "session"}
    assert parse_command(COMMANDS, "a.json", recurring.bytes_at(MOMENT)) == recurring.command_at(MOMENT)


def test_placeholders_are_filled_in_paths_alone_date_and_time_in_the_zone_and_id_in_utc() -> None:
    data = body(
        schedule={"cron": "30 0 * * *", "zone": "Asia/Tokyo"},
        task_description="Leave {date} alone, and {anything}.",
        input_artifacts=["in/{date}/{time}.md", "plain.md"],
        output_artifact_path="artifacts/{id}/{date}-{time}.md",
    )
    command = parse_recurring(COMMANDS, "a.json", data).command_at(datetime(2026, 11, 19, 15, 30, tzinfo=UTC))
    assert isinstance(command, DeliberateCommand)
    assert command.input_artifacts == ("in/2026-11-20/0030.md", "plain.md")
    assert command.output_artifact_path == "artifacts/20261119T153000Z/2026-11-20-0030.md"
    assert command.task_description == "Leave {date} alone, and {anything}."


def test_a_given_session_is_kept_and_a_type_without_task_keeps_its_own_lane() -> None:
    given_lane = parse_recurring(COMMANDS, "a.json", body(session="main")).command_at(MOMENT)
    assert isinstance(given_lane, DeliberateCommand)
    assert given_lane.session == "main"
    reset = {"schedule": "0 0 1 * *", "type": "memory", "role": "AUDITOR", "action": "reset"}
    command = parse_recurring(COMMANDS, "reset.json", json.dumps(reset).encode()).bytes_at(MOMENT)
    assert "session" not in json.loads(command)


@pytest.mark.parametrize(
    ("file", "lane"),
    [
        ("brief.json", "brief"),
        ("Morning Brief.v2.yaml", "morning-brief-v2"),
        ("main.json", "recurring-main"),
        ("archive.md", "recurring-archive"),
        ("ask-me.json", "recurring-ask-me"),
        ("__.json", "recurring"),
        ("2026_plan.json", "2026_plan"),
        ("x" * 100 + ".json", "x" * 64),
    ],
)
def test_the_default_lane_is_the_files_own_name_and_never_a_reserved_one(file: str, lane: str) -> None:
    assert default_lane(file) == lane


@given(st.text(alphabet=st.characters(max_codepoint=0x24F), min_size=1, max_size=120))
def test_every_file_name_gives_a_valid_lane(stem: str) -> None:
    lane = default_lane(f"{stem}.json")
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", lane)
    assert lane not in ("main", "archive")
    assert not lane.startswith("ask-")


def test_the_pattern_of_ids_matches_those_of_this_file_alone() -> None:
    pattern = occurrence_pattern("a.json")
    assert pattern.fullmatch(parse_recurring(COMMANDS, "a.json", body()).id_at(MOMENT))
    assert not pattern.fullmatch("a-json@20261120T070000Z")
    assert not pattern.fullmatch("aa.json@20261120T070000Z")
    assert not pattern.fullmatch("a.json@release")


@pytest.mark.parametrize(
    ("keys", "field", "message", "fix"),
    [
        ({"schedule": "* * * *"}, "schedule", "of five fields", "minute, hour"),
        ({"schedule": "* * * * * *"}, "schedule", "of five fields", "minute, hour"),
        ({"schedule": "@daily"}, "schedule", "'@daily'", 'write "0 0 * * *"'),
        ({"schedule": "60 * * * *"}, "schedule", "bad minute", "minute, hour"),
        ({"schedule": "0 0 32 2 *"}, "schedule", "bad day-of-month", "minute, hour"),
        ({"schedule": "0 0 30 13 *"}, "schedule", "bad month", "minute, hour"),
        ({"schedule": "0 0 30 2 *"}, "schedule", "no such day ever comes", "exists"),
        ({"schedule": "0 0 */31 2 MON#5"}, "schedule", "50 years", "exists"),
        ({"schedule": "0 " * 300}, "schedule", "of five fields", "minute, hour"),
        ({"schedule": 7}, "schedule", "an object with cron and zone", "minute, hour"),
        ({"schedule": None}, "schedule", "an object with cron and zone", "minute, hour"),
        ({"schedule": {"zone": "UTC"}}, "schedule.cron", "is missing", "add"),
        ({"schedule": {"cron": 7}}, "schedule.cron", "must be text", "minute, hour"),
        ({"schedule": {"cron": "* * * * *", "zones": "UTC"}}, "schedule.zones", "not a known key", '"zone"'),
        ({"schedule": {"cron": "* * * * *", "zone": 1}}, "schedule.zone", "must be text", "Europe/Berlin"),
        ({"schedule": {"cron": "* * * * *", "zone": "Berlin"}}, "schedule.zone", "'Berlin'", '"Europe/Berlin"'),
        ({"schedule": {"cron": "* * * * *", "zone": "Europe/Berlim"}}, "schedule.zone", "Berlim", '"Europe/Berlin"'),
        ({"schedule": {"cron": "* * * * *", "zone": "new york"}}, "schedule.zone", "york", '"America/New_York"'),
        ({"schedule": {"cron": "* * * * *", "zone": "Europe"}}, "schedule.zone", "not a time zone", "Europe/"),
        ({"schedule": {"cron": "* * * * *", "zone": "../x"}}, "schedule.zone", "not a time zone", "name a zone"),
        ({"schedule": {"cron": "* * * * *", "zone": ""}}, "schedule.zone", "not a time zone", "name a zone"),
        ({"schedule": {"cron": "* * * * *", "zone": "Mars/X"}}, "schedule.zone", "not a time zone", "name a zone"),
        ({"id": "mine"}, "id", "created for every occurrence", "{id}"),
        ({"output_artifact_path": "a/{dates}.md"}, "output_artifact_path", "{date}, {time}, {id}", "{date}"),
        ({"input_artifacts": ["x.md", "{}.md"]}, "input_artifacts.1", "{date}, {time}, {id}", "use"),
        ({"output_artifact_path": 5}, "output_artifact_path", "must be text", "correct"),
        ({"colour": "red"}, "colour", "is not a known key", "remove it"),
        ({"type": "deliberat"}, "type", "known types", "deliberate"),
    ],
)
def test_what_is_wrong_is_named_with_its_field_and_its_fix(
    keys: dict[str, object], field: str, message: str, fix: str
) -> None:
    [problem] = problems("a.json", body(**keys))
    assert problem.field == field
    assert message in problem.message
    assert fix in problem.fix
    assert problem.line == 1


def test_a_file_without_a_schedule_is_told_what_to_add() -> None:
    [problem] = problems("a.json", json.dumps(BODY).encode())
    assert (problem.field, problem.message) == ("schedule", "is missing")
    assert '"schedule": "0 7 * * 1-5"' in problem.fix


def test_all_problems_are_told_at_once_each_with_its_line() -> None:
    data = b"schedule: {cron: nonsense, zone: Mars}\nid: x\noutput_artifact_path: a/{day}.md\nconfig: {max_rounds: 0}\n"
    assert [(problem.field, problem.line) for problem in problems("a.yaml", data)] == [
        ("schedule.cron", 1),
        ("schedule.zone", 1),
        ("task_description", 1),
        ("id", 2),
        ("output_artifact_path", 3),
        ("config.max_rounds", 4),
    ]


@pytest.mark.parametrize("name", ["état.json", "a@b.json", "a{b}.json", "日本.yaml", "_a.json", "x" * 200 + ".json"])
def test_a_file_name_that_cannot_be_part_of_an_id_is_refused(name: str) -> None:
    [problem] = problems(name, body())
    assert problem.fix == "rename the file"
    assert problem.message.endswith("of A-Z a-z 0-9 . _ : + - space, first a letter or a digit")


def test_markdown_with_a_schedule_but_no_path_is_an_error_and_other_markdown_is_no_command() -> None:
    [problem] = problems("a.md", b"---\nschedule: 0 7 * * *\n---\nSum up.\n")
    assert (problem.field, problem.message) == ("output_artifact_path", "is missing")
    for notes in (b"# Notes\nschedule: none\n", b"---\ntitle: Notes\n---\nschedule: none\n", b"\xff"):
        with pytest.raises(NotACommand):
            parse_recurring(COMMANDS, "a.md", notes)


def test_half_a_file_is_unparsable() -> None:
    with pytest.raises(Unparsable):
        parse_recurring(COMMANDS, "a.json", body()[:20])


def test_schedule_in_an_ordinary_command_stays_an_unknown_key() -> None:
    with pytest.raises(CommandInvalid, match="`schedule` is not a known key"):
        parse_command(COMMANDS, "a.json", body())


@pytest.mark.parametrize("file", ["costs.json", "risks.yaml", "brief.md"])
def test_the_documented_examples_are_valid(file: str) -> None:
    section = DOCS.read_text().split(f"`commands/recurring/{file}`")[1]
    example = section.split("```")[1].partition("\n")[2]
    assert parse_recurring(COMMANDS, file, example.encode()).command_at(MOMENT).id == f"{file}@20261120T070000Z"


# ── the moments ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fixed_time_fires_once_when_the_clock_is_put_back() -> None:
    start = datetime(2026, 10, 23, 12, tzinfo=UTC)
    assert moments("30 2 * * *", "Europe/Berlin", start, 3) == ["24 00:30", "25 00:30", "26 01:30"]


def test_a_search_that_starts_in_the_repeated_hour_never_goes_back() -> None:
    second_pass = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10 for the second time
    assert moments("30 2 * * *", "Europe/Berlin", second_pass, 2) == ["26 01:30"]


def test_every_quarter_of_an_hour_goes_on_through_the_repeated_hour() -> None:
    start = datetime(2026, 10, 24, 23, 50, tzinfo=UTC)
    found = list(islice(Schedule("*/15 * * * *", "Europe/Berlin").after(start), 12))
    assert found == [datetime(2026, 10, 25, tzinfo=UTC) + timedelta(minutes=15 * step) for step in range(12)]


def test_a_fixed_time_that_spring_leaves_out_fires_when_the_gap_ends() -> None:
    start = datetime(2026, 3, 27, 12, tzinfo=UTC)
    assert moments("30 2 * * *", "Europe/Berlin", start, 3) == ["28 01:30", "29 01:00", "30 00:30"]


def test_a_moment_is_later_than_the_one_asked_after_to_the_fraction_of_a_second() -> None:
    schedule = Schedule("0 7 * * *")
    assert next(schedule.after(MOMENT)) == MOMENT + timedelta(days=1)
    assert next(schedule.after(MOMENT - timedelta(microseconds=1))) == MOMENT
    assert next(schedule.after(MOMENT + timedelta(microseconds=1))) == MOMENT + timedelta(days=1)


@settings(max_examples=60)
@given(
    st.sampled_from(["30 2 * * *", "0,30 1-3 * * *", "*/20 * * * *", "0 0 1 * *", "15 2 * 3,10 SUN", "0 12 29 2 *"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Asia/Beirut"]),
    st.timedeltas(timedelta(0), timedelta(days=730)),
    st.timedeltas(timedelta(0), timedelta(days=40)),
)
def test_the_latest_moment_is_the_last_of_all_wherever_the_search_begins(
    cron: str, zone: str, offset: timedelta, span: timedelta
) -> None:
    schedule, start = Schedule(cron, zone), datetime(2025, 1, 1, tzinfo=UTC) + offset
    every = list(takewhile(lambda moment: moment <= start + span, schedule.after(start)))
    assert schedule.latest(start, start + span) == (every[-1] if every else None)
    assert every == sorted(set(every))


def test_a_text_that_is_forgotten_again_and_again_needs_a_salt() -> None:
    forget = {"schedule": "0 7 * * *", "type": "forget", "text": "Dig in March."}
    [problem] = problems("a.json", json.dumps(forget).encode())
    assert "a recurring command always has one" in problem.fix
    salted = {**forget, "salt": "0123456789abcdef"}
    assert parse_recurring(COMMANDS, "a.json", json.dumps(salted).encode()).command_at(MOMENT).type == "forget"
