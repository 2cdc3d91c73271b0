"""The closing extract: the closest lines first, then what stands against relying on them. Not called a synthesis."""

from __future__ import annotations

from council.llm.offline.case import Case
from council.llm.offline.extract_report import ExtractSection, cite, listed, quote, render
from council.llm.offline.findings import (
    absolute_section,
    disagreements,
    figures_in_short,
    gap_section,
    open_section,
    quoted,
    tally,
    unread_section,
)
from council.llm.offline.rules import absolutes, open_items, ownerless, positions
from council.llm.offline.turns import nothing_to_read

MAX_EXTRACT_CHARS = 5_500  # two pages: what a board reads before a meeting
_PASSAGES = 5
_CENTRAL = 3

CANNOT = (
    "weigh arguments, notice that differently worded lines disagree, know whether a figure is right, or recommend "
    "anything. It matches words and patterns, in English. Set GEMINI_API_KEY and run again for a deliberation by a "
    "language model."
)


def extract_text(case: Case) -> str:
    """The Markdown of the closing extract, at most about `MAX_EXTRACT_CHARS` characters."""
    if not case.corpus.statements:
        return nothing_to_read(case)
    statements = case.corpus.statements
    waiting, claims = case.by_task(open_items(statements)), absolutes(statements, case.terms)
    # Up to two positions that somebody takes in the words of the task, or else the closest line.
    taken = [s for s in positions(statements) if set(s.stems) & set(case.terms)]
    lead = case.by_task(taken)[:2] or case.passages[:1]
    if lead:
        said = f"What the documents say on this task: {'; '.join(map(quote, lead))}."
    else:
        said = "What the documents say on this task: no line shares enough words with it to be quoted as an answer."
    pairs = case.mismatches[:4]
    elsewhere = {s.where for pair in pairs for s in (pair.first.statement, pair.second.statement)}
    elsewhere |= {s.where for s in [*lead, *claims[:3], *waiting[:6]]}
    # Questions that follow from the findings, in the order in which they can mislead a decision.
    checks = [f"Which figure holds for {figures_in_short(pair)}?" for pair in pairs]
    if case.gaps:
        checks.append(f"The task asks about {listed(case.gaps)}: where is that written down?")
    if waiting:
        places = ", ".join(cite(s) for s in waiting[:6])
        checks.append(f"Who settles the items marked as open, and by when? {places}{' …' if len(waiting) > 6 else ''}")
    if claims:
        checks.append(f"What supports the absolute claim in {cite(claims[0])}?")
    duties = case.by_task(ownerless(statements))
    if duties:
        checks.append(f"Who will meet the obligations that name nobody? {', '.join(cite(s) for s in duties[:4])}")
    if case.unread:
        names = ", ".join(f"`{named.path}`" for named in case.unread[:4])
        checks.append(f"Named but not read: {names}. Add what matters to `input_artifacts`.")
    # What the documents turn on, where nothing in them is close to the task: better than an empty page. Of documents that
    # are too short to turn on anything, their sentences, however short.
    central = [] if lead else (case.survey or [s for s in statements if s.text.endswith(".")])[:_CENTRAL]
    sections = [
        ExtractSection("", f"{said} {tally(case)}"),
        quoted("Passages on the task.", [s for s in case.passages if s.where not in elsewhere], _PASSAGES),
        quoted("Central statements, for want of one on the task.", central, _CENTRAL),
        disagreements(case, 4),
        open_section(case, 6),
        absolute_section(case, 3),
        gap_section(case),
        unread_section(case),
        ExtractSection("Check these before deciding.", "", tuple(checks)),
        ExtractSection("What this mode cannot do:", CANNOT),
    ]
    return render(sections, max_chars=MAX_EXTRACT_CHARS)
