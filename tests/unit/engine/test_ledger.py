"""The rows of runs: lists of thousands, who has not ended, receipts and the ids that they answer for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from council.engine import statements as sql
from council.engine.journal import load_journal
from council.engine.ledger import Ledger
from council.engine.receipts import ArtifactRef, ErrorRef, IdBinding, PruneMark, Receipts, TokenCount, answer
from council.engine.records import FORGOTTEN, StepResult
from council.errors import IdConflict, RunNotFound, StorageFailed
from council.storage.reader import Reader
from council.storage.store import Store
from tests.rows import AT, begun, ended, header, receipt

PRUNED = PruneMark(AT, "keep_runs")


@pytest.fixture
def store(tmp_path: Path, database_url: str | None) -> Iterator[Store]:
    with closing(Store.open(tmp_path, database_url)) as store:
        yield store


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return Ledger(store)


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_newest_ended_run_is_the_one_that_ended_last_not_the_one_that_began_last(
    store: Store, ledger: Ledger
) -> None:
    for number in (1, 2, 3):
        ended(store, f"r{number}", 1_000 - number)
    begun(store, "r4")
    assert [row.run_id for row in ledger.newest(2, ended_only=True)] == ["r1", "r2"]
    assert [row.run_id for row in ledger.newest(2)] == ["r4", "r3"]
    assert (ledger.newest_finish(), ledger.count()) == (AT, 4)


def test_a_row_says_of_a_run_what_its_receipt_says(store: Store, ledger: Ledger) -> None:
    begun(store, "r0")
    ended(
        store, "r1", 5, status="failed", title="A title", artifact=ArtifactRef("artifacts/a.md", "0"), calls=3, id="mine",
        error=ErrorRef("budget", "spent"), tokens=TokenCount(10, 20, 5, 1), cost_usd=0.5, model="m", took_ms=7,
    )  # fmt: skip
    [done, waiting] = ledger.newest(2)
    assert (done.status, done.title, done.artifact, done.error) == ("failed", "A title", "artifacts/a.md", "budget")
    assert (done.calls, done.tokens_in, done.tokens_out, done.tokens_cached, done.unknown_calls) == (3, 10, 20, 5, 1)
    assert (done.cost_usd, done.model, done.took_ms, done.text_bytes, done.ended_ns) == (0.5, "m", 7, 200, 5)
    assert (done.command_id, done.file, done.lane, done.created) == ("mine", "command.json", "main", AT)
    assert (waiting.status, waiting.finished, waiting.ended_ns, waiting.cost_usd) == ("queued", "", None, None)


def test_runs_are_found_by_the_beginning_of_their_id(store: Store, ledger: Ledger) -> None:
    names = [
        "20261120-000001-aaaaaaaa",
        "20261120-000002-zzzzzzzz",
        "20261120-000013-aaaaaaaa",
        "20261121-000001-aaaaaaaa",
    ]
    for number, name in enumerate(reversed(names)):
        ended(store, name, number)

    def found(prefix: str) -> list[str]:
        return [row.run_id for row in ledger.starting_with(prefix, 9)]

    assert found("20261120-00000") == names[:2]
    assert found("20261120-000002-zz") == [names[1]]
    assert found("2026") == names
    assert found("") == names
    assert found("3") == []


def test_who_has_not_ended_is_told_in_the_order_of_admission(store: Store, ledger: Ledger) -> None:
    for run_id, order in (("r3", 1), ("r1", 3), ("r2", 2)):
        begun(store, run_id, order=order)
    ended(store, "r0", 5)
    assert ledger.unfinished() == ["r3", "r2", "r1"]


def test_since_begins_with_that_moment(store: Store, ledger: Ledger) -> None:
    for day in (19, 20, 21):
        begun(store, f"r{day}", created=f"2026-11-{day}T00:00:00Z")
    assert [row.run_id for row in ledger.since("2026-11-20T00:00:00Z")] == ["r20", "r21"]
    assert len(ledger.since()) == 3


def test_a_journal_is_read_from_its_rows_and_one_that_is_not_there_is_named(store: Store, ledger: Ledger) -> None:
    ended(store, "r1", 1)
    first, step = ledger.records("r1")
    assert first == header("r1", command={"id": None})
    assert isinstance(step, StepResult)
    assert ledger.journal("r1").recorded("one")
    store.write_now(lambda tx: answer(tx, receipt("control", lane=""), 2))
    for absent in ("control", "nobody"):
        assert not ledger.has_journal(absent)
        with pytest.raises(RunNotFound, match=absent):
            ledger.records(absent)


def test_where_there_is_no_database_nothing_is_found_and_none_is_made(tmp_path: Path) -> None:
    ledger = Ledger(Reader(tmp_path))
    assert (ledger.newest(5), ledger.count(), ledger.kept(), ledger.newest_finish()) == ([], 0, (0, 0), "")
    assert list(tmp_path.iterdir()) == []


# ── letting go ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_kept_counts_runs_that_have_a_journal_alone(store: Store, ledger: Ledger) -> None:
    for number in range(4):
        ended(store, f"r{number}", number, text_chars=100)
    begun(store, "r9")
    Receipts(store).answer(receipt("control", lane="", type="cancel"), 9)
    assert ledger.kept() == (4, 400)
    assert Receipts(store).prune("r0", PRUNED)
    assert ledger.kept() == (3, 300)
    assert [row.run_id for row in ledger.ended()] == ["r1", "r2", "r3"]
    assert [row.run_id for row in ledger.ended(1)] == ["r1"]


def test_a_pruned_run_keeps_its_row_its_receipt_and_its_id_and_nothing_else(store: Store, ledger: Ledger) -> None:
    ended(store, "r1", 1, id="mine")
    store.write_now(lambda tx: tx.execute(sql.KEEP, ("r1", "artifact.md", b"page")))
    receipts = Receipts(store)
    assert receipts.prune("r1", PRUNED)
    assert receipts.read("r1") == receipt("r1", id="mine", pruned=PRUNED)
    assert receipts.bound("mine") == IdBinding("mine", "0" * 64, "r1")
    assert not ledger.has_journal("r1")
    [row] = ledger.newest(5)
    assert (row.run_id, row.text_bytes, row.pruned != "") == ("r1", 0, True)
    for table in ("steps", "kept"):
        assert store.read(lambda tx, table=table: tx.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) == 0  # type: ignore[misc]


def test_a_run_that_goes_on_is_not_pruned(store: Store, ledger: Ledger) -> None:
    begun(store, "r1")
    assert not Receipts(store).prune("r1", PRUNED)
    assert not Receipts(store).prune("nobody", PRUNED)
    assert ledger.has_journal("r1")


def test_a_pruned_run_whose_file_was_never_noted_as_taken_is_not_taken_up_again(store: Store) -> None:
    """That note is deferred: a full disk may have refused it."""
    ended(store, "r1", 1)
    store.write_now(lambda tx: tx.execute("UPDATE runs SET open = 1"))
    assert store.read(lambda tx: tx.execute(sql.OPEN).fetchall()) == [("r1", 1)]
    Receipts(store).prune("r1", PRUNED)
    assert store.read(lambda tx: tx.execute(sql.OPEN).fetchall()) == []


def test_bare_receipts_are_listed_beyond_the_newest_and_removed_alone(store: Store, ledger: Ledger) -> None:
    receipts = Receipts(store)
    for number in range(6):
        ended(store, f"r{number}", 10 - number, id="mine" if number == 3 else None)
    for number in range(5):
        receipts.prune(f"r{number}", PRUNED)
    assert ledger.bare(beyond=1, count=9) == ["r1", "r2", "r4"]
    assert ledger.bare(beyond=1, count=2) == ["r1", "r2"]
    receipts.remove("r1")
    assert ledger.bare(beyond=1, count=9) == ["r2", "r4"]
    assert receipts.read("r1") is None


# ── receipts and ids ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_receipt_answers_when_the_run_has_ended_and_not_before(store: Store) -> None:
    receipts = Receipts(store)
    journal = begun(store, "r1")
    store.write_now(lambda tx: tx.execute(sql.COMMIT, ("{}", journal.run)))  # the renames are still to come
    assert receipts.read("r1") is None
    ended(store, "r2", 1)
    assert receipts.read("r2") == receipt("r2")
    assert [found.run_id for found in receipts.all()] == ["r2"]


def test_all_receipts_come_in_the_order_of_their_runs_page_by_page(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("council.engine.receipts._PAGE", 2)
    for number in (3, 1, 5, 2, 4):
        ended(store, f"r{number}", number)
    assert [found.run_id for found in Receipts(store).all()] == ["r1", "r2", "r3", "r4", "r5"]


def test_receipts_since_are_those_of_one_file(store: Store) -> None:
    for number, name in enumerate(["a.json", "b.json", "a.json"], start=1):
        told = receipt(f"r{number}")
        Receipts(store).answer(receipt(f"r{number}", command_file=type(told.command_file)(name, 1, 1, "0")), number)
    found = Receipts(store).ended_since(1, file="a.json")
    assert [one.run_id for one in found] == ["r3"]


def test_an_id_answers_with_its_receipt_unless_the_run_ended_badly(store: Store) -> None:
    receipts = Receipts(store)
    ended(store, "good", 1, id="good", command_hash="asked")
    ended(store, "bad", 2, id="bad", status="failed", command_hash="asked")
    ended(store, "stopped", 3, id="stopped", status="cancelled", command_hash="asked")
    begun(store, "active")
    store.write_now(lambda tx: tx.execute(sql.BIND, ("0" * 64, "unused", "h", "active")))

    def nobody(run_id: str) -> bool:
        return False

    assert receipts.answering("good", None, "asked", nobody) == receipt("good", id="good", command_hash="asked")
    assert receipts.answering("bad", None, "asked", nobody) is None
    assert receipts.answering("stopped", None, "asked", nobody) is None
    assert receipts.answering("new", None, "asked", nobody) is None
    with pytest.raises(IdConflict, match="good"):
        receipts.answering("good", None, "something else", nobody)


def test_an_id_whose_command_was_forgotten_answers_any_command(store: Store) -> None:
    receipts = Receipts(store)
    ended(store, "r1", 1, id="mine", command_hash="asked")
    receipts.forget_command("r1", "[forgotten]")
    assert receipts.bound("mine") == IdBinding("[forgotten]", FORGOTTEN, "r1")
    assert receipts.answering("mine", None, "something else", lambda run_id: False) is not None


def test_a_receipt_and_the_id_that_it_answers_for_are_one_transaction(store: Store) -> None:
    receipts = Receipts(store)
    receipts.answer(receipt("r1"), 1)
    with pytest.raises(StorageFailed):  # there is a run of that name
        receipts.answer(receipt("r1"), 2, IdBinding("mine", "h", "r1"))
    assert receipts.bound("mine") is None


def test_who_forgets_looks_into_every_run_that_has_ended(store: Store) -> None:
    """That its file was taken may not be noted yet."""
    for run_id in ("r1", "r2"):
        ended(store, run_id, 1)
    store.write_now(lambda tx: tx.execute("UPDATE runs SET open = 1 WHERE run_id = 'r2'"))
    begun(store, "r3")
    rows = store.read(lambda tx: tx.execute(sql.ENDED_RUNS, (0, 10)).fetchall())
    assert [row[1] for row in rows] == ["r1", "r2"]


def test_a_run_that_ended_is_loaded_as_ended(store: Store) -> None:
    ended(store, "r1", 1)
    journal = store.read(lambda tx: load_journal(tx, "r1", store, ended=True))
    assert journal.ended
    assert journal.recorded("one")
