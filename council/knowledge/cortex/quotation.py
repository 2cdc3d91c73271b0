"""The part of a passage that answers a question best, word for word. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from council.knowledge.cortex.chunks import Chunk
from council.knowledge.library import split_lines
from council.markup import sentence_ends

MAX_QUOTATION_CHARS = 700  # five of them are an eighth of what one request may bring by default, and enough to judge


@dataclass(frozen=True)
class Quotation:
    """`text` stands word for word in lines `first_line` to `last_line`: whole lines, or a part of one long line."""

    first_line: int
    last_line: int
    text: str


def quote(chunk: Chunk, weights: Mapping[str, float], terms: Callable[[str], Iterable[str]]) -> Quotation:
    """The run of lines (of sentences, in a line beyond the limit) that holds most of the weighted terms; the earliest
    of equals. `terms` gives the terms of a text as the index knows them."""
    # Line numbers and texts, in order and without gaps; a line beyond the limit in its sentences, those cut hard.
    pieces: list[tuple[int, str]] = []
    for number, line in enumerate(split_lines(chunk.text), start=chunk.first_line):
        ends = [0, *(sentence_ends(line) if len(line) > MAX_QUOTATION_CHARS else ()), len(line)]
        for part in (line[start:end] for start, end in pairwise(ends)):
            for at in range(0, len(part), MAX_QUOTATION_CHARS):
                pieces.append((number, part[at : at + MAX_QUOTATION_CHARS]))
    held = [weights.keys() & set(terms(text)) for _, text in pieces]
    best, best_weight = (0, 1), -1.0
    for start in range(len(pieces)):
        stop, size = start + 1, len(pieces[start][1])  # the longest run within the limit; at least one piece
        while stop < len(pieces) and size + len(pieces[stop][1]) <= MAX_QUOTATION_CHARS:
            size += len(pieces[stop][1])
            stop += 1
        weight = sum(weights[term] for term in set().union(*held[start:stop]))
        if weight > best_weight + 1e-9:
            best, best_weight = (start, stop), weight
    start, stop = best
    while start < stop - 1 and not pieces[start][1].strip():
        start += 1
    while stop > start + 1 and not pieces[stop - 1][1].strip():
        stop -= 1
    text = "".join(piece for _, piece in pieces[start:stop])
    return Quotation(pieces[start][0], pieces[stop - 1][0], text.rstrip())
