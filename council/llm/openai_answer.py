"""An OpenAI-compatible answer as it comes in: whole, or as a stream of events. Thoughts, and the reasoning beside a
text, are dropped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from council.llm.base import ToolCall, Usage
from council.llm.http_failures import AnswerTooLarge
from council.markup import BLANK, without_thoughts

_MAX_TOKENS_COUNTED = 2**53


@dataclass
class _ToolCallParts:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass
class OpenAIAnswer:
    """`told`: a listener has heard some. `thought`: the model thought before it spoke."""

    finish: str = ""
    refused: str = ""
    usage: Usage | None = None
    seen_choice: bool = False
    done: bool = False
    told: bool = False
    thought: bool = False
    _pieces: list[str] = field(default_factory=list)
    _calls: list[_ToolCallParts] = field(default_factory=list)
    _call_at: dict[int, int] = field(default_factory=dict)

    def take(self, content: Any) -> str:
        """One chunk; gives back the text to show now. Raises TypeError or AttributeError for one of another shape."""
        counts = content.get("usage")
        prompt, completion = count_of(counts, "prompt_tokens"), count_of(counts, "completion_tokens")
        # Some servers do not count thinking into the completion, though they bill it.
        output = max(completion, count_of(counts, "total_tokens") - prompt)
        if prompt and output:  # some send zeros, or leave the prompt out when it was cached
            inputs, outputs = counts.get("prompt_tokens_details"), counts.get("completion_tokens_details")
            cached = count_of(inputs, "cached_tokens") or count_of(counts, "prompt_cache_hit_tokens")
            thoughts = min(count_of(outputs, "reasoning_tokens"), output)
            self.usage = Usage(prompt, output, min(cached, prompt), thoughts)
        choices = content.get("choices") or []
        if not isinstance(choices, list):
            raise TypeError("choices is not a list")
        if not choices:
            return ""
        self.seen_choice = True
        choice = choices[0]
        if choice.get("finish_reason"):
            self.finish = str(choice["finish_reason"]).strip().lower().replace("-", "_")
        said = choice.get("delta") or choice.get("message") or {}
        self.refused += said.get("refusal") or ""
        self.thought = self.thought or bool(said.get("reasoning_content") or said.get("reasoning"))
        for at, part in enumerate(said.get("tool_calls") or []):
            index = part["index"] if isinstance(part.get("index"), int) else at
            id_, function = part.get("id") or "", part.get("function") or {}
            known = self._calls[self._call_at[index]] if index in self._call_at else None
            if known is None or (id_ and known.id and id_ != known.id) or (not id_ and _is_next(known, function)):
                known = _ToolCallParts()
                self._call_at[index] = len(self._calls)
                self._calls.append(known)
            known.id = known.id or str(id_)
            known.name = known.name or str(function.get("name") or "")
            arguments = function.get("arguments")
            known.arguments.append(
                arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
            )
        piece = _text_of(said.get("content"))
        self._pieces.append(piece)
        return piece

    def text(self) -> str:
        """The whole text without thoughts; one that holds none as it came."""
        whole = "".join(self._pieces)
        said = without_thoughts(whole)
        if said == whole.strip(BLANK):
            return whole
        self.thought = True
        return said

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Raises ValueError for a call without a name or with arguments that are no JSON object."""
        if any(not call.name for call in self._calls):
            raise ValueError("a call without a name")
        calls = []
        for call in self._calls:
            text = "".join(call.arguments)
            arguments = json.loads(text) if text.strip() else {}
            if not isinstance(arguments, dict):
                raise ValueError("arguments are not a JSON object")
            calls.append(ToolCall(call.name, arguments, call.id))
        return tuple(calls)


def _is_next(known: _ToolCallParts, function: Any) -> bool:
    """Tells whether a part without an id, which gives a name, begins another call: the one before is whole."""
    if not function.get("name") or not known.name:
        return False
    try:
        return isinstance(json.loads("".join(known.arguments)), dict)
    except ValueError:
        return False


def _text_of(content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError("content is neither text nor a list")
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in ("text", "output_text")]
    return "".join(str(part.get("text") or "") for part in parts)


def count_of(counts: object, name: str) -> int:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS_COUNTED else 0


MAX_EVENT_BYTES = 1024 * 1024  # one event is a few words; a whole answer in one event is still far below


async def events(chunks: AsyncIterator[bytes], *, max_bytes: int) -> AsyncIterator[str]:
    """The data of each server-sent event. Raises AnswerTooLarge, UnicodeDecodeError."""
    held, data, total = b"", list[bytes](), 0
    async for chunk in chunks:
        total += len(chunk)
        *lines, held = (held + chunk).split(b"\n")
        if total > max_bytes or len(held) + sum(map(len, data)) > MAX_EVENT_BYTES:
            raise AnswerTooLarge(f"more than {max_bytes} bytes, or an event of more than {MAX_EVENT_BYTES}")
        for line in lines:
            event = _take(line.rstrip(b"\r"), data)
            if event is not None:
                yield event
    _take(held.rstrip(b"\r"), data)
    event = _take(b"", data)
    if event is not None:
        yield event


def _take(line: bytes, data: list[bytes]) -> str | None:
    if line:
        field, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        return None
    if not data:
        return None
    event = b"\n".join(data).decode("utf-8")
    data.clear()
    return event
