"""The dialects of OpenAI-compatible servers: a request in one, and what a refusal asks to leave out. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from council.llm.base import Message, RequestOptions
from council.llm.http_failures import Refusal

JsonMode = Literal["schema", "object", "none"]
TokenLimitField = Literal["max_tokens", "max_completion_tokens"]

# What a refusal names when one thing in the request was too much.
_UNKNOWN_FIELD = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|not (?:supported|permitted|allowed)|extra", re.I
)
_STREAM_USAGE = re.compile(r"stream_options|include_usage", re.IGNORECASE)
_TOOLS = re.compile(r"\btools?\b|\btool_choice\b|function.call", re.IGNORECASE)
_SYSTEM_ROLE = re.compile(
    r"system\W{0,3}(?:role|message|prompt)s?\b.{0,40}(?:support|allowed|permitted)|not support\w* .{0,20}system",
    re.IGNORECASE,
)
_JSON_MODE = re.compile(
    r"response_format|json_schema|json_object|json.mode|structured.output|guided.(?:json|decoding)|grammar",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Server:
    """`base_url` ends before `/chat/completions`. `key_env` names the variable of its key. `start` and `fetch` are the
    commands that start it and that get a missing model (`{model}` is its id)."""

    name: str
    base_url: str
    key_env: str | None = None
    context_tokens: int = 32_768
    token_limit_field: TokenLimitField = "max_tokens"  # noqa: S105 a field of the request
    json_mode: JsonMode = "schema"
    headers: Mapping[str, str] = field(default_factory=dict)
    start: str = ""
    fetch: str = ""


@dataclass(frozen=True)
class Dialect:
    token_limit_field: TokenLimitField
    json_mode: JsonMode
    stream_usage: bool = True
    tools: bool = True
    system_role: bool = True


def body_of(model_id: str, messages: Sequence[Message], asked: RequestOptions, dialect: Dialect) -> dict[str, Any]:
    system, schema, tools = asked["system"], asked.get("schema"), asked.get("tools")
    if schema is not None and dialect.json_mode == "object":
        texts = (system, *(message.text for message in messages))
        if not any("json" in text.lower() for text in texts):  # without the word, some servers refuse this mode
            system = f"{system}\n\nAnswer with one JSON object.".lstrip()
    written: list[dict[str, str]] = []
    if system and dialect.system_role:
        written.append({"role": "system", "content": system})
    spoken = [("assistant" if message.role == "model" else "user", message.text) for message in messages]
    if system and not dialect.system_role:
        spoken.insert(0, ("user", system))
    for role, text in spoken:
        if written and written[-1]["role"] == role:
            written[-1]["content"] += f"\n\n{text}"
        else:
            written.append({"role": role, "content": text})
    body: dict[str, Any] = {
        "model": model_id,
        "messages": written,
        dialect.token_limit_field: asked.get("max_output_tokens"),
    }
    if (temperature := asked.get("temperature")) is not None:
        body["temperature"] = temperature
    if asked.get("on_text") is not None:
        body["stream"] = True
        if dialect.stream_usage:
            body["stream_options"] = {"include_usage": True}
    if schema is not None and dialect.json_mode == "schema":
        wanted = {"name": "reply", "schema": dict(schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    elif schema is not None and dialect.json_mode == "object":
        body["response_format"] = {"type": "json_object"}
    if tools and dialect.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in tools
        ]
    return body


def left_out(refusal: Refusal, asked: RequestOptions, dialect: Dialect) -> dict[str, Any]:
    if refusal.about_context or refusal.status not in (0, 400, 404, 405, 422, 500, 501):
        return {}
    words = refusal.words
    other = next(name for name in get_args(TokenLimitField) if name != dialect.token_limit_field)
    if dialect.token_limit_field in words and _UNKNOWN_FIELD.search(words):
        return {"token_limit_field": other}
    if asked.get("on_text") is not None and dialect.stream_usage and _STREAM_USAGE.search(words):
        return {"stream_usage": False}
    if asked.get("tools") and dialect.tools and _TOOLS.search(words):
        return {"tools": False}
    if asked["system"] and dialect.system_role and _SYSTEM_ROLE.search(words):
        return {"system_role": False}
    by_name = _JSON_MODE.search(words) is not None
    if asked.get("schema") is not None and dialect.json_mode != "none" and (by_name or refusal.kind == "request"):
        return {"json_mode": "none"}
    return {}
