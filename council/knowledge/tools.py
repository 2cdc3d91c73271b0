"""READ_FILE and LIST_FILES: the library as tools (Protocol 93, section 2)."""

from __future__ import annotations

from council.errors import PathRefused
from council.knowledge.library import Document, Library, split_range
from council.llm.base import Source
from council.tools.base import Tool, ToolContext, ToolResult

_MAX_LISTING_CHARS = 16_000


def read_file(library: Library) -> Tool:
    """`READ_FILE(path)`, `READ_FILE(path:10-40)`."""

    async def run(argument: str, /, *, context: ToolContext) -> ToolResult:
        path, first, last = split_range(argument)
        try:
            document = library.read(path, first_line=first, last_line=last)
        except PathRefused as error:
            return refused(error)
        return provided(document)

    return Tool(
        name="READ_FILE",
        description="gives the content of one file of the home, with line numbers; whole, or the lines you name",
        parameter="path",
        schema={"type": "string", "maxLength": 512, "description": "path relative to the home, optionally :first-last"},
        effect="read",
        spellings=(
            "[ORCHESTRATOR_REQUEST: READ_FILE(path/to/file.md)]",
            "[ORCHESTRATOR_REQUEST: READ_FILE(path/to/file.md:10-40)]",
        ),
        run=run,
    )


def list_files(library: Library) -> Tool:
    """`LIST_FILES(glob)`."""

    async def run(argument: str, /, *, context: ToolContext) -> ToolResult:
        glob = argument.strip() or "**"
        try:
            paths, more = library.list(glob)
        except PathRefused as error:
            return refused(error)
        if not paths:
            return ToolResult(
                ok=False, title="", text="", error_code="no_match", error=f"no readable file matches `{glob}`"
            )
        listing = "\n".join(paths)[:_MAX_LISTING_CHARS]
        title = f"{len(paths)} file{'s' if len(paths) != 1 else ''} matching `{glob}`{', and more' if more else ''}"
        return ToolResult(ok=True, title=title, text=listing, sources=())

    return Tool(
        name="LIST_FILES",
        description="lists the readable files of the home that match a glob",
        parameter="glob",
        schema={"type": "string", "maxLength": 512, "description": "glob relative to the home, ** crosses folders"},
        effect="read",
        spellings=("[ORCHESTRATOR_REQUEST: LIST_FILES(docs/**/*.md)]",),
        run=run,
    )


def provided(document: Document) -> ToolResult:
    """A document as a tool's result."""
    title = f"`{document.path}` {span(document)}"
    source = Source("", document.path, document.text, document.first_line, document.sha256)
    return ToolResult(ok=True, title=title, text=document.text, sources=(source,))


def span(document: Document) -> str:
    """Which lines of how many, and whether the text was cut."""
    if document.total_lines == 0:
        return "(empty file)"
    cut = ", cut to fit: ask for the other lines by number" if document.cut else ""
    return f"lines {document.first_line}-{document.last_line} of {document.total_lines}{cut}"


def refused(error: PathRefused) -> ToolResult:
    return ToolResult(ok=False, title="", text="", error_code=error.reason, error=str(error))
