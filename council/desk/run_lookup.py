"""Runs by what a person gives of them: an id, the beginning of one, the path of a page, or `last`; what is kept of each, and
its answer as its page has it."""

from __future__ import annotations

import contextlib
import re
import shlex
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from council.desk.desk import Desk
from council.desk.overview import FIRST_QUESTION, runs_under_way
from council.engine.outputs import without_seal, written_at
from council.engine.receipts import Receipt
from council.engine.reopening import why_no_journal
from council.errors import RunNotFound, UsageError
from council.ids import Principal, timestamp
from council.markup import without_front_matter
from council.safety.untrusted import plain_line
from council.settings.home import path_in_home
from council.storage.paths import ConfinedRoot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from council.engine.ledger import RunEntry
    from council.engine.run_records import RunRecords

_ALL_RUNS = "`council runs` lists all runs"
_SEARCHED = 1_000
_SHOWN = 10
_LOOKED_INTO = 100  # unfinished runs whose journals are read for one that waits
_AGO = re.compile(r"([0-9]{1,5})([hdw])")
_LOST_PLUS = re.compile(r"(?<=:[0-9]{2}) (?=[0-9]{2}:[0-9]{2}\Z)")  # a `+` in an address arrives as a blank
_HOURS = {"h": 1, "d": 24, "w": 168}
_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-z]{8}")
_FOOTNOTE_MARK = re.compile(r"(?m)^\[\^E[0-9]+\]: |\[\^E[0-9]+\]")  # its note keeps the bare name: `E1: …`
_PAGE_ID = re.compile(r'\A---\nid: "([^"\n]+)"\n')


class NoTime(UsageError):
    """A `since` that is no time."""

    http_status = 422


def first_moment(since: str, now: datetime, zone: tzinfo | None) -> str:
    """`7d`, a date or a time as RFC 3339 in UTC, "" for "". One without a zone is in `zone`; None is the machine's. Raises
    NoTime."""
    if not since:
        return ""
    ago, fix = _AGO.fullmatch(since.strip()), "say 24h, 7d, 4w, or a date such as 2026-11-20"
    try:
        given = now if ago else datetime.fromisoformat(_LOST_PLUS.sub("+", since.strip()))
    except ValueError:
        raise NoTime(f"since {since!r} is not a time.", fix=fix) from None
    try:
        if ago:
            return timestamp(now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]]))
        return timestamp(given if given.tzinfo else given.replace(tzinfo=zone).astimezone(UTC))
    except (ValueError, OverflowError):
        raise NoTime(f"since {since!r} is too far from now.", fix=fix) from None


def find_all(
    desk: Desk, words: Sequence[str] = (), *, since: str = "", lane: str = "", user: str | None = None
) -> list[RunEntry]:
    """The runs whose title, path, command file, id, type or status hold every word, newest first. `since` is as for
    `first_moment`; no value of an argument means any. `user`: only those that work for this user. One that has not ended has
    the status and the path of its page as `overview` tells them. Raises NoTime."""
    first = first_moment(since, datetime.now(UTC), desk.zone)
    wanted, found = [word.casefold() for word in words], []
    entries = desk.ledger.since(first) if user is None else desk.ledger.of_user(user, first)
    is_open = any(entry.ended_ns is None for entry in entries)
    under_way = {run["run_id"]: run for run in runs_under_way(desk)} if is_open else {}
    for entry in reversed(entries):
        if entry.ended_ns is None and (run := under_way.get(entry.run_id)):
            entry = msgspec.structs.replace(entry, status=run["status"], artifact=run.get("output", ""))
        told = (entry.title, entry.artifact, entry.file, entry.run_id, entry.type, entry.status)
        if entry.lane and lane in ("", entry.lane) and all(word in "\n".join(told).casefold() for word in wanted):
            found.append(entry)
    return found


