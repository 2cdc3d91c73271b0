"""A Gemini answer as it comes in: one response, or the chunks of a stream; thoughts are not kept. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from council.llm.base import ToolCall, Usage
from council.llm.http_failures import brief

if TYPE_CHECKING:
    from google.genai import types

# Not filters: the model's own output was malformed, another attempt may be well.
MALFORMED = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
    }
)
CUT_SHORT = frozenset({"MAX_TOKENS", "CONTINUATION"})
WHOLE = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED", ""})


@dataclass
class GeminiAnswer:
    """The answer so far: one response, or the chunks of a stream."""

    pieces: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    finish: str = ""
    finish_message: str = ""
    prompt_block: str = ""
    usage: Usage | None = None
    seen_candidate: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def block_words(self) -> str:
        reason = self.prompt_block or self.finish
        return f"{reason} ({brief(self.finish_message).rstrip('.')})" if self.finish_message else reason

    def add(self, response: types.GenerateContentResponse) -> str:
        """Takes a response in and gives back the text it brought. Thoughts are not text."""
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self.prompt_block = str(feedback.block_reason.value)
            self.finish_message = feedback.block_reason_message or ""
        counts = response.usage_metadata
        if counts is not None and counts.prompt_token_count:  # some gateways send zeros
            thoughts = counts.thoughts_token_count or 0
            self.usage = Usage(
                input_tokens=counts.prompt_token_count,
                output_tokens=(counts.candidates_token_count or 0) + thoughts,  # both are billed as output
                cached_tokens=counts.cached_content_token_count or 0,
                thought_tokens=thoughts,
            )
        candidate = response.candidates[0] if response.candidates else None
        if candidate is None:
            return ""
        self.seen_candidate = True
        if candidate.finish_reason is not None:
            self.finish = str(candidate.finish_reason.value)
            self.finish_message = candidate.finish_message or ""
        parts = candidate.content.parts if candidate.content is not None else None
        brought = "".join(part.text for part in parts or [] if part.text and not part.thought)
        self.pieces.append(brought)
        self.calls += [
            ToolCall(part.function_call.name or "", dict(part.function_call.args or {}), part.function_call.id or "")
            for part in parts or []
            if part.function_call is not None
        ]
        return brought
