"""A run as spans: run → agent turn → chat and execute_tool, made from events and from around models and tools.

    invoke_workflow council          an attempt at a run; those of one run share a trace, whose id comes from the run's
      invoke_agent AUDITOR           a turn, or a closing call
        chat gemini-2.5-flash        a call that was made; its retries are events. A recorded step makes none
        execute_tool READ_FILE       what the turn asked for
          embeddings text-embed-3    a call that a search by meaning took

No text of a run is in them unless `content` is on; errors show by their kind. Spans are handed to a bounded queue
(`export`): nothing here waits for anybody.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from council import __version__
from council.budgets.budget import BudgetSpent
from council.errors import ModelError
from council.events import Event, ModelRetry, RunEnd, RunReturn, RunStart, RunWait, SynthesisStart, TurnEnd, TurnStart
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, TurnInfo
from council.llm.embeddings import Embedder, EmbedderAround, Embeddings, Purpose
from council.redaction import Redactor
from council.tools.tool import Arguments, RunTool, Tool, ToolContext, ToolResult

# OpenTelemetry's semantic conventions for GenAI, written out: a package that follows them would rename what dashboards look
# for. What is Council's own begins with `council.`.
_SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"
_OPERATION = "gen_ai.operation.name"
_CONVERSATION_ID = "gen_ai.conversation.id"  # the run's id
_AGENT_NAME = "gen_ai.agent.name"  # the agent's role
_REQUEST_MODEL = "gen_ai.request.model"
_INPUT_TOKENS = "gen_ai.usage.input_tokens"
_ERROR_TYPE = "error.type"
_ROUND = "council.round"
_PROVIDERS = {"gemini": "gcp.gemini"}  # by our own name, where the conventions have another

_WORKFLOW = "council"
_MAX_TEXT_CHARS = 32_000  # of each message; collectors refuse spans of megabytes
_root_run: ContextVar[str] = ContextVar("council_trace_run", default="")


class RunIds(RandomIdGenerator):
    """Trace ids that come from run ids, so that all attempts at a run stand in one trace; span ids by chance."""

    def generate_trace_id(self) -> int:
        run_id = _root_run.get()
        return trace_id_of(run_id) if run_id else super().generate_trace_id()


def trace_id_of(run_id: str) -> int:
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:16], "big")


@dataclass
class _Agent:
    """An agent's span. `ended_ns` is set when its turn is over; what it requested still comes under it."""

    span: Span
    ended_ns: int = 0


@dataclass
class _Run:
    span: Span
    agents: dict[tuple[str, int], _Agent] = field(default_factory=dict)
    closing: _Agent | None = None


