"""Runs by what a person gives of them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo

import pytest

from council.desk.desk import Desk
from council.desk.overview import overview
from council.desk.run_lookup import (
    NoTime,
    find_all,
    find_any,
    find_ended,
    find_for,
    find_seen,
    first_moment,
    journal_of,
    receipt_of,
)
from council.engine.open_questions import QUESTION_ENDING
from council.engine.outputs import OutputEntry, note_written
from council.engine.receipts import ArtifactRef, PruneMark, Receipts
from council.engine.records import Waiting
from council.errors import JournalDamaged, RunNotFound, UsageError
from council.ids import Principal
from council.storage.store import Store
from tests.rows import AT, begun, ended, receipt

ONE, TWO, THREE = "20261120-000001-aaaaaaaa", "20261120-000002-bbbbbbbb", "20261121-000003-cccccccc"
PAGE = ArtifactRef("artifacts/a.md", "0")


@pytest.fixture
def runs(store: Store) -> None:
    """Two ended runs, the first with a page, and one under way."""
    ended(store, ONE, 1, artifact=PAGE)
    ended(store, TWO, 2, status="failed")
    begun(store, THREE)


@pytest.mark.usefixtures("runs")
def test_a_beginning_that_only_one_ended_run_has_means_it(desk: Desk) -> None:
    assert find_ended(desk, "20261120-000002") == TWO


@pytest.mark.usefixtures("runs")
def test_words_of_a_run_are_no_id_and_the_fix_names_the_list_that_finds_them(desk: Desk) -> None:
    for given, fix in (("failed", "`council runs failed` finds"), ("nowhere", "`council runs` lists all runs")):
        with pytest.raises(RunNotFound) as refused:
            find_any(desk, given)
        assert refused.value.fix.startswith(fix)


@pytest.mark.usefixtures("runs")
def test_last_is_the_last_that_left_a_page(desk: Desk) -> None:
    assert (find_ended(desk, "last"), find_any(desk, "last")) == (ONE, ONE)


@pytest.mark.usefixtures("runs")
def test_a_beginning_of_two_runs_is_refused_with_both(desk: Desk) -> None:
    with pytest.raises(RunNotFound, match="matches 2 runs") as refused:
        find_ended(desk, "20261120")
    assert refused.value.data["matches"] == [ONE, TWO]


@pytest.mark.usefixtures("runs")
def test_a_run_under_way_is_found_only_where_it_may_be(desk: Desk) -> None:
    assert find_any(desk, "20261121") == THREE
    with pytest.raises(RunNotFound, match=f"that run, {THREE}, has not ended yet") as refused:
        find_ended(desk, "20261121")
    assert refused.value.fix == f"`council show {THREE}` shows how far it is"
    with pytest.raises(RunNotFound, match="no run matches '20270101'"):
        find_ended(desk, "20270101")


def test_without_any_run_last_says_how_to_get_one(desk: Desk) -> None:
    with pytest.raises(RunNotFound, match="no run has ended in") as refused:
        find_ended(desk, "last")
    assert "council submit --wait" in refused.value.fix
    with pytest.raises(RunNotFound, match="there is no run in"):
        find_any(desk, "last")


def test_an_id_that_begins_another_means_the_run_itself(desk: Desk, store: Store) -> None:
    ended(store, "r1", 1)
    ended(store, "r11", 2)
    assert find_any(desk, "r1") == "r1"


def test_a_whole_id_is_taken_as_it_is_known_or_not(desk: Desk) -> None:
    assert find_for(desk, ONE, "resume") == ONE


@pytest.mark.usefixtures("runs")
def test_cancel_and_retry_mean_different_last_runs(desk: Desk) -> None:
    assert find_for(desk, "last", "cancel") == THREE
    assert find_for(desk, "last", "retry") == ONE


def test_the_last_to_resume_is_one_that_waits_before_one_that_failed(desk: Desk, store: Store) -> None:
    ended(store, ONE, 1, status="failed", artifact=PAGE)
    waits = begun(store, TWO)
    begun(store, THREE)
    ended(store, "20261122-000004-dddddddd", 2, artifact=PAGE)
    assert find_for(desk, "last", "resume") == ONE
    asyncio.run(waits.wait(Waiting("provider", "2026-11-20T00:00:00Z", 90.0, "busy")))
    assert find_for(desk, "last", "resume") == TWO


def test_the_last_to_answer_is_the_newest_that_asks(desk: Desk, store: Store) -> None:
    asking = begun(store, ONE)
    begun(store, TWO)
    ended(store, THREE, 2, artifact=PAGE)
    with pytest.raises(RunNotFound, match="no run asks anything in"):
        find_for(desk, "last", "answer")
    asyncio.run(asking.put(f"colour{QUESTION_ENDING}", "Which colour?", type=str))
    assert find_for(desk, "last", "answer") == ONE


@pytest.mark.parametrize("to", ["cancel", "resume", "retry"])
def test_a_beginning_of_an_active_run_and_an_ended_one_is_refused_with_both(
    desk: Desk, store: Store, to: Literal["cancel", "resume", "retry"]
) -> None:
    ended(store, ONE, 1)
    begun(store, TWO)
    with pytest.raises(RunNotFound) as refusal:
        find_for(desk, "20261120", to)
    assert refusal.value.data["matches"] == [ONE, TWO]
    assert find_for(desk, TWO[:-1], to) == TWO


def test_a_beginning_of_two_runs_under_way_is_refused_with_both(desk: Desk, store: Store) -> None:
    begun(store, ONE)
    begun(store, TWO)
    with pytest.raises(RunNotFound) as refusal:
        find_for(desk, "20261120", "cancel")
    assert refusal.value.data["matches"] == [ONE, TWO]


def test_there_is_nothing_to_cancel_where_nothing_goes_on(desk: Desk, store: Store) -> None:
    ended(store, ONE, 1, artifact=PAGE)
    with pytest.raises(RunNotFound, match="no run is active"):
        find_for(desk, "last", "cancel")


@pytest.mark.usefixtures("runs")
def test_a_run_that_goes_on_has_no_receipt_yet(desk: Desk) -> None:
    assert receipt_of(desk, ONE).artifact == PAGE
    with pytest.raises(RunNotFound, match="has no receipt"):
        receipt_of(desk, THREE)


def test_of_a_pruned_run_it_is_told_what_stays_and_which_setting_keeps_more(desk: Desk, store: Store) -> None:
    ended(store, ONE, 1)
    assert journal_of(desk, ONE).header.run_id == ONE
    Receipts(store).prune(ONE, PruneMark(AT, "keep_runs"))
    with pytest.raises(RunNotFound, match=f"was pruned on {AT} by keep_runs") as refused:
        journal_of(desk, ONE)
    assert refused.value.fix == f"`council show {ONE}` prints what stays; a larger keep_runs keeps more runs"


def test_the_receipt_of_a_control_command_is_no_run_to_read(desk: Desk, store: Store) -> None:
    Receipts(store).answer(receipt(ONE, type="cancel", lane=""), 1)
    with pytest.raises(RunNotFound, match="is not a run: it is the receipt of a cancel command"):
        journal_of(desk, ONE)


def test_a_user_sees_their_own_runs_and_an_administrator_all(desk: Desk, store: Store) -> None:
    ended(store, ONE, 1, artifact=PAGE)
    begun(store, TWO, command={"user": "anna"})
    begun(store, THREE, command={"user": "bert", "operations": [{"arguments": {"user": "anna"}}]})
    anna, boss = Principal("anna", "user"), Principal("boss", "administrator")
    assert [entry.run_id for entry in find_all(desk, user="anna")] == [TWO]
    assert [entry.run_id for entry in find_all(desk)] == [THREE, TWO, ONE]
    assert (find_seen(desk, "last", anna), find_seen(desk, TWO, anna), find_seen(desk, THREE, boss)) == (
        TWO,
        TWO,
        THREE,
    )
    assert find_seen(desk, "2026112", anna) == TWO
    for given in (ONE, THREE):
        with pytest.raises(RunNotFound, match=r"no run of yours matches '[0-9a-z-]+'\. Fix"):
            find_seen(desk, given, anna)
    for one in (boss, Principal("carl", "user")):
        with pytest.raises(RunNotFound) as refused:
            find_seen(desk, "nothing" if one is boss else "last", one)
        assert str(desk.home.root) not in str(refused.value)
    assert [desk.ledger.user_of(run_id) for run_id in (ONE, TWO, "other")] == ["steward", "anna", ""]


def test_the_path_of_a_page_means_the_run_that_wrote_it(
    desk: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, run_id in enumerate((ONE, TWO), start=1):
        ended(store, run_id, number, artifact=PAGE)
        note = OutputEntry(PAGE.path, run_id, ("0" * 64,))
        store.write_now(lambda tx, note=note: note_written(tx, note))
    found = {find_any(desk, PAGE.path), find_ended(desk, f"./{PAGE.path}"), find_for(desk, PAGE.path, "retry")}
    assert found == {TWO}
    monkeypatch.chdir(desk.home.artifacts)
    given = (f"{desk.home.root}/{PAGE.path}", "./a.md", "../artifacts/a.md", PAGE.path)
    assert {path: find_any(desk, path) for path in given} == dict.fromkeys(given, TWO)
    with pytest.raises(UsageError, match="is outside the home"):
        find_any(desk, "/etc/passwd")
    with pytest.raises(RunNotFound, match=r"no run matches 'artifacts/other\.md'"):
        find_any(desk, "artifacts/other.md")


def test_an_open_run_in_the_list_waits_as_its_journal_says_and_names_the_place_of_its_page(
    desk: Desk, store: Store
) -> None:
    ended(store, ONE, 1, artifact=PAGE)
    waits = begun(store, TWO, output_path="artifacts/roof.md")
    asyncio.run(waits.wait(Waiting("network", "2026-11-20T00:00:00Z", 90.0, "unreachable")))
    told = [(entry.run_id, entry.status, entry.artifact) for entry in find_all(desk)]
    assert told == [(TWO, "waiting", "artifacts/roof.md"), (ONE, "succeeded", PAGE.path)]
    assert [entry.run_id for entry in find_all(desk, ["waiting", "roof"])] == [TWO]


def test_a_run_that_is_damaged_is_in_the_list_and_whoever_reads_its_journal_is_told_which(
    desk: Desk, store: Store
) -> None:
    ended(store, ONE, 1, artifact=PAGE)
    journal = begun(store, TWO, output_path="artifacts/roof.md")
    asyncio.run(journal.put("start", "words", type=str))
    store.write_now(lambda tx: tx.execute("UPDATE steps SET out = substr(out, 1, 3) WHERE kind = 'done'"))
    assert [(entry.run_id, entry.status) for entry in find_all(desk)] == [(TWO, "queued"), (ONE, "succeeded")]
    assert [(run["run_id"], run["status"]) for run in overview(desk).runs] == [(TWO, "queued")]
    with pytest.raises(JournalDamaged, match=f"the step start of run {TWO} cannot be read"):
        journal_of(desk, TWO)


def test_an_open_run_in_the_list_runs_as_its_daemon_tells(desk: Desk, store: Store) -> None:
    begun(store, ONE, output_path="artifacts/roof.md")
    begun(store, TWO)
    run = {"run_id": ONE, "status": "running", "file": "a.json", "title": "A", "output": "artifacts/roof.2.md"}
    desk.home.ensure_runtime()
    desk.home.state_file.write_text(json.dumps({"state": "EXECUTING_TASK", "runs": [run], "model": "offline"}))
    with desk.held():
        told = [(entry.status, entry.artifact) for entry in find_all(desk)]
    assert told == [("queued", ""), ("running", "artifacts/roof.2.md")]


def test_since_takes_a_span_a_date_or_a_time_in_any_zone(desk: Desk, store: Store) -> None:
    now, utc, berlin = datetime(2026, 11, 20, 12, 0, tzinfo=UTC), ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
    assert first_moment("", now, utc) == ""
    assert first_moment("36h", now, utc) == "2026-11-19T00:00:00Z"
    assert first_moment("2w", now, utc) == "2026-11-06T12:00:00Z"
    assert first_moment("2026-11-01", now, utc) == "2026-11-01T00:00:00Z"
    assert first_moment("2026-11-01T02:00:00+02:00", now, utc) == "2026-11-01T00:00:00Z"
    assert (
        first_moment("2026-11-01T02:00:00 02:00", now, utc) == "2026-11-01T00:00:00Z"
    )  # as an address brings the plus
    assert first_moment("2026-11-01T02:00 02:00", now, utc) == "2026-11-01T00:00:00Z"
    assert first_moment("2026-11-01 02:00", now, utc) == "2026-11-01T02:00:00Z"
    assert first_moment("2026-11-01", now, berlin) == "2026-10-31T23:00:00Z"
    assert first_moment("2026-07-01 02:00", now, berlin) == "2026-07-01T00:00:00Z"
    assert first_moment("2026-11-01T02:00Z", now, berlin) == "2026-11-01T02:00:00Z"
    for wrong, why in (
        *((word, "is not a time") for word in ("soon", "7", "7y", "2026-13-01")),
        *((time, "is too far from now") for time in ("0001-01-01", "9999-12-31T23:59-08:00")),
    ):
        with pytest.raises(NoTime, match=why):
            first_moment(wrong, now, berlin)
        with pytest.raises(NoTime):
            find_all(desk, since=wrong)
