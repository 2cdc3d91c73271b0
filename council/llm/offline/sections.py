"""Sections that turns and the extract share. A check that finds nothing says just that, and nothing of the documents."""

from __future__ import annotations

from collections.abc import Sequence

from council.llm.offline.case import Case
from council.llm.offline.extract_report import ExtractSection, figure, listed, quote, render
from council.llm.offline.text import Statement
from council.places import spelled

_NONE = "None found by this check."


def quoted(label: str, statements: Sequence[Statement], limit: int, *, none: str = "") -> ExtractSection:
    """The first `limit` statements as quotes; `none` is said instead when there are none."""
    return ExtractSection(
        label, "" if statements else none, tuple(map(quote, statements[:limit])), total=len(statements)
    )


def disagreements(case: Case, limit: int) -> ExtractSection:
    """Pairs of quotes that give one thing two figures."""
    shown = []
    for m in case.mismatches[:limit]:
        subject = f"*{' '.join(m.words)}*: " if m.words else ""
        first = f"{subject}{quote(m.first.statement)} says {m.first.shown}"
        shown.append(f"{first}, {quote(m.second.statement)} says {m.second.shown}.")
    text = "Two lines seem to speak of one thing. Either figure may be right." if shown else _NONE
    return ExtractSection("Figures that differ.", text, tuple(shown), total=len(case.mismatches))


def totals(case: Case, limit: int) -> ExtractSection:
    """Totals in tables that arithmetic does not confirm."""
    shown = tuple(
        f"{quote(wrong.row)} says {wrong.shown}; {wrong.parts} make {figure(wrong.sum, wrong.row.language)}"
        f"{wrong.places and f' {wrong.places}'}."
        for wrong in case.wrong_sums[:limit]
    )
    return ExtractSection("Totals that do not add up.", "" if shown else _NONE, shown, total=len(case.wrong_sums))


def open_section(case: Case, limit: int) -> ExtractSection:
    return quoted("Marked as open.", case.open_items, limit, none=_NONE)


def gap_section(case: Case) -> ExtractSection:
    """Words of the task that a search does not find. Silent when it finds all, and where languages differ."""
    if not case.gaps or not case.corpus.statements or case.language not in case.corpus.languages:
        return ExtractSection("")
    return ExtractSection("Words of the task that this check did not find in the documents:", f"{listed(case.gaps)}.")


def unread_section(case: Case, limit: int = 4) -> ExtractSection:
    """Files that are named and were not read, each with the line that names it."""
    shown = tuple(
        f"`{named.path}`, named {f'in {quote(named.by)}' if named.by else 'by the task'}"
        for named in case.unread[:limit]
    )
    return ExtractSection("Named but not read.", "", shown, total=len(case.unread))


def language_section(case: Case) -> ExtractSection:
    """Documents that this engine cannot read; said before all else."""
    paths = [
        f"`{source.path}` [{source.id}: {spelled(source.path, source.first_line)}]" for source in case.corpus.foreign
    ]
    if not paths:
        return ExtractSection("")
    names = ", ".join(paths)
    verb = "is" if len(paths) == 1 else "are"
    text = f"{names} {verb} written in another one, so nothing there was searched or checked."
    return ExtractSection("This engine reads English and German only.", text)


def nothing_to_read(case: Case, max_chars: int) -> str:
    """Said instead of a turn or an extract when there is no text to quote."""
    if case.corpus.foreign:
        return render([language_section(case)], max_chars=max_chars)
    if case.sources:
        skipped = case.corpus.skipped_lines
        code = f" ({skipped} lines are code, which is not read as text)" if skipped else ""
        why = f"The documents hold no text to quote{code}."
    else:
        why = "No documents were provided, so there is nothing to extract and nothing was made up instead."
    helps = (
        "files listed under `input_artifacts`: Markdown or plain text with the facts, figures and dates",
        "the options as they stand, with what each costs and who would do the work",
        "the questions that are still open, marked `TODO` or `- [ ]`",
    )
    return render([ExtractSection("", why), ExtractSection("What would help:", "", helps)], max_chars=max_chars)