def find_ended(desk: Desk, given: str) -> str:
    """The one ended run that `given` means; `last` is the last that left a page. Raises RunNotFound."""
    found = _last_pages(desk)[:1] if given == "last" else _matching(desk, given)
    matches = [entry for entry in found if entry.ended_ns]
    if found and not matches:
        raise _not_ended("that run", found[-1].run_id)
    return _only(desk, given, matches, nothing="no run has ended", none="no run matches")


def find_any(desk: Desk, given: str) -> str:
    """Finds like `find_ended`, but also a run that has not ended; `last` prefers one that has. Raises RunNotFound."""
    return _only(desk, given, _any(desk, given), nothing="there is no run", none="no run matches")


def find_for(desk: Desk, given: str, to: Literal["cancel", "resume", "retry", "answer"]) -> str:
    """The run that a control command is to act on, by its whole id. `last` is the newest that this can be done to, an active
    one before an ended one. Raises RunNotFound."""
    if _RUN_ID.fullmatch(given):
        return given
    if given != "last":
        return find_any(desk, given)
    from council.engine.open_questions import open_questions  # not at the top: pydantic

    ledger = desk.ledger
    unfinished = [] if to == "retry" else ledger.unfinished()
    for run_id in reversed(unfinished[-_LOOKED_INTO:]):
        journal = None if to == "cancel" else ledger.journal(run_id)
        if journal is None or (open_questions(journal) if to == "answer" else journal.waits):
            return run_id
    for entry in [] if to in ("cancel", "answer") else ledger.newest(_SEARCHED, ended_only=True):
        if entry.artifact and (to == "retry" or entry.status in ("failed", "cancelled")):
            return entry.run_id
    if to == "retry" and (waiting := ledger.unfinished()):
        raise _not_ended("the last run", waiting[-1])
    nothing = {"cancel": "no run is active", "answer": "no run asks anything"}.get(to, f"there is no run to {to}")
    raise RunNotFound(f"{nothing} in {desk.home.root}.", fix=_ALL_RUNS)


def _not_ended(which: str, run_id: str) -> RunNotFound:
    return RunNotFound(f"{which}, {run_id}, has not ended yet.", fix=f"`council show {run_id}` shows how far it is")


def find_seen(desk: Desk, given: str, principal: Principal) -> str:
    """Finds like `find_any`, of the runs that this person sees: administrators all, a user their own. Raises RunNotFound,
    which names no place on this machine."""
    if principal.is_administrator:
        matches = _any(desk, given)
    elif given == "last":
        matches = find_all(desk, user=principal.id)[:1]
    else:
        found = desk.ledger.starting_with(given, _SEARCHED)
        matches = [one for one in found if desk.ledger.user_of(one.run_id) == principal.id]
    return _only(None, given, matches, nothing="you see no run", none="no run of yours matches")


def receipt_of(desk: Desk, run_id: str) -> Receipt:
    """Raises RunNotFound for a run that has not ended."""
    receipt = desk.receipts.read(run_id)
    if receipt is None:
        raise RunNotFound(f"run {run_id} has no receipt.", fix="it has not ended yet: `council status` shows it")
    return receipt


def journal_of(desk: Desk, run_id: str) -> RunRecords:
    """Raises as `require_journal`, and JournalDamaged."""
    require_journal(desk, run_id)
    return desk.ledger.journal(run_id)


def require_journal(desk: Desk, run_id: str) -> None:
    """Raises RunNotFound for a run without a journal, with what became of it."""
    if desk.ledger.has_journal(run_id):
        return
    receipt = receipt_of(desk, run_id)
    fix = f"`council show {run_id}` prints what stays"
    if receipt.pruned is not None:
        fix += f"; a larger {receipt.pruned.by} keeps more runs"
    raise RunNotFound(f"the run {run_id} {why_no_journal(receipt)}.", fix=fix)


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


