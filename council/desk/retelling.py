"""Ended runs told again from what was recorded: the answer, the page, the requests, the course of it. No model is asked."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council.desk.desk import Desk
from council.desk.finding import find_any, journal_of, receipt_of, require_journal
from council.desk.overview import overview
from council.engine.outputs import kept_data, kept_names, written_at
from council.engine.receipts import Receipt
from council.errors import CouncilError, RunNotFound
from council.markup import without_front_matter

if TYPE_CHECKING:
    from council.engine.journal import Journal
    from council.reports.diff import Questions
    from council.reports.explain import ExplainedRun
    from council.reports.recorded_requests import AskedCall
    from council.reports.tape import Tape

# NOTE: the reports are imported where they are asked for: `council show` reads a page, and needs none of them.

_FOOTNOTE_MARK = re.compile(r"\[\^E[0-9]+\]")
_PAGE_ID = re.compile(r'\A---\nid: "([^"\n]+)"\n')


@dataclass(frozen=True)
class ReplayedPage:
    """A page rendered again. `shown`: where the run left it; `found`: where the same bytes lie now, None for nowhere.
    `is_here`: a page of this run lies at `shown`, the same one or another."""

    run_id: str
    page: bytes
    shown: str
    found: str | None
    is_here: bool = True


def answer_of(desk: Desk, receipt: Receipt, page: Path) -> tuple[str, str]:
    """The answer on `page`, the run's artifact as the door names it; else from the journal, and then also what stands in
    the page's place. Raises RunNotFound where neither is left."""
    text, became = "", ""
    try:
        text = page.read_text(encoding="utf-8", errors="replace")  # as edited since
        holder = _PAGE_ID.search(text)
        if holder is not None and holder[1] != receipt.run_id:
            became = f"{page} now holds the page of run {holder[1]}"
    except OSError as error:
        became = f"{page} cannot be read ({error.strerror})"
    if became:
        try:
            text = page_again(desk, receipt.run_id).decode("utf-8", "replace")
        except RunNotFound as error:
            raise RunNotFound(f"{became}, and {error.message}", fix=error.fix) from None
    body = without_front_matter(text)
    return _FOOTNOTE_MARK.sub("", body.split("\n## Task\n")[0].strip()), became


def growing_run(desk: Desk, run_id: str) -> tuple[dict[str, Any], str]:
    """A run that has not ended, as `overview` tells it, with the path of its page as `output`. Beside it stands the page so
    far, empty until there is one. Raises RunNotFound, JournalDamaged."""
    header = desk.ledger.journal(run_id).header
    known = next((run for run in overview(desk).runs if run["run_id"] == run_id), None)
    run = {"run_id": run_id, "title": header.title, "status": "queued", "output": header.output_path, **(known or {})}
    text = ""
    with contextlib.suppress(OSError):
        text = (desk.home.root / run["output"]).read_text(encoding="utf-8", errors="replace")
    holder = _PAGE_ID.search(text)
    return run, _FOOTNOTE_MARK.sub("", without_front_matter(text)).strip() if holder and holder[1] == run_id else ""


def changed_sources(desk: Desk, run_id: str) -> list[str]:
    """The documents that an ended run read and that are other ones now; none where its journal is gone."""
    from council.deliberation.sources_now import SOURCES_STEP, SourcesNow, source_now
    from council.storage.paths import ConfinedRoot

    if not desk.ledger.has_journal(run_id):
        return []
    read = desk.ledger.journal(run_id).value(SOURCES_STEP, SourcesNow) or SourcesNow()
    with ConfinedRoot(desk.home.root) as root:
        return [
            f"{then.path} ({now.error})" if now.error else then.path
            for then in read.files
            if then.sha256 and not then.own and (now := source_now(root, then.path)).sha256 != then.sha256
        ]


def page_again(desk: Desk, run_id: str) -> bytes:
    """The run's page, from its journal. Raises RunNotFound where the journal is gone, with what became of it."""
    from council.reports.past_run import replay

    journal = journal_of(desk, run_id)
    return desk.read_offline(lambda app: replay(journal, app.handlers))


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


def requests_again(desk: Desk, journal: Journal) -> list[AskedCall]:
    """The calls of a recorded run; nobody is asked again. Raises CannotRender, JournalDamaged."""
    from council.reports.recorded_requests import requests_of

    return desk.read_offline(lambda app: requests_of(journal, app.handlers_asking))


def questions_of(desk: Desk, first: Journal, second: Journal) -> Questions:
    """The questions of both runs; a run that cannot be rendered again says why."""
    from council.reports.diff import Questions

    asked: list[dict[str, AskedCall]] = []
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
    from council.reports.tape import record, spliced

    tapes = []
    for run_id in run_ids:
        receipt, journal = receipt_of(desk, run_id), journal_of(desk, run_id)
        tape = record(journal, requests_again(desk, journal), receipt.status, desk.keys.redactor)
        tapes.append((tape, str(journal.header.command.get("task_description", ""))))
    return spliced(tapes)


def explained(desk: Desk, given: str) -> ExplainedRun:
    """Raises RunNotFound for a run that is unknown or whose journal is gone, with what became of it; JournalDamaged."""
    from council.reports.explain import explain

    run_id = find_any(desk, given)
    require_journal(desk, run_id)
    view = overview(desk)
    known = {run["run_id"]: run["status"] for run in view.runs}
    live = None if view.daemon is None else known.get(run_id, "queued")
    receipt = desk.receipts.read(run_id)  # NOTE: after `live`, so an end is not missed
    return desk.read_offline(lambda app: explain(app.store, run_id, receipt, live, app.handlers))
