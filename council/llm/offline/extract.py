"""The closing extract: the closest lines first, then what the checks found. Not called a synthesis."""

from __future__ import annotations

from collections import defaultdict

from council.llm.offline.case import Case
from council.llm.offline.extract_report import ExtractSection, count, quote, render
from council.llm.offline.rules import positions
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

MAX_EXTRACT_CHARS = 5_500  # two pages: what a board reads before a meeting
_PASSAGES = 5
_OPENING = 3

CANNOT = (
    "weigh arguments, notice that differently worded lines disagree, know whether a figure is right, or recommend "
    "anything. It matches words and patterns in English and German. Set GEMINI_API_KEY and run again for a deliberation "
    "by a language model."
)


def extract_text(case: Case) -> str:
    """The Markdown of the closing extract, at most about `MAX_EXTRACT_CHARS` characters."""
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
    found = [
        count(len(case.mismatches), "pair") + " of lines with different figures" if case.mismatches else "",
        count(len(case.wrong_sums), "total") + " that arithmetic does not confirm" if case.wrong_sums else "",
        count(len(case.open_items), "item") + " marked as open" if case.open_items else "",
    ]
    tally = f"The checks below found {' and '.join(filter(None, found))}." if any(found) else ""
    elsewhere = {q.statement.where for m in case.mismatches[:4] for q in (m.first, m.second)}
    elsewhere |= {s.where for s in [*lead, *case.open_items[:6]]}
    passages = [s for s in case.passages if s.where not in elsewhere]
    return render(
        [
            language_section(case),
            ExtractSection("", f"{said} {tally}".strip()),
            disagreements(case, 6),
            totals(case, 4),
            quoted("Further passages on the task.", passages, _PASSAGES),
            ExtractSection("") if lead else _opening(case),
            open_section(case, 6),
            gap_section(case),
            unread_section(case),
            ExtractSection("What this mode cannot do:", CANNOT),
        ],
        max_chars=MAX_EXTRACT_CHARS,
    )


def _opening(case: Case) -> ExtractSection:
    """The first sentence of each document, or of a single one the first three: enough to see that it is another matter."""
    documents = defaultdict(list)
    for statement in case.corpus.statements:
        documents[statement.source].append(statement)
    sentences = [[s for s in said if s.text.endswith((".", "!", "?"))] or said for said in documents.values()]
    if len(sentences) == 1:
        return quoted("How the document begins.", sentences[0][:_OPENING], _OPENING)
    return quoted("How the documents begin.", [said[0] for said in sentences], _OPENING)