def words_of(desk: Desk, run_id: str) -> str:
    """The words of a request's page that its person is to read; empty where it has none."""
    page = ""
    with contextlib.suppress(RunNotFound):  # the end of a conversation
        page = without_front_matter(raw_page(desk, run_id))
    return next(filter(None, (answer_in(page, heading) for heading in ("Answer", "Declined", "Withheld"))), "")


def answer_in(page: str, heading: str = "Answer") -> str:
    """The text below this heading of a page, empty without one."""
    _, found, rest = page.partition(f"\n## {heading}\n\n")
    return rest.partition("\n\n## ")[0].strip() if found else ""


def warnings_in(page: str) -> tuple[str, ...]:
    """The notes above the answer of a page, in Markdown."""
    head = f"\n{page}".partition("\n## ")[0]
    return tuple(part[2:].replace("\n> ", "\n") for part in head.split("\n\n") if part.startswith("> "))


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
    if holder is None or holder[1] != run_id:
        return run, ""
    body = without_front_matter(without_seal(text.encode()).decode())
    return run, _FOOTNOTE_MARK.sub("", body).strip()


def changed_sources(desk: Desk, run_id: str) -> list[str]:
    """The documents that an ended run read and that are other ones now; none where its journal is gone."""
    if not desk.ledger.has_journal(run_id):
        return []
    # Not at the top: it loads the search, and a growing run has no such look yet.
    from council.turns.changed_sources import SOURCES_STEP, SourcesNow, changed_since

    read = desk.ledger.journal(run_id).value(SOURCES_STEP, SourcesNow) or SourcesNow()
    with ConfinedRoot(desk.home.root) as root:
        return changed_since(root, read)


def _last_pages(desk: Desk) -> list[RunEntry]:
    return [entry for entry in desk.ledger.newest(_SEARCHED, ended_only=True) if entry.artifact]


def _any(desk: Desk, given: str) -> list[RunEntry]:
    if given == "last":
        return [*_last_pages(desk), *desk.ledger.newest(1)][:1]
    matches = _matching(desk, given)
    return [entry for entry in matches if entry.run_id == given] or matches


def _matching(desk: Desk, given: str) -> list[RunEntry]:
    """The runs whose id begins so; of a path, from the home or from the working folder, the one that wrote what lies there.
    Raises UsageError for a file outside the home."""
    written = None
    if "/" in given:
        written = written_at(desk.store, given.removeprefix("./"))
        written = written or written_at(desk.store, path_in_home(given, desk.home.root))
    return desk.ledger.starting_with(given if written is None else written.run_id, _SEARCHED)


def _only(desk: Desk | None, given: str, matches: list[RunEntry], *, nothing: str, none: str) -> str:
    """Raises RunNotFound for more than one match; with `nothing` where the home has no run, with `none` for another id.
    Without a `desk`, for somebody who may sit at another machine."""
    matches = [entry for entry in matches if entry.lane] or matches  # a run before the receipt of a control command
    if len(matches) == 1:
        return matches[0].run_id
    if matches:
        shown = matches[-_SHOWN:]
        lines = [f"  {entry.run_id}  {entry.status:<9}  {plain_line(entry.title, 80)}" for entry in reversed(shown)]
        more = f"{given!r} matches {len(matches)} runs" + (f"; the newest {_SHOWN}:" if len(matches) > _SHOWN else ":")
        fix = "give more of the id; `council runs WORDS` finds a run by its title"
        raise RunNotFound("\n".join([more, *lines]), fix=fix, matches=[entry.run_id for entry in shown])
    where = "" if desk is None else f" in {desk.home.root}"
    fix = _ALL_RUNS if desk is not None else "the list of runs has all that you see"
    if given == "last":
        first = f"{FIRST_QUESTION} asks the council; `council submit FILE` drops a command file"
        raise RunNotFound(f"{nothing}{where} yet.", fix=fix if desk is None else first)
    if desk is not None and find_all(desk, [given]):
        fix = f"`council runs {shlex.quote(given)}` finds runs by their words"
    raise RunNotFound(f"{none} {given!r}{where}.", fix=fix)
