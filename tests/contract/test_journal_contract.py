"""The journal, whichever database it is in: a recorded step is never run again, an effect happens once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest

from council.budgets.spend import Reservation, Spend
from council.engine.journal import Handback, Journal, admit, load_journal
from council.engine.ledger import Ledger
from council.engine.records import EPOCH, Commit, Continuation, FileIdentity, RunHeader, Waiting
from council.engine.run_records import JournalEnd
from council.engine.runs import ActiveRun, Run
from council.errors import Drift, JournalDamaged, StorageFailed
from council.events import Events
from council.ids import SystemClock
from council.redaction import Redactor, Secret
from council.storage.marks import MARK, SET_MARK
from council.storage.store import Store, Tx
from tests.driver import Held, driver_error, watched

HEADER = RunHeader(
    run_id="r1", epoch=EPOCH, created="2026-11-20T00:00:00Z", lane="main", type="deliberate", command={"a": 1},
    command_hash="h", file=FileIdentity("command.json", 1, 2, "s"), secret="00" * 32,
)  # fmt: skip
DONE = Commit("succeeded", (), msgspec.Raw(b'{"run_id":"r1"}'))


class Out(msgspec.Struct, frozen=True):
    text: str


def counted(text: str, calls: list[str]) -> Callable[[], Awaitable[Out]]:
    async def call() -> Out:
        calls.append(text)
        return Out(text)

    return call


@pytest.fixture
def store(tmp_path: Path, database_url: str | None) -> Iterator[Store]:
    store = Store.open(tmp_path, database_url)
    yield store
    store.close()


@pytest.fixture
def journal(store: Store) -> Journal:
    return Journal(HEADER, store.write_now(lambda tx: admit(tx, HEADER)), store)


def again(store: Store) -> Journal:
    """As the next process finds it."""
    store.write_now(lambda tx: None)  # what was deferred comes along
    return store.read(lambda tx: load_journal(tx, "r1", store))


def kinds(store: Store) -> list[str]:
    store.write_now(lambda tx: None)
    rows = store.read(lambda tx: tx.execute("SELECT kind, name FROM steps ORDER BY run, seq").fetchall())
    return [" ".join(filter(None, row)) for row in rows]


async def three_steps(journal: Journal | Run) -> list[str]:
    calls: list[str] = []
    for name in ("one", "two", "three"):
        result = await journal.step(name, counted(name, calls), type=Out, request=f"asks {name}")
        assert result == Out(name)
    return calls


def pay(tx: Tx) -> Out:
    """A change whose every repetition shows."""
    row = tx.execute(MARK, ("paid",)).fetchone()
    times = int(row[0]) + 1 if row else 1
    tx.execute(SET_MARK, ("paid", str(times)))
    return Out(f"paid {times}")


def paid(store: Store) -> str | None:
    row = store.read(lambda tx: tx.execute(MARK, ("paid",)).fetchone())
    return None if row is None else str(row[0])


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_recorded_step_is_not_run_again_after_a_restart(store: Store, journal: Journal) -> None:
    assert await three_steps(journal) == ["one", "two", "three"]
    assert await three_steps(journal) == []
    loaded = again(store)
    assert await three_steps(loaded) == []
    assert loaded.header == HEADER
    assert loaded.steps() == journal.steps()
    assert loaded.text_bytes == journal.text_bytes > 0
    assert kinds(store) == ["begin one", "done one", "begin two", "done two", "begin three", "done three"]


async def test_a_step_is_in_the_store_when_it_answers_and_a_large_one_too(store: Store, journal: Journal) -> None:
    large = "y" * 3_000_000
    await journal.step("big", counted(large, []), type=Out)
    loaded = Ledger(store).journal("r1")
    assert loaded.value("big", Out) == Out(large)


async def test_nobody_waits_for_what_can_be_found_out_again_and_the_next_record_brings_it(
    store: Store, journal: Journal
) -> None:
    held = Held(store)
    assert await journal.step("look", counted("look", []), type=Out, durable=False) == Out("look")
    assert store.read(lambda tx: tx.execute("SELECT count(*) FROM steps").fetchone())[0] == 0  # the writer is busy
    held.release()
    await journal.step("one", counted("one", []), type=Out)
    assert kinds(store) == ["begin look", "done look", "begin one", "done one"]
    assert again(store).value("look", Out) == Out("look")


async def test_a_step_that_asks_something_else_is_drift_unless_that_was_approved(
    store: Store, journal: Journal
) -> None:
    await three_steps(journal)
    with pytest.raises(Drift, match="step two"):
        await journal.step("two", counted("two", []), type=Out, request="something else")
    await journal.reopen(Continuation("now", accept_drift=True))
    assert await again(store).step("two", counted("other", []), type=Out, request="something else") == Out("two")


async def test_a_step_whose_question_was_forgotten_answers_whatever_is_asked(store: Store, journal: Journal) -> None:
    await journal.step("one", counted("one", []), type=Out)
    assert await again(store).step("one", counted("other", []), type=Out, request="what is asked now") == Out("one")


async def test_what_a_step_raises_is_not_recorded(store: Store, journal: Journal) -> None:
    async def fails() -> Out:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await journal.step("one", fails, type=Out)
    assert not again(store).recorded("one")


async def test_a_stopping_process_begins_no_new_step_but_answers_recorded_ones(journal: Journal) -> None:
    await three_steps(journal)
    journal.stopping = lambda: True
    assert await journal.step("one", counted("one", []), type=Out, request="asks one") == Out("one")
    with pytest.raises(Handback):
        await journal.step("four", counted("four", []), type=Out)
    with pytest.raises(Handback):
        await journal.effect("pay", pay, type=Out)


async def test_a_closed_journal_answers_only_what_it_holds(journal: Journal) -> None:
    journal.closed = True
    with pytest.raises(JournalEnd):
        await journal.step("one", counted("one", []), type=Out)


async def test_an_ephemeral_step_keeps_a_small_outcome_and_refuses_a_large_one(store: Store, journal: Journal) -> None:
    run = ActiveRun(journal, Events(), None)
    assert await run.ephemeral("ask", counted("yes", []), type=Out) == Out("yes")
    with pytest.raises(ValueError, match="larger than 1024 bytes"):
        await run.ephemeral("tell", counted("x" * 2000, []), type=Out)
    loaded = ActiveRun(again(store), Events(), None)
    assert await loaded.ephemeral("ask", counted("no", []), type=Out) == Out("yes")
    assert not loaded.recorded("tell")


async def test_no_secret_is_recorded_or_returned(store: Store, journal: Journal) -> None:
    secret = "canary-0123456789"
    journal.redactor = Redactor([Secret(secret)])
    assert await journal.step("one", counted(f"it is {secret}", []), type=Out) == Out("it is [secret]")
    await journal.effect("two", lambda tx: Out(secret), type=Out)
    journal.note("three", Out(secret), type=Out)
    await journal.wait(Waiting("provider", "now", 1.0, secret))
    await journal.commit(lambda tx: DONE)
    rows = store.read(lambda tx: tx.execute("SELECT out FROM steps").fetchall())
    assert len(rows) > 5
    assert secret not in repr(rows)


async def test_a_run_that_is_only_read_answers_with_what_is_recorded_and_does_nothing(
    store: Store, journal: Journal
) -> None:
    await three_steps(journal)
    await journal.effect("pay", pay, type=Out)
    reading = Run(Ledger(store).journal("r1"), Events(), None)
    assert await three_steps(reading) == []
    assert await reading.step("one", counted("one", []), type=Out, request="something else") == Out("one")
    assert await reading.effect("pay", pay, type=Out) == Out("paid 1")
    assert await reading.put("two", Out("other"), type=Out) == Out("two")
    calls: list[str] = []
    before = kinds(store)
    for what in (
        reading.step("four", counted("four", calls), type=Out),
        reading.effect("pay again", pay, type=Out),
        reading.put("five", Out("five"), type=Out),
    ):
        with pytest.raises(JournalEnd):
            await what
    reading.note_retry("rate", "slow down", 1, 2.5)
    assert (calls, paid(store), kinds(store)) == ([], "1", before)


async def test_a_row_that_no_version_wrote_is_damage_and_never_guessed(store: Store, journal: Journal) -> None:
    await journal.wait(Waiting("provider", "now", 1.0, "later"))
    store.write_now(lambda tx: tx.execute("UPDATE steps SET out = '{' WHERE kind = 'wait'"))
    with pytest.raises(JournalDamaged, match="wait"):
        again(store)
    store.write_now(lambda tx: tx.execute("UPDATE runs SET header = '{'"))
    with pytest.raises(JournalDamaged, match="record 0"):
        again(store)


# ── who else writes ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_second_process_that_goes_on_with_the_run_fails_with_its_whole_transaction(
    store: Store, journal: Journal
) -> None:
    await journal.step("one", counted("one", []), type=Out)
    second = again(store)
    await journal.step("two", counted("two", []), type=Out)
    with pytest.raises(StorageFailed):
        await second.effect("pay", pay, type=Out)
    for _ in range(2):
        with pytest.raises(StorageFailed, match="another process"):
            await second.effect("pay", pay, type=Out)
        with pytest.raises(StorageFailed, match="another process"):
            second.look_again()
    assert paid(store) is None
    assert [step.name for step in again(store).steps()] == ["one", "two"]


async def test_a_step_whose_waiter_is_cancelled_is_recorded_all_the_same(store: Store, journal: Journal) -> None:
    held = Held(store)
    tasks = [
        asyncio.ensure_future(journal.step("one", counted("one", []), type=Out)),
        asyncio.ensure_future(journal.put("finish", Out("end"), type=Out)),
    ]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    held.release()
    await asyncio.wait(tasks)
    await held.done
    await store.write(lambda tx: None)
    assert [task.cancelled() for task in tasks] == [True, True]
    assert journal.recorded("one")
    assert journal.recorded("finish")
    assert [step.name for step in again(store).steps()] == ["one", "finish"]


# ── effects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_effect_and_its_record_are_one_transaction_and_happen_once(store: Store, journal: Journal) -> None:
    with watched(store) as driver:
        assert await journal.effect("pay", pay, type=Out) == Out("paid 1")
        assert driver.count("COMMIT") == 1
    for known in (journal, again(store)):
        assert await known.effect("pay", pay, type=Out) == Out("paid 1")
    assert paid(store) == "1"


async def test_an_effect_that_raises_is_undone_and_happens_on_the_next_try(store: Store, journal: Journal) -> None:
    def fails(tx: Tx) -> Out:
        pay(tx)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        await journal.effect("pay", fails, type=Out)
    assert paid(store) is None
    assert not again(store).recorded("pay")
    assert await journal.effect("pay", pay, type=Out) == Out("paid 1")


# ── what the store refuses ───────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_that_was_refused_is_written_by_the_next_try_and_not_asked_for_again(
    store: Store, journal: Journal
) -> None:
    calls: list[str] = []
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        for _ in range(2):
            with pytest.raises(StorageFailed):
                await journal.step("one", counted("one", calls), type=Out, request="asks one")
        with pytest.raises(StorageFailed):
            await journal.effect("pay", pay, type=Out)
        with pytest.raises(StorageFailed):
            await journal.put("finish", Out("end"), type=Out)
    assert (calls, len(journal.steps()), len(again(store).steps())) == (["one"], 0, 0)
    assert await journal.step("one", counted("one", calls), type=Out, request="asks one") == Out("one")
    assert await journal.effect("pay", pay, type=Out) == Out("paid 1")
    assert calls == ["one"]
    assert {step.name for step in again(store).steps()} == {"one", "pay"}


async def test_an_answer_that_was_refused_does_not_answer_another_question(store: Store, journal: Journal) -> None:
    calls: list[str] = []
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        with pytest.raises(StorageFailed):
            await journal.step("one", counted("one", calls), type=Out, request="asks one")
    assert await journal.step("one", counted("other", calls), type=Out, request="asks other") == Out("other")
    assert calls == ["one", "other"]


async def test_what_was_committed_when_the_connection_was_lost_is_found_before_it_is_written_again(
    tmp_path: Path, postgres_url: str
) -> None:
    store = Store.open(tmp_path, postgres_url)
    journal = Journal(HEADER, store.write_now(lambda tx: admit(tx, HEADER)), store)
    calls: list[str] = []

    async def lost(write: Callable[[], Awaitable[object]]) -> None:
        def lose() -> None:
            driver.shut()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        store.write_now(lambda tx: None)  # connects anew
        with watched(store) as driver:
            driver.after["COMMIT"] = lose
            with pytest.raises(StorageFailed):
                await write()

    async def step() -> Out:
        return await journal.step("one", counted("one", calls), type=Out, request="asks one")

    async def effect() -> Out:
        return await journal.effect("pay", pay, type=Out)

    await lost(step)
    assert await step() == Out("one")
    await lost(effect)
    assert await effect() == Out("paid 1")
    journal.note("finish", Out("end"), type=Out)
    await lost(lambda: journal.commit(lambda tx: DONE))
    journal.look_again()
    assert journal.committed == DONE
    assert (calls, paid(store)) == (["one"], "1")
    written = [kind for kind in kinds(store) if not kind.startswith("begin")]
    assert written == ["done one", "done pay", "done finish", "commit"]
    store.close()


async def test_an_effect_that_is_there_after_all_fails_on_its_number_and_is_found_next(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction was still being committed when it was looked for."""
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        with pytest.raises(StorageFailed):
            await journal.effect("pay", pay, type=Out)
    late = again(store)
    late._seq = journal._refused["pay"] - 1
    with monkeypatch.context() as patch:
        patch.setattr(journal, "look_again", lambda: None)
        patch.setattr(late, "_defer", lambda record: None)
        assert await late.effect("pay", pay, type=Out) == Out("paid 1")
        with pytest.raises(StorageFailed):
            await journal.effect("pay", pay, type=Out)
    assert await journal.effect("pay", pay, type=Out) == Out("paid 1")
    assert paid(store) == "1"


