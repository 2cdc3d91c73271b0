"""The subject of one request: the documents as a corpus, the task as terms, and what earlier rounds already showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from council.llm.base import Message, Source, TurnInfo
from council.llm.offline.mismatches import Mismatch, mismatches
from council.llm.offline.rank import best, central
from council.llm.offline.task_files import NamedFile, unread_files
from council.llm.offline.text import Corpus, Statement, read_corpus
from council.llm.offline.vocabulary import missing_words, phrases, task_terms, term_weights, vocabulary


@dataclass(frozen=True)
class Case:
    """`sources` in the order of the messages; `later` are the ids of those read after the deliberation began."""

    info: TurnInfo
    sources: tuple[Source, ...]
    later: frozenset[str]

    @cached_property
    def terms(self) -> dict[str, str]:
        """Stem -> task word as written."""
        return task_terms(self.info.task)

    @cached_property
    def weights(self) -> dict[str, float]:
        return term_weights(self.info.task)

    @cached_property
    def corpus(self) -> Corpus:
        return read_corpus(self.sources)

    @cached_property
    def gaps(self) -> list[str]:
        """Task words, or phrases of them, that neither text, headings nor file names mention."""
        texts = [s.text for s in self.corpus.statements] + [h.text for h in self.corpus.headings]
        mentioned = vocabulary([*texts, *(source.path for source in self.sources)])
        return phrases(missing_words(self.terms, mentioned), self.info.task)

    @cached_property
    def passages(self) -> list[Statement]:
        """Statements closest to the task by BM25, above the threshold."""
        return best(self.corpus.statements, self.weights)

    @cached_property
    def survey(self) -> list[Statement]:
        """Central statements by TextRank, each document's best, then each one's second."""
        ordered = central(self.corpus.statements, self.weights)
        place: dict[str, int] = {}
        ranked = []
        for position, statement in enumerate(ordered):
            place[statement.path] = place.get(statement.path, -1) + 1
            ranked.append((place[statement.path], position, statement))
        return [statement for *_, statement in sorted(ranked, key=lambda entry: entry[:2])]

    @cached_property
    def mismatches(self) -> list[Mismatch]:
        return mismatches(self.corpus.statements, self.terms)

    @cached_property
    def unread(self) -> list[NamedFile]:
        return unread_files(self.corpus, self.info.task)

    @cached_property
    def opening(self) -> Case:
        """The case as it stood when the deliberation began. A request carries no memory of earlier replies, so what
        round 1 showed is worked out again from what round 1 had."""
        first = tuple(source for source in self.sources if source.id not in self.later)
        return replace(self, sources=first, later=frozenset()) if first and self.later else self

    def by_task(self, statements: Sequence[Statement]) -> list[Statement]:
        """Those with more task words first; otherwise in order."""
        return sorted(statements, key=lambda s: -len(set(s.stems) & set(self.terms)))


def build_case(messages: Sequence[Message], info: TurnInfo) -> Case:
    """The first message that carries sources holds the command's documents; later ones what agents asked for."""
    carrying = [message.sources for message in messages if message.sources]
    sources = tuple(dict.fromkeys(source for group in carrying for source in group))
    opening = {source.id for source in carrying[0]} if carrying else set()
    return Case(info, sources, frozenset(source.id for source in sources if source.id not in opening))
