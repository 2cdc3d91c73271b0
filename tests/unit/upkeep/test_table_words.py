"""A table that a room declares is reached by redaction, `forget` and retention, for it says which columns hold words."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Column, Integer, LargeBinary, MetaData, String, Table, Text, select

from council.app import App, build_app, tables_of
from council.desk.all_systems import house
from council.engine import statements as sql
from council.engine.journal import Journal
from council.engine.ledger import Ledger
from council.engine.run_records import rows_of
from council.engine.runs import ActiveRun, Runs
from council.events import Events
from council.ids import SystemClock
from council.redaction import Secret
from council.reports.past_run import PastRun
from council.settings import Home, ProviderKeys, Settings
from council.storage.store import Store, Tx
from council.storage.tables import GOES_WITH_RUN, NO_WORDS, SEALED, JsonWords, Words, metadata, words_of
from council.storage.versions import DATABASE_FILE
from council.upkeep import text_removal
from council.upkeep.copies import blocks_of
from council.upkeep.forget_run import WholeRun
from council.upkeep.forgotten_text import Span
from council.upkeep.retention import Retention
from council.upkeep.text_removal import Traces
from council.users.tables import users
from tests.driver import watched
from tests.harness import make_home
from tests.rows import ended

TEXT = "Grete's number is 555-0172"
FIRST = "20260101-000000-aaaaaaaa"
SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def letters() -> Iterator[Table]:
    """The table of a system that the house does not know."""
    table = Table(
        "sample_letters",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("run_id", String(64), nullable=False),
        Column("subject", Words),
        Column("body", Words(JSON())),
        Column("scan", Words(LargeBinary())),
        Column("postmark", Text, info=NO_WORDS),
        info={GOES_WITH_RUN: True},
    )
    yield table
    metadata.remove(table)


@pytest.fixture
async def app(tmp_path: Path, letters: Table) -> AsyncIterator[App]:
    keys = ProviderKeys()
    keys.redactor.register(Secret(SECRET))
    app = build_app(Home(make_home(tmp_path / "home")), Settings(model="offline"), keys, systems=house())
    app.store.write_now(lambda tx: letters.create(tx.core))
    for number, run_id in enumerate((FIRST, "20260102-000000-bbbbbbbb")):
        ended(app.store, run_id, 1_000 + number, title="A task that is called so")
        row = {
            "run_id": run_id,
            "subject": f"{TEXT}, and {SECRET}",
            "body": {"said": [TEXT, SECRET]},
            "scan": f"{TEXT}, and {SECRET}".encode(),
            "postmark": TEXT,
        }
        app.store.write_now(lambda tx, row=row: tx.core.execute(letters.insert().values(**row)))
    yield app
    await app.aclose()


def rows(app: App, table: Table) -> list[tuple[object, ...]]:
    def look(tx: Tx) -> list[tuple[object, ...]]:
        columns = table.c.subject, table.c.body, table.c.scan, table.c.postmark
        return [tuple(row) for row in tx.core.execute(select(*columns).order_by(table.c.id)).all()]

    return app.store.read(look)


async def test_a_secret_is_taken_out_of_words_as_they_are_written(app: App, letters: Table) -> None:
    said = f"{TEXT}, and [secret]"
    assert rows(app, letters) == [(said, {"said": [TEXT, "[secret]"]}, said.encode(), TEXT)] * 2


def test_a_secret_in_any_column_of_words_is_written_without_it(app: App) -> None:
    for room in tables_of(house()):
        import_module(room)
    said = f"about {SECRET}"
    every = [column for table in metadata.sorted_tables for column in words_of(table)]
    twins = MetaData()  # of one column each: no key of another table, and no word that a check allows alone
    written = []
    for number, column in enumerate(every):
        twin = Table(f"twin_{number}", twins, Column("words", column.type))
        given = json.dumps({"said": said}) if isinstance(column.type, JsonWords) else said
        given = given.encode() if isinstance(column.type.kept_as, LargeBinary) else given

        def write(tx: Tx, twin: Table = twin, given: object = given) -> object:
            twin.create(tx.core)
            tx.core.execute(twin.insert().values(words=given))
            return tx.execute(f"SELECT words FROM {twin.name}").fetchone()[0]

        written.append(str(app.store.write_now(write)))
    assert len(every) > 50
    assert [text for text in written if SECRET in text or "about [secret]" not in text] == []


async def test_forgetting_a_text_reaches_every_column_of_words_and_no_other(app: App, letters: Table) -> None:
    traces = Traces(app, PastRun(app.ledger.journal(FIRST)), [Span(TEXT, "[gone]")])
    named = users.insert().values(user_id="grete", name=f"Grete ({TEXT})", created="2026-01-01T00:00:00Z")
    app.store.write_now(lambda tx: tx.core.execute(named))

    assert traces.look()["other"] == 3
    assert await traces.remove()
    assert app.store.read(lambda tx: tx.core.execute(select(users.c.name)).scalars().all()) == ["Grete ([gone])"]
    left = "[gone], and [secret]"
    assert rows(app, letters) == [(left, {"said": ["[gone]", "[secret]"]}, left.encode(), TEXT)] * 2
    assert traces.look()["other"] == 0
    assert not await traces.remove()


async def test_a_text_is_looked_for_in_a_thread_beside_runs_that_end_and_once_in_a_run_that_does_not_change(
    app: App,
) -> None:
    run = PastRun(app.ledger.journal(FIRST))
    looked: list[tuple[str, int, bool]] = []

    class Noted(Span):
        def is_in(self, text: str) -> bool:
            looked.append((text, threading.get_ident(), run.runs.endings.locked()))
            return super().is_in(text)

    header = app.store.read(lambda tx: tx.execute(sql.HEADER, (FIRST,)).fetchone())[1]
    traces = Traces(app, run, [Noted("stands nowhere", "[gone]")])
    assert not await traces.remove()
    assert threading.get_ident() not in {thread for _, thread, _ in looked}
    assert [is_still for text, _, is_still in looked if text == header] == [False]
    assert not await traces.remove()
    assert [text for text, _, _ in looked].count(header) == 1
    app.store.write_now(lambda tx: tx.execute("UPDATE runs SET ended_ns = 2000 WHERE run_id = ?", (FIRST,)))
    await traces.remove()
    assert [text for text, _, _ in looked].count(header) == 2


async def test_who_reads_does_not_wait_while_a_journal_is_looked_through(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []

    def read_beside(what: str) -> None:
        reader = threading.Thread(target=lambda: seen.append((what, app.store.read(lambda tx: 1))), daemon=True)
        reader.start()
        reader.join(10)
        assert not reader.is_alive()

    class Slow(Span):
        def is_in(self, text: str) -> bool:
            read_beside("a text")
            return super().is_in(text)

    def slow(tx: Tx, run: int) -> Any:
        read_beside("a row")
        return rows_of(tx, run)

    run = ActiveRun(Journal(app.ledger.header(FIRST), 1, app.store), Events(), None)
    span = Slow("Task", "[gone]")
    run.runs.active[FIRST] = run
    forgetting = PastRun(app.ledger.journal("20260102-000000-bbbbbbbb"))
    forgetting.runs = run.runs
    await Traces(app, forgetting, [Slow("stands nowhere", "[gone]")]).require_in_no_unfinished_run()
    assert [what for what, _ in seen] == ["a text"] * 3  # of the header and the step
    seen.clear()
    monkeypatch.setattr(text_removal, "rows_of", slow)
    ended_run = text_removal._EndedRun(1, FIRST, held=True, in_receipt=True)
    await Traces(app, run, [span])._in_run(ended_run)
    assert seen[0] == ("a row", 1)


async def test_forgetting_writes_the_database_anew_only_where_its_file_still_has_the_text(
    app: App, letters: Table
) -> None:
    span = Span(TEXT, "[gone]")
    traces = Traces(app, PastRun(app.ledger.journal(FIRST)), [span])
    app.store.write_now(lambda tx: tx.core.execute(letters.update().values(postmark="")))
    await traces.remove()
    with watched(app.store) as driver:

        def may_be_in(copy: Path) -> bool:
            return any(map(span.may_be_in, blocks_of(copy)))

        traces.sweep(may_be_in)
        assert driver.count("VACUUM") == 0
        split_and_merged(app.store)
        assert TEXT.encode() in (app.home.runtime / DATABASE_FILE).read_bytes()
        traces.sweep(may_be_in)
        assert driver.count("VACUUM") == 1
        assert TEXT.encode() not in (app.home.runtime / DATABASE_FILE).read_bytes()


@pytest.mark.parametrize("place", ["a page", "a step", "a row that goes", "a row that stays"])
async def test_forgetting_a_run_writes_the_database_anew_only_where_words_of_it_alone_are_left_in_the_file(
    app: App, letters: Table, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    words, title = "Grete said at the long table that nobody else may call", "A title that another row has"
    said = f'"{title}": "{words}"'
    kept = [("memory", "x", f'"{title}"'.encode())]
    if place == "a page":
        kept.append((FIRST, "artifact.md", said.encode()))
    elif place == "a step":
        step = "UPDATE steps SET out = ? WHERE run IN (SELECT run FROM runs WHERE run_id = ?)"
        app.store.write_now(lambda tx: tx.execute(step, (json.dumps(said), FIRST)))
    else:
        letter = letters.update().where(letters.c.run_id == FIRST).values(subject=said)
        app.store.write_now(lambda tx: tx.core.execute(letter))
    if place == "a row that stays":
        monkeypatch.delitem(letters.info, GOES_WITH_RUN)
    app.store.write_now(lambda tx: [tx.execute(sql.KEEP, row) for row in kept])
    whole = WholeRun(app, Runs({}), FIRST, "[gone]")
    traces = Traces(app, PastRun(app.ledger.journal(FIRST)), whole.spans())
    await whole.remove()
    with watched(app.store) as driver:
        traces.sweep(whole.may_be_in)
        assert driver.count("VACUUM") == 0
        split_and_merged(app.store, f'"{words}"')
        assert words.encode() in (app.home.runtime / DATABASE_FILE).read_bytes()
        traces.sweep(whole.may_be_in)
        assert driver.count("VACUUM") == 1
        assert words.encode() not in (app.home.runtime / DATABASE_FILE).read_bytes()


@pytest.mark.parametrize("begun", [WholeRun._remove_beside, WholeRun._remove_still], ids=["some rows", "all rows"])
async def test_forgetting_a_run_writes_the_database_anew_where_a_kill_came_before_all_of_it_was_gone(
    app: App, letters: Table, begun: Callable[[WholeRun], object]
) -> None:
    begun(WholeRun(app, Runs({}), FIRST, "[gone]"))
    again = WholeRun(app, Runs({}), FIRST, "[gone]")  # it does not know all of its words any more
    assert vacuums(app, again) == 1


async def test_forgetting_a_run_writes_the_database_anew_where_its_title_is_too_short_to_be_known(app: App) -> None:
    short, long = "20260103-000000-cccccccc", "20260104-000000-dddddddd"
    ended(app.store, short, 3_000, title="Fire Bob?")
    ended(app.store, long, 4_000, title="Fire Bob and no other of them?")
    assert [vacuums(app, WholeRun(app, Runs({}), run_id, "[gone]")) for run_id in (long, short)] == [0, 1]


def vacuums(app: App, whole: WholeRun) -> int:
    """How many times the database is written anew by a sweep that knows what this run said."""
    traces = Traces(app, PastRun(app.ledger.journal("20260102-000000-bbbbbbbb")), whole.spans())
    with watched(app.store) as driver:
        traces.sweep(whole.may_be_in)
        return driver.count("VACUUM")


def split_and_merged(store: Store, said: str = TEXT) -> None:
    """Leaves copies of deleted rows that hold the text between the pages' cells, where SQLite does not overwrite them."""
    for seed in range(4):
        rng = random.Random(seed)
        rows = [(f"owner {number % 2 if number < 180 else 0}", f"{seed} {number:03}") for number in range(240)]
        words = [(f"{said} " if owner == "owner 0" else "another's words") * rng.randint(2, 33) for owner, _ in rows]
        kept = [(*row, text.encode()) for row, text in zip(rows, words, strict=True)]
        store.write_now(lambda tx, kept=kept: [tx.execute(sql.KEEP, row) for row in kept])
        store.write_now(lambda tx: tx.execute("DELETE FROM kept WHERE owner = 'owner 0'"))
    store.sweep()