# ── the end, and going on after it ───────────────────────────────────────────────────────────────────────────────────


async def test_what_was_noted_is_written_with_the_commit_and_with_all_that_belongs_to_it(
    store: Store, journal: Journal
) -> None:
    journal.note("finish", Out("end"), type=Out)
    assert journal.note("finish", Out("another end"), type=Out) == Out("end")
    assert not again(store).recorded("finish")

    def seal(tx: Tx) -> Commit:
        pay(tx)
        return DONE

    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        with pytest.raises(StorageFailed):
            await journal.commit(seal)
    assert (journal.committed, again(store).committed, paid(store)) == (None, None, None)
    with watched(store) as driver:
        await journal.commit(seal)
        assert driver.count("COMMIT") == 1
    for known in (journal, again(store)):
        assert known.committed == DONE
        assert known.value("finish", Out) == Out("end")
    assert paid(store) == "1"
    assert kinds(store) == ["done finish", "commit"]


async def test_a_run_that_goes_on_keeps_its_work_and_not_its_end(store: Store, journal: Journal) -> None:
    await three_steps(journal)
    journal.note("finish", Out("end"), type=Out)
    await journal.commit(lambda tx: DONE)
    await journal.reopen(Continuation("now", accept_drift=False, by="a drop"))
    for known in (journal, again(store)):
        assert (known.committed, known.recorded("finish"), known.reopened_by) == (None, False, "a drop")
        assert [step.name for step in known.steps()] == ["one", "two", "three"]


