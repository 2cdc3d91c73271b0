"""The turns of each role, round by round. Round 1 surveys, round 2 pulls evidence, round 3 closes, later ones run
dry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from council.llm.offline.case import Case
from council.llm.offline.extract_report import LABEL, ExtractSection, bullets, cite, render
from council.llm.offline.findings import (
    absolute_section,
    disagreements,
    empty_section,
    figures_in_short,
    gap_section,
    open_section,
    ownerless_section,
    quoted,
    tally,
    unread_section,
)
from council.llm.offline.quantities import quantities
from council.llm.offline.rank import best, bm25, central
from council.llm.offline.rules import obligations, open_items, options
from council.llm.offline.text import Statement
from council.places import numbers, spelled, unit_of

MAX_TURN_CHARS = 2_500  # a page; nine turns of it stay readable
MAX_REQUESTS = 4
_PASSAGES, _CENTRAL, _LATER = 5, 6, 4  # quotes in round 1, in the survey, in each later round
_DRY = "No further passages rank above the threshold for this task; the earlier rounds hold what was found."


def turn_text(case: Case) -> str:
    """The Markdown of one turn, at most about `MAX_TURN_CHARS` characters."""
    if not case.corpus.statements:
        return nothing_to_read(case)
    sections, tail = _ROLES.get(case.info.role.upper(), _other)(case, max(1, case.info.round))
    if not any(section.text or section.bullets for section in sections) and not tail:
        sections = [ExtractSection("", _DRY)]
    return render(sections, tail=tail, max_chars=MAX_TURN_CHARS)


def nothing_to_read(case: Case) -> str:
    """Said instead of a turn or an extract when there is no text to quote."""
    if case.sources:
        skipped = case.corpus.skipped_lines
        why = f"The documents hold no text to quote ({skipped} lines are code, which is not read as text)."
    else:
        why = "No documents were provided, so there is nothing to extract and nothing was made up instead."
    return render(
        [
            ExtractSection("", why),
            ExtractSection("What would help:", "", (
                "files listed under `input_artifacts`: Markdown or plain text with the facts, figures and dates",
                "the options as they stand, with what each costs and who would do the work",
                "the questions that are still open, marked `TODO` or `- [ ]`",
            )),
        ],
        max_chars=MAX_TURN_CHARS,
    )  # fmt: skip


Content = tuple[list[ExtractSection], Sequence[str]]


def _coordinator(case: Case, number: int) -> Content:
    if number == 1:
        lines = []
        for source in case.corpus.sources:
            last = numbers(source.path, source.text.rstrip("\n"), source.first_line)[-1]
            titles = [h.text for h in case.corpus.headings if h.source == source.id]
            title = f": “{titles[0]}” [{source.id}: {spelled(source.path, source.first_line)}]" if titles else ""
            lines.append(f"{source.id} `{source.path}`, {unit_of(source.path)}s {source.first_line}-{last}{title}")
        skipped = case.corpus.skipped_lines
        note = f"{skipped} lines of code were not read as text." if skipped else ""
        sections = [
            ExtractSection("What was given.", note, tuple(lines[:8]), total=len(lines)),
            quoted("Central statements.", case.survey[:_CENTRAL], _CENTRAL),
            gap_section(case),
        ]
        return [*sections, unread_section(case)], ()
    if number == 2:
        new = [s for s in case.corpus.statements if s.source in case.later]
        if not new:
            rest = [s for s in case.survey if s not in case.opening.survey[:_CENTRAL]]
            text = "Nothing was read since the first round; these come next." if rest else ""
            return [ExtractSection("Further central statements.", text, bullets(rest[:_LATER]), total=len(rest))], ()
        settled = [word for word in case.opening.gaps if word not in case.gaps]
        found = f"The new text mentions {', '.join(settled)}, which nothing did before." if settled else ""
        paths = ", ".join(dict.fromkeys(f"`{s.path}`" for s in new))
        return [
            ExtractSection("Read since the first round:", f"{paths}. {found}".strip()),
            ExtractSection("Central statements there.", "", bullets(central(new, case.weights)[:_LATER])),
        ], ()
    if number == 3:
        return [ExtractSection("Where this stands.", tally(case)), unread_section(case)], ()
    return [], ()


def _strategist(case: Case, number: int) -> Content:
    sections, _ = _other(case, number)
    # Program files last: of those, this engine only counts the lines.
    ordered = sorted(case.unread, key=lambda named: named.path.endswith(".py"))
    wanted = ordered[:MAX_REQUESTS] if number == 1 else []
    if wanted:
        sections.append(ExtractSection("Requested,", "because the documents name it and it was not read:"))
    return sections, [f"[ORCHESTRATOR_REQUEST: READ_FILE({named.path})]" for named in wanted]


def _other(case: Case, number: int) -> Content:
    shown = _shown_before(case, number)
    if number == 1:
        passages = case.passages[:_PASSAGES]
        return [
            quoted("Closest to the task.", passages, _PASSAGES),
            *_duties(case, passages, case.corpus.statements),
        ], ()
    new = [
        s for s in best(case.corpus.statements, case.weights, floor=0.2) if s.source in case.later and s not in shown
    ]
    rest = [s for s in case.passages if s not in shown and s not in new]
    passages = [*new, *rest][:_LATER]
    label = "Closest to the task in what was read since, then next in rank." if new else "Next in rank for the task."
    sections = [quoted(label, passages, _LATER)]
    if number == 2:
        fresh = [s for s in case.corpus.statements if s.source in case.later]
        sections.extend(_duties(case, passages, fresh))
    return sections, ()


def _shown_before(case: Case, number: int) -> list[Statement]:
    """Passages of the earlier rounds, worked out again."""
    if number <= 1:
        return []
    if number == 2:
        return case.opening.passages[:_PASSAGES]
    earlier = _shown_before(case, number - 1)
    wide = best(case.corpus.statements, case.weights, floor=0.2)
    new = [s for s in wide if s.source in case.later and s not in earlier]
    rest = [s for s in case.passages if s not in earlier and s not in new]
    return [*earlier, *[*new, *rest][:_LATER]]


def _duties(case: Case, passages: Sequence[Statement], pool: Sequence[Statement]) -> list[ExtractSection]:
    """Obligations, then options and decisions, each statement once."""
    duties = [s for s in case.by_task(obligations(pool)) if s not in passages]
    choices = [s for s in options(pool) if s not in passages and s not in duties]
    return [quoted("Obligations.", duties, 4), quoted("Options and decisions.", choices, 4)]


def _auditor(case: Case, number: int) -> Content:
    if number == 1:
        unread = unread_section(case)
        return [disagreements(case, 3), open_section(case, 5), absolute_section(case, 5), ownerless_section(case, 3),
                empty_section(case, 3), unread], ()  # fmt: skip
    if number == 2:
        seen = {m.where for pair in case.mismatches for m in (pair.first.statement, pair.second.statement)}
        pool = [s for s in case.corpus.statements if s.where not in seen and quantities(s)]
        scores = dict(zip((s.where for s in pool), bm25(pool, case.weights), strict=True))
        ranked = sorted((s for s in pool if scores[s.where] > 0), key=lambda s: -scores[s.where])
        figures = ExtractSection("Figures close to the task, found once.", "", bullets(ranked[:_LATER]))
        return [disagreements(case, 3, skip=3), open_section(case, 4, skip=5), absolute_section(case, 3, skip=5),
                ownerless_section(case, 3, skip=3), figures], ()  # fmt: skip
    if number == 3:
        pairs = tuple(figures_in_short(pair) for pair in case.mismatches[:4])
        waiting = open_items(case.corpus.statements)
        places = ", ".join(cite(s) for s in waiting[:8]) + (" and others" if len(waiting) > 8 else "")
        if not pairs and not waiting:
            return [ExtractSection("", "No figures disagree and nothing is marked as open in the documents.")], ()
        return [
            ExtractSection("Which figure holds?", "", pairs, total=len(case.mismatches)),
            ExtractSection("Still marked as open:", f"{len(waiting)} in all, at {places}." if waiting else ""),
        ], ()
    return [], ()


_ROLES: dict[str, Callable[[Case, int], Content]] = {
    "COORDINATOR": _coordinator,
    "STRATEGIST": _strategist,
    "AUDITOR": _auditor,
}

__all__ = ["LABEL", "MAX_REQUESTS", "MAX_TURN_CHARS", "nothing_to_read", "turn_text"]
