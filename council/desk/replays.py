"""Ended runs told again from what was recorded: the page, the requests, the course of it. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from council.app import App
from council.commands.models import RunBase
from council.desk.desk import Desk
from council.desk.overview import overview
from council.desk.plan_lookup import now_ms
from council.desk.run_lookup import find_any, journal_of, receipt_of, require_journal
from council.engine.ledger import Ledger
from council.engine.outputs import kept_data, kept_names, written_at
from council.engine.receipts import Receipts
from council.engine.records import RunHeader
from council.engine.run_import import import_journal
from council.engine.run_records import RunRecords
from council.errors import CouncilError, JournalDamaged, UsageError
from council.llm.cassette import CassetteCall
from council.reports.cassette_export import Tape, record, spliced
from council.reports.diff import Questions
from council.reports.explain import ExplainedRun, explain
from council.reports.past_run import replay, requests_of
from council.storage.store import Store


@dataclass(frozen=True)
class ReplayedPage:
    """A page rendered again. `shown`: where the run left it; `found`: where the same bytes lie now, None for nowhere.
    `is_here`: a page of this run lies at `shown`, the same one or another."""

    run_id: str
    page: bytes
    shown: str
    found: str | None
    is_here: bool = True


def page_again(desk: Desk, run_id: str) -> bytes:
    """The run's page, from its journal. Raises RunNotFound where the journal is gone, with what became of it."""
    journal = journal_of(desk, run_id)
    return desk.ask_offline(lambda app: replay(journal, app.handlers))


def replayed(desk: Desk, run_id: str) -> ReplayedPage:
    """The page again, and whether it is what the run left. Raises as `page_again`."""
    receipt = receipt_of(desk, run_id)
    page = page_again(desk, run_id)
    if receipt.artifact is None:
        return ReplayedPage(run_id, page, "the artifact", None)
    shown = receipt.artifact.path
    path = desk.home.root / shown
    if path.is_file() and path.read_bytes() == page:
        return ReplayedPage(run_id, page, shown, shown)
    store = desk.store  # kept when another run's page took its place
    kept = (name for name in kept_names(store, run_id) if kept_data(store, run_id, name) == page)
    written = written_at(store, shown)
    is_here = path.is_file() and written is not None and written.run_id == run_id
    return ReplayedPage(run_id, page, shown, next(kept, None), is_here)


def requests_again(desk: Desk, journal: RunRecords) -> list[CassetteCall]:
    """The calls of a recorded run; nobody is asked again. Raises CannotRender, JournalDamaged."""
    return desk.ask_offline(lambda app: requests_of(journal, app.handlers_asking))


def questions_of(desk: Desk, first: RunRecords, second: RunRecords) -> Questions:
    """The questions of both runs; a run that cannot be rendered again says why."""
    asked: list[dict[str, CassetteCall]] = []
    reasons: list[str] = []
    for journal in (first, second):
        try:
            asked.append({call.step: call for call in requests_again(desk, journal)})
        except CouncilError as error:
            asked.append({})
            reasons.append(error.message)
    return Questions(asked[0], asked[1], " ".join(dict.fromkeys(reasons)))


def tape_of(desk: Desk, run_ids: Sequence[str]) -> Tape:
    """The calls of ended runs, one run after the other. Raises as `requests_again`, RunNotFound."""
    tapes = []
    for run_id in run_ids:
        receipt, journal = receipt_of(desk, run_id), journal_of(desk, run_id)
        asked = requests_again(desk, journal)
        command = desk.commands[journal.header.type].model.model_validate(journal.header.command)
        assert isinstance(command, RunBase)
        tapes.append(record(journal, command.task, asked, receipt.status, desk.keys.redactor))
    return spliced(tapes)


def explained(desk: Desk, given: str) -> ExplainedRun:
    """Raises RunNotFound for a run that is unknown or whose journal is gone, with what became of it; JournalDamaged."""
    run_id = find_any(desk, given)
    require_journal(desk, run_id)
    view = overview(desk)
    known = {run["run_id"]: run["status"] for run in view.runs}
    live = None if view.daemon is None else known.get(run_id, "queued")
    receipt = desk.receipts.read(run_id)  # NOTE: after `live`, so an end is not missed
    return desk.ask_offline(lambda app: explain(app.store, run_id, receipt, live, app.handlers, now_ms()))


def imported(desk: Desk, data: bytes, now_ns: int) -> RunHeader:
    """The run in a file that `council journal --jsonl` printed, which is a run of this home from now on. Before, it is told
    from a store in memory: what somebody changed in the file is found there, and not at each later look. Raises as
    `import_journal`."""
    with closing(Store.memory()) as trial:
        try:
            run_id = import_journal(trial, desk.commands, data, now_ns).run_id
            receipt, journal = Receipts(trial).read(run_id), Ledger(trial).journal(run_id)

            async def tell(app: App) -> None:
                await explain(trial, run_id, receipt, None, app.handlers, now_ns // 1_000_000)
                for look in (
                    partial(replay, journal, app.handlers),
                    partial(requests_of, journal, app.handlers_asking),
                ):
                    try:
                        await look()
                    except JournalDamaged:
                        raise
                    except CouncilError:  # it left no page, or another version asked in other words
                        continue

            desk.ask_offline(tell)
        except Exception as error:  # a record that no version wrote fails wherever it is first used
            if isinstance(error, CouncilError) and not isinstance(error, JournalDamaged):
                raise
            raise UsageError(
                f"it is not the journal of a run: what it says cannot be told ({type(error).__name__}).",
                fix="print the journal again where the run is; this file was changed",
            ) from error
    with desk.safe() as safe:
        return import_journal(safe.store, desk.commands, data, now_ns)
