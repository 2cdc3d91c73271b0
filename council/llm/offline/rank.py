"""The order of statements: BM25 against the task. Deterministic; ties by position."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from council.llm.offline.numerals import figures_of
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import content_stems

_K1, _B = 1.2, 0.6  # the usual saturation; lengths weigh less than in web search, statements being all short
_LEAST = 0.3  # the share of the top score below which a statement is left out
_AGAIN = 0.6  # what a task word still counts after each statement that covered it
_MAX_SPREAD = 120  # candidates for the spread, which is quadratic; a run quotes a fifth of that
_BYLINE = re.compile(
    r"(?i)\W*(?:(?:written|prepared|drafted|compiled|edited) by"
    r"|(?:author|status|date|version|from|to|subject|sent|von|an|betreff|datum)s?:)"
)
_BELOW = 3  # the lines below a heading that it speaks for
_MIN_WORDS, _FEWEST_WORDS = 4, 2  # below that a statement is a label, not something to quote


Weights = Mapping[str, float]  # stem of a task word -> what a hit counts


def best(statements: Sequence[Statement], weights: Weights) -> list[Statement]:
    """Statements worth quoting for the task: the best first, then those that add other words; none without task words."""
    read: list[Statement] = []
    below = 0
    for statement in statements:
        below = below + 1 if read and statement.heading == read[-1].heading else 0
        heading = (
            set(content_stems(statement.section, statement.language)) if statement.heading and below < _BELOW else set()
        )
        # The words of a heading are also said by the lines right below it; those of a title only where they are the task.
        speaks = statement.section != statement.title or heading >= set(weights)
        headed = speaks and bool(heading & set(weights) - set(statement.stems))
        read.append(replace(statement, headed=True) if headed else statement)
    scored = zip(read, _parts(read, weights), strict=True)
    hits = [(sum(parts.values()), statement, parts) for statement, parts in scored if parts]
    # A short line does where it has all words of the task, or no long one fits: `The roof costs 8,900 EUR.`
    short = [hit for hit in hits if quotable(hit[1], _FEWEST_WORDS)]
    pool = [hit for hit in short if quotable(hit[1]) or len(hit[2]) == len(weights)] or short
    pool.sort(key=lambda entry: -entry[0])
    least = _LEAST * pool[0][0] if pool else 0.0
    wanted = 2 if len(weights) > 2 else 1
    kept = []
    for score, found, parts in pool:
        # A table row, a label with its figure, or a line with its heading says as much in one word as a sentence does in two.
        label = len(found.stems) <= _FEWEST_WORDS and figures_of(found.text, found.language)
        one = bool(found.kind == "row" or label or found.headed)
        said = parts if found.headed else set(found.stems) & set(weights)
        if score >= least and len(said) + one >= wanted:
            kept.append((score, found, parts))
    # Each task word counts less every time it was covered: four questions get four answers.
    left, covered, ordered = kept[:_MAX_SPREAD], Counter[str](), []
    while left:
        gains = [sum(part * _AGAIN ** covered[term] for term, part in parts.items()) for *_, parts in left]
        _, statement, parts = left.pop(max(range(len(left)), key=lambda i: (gains[i], -i)))
        covered.update(parts.keys())
        ordered.append(statement)
    return distinct(ordered)


def _parts(statements: Sequence[Statement], weights: Weights) -> list[dict[str, float]]:
    """Each task word's share of a statement's BM25 score. Words of its section count at a third."""
    bodies = [Counter(statement.stems) for statement in statements]
    sections = {
        section: set(content_stems(section, spoken))
        for section, spoken in {(s.section, s.language) for s in statements}
    }
    seen: Counter[str] = Counter()
    for body in bodies:
        seen.update(term for term in weights if term in body)
    average = sum(map(len, bodies)) / max(1, len(bodies)) or 1.0
    found = []
    for statement, body in zip(statements, bodies, strict=True):
        parts: dict[str, float] = {}
        # The lines below a heading answer in their order, whatever their length.
        long = _K1 * (1 - _B + _B * (1 if statement.headed else len(body) / average))
        for term, weight in weights.items():
            count = body[term] + (term in sections[statement.section]) / 3
            if count:
                idf = math.log(1 + (len(bodies) - seen[term] + 0.5) / (seen[term] + 0.5))
                parts[term] = weight * idf * count * (_K1 + 1) / (count + long)
        found.append(parts)
    return found


def quotable(statement: Statement, min_words: int = _MIN_WORDS) -> bool:
    """Long enough to mean something alone, where a figure is a word, or to answer a heading; questions, lead-ins and
    bylines are no evidence."""
    missing = 0 if statement.headed else min_words - len(statement.stems)
    if missing > 1 or statement.text.endswith((":", "?")) or _BYLINE.match(statement.text):
        return False
    return missing < 1 or bool(figures_of(statement.text, statement.language))


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
