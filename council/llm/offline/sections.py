"""Sections that turns and the extract share. A check that finds nothing says just that, and nothing of the documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from council.citations import CitedPlace
from council.lines_and_pages import spelled
from council.llm.base import Source
from council.llm.offline.case import Case
from council.llm.offline.mismatches import series_of
from council.llm.offline.text import Statement, holds_request
from council.llm.offline.vocabulary import Language, tokens

_NONE = "None found by this check."
_SERIES = "Documents whose names differ only in numbers were not compared."


def quoted(label: str, statements: Sequence[Statement], limit: int, *, none: str = "") -> ExtractSection:
    return ExtractSection(
        label, "" if statements else none, tuple(map(quote, statements[:limit])), total=len(statements)
    )


def disagreements(case: Case, limit: int) -> ExtractSection:
    shown = []
    for m in case.mismatches[:limit]:
        said = m.first.statement
        # The nouns of a German line, which have their capitals, are its subject.
        words = tokens(" ".join((*said.header, said.text))) if said.language == "de" else []
        nouns = {word.lower(): word for word in words if word[0].isupper()}
        subject = " ".join(nouns[word] for word in m.words if word in nouns) or " ".join(m.words)
        subject = subject and f"*{subject}*: "
        first = f"{subject}{quote(m.first.statement)} says {m.first.shown}"
        shown.append(f"{first}, {quote(m.second.statement)} says {m.second.shown}.")
    text = "Two lines seem to be about the same thing. Either figure may be right." if shown else _NONE
    series = [name for path in {source.path for source in case.sources} if (name := series_of(path))]
    if len(set(series)) < len(series):
        text = f"{text} {_SERIES}"
    return ExtractSection("Figures that differ.", text, tuple(shown), total=len(case.mismatches))


def totals(case: Case, limit: int) -> ExtractSection:
    shown = tuple(
        f"{quote(wrong.row)} says {wrong.shown}; {wrong.parts} make {wrong.made}{wrong.place and f' {wrong.place}'}."
        for wrong in case.wrong_sums[:limit]
    )
    return ExtractSection("Totals that do not add up.", "" if shown else _NONE, shown, total=len(case.wrong_sums))


def open_section(case: Case, limit: int) -> ExtractSection:
    return quoted("Marked as open.", case.open_items, limit, none=_NONE)


def gap_section(case: Case) -> ExtractSection:
    """Words of the task that a search does not find. Silent when it finds all, and where languages differ."""
    differ = case.is_foreign or case.language not in case.corpus.languages.values()
    if not case.gaps or not case.corpus.statements or differ:
        return ExtractSection("")
    return ExtractSection("Words of the task that this check did not find in the documents:", f"{listed(case.gaps)}.")


def unread_section(case: Case, limit: int = 4) -> ExtractSection:
    shown = tuple(
        f"`{named.path}`, named {f'in {quote(named.by)}' if named.by else 'by the task'}"
        for named in case.unread[:limit]
    )
    return ExtractSection("Named but not read.", "", shown, total=len(case.unread))


def language_section(case: Case) -> ExtractSection:
    """Documents and a task that this engine cannot read, and documents that do not have the task's language; said before
    all else."""
    other: Language = "en" if case.language == "de" else "de"
    names = {"en": "English", "de": "German"}

    def are(sources: Sequence[Source]) -> str:
        named = (f"`{each.path}` [{each.id}: {spelled(each.path, each.first_line)}]" for each in sources)
        return f"{', '.join(named)} {'is' if len(sources) == 1 else 'are'}"

    told = []
    if unread := case.corpus.written_in(None):
        told.append(f"{are(unread)} in another language, so nothing there was searched or checked.")
    if case.is_foreign:
        told.append("The task is in another language, so lines that answer it may not be found.")
    label = "This engine reads English and German only." if told else ""
    if (apart := case.corpus.written_in(other)) and not case.is_foreign:
        both = f"The task is in {names[case.language]} and {are(apart)} in {names[other]}"
        told.append(f"{both}, so lines there that answer it may not be found.")
    return ExtractSection(label, " ".join(told))


def nothing_to_read(case: Case, max_chars: int) -> str:
    """Said instead of a turn or an extract when there is no text to quote."""
    if case.corpus.written_in(None):
        return render([language_section(case)], max_chars=max_chars)
    if case.sources:
        skipped = case.corpus.skipped_lines
        code = f" ({skipped} lines are code, which is not read as text)" if skipped else ""
        why = f"The documents hold no text to quote{code}."
    else:
        why = "No documents were provided, so there is nothing to extract."
    helps = (
        "files listed under `input_artifacts`: Markdown or plain text with the facts, figures and dates",
        "the options as they stand, with what each costs and who would do the work",
        "the questions that are still open, marked `TODO` or `- [ ]`",
    )
    return render([ExtractSection("", why), ExtractSection("What would help:", "", helps)], max_chars=max_chars)


LABEL = (
    "*Offline, extractive, no language model: quoted lines are copied from the documents; "
    "findings are pattern matches, not judgements.*"
)
_MAX_QUOTE_CHARS = 230  # two lines on a page; longer statements are cut at a word and end in "…" after the citation


@dataclass(frozen=True)
class ExtractSection:
    """`total` is how many bullets there would be without limits: those beyond the size of a turn are dropped from the end."""

    label: str
    text: str = ""
    bullets: tuple[str, ...] = ()
    total: int = 0


def cite(statement: Statement) -> str:
    return str(CitedPlace(statement.source, statement.path, statement.line, statement.end_line))


def quote(statement: Statement) -> str:
    """The statement in typographic quotes with its citation; verbatim, cut at a word when long."""
    text = statement.text
    heads = [cell for cell in statement.header if cell]
    columns = f" (columns: {'; '.join(heads)})" if len(heads) > 2 and not holds_request(" ".join(heads)) else ""
    heading = f", below “{statement.section}” {statement.heading}" if statement.headed else ""
    if len(text) <= _MAX_QUOTE_CHARS:
        return f"“{text}” {cite(statement)}{heading}{columns}"
    kept = text[:_MAX_QUOTE_CHARS].rsplit(" ", 1)[0].rstrip(" ,;:")
    return f"“{kept}” {cite(statement)} …{heading}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def listed(words: Sequence[str], *, last: str = "and") -> str:
    """Words in italics, joined as a sentence joins them; anything that could be read as markup is taken out."""
    clean = ["*" + re.sub(r"[^\w’' -]", "", word) + "*" for word in words]
    return enumerated(clean, last=last)


def enumerated(parts: Sequence[str], *, last: str = "and") -> str:
    """Joined as a sentence joins them."""
    if len(parts) < 3:
        return f" {last} ".join(parts)
    return f"{', '.join(parts[:-1])}, {last} {parts[-1]}"


def render(sections: Sequence[ExtractSection], *, tail: Sequence[str] = (), max_chars: int) -> str:
    """Above `max_chars` the last bullet of the longest section goes first, until it fits; the `tail` lines always stay."""
    kept = [section for section in sections if section.text or section.bullets]
    while len(_markdown(kept, tail)) > max_chars and any(len(section.bullets) > 1 for section in kept):
        longest = max(range(len(kept)), key=lambda i: sum(map(len, kept[i].bullets)) * (len(kept[i].bullets) > 1))
        section = kept[longest]
        kept[longest] = replace(section, bullets=section.bullets[:-1])
    return _markdown(kept, tail)


def _markdown(sections: Sequence[ExtractSection], tail: Sequence[str]) -> str:
    parts = [LABEL]
    for section in sections:
        shown = len(section.bullets)
        share = f"({shown} of {section.total} shown)" if section.total > shown > 0 else ""
        head = " ".join(filter(None, (f"**{section.label}**" if section.label else "", share, section.text)))
        parts.append("\n".join([head, *([""] if section.bullets else []), *(f"- {b}" for b in section.bullets)]))
    parts.extend(tail)
    return "\n\n".join(parts) + "\n"
