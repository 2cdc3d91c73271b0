"""Pairs of lines that give one thing two numbers. Tuned for few false alarms: the labels must be the same words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from council.llm.offline.quantities import WEAK, Quantity, quantities
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import stem, tokens

# A label word in more quantities than this says nothing, and comparing them all would be quadratic.
_MAX_HOLDERS = 60
# Labels that head figures of any subject; two of them alone are no evidence of one subject.
_GENERIC_WORDS = """subtotal updated version written author prepared meeting minutes draft status created
    reviewed page report start
    starts end ends deadline valid example first second third new old phase option row rows line lines table
    published released test"""
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))


_UNITS = frozenset(map(stem, ("eur", "euro", "usd", "gbp", "chf", "year", "month", "week", "day", "hour", "minute")))
_MAX_VALUES = 3  # distinct values under one label; more are a series
_SHORT = 12  # content words


@dataclass(frozen=True)
class Mismatch:
    """`words` name the subject: what both lines say, in lower case, in the order of the first."""

    words: tuple[str, ...]
    first: Quantity
    second: Quantity


def mismatches(statements: Iterable[Statement], terms: Collection[str] = ()) -> list[Mismatch]:
    """One per label and pair of values, those with most task words first; then in order of the documents."""
    found = [q for statement in statements for q in quantities(statement) if q.label]
    holders: dict[str, list[int]] = defaultdict(list)
    for index, quantity in enumerate(found):
        for word in sorted(quantity.label):
            holders[word].append(index)
    pairs = sorted(
        {
            (left, right)
            for indices in holders.values()
            if len(indices) <= _MAX_HOLDERS
            for i, left in enumerate(indices)
            for right in indices[i + 1 :]
            if _disagree(found[left], found[right])
        }
    )
    chosen = _one_per_subject([(found[left], found[right]) for left, right in pairs])
    return sorted(chosen, key=lambda m: -len(set(map(stem, m.words)) & set(terms)))


def _disagree(left: Quantity, right: Quantity) -> bool:
    a, b = left.statement, right.statement
    same_frame = (left.kind, left.unit, left.bound, left.past) == (right.kind, right.unit, right.bound, right.past)
    if left.kind == "count" and left.unit.split("/")[0] not in left.label & right.label:
        return False
    # Rows of one table differ by design; so do lines of one configuration file.
    one_table = a.path == b.path and a.kind == b.kind and a.kind in ("row", "data") and a.section == b.section
    if not same_frame or a.where == b.where or one_table or _same_value(left, right):
        return False
    if left.years and right.years and left.years.isdisjoint(right.years):
        return False
    return _same_label(left, right) and not _also_says(a, right) and not _also_says(b, left)


def _same_value(left: Quantity, right: Quantity) -> bool:
    if isinstance(left.value, tuple) or isinstance(right.value, tuple):
        both = zip(left.value, right.value, strict=True)  # type: ignore[arg-type]  # one kind, so both are dates
        return all(x == y or not x or not y for x, y in both)
    allowed = 0.1 if left.about or right.about else 0.0
    return abs(left.value - right.value) <= allowed * max(abs(left.value), abs(right.value))


def _also_says(statement: Statement, other: Quantity) -> bool:
    return any(q.kind == other.kind and q.unit == other.unit and _same_value(q, other) for q in quantities(statement))


def _same_label(left: Quantity, right: Quantity) -> bool:
    """Equal words, or all of one (two at least) standing together, as the head of their phrase, in the other."""
    small, large = sorted((left, right), key=lambda q: (len(q.label), q.sequence))
    shared = small.label & large.label
    if shared <= _GENERIC or shared != small.label:
        return False
    if len(shared) == 1:
        # One word is a label only between documents, in a short line, and never for a count ("12 members").
        short = min(len(left.statement.stems), len(right.statement.stems)) <= _SHORT
        return small.label == large.label and short and left.kind != "count" and not _one_path(left, right)
    if small.label == large.label:
        return True
    # No other strong word before, between or right behind them: "full restore, start to end", but neither
    # "report on the full restore" nor "full restore rehearsal".
    places = [i for i, word in enumerate(large.sequence) if word in shared]
    inside = large.sequence[: places[-1] + 1]
    behind = large.sequence[places[-1] + 1] if places[-1] + 1 < len(large.sequence) else ""
    return not behind and all(word in shared or not word for word in inside)


def _one_path(left: Quantity, right: Quantity) -> bool:
    return left.statement.path == right.statement.path


def _one_per_subject(pairs: Sequence[tuple[Quantity, Quantity]]) -> list[Mismatch]:
    """The first pair per label and pair of values.

    Two things look like contradictions and are none: sections built alike (offers, phases), and a label with a long
    series of values (a change log, a calendar).
    """
    series: dict[tuple[object, ...], set[str]] = defaultdict(set)
    alike: dict[tuple[str, str, str], set[frozenset[str]]] = defaultdict(set)
    for left, right in pairs:
        alike[_sections(left, right)].add(left.label & right.label)
        series[left.kind, left.label & right.label].update((str(left.value), str(right.value)))
    chosen: dict[tuple[object, ...], Mismatch] = {}
    for left, right in pairs:
        shared = left.label & right.label
        if len(series[left.kind, shared]) > _MAX_VALUES:
            continue
        if _one_path(left, right) and len(alike[_sections(left, right)]) > 1:
            continue
        common = shared | (set(left.statement.stems) & set(right.statement.stems) & WEAK - _UNITS)
        words = tuple(dict.fromkeys(w.lower() for w in tokens(left.statement.text) if stem(w) in common))
        key = (shared, left.kind, frozenset((str(left.value), str(right.value))))
        chosen.setdefault(key, Mismatch(words, left, right))
    return list(chosen.values())


def _sections(left: Quantity, right: Quantity) -> tuple[str, str, str]:
    return (left.statement.path, left.statement.section, right.statement.section)
