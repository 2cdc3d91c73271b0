"""The subject of one request: the documents as a corpus, the task as terms, and what the checks find."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from council.llm.base import Message, Source, TurnInfo
from council.llm.offline.mismatches import Mismatch, mismatches
from council.llm.offline.rank import best
from council.llm.offline.sums import WrongSum, wrong_sums
from council.llm.offline.text import TO_DO, Corpus, Statement, read_corpus
from council.llm.offline.vocabulary import (
    FOREIGN_TASK_ODDS,
    Language,
    language_of,
    missing_words,
    pattern,
    task_language,
    task_terms,
    term_weights,
)

_MARK = re.compile(
    rf"{TO_DO.pattern}|\?\?\?"
    r"|^\W*(?i:(?:still )?open|unresolved|(?:noch )?offene?)(?i: (?:question|point|issue|item|frage|punkt)\w*)?:\s"
)
_OPEN_SECTION = re.compile(
    r"(?i)^(?:\W|\d)*(?:open|still open|unresolved|to.?do|still to do|offene?|noch (?:zu|offen)|zu klären)\b(?!ing)"
)

_EXTENSIONS = "md|markdown|txt|csv|tsv|json|ya?ml|toml|py|rst|ini|cfg"
# Every repetition is bounded: a long run of one character must not cost quadratic time.
_NAME = re.compile(
    rf"(?<![\w./:@%-])(?:\.{{1,2}}/){{0,5}}[\w.-]{{1,100}}(?:/[\w.-]{{1,100}}){{0,9}}\.(?:{_EXTENSIONS})\b(?![\w/]|\.\w)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<![\w.+-])[a-z][a-z0-9+.-]{0,15}://\S+", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """`sources` in the order of the messages; `later` are the ids of those read after the deliberation began."""

    info: TurnInfo
    sources: tuple[Source, ...]
    later: frozenset[str]

    @cached_property
    def corpus(self) -> Corpus:
        return read_corpus(self.sources, self.language)

    @cached_property
    def language(self) -> Language:
        return task_language(self.info.task)

    @cached_property
    def is_foreign(self) -> bool:
        """True for a task in another language than English and German."""
        return language_of(self.info.task, FOREIGN_TASK_ODDS) is None

    @cached_property
    def terms(self) -> dict[str, str]:
        """Stem -> task word as written."""
        return task_terms(self.info.task, self.language)

    @cached_property
    def gaps(self) -> list[str]:
        """Task words, or phrases of them, that this engine finds in no document that it reads."""
        read = [source for source, language in self.corpus.languages.items() if language is not None]
        return missing_words(
            self.terms, [text for source in read for text in (source.text, source.path)], self.info.task
        )

    @cached_property
    def passages(self) -> list[Statement]:
        return best(self.corpus.statements, term_weights(self.info.task, self.language))

    @cached_property
    def mismatches(self) -> list[Mismatch]:
        return mismatches(self.corpus.statements, self.terms)

    @cached_property
    def wrong_sums(self) -> list[WrongSum]:
        return wrong_sums(self.corpus.statements)

    @cached_property
    def open_items(self) -> list[Statement]:
        return self.by_task(open_items(self.corpus.statements))

    @cached_property
    def unread(self) -> list[TaskFile]:
        return unread_files(self.corpus, self.info.task)

    def by_task(self, statements: Sequence[Statement]) -> list[Statement]:
        return sorted(statements, key=lambda s: -len(set(s.stems) & set(self.terms)))


def build_case(messages: Sequence[Message], info: TurnInfo) -> Case:
    """The first message that carries sources holds the command's documents; later ones what agents asked for."""
    carrying = [message.sources for message in messages if message.sources]
    sources = tuple(dict.fromkeys(source for group in carrying for source in group))
    opening = {source.id for source in carrying[0]} if carrying else set()
    return Case(info, sources, frozenset(source.id for source in sources if source.id not in opening))


def open_items(statements: Iterable[Statement]) -> list[Statement]:
    """Marked as not settled: TODO and its kin, unchecked boxes, "to be decided", items under such a heading."""
    found = []
    for s in statements:
        listed = s.kind == "item" and s.checked is not True and _OPEN_SECTION.search(s.section) is not None
        if (
            s.checked is False
            or listed
            or (s.checked is None and (_MARK.search(s.text) or pattern("patterns", "open").search(s.text)))
        ):
            found.append(s)
    return found


def positions(statements: Iterable[Statement]) -> list[Statement]:
    """Statements in which somebody prefers, recommends, proposes or decides; headings do not count."""
    return [
        s
        for s in statements
        if s.kind in ("prose", "item") and pattern("patterns", "position").search(s.text) and s.checked is None
    ]


@dataclass(frozen=True)
class TaskFile:
    """`path` is relative to the home; `by` is the statement that names it first, None for the task."""

    path: str
    by: Statement | None


def unread_files(corpus: Corpus, task: str) -> list[TaskFile]:
    """Files that the task or a document names and that no source holds, in order; never hidden or outside ones."""
    read = {path for source in corpus.sources for path in (source.path, posixpath.basename(source.path))}
    found: dict[str, TaskFile] = {}
    naming = [(task, "", None), *((said.text, posixpath.dirname(said.path), said) for said in corpus.statements)]
    for text, folder, by in naming:
        for raw in _NAME.findall(_ADDRESS.sub(" ", text)):
            beside = posixpath.normpath(posixpath.join(folder, raw))
            path = raw if "/" in raw and not raw.startswith(".") else beside
            hidden = any(part.startswith(".") for part in path.split("/"))
            if not hidden and not read & {raw, beside}:
                found.setdefault(path, TaskFile(path, by))
    return list(found.values())
