"""Pairs of lines that give one thing two figures.

A pair is told only when the words around both figures name the same thing, better than they name anything else, and
nothing on either side says why the figures may differ: a change, a plan, a rounding, another rate, year or group.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

from council.llm.offline.quantities import Quantity, dates_of, head_of, quantities, row_labels
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import content_stems, is_content, lexicon, pattern, stem, tokens, weak_words

_MAX_HOLDERS = 60  # a word around more figures names nothing, and comparing all of them would be quadratic
_LEAST = 0.4  # of the words that could be shared; below it, lines that only share a subject get in
_SAME_HEAD = 0.25  # the deposit of 900, a deposit of 1,200
_FEWEST = 20  # statements: in fewer, every word looks common
_TIED = 0.8  # a partner that fits nearly as well as the best one

_TAXES = (1.19, 1.2, 1.07, 1.1, 1.081)
_NEIGHBOURS = 3  # years further apart date something else than the figure
_MAX_RATIO = {"amount": 3.0, "measure": 3.0, "bare": 3.0, "percent": 5.0}  # beyond it, two figures of another thing
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@cache
def _frames() -> dict[str, re.Pattern[str]]:
    return {name: pattern("frames", name) for name in lexicon()["frames"]}


@dataclass(frozen=True)
class Mismatch:
    """`words` name the subject: what both lines say, in lower case, in the order of the first."""

    words: tuple[str, ...]
    first: Quantity
    second: Quantity


def mismatches(statements: Sequence[Statement], terms: Collection[str] = ()) -> list[Mismatch]:
    """One per subject and pair of values: those with most task words first, then in order of the documents."""
    compared = Comparison(statements)
    chosen: dict[tuple[object, ...], Mismatch] = {}
    for left, right in [*compared.pairs(), *wrong_extremes(compared.found)]:
        shared = (compared.near(left) & compared.near(right)) - weak_words()
        first = left.statement
        words = tuple(
            dict.fromkeys(w.lower() for w in tokens(f"{left.clause} {first.text}") if stem(w, first.language) in shared)
        )
        key = (left.kind, frozenset((str(left.value), str(right.value))))
        chosen.setdefault(key, Mismatch(words, left, right))
    return sorted(
        chosen.values(), key=lambda m: -len({stem(w, m.first.statement.language) for w in m.words} & set(terms))
    )


class Comparison:
    """All figures of a case, and how well the words around any two of them agree."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.found = [q for statement in statements for q in quantities(statement) if q.near]
        spoken = Counter(word for s in statements for word in {*s.stems, *content_stems(s.title, s.language)})
        self._total = max(len(statements) + 1, _FEWEST)
        self._spoken = spoken
        self._known = frozenset(spoken)
        self._near: dict[Quantity, frozenset[str]] = {q: self._with_heads(q.near) for q in self.found}
        self._wide: dict[Quantity, frozenset[str]] = {}
        self._pairs: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._vocabulary: dict[str, set[str]] = defaultdict(set)
        dated: dict[str, Counter[str]] = defaultdict(Counter)
        for s in statements:
            self._pairs[s.path] |= set(_phrases(s, s.text))
            self._vocabulary[s.path] |= set(s.stems)
            dated[s.path].update(_YEAR.findall(f"{s.text} {s.title}"))
        self._year = {path: counted.most_common(1)[0][0] for path, counted in dated.items() if counted}
        self._siblings = Siblings(statements)
        for q in self.found:
            s = q.statement
            around = [
                *s.stems,
                *content_stems(f"{s.section} {s.title} {re.sub(r'[^a-z]+', ' ', s.path.lower())}", s.language),
            ]
            self._wide[q] = self._with_heads(around)

    def near(self, quantity: Quantity) -> frozenset[str]:
        return self._near[quantity]

    def pairs(self) -> list[tuple[Quantity, Quantity]]:
        """Each pair that fits best on both sides and gives two values."""
        holders: dict[str, list[int]] = defaultdict(list)
        for index, quantity in enumerate(self.found):
            for word in sorted(self._near[quantity]):
                holders[word].append(index)
        candidates = {
            (left, right)
            for word, indices in holders.items()
            if len(indices) <= _MAX_HOLDERS
            for i, left in enumerate(indices)
            for right in indices[i + 1 :]
        }
        fits = {
            pair: fit for pair in sorted(candidates) if (fit := self._fit(self.found[pair[0]], self.found[pair[1]])) > 0
        }
        best: dict[int, float] = defaultdict(float)
        agreeing: dict[tuple[int, str], float] = defaultdict(float)
        for (left, right), fit in fits.items():
            best[left], best[right] = max(best[left], fit), max(best[right], fit)
            if _same_value(self.found[left], self.found[right]):
                for one, other in ((left, right), (right, left)):
                    where = (one, self.found[other].statement.path)
                    agreeing[where] = max(agreeing[where], fit)
        told = []
        for (left, right), fit in fits.items():
            a, b = self.found[left], self.found[right]
            confirmed = max(agreeing[left, b.statement.path], agreeing[right, a.statement.path])
            if (
                fit >= _LEAST
                and fit >= _TIED * max(best[left], best[right])
                and fit > confirmed
                and not _same_value(a, b)
                and not _explained(a, b)
                and not self._other_year(a, b)
            ):
                told.append((fit, a, b))
        return [(a, b) for _, a, b in sorted(told, key=lambda entry: -entry[0])]

    def _fit(self, a: Quantity, b: Quantity) -> float:
        """From 0 to about 1.5: the weight of the shared words over that of the words which the shorter side has."""
        left, right = a.statement, b.statement
        one_path = left.path == right.path
        one_table = left.path == right.path and left.kind == right.kind and left.kind in ("row", "data")
        if left.where == right.where or one_table or not _comparable(a, b) or self._siblings.apart(left, right):
            return 0.0
        for row, other in ((a, b), (b, a)):
            if row.statement.kind == "row" and not self._named(row, other):
                return 0.0
        near_a, near_b, wide_a, wide_b = self._near[a], self._near[b], self._wide[a], self._wide[b]
        shared = near_a & near_b
        strong = shared - weak_words()
        half = ((near_a & wide_b) | (wide_a & near_b)) - shared
        alone = len(strong) == 1 and len(shared | half) == 1 and not (a.rate and a.rate == b.rate)
        if not any(map(str.isalpha, strong)) or (alone and not self._rare(strong)):
            return 0.0
        if a.kind == b.kind == "count" and a.noun != b.noun and len(strong) < 2:
            return 0.0
        if self._contrasted(a, b) or (one_path and len(strong) < 2):
            return 0.0
        noun = {a.noun} & {b.noun} - {""}  # counts of one noun: it says as much as any other word
        gained = (
            self._weight(shared)
            + 3 * self._weight(noun & weak_words())
            + 0.6 * self._weight(half)
            + 0.15 * self._weight((wide_a & wide_b) - shared - half)
        )
        possible = min(self._weight(near_a), self._weight(near_b))
        if (a.kind == "date" and len(shared) < 2) or (a.kind == b.kind == "count" and len(shared | half) < 2):
            return 0.0
        single = (
            len(shared) == 1 and not half and "row" not in (left.kind, right.kind) and not (a.rate and a.rate == b.rate)
        )
        heads = {head_of(a)} & {head_of(b)} - {""}
        bonus = _SAME_HEAD if "row" not in (left.kind, right.kind) and heads and self._rare(heads) else 0.0
        return bonus + gained / (possible + 1.0) * (0.75 if single else 1.0) * (0.6 if left.path == right.path else 1.0)

    def _named(self, row: Quantity, other: Quantity) -> bool:
        """The other line holds all that names the row: its ids and dates too, so that no neighbour is taken for it."""
        labels, _ = row_labels(row.statement)
        s = other.statement
        said = self._wide[other] | self._near[other]
        words = frozenset(content_stems(" ".join(labels), row.statement.language)) - weak_words()
        ids = {
            word for label in labels for word in re.findall(r"\b[a-z]+-?\d\w*\b", label.lower()) if not dates_of(label)
        }
        ids |= {clock for label in labels for clock in re.findall(r"\b\d?\d:\d\d", label)}
        dates = [date for label in labels for date in dates_of(label)]
        text = next((part for part in re.split(r"(?<=[.;!?])\s", s.text) if other.shown in part), s.text)
        if any(re.search(rf"\b0?{re.escape(word.removeprefix('0'))}\b", text.lower()) is None for word in ids):
            return False
        if any(not any(_same_date(date, each) for each in dates_of(text)) for date in dates):
            return False
        column = row.statement.header
        if (dates or ids) and column:  # of a measured series: the column is named, too
            heads = set(content_stems(row.clause.rpartition("|")[2], row.statement.language))
            return bool(self._with_heads(heads) & said)
        if s.kind == "row":
            theirs = frozenset(content_stems(" ".join(row_labels(s)[0]), s.language)) - weak_words()
            small, large = sorted((self._with_heads(words), self._with_heads(theirs)), key=len)
            return bool(words and theirs) and small <= large
        missing = {word for word in words if not self._with_heads({word}) & said}
        return bool(words) and (not missing or (len(words - missing) > 1 and missing <= self._vocabulary[s.path]))

    def _contrasted(self, a: Quantity, b: Quantity) -> bool:
        """Told apart: service manual and safety manual, where one document has both."""
        phrases = [set(_phrases(q.statement, q.clause)) for q in (a, b)]
        for (modifier, head), (other, same) in product(*phrases):
            apart = modifier != other and modifier not in self._near[b] and other not in self._near[a]
            if (
                head == same
                and apart
                and any({(modifier, head), (other, head)} <= known for known in self._pairs.values())
            ):
                return True
        return False

    def _other_year(self, a: Quantity, b: Quantity) -> bool:
        """One side names a year, and the other another one, or its document is of another one."""
        named = [set(_YEAR.findall(q.clause)) for q in (a, b)]
        if not any(named) or a.kind == "date":
            return False
        years = [found or {self._year.get(q.statement.path, "")} for found, q in zip(named, (a, b), strict=True)]
        distances = [abs(int(x) - int(y)) for x in years[0] for y in years[1] if x and y]
        return bool(distances) and 0 < min(distances) <= _NEIGHBOURS

    def _rare(self, words: Collection[str]) -> bool:
        return any(self._spoken[word] <= 4 for word in words)

    def _weight(self, words: Collection[str]) -> float:
        weak = weak_words()
        return sum(
            math.log(self._total / (1 + self._spoken[word])) * (0.25 if word in weak else 1.0)
            for word in words
            if self._spoken[word] < self._total / 2
        )

    def _with_heads(self, words: Collection[str]) -> frozenset[str]:
        """The words, and the known word that ends a compound: Jahresbeitrag is a Beitrag, too."""
        heads = {word[i:] for word in words for i in range(3, len(word) - 4) if word[i:] in self._known}
        heads -= weak_words()
        return frozenset(words) | heads