async def test_forgetting_a_run_takes_its_rows_that_go_with_it_and_leaves_the_others(app: App, letters: Table) -> None:
    whole = WholeRun(app, Runs({}), FIRST, "[gone]")

    assert whole.look()["other"] == 1
    assert await whole.remove()
    assert len(rows(app, letters)) == 1
    assert not await whole.remove()


async def test_forgetting_a_run_blanks_the_words_of_rows_that_stay(
    app: App, letters: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(letters.info, GOES_WITH_RUN)

    assert await WholeRun(app, Runs({}), FIRST, "[gone]").remove()
    blanked, other = rows(app, letters)
    assert blanked == ("[gone]", {"said": ["[gone]", "[gone]"]}, b"[gone]", TEXT)
    assert other[0] == f"{TEXT}, and [secret]"


async def test_retention_lets_rows_go_with_the_journal_of_their_run(app: App, letters: Table) -> None:
    retention = Retention(app.store, Settings(keep_runs=1), SystemClock(), app.tables)

    assert [one.run_id for one in retention.prune(retention.due())] == [FIRST]
    assert len(rows(app, letters)) == 1
    assert Ledger(app.store).kept()[0] == 1


def test_every_column_of_text_says_whether_it_holds_words_and_every_table_of_words_has_a_key() -> None:
    for room in tables_of(house()):
        import_module(room)
    silent = [
        str(column)
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, Text | LargeBinary | JSON) and "words" not in column.info
    ]
    sealed = {table.name for table in metadata.sorted_tables if table.info.get(SEALED)}
    keyless = [table.name for table in metadata.sorted_tables if words_of(table) and not table.primary_key.columns]

    assert (silent, keyless) == ([], [])
    assert sealed == {"runs", "steps", "ids", "written", "kept", "audit_records"}
