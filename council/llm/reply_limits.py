"""`BoundedModel`: what a model says, as text that can be written down and of a length that a page can hold. Servers cut
characters in two, between the pieces of a stream or at a token limit, and some know no limit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import msgspec

from council.errors import ModelError
from council.llm.base import Message, ModelAround, OnText, Reply, RequestOptions, ToolCall, Usage

MAX_REPLY_CHARS = 262_144  # the largest output limit of today's models, 65,536 tokens, at four characters each
MAX_OUTPUT_TOKENS = 4_000_000  # thinking included; no model of today comes near
_TOKENS_PER_CHAR = 4  # at most: a token is at least a byte
_UNSEEN_TOKENS = 1_000_000  # what a provider may count beside the words: templates, functions, what it looked up itself
MAX_WAIT_S = 366 * 86_400.0  # what a provider may ask for; a date in another century is none
_HALVES = re.compile("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """`text` with the halves of a character that stand together as that character, and each other one as U+FFFD."""
    if text.isascii() or _HALVES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class BoundedModel(ModelAround):
    """Replies of whole characters, at most MAX_REPLY_CHARS of them: a longer one is cut off with the finish `length`. A
    function call of that size is a ModelError (`protocol`). Tokens that nobody can have counted are unknown."""

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        on_text = asked.get("on_text")
        pieces = _Pieces(on_text) if on_text is not None else None
        if pieces is not None:
            asked["on_text"] = pieces
        try:
            reply = await self._inner.generate(messages, **asked)
        except ModelError as error:
            # It holds a server's own words and wishes.
            error.message = whole_characters(error.message)
            if error.retry_after_s is not None:
                error.retry_after_s = min(error.retry_after_s, MAX_WAIT_S)
            raise
        if pieces is not None:
            pieces.end()
        sent_chars = len(asked["system"]) + sum(len(message.text) for message in messages)
        reply = msgspec.structs.replace(reply, usage=plausible(reply.usage, sent_chars))
        text = whole_characters(reply.text)
        calls = []
        for call in reply.tool_calls:
            written = json.dumps(call.arguments, ensure_ascii=False)
            if len(call.name) + len(written) > MAX_REPLY_CHARS:
                raise ModelError(
                    "protocol",
                    f"{self.name} made a function call of {len(written):,} characters.",
                    fix="try again, or name another model",
                    model=self.name,
                )
            arguments: dict[str, Any] = json.loads(whole_characters(written))
            calls.append(ToolCall(whole_characters(call.name), arguments, whole_characters(call.id)))
        if len(text) > MAX_REPLY_CHARS:
            return msgspec.structs.replace(reply, text=text[:MAX_REPLY_CHARS], finish="length", tool_calls=())
        return msgspec.structs.replace(reply, text=text, tool_calls=tuple(calls))


def plausible(usage: Usage | None, sent_chars: int) -> Usage | None:
    """A provider's count; None, unknown, for one that cannot be: below zero, or above what can have been sent or said."""
    if usage is None:
        return None
    most_input = sent_chars * _TOKENS_PER_CHAR + _UNSEEN_TOKENS
    if not (0 <= usage.input_tokens <= most_input and 0 <= usage.output_tokens <= MAX_OUTPUT_TOKENS):
        return None
    cached = min(max(usage.cached_tokens, 0), usage.input_tokens)
    thoughts = min(max(usage.thought_tokens, 0), usage.output_tokens)
    return Usage(usage.input_tokens, usage.output_tokens, cached, thoughts)


class _Pieces:
    """Hands on the pieces of one reply; the first half of a character waits for the other one."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text: Callable[[str], None] = on_text
        self._held = ""
        self._left = MAX_REPLY_CHARS

    def __call__(self, piece: str) -> None:
        piece = self._held + piece
        self._held = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        self._tell(piece.removesuffix(self._held))

    def end(self) -> None:
        self._tell(self._held)

    def _tell(self, text: str) -> None:
        text = whole_characters(text)[: self._left]
        self._left -= len(text)
        if text:
            self._on_text(text)
