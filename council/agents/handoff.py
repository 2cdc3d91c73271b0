"""`Handoff` and `Return`: the typed messages between agents (source: The Conductor, "Agent Handoff Protocol").
`prepare` enforces the boundaries of a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from council.agents.manifest import AgentManifest, context_for
from council.errors import CouncilError

HandoffType = Literal["sequential", "parallel", "hierarchical", "iterative"]
ReturnStatus = Literal["completed", "partial", "failed", "needs_clarification"]
ForwardKind = Literal["modify_tasks", "notes_ops", "events_ops", "membership_ops"]

MAX_FORWARDS = 3  # of one request, as the source of the workspace's agents has it
_MIN_HIDDEN_CHARS = 4  # shorter values occur in any text by chance


class UnknownHandoff(CouncilError):
    code = "unknown_handoff"
    http_status = 409


class HandoffContext(msgspec.Struct, frozen=True):
    content: dict[str, Any]
    excluded: tuple[str, ...] = ()
    scope: Literal["task"] = "task"


class ExpectedOutput(msgspec.Struct, frozen=True):
    """A `structured` one fits `schema`, the JSON Schema of an object."""

    format: Literal["text", "structured"] = "text"
    schema: dict[str, Any] | None = None


class SafetyTerms(msgspec.Struct, frozen=True):
    """The conductor's laws are always inherited; `additional` rules stand beside them in the prompt."""

    laws: Literal["inherit"] = "inherit"
    additional: tuple[str, ...] = ()


class Handoff(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`shared` names the fields that hold another agent's output. `tools` are those that the agent may use here.
    `parent` is the handoff whose Return asked for this one, empty for one of the conductor."""

    id: str
    from_: str
    to: str
    context: HandoffContext
    type: HandoffType = "sequential"
    expected_output: ExpectedOutput = ExpectedOutput()
    safety: SafetyTerms = SafetyTerms()
    shared: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    parent: str = ""

    @property
    def task(self) -> str:
        return str(self.context.content.get("task", ""))


class Forward(msgspec.Struct, frozen=True):
    """The kind of change that the person wants, in their own words, from an agent that may only read."""

    kind: ForwardKind
    userIntent: str
    projectId: str | None = None


class ChildTask(msgspec.Struct, frozen=True):
    """A part that an agent gives to another one. `fields` are names of its own context that the child needs."""

    to: str
    task: str
    fields: tuple[str, ...] = ()


class ReturnMeta(msgspec.Struct, frozen=True):
    """The agent's judgement of its own work. `certainty` is between 0 and 1, None where it gave none."""

    certainty: float | None = None
    limitations: tuple[str, ...] = ()
    suggested_followup: tuple[str, ...] = ()


class Return(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`output` holds prose under `answer`, and the fields of `expected_output` beside it. `question` is the one of a
    Return that `needs_clarification`. `handoff` are changes for other agents to make, `children` parts for other agents
    to do. `plan` is the id of a draft plan. The conversation does not remember an `ephemeral` answer.
    `formless_reply` missed its form: the person is shown it, and no agent."""

    id: str
    handoff_id: str
    from_: str
    to: str
    status: ReturnStatus = "completed"
    output: dict[str, Any] = {}
    meta: ReturnMeta = ReturnMeta()
    question: str = ""
    error: str = ""
    handoff: tuple[Forward, ...] = ()
    children: tuple[ChildTask, ...] = ()
    plan: str = ""
    ephemeral: bool = False
    formless_reply: str = ""

    @property
    def answer(self) -> str:
        return str(self.output.get("answer", ""))


def answer_to(handoff: Handoff, /, **rest: Any) -> Return:
    return Return(
        id=handoff.id.replace("handoff-", "return-", 1),
        handoff_id=handoff.id,
        from_=handoff.to,
        to=handoff.from_,
        **rest,
    )


def prepare(
    id: str,
    manifest: AgentManifest,
    fields: Mapping[str, Any],
    *,
    type: HandoffType = "sequential",
    shared: Iterable[str] = (),
    tools: Iterable[str] = (),
    parent: Handoff | None = None,
    sender: str = "conductor",
    private: Iterable[tuple[str, Any]] = (),
) -> Handoff:
    """A handoff with what `manifest` may be given of `fields`, and nothing else. A child gets no field and no tool that
    its `parent` had not, beside its own task. A value that is left out is taken out of the words that are given, too.
    So is one of `private`, the personal and financial fields of all parts: other agents may have repeated it. Raises
    MissingContextError."""
    offered = dict(fields)
    allowed = frozenset(tools)
    if parent is not None:
        offered = {name: value for name, value in fields.items() if name == "task" or name in parent.context.content}
        allowed &= frozenset(parent.tools)
    given = context_for(manifest, offered)
    hidden = [(name, value) for name, value in fields.items() if name not in given]
    told = "\n".join(value for value in given.values() if isinstance(value, str))
    allowed_names = context_for(manifest, {**dict(private), **offered})
    hidden += [(name, value) for name, value in private if name not in allowed_names and str(value) in told]
    schema = manifest.output_schema
    return Handoff(
        id=id,
        from_=sender,
        to=manifest.id,
        type=type,
        context=HandoffContext(
            {name: _without(value, hidden, given) for name, value in given.items()},
            tuple(sorted({name for name, _ in hidden})),
        ),
        expected_output=ExpectedOutput("structured" if schema else "text", schema),
        safety=SafetyTerms(additional=manifest.safety),
        shared=tuple(sorted(name for name in frozenset(shared) if name in given)),
        tools=tuple(name for name in manifest.tools if name in allowed),
        parent=parent.id if parent is not None else "",
    )


def _without(value: Any, hidden: Iterable[tuple[str, Any]], given: Mapping[str, Any]) -> Any:
    """The value without the words of hidden fields, unless these are a given field's words as well."""
    if not isinstance(value, str):
        return value
    for name, words in hidden:
        if not isinstance(words, str) or len(words.strip()) < _MIN_HIDDEN_CHARS or words in given.values():
            continue
        value = value.replace(words.strip(), f"[{name}: left out]")
    return value


def require_known(returned: Return, sent: Iterable[Handoff]) -> Handoff:
    for handoff in sent:
        if (handoff.id, handoff.to) == (returned.handoff_id, returned.from_):
            return handoff
    raise UnknownHandoff(
        f"the Return {returned.id} of {returned.from_} answers the handoff {returned.handoff_id!r}, which it was not given.",
        fix="a Directory must answer with the id and the agent of the handoff that it was given",
    )


def forwards_of(returns: Iterable[Return]) -> tuple[Forward, ...]:
    """The changes that Returns ask for, in their order: two of one domain are one, and there are at most three."""
    merged: dict[ForwardKind, Forward] = {}
    for forward in (forward for returned in returns for forward in returned.handoff):
        known = merged.get(forward.kind)
        if known is None:
            merged[forward.kind] = forward
        elif forward.userIntent not in known.userIntent:
            merged[forward.kind] = Forward(
                forward.kind, f"{known.userIntent}\n{forward.userIntent}", known.projectId or forward.projectId
            )
    return tuple(merged.values())[:MAX_FORWARDS]
