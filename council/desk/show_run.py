"""The answer of a run, as its page has it: ended, or growing. Loads no report before a page has to be made anew."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from council.desk.desk import Desk
from council.desk.overview import runs_under_way
from council.engine.receipts import Receipt
from council.errors import RunNotFound
from council.markup import without_front_matter
from council.storage.paths import ConfinedRoot

_FOOTNOTE_MARK = re.compile(r"\[\^E[0-9]+\]")
_PAGE_ID = re.compile(r'\A---\nid: "([^"\n]+)"\n')


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
        from council.desk.replays import page_again  # not at the top: rare, and it loads the reports

        try:
            text = page_again(desk, receipt.run_id).decode("utf-8", "replace")
        except RunNotFound as error:
            raise RunNotFound(f"{became}, and {error.message}", fix=error.fix) from None
    body = without_front_matter(text)
    return _FOOTNOTE_MARK.sub("", body.split("\n## Task\n")[0].strip()), became


def raw_page(desk: Desk, run_id: str) -> str:
    """The artifact of a run, as edited since or as far as it has grown; from the journal where another page lies in its place.
    Raises RunNotFound where there is none."""
    receipt = desk.receipts.read(run_id)
    path = receipt.artifact.path if receipt and receipt.artifact else ""
    if receipt is None:
        path = desk.ledger.journal(run_id).header.output_path
    with contextlib.suppress(OSError):
        text = (desk.home.root / path).read_text(encoding="utf-8", errors="replace") if path else ""
        if (holder := _PAGE_ID.search(text)) is not None and holder[1] == run_id:
            return text
    if receipt is None or not path:
        fix = "its receipt says how it ended"
        raise RunNotFound(f"the run {run_id} has no page{'' if receipt else ' yet'}.", fix=fix)
    from council.desk.replays import page_again  # not at the top, as in `answer_of`

    return page_again(desk, run_id).decode("utf-8", "replace")


def growing_run(desk: Desk, run_id: str) -> tuple[dict[str, Any], str]:
    """A run that has not ended, as `overview` tells it, with the path of its page as `output`. Beside it stands the page so
    far, empty until there is one. Raises RunNotFound, JournalDamaged."""
    header = desk.ledger.journal(run_id).header
    known = next((run for run in runs_under_way(desk) if run["run_id"] == run_id), None)
    run = {"run_id": run_id, "title": header.title, "status": "queued", "output": header.output_path, **(known or {})}
    text = ""
    with contextlib.suppress(OSError):
        text = (desk.home.root / run["output"]).read_text(encoding="utf-8", errors="replace")
    holder = _PAGE_ID.search(text)
    return run, _FOOTNOTE_MARK.sub("", without_front_matter(text)).strip() if holder and holder[1] == run_id else ""


def changed_sources(desk: Desk, run_id: str) -> list[str]:
    """The documents that an ended run read and that are other ones now; none where its journal is gone."""
    if not desk.ledger.has_journal(run_id):
        return []
    # Not at the top: it loads a system, and a growing run has no such look yet.
    from council.deliberation.changed_sources import SOURCES_STEP, SourcesNow, changed_since

    read = desk.ledger.journal(run_id).value(SOURCES_STEP, SourcesNow) or SourcesNow()
    with ConfinedRoot(desk.home.root) as root:
        return changed_since(root, read)
