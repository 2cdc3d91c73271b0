"""The one seam to a language model: `Model.generate(messages, …) -> Reply`. A request is stateless: it carries
everything, so a restart costs no call. Failures are `ModelError` with one of the kinds in `council.errors`."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Required, TypedDict, Unpack

import msgspec

from council.ids import canonical_json, sha256_hex

Finish = Literal["stop", "length", "tool_calls"]


class Source(msgspec.Struct, frozen=True):
    """A piece of outside text that a message carries, with where it came from; `first_line` counts from 1."""

    id: str
    path: str
    text: str
    first_line: int = 1
    sha256: str = ""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """`sources` repeats, typed, the outside text in `text`, for engines that are no language models. `sha256` is that
    of `text`."""

    role: Literal["user", "model"]
    text: str
    sources: tuple[Source, ...] = ()
    sha256: str = ""


class ToolSpec(msgspec.Struct, frozen=True):
    """`parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolCall(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any]
    id: str = ""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one call. `output_tokens` includes thinking; `cached_tokens` is the cached part of the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(operator.add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class AbsentModel(msgspec.Struct, frozen=True):
    model: str
    kind: str
    message: str


class Reply(msgspec.Struct, frozen=True):
    """`usage` None: the provider did not count. `replaced`: those in whose place `model` answered."""

    text: str
    finish: Finish
    model: str
    usage: Usage | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    replaced: tuple[AbsentModel, ...] = ()


OnText = Callable[[str], None]  # gets a reply as it comes, thoughts aloud included


class Restartable(ABC):
    """A listener that can take back what it heard: another attempt begins from the start."""

    @abstractmethod
    def restart(self) -> None: ...


def restart(on_text: OnText | None) -> None:
    if isinstance(on_text, Restartable):
        on_text.restart()


GUARDIAN = "GUARDIAN"  # the role of whoever gives a second opinion


class TurnInfo(msgspec.Struct, frozen=True):
    """The purpose of a request, for engines that are not language models; providers ignore it."""

    role: str = ""
    purpose: Literal["turn", "synthesis", "other"] = "other"
    round: int = 0
    max_rounds: int = 0
    task: str = ""

    @property
    def closes(self) -> bool:
        """True of the call that writes the decision."""
        return self.purpose == "synthesis"


def request_hash(model: str, system: str, messages: Sequence[Message]) -> str:
    """A chain over the hashes of the messages, so that a message that knows its own is not hashed again."""
    digest = _hash_of(model, system)
    for message in messages:
        digest = sha256_hex(f"{digest}\n{message.role}\n{message.sha256 or sha256_hex(message.text)}")
    return digest


@functools.lru_cache(maxsize=64)  # as many agents as may speak side by side; each asks with the same text in every turn
def _hash_of(model: str, system: str) -> str:
    return sha256_hex(canonical_json([model, system]))


class RequestOptions(TypedDict, total=False):
    """The parts of a request beside its messages. `max_output_tokens` and `temperature` None: the model's own."""

    system: Required[str]
    schema: Mapping[str, Any] | None
    tools: Sequence[ToolSpec]
    on_text: OnText | None
    max_output_tokens: int | None
    temperature: float | None
    info: TurnInfo | None


def tell(asked: RequestOptions, text: str) -> None:
    on_text = asked.get("on_text")
    if on_text is not None:
        on_text(text)


class Model(Protocol):
    """`name` is what receipts print (`gemini:gemini-2.5-flash`). `context_tokens` is the window, prompt and completion
    together. `generate` raises ModelError, never a provider's own exception; cancelling its task cancels it."""

    name: str
    context_tokens: int

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply: ...

    async def aclose(self) -> None: ...


class ModelAround:
    """A model around another one: the same name and window, closed with it. Sub-classes say what `generate` adds."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.name = inner.name
        self.context_tokens = inner.context_tokens

    async def aclose(self) -> None:
        await self._inner.aclose()


NOBODY = "none"
_MODES = {"offline": "offline-extractive", "scripted": "scripted", "cassette": "replay"}


def mode_of(model: str) -> str:
    """The kind of model behind the words; `none` in a run that asked nobody."""
    return _MODES.get(model.split(":")[0], "language-model") if model else NOBODY


def is_extract(model: str) -> bool:
    """True when the words are quoted from documents, with no language model behind them, also once recorded."""
    return model.removeprefix("cassette:") == "offline"


def is_rehearsal(model: str) -> bool:
    """True when no language model is behind the words: the offline engine, a script, or a recording of either."""
    return model.removeprefix("cassette:").partition(":")[0] in ("offline", "scripted")
