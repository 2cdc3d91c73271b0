"""Pairs of lines that give one thing two figures. A score says how probably two figures of one group speak of one thing,
and differ. It goes by the words that both have, by how near the figures are to one another, and by what other figures
could stand in their place. Each figure is told once, with its best partner."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import nlargest
from itertools import combinations, product

from council.llm.offline.mentions import Mention, read_mentions
from council.llm.offline.numerals import Day, exchanged_digits, figures, figures_of
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import content_stems, pattern, stem, tokens, weak_words

# A logistic regression over the pairs of 138 labelled sets that nothing explains: `python -m benchmarks.offline_weights`
# fits it, and tells what it finds in each set with that set left out.
WEIGHTS = {
    "bias": -2.02, "words": 1.86, "only": 5.23, "only all": -1.89, "choice": -0.54,
    "twin": -2.09, "neighbours": 1.44, "one document": -1.92, "days": -1.49, "minutes": -0.86,
    "ratio": -5.70, "ratio of times": 3.74, "misprint": 5.39, "as exact": 1.24,
    "lead": 0.74, "bare": -1.30,
}  # fmt: skip
_BAR = 0.25  # log-odds; with each set left out, 305 of 330 findings are right, and 306 of 575 disagreements found

_FEW, _MANY = 0.2, 3.0  # weight of the words in common: less or more says no more
_SMALL = 20  # figures in a group of which all are compared
_MAX_HOLDERS = 40  # figures around one word; a word around more names nothing, and all pairs would be quadratic
_MAX_PAIRS = 60_000
_BESIDE = 0.3  # a word of that weight stands beside its figure
_FEWEST = 80  # statements: in fewer, every word looks common
_WEAK, _COMPOUND = 0.3, 0.7  # of the weight of a word: a weak one, a part of a compound
_MAX_RATIO = 4.0  # beyond it, two figures of another thing
_ROUNDING = 0.06  # the largest share of a figure that is taken for one
_HEAD = 6  # statements that tell what a document is
_TITLE_CHARS = 80  # a longer one is a paragraph


Features = dict[str, float]  # measure -> how much of it a pair has


@dataclass(frozen=True)
class Mismatch:
    """`words` name the subject: what both lines say, in lower case, in the order of the first."""

    words: tuple[str, ...]
    first: Mention
    second: Mention


def mismatches(statements: Sequence[Statement], terms: Collection[str] = ()) -> list[Mismatch]:
    """One per pair of values: those with most task words first, then the most probable."""
    compared = Comparison(statements)
    chosen: dict[tuple[object, ...], Mismatch] = {}
    for a, b in compared.pairs():
        shared = (a.near.keys() & b.near.keys()) - weak_words()
        texts = tokens(a.clause), tokens(a.statement.text)
        said = [[w.lower() for w in text if stem(w, a.statement.language) in shared] for text in texts]
        words = tuple(dict.fromkeys(said[0] or said[1]))
        chosen.setdefault((a.kind, frozenset((str(a.value), str(b.value)))), Mismatch(words, a, b))
    return sorted(
        chosen.values(), key=lambda m: -len({stem(w, m.first.statement.language) for w in m.words} & set(terms))
    )


class Comparison:
    """The figures of all documents, and for each of them the words that say what it is of, by their rarity."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.mentions = read_mentions(statements)
        self._figures_of = cache(figures_of)  # each line is asked for with each of its partners
        self._spoken = Counter(word for s in statements for word in set(s.stems))
        self._total = max(len(statements) + 1, _FEWEST)
        self._known: dict[str, list[tuple[str, float]]] = {}
        self._near = [self._weigh(m.near) for m in self.mentions]
        self._wide = [self._weigh({**m.around, **m.near}) for m in self.mentions]
        # The different figures of a group: of a document, beside a word of it, and of all groups in a paragraph.
        self._values: dict[tuple[str, ...], set[float | Day]] = defaultdict(set)
        self._paragraphs: dict[tuple[str, int], set[tuple[str, float | Day]]] = defaultdict(set)
        for m, near in zip(self.mentions, self._near, strict=True):
            path = m.statement.path
            self._values[path, m.group].add(m.value)
            for word in near:
                if m.near.get(word, 1.0) >= _BESIDE:
                    self._values[path, m.group, word].add(m.value)
            self._paragraphs[path, m.statement.whole or m.statement.line].add((m.kind, m.value))
        self._parties = _party_names(statements)

    def pairs(self, weights: Mapping[str, float] = WEIGHTS) -> list[tuple[Mention, Mention]]:
        """Those above the bar, the most probable first; each figure stands in one pair at most."""
        told: list[tuple[float, int, int]] = []
        for (i, j), seen in self.features().items():
            score = sum(weights[name] * value for name, value in seen.items())
            if score > _BAR:
                told.append((-score, i, j))
        chosen: set[int] = set()
        found = []
        for _, i, j in sorted(told):
            if not chosen & {i, j}:
                chosen |= {i, j}
                found.append((self.mentions[i], self.mentions[j]))
        return found

    def features(self) -> dict[tuple[int, int], Features]:
        """The measures of each pair of different figures. The weights are fitted to these."""
        common: dict[tuple[int, int], float] = {}
        twins: dict[tuple[int, str], float] = defaultdict(float)  # the words of one that repeats it in another document
        for i, j in self._candidates():
            a, b = self.mentions[i], self.mentions[j]
            words = _overlap(self._near[i], self._near[j])
            if a.statement.path != b.statement.path:
                across = _overlap(self._near[i], self._wide[j]) + _overlap(self._wide[i], self._near[j])
                words = max(words, across / 2)
            if not _same(a.value, b.value):
                common[i, j] = words
                continue
            for one, path in ((i, b.statement.path), (j, a.statement.path)):
                twins[one, path] = max(twins[one, path], words)
        partners: dict[tuple[int, str], list[float]] = defaultdict(list)  # the words of each partner in a document
        for (i, j), words in common.items():
            for one, other in ((i, j), (j, i)):
                partners[one, self.mentions[other].statement.path].append(words)
        best = {key: nlargest(2, [*words, 0.0]) for key, words in partners.items()}
        found = {}
        for (i, j), words in common.items():
            a, b = self.mentions[i], self.mentions[j]
            if not self._explained(a, b):
                sides = (i, b.statement.path), (j, a.statement.path)
                twin = max(twins[side] for side in sides)
                rival = max(best[side][words >= best[side][0]] for side in sides)
                found[i, j] = self._measured(i, j, words, twin) | {"lead": words - rival}
        return found

    def _measured(self, i: int, j: int, words: float, twin: float) -> Features:
        a, b = self.mentions[i], self.mentions[j]
        left, right = a.statement, b.statement
        apart = left.path != right.path
        only = [
            math.sqrt(self._near[i][word] * self._near[j][word]) / self._choices(a, b, word)
            for word in self._near[i].keys() & self._near[j].keys() - weak_words()
        ]
        return {
            "bias": 1.0,
            "words": min(words, _MANY),
            "only": max(only, default=0.0),
            "only all": min(sum(only), 2.0),
            "choice": math.log(len(self._values[left.path, a.group]) * len(self._values[right.path, b.group])),
            "twin": min(twin / max(words, _FEW), 3.0),
            "neighbours": min(self._neighbours(a, b), 2.0) if apart else 0.0,
            "one document": float(not apart),
            "bare": float("bare" in (a.kind, b.kind)),
            **_closeness(a, b),
        }

    def _choices(self, a: Mention, b: Mention, word: str) -> int:
        """Of how many pairs of figures around a word this is one."""
        held = [self._values[m.statement.path, m.group, word] | {m.value} for m in (a, b)]
        return len(held[0]) * len(held[1]) if a.statement.path != b.statement.path else len(held[0] | held[1]) - 1

    def _neighbours(self, a: Mention, b: Mention) -> int:
        """Other figures that both paragraphs give, or both lines where one is a row."""
        left, right = a.statement, b.statement
        if "row" in (left.kind, right.kind):
            both = self._figures_of(left.text, left.language) & self._figures_of(right.text, right.language)
            return len({value for value in both - {a.value, b.value} if isinstance(value, tuple) or value >= 10})
        here, there = (self._paragraphs[s.path, s.whole or s.line] for s in (left, right))
        return len({value for _, value in here & there} - {a.value, b.value})

    def _explained(self, a: Mention, b: Mention) -> bool:
        """Recognises another year, month or room, a plan or a rounding, another size, and a line that has both figures."""
        if a.about or b.about or a.planned != b.planned:
            return True
        if any(x and y and not x & y for x, y in zip(a.members, b.members, strict=True)):
            return True
        if isinstance(a.value, float) and isinstance(b.value, float) and a.kind != "clock":
            low, high = sorted((abs(a.value), abs(b.value)))
            if not low or high / low > _MAX_RATIO or (a.kind == "measure" and _rounded(a.value, b.value)):
                return True
        pairs = ((a, b.statement), (b, a.statement))
        return any(m.value in self._figures_of(s.text, s.language) for m, s in pairs)

    def _candidates(self) -> Iterator[tuple[int, int]]:
        """Two of one group that share a word, the rarest first, and all of a small group."""
        beside: dict[tuple[str, bool], list[int]] = defaultdict(list)
        around: dict[tuple[str, bool], list[int]] = defaultdict(list)
        groups: dict[str, list[int]] = defaultdict(list)
        together: set[tuple[int, int]] = set()
        for index, m in enumerate(self.mentions):
            if m.kind not in ("count", "bare"):
                groups[m.group].append(index)
            for word in self._wide[index]:
                (beside if word in self._near[index] else around)[word, m.kind in ("date", "clock")].append(index)
        for few in groups.values():
            together.update(combinations(few, 2) if len(few) <= _SMALL else ())
        for key, held in sorted(beside.items(), key=lambda entry: (len(entry[1]), entry[0])):
            if len(held) > _MAX_HOLDERS or len(together) > _MAX_PAIRS:
                break
            together.update(combinations(held, 2))
            together.update((min(pair), max(pair)) for pair in product(held, around[key][:_MAX_HOLDERS]))
        return ((i, j) for i, j in sorted(together) if self._comparable(self.mentions[i], self.mentions[j]))

    def _comparable(self, a: Mention, b: Mention) -> bool:
        """Two figures of one group in different documents, or sections; an author sees what stands together."""
        left, right = a.statement, b.statement
        if left.path == right.path:
            if left.section == right.section or left.kind == right.kind == "row":
                return False
        elif (series := series_of(left.path)) and series == series_of(right.path):
            return False
        if (a.rate and b.rate and a.rate != b.rate) or not (self._of(left, right) and self._of(right, left)):
            return False
        kinds = {a.kind, b.kind}
        if kinds == {"bare", "count"} and any(re.search(r"[.,]\d\d$", m.shown) for m in (a, b)):
            return False  # a price, and a number of things
        return a.group == b.group or ("bare" in kinds and not kinds & {"date", "clock"})

    def _of(self, said: Statement, party: Statement) -> bool:
        """False for a line of another party than that of the second one's document, or that names another one."""
        if party.path not in self._parties or said.path == party.path:
            return True
        spoken = {*said.stems, *content_stems(said.section, said.language)}
        named = {path for path, names in self._parties.items() if names & spoken}
        return said.path not in self._parties and (not named or party.path in named)

    def _weigh(self, words: Mapping[str, float]) -> dict[str, float]:
        """Each word by its rarity, from 0 to 1, and the known words that begin or end it: Jahresbeitrag is a Beitrag, too."""
        weighed: dict[str, float] = {}
        for word, weight in words.items():
            if word not in self._known:
                parts = {word[cut:] for cut in range(3, len(word) - 4)} | {
                    word[:cut] for cut in range(5, len(word) - 2)
                }
                shares = [(word, 1.0), *((part, _COMPOUND) for part in sorted(parts) if part in self._spoken)]
                known = self._known[word] = []
                for each, share in shares:
                    spoken = self._total / (1 + max(1, self._spoken[each]))
                    rare = math.log(spoken) / math.log(self._total / 2) * (_WEAK if each in weak_words() else 1.0)
                    known += [(each, share * rare)] if rare > 0 else []
            for part, share in self._known[word]:
                weighed[part] = max(weighed.get(part, 0.0), weight * share)
        return weighed


