"""The engine: tantivy, imported when an index is opened. Knows documents, terms and scores; neither files nor rules.

Nothing of a passage is stored but its path and first line: a quotation is always read from the file itself.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council.knowledge.cortex.chunks import Chunk
from council.markup import normalised

if TYPE_CHECKING:
    import tantivy

MAX_TERMS = 48  # of one question: beyond that it is a document, and each term costs time
_MAX_TERM_BYTES = 80
_HANDFUL = 5
_ANALYZER = "council"
# Heading and path say what a passage is about in fewer words than its body. Guesses in the usual range, not tuned.
_BOOSTS = {"body": 1.0, "heading": 1.6, "path_words": 1.2}
_HEAP_BYTES = 64_000_000
# The engine's bookkeeping, which may differ without harm: a killed writer leaves names of files in it.
_UNCHECKED = (".managed.json", ".tantivy-writer.lock", ".tantivy-meta.lock")


class IndexBroken(Exception):
    """The index cannot be opened, read or written; built anew it may."""


class TantivyIndex:
    """One index in one folder. Readers need no lock; the caller sees to it that there is one writer."""

    def __init__(self, folder: Path) -> None:
        """Opens it, or makes an empty one. Raises IndexBroken."""
        import tantivy

        self._tantivy = tantivy
        with _broken("open"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._schema = _schema(tantivy)
            self._index = tantivy.Index(self._schema, path=str(folder))
            self._analyzer = _analyzer(tantivy)
            self._question_analyzer = _analyzer(tantivy, stop_words=STOP_WORDS)
            self._index.register_tokenizer(_ANALYZER, self._analyzer)
            self._searcher = self._index.searcher()

    def terms(self, text: str) -> list[str]:
        """The words of a text as the index knows them: folded, stemmed, in order, with repetitions."""
        return self._analyzer.analyze(searchable(text))

    def question_terms(self, question: str) -> list[str]:
        """Finds at most MAX_TERMS different terms; stop words only where there is nothing else."""
        text = searchable(question)
        terms = self._question_analyzer.analyze(text) or self._analyzer.analyze(text)
        return [term for term, _ in Counter(terms).most_common(MAX_TERMS)]

    def weights(self, terms: Sequence[str]) -> dict[str, float]:
        """The weight of each term: the rarer, the heavier."""
        with _broken("search"):
            total = self._searcher.num_docs
            return {term: math.log(1 + (total + 1) / (1 + self._searcher.doc_freq("body", term))) for term in terms}

    def is_common(self, term: str) -> bool:
        """Tells whether more than one passage in a hundred holds the term, and more than a handful."""
        with _broken("search"):
            count: int = self._searcher.doc_freq("body", term)
            return count > max(_HANDFUL, self._searcher.num_docs / 100)

    def search(self, terms: Sequence[str], *, group: str, limit: int) -> list[tuple[float, str, int]]:
        """The best passages with score, path and first line; with `group`, only those of it. Raises IndexBroken."""
        tv = self._tantivy
        clauses: list[tuple[tantivy.Occur, tantivy.Query]] = []
        with _broken("search"):
            for term in terms:
                for field, boost in _BOOSTS.items():
                    query = tv.Query.term_query(self._schema, field, term, "freq")
                    clauses.append((tv.Occur.Should, tv.Query.boost_query(query, boost)))
            query = tv.Query.boolean_query(clauses)
            if group:
                member = tv.Query.const_score_query(tv.Query.term_query(self._schema, "group", group, "basic"), 0.0)
                query = tv.Query.boolean_query([(tv.Occur.Must, member), (tv.Occur.Must, query)])
            found = self._searcher.search(query, limit=limit, count=False).hits
            documents = [(score, self._searcher.doc(address)) for score, address in found]
            return [
                (score, str(doc.get_first("path") or ""), int(doc.get_first("first_line") or 1))
                for score, doc in documents
            ]

    @contextmanager
    def writing(self) -> Iterator[Batch]:
        """Changes that become visible together when the block ends, or not at all. Raises IndexBroken."""
        with _broken("write"):
            # One thread: with more, a small batch costs a segment for each.
            writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        batch = Batch(self._tantivy, writer, self._schema)
        try:
            yield batch
            if batch.changed:
                with _broken("commit"):
                    writer.commit()
        finally:
            with _broken("finish"):
                writer.wait_merging_threads()  # also gives the engine's own lock back
        with _broken("reload"):
            self._index.reload()
            self._searcher = self._index.searcher()


class Batch:
    """The changes of one commit."""

    def __init__(self, tantivy_module: Any, writer: tantivy.IndexWriter, schema: tantivy.Schema) -> None:
        self._tantivy = tantivy_module
        self._writer = writer
        self._schema = schema
        self.changed = False

    def remove(self, path: str) -> None:
        with _broken("write"):
            self._writer.delete_documents_by_term("path", path)
        self.changed = True

    def add(self, path: str, chunks: Sequence[Chunk], groups: Sequence[str], *, by_body: bool = False) -> None:
        """`by_body`: nothing but what the passages say counts, not what stands above them."""
        with _broken("write"):
            for chunk in chunks:
                document = self._tantivy.Document()
                document.add_text("path", path)
                if not by_body:
                    document.add_text("path_words", searchable(path))
                    document.add_text("heading", searchable(chunk.heading))
                document.add_text("body", searchable(chunk.text))
                document.add_integer("first_line", chunk.first_line)
                for group in groups:
                    document.add_text("group", group)
                self._writer.add_document(document)
        self.changed = self.changed or bool(chunks)


def checksums(folder: Path, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """SHA-256 of each file of the index; empty without a folder. Of `known` files it is taken over: but for `meta.json`,
    the engine never writes to a name twice. Raises OSError."""
    if not folder.is_dir():
        return {}
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name in _UNCHECKED or not path.is_file():
            continue
        if known and path.name in known and path.name != "meta.json":
            found[path.name] = known[path.name]
        else:
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _schema(tv: Any) -> tantivy.Schema:
    builder = tv.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("group", tokenizer_name="raw", index_option="basic")
    for field in _BOOSTS:
        builder.add_text_field(field, tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_integer_field("first_line", stored=True)  # signed: the unsigned field trips over a plain int
    schema: tantivy.Schema = builder.build()
    return schema


def _analyzer(tv: Any, stop_words: list[str] | None = None) -> tantivy.TextAnalyzer:
    builder = tv.TextAnalyzerBuilder(tv.Tokenizer.simple()).filter(tv.Filter.remove_long(_MAX_TERM_BYTES))
    builder = builder.filter(tv.Filter.lowercase()).filter(tv.Filter.ascii_fold())
    if stop_words:
        builder = builder.filter(tv.Filter.custom_stopword(stop_words))
    analyzer: tantivy.TextAnalyzer = builder.filter(tv.Filter.stemmer("english")).build()
    return analyzer


@contextmanager
def _broken(what: str) -> Iterator[None]:
    """Whatever the engine raises becomes IndexBroken; a Rust panic is no `Exception`, so it is known by its name."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, LookupError, TypeError) as error:
        raise IndexBroken(f"{what}: {error}"[:300]) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise IndexBroken(f"{what}: the engine gave up") from error
        raise


_WORD = re.compile(r"[A-Za-z0-9]+")  # each character is looked at once: a line of base64 may be a million of them
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_IDENTIFIER_CHARS = 80
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]{2,}")

# Left out of questions, not of documents: they cost time and say nothing.
_STOP_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my "
    "no not of on or our should so such that the their then there these they this to us was we were what when where "
    "which who whom whose why will with would you your"
)
STOP_WORDS: list[str] = re.findall(r"[a-z]+", _STOP_WORDS)


def searchable(text: str) -> str:
    """`text` in one normal form, followed by the words that stand inside its words: `ConfinedRoot` also as `Confined
    Root`, `日本語` also as `日本 本語`."""
    normal = normalised(text)
    extra: list[str] = []
    for word in _WORD.findall(normal):
        if len(word) <= _MAX_IDENTIFIER_CHARS and _HUMP.search(word):
            extra += _CAMEL_PART.findall(word)
    for match in _UNSPACED.finditer(normal):
        extra += [match[0][index : index + 2] for index in range(len(match[0]) - 1)]
    return f"{normal}\n{' '.join(extra)}" if extra else normal