def wrong_extremes(found: Sequence[Quantity]) -> list[tuple[Quantity, Quantity]]:
    """A highest or lowest figure of a text that stands nowhere in the column that it speaks of, beside the one that does."""
    columns: dict[tuple[str, str], list[Quantity]] = defaultdict(list)
    for q in found:
        if q.statement.kind == "row" and isinstance(q.value, float):
            columns[q.statement.path, q.clause.rpartition("|")[2].strip()].append(q)
    told = []
    for q in found:
        extreme = next((name for name in ("high", "low") if _frames()[name].search(q.clause)), "")
        if (
            not extreme
            or q.statement.kind == "row"
            or not isinstance(q.value, float)
            or q.kind not in ("measure", "bare", "count")
        ):
            continue
        for cells in columns.values():
            first = cells[0]
            same = first.unit == q.unit != "" or bool(set(content_stems(first.clause.rpartition("|")[2])) & q.near)
            named = [
                c for c in cells if (ids := _ids(c)) and ids <= set(re.findall(r"[\w-]+", q.statement.text.lower()))
            ]
            values = [c.value for c in cells if isinstance(c.value, float)]
            top = max(named or cells, key=lambda c: c.value if extreme == "high" else -c.value)  # type: ignore[operator]
            decimals = len(q.shown.partition(".")[2].split(" ")[0]) if "." in q.shown else 0
            stands = any(value == q.value or round(value, decimals) == q.value for value in values)
            if same and len(cells) > 3 and not stands and _comparable_values(q, top) and not _explained(q, top):
                told.append((q, top))
    return told