async def test_a_retry_does_its_step_and_all_after_it_again_and_the_rows_stay(store: Store, journal: Journal) -> None:
    await three_steps(journal)
    await journal.commit(lambda tx: DONE)
    await journal.reopen(Continuation("now", accept_drift=False, retry_from="two"))
    for known in (journal, again(store)):
        assert ([step.name for step in known.steps()], known.retries) == (["one"], 1)
    assert await three_steps(again(store)) == ["two", "three"]
    assert [step.name for step in again(store).steps()] == ["one", "two", "three"]
    assert kinds(store).count("done two") == 2


async def test_what_a_run_answers_for_is_synced_and_what_can_be_found_out_again_is_not(
    store: Store, journal: Journal
) -> None:
    def unsynced() -> int:
        return driver.count("PRAGMA synchronous = NORMAL") + driver.count("SET LOCAL synchronous_commit = off")

    with watched(store) as driver:
        await journal.step("one", counted("one", []), type=Out)
        await journal.put("two", Out("two"), type=Out)
        await journal.wait(Waiting("provider", "now", 1.0, "later"))
        await journal.commit(lambda tx: DONE)
        await journal.reopen(Continuation("now", accept_drift=False))
        assert (driver.count("COMMIT"), unsynced()) == (5, 0)
        await journal.attempt()
        assert (driver.count("COMMIT"), unsynced()) == (6, 1)


