"""Figures of the documents as mentions: a value of a kind and unit, and what the words around it say that it is of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from council.llm.offline.numerals import (
    MAX_CHARS,
    YEAR,
    Day,
    clause_end,
    figures,
    in_base_unit,
    parse_number,
    periods_of,
    rate_of,
    unit_of_column,
    value_of,
)
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import is_content, lexicon, pattern, stem, words

_HALVES = 6  # words from its figure, a word counts half; twice as far, a quarter
_BREAK = 3  # a comma or a bracket between counts as so many words
_HEADER, _SECTION, _BEFORE, _TITLE = 0.7, 0.4, 0.3, 0.25  # what a word counts there; beside its figure it counts 1

_WORD = re.compile(r"[^\W\d_]+(?:['’‑-][^\W\d_]+)*")
_STEP = re.compile(rf"(?P<word>{_WORD.pattern})|(?P<figure>\x00+)|(?P<mark>[,;:()–—]|[.!?]\s)")
_RANGE_BEFORE = re.compile(
    r"(?:\d[\w%€£$ .]{0,12}\s*(?:–|—|-|\bto|\bbis|\bor|\boder)"
    r"|\b(?:between|zwischen)(?:\s+[^,;]{0,20}(?:and|und))?)\s*$",
    re.IGNORECASE,
)
_RANGE_AFTER = re.compile(r"\s*(?:–|—|-|to\b|or\b|bis\b|oder\b)\s*(?:€|£|\$)?\d", re.IGNORECASE)
_TOLD_BEFORE = re.compile(r"[^\W\d_]{3,}(?:[:=]| came to| is| was| stood at| betrug| beträgt| liegt bei| lag bei)\s*$")
_HEAD = re.compile(r"(?i)\W*(?:(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)\w*\W{1,2})?")  # of an entry
_LETTERHEAD = 5  # lines
_CODE = re.compile(r"\b[A-Za-z]{1,3}-?\d{1,4}\b")


@dataclass(frozen=True, eq=False)
class Mention:
    """A figure of `kind`: amount, percent, date, clock, measure, count, or bare for a cell without a unit. `unit` is a
    currency, a measure, or the noun of what is counted; durations and times of day are in minutes, lengths in metres.
    `clause` is the text around it. `near` weighs the words beside it, `around` those of its section."""

    statement: Statement
    kind: str
    unit: str
    value: float | Day
    shown: str
    clause: str
    near: Mapping[str, float]
    around: Mapping[str, float]
    rate: str = ""
    about: bool = False

    @property
    def timed(self) -> bool:
        """Days and durations vary widely, whatever they are of."""
        return self.kind in ("date", "clock") or (self.kind == "measure" and self.unit in ("time", "working"))

    @property
    def group(self) -> str:
        """Figures of one group are compared: an amount with those of its currency, a count with any other one."""
        return f"{self.kind} {self.unit}" if self.kind in ("amount", "measure") else self.kind

    @cached_property
    def planned(self) -> frozenset[str]:
        """The words that tell of a plan or a change: another figure is right as well."""
        changed = pattern("patterns", "change").finditer(self.clause)
        proposed = pattern("patterns", "proposed").finditer(self.statement.text)
        words = (match.group().lower() for match in (*changed, *proposed))
        return frozenset("last year" if pattern("patterns", "last_year").fullmatch(word) else word for word in words)

    @cached_property
    def members(self) -> tuple[frozenset[str], ...]:
        """The one of several that the clause means, by year, by time, by number, and by each line of opposites: 2024,
        September, room 14, net, the north side. A time may stand elsewhere in the sentence."""
        things = pattern("patterns", "things", end=r"\.?\s?#?(?:\d{1,4}|[A-Z])\b").finditer(self.clause)
        numbered = {match.group().lower() for match in (*things, *_CODE.finditer(self.clause))}
        names = (
            frozenset(name for name in line.split() if pattern("members", name).search(self.clause))
            for line in lexicon()["opposites"]["lines"].splitlines()
        )
        times = self._times(self.clause) or self._times(self.statement.text)
        return frozenset(YEAR.findall(self.clause)), times, frozenset(numbered), *names

    def _times(self, text: str) -> frozenset[str]:
        """Of a date, the amounts that it may be the time of: two balances differ, and so do their days. Of a time of day, the
        days. Days tell no counts apart, since what is counted once is dated in several ways."""
        language = self.statement.language
        if self.kind in ("date", "clock"):
            found = figures().finditer(text[:MAX_CHARS])
            values = [(match.lastgroup or "", value_of(match, match.lastgroup or "", language)) for match in found]
            if self.kind == "date":
                return frozenset(str(value) for kind, value in values if kind == "amount")
            return frozenset(str(value[1:]) for _, (value, _) in values if isinstance(value, tuple) and value[2])
        return periods_of(text, language, of_days=self.kind in ("amount", "bare"))


def read_mentions(statements: Iterable[Statement]) -> list[Mention]:
    """The figures of all statements. Ranges are left out, they state no single number; so are numbers of things."""
    found: list[Mention] = []
    last = None
    for s in statements:
        together = last and s.whole and not s.header and (s.path, s.whole) == (last.path, last.whole)
        here = Context(s, last.text, last.end_line == s.line) if last and together else Context(s)
        found += here.of_row() if s.kind == "row" and len(s.cells) > 1 else here.of_text(s.text)
        last = s
    return found


@dataclass(frozen=True)
class Context:
    """A statement, and what stands before it in its paragraph."""

    statement: Statement
    before: str = ""
    inside: bool = False  # what stands before it ends on the same line

    def of_row(self) -> Iterator[Mention]:
        s = self.statement
        names, first = row_labels(s)
        for index, cell in enumerate(s.cells):
            # What names a row may be a day or an hour, of which the other names tell.
            name = " ".join(names if index >= first else [*s.cells[:index], *s.cells[index + 1 : first]])
            column = s.header[index].replace("_", " ").strip("* ") if index < len(s.header) else ""
            near = dict.fromkeys(self._stems(column), _HEADER) | dict.fromkeys(self._stems(name), 1.0)
            clause = f"{name} | {column}"
            value = parse_number(cell, s.language) if index >= first else None
            if value is None:
                yield from self.of_text(cell.strip(), clause, near)
                continue
            units = (unit_of_column(text) for text in (cell, column and s.header[index], name))
            kind, unit, factor = next((each for each in units if each[0] != "bare"), ("bare", "", 1.0))
            unit, value_in_base = in_base_unit(value * factor, unit)
            yield Mention(s, kind, unit, value_in_base, cell.strip("* "), clause, near, self._around, rate_of(clause))

    def of_text(self, text: str, label: str = "", beside: Mapping[str, float] | None = None) -> Iterator[Mention]:
        s = self.statement
        text = re.sub(r"https?://[^\s)>\]]+|[\w.+-]+@[\w.-]+", lambda m: "," * len(m.group()), text[:MAX_CHARS])
        found = list(figures().finditer(text))
        masked = text
        for match in found:  # a figure's own marks end no clause
            masked = masked[: match.start()] + "\x00" * len(match.group()) + masked[match.end() :]
        cuts = [0, *(m.end() for m in clause_end().finditer(masked)), len(text)]
        steps = self._steps(masked)
        for match in found:
            kind = match.lastgroup or ""
            before, after = text[: match.start()], text[match.end() :]
            value, unit = value_of(match, kind, s.language)
            if value is None or _RANGE_BEFORE.search(before[-36:]) or _RANGE_AFTER.match(after):
                continue
            kind = "date" if isinstance(value, tuple) else kind
            if (
                kind in ("date", "clock")
                and s.kind not in ("row", "item")
                and _dates_the_text(before, after, begins=not self.inside, heads=s.line <= _LETTERHEAD)
            ):
                continue
            rate = rate_of(after[:30], at_once=kind == "count")
            if kind == "count":
                noun = next((stem(w, s.language) for w in _WORD.findall(after[:60])[:3] if _says(w)), "")
                priced = re.fullmatch(r"\d{1,9}[.,]\d\d", match.group()) and (rate or before.endswith(("× ", "x ")))
                if priced or (_TOLD_BEFORE.search(before) and re.match(r"[,.;)]?(?:\s|$)", after) and not noun):
                    kind = "bare"  # 48.50 a head, 12 × 48.50; visitors: 1,240
                elif not noun or _names_a_thing(before, match.group(), after, s.language):
                    continue
                unit = "" if kind == "bare" else noun
            start = max(cut for cut in cuts if cut <= match.start())
            stop = min(cut for cut in cuts if cut >= match.end())
            if start and not any(
                start <= at < stop and word for at, _, word in steps
            ):  # "by then, 5 days" says nothing alone
                start = max(cut for cut in cuts if cut < start)
            clause = f"{label} {text[start : match.start()]} \x00 {text[match.end() : stop]}"
            near = dict(beside or {})
            here = next(depth for at, depth, _ in steps if at >= match.start())
            for _, depth, word in steps:
                if word:
                    near[word] = max(near.get(word, 0.0), 0.5 ** (max(0, abs(depth - here) - 2) / _HALVES))
            rate = rate or (rate_of(clause) if kind == "amount" else "")
            about = pattern("patterns", "about", end=r"\s*$").search(before[-24:]) is not None
            unit, value = in_base_unit(value, unit)
            shown = match.group().strip(" .")
            yield Mention(s, kind, unit, value, shown, clause, near, self._around, rate, about)

    def _stems(self, text: str) -> list[str]:
        return [stem(word, self.statement.language) for word in _WORD.findall(text) if _says(word)]

    def _steps(self, text: str) -> list[tuple[int, int, str]]:
        """Each word and figure of a text: its place, its distance from the beginning in words, its stem; none of a figure."""
        depth, steps = 0, []
        for match in _STEP.finditer(text):
            depth += _BREAK if match["mark"] else 1
            word = match["word"] or ""
            if not match["mark"]:
                steps.append((match.start(), depth, stem(word, self.statement.language) if _says(word) else ""))
        return steps

    @cached_property
    def _around(self) -> dict[str, float]:
        s = self.statement
        file = re.sub(r"[\W\d_]+", " ", s.path.rpartition("/")[2].rpartition(".")[0])
        weighed = ((f"{s.title} {file}", _TITLE), (self.before, _BEFORE), (s.section, _SECTION))
        return {word: weight for text, weight in weighed for word in self._stems(text)}


def row_labels(row: Statement) -> tuple[list[str], int]:
    """The cells that name a table row, and the place of the first cell after them. A number before a name is none."""
    names: list[str] = []
    for index, cell in enumerate(row.cells):
        plain = cell.strip("* ")
        figure = figures().match(plain)
        dated = figure is not None and figure.lastgroup in ("iso", "date", "dotted", "clock")
        head = row.header[index].strip("* .") if index < len(row.header) else ""
        numbered = re.fullmatch(r"\d{1,4}", plain) and pattern("patterns", "things").fullmatch(head)
        priced = any(match.lastgroup == "amount" for match in figures().finditer(plain))
        if names and not numbered and (parse_number(cell) is not None or priced or (figure and not dated)):
            return names, index
        if plain and (numbered or parse_number(cell) is None):
            names.append(f"{head} {plain}" if numbered else plain)
    return names, len(row.cells)


def _says(word: str) -> bool:
    return is_content(word) and word.lower() not in words("words", "weekdays")


def _dates_the_text(before: str, after: str, *, begins: bool, heads: bool) -> bool:
    """Recognises a date that says when a text was written, or that heads an entry. `heads`: the line heads a document."""
    head = r"[\s:*]*(?:(?:of|on)\s)?(?:\w{2,10}\.?,?\s)?$"
    byline = re.search(r"(?<!day)(?<!tag)(?<!woch)[,·|–—]\s*$", before) and (heads or not re.search(r"\w", after))
    return bool(
        byline or (begins and _HEAD.fullmatch(before)) or pattern("patterns", "dated", end=head).search(before[-24:])
    )


def _ends_with_weekday(before: str) -> bool:
    last = re.search(r"([^\W\d_]+)\.?,?\s*$", before[-14:])
    return last is not None and last[1].lower() in words("words", "weekdays")


def _names_a_thing(before: str, shown: str, after: str, language: str) -> bool:
    """Recognises a number that counts nothing: a year, a page, room 14, 7 Quay Terrace."""
    number_of = r"\.?\s*(?:[(:#-]\s*)?$"
    return bool(
        re.match(r"\s*(?:(?!-[^\W\d_])[^\w\s]|[^\W\d_]\b)", after)
        or re.fullmatch(r"(?:19|20)\d\d|\d{1,9}[.,]\d\d?|0[.,]\d+", shown)
        or any(pattern("patterns", name, end=number_of).search(before[-14:]) for name in ("naming", "things"))
        or re.search("[#/]$", before)
        or _ends_with_weekday(before)
        or re.match(r"\s*(?:times as|mal so)\b", after)  # sixteen times as many
        or (language == "en" and re.match(r"\s[A-Z][a-z]+\s[A-Z][a-z]", after))
    )