def _ids(row: Quantity) -> set[str]:
    """Names of a row such as W3."""
    return {word for label in row_labels(row.statement)[0] for word in re.findall(r"\b[a-z]+-?\d\w*\b", label.lower())}


class Siblings:
    """Documents of one kind, such as offers: their figures differ by design, and other documents name whose they mean."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        heads: dict[str, list[Statement]] = defaultdict(list)
        texts: dict[str, set[str]] = defaultdict(set)
        for s in statements:
            heads[s.path].append(s)
            texts[s.path] |= set(s.stems)
        kinds = {path: _kind_of(path, " ".join(s.text for s in found[:6])) for path, found in heads.items()}
        counted = Counter(kind for kind in kinds.values() if kind)
        self._kinds = {path: kind for path, kind in kinds.items() if counted[kind] > 1}
        self._names: dict[str, frozenset[str]] = {}
        for path in self._kinds:
            first = heads[path][:3]
            own = {w for s in first for w in s.stems} | set(
                content_stems(f"{first[0].title} {_file_words(path)}", first[0].language)
            )
            others = {
                w
                for other in self._kinds
                if other != path
                for w in texts[other] | set(content_stems(_file_words(other)))
            }
            self._names[path] = frozenset(own - others)

    def apart(self, left: Statement, right: Statement) -> bool:
        """True for two of a kind, and where a line speaks of another one of the kind."""
        if left.path in self._kinds and right.path in self._kinds:
            return left.path != right.path
        for one, other in ((left, right), (right, left)):
            if other.path in self._kinds and one.path not in self._kinds:
                for said in (set(one.stems), set(content_stems(one.section, one.language))):
                    meant = {path for path, names in self._names.items() if names & said or _letter_named(path, one)}
                    if meant:
                        return other.path not in meant
        return False


def _letter_named(path: str, statement: Statement) -> bool:
    """Offer A names offer-a.md."""
    words = _file_words(path).split()
    return (
        len(words) == 2
        and len(words[1]) < 3
        and f"{words[0]} {words[1]}" in f"{statement.text} {statement.section}".lower()
    )


def _file_words(path: str) -> str:
    return re.sub(r"[^a-zäöüß0-9]+", " ", path.rpartition("/")[2].rpartition(".")[0].lower()).strip()


def _kind_of(path: str, opening: str) -> str:
    numbered = re.search(
        r"\b(offer|quotation|quote|estimate|angebot|kostenvoranschlag)\s*(?:no|nr|number|#|[a-z]{0,2}-?\d)",
        opening,
        re.IGNORECASE,
    )
    return "offer" if numbered else re.sub(r"\d+$", "", _file_words(path).split(" ")[0])


def _phrases(statement: Statement, text: str) -> list[tuple[str, str]]:
    """Adjacent words that both say something, as stems."""
    words = re.findall(r"[^\W\d_]+(?:['’‑-][^\W\d_]+)*|[^\w\s]", text)
    return [
        (stem(left, statement.language), stem(right, statement.language))
        for left, right in pairwise(words)
        if is_content(left) and is_content(right) and right[0].isalpha() and left[0].isalpha()
    ]


def _comparable(a: Quantity, b: Quantity) -> bool:
    kinds = {a.kind, b.kind}
    if "bare" in kinds:
        if not kinds <= {"bare", "amount", "measure", "count"}:
            return False
        if "count" in kinds and not {a.noun or b.noun} & (a.near | b.near):
            return False
    elif len(kinds) > 1 or a.unit != b.unit:
        return False
    if (a.rate and b.rate and a.rate != b.rate) or ("every" in (a.rate, b.rate) and a.rate != b.rate):
        return False
    if not _comparable_values(a, b):
        return False
    frames = [{name for name, said in _frames().items() if said.search(q.clause)} for q in (a, b)]
    differ = frozenset[str]().union(*frames) - (frames[0] & frames[1])
    if any({"start", "end"} <= frame for frame in frames):
        differ -= {"start", "end"}  # from start to finish
    if any(q.statement.kind == "row" and dates_of(q.statement.text) for q in (a, b)):
        differ -= {"low", "high", "start", "end"}  # the row of a day, which the other line names
    return not differ or (len(differ) == 1 and differ <= {"net", "gross"})


def _comparable_values(a: Quantity, b: Quantity) -> bool:
    if not isinstance(a.value, float) or not isinstance(b.value, float) or a.value == b.value:
        return True
    low, high = sorted((abs(a.value), abs(b.value)))
    return low > 0 and high / low <= _MAX_RATIO.get(a.kind if a.kind != "bare" else b.kind, 6.0)


def _explained(a: Quantity, b: Quantity) -> bool:
    """A word or a ratio on either side says why the figures differ."""
    if any(
        pattern("patterns", "change").search(q.clause) or pattern("patterns", "about", end=r"\s*$").search(q.before)
        for q in (a, b)
    ):
        return True
    if isinstance(a.value, tuple) or isinstance(b.value, tuple):
        return False
    low, high = sorted((abs(a.value), abs(b.value)))
    if a.kind == "amount" and abs(high / low - round(high / low)) < 0.001:
        return True  # one is a multiple of the other
    taxed = any(pattern("patterns", "tax").search(f"{q.statement.text} {q.clause}") for q in (a, b))
    if taxed and any(abs(high / low / tax - 1) < 0.001 for tax in _TAXES):
        return True
    exact, round_ = sorted((a.value, b.value), key=lambda v: -len(f"{v:.10g}".replace(".", "").strip("0")))
    digits = len(f"{round_:.10g}".replace(".", "").strip("0"))
    return len(f"{exact:.10g}".replace(".", "").strip("0")) > digits + 1 and float(f"{exact:.{digits}g}") == round_


def _same_value(a: Quantity, b: Quantity) -> bool:
    if isinstance(a.value, tuple) and isinstance(b.value, tuple):
        return _same_date(a.value, b.value)
    return a.value == b.value


def _same_date(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return all(x == y or not x or not y for x, y in zip(a, b, strict=True))
