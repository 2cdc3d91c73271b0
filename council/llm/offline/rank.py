"""The order of statements: BM25 against the task, and TextRank biased by it. Deterministic; ties by position."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import content_stems

# TextRank compares pairs; 400 statements are 80,000 of them, about 0.2 s. More would make a turn over 1 MB slow, and
# what BM25 ranks below the 400th place has next to no task words.
MAX_GRAPH = 400
_K1, _B = 1.2, 0.6  # the usual saturation; lengths weigh less than in web search, statements being all short
_AGAIN = 0.6  # what a task word still counts after each statement that covered it
_MAX_SPREAD = 120  # candidates for the spread, which is quadratic; a run quotes a fifth of that
_BYLINE = re.compile(r"(?i)\W*(?:(?:written|prepared|drafted|compiled|edited) by|(?:author|status|date|version)s?:)")
_MIN_WORDS = 4  # below that a statement is a label, not something to quote


Weights = Mapping[str, float]  # stem of a task word -> what a hit counts


def bm25(statements: Sequence[Statement], weights: Weights) -> list[float]:
    """A score per statement, 0 without a task word. Section words count at a third, so that a heading lends context."""
    return [sum(parts.values()) for parts in _parts(statements, weights)]


def best(statements: Sequence[Statement], weights: Weights, *, floor: float = 0.3) -> list[Statement]:
    """Statements worth quoting for the task, near-duplicates removed: the best first, then those that add other words.

    `floor` is the share of the top score below which a statement is left out. Without task words: none.
    """
    scored = zip(statements, _parts(statements, weights), strict=True)
    pool = [(sum(parts.values()), statement, parts) for statement, parts in scored if parts and quotable(statement)]
    pool.sort(key=lambda entry: -entry[0])
    least = floor * pool[0][0] if pool else 0.0
    wanted = 2 if len(weights) > 2 else 1
    # A table row says as much in one word as a sentence does in two.
    kept = [
        entry
        for entry in pool
        if entry[0] >= least and len(set(entry[1].stems) & set(weights)) + (entry[1].kind == "row") >= wanted
    ]
    # Each task word counts less every time it was covered: four questions get four answers.
    left, covered, ordered = kept[:_MAX_SPREAD], Counter[str](), []
    while left:
        gains = [sum(part * _AGAIN ** covered[term] for term, part in parts.items()) for *_, parts in left]
        _, statement, parts = left.pop(max(range(len(left)), key=lambda i: (gains[i], -i)))
        covered.update(parts.keys())
        ordered.append(statement)
    return distinct(ordered)


def _parts(statements: Sequence[Statement], weights: Weights) -> list[dict[str, float]]:
    """For each statement what each task word contributes to its BM25 score."""
    bodies = [Counter(statement.stems) for statement in statements]
    sections = {section: set(content_stems(section)) for section in {s.section for s in statements}}
    seen: Counter[str] = Counter()
    for body in bodies:
        seen.update(term for term in weights if term in body)
    average = sum(map(len, bodies)) / max(1, len(bodies)) or 1.0
    found = []
    for statement, body in zip(statements, bodies, strict=True):
        parts: dict[str, float] = {}
        long = _K1 * (1 - _B + _B * len(body) / average)
        for term, weight in weights.items():
            count = body[term] + (term in sections[statement.section]) / 3
            if count:
                idf = math.log(1 + (len(bodies) - seen[term] + 0.5) / (seen[term] + 0.5))
                parts[term] = weight * idf * count * (_K1 + 1) / (count + long)
        found.append(parts)
    return found


def central(statements: Sequence[Statement], weights: Weights) -> list[Statement]:
    """Statements by TextRank, biased towards the task: those that many others share words with come first."""
    pool = [s for s in statements if quotable(s)]
    scores = bm25(pool, weights)
    order = sorted(range(len(pool)), key=lambda i: -scores[i])[:MAX_GRAPH]
    chosen = sorted(order)
    pool, scores = [pool[i] for i in chosen], [scores[i] for i in chosen]
    # Each statement is linked by the words that it shares, rare ones counting more, over both lengths.
    holders: dict[str, list[int]] = defaultdict(list)
    for index, statement in enumerate(pool):
        for word in sorted(set(statement.stems)):
            holders[word].append(index)
    links: list[dict[int, float]] = [defaultdict(float) for _ in pool]
    for indices in holders.values():
        weight = math.log(1 + len(pool) / len(indices))
        for left in indices:
            for right in indices:
                if left != right:
                    links[left][right] += weight
    lengths = [math.log(2 + len(set(s.stems))) for s in pool]
    for left, row in enumerate(links):
        links[left] = {right: weight / (lengths[left] + lengths[right]) for right, weight in row.items()}
    ranks = _textrank(links, scores)
    return distinct([pool[i] for i in sorted(range(len(pool)), key=lambda i: -ranks[i])])


def quotable(statement: Statement) -> bool:
    """Long enough to mean something alone; questions, lead-ins and bylines are not quoted as evidence."""
    if len(statement.stems) < _MIN_WORDS or statement.text.endswith((":", "?")):
        return False
    return _BYLINE.match(statement.text) is None


def distinct(ordered: Sequence[Statement], *, limit: int = 60) -> list[Statement]:
    """The first `limit` that do not largely repeat an earlier one."""
    chosen: list[Statement] = []
    for statement in ordered:
        words = set(statement.stems)
        if all(len(words & set(c.stems)) / max(1, len(words | set(c.stems))) < 0.6 for c in chosen):
            chosen.append(statement)
        if len(chosen) == limit:
            break
    return chosen


def _textrank(links: Sequence[Mapping[int, float]], scores: Sequence[float]) -> list[float]:
    size, top = len(links), sum(scores)
    if not size:
        return []
    # A third of the restart mass is spread evenly, so that what the task forgot to name can still surface.
    bias = [(1 / 3) / size + (2 / 3) * (score / top if top else 1 / size) for score in scores]
    out = [sum(row.values()) for row in links]
    rank = [1 / size] * size
    for _ in range(25):  # changes are below 1e-3 of a rank after about twenty
        flow = [0.0] * size
        for left, row in enumerate(links):
            share = rank[left] / out[left] if out[left] else 0.0
            for right, weight in row.items():
                flow[right] += share * weight
        rank = [0.3 * bias[i] + 0.7 * flow[i] for i in range(size)]
    return rank