def series_of(path: str) -> str:
    """The path without its numbers, which documents of one series share: the minutes of 2024, and those of 2025. Empty for
    `1.md`, which beside `2.md` is any document."""
    has_name = re.search(r"[^\W\d_]", path.rpartition("/")[2].rpartition(".")[0])
    return re.sub(r"\d+", "#", path) if has_name else ""


def _overlap(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    return sum(math.sqrt(left[word] * right[word]) for word in left.keys() & right.keys())


def _closeness(a: Mention, b: Mention) -> Features:
    """The distance of two figures, by kind, and whether one could be a misprint of the other."""
    if isinstance(a.value, tuple) and isinstance(b.value, tuple):
        days = abs(30 * (a.value[1] - b.value[1]) + (a.value[2] - b.value[2] if a.value[2] and b.value[2] else 0))
        other_year = 0 not in (a.value[0], b.value[0]) and a.value[0] != b.value[0] and days > 0
        return {"days": math.log1p(min(days, abs(365 - days)) / 7) + other_year}
    if isinstance(a.value, tuple) or isinstance(b.value, tuple):
        return {}
    if a.kind == "clock":
        return {"minutes": math.log1p(abs(a.value - b.value) / 15)}
    ratio = abs(math.log(a.value / b.value)) if a.value * b.value > 0 else 2.0
    shown = [re.sub(r"\D", "", m.shown) for m in (a, b)]
    turned = len(shown[0]) == 2 and shown[0] == shown[1][::-1]
    scales = (1, 60, 1440) if a.timed else (1,)  # durations are in minutes, and written in hours or days
    exchanged = max(exchanged_digits(a.value / scale, b.value / scale) for scale in scales)
    return {
        "ratio": min(ratio, 2.0),
        "ratio of times": min(ratio, 2.0) if a.timed else 0.0,
        "misprint": max(min(exchanged, 5), 2 * turned) / 3,
        "as exact": float(_digits(a.value) == _digits(b.value)),
    }


def _rounded(a: float, b: float) -> bool:
    """Recognises a measure that is another one with fewer digits: 2 GB and 1.9 GB. 1,000 kg are no rounding of 1,200 kg."""
    few, many = sorted((a, b), key=_digits)
    is_near = math.isclose(few, many, rel_tol=_ROUNDING)
    return is_near and _digits(few) < _digits(many) and float(f"{many:.{_digits(few)}g}") == few


def _digits(value: float) -> int:
    return len(f"{value:.10g}".replace(".", "").strip("0"))


def _same(a: float | Day, b: float | Day) -> bool:
    """Two spellings of one figure, or two dates that do not exclude one another."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return all(x == y or not x or not y for x, y in zip(a, b, strict=True))
    return a == b


def _party_names(statements: Sequence[Statement]) -> dict[str, frozenset[str]]:
    """The documents that answer one question each for a party of its own, such as offers: so named, or numbered at the
    top. With each, the words of its title and file that no other of them has."""
    documents: dict[str, list[Statement]] = defaultdict(list)
    for s in statements:
        documents[s.path].append(s)
    rival = pattern("patterns", "rival")
    # An offer of 15,900 EUR, of 12 weeks or of 15,900 is no offer 15.
    numbered = pattern(
        "patterns", "rival", end=r"\s*(?:(?:no|nr|number)\b\W{0,3}\S{0,9}?\d|#|[A-Z]{0,3}-?\d++(?![.,]\d))"
    )
    heads, spoken = {}, {}
    for path, found in documents.items():
        head = f"{re.sub('[^a-zäöüß]+', ' ', path.rpartition('/')[2].lower())} {found[0].title}"[:_TITLE_CHARS]
        top = " ".join(s.text for s in found[:_HEAD])
        counts = figures().sub(lambda match: match.group() if match.lastgroup == "count" else " ", top)
        if rival.search(head) or numbered.search(counts):
            heads[path] = content_stems(head, found[0].language)
            spoken[path] = {word for s in found for word in s.stems}.union(heads[path])
    return {
        path: frozenset(head).difference(*(each for other, each in spoken.items() if other != path))
        for path, head in heads.items()
    }
