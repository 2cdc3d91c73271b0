"""`council cortex`: bring the index up to date, ask it, see what it holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from textwrap import indent
from typing import Annotated, Any

import typer

from council.app.model_building import build_embedding_model, embedding_name
from council.app.reading import build_cortex, build_texts
from council.cli.context import AsJson, print_json, print_notes, state
from council.desk.desk import Desk
from council.knowledge.cortex.cortex import SCOPES, Cortex, CortexAnswer, Scope
from council.knowledge.cortex.meaning import Search
from council.knowledge.cortex.shelf import Status
from council.llm.embeddings import Embedder, RetryingEmbedder
from council.places import spelled
from council.safety.untrusted import clean
from council.storage.files import FileLock
from council.storage.paths import ConfinedRoot

app = typer.Typer(no_args_is_help=True)

_PATIENCE_S = 5.0  # for another process that is writing the index; a small change takes it a fraction of that


@app.command()
def index(
    ctx: typer.Context,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild the index instead of reading only changes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index what has changed. A query does this, too; this command saves it the wait."""

    async def embed_all() -> dict[Scope, int]:
        async with _embedder(desk) as embedder:
            if embedder is None:
                return {}
            search = Search(built, embedding_name(desk.settings))
            return {scope: await search.embed(embedder, scope, patience_s=_PATIENCE_S) for scope in SCOPES}

    desk = state(ctx).desk()
    with _cortex(desk) as built:
        done = {
            scope: (built.refresh(scope, rebuild=rebuild, patience_s=_PATIENCE_S), built.status(scope))
            for scope in SCOPES
        }
        embedded = asyncio.run(embed_all())
    if as_json:
        told = {scope: {**asdict(refresh), **_held(status)} for scope, (refresh, status) in done.items()}
        for scope, count in embedded.items():
            told[scope]["embedded"] = count
        print_json(told)
        return
    for scope, (refresh, status) in done.items():
        meanings = f"; {embedded[scope]} embedded now" if scope in embedded else ""
        changes = f"{refresh.added} added, {refresh.changed} changed, {refresh.removed} removed, {refresh.read} read"
        typer.echo(f"{scope:<7} {changes}; {_holds(status)}{meanings}")
    print_notes(*(note for refresh, _ in done.values() for note in refresh.notes))


@app.command()
def query(
    ctx: typer.Context,
    question: Annotated[
        str, typer.Argument(help="What to look for, in words; with `embedding_model` set, meanings count too.")
    ],
    scope: Annotated[Scope, typer.Option(help="The home's files, or the agents' archived memory.")] = "files",
    limit: Annotated[int, typer.Option(min=1, max=50, help="How many passages at most.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Print the passages of the present files that match a question best."""

    async def ask() -> CortexAnswer:
        async with _embedder(desk) as embedder:
            search = Search(built, embedding_name(desk.settings))
            answer, _ = await search.query(
                question, scope=scope, limit=limit, patience_s=_PATIENCE_S, embedder=embedder
            )
        return answer

    desk = state(ctx).desk()
    with _cortex(desk) as built:
        answer = asyncio.run(ask())
    if as_json:
        hits = [asdict(hit) for hit in answer.hits]
        print_json({"question": question, "scope": scope, "hits": hits, "notes": list(answer.notes)})
        return
    blocks = []
    for hit in answer.hits:
        own = "  (the council's own artifact, not a source)" if hit.own_artifact else ""
        under = f"  {hit.heading}" if hit.heading else ""
        head = f"{spelled(hit.path, hit.first_line, hit.last_line)}{own}{under}\n  sha256 {hit.sha256}"
        blocks.append(f"{head}\n\n{indent(clean(hit.quotation), '    ')}")
    typer.echo("\n\n".join(blocks) or "No passage matches.")
    print_notes(*answer.notes)


@app.command()
def status(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Print what the index contains, and how many files have changed since."""
    with _cortex(state(ctx).desk()) as built:
        shown = {scope: built.status(scope) for scope in SCOPES}
        writer = FileLock.holder(built.lock_path)
    if as_json:
        print_json({"writer": writer} | {scope: _held(held) for scope, held in shown.items()})
        return
    for scope, held in shown.items():
        typer.echo(f"{scope:<7} {_holds(held)}")
        typer.echo(
            f"        {held.pending} changed since, refreshed {held.refreshed or 'never'}, {held.index_bytes:,} bytes"
        )
    if writer is not None:
        typer.echo(f"process {writer.get('pid', '?')} is indexing")
    print_notes(*(note for held in shown.values() for note in held.notes))


@contextmanager
def _cortex(desk: Desk) -> Iterator[Cortex]:
    settings = desk.settings
    desk.home.ensure_runtime()
    with ConfinedRoot(desk.home.root) as root:
        yield build_cortex(build_texts(root, settings), settings, desk.keys.redactor, desk.store)


@asynccontextmanager
async def _embedder(desk: Desk) -> AsyncIterator[Embedder | None]:
    """The embedding model that settings name. A person asks: no run, and no budget of one."""
    settings = desk.settings
    if settings.embedding_model is None:
        yield None
        return
    embedder = build_embedding_model(desk.home, settings, desk.keys, settings.embedding_model)
    try:
        yield RetryingEmbedder(embedder, attempts=settings.model_attempts, max_wait_s=settings.max_inline_wait_s)
    finally:
        await embedder.aclose()


def _holds(status: Status) -> str:
    skipped = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in status.skipped.items())
    return f"holds {status.files} files, {status.passages} passages" + (f"; left out: {skipped}" if skipped else "")


def _held(status: Status) -> dict[str, Any]:
    return {key: value for key, value in asdict(status).items() if key != "notes" or value}
