"""The turn of each role. One round says all; a second one says it again only when more was read since the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from council.llm.offline.case import Case
from council.llm.offline.extract_report import ExtractSection, render
from council.llm.offline.sections import (
    disagreements,
    gap_section,
    language_section,
    nothing_to_read,
    open_section,
    quoted,
    totals,
    unread_section,
)
from council.places import numbers, spelled, unit_of

MAX_TURN_CHARS = 2_500  # a page
MAX_REQUESTS = 4
_PASSAGES = 6
_DRY = "This engine said in the round before all that it finds; another round adds nothing."


def turn_text(case: Case) -> str:
    """The Markdown of one turn, at most about `MAX_TURN_CHARS` characters."""
    if not case.corpus.statements:
        return nothing_to_read(case, MAX_TURN_CHARS)
    if case.info.round > 2 or (case.info.round == 2 and not case.later):
        return render([ExtractSection("", _DRY)], max_chars=MAX_TURN_CHARS)
    sections, requests = _ROLES.get(case.info.role.upper(), _other)(case)
    return render([language_section(case), *sections], tail=requests, max_chars=MAX_TURN_CHARS)


Content = tuple[list[ExtractSection], Sequence[str]]


def _coordinator(case: Case) -> Content:
    lines = []
    for source in case.corpus.sources:
        last = numbers(source.path, source.text.rstrip("\n"), source.first_line)[-1]
        titles = [h for h in case.corpus.headings if h.source == source.id]
        title = f": “{titles[0].text}” [{source.id}: {spelled(source.path, titles[0].line)}]" if titles else ""
        lines.append(f"{source.id} `{source.path}`, {unit_of(source.path)}s {source.first_line}-{last}{title}")
    skipped = case.corpus.skipped_lines
    note = f"{skipped} lines of code were not read as text." if skipped else ""
    given = ExtractSection("What was given.", note, tuple(lines[:8]), total=len(lines))
    return [given, gap_section(case), unread_section(case)], ()


def _strategist(case: Case) -> Content:
    sections, _ = _other(case)
    # Program files last: of those, this engine only counts the lines.
    ordered = sorted(case.unread, key=lambda named: named.path.endswith(".py"))
    wanted = ordered[:MAX_REQUESTS] if case.info.round <= 1 else []
    if wanted:
        sections.append(ExtractSection("Requested,", "because the documents name it and it was not read:"))
    return sections, [f"[ORCHESTRATOR_REQUEST: READ_FILE({named.path})]" for named in wanted]


def _other(case: Case) -> Content:
    none = "No line shares enough words with the task to be quoted."
    return [quoted("Closest to the task.", case.passages, _PASSAGES, none=none)], ()


def _auditor(case: Case) -> Content:
    return [disagreements(case, 4), totals(case, 3), open_section(case, 5)], ()


_ROLES: dict[str, Callable[[Case], Content]] = {
    "COORDINATOR": _coordinator,
    "STRATEGIST": _strategist,
    "AUDITOR": _auditor,
}