class Tracing:
    """The spans of all runs of this process. Everything is called in the loop's thread."""

    def __init__(self, provider: TracerProvider, *, content: bool, redactor: Redactor) -> None:
        self.tracer = provider.get_tracer("council", __version__, schema_url=_SCHEMA_URL)
        self._content = content
        self._redactor = redactor
        self._runs: dict[str, _Run] = {}

    def on_event(self, event: Event) -> None:
        if isinstance(event, RunStart):
            self._end_run(event.run_id, "queued")  # of an attempt whose end nobody told
            token = _root_run.set(event.run_id)
            try:
                span = self.tracer.start_span(
                    f"invoke_workflow {_WORKFLOW}",
                    context=Context(),
                    attributes={
                        _OPERATION: "invoke_workflow",
                        "gen_ai.workflow.name": _WORKFLOW,
                        _CONVERSATION_ID: event.run_id,
                        "council.attempt": event.attempt,
                    },
                )
            finally:
                _root_run.reset(token)
            self._runs[event.run_id] = _Run(span)
        elif isinstance(event, ModelRetry):
            trace.get_current_span().add_event(
                "council.retry",
                {
                    _ERROR_TYPE: event.error_kind,
                    "council.retry.attempt": event.attempt,
                    "council.retry.wait_s": float(event.wait_s),
                },
            )
        elif (run := self._runs.get(event.run_id)) is None:
            return
        elif isinstance(event, TurnStart):
            self._end_agents(run, only_done=True)
            span = self._agent_span(run, event.run_id, event.role, event.round)
            run.agents[event.role, event.round] = _Agent(span)
        elif isinstance(event, TurnEnd):
            if (agent := run.agents.get((event.role, event.round))) is not None:
                agent.ended_ns = time.time_ns()
                if event.failure:
                    _fail(agent.span, "no_answer")
        elif isinstance(event, SynthesisStart):
            self._end_agents(run, only_done=False)
        elif isinstance(event, RunEnd):
            self._end_run(event.run_id, event.status, event.error.code if event.error else "", event.calls)
        elif isinstance(event, RunWait):
            self._end_run(event.run_id, "waiting")
        elif isinstance(event, RunReturn):
            self._end_run(event.run_id, "queued")

    def _end_run(self, run_id: str, status: str, error: str = "", calls: int | None = None) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        self._end_agents(run, only_done=False)
        run.span.set_attribute("council.status", status)
        if calls is not None:
            run.span.set_attribute("council.calls", calls)
        if status == "failed":
            _fail(run.span, error or "failed")
        run.span.end()

    def _agent_span(self, run: _Run, run_id: str, role: str, round_no: int) -> Span:
        return self.tracer.start_span(
            f"invoke_agent {role}",
            context=trace.set_span_in_context(run.span, Context()),
            attributes={
                _OPERATION: "invoke_agent",
                _AGENT_NAME: role,
                _CONVERSATION_ID: run_id,
                _ROUND: round_no,
            },
        )

    def _end_agents(self, run: _Run, *, only_done: bool) -> None:
        """Ends the spans of turns: those that are over, or all."""
        for key, agent in list(run.agents.items()):
            if agent.ended_ns or not only_done:
                agent.span.end(agent.ended_ns or None)
                del run.agents[key]
        if run.closing is not None:
            run.closing.span.end(run.closing.ended_ns or None)
            run.closing = None

    def model(self, run_id: str, inner: Model) -> Model:
        """To be put around the model's retries."""
        return _TracedModel(inner, run_id, self)

    def embedder(self, run_id: str, inner: Embedder) -> Embedder:
        return _TracedEmbedder(inner, run_id, self)

    def tool(self, tool: Tool) -> Tool:
        if tool.run is None:
            return tool

        async def run(arguments: Arguments, /, *, context: ToolContext, inner: RunTool = tool.run) -> ToolResult:
            of_run = self._runs.get(context.run_id)
            agent = of_run.agents.get((context.role, context.round)) if of_run is not None else None
            span = self.tracer.start_span(
                f"execute_tool {tool.name}",
                context=_under(agent.span if agent else of_run.span if of_run else None),
                attributes={
                    _OPERATION: "execute_tool",
                    "gen_ai.tool.name": tool.name,
                    "gen_ai.tool.type": "datastore",
                    _CONVERSATION_ID: context.run_id,
                },
            )
            try:
                with _watched(span):
                    result = await inner(arguments, context=context)
                    if result.error_code:
                        _fail(span, result.error_code)
                    if self._content:
                        asked = self._redactor.in_texts(arguments.model_dump(mode="json"))
                        span.set_attribute("gen_ai.tool.call.arguments", json.dumps(asked))
                        span.set_attribute("gen_ai.tool.call.result", self._text(result.text))
                    return result
            finally:
                if agent is not None:
                    agent.ended_ns = time.time_ns()

        return replace(tool, run=run)

    def start_chat(self, run_id: str, model: str, info: TurnInfo, asked: RequestOptions) -> Span:
        attributes = _asked_of("chat", model, run_id) | {
            "gen_ai.request.max_tokens": asked.get("max_output_tokens"),
            "gen_ai.request.temperature": asked.get("temperature"),
            _AGENT_NAME: info.role or None,
            _ROUND: info.round,
            "council.purpose": info.purpose,
        }
        return self.tracer.start_span(
            f"chat {attributes[_REQUEST_MODEL]}",
            context=_under(self._speaker(run_id, info)),
            kind=SpanKind.CLIENT,
            attributes={key: value for key, value in attributes.items() if value is not None},
        )

    def _speaker(self, run_id: str, info: TurnInfo) -> Span | None:
        """The span of the turn that a call belongs to; a closing call opens its own."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        agent = run.agents.get((info.role, info.round))
        if not info.closes:
            return agent.span if agent is not None else run.span
        if run.closing is None:
            run.closing = _Agent(self._agent_span(run, run_id, info.role, info.round))
        return run.closing.span

    def tell_reply(self, span: Span, system: str, messages: Sequence[Message], reply: Reply) -> None:
        """Adds what came back, and what was said, where the steward switched that on."""
        span.set_attribute("gen_ai.response.model", reply.model.partition(":")[2] or reply.model)
        span.set_attribute("gen_ai.response.finish_reasons", (reply.finish,))
        if reply.usage is not None:
            span.set_attribute(_INPUT_TOKENS, reply.usage.input_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", reply.usage.output_tokens)  # with reasoning
            if reply.usage.cached_tokens:
                span.set_attribute("gen_ai.usage.cache_read.input_tokens", reply.usage.cached_tokens)
            if reply.usage.thought_tokens:
                span.set_attribute("gen_ai.usage.reasoning.output_tokens", reply.usage.thought_tokens)
        if not self._content:
            return
        asked = [
            {"role": "assistant" if m.role == "model" else m.role, "parts": [self._part(m.text)]} for m in messages
        ]
        answer = {"role": "assistant", "parts": [self._part(reply.text)], "finish_reason": reply.finish}
        span.set_attribute("gen_ai.system_instructions", json.dumps([self._part(system)], ensure_ascii=False))
        span.set_attribute("gen_ai.input.messages", json.dumps(asked, ensure_ascii=False))
        span.set_attribute("gen_ai.output.messages", json.dumps([answer], ensure_ascii=False))

    def end_closing(self, run_id: str, error: str) -> None:
        """A closing call is over: the turn that it opened ends now, unless it is repaired."""
        run = self._runs.get(run_id)
        if run is not None and run.closing is not None:
            run.closing.ended_ns = time.time_ns()
            if error:
                _fail(run.closing.span, "no_answer")

    def _part(self, text: str) -> dict[str, str]:
        return {"type": "text", "content": self._text(text)}

    def _text(self, text: str) -> str:
        clean = self._redactor.redact(text)
        return clean if len(clean) <= _MAX_TEXT_CHARS else f"{clean[:_MAX_TEXT_CHARS]}…"

    def close(self) -> None:
        """Ends what is still open: a run that this process leaves goes on in another."""
        for run_id in list(self._runs):
            self._end_run(run_id, "queued")


class _TracedModel(ModelAround):
    """A span around each call that is made; one that the budget refuses is none."""

    def __init__(self, inner: Model, run_id: str, tracing: Tracing) -> None:
        super().__init__(inner)
        self._run_id = run_id
        self._tracing = tracing

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        tracing, info = self._tracing, asked.get("info") or TurnInfo()
        span = tracing.start_chat(self._run_id, self.name, info, asked)
        then = partial(tracing.end_closing, self._run_id) if info.closes else None
        with _watched(span, then):
            reply = await self._inner.generate(messages, **asked)
            tracing.tell_reply(span, asked["system"], messages, reply)
            return reply


class _TracedEmbedder(EmbedderAround):
    def __init__(self, inner: Embedder, run_id: str, tracing: Tracing) -> None:
        super().__init__(inner)
        self._run_id = run_id
        self._tracing = tracing

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        asked = _asked_of("embeddings", self.name, self._run_id)
        if self.dimensions is not None:
            asked["gen_ai.embeddings.dimension.count"] = self.dimensions
        name = f"embeddings {asked[_REQUEST_MODEL]}"
        span = self._tracing.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=asked)  # below the running tool's
        with _watched(span):
            embedded = await self._inner.embed(texts, purpose=purpose)
            if embedded.usage is not None:
                span.set_attribute(_INPUT_TOKENS, embedded.usage.input_tokens)
            return embedded


@contextmanager
def _watched(span: Span, then: Callable[[str], None] | None = None) -> Iterator[None]:
    """Ends the span with the kind of what went wrong inside, which `then` is told of, too; empty when nothing did."""
    error = "cancelled"
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield
        error = ""
    except Exception as failure:
        error = str(getattr(failure, "code", type(failure).__name__))
        if isinstance(failure, ModelError) and error == f"model_{failure.kind}":
            error = failure.kind
        raise
    finally:
        if error:
            _fail(span, error)
        if error != BudgetSpent.code:  # a span that is never ended is never told of
            span.end()
            if then is not None:
                then(error)


def _under(span: Span | None) -> Context:
    return Context() if span is None else trace.set_span_in_context(span, Context())


def _asked_of(operation: str, model: str, run_id: str) -> dict[str, Any]:
    provider, _, model_id = model.partition(":")
    return {
        _OPERATION: operation,
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        _REQUEST_MODEL: model_id or provider,
        _CONVERSATION_ID: run_id,
    }


def _fail(span: Span, error: str) -> None:
    span.set_attribute(_ERROR_TYPE, error)
    span.set_status(Status(StatusCode.ERROR))
