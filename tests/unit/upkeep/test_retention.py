"""Which runs are let go of: a table of bounds; and what stays of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from council.app import tables_of
from council.budgets.spend import Reservation, Spend, spent_by
from council.desk.all_systems import house
from council.engine.ledger import Ledger, RunEntry
from council.engine.receipts import IdBinding, PruneMark, Receipts
from council.errors import StorageFailed
from council.settings import Settings
from council.storage.store import Store
from council.upkeep import retention
from council.upkeep.retention import Retention, over
from tests.driver import sqlite_error, watched
from tests.rows import begun, ended, receipt

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def bounds(days: int | None = None, runs: int | None = None, total_bytes: int | None = None) -> Settings:
    """As small as no home may set them; None: no bound."""
    return Settings.model_construct(keep_days=days, keep_runs=runs or 1 << 40, keep_bytes=total_bytes or 1 << 60)


class Noon:
    def now(self) -> datetime:
        return NOW

    def monotonic_s(self) -> float:
        return 0.0


def row(number: int, *, days_ago: float, size: int) -> RunEntry:
    ended_ns = int((NOW - timedelta(days=days_ago)).timestamp() * 1e9)
    return RunEntry(f"r{number}", "succeeded", "deliberate", "main", "", "", text_bytes=size, ended_ns=ended_ns)


ROWS = [row(1, days_ago=40, size=100), row(2, days_ago=20, size=10), row(3, days_ago=5, size=50)]


@pytest.mark.parametrize(
    ("kept", "gone"),
    [
        (bounds(), []),
        (bounds(41, None, None), []),
        (bounds(39, None, None), [("r1", "keep_days")]),
        (bounds(1, None, None), [("r1", "keep_days"), ("r2", "keep_days"), ("r3", "keep_days")]),
        (bounds(None, 3, None), []),
        (bounds(None, 1, None), [("r1", "keep_runs"), ("r2", "keep_runs")]),
        (bounds(None, None, 160), []),
        (bounds(None, None, 159), [("r1", "keep_bytes")]),
        (bounds(None, None, 59), [("r1", "keep_bytes"), ("r2", "keep_bytes")]),
        (bounds(30, 2, 55), [("r1", "keep_days"), ("r2", "keep_bytes")]),
        (bounds(30, 1, 1_000), [("r1", "keep_days"), ("r2", "keep_runs")]),
    ],
)
def test_the_fewest_oldest_runs_go_until_every_bound_holds(kept: Settings, gone: list[tuple[str, str]]) -> None:
    assert [(due.run_id, due.by) for due in over(ROWS, 3, 160, kept, NOW)] == gone


def test_runs_that_are_not_listed_count_as_well() -> None:
    assert [due.run_id for due in over(ROWS[:1], 3, 160, bounds(None, 1, None), NOW)] == ["r1"]


# ── a home of its own ────────────────────────────────────────────────────────────────────────────────────────────────


def keeping(store: Store, kept: Settings) -> Retention:
    return Retention(store, kept, Noon(), tables_of(house()))


def with_journal(store: Store) -> list[str]:
    return [entry.run_id for entry in Ledger(store).since() if Ledger(store).has_journal(entry.run_id)]


def three(store: Store) -> None:
    for number in (1, 2, 3):
        ended(store, f"r{number}", number, text_chars=200)


def test_what_was_pruned_says_when_and_why_and_keeps_its_place(store: Store) -> None:
    three(store)
    keep = keeping(store, bounds(None, 1, None))
    gone = list(keep.prune(keep.due()))
    assert [(one.run_id, one.by, one.bytes) for one in gone] == [("r1", "keep_runs", 200), ("r2", "keep_runs", 200)]
    assert with_journal(store) == ["r3"]
    assert Receipts(store).read("r2") == receipt("r2", pruned=PruneMark("2026-11-20T12:00:00Z", "keep_runs"))
    rows = [(entry.run_id, bool(entry.pruned), entry.text_bytes, entry.ended_ns) for entry in Ledger(store).since()]
    assert rows == [("r1", True, 0, 1), ("r2", True, 0, 2), ("r3", False, 200, 3)]
    assert keep.due() == []


def test_the_bytes_of_all_journals_are_what_is_bounded(store: Store) -> None:
    three(store)
    assert [one.run_id for one in keeping(store, bounds(None, None, 399)).due()] == ["r1", "r2"]
    assert keeping(store, bounds(None, None, 600)).due() == []


def test_control_commands_take_no_run_its_place(store: Store) -> None:
    three(store)
    for number in range(5):
        Receipts(store).answer(receipt(f"control{number}", lane="", type="cancel"), 10 + number)
    assert keeping(store, bounds(None, 3, None)).due() == []
    assert keeping(store, bounds(None, 3, None)).kept() == 3


def test_a_prune_that_is_cut_off_is_completed_by_the_next(store: Store) -> None:
    three(store)
    keep = keeping(store, bounds(None, 1, None))
    pruning = keep.prune(keep.due())
    next(pruning)
    with watched(store) as driver:
        driver.before["COMMIT"] = sqlite_error(13)
        with pytest.raises(StorageFailed):
            next(pruning)
    assert with_journal(store) == ["r2", "r3"]
    assert [one.run_id for one in keep.prune(keep.due())] == ["r2"]
    assert with_journal(store) == ["r3"]


def test_no_run_that_has_not_ended_is_pruned_nor_one_that_goes_on_again(store: Store) -> None:
    three(store)
    begun(store, "r4")
    keep = keeping(store, bounds(1, None, None))
    due = keep.due()
    assert [one.run_id for one in due] == ["r1", "r2", "r3"]
    store.write_now(lambda tx: tx.execute("UPDATE runs SET ended_ns = NULL WHERE run_id = 'r1'"))  # resumed meanwhile
    assert [one.run_id for one in keep.prune(due)] == ["r2", "r3"]
    assert with_journal(store) == ["r1", "r4"]


def test_of_very_many_receipts_without_journal_and_id_the_oldest_go(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "KEPT_RECEIPTS", 2)
    ended(store, "r0", 0, id="answers")
    for number in (1, 2, 3, 4):
        ended(store, f"r{number}", number)
    keep = keeping(store, bounds(1, None, None))
    list(keep.prune(keep.due()))
    assert list(keep.tidy()) == ["r2", "r1"]
    assert [told.run_id for told in Receipts(store).all()] == ["r0", "r3", "r4"]
    assert list(keep.tidy()) == []


def test_a_control_command_with_an_id_goes_with_the_others_and_its_id_answers_no_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "KEPT_RECEIPTS", 2)
    receipts = Receipts(store)

    def answered(name: str, at_ns: int, **values: object) -> None:
        told = receipt(name, lane="", id=f"id-{name}", **values)
        receipts.answer(told, at_ns, IdBinding(f"id-{name}", told.command_hash, name))

    answered("skipped", 1, status="skipped")  # a schedule would make up for it
    for number in (1, 2, 3):
        answered(f"control{number}", 10 + number, type="cancel")
    ended(store, "run", 5, id="id-run")
    assert list(keeping(store, bounds()).tidy()) == ["control1"]
    assert [told.run_id for told in receipts.all()] == ["control2", "control3", "run", "skipped"]
    bound = [name for name in ("control1", "control2", "control3", "run", "skipped") if receipts.bound(f"id-{name}")]
    assert bound == ["control2", "control3", "run", "skipped"]


class Day(Noon):
    def __init__(self, day: str) -> None:
        self.moment = datetime.fromisoformat(f"{day}T12:00:00+00:00")

    def now(self) -> datetime:
        return self.moment


@pytest.mark.parametrize(
    ("days", "kept"), [(None, ["2026-08-20"]), (30, ["2026-08-20"]), (200, ["2026-08-20", "2026-08-19"])]
)
async def test_what_was_spent_is_kept_for_a_quarter_or_as_long_as_runs(
    store: Store, days: int | None, kept: list[str]
) -> None:
    every = ("2026-08-20", "2026-08-19", "2025-01-01")
    for day in every:
        await Spend(store, day, 0, Day(day)).reserve(Reservation("call", 1), None)
    list(keeping(store, bounds(days, None, None)).tidy())
    assert [day for day in every if spent_by(store, day).calls] == kept
