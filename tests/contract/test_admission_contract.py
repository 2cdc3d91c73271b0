"""What becomes a run becomes one run, whatever the store says meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from council.commands.models import RunBase
from council.commands.parsing import parse_command
from council.commands.types import Admission, CommandType, CommandTypes
from council.deliberation.commands import DeliberateCommand
from council.engine.control_commands import CONTROLS
from council.engine.engine import Engine
from council.engine.ledger import Ledger
from council.engine.receipts import Receipt, Receipts
from council.engine.runs import Execution, Finish, Handler, Outcome, Premises, Run
from council.errors import CommandInvalid, ConfigError, StorageFailed
from council.events import Events
from council.ids import SystemClock
from council.redaction import Redactor
from council.settings import Home, Settings
from council.storage.paths import ConfinedRoot
from council.storage.store import Store, Tx
from tests.driver import driver_error, watched
from tests.planning import trail_of
from tests.rows import DROP

SECOND = type(DROP)("resume.json", 2, 2, "1" * 64)
COMMAND = b'{"id": "mine", "task_description": "Choose.", "output_artifact_path": "artifacts/a.md"}'

DELIBERATE = CommandType(DeliberateCommand, lambda command, premises: Admission("Choose", "artifacts/a.md"))
TYPES = CommandTypes([DELIBERATE, *CONTROLS])


class Admitting:
    """Its runs are never begun: there is no slot."""

    def __call__(self, run: Run) -> Execution:
        raise AssertionError("there is no slot")


class Failing(Admitting):
    """Its runs end at once."""

    def __call__(self, run: Run) -> Execution:
        return self  # type: ignore[return-value]

    async def work(self) -> None:
        raise ConfigError("nothing can be done.", fix="wait")

    def conclude(self, finish: Finish) -> Outcome:
        return Outcome("failed", None, error=finish.error)


class Enduring(Failing):
    """Its runs end when they are cancelled."""

    def __call__(self, run: Run) -> Execution:
        self.run = run
        return self  # type: ignore[return-value]

    async def work(self) -> None:
        async def endure() -> str:
            await asyncio.Event().wait()
            return ""

        await self.run.step("endure", endure, type=str)  # a closed journal ends it, as all work

    def conclude(self, finish: Finish) -> Outcome:
        return Outcome("cancelled" if finish.cancelled else "failed", None)


def engine_over(store: Store, home: Path, handler: Handler | None = None, types: CommandTypes = TYPES) -> Engine:
    (home / "home").mkdir(exist_ok=True)
    slots = {"max_parallel_runs": 1 if handler else 0, "max_attempts": 1, "storage_retry_s": 1.0}
    settings = Settings(model="offline").model_copy(update=slots)
    premises = Premises(Home(home / "home"), settings, store, ConfinedRoot(home / "home"))
    handlers = {"deliberate": handler or Admitting()}
    return Engine(
        store, premises, types, handlers, Events(), SystemClock(), audit=trail_of(store, home), redactor=Redactor(),
        on_ended=lambda run, status: None, controls={},
    )  # fmt: skip


def command() -> RunBase:
    parsed = parse_command(TYPES, "command.json", COMMAND)
    assert isinstance(parsed, RunBase)
    return parsed


@pytest.fixture
def store(tmp_path: Path, database_url: str | None) -> Iterator[Store]:
    with closing(Store.open(tmp_path, database_url)) as store:
        yield store


async def test_the_engine_asks_who_gives_a_command_and_then_its_type_and_never_on_its_loop(
    store: Store, tmp_path: Path
) -> None:
    asked: list[int] = []

    def admit(command: DeliberateCommand, premises: Premises) -> Admission:
        asked.append(threading.get_ident())
        return Admission("Choose", "artifacts/a.md")

    engine = engine_over(store, tmp_path, types=CommandTypes([CommandType(DeliberateCommand, admit), *CONTROLS]))
    for_nobody = command().model_copy(update={"user": "nobody"})
    with pytest.raises(CommandInvalid, match="there is no such user here"):
        await engine.admit(for_nobody, DROP)
    assert (asked, engine.active) == ([], {})
    assert isinstance(await engine.admit(command(), DROP), Run)
    assert len(asked) == 1
    assert asked != [threading.get_ident()]


async def test_an_admission_that_is_refused_binds_nothing_and_may_be_tried_again(store: Store, tmp_path: Path) -> None:
    engine = engine_over(store, tmp_path)
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        with pytest.raises(StorageFailed):
            await engine.admit(command(), DROP)
    assert (Ledger(store).count(), Receipts(store).bound("mine"), engine.active) == (0, None, {})
    run = await engine.admit(command(), DROP)
    assert isinstance(run, Run)
    assert Ledger(store).unfinished() == [run.id]
    bound = Receipts(store).bound("mine")
    assert bound is not None
    assert bound.run_id == run.id


async def test_a_drop_whose_admission_was_committed_unheard_is_that_run(postgres_url: str, tmp_path: Path) -> None:
    with closing(Store.open(tmp_path, postgres_url)) as store:
        engine = engine_over(store, tmp_path)

        def lose() -> None:
            driver.shut()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        with watched(store) as driver:
            driver.after["COMMIT"] = lose
            with pytest.raises(StorageFailed):
                await engine.admit(command(), DROP)
        [there] = Ledger(store).unfinished()
        run = await engine.admit(command(), DROP)
        assert isinstance(run, Run)
        assert (run.id, Ledger(store).unfinished()) == (there, [there])
        assert await run.put("one", "said", type=str) == "said"


async def test_a_run_whose_reopening_was_committed_unheard_goes_on(postgres_url: str, tmp_path: Path) -> None:
    with closing(Store.open(tmp_path, postgres_url)) as store:
        engine = engine_over(store, tmp_path, Failing())
        run = await engine.admit(command(), DROP)
        assert isinstance(run, Run)

        async def ended() -> Receipt | None:
            async with asyncio.timeout(60):
                while engine.active:
                    await asyncio.sleep(0.01)
            return Receipts(store).read(run.id)

        first = await ended()
        assert first is not None
        assert (first.status, first.attempts) == ("failed", 1)
        resume = parse_command(TYPES, "resume.json", json.dumps({"type": "resume", "run": run.id}).encode())

        def lose() -> None:
            driver.shut()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        await store.write(lambda tx: None)  # what goes along with the next commit is written: that one is to be lost
        with watched(store) as driver:
            driver.after["COMMIT"] = lose
            with pytest.raises(StorageFailed):
                await engine.obey(resume, SECOND)
        await engine.obey(resume, SECOND)
        again = await ended()
        assert again is not None
        assert again.attempts == 2
        await engine.obey(resume, SECOND)  # its file could not be taken
        assert not engine.active


async def test_a_control_command_asks_the_database_beside_the_loop(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_over(store, tmp_path, Failing())
    run = await engine.admit(command(), DROP)
    assert isinstance(run, Run)
    async with asyncio.timeout(60):
        while engine.active:
            await asyncio.sleep(0.01)
    idle, read, threads = engine_over(store, tmp_path), store.read, list[int]()  # an engine that begins no run

    def noted(look: Callable[[Tx], object]) -> object:
        threads.append(threading.get_ident())
        return read(look)

    monkeypatch.setattr(store, "read", noted)
    resume = parse_command(TYPES, "resume.json", json.dumps({"type": "resume", "run": run.id}).encode())
    assert (await idle.obey(resume, SECOND))[1] == run.id
    assert len(threads) > 2
    assert threading.get_ident() not in threads


async def test_a_cancel_whose_record_is_refused_is_answered_when_its_file_comes_again(
    store: Store, tmp_path: Path
) -> None:
    engine = engine_over(store, tmp_path, Enduring())
    run = await engine.admit(command(), DROP)
    assert isinstance(run, Run)
    while run.status != "running":
        await asyncio.sleep(0)
    cancel = parse_command(TYPES, "cancel.json", json.dumps({"type": "cancel", "run": run.id}).encode())
    file, another = type(DROP)("cancel.json", 3, 3, "3" * 64), type(DROP)("cancel.json", 4, 4, "4" * 64)
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        with pytest.raises(StorageFailed):
            await engine.obey(cancel, file)
    receipt, acted_on = await engine.obey(cancel, file)  # as the inbox does; its run may have ended by it already
    assert (receipt.status, receipt.command_file.name, acted_on) == ("succeeded", file.name, run.id)
    async with asyncio.timeout(60):
        while engine.active:
            await asyncio.sleep(0.01)
    for one in (file, another):  # answered, and never taken up
        with pytest.raises(CommandInvalid, match="is not active"):
            await engine.obey(cancel, one)


async def test_a_store_that_is_opened_again_takes_up_what_was_admitted_in_its_order(
    store: Store, tmp_path: Path
) -> None:
    engine = engine_over(store, tmp_path)
    drops = [type(DROP)(f"{number}.json", number, 1, "0" * 64) for number in range(3)]
    bodies = [parse_command(TYPES, "c.json", COMMAND.replace(b"mine", b"id%d" % number)) for number in range(3)]
    runs = [await engine.admit(body, drop) for body, drop in zip(bodies, drops, strict=True)]  # type: ignore[arg-type]
    again = engine_over(store, tmp_path)
    assert [run.id for run in again.recover()] == [run.id for run in runs if isinstance(run, Run)]
    assert [run.header.file for run in again.active.values()] == drops


@pytest.mark.parametrize("damage", ["a row", "record 0", "its secret"])
async def test_a_run_whose_journal_is_damaged_fails_alone(store: Store, tmp_path: Path, damage: str) -> None:
    engine = engine_over(store, tmp_path)
    for number in range(2):
        body = parse_command(
            TYPES, "c.json", COMMAND.replace(b"mine", b"id%d" % number).replace(b"a.md", b"%d.md" % number)
        )
        assert isinstance(body, RunBase)
        await engine.admit(body, type(DROP)(f"{number}.json", number, 1, "0" * 64))
    damaged, whole = engine.active.values()
    await damaged.put("one", "said", type=str)
    await damaged.put("two", "said", type=str)
    statement = {
        "a row": "UPDATE steps SET kind = 'nothing' WHERE seq = 2",
        "record 0": "UPDATE runs SET header = '{}' WHERE run = 1",
        "its secret": f"UPDATE runs SET header = replace(header, '{damaged.header.secret}', 'zz') WHERE run = 1",
    }[damage]
    store.write_now(lambda tx: tx.execute(statement))
    again = engine_over(store, tmp_path, Failing())
    again.recover()
    while again.active:
        await asyncio.sleep(0)
    receipts = Receipts(store)
    for run, code in ((damaged, "journal_damaged"), (whole, "config_invalid")):
        receipt = receipts.read(run.id)
        assert receipt is not None
        assert receipt.error is not None
        assert (receipt.status, receipt.error.code, receipt.title, receipt.lane) == ("failed", code, "Choose", "main")
    await store.write(lambda tx: None)
    assert engine_over(store, tmp_path).recover() == []
