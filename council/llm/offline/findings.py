"""Sections that several turns share: numbers that disagree, open items, gaps, unread files."""

from __future__ import annotations

from collections.abc import Sequence

from council.llm.offline.case import Case
from council.llm.offline.extract_report import ExtractSection, bullets, cite, count, listed, quote
from council.llm.offline.mismatches import Mismatch
from council.llm.offline.rules import absolutes, empty_headings, open_items, ownerless
from council.llm.offline.text import Statement
from council.places import spelled


def quoted(label: str, statements: Sequence[Statement], limit: int, *, skip: int = 0, text: str = "") -> ExtractSection:
    """The statements from `skip` on, `limit` at most, as quotes; nothing at all when there are none."""
    shown = statements[skip : skip + limit]
    return ExtractSection(label, text if shown else "", bullets(shown), total=len(statements) - skip)


def disagreements(case: Case, limit: int, *, skip: int = 0) -> ExtractSection:
    """Pairs of lines with the same label words and different numbers."""
    pairs = case.mismatches
    shown = tuple(
        f"*{' '.join(m.words)}*: {quote(m.first.statement)} but {quote(m.second.statement)}"
        for m in pairs[skip : skip + limit]
    )
    text = "Same words, different figures; both may be right if they mean different things." if shown else ""
    return ExtractSection("Numbers that disagree.", text, shown, total=len(pairs) - skip)


def figures_in_short(mismatch: Mismatch) -> str:
    """`*hosting budget*: 900 EUR [E1: …] or 1,200 EUR [E2: …]`."""
    first, second = mismatch.first, mismatch.second
    figures = f"{first.shown} {cite(first.statement)} or {second.shown} {cite(second.statement)}"
    return f"*{' '.join(mismatch.words)}*: {figures}"


def open_section(case: Case, limit: int, *, skip: int = 0) -> ExtractSection:
    return quoted("Marked as open.", case.by_task(open_items(case.corpus.statements)), limit, skip=skip)


def absolute_section(case: Case, limit: int, *, skip: int = 0) -> ExtractSection:
    claims = absolutes(case.corpus.statements, case.terms)
    return quoted("Absolute claims without a source or a number.", claims, limit, skip=skip)


def ownerless_section(case: Case, limit: int, *, skip: int = 0) -> ExtractSection:
    found = case.by_task(ownerless(case.corpus.statements))
    return quoted("Obligations that name nobody to meet them.", found, limit, skip=skip)


def empty_section(case: Case, limit: int) -> ExtractSection:
    found = empty_headings(case.corpus.headings)
    shown = tuple(f"“{h.text}” [{h.source}: {spelled(h.path, h.line)}]" for h in found[:limit])
    return ExtractSection("Headings with nothing under them.", "", shown, total=len(found))


def gap_section(case: Case, *, label: str = "Task words that the documents never mention:") -> ExtractSection:
    """Silent without task words or documents; says so when all are mentioned."""
    if not case.terms or not case.corpus.statements:
        return ExtractSection("")
    if not case.gaps:
        return ExtractSection("", "Every subject word of the task occurs somewhere in the documents.")
    return ExtractSection(label, f"{listed(case.gaps)}.")


def unread_section(case: Case, limit: int = 4) -> ExtractSection:
    """Files that are named and were not read, each with the line that names it."""
    shown = tuple(
        f"`{named.path}`, named {f'in {quote(named.by)}' if named.by else 'by the task'}"
        for named in case.unread[:limit]
    )
    return ExtractSection("Named but not read.", "", shown, total=len(case.unread))


def tally(case: Case) -> str:
    """Sentences that count what stands open; what is not there is not counted."""
    waiting = len(open_items(case.corpus.statements))
    held = [
        f"{count(len(case.mismatches), 'pair')} of lines with different figures" if case.mismatches else "",
        count(waiting, "item") + " marked as open" if waiting else "",
        count(len(case.unread), "name") + " of files that were not read" if case.unread else "",
    ]
    found = [part for part in held if part]
    documents = len({source.path for source in case.sources})
    subject = "The document holds" if documents == 1 else f"The {documents} documents hold"
    counted = f"{subject} {' and '.join(found)}." if found else "No figures disagree and nothing is marked as open."
    silent = "They never mention" if documents > 1 else "It never mentions"
    return f"{counted} {silent} {listed(case.gaps, last='or')}." if case.gaps else counted