async def test_a_steps_beginning_comes_with_the_reservation_of_its_call_in_one_transaction_without_a_sync(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("council.storage.store._DEFERRED_S", 600.0)  # nothing is written for having waited
    seen: list[tuple[int, int]] = []

    def look() -> None:
        both = "SELECT (SELECT count(*) FROM steps WHERE kind = 'begin'), (SELECT count(*) FROM spending)"
        seen.append(store.read(lambda tx: tuple(tx.execute(both).fetchone())))

    async def call() -> Out:
        look()
        await Spend(store, "r1", 0, SystemClock()).reserve(Reservation("call", 10), None)
        look()
        return Out("one")

    with watched(store) as driver:
        driver.before["COMMIT"] = look
        await journal.step("one", call, type=Out)
        statements = driver.statements
    assert seen == [(0, 0), (0, 0), (1, 1), (1, 1)]  # in the call, before its commit and after, before the step's own
    normal = "PRAGMA synchronous = NORMAL" if store.is_sqlite else "SET LOCAL synchronous_commit = off"
    assert statements.count(normal) == 1
    assert statements.index(normal) < statements.index("COMMIT")


async def test_waits_are_those_since_the_last_step(store: Store, journal: Journal) -> None:
    for number in range(2):
        await journal.wait(Waiting("provider", f"{number}", 1.0, "later"))
    assert [wait.since for wait in journal.waits] == [wait.since for wait in again(store).waits] == ["0", "1"]
    await journal.step("one", counted("one", []), type=Out)
    assert journal.waits == again(store).waits == []


async def test_attempts_that_recorded_nothing_are_counted_and_one_that_was_handed_back_is_none(
    store: Store, journal: Journal
) -> None:
    for _ in range(3):
        await journal.attempt()
    assert (again(store).attempts, again(store).fruitless_attempts) == (3, 3)
    journal.hand_back()
    assert again(store).fruitless_attempts == 0
    await journal.attempt()
    assert again(store).fruitless_attempts == 1
    await journal.step("one", counted("one", []), type=Out)
    assert (journal.fruitless_attempts, again(store).fruitless_attempts) == (0, 0)
    assert again(store).attempts == 4


async def test_a_try_that_failed_is_told_of_its_step_and_counts_for_nothing(store: Store, journal: Journal) -> None:
    async def call() -> Out:
        journal.retried("rate", "slow down" * 100, 1, 2.5)
        return Out("one")

    await journal.step("one", call, type=Out)
    assert kinds(store) == ["begin one", "retry", "done one"]
    assert again(store).fruitless_attempts == 0
