"""One run's execution, with a handler of a few lines and a store in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from council.engine.execution import Executor
from council.engine.ledger import Ledger
from council.engine.run_records import FINISH
from council.engine.runs import ActiveRun, Finish, Outcome, Run, Runs
from council.errors import CouncilError, StorageFailed
from council.events import Events
from council.ids import SystemClock
from council.storage.paths import ConfinedRoot
from council.storage.store import Store
from tests.planning import trail_of
from tests.rows import begun

MOST = 3


class Broken(CouncilError):
    code = "broken"


@dataclass
class Work:
    """Fails with `error`, if there is one, and leaves a receipt alone."""

    error: Exception | None = None
    begun: int = 0

    def __call__(self, run: Run) -> Work:
        return self

    async def work(self) -> None:
        self.begun += 1
        if self.error is not None:
            raise self.error

    def conclude(self, finish: Finish) -> Outcome:
        return Outcome(
            "failed" if finish.error else "cancelled" if finish.cancelled else "succeeded", None, error=finish.error
        )


@pytest.fixture
def root(tmp_path: Path) -> Iterator[ConfinedRoot]:
    with ConfinedRoot(tmp_path) as one:
        yield one


def executed(store: Store, root: ConfinedRoot, work: Work | None, **header: object) -> tuple[Executor, Run, list[str]]:
    runs, ended = Runs({} if work is None else {"deliberate": work}), list[str]()
    executor = Executor(
        store,
        root,
        runs,
        lambda type_: "run_ended",
        SystemClock(),
        trail_of(store, root.root),
        max_attempts=MOST,
        on_ended=lambda run, status: ended.append(status),
        require_places=lambda lane: None,
    )
    return executor, ActiveRun(begun(store, "r1", **header), Events(), None, runs), ended


async def test_no_run_ends_before_it_was_admitted_whatever_the_clock_says(store: Store, root: ConfinedRoot) -> None:
    admitted_ns = time.time_ns() + 10**15
    executor, run, _ = executed(store, root, Work(), order=admitted_ns)
    await executor.execute(run)
    [entry] = Ledger(store).since()
    assert entry.ended_ns == admitted_ns


@pytest.mark.parametrize(("earlier", "code"), [(MOST - 1, None), (MOST, "max_attempts")])
async def test_a_run_may_die_so_often_without_a_step_and_not_once_more(
    store: Store, root: ConfinedRoot, earlier: int, code: str | None
) -> None:
    work = Work()
    executor, run, ended = executed(store, root, work)
    for _ in range(earlier):
        await run.journal.attempt()
    receipt = await executor.execute(run)
    assert (receipt.error and receipt.error.code) == code
    assert receipt.attempts == earlier + 1
    assert ended == [receipt.status] == ["failed" if code else "succeeded"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (Broken("No.", fix="mend it"), "broken", "No."),
        (ValueError("the secret words"), "internal", "internal error (ValueError)."),
    ],
)
async def test_an_error_of_the_work_is_the_runs_end_and_a_defect_tells_none_of_its_words(
    store: Store, root: ConfinedRoot, error: Exception, code: str, message: str
) -> None:
    executor, run, ended = executed(store, root, Work(error))
    receipt = await executor.execute(run)
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.message, ended) == (code, message, ["failed"])


async def test_a_disk_that_fails_is_no_end_and_nothing_of_one_is_recorded(store: Store, root: ConfinedRoot) -> None:
    executor, run, ended = executed(store, root, Work(StorageFailed("full.", fix="free some space")))
    with pytest.raises(StorageFailed):
        await executor.execute(run)
    assert (run.journal.recorded(FINISH), run.journal.committed, ended) == (False, None, [])


async def test_a_run_that_is_cancelled_before_it_began_asks_nobody_and_says_who_cancelled_it(
    store: Store, root: ConfinedRoot
) -> None:
    executor, run, ended = executed(store, root, Work())
    run.cancel_reason = "ada"
    receipt = await executor.execute(run)
    assert (receipt.status, run.journal.result(FINISH, Finish).cancelled_by, ended) == (
        "cancelled",
        "ada",
        ["cancelled"],
    )


@pytest.mark.parametrize(("cancelled", "ends"), [("", "failed"), ("ada", "cancelled")])
async def test_a_run_of_a_type_that_nobody_knows_any_more_ends_and_frees_its_lane(
    store: Store, root: ConfinedRoot, cancelled: str, ends: str
) -> None:
    executor, run, ended = executed(store, root, None)
    run.cancel_reason = cancelled
    receipt = await executor.execute(run)
    assert (receipt.status, receipt.error and receipt.error.code, ended) == (
        ends,
        None if cancelled else "unknown_type",
        [ends],
    )
