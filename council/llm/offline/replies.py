"""The turn of each role. One round says all; a second one says it again only when more was read since the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from council.lines_and_pages import in_words, numbers, spelled
from council.llm.offline.case import Case, positions
from council.llm.offline.sections import (
    ExtractSection,
    count,
    disagreements,
    enumerated,
    gap_section,
    language_section,
    nothing_to_read,
    open_section,
    quote,
    quoted,
    render,
    totals,
    unread_section,
)

MAX_TURN_CHARS = 2_500  # a page
MAX_REQUESTS = 4
_PASSAGES = 6
_DRY = "This engine said in the round before all that it finds; another round adds nothing."

MAX_EXTRACT_CHARS = 5_500  # two pages: what a board reads before a meeting
_EXTRACT_PASSAGES = 5
CANNOT = (
    "weigh arguments, notice that differently worded lines disagree, know whether a figure is right, or recommend "
    "anything. It matches words and patterns in English and German. For a deliberation by a language "
    "model, set GEMINI_API_KEY, start `council run --model gemini`, and drop the command again."
)

Content = tuple[list[ExtractSection], Sequence[str]]


def turn_text(case: Case) -> str:
    if not case.corpus.statements:
        return nothing_to_read(case, MAX_TURN_CHARS)
    if case.info.round > 2 or (case.info.round == 2 and not case.later):
        return render([ExtractSection("", _DRY)], max_chars=MAX_TURN_CHARS)
    sections, requests = _ROLES.get(case.info.role.upper(), _other)(case)
    return render([language_section(case), *sections], tail=requests, max_chars=MAX_TURN_CHARS)


def _coordinator(case: Case) -> Content:
    lines = []
    for source in case.corpus.sources:
        last = numbers(source.path, source.text.rstrip("\n"), source.first_line)[-1]
        titles = [h for h in case.corpus.headings if h.source == source.id]
        title = f": “{titles[0].text}” [{source.id}: {spelled(source.path, titles[0].line)}]" if titles else ""
        lines.append(f"{source.id} `{source.path}`, {in_words(source.path, source.first_line, last)}{title}")
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
        sections.append(ExtractSection("Requested,", "because named and not read:"))
    return sections, [f"[ORCHESTRATOR_REQUEST: READ_FILE({named.path})]" for named in wanted]


def _other(case: Case) -> Content:
    none = "No line shares enough words with the task to be quoted."
    return [quoted("Closest to the task.", case.passages, _PASSAGES, none=none)], ()


_ROLES: dict[str, Callable[[Case], Content]] = {
    "COORDINATOR": _coordinator,
    "STRATEGIST": _strategist,
    "AUDITOR": lambda case: ([disagreements(case, 4), totals(case, 3), open_section(case, 5)], ()),
}


def extract_text(case: Case) -> str:
    if not case.corpus.statements:
        return nothing_to_read(case, MAX_EXTRACT_CHARS)
    # Up to two positions that somebody takes in the words of the task, or else the closest line.
    taken = [s for s in positions(case.corpus.statements) if set(s.stems) & set(case.terms)]
    lead = case.by_task(taken)[:2] or case.passages[:1]
    said = (
        f"Closest to an answer in the documents: {'; '.join(map(quote, lead))}."
        if lead
        else "No line of the documents shares enough words with the task to be quoted as an answer."
    )
    wrong = len(case.wrong_sums)
    found = [
        count(len(case.mismatches), "pair") + " of lines with different figures" if case.mismatches else "",
        f"{count(wrong, 'total')} that {'does' if wrong == 1 else 'do'} not add up" if wrong else "",
        count(len(case.open_items), "open item") if case.open_items else "",
    ]
    told = list(filter(None, found))
    tally = f"The checks below found {enumerated(told)}." if told else ""
    elsewhere = {q.statement.where for m in case.mismatches[:4] for q in (m.first, m.second)}
    elsewhere |= {s.where for s in [*lead, *case.open_items[:6]]}
    passages = [s for s in case.passages if s.where not in elsewhere]
    return render(
        [
            language_section(case),
            ExtractSection("", f"{said} {tally}".strip()),
            disagreements(case, 6),
            totals(case, 4),
            quoted("Further passages on the task.", passages, _EXTRACT_PASSAGES),
            open_section(case, 6),
            gap_section(case),
            unread_section(case),
            ExtractSection("What this mode cannot do:", CANNOT),
        ],
        max_chars=MAX_EXTRACT_CHARS,
    )
