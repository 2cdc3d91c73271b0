"""A run without a home and without a process: a store in memory, a model that reads a script, a shelf of texts for a tool."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from council.engine.journal import Journal, admit, load_journal
from council.engine.outputs import PlacedOutput
from council.engine.records import EPOCH, FileIdentity, RunHeader
from council.engine.runs import ActiveRun
from council.events import Event, Events
from council.ids import sha256_hex
from council.knowledge.tools import FilePath
from council.llm.base import Message, Model, ModelAround, Reply, Source, ToolCall, TurnInfo
from council.llm.scripted import Script, ScriptedModel
from council.storage.store import Store
from council.tools.registry import ToolRegistry
from council.tools.tool import Tool, ToolContext, ToolResult
from council.turns.equipment import Equipment, RequestLimits, Speaker

RUN_ID = "20260101-000000-rehearsal"
MODEL = "scripted:script"
TASK = "Choose a storage engine."
TRIAD = ("COORDINATOR", "STRATEGIST", "AUDITOR")


@dataclass(frozen=True)
class Heard:
    """One call as the model heard it."""

    info: TurnInfo
    system: str
    messages: tuple[Message, ...]
    options: Mapping[str, Any]

    @property
    def text(self) -> str:
        return "\n\n".join(message.text for message in self.messages)


class ListeningModel(ModelAround):
    """Says what its script says, and remembers what it was asked. `before` may raise in place of an answer."""

    def __init__(self, script: Mapping[str, Any], before: Callable[[TurnInfo], None] = lambda info: None) -> None:
        super().__init__(ScriptedModel(Script.model_validate(script)))
        self.heard: list[Heard] = []
        self._before = before
        self.calls: tuple[ToolCall, ...] = ()

    async def generate(self, messages: Sequence[Message], **options: Any) -> Reply:
        info = options["info"]
        self.heard.append(Heard(info, options["system"], tuple(messages), options))
        self._before(info)
        reply = await self._inner.generate(messages, **options)
        finish = "tool_calls" if self.calls else reply.finish
        return Reply(reply.text, finish, reply.model, reply.usage, self.calls)


def says(*replies: Mapping[str, Any] | str, default: str | None = None, **keys: Any) -> ListeningModel:
    """A model with these replies in their order; a text alone is a reply to whatever comes next."""
    entries = [{"text": reply} if isinstance(reply, str) else dict(reply) for reply in replies]
    return ListeningModel({"replies": entries, **({"default": {"text": default}} if default else {})}, **keys)


@dataclass
class Shelf:
    """The texts that READ_FILE finds, and how often it looked."""

    texts: Mapping[str, str] = field(default_factory=dict)
    looks: list[str] = field(default_factory=list)

    async def read(self, arguments: FilePath, /, *, context: ToolContext) -> ToolResult:
        argument = arguments.path
        self.looks.append(argument)
        if argument not in self.texts:
            error = f"`{argument}` is not there."
            return ToolResult(ok=False, title=argument, error_code="not_found", error=error)
        text = self.texts[argument]
        source = Source(argument, argument, text, 1, sha256_hex(text))
        return ToolResult(ok=True, title=f"`{argument}`", text=text, sources=(source,))

    def registry(self) -> ToolRegistry:
        spelling = "[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]"
        return ToolRegistry([Tool("READ_FILE", "reads a file", FilePath, "read", (spelling,), self.read)])


def equipment(model: Model | None = None, texts: Mapping[str, str] | None = None, **keys: Any) -> Equipment:
    """The means of a run whose agents all speak by `model`."""
    options: dict[str, Any] = {
        "model_of": lambda speaker: model,
        "tools": Shelf(texts or {}).registry(),
        "limits": RequestLimits(10, 40, 100_000),
        "seconds_to_midnight": lambda: 3_600.0,
        "window_chars": lambda: 0,
        "redact": str,
    }
    return Equipment(**{**options, **keys})


def speaker(role: str = "AUDITOR", **keys: Any) -> Speaker:
    return Speaker(**{"role": role, "system": f"You are {role}.", "memory": "", "tools": ("READ_FILE",),
                      "models": (MODEL,), "model": MODEL, **keys})  # fmt: skip


@dataclass
class Rehearsal:
    """One run in a store of its own. `resumed` is the same run as a later process would find it."""

    store: Store
    command: dict[str, Any] = field(default_factory=dict)
    secret: str = "07" * 32
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        file = FileIdentity("command.json", 1, 1, "ab" * 32)
        self.header = RunHeader(
            RUN_ID, EPOCH, "2026-01-01T00:00:00Z", "main", "deliberate", self.command, "h", file, self.secret,
            "artifacts/out.md", "Storage",
        )  # fmt: skip
        self.store.write_now(lambda tx: admit(tx, self.header))
        self.run = self.resumed()

    def resumed(self, *, ended: bool = False) -> ActiveRun:
        """`ended`: what is not recorded is not asked any more."""
        self.store.write_now(lambda tx: None)  # with it goes what was put off
        journal: Journal = self.store.read(lambda tx: load_journal(tx, RUN_ID, self.store))
        journal.closed = ended
        events = Events()
        events.subscribe(self.events.append)
        return ActiveRun(journal, events, PlacedOutput(self.header, None))

    def steps(self) -> list[str]:
        return [step.name for step in self.resumed().journal.steps()]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@contextlib.contextmanager
def rehearsal(**keys: Any) -> Iterator[Rehearsal]:
    with contextlib.closing(Store.memory()) as store:
        yield Rehearsal(store, **keys)
