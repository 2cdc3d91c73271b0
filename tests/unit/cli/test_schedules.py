"""`council schedule`: what is due when, what is wrong, and the two marks of a pause."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from council.cli.context import CliState
from council.cli.schedules import app
from council.desk.recurring_folder import Sighting, save_sightings
from council.engine.receipts import IdBinding, Receipt, Receipts
from council.engine.records import FileIdentity
from council.errors import CommandInvalid, UsageError
from council.settings import Home
from tests.harness import make_home, opened

LAST = datetime(2026, 11, 20, 6, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Two schedules, a bad one, and two files that are none."""
    home = Home(make_home(tmp_path / "home"))
    home.recurring.mkdir()
    home.ensure_runtime()
    body: dict[str, Any] = {"task_description": "Sum up.", "output_artifact_path": "artifacts/x.md"}
    zoned = {"cron": "0 7 * * *", "zone": "Europe/Berlin"}
    (home.recurring / "brief.json").write_text(json.dumps({"schedule": zoned, **body}))
    (home.recurring / "costs.json").write_text(json.dumps({"schedule": "30 6 1 * *", **body}))
    (home.recurring / "half.json").write_text("{")
    (home.recurring / "README.md").write_text("notes")
    return home


def run(home: Home, *arguments: str) -> Result:
    return CliRunner().invoke(
        app, list(arguments), obj=CliState(home_flag=home.root, environ={}), catch_exceptions=False
    )


def listed(home: Home) -> dict[str, dict[str, Any]]:
    return {row["file"]: row for row in json.loads(run(home, "list", "--json").stdout)}


def fired(home: Home, status: str) -> None:
    """The brief's occurrence at LAST is remembered, and has a receipt of that status."""
    id_ = "brief.json@20261120T060000Z"
    identity = FileIdentity("recurring/brief.json", 1, 1, "0")
    receipt = Receipt("r1", status, "deliberate", identity, "0", "0", "t", "t", id=id_)  # type: ignore[arg-type]
    with opened(home.root) as store:
        save_sightings(store, {"brief.json": Sighting(LAST, "0 7 * * * Europe/Berlin", LAST)})
        Receipts(store).answer(receipt, 1, IdBinding(id_, "0", "r1"))


def test_each_file_has_its_schedule_its_next_moment_in_its_zone_or_its_error(home: Home) -> None:
    rows = listed(home)
    assert list(rows) == ["brief.json", "costs.json", "half.json"]
    assert (rows["brief.json"]["cron"], rows["brief.json"]["zone"]) == ("0 7 * * *", "Europe/Berlin")
    following = datetime.fromisoformat(rows["brief.json"]["next"])
    assert (following.hour, following.minute) == (7, 0)
    assert following > datetime.now(UTC)
    assert rows["brief.json"]["error"] is None
    assert rows["brief.json"]["last"] is None
    assert "not JSON" in rows["half.json"]["error"]
    assert rows["half.json"]["next"] is None


def test_of_a_file_with_many_problems_the_first_is_listed(home: Home) -> None:
    (home.recurring / "half.json").write_text('{"schedule": "x", "id": "y"}')
    assert listed(home)["half.json"]["error"].endswith("`schedule` is 'x', not a cron expression of five fields")


@pytest.mark.parametrize("status", ["succeeded", "skipped", "failed"])
def test_the_last_occurrence_is_shown_with_what_became_of_it(home: Home, status: str) -> None:
    fired(home, status)
    row = listed(home)["brief.json"]
    assert row["last"] == "2026-11-20T07:00+01:00"
    assert row["last_status"] == status
    assert f"2026-11-20T07:00+01:00 {status}" in run(home, "list").stdout


def test_a_file_that_is_no_command_by_its_name_is_listed_as_skipped(home: Home) -> None:
    (home.recurring / "minute.markdown").touch()
    assert listed(home)["minute.markdown"]["error"] == "skipped: its name ends in none of .json, .yaml, .yml, .md"
    assert "minute.markdown: skipped" in run(home, "list").stdout


def test_the_table_has_a_line_for_each(home: Home) -> None:
    run(home, "pause", "costs")
    lines = run(home, "list").stdout.splitlines()
    assert lines[0].split() == ["FILE", "SCHEDULE", "NEXT", "LAST"]
    assert lines[1].split()[:7] == ["brief.json", "0", "7", "*", "*", "*", "Europe/Berlin"]
    assert lines[2].split() == ["costs.json", "30", "6", "1", "*", "*", "UTC", "paused", "-"]
    assert lines[3].startswith("half.json: line 1, column 2: not JSON")


def test_an_empty_home_says_where_to_begin(home: Home) -> None:
    for path in home.recurring.iterdir():
        path.unlink()
    assert "commands/recurring/" in run(home, "list").stdout
    assert listed(home) == {}


def test_next_shows_as_many_moments_as_asked_with_their_ids(home: Home) -> None:
    moments = json.loads(run(home, "next", "costs.json", "-n", "3", "--json").stdout)
    assert len(moments) == 3
    for moment in moments:
        assert moment["utc"].endswith("-01T06:30:00Z")
        assert moment["id"] == f"costs.json@{moment['utc'].replace('-', '').replace(':', '')}"
    assert len(run(home, "next", "commands/recurring/brief.json").stdout.splitlines()) == 5
    assert "07:00 CE" in run(home, "next", "brief").stdout


def test_next_of_a_bad_file_says_what_is_wrong(home: Home) -> None:
    with pytest.raises(CommandInvalid, match="not JSON"):
        run(home, "next", "half.json")


@pytest.mark.parametrize("verb", ["next", "pause", "resume"])
def test_an_unknown_file_is_answered_with_the_nearest(home: Home, verb: str) -> None:
    with pytest.raises(UsageError) as error:
        run(home, verb, "breif.json")
    assert "did you mean brief.json" in error.value.fix


def test_a_name_without_ending_that_means_two_files_is_refused(home: Home) -> None:
    (home.recurring / "brief.yaml").write_text("")
    with pytest.raises(UsageError, match=r"means brief\.json and brief\.yaml"):
        run(home, "pause", "brief")
    assert run(home, "pause", "brief.json").exit_code == 0


def test_a_name_with_a_space_is_quoted_where_a_command_is_printed(home: Home) -> None:
    (home.recurring / "brief.json").rename(home.recurring / "Morning Brief.json")
    assert "`council schedule resume 'Morning Brief.json'`" in run(home, "pause", "Morning Brief").stdout
    assert "`council schedule next 'Morning Brief.json'`" in run(home, "resume", "Morning Brief").stdout


def test_pause_and_resume_can_be_repeated_and_list_tells_the_state(home: Home) -> None:
    for _ in range(2):
        assert "brief.json is paused" in run(home, "pause", "brief").stdout
    assert listed(home)["brief.json"]["paused"] is True
    assert listed(home)["brief.json"]["next"] is None
    assert "is resumed" in run(home, "resume", "brief").stdout
    assert "is not paused" in run(home, "resume", "brief").stdout
    assert listed(home)["brief.json"]["paused"] is False


def test_pausing_touches_neither_the_inbox_nor_the_recurring_folder(home: Home) -> None:
    before = sorted(str(path) for path in home.commands.rglob("*"))
    run(home, "pause", "brief")
    run(home, "resume", "brief")
    assert sorted(str(path) for path in home.commands.rglob("*")) == before
