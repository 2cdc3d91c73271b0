"""READ_FILE, LIST_FILES and QUERY_CORTEX: library and Cortex as tools (Protocol 93, section 2)."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from textwrap import indent

import msgspec
from pydantic import Field, JsonValue

from council.deadline import in_a_spare_thread
from council.errors import PathRefused, StorageFailed
from council.knowledge.cortex.chunks import is_rehearsed_artifact
from council.knowledge.cortex.cortex import SCOPES, CortexAnswer, Scope
from council.knowledge.cortex.hybrid_search import Search
from council.knowledge.cortex.index import Hit
from council.knowledge.cortex.selection import of_language_models
from council.knowledge.library import Library, LibraryDocument, better_fix
from council.lines_and_pages import in_words, is_paged, spelled, split_range, unit_of
from council.llm.base import Source
from council.llm.embeddings import CountedEmbedder, EmbeddingCall
from council.tools.tokens import MAX_ARGUMENT_CHARS
from council.tools.tool import NO_MATCH, Arguments, Tool, ToolContext, ToolResult

log = logging.getLogger(__name__)

_MAX_LISTING_CHARS = 16_000
_CORTEX_PATIENCE_S = 10.0  # for another process that writes the index; beyond it, what the index held is the answer
# At the front, `Scope: renewal, what is said of it?` is a question.
_SCOPE = re.compile(
    r",\s*scope\s*[=:]\s*[\"'“”]?(\w+)[\"'“”]?\s*$"
    rf"|^\s*scope\s*[=:]\s*[\"'“”]?({'|'.join(SCOPES)})[\"'“”]?\s*,"
)
_TOLD: dict[str, JsonValue] = {"maxLength": MAX_ARGUMENT_CHARS}  # for models; the paths of a command may be longer
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "`": "`"}


class FilePath(Arguments):
    path: str = Field(
        description="path relative to the home, optionally :first-last, of a PDF :pN-M", json_schema_extra=_TOLD
    )


class FileGlob(Arguments):
    glob: str = Field(description="glob relative to the home, ** crosses folders", json_schema_extra=_TOLD)


class CortexQuestion(Arguments):
    question: str = Field(description="a question, optionally followed by , scope=memory", json_schema_extra=_TOLD)


def read_file(library: Library) -> Tool:
    """`READ_FILE(path)`, `READ_FILE(path:10-40)`, `READ_FILE(path.pdf:p3-5)`. A language model gets the page of a rehearsal
    only as an input, and its title says so."""

    def read(path: str, first: int, last: int | None) -> tuple[LibraryDocument, bool]:
        document = library.read(path, first_line=first, last_line=last)
        top = document if first == 1 or is_paged(path) else library.read(path)
        return document, is_rehearsed_artifact(top.text)

    async def run(arguments: FilePath, /, *, context: ToolContext) -> ToolResult:
        if not context.documents:
            return _no_documents()
        path, first, last = split_range(arguments.path)
        try:
            document, rehearsed = await in_a_spare_thread(read, path, first, last)
        except PathRefused as error:
            if not context.is_input:
                return refused(error)
            fix = await in_a_spare_thread(better_fix, library, path, error)
            return refused(PathRefused(error.message, reason=error.reason, fix=fix))
        if rehearsed and not context.rehearses:
            if not context.is_input:
                reason = f"a rehearsal wrote `{document.path}`; a language model is not given it"
                return ToolResult.refused("rehearsed", reason)
            document = replace(document, note="a rehearsal wrote this page")
        return provided(document)

    return Tool(
        name="READ_FILE",
        description="gives the text of one file of the home, whole or the lines you name, with line numbers; of a PDF, pages",
        arguments=FilePath,
        effect="read",
        spellings=(
            "[ORCHESTRATOR_REQUEST: READ_FILE(path/to/file.md)]",
            "[ORCHESTRATOR_REQUEST: READ_FILE(path/to/file.md:10-40)]",
            "[ORCHESTRATOR_REQUEST: READ_FILE(path/to/file.pdf:p3-5)]",
        ),
        run=run,
    )


def list_files(library: Library) -> Tool:
    """`LIST_FILES(glob)`."""

    async def run(arguments: FileGlob, /, *, context: ToolContext) -> ToolResult:
        if not context.documents:
            return _no_documents()
        glob = arguments.glob.strip() or "**"
        try:
            paths, more = await in_a_spare_thread(library.list, glob)
        except PathRefused as error:
            return refused(error)
        if not paths:
            return ToolResult.refused(NO_MATCH, f"no readable file matches `{glob}`")
        listing = "\n".join(paths)[:_MAX_LISTING_CHARS]
        title = f"{len(paths)} file{'s' if len(paths) != 1 else ''} matching `{glob}`{', and more' if more else ''}"
        return ToolResult(ok=True, title=title, text=listing, sources=())

    return Tool(
        name="LIST_FILES",
        description="lists the readable files of the home that match a glob",
        arguments=FileGlob,
        effect="read",
        spellings=("[ORCHESTRATOR_REQUEST: LIST_FILES(docs/**/*.md)]",),
        run=run,
    )


def query_cortex(search: Search) -> Tool:
    """`QUERY_CORTEX("question", scope=memory)`: memory of the agent's lane, and of its role where the context names one."""
    matches = "words and meanings" if search.model else "words, not meanings: name the things you seek"

    async def run(arguments: CortexQuestion, /, *, context: ToolContext) -> ToolResult:
        question, named = split_question(arguments.question)
        scope: Scope | None = next((known for known in SCOPES if known == named), None)
        if scope is None:
            return ToolResult.refused("no_such_scope", f"there is no scope `{named}`; it is {' or '.join(SCOPES)}")
        if scope == "memory" and not context.memory:
            return ToolResult.refused("withheld", "this agent is given no memory; ask without a scope")
        if scope != "memory" and not context.documents:
            return _no_documents()
        # Whose memory is looked into; empty for files, which are everybody's.
        own = f"{context.lane}/{context.role.lower()}" if context.role else context.lane
        group = own if scope == "memory" else ""
        group = group if context.rehearses else of_language_models(group)
        embedder = None if context.embedder is None else CountedEmbedder(context.embedder)
        try:
            answer = await search.query(
                question, scope=scope, group=group, patience_s=_CORTEX_PATIENCE_S, embedder=embedder
            )
        except StorageFailed as error:  # the index is only a copy of what can be read: no reason to end a run
            result = ToolResult.refused(error.code, str(error))
            return msgspec.structs.replace(result, embeddings=_calls(embedder))
        for note in answer.upkeep:
            log.info("%s", note)  # no part of the evidence: a run that a crash cut off finds what it would have found
        part = "memory" if scope == "memory" else "documents"
        return msgspec.structs.replace(answered(question, answer), part=part, embeddings=_calls(embedder))

    return Tool(
        name="QUERY_CORTEX",
        description=(
            "finds the passages of the home's files that fit a question best, with path, lines and sha256; with "
            f"scope=memory, passages of your own earlier tasks. It matches {matches}"
        ),
        arguments=CortexQuestion,
        effect="read",
        spellings=(
            '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("Find all protocols related to agentic safety")]',
            '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("What did we decide about backups?", scope=memory)]',
        ),
        run=run,
    )


