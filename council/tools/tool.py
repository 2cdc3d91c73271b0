"""A tool: a named function that an agent may ask for, and what it answers. The registry decides who may call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from pydantic import BaseModel, ConfigDict

from council.ids import Principal
from council.llm.base import Source
from council.llm.embeddings import Embedder, EmbeddingCall
from council.tools.preview import Inverse, Preview

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from council.engine.runs import Run

NO_MATCH = "no_match"  # the `error_code` of a search that was done, and found nothing
Effect = Literal["read", "write", "danger"]


class ToolContext(msgspec.Struct, frozen=True):
    """The circumstances in which a tool runs. `memory`, `documents`: the agent may read what it remembers, and the files of the
    home. `rehearses`: no language model hears the answer, so that it may tell of rehearsals. `embedder` is the run's own,
    which its budget pays for. `asker` is the id of the principal for whom the run works. `is_input`: a person named it in
    the command, and can correct that."""

    role: str = ""
    run_id: str = ""
    lane: str = "main"
    round: int = 0
    memory: bool = True
    documents: bool = True
    rehearses: bool = False
    embedder: Embedder | None = None
    asker: str = ""
    is_input: bool = False


class ToolResult(msgspec.Struct, frozen=True):
    """The answer of a tool. With `ok` false, `error_code` is a machine word, `error` one line for the agent.
    `embeddings` are the model calls that it made itself. `inverse` takes back what a write
    tool changed; without one the change cannot be undone. `row_to_conceal`: what plans say of this row is guarded from now on.
    `part` is the part of an agent's context that the text belongs to: `documents` or `memory`."""

    ok: bool
    title: str
    text: str = ""
    sources: tuple[Source, ...] = ()
    error_code: str = ""
    error: str = ""
    embeddings: tuple[EmbeddingCall, ...] = ()
    inverse: Inverse | None = None
    row_to_conceal: str = ""
    part: str = "documents"

    @classmethod
    def refused(cls, code: str, error: str, title: str = "") -> ToolResult:
        return cls(ok=False, title=title, error_code=code, error=error)


class Arguments(BaseModel):
    """The arguments of a tool. One field is spelt `NAME(its text)`, several are spelt as a JSON object."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunTool(Protocol):
    async def __call__(self, arguments: Any, /, *, context: ToolContext) -> ToolResult: ...


class PreviewTool(Protocol):
    """Tells what an operation would do. Changes nothing. Raises CouncilError where the principal may not do it as things
    are: asked at the draft, at the confirmation, and again before the first change."""

    def __call__(self, connection: Connection, principal: Principal, arguments: Any, /) -> Preview: ...


class ApplyTool(Protocol):
    """The change that a person approved, in the writer's transaction. What it raises rolls the whole plan back, and so does
    a result with `ok` false. A draft and a judgement rehearse it, so it changes nothing beside the database."""

    def __call__(self, connection: Connection, principal: Principal, arguments: Any, /) -> ToolResult: ...


class SendTool(Protocol):
    """The effect of a tool outside this house, which no transaction covers: asked once, after all was checked, and never
    again. `state` is that of the preview: what is another request by now is not sent. What it raises was not sent."""

    async def __call__(self, principal: Principal, arguments: Any, state: str, /) -> ToolResult: ...


class DigestTool(Protocol):
    """The work on what came back from a `send`, in steps of the run that sent it. `drafted_by` is the run that drafted the
    plan. Returns the result as its person is told it."""

    async def __call__(
        self, run: Run, drafted_by: str, principal: Principal, arguments: Any, result: ToolResult, /
    ) -> ToolResult: ...


@dataclass(frozen=True)
class Tool:
    """`spellings` are exact requests, shown to agents word for word. A `read` tool has `run`, which turns call; a `write`
    or `danger` tool has `preview` and either `apply` or `send`, which only a plan calls. All get `arguments`, validated.
    With `digest`, the result of `send` is worked on before anybody is told."""

    name: str
    description: str
    arguments: type[Arguments]
    effect: Effect
    spellings: tuple[str, ...]
    run: RunTool | None = None
    apply: ApplyTool | None = None
    preview: PreviewTool | None = None
    send: SendTool | None = None
    digest: DigestTool | None = None