def _no_documents() -> ToolResult:
    return ToolResult.refused("withheld", "this agent is given no documents")


def _calls(embedder: CountedEmbedder | None) -> tuple[EmbeddingCall, ...]:
    return () if embedder is None else tuple(embedder.calls)


def split_question(argument: str) -> tuple[str, str]:
    """`"Why?", scope=memory` → the question without its quotation marks, and the scope, `files` if none is named."""
    match = _SCOPE.search(argument)
    question = (argument[: match.start()] + argument[match.end() :] if match else argument).strip()
    if len(question) >= 2 and _QUOTES.get(question[0]) == question[-1]:
        question = re.sub(r"\\([\"'\\])", r"\1", question[1:-1])
    return question.strip(), (match[1] or match[2]).lower() if match else "files"


def answered(question: str, answer: CortexAnswer) -> ToolResult:
    """The passages as one text. Each has a line `path:first-last sha256 …`, and its quotation below, indented so that no
    quotation can pass for such a line."""
    said = "".join(f"; {note}" for note in answer.notes if note not in answer.upkeep)
    if not answer.hits:
        return ToolResult.refused(NO_MATCH, f"no passage fits “{question}”{said}")
    count = f"{len(answer.hits)} passage{'s' if len(answer.hits) != 1 else ''}"
    places = ", ".join(f"`{place(hit)}`" for hit in answer.hits)
    blocks = []
    for hit in answer.hits:
        own = " [the council's own artifact, not a source]" if hit.own_artifact else ""
        under = f" (under: {hit.heading})" if hit.heading else ""
        blocks.append(f"{place(hit)} sha256 {hit.sha256}{own}{under}\n{indent(hit.quotation, '    ')}")
    return ToolResult(ok=True, title=f"{count} for “{question}”: {places}{said}", text="\n\n".join(blocks) + "\n")


def place(hit: Hit) -> str:
    return spelled(hit.path, hit.first_line, hit.last_line)


def provided(document: LibraryDocument) -> ToolResult:
    title = f"`{document.path}` {span(document)}"
    source = Source("", document.path, document.text, document.first_line, document.sha256)
    return ToolResult(ok=True, title=title, text=document.text, sources=(source,))


def span(document: LibraryDocument) -> str:
    """Says which lines or pages of how many these are, how the text was got, and whether it was cut."""
    if document.total_lines == 0:
        return "(empty file)"
    unit = unit_of(document.path)
    note = f" ({document.note})" if document.note else ""
    how = "the line is too long" if document.cut_in_line else f"ask for the other {unit}s by number"
    cut = f", cut to fit: {how}" if document.cut else ""
    places = in_words(document.path, document.first_line, document.last_line)
    return f"{places} of {document.total_lines}{note}{cut}"


def refused(error: PathRefused) -> ToolResult:
    return ToolResult.refused(error.reason, str(error))
