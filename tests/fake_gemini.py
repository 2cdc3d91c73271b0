"""A stand-in for the Gemini API on 127.0.0.1: answers, fails and misbehaves on demand, and keeps every request.

In a test, in-process:

    with FakeGemini() as fake:
        fake.reply = lambda request: text("hello") if "STRATEGIST" in request.system else error(503)
        model = GeminiModel(api_key=Secret("test-key-0123456789"), base_url=fake.url)

For a daemon in another process, with `GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:PORT`:

    python -m tests.fake_gemini --port-file F --record FILE [--script FILE] [--max-seconds 600]

`--port-file` appears, whole, once the server listens. `--record` gets one JSON line per request (never the key).
`--script` is a JSON list; each request takes the first entry that still has `times` left and whose `system` and `text`
(both optional) occur in the system instruction and in the last message:

    [{"system": "AUDITOR", "reply": "error", "with": {"status": 503}, "times": 2},
     {"text": "Round 2", "reply": "text", "with": {"answer": "I agree."}, "times": 0}]

`reply` is the name of one of the helpers below, `with` its arguments, `times` defaults to 1 and 0 means always. A
request that no entry takes gets `default_reply`.

It serves `POST /v1*/models/X:generateContent`, `:streamGenerateContent` (as `alt=sse`), `:batchEmbedContents` and
`GET /v1*/models[/X]`; everything else is 404. What embeds is kept apart, in `embeddings`, and `embed_reply` answers it.
It does not check requests, count tokens as the real service does, or speak TLS.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.fake_server import MAX_RECORDED, FakeHandler, FakeReply, FakeServer, cuts_of, raw, redirect
from tests.fake_server import in_turn as in_turn
from tests.meanings import DIMENSIONS, vector_of

_CALL = re.compile(r"^/v1[a-z0-9]*/models/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)$")
_EMBED = re.compile(r"^/v1[a-z0-9]*/models/(?P<model>[^/:]+):batchEmbedContents$")
_LIST = re.compile(r"^/v1[a-z0-9]*/models(?:/(?P<model>[^/:]+))?$")
_ROLE = re.compile(r"\b(?:You are|Role:?|role:?)\W+(?:the\s+)?([A-Z][A-Z_]{2,})\b")
_KNOWN_ROLE = re.compile(r"\b(COORDINATOR|STRATEGIST|AUDITOR|SYNTHESI[SZ]ER)\b")


@dataclass(frozen=True)
class RecordedRequest:
    """One call as it came: `texts` are the user messages, `all_texts` all messages, `system` the instruction."""

    index: int
    path: str
    model: str
    streamed: bool
    body: dict[str, Any]
    api_key: str = field(default="", repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def system(self) -> str:
        return _text_of(self.body.get("systemInstruction") or {})

    @property
    def roles(self) -> list[str]:
        return [content.get("role", "") for content in self.body.get("contents", [])]

    @property
    def texts(self) -> list[str]:
        return [_text_of(content) for content in self.body.get("contents", []) if content.get("role") == "user"]

    @property
    def all_texts(self) -> list[str]:
        return [_text_of(content) for content in self.body.get("contents", [])]


def _text_of(content: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content.get("parts", []))


ReplyFunction = Callable[[RecordedRequest], FakeReply]


# --- replies ----------------------------------------------------------------------------------------------------------


def _chunk(
    parts: list[dict[str, Any]] | None,
    *,
    finish: str | None = None,
    usage: dict[str, int] | None = None,
    model: str = "",
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0}
    if parts is not None:
        candidate["content"] = {"role": "model", "parts": parts}
    if finish is not None:
        candidate["finishReason"] = finish
    chunk: dict[str, Any] = {"candidates": [candidate]}
    if usage is not None:
        chunk["usageMetadata"] = usage
    if model:
        chunk["modelVersion"] = model
    return chunk


def usage(prompt: int = 12, output: int = 7, *, thoughts: int = 0, cached: int = 0) -> dict[str, int]:
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output + thoughts}
    if thoughts:
        counts["thoughtsTokenCount"] = thoughts
    if cached:
        counts["cachedContentTokenCount"] = cached
    return counts


def text(
    answer: str,
    *,
    finish: str = "STOP",
    thought: str = "",
    prompt: int = 12,
    output: int = 7,
    thoughts: int = 0,
    cached: int = 0,
    counted: bool = True,
    pieces: int = 3,
    between_s: float = 0.0,
) -> FakeReply:
    """An answer; a stream gets it in `pieces` events, the finish reason and the token counts on the last."""
    cuts = cuts_of(answer, pieces)
    chunks = [_chunk([{"text": thought, "thought": True}])] if thought else []
    chunks += [_chunk([{"text": cut}]) for cut in cuts[:-1]]
    counts = usage(prompt, output, thoughts=thoughts, cached=cached) if counted else None
    chunks.append(_chunk([{"text": cuts[-1]}], finish=finish, usage=counts, model="fake-gemini-001"))
    return FakeReply(tuple(chunks), between_s=between_s)


def function_call(name: str, arguments: dict[str, Any] | None = None, *, id: str = "", say: str = "") -> FakeReply:
    call: dict[str, Any] = {"name": name, "args": arguments or {}}
    if id:
        call["id"] = id
    parts: list[dict[str, Any]] = [{"text": say}] if say else []
    return FakeReply((_chunk([*parts, {"functionCall": call}], finish="STOP", usage=usage()),))


def vectors(rows: list[list[float]], *, counted: int | None = None) -> FakeReply:
    """Embeddings as they are given, well or not."""
    content: dict[str, Any] = {"embeddings": [{"values": row} for row in rows]}
    if counted is not None:
        content["usageMetadata"] = {"promptTokenCount": counted}
    return raw(json.dumps(content))


def embedded_texts(request: RecordedRequest) -> list[str]:
    return [_text_of(each["content"]) for each in request.body["requests"]]


def default_vectors(request: RecordedRequest) -> FakeReply:
    """By the meaning of each text."""
    asked = request.body["requests"][0].get("outputDimensionality", DIMENSIONS)
    return vectors([vector_of(text, asked) for text in embedded_texts(request)])


def error(
    status: int,
    reason: str = "",
    retry_after: float | str | None = None,
    *,
    message: str = "",
    state: str = "",
    retry_delay: str = "",
    quota_id: str = "",
) -> FakeReply:
    """An error as Google's services write it. `retry_after` is the header, `retry_delay` (`"2s"`) the RetryInfo."""
    details: list[dict[str, Any]] = []
    if reason:
        details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason})
    if quota_id:
        violation = {"quotaId": quota_id, "quotaValue": "20"}
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})
    if retry_delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry_delay})
    body: dict[str, Any] = {
        "code": status,
        "message": message or f"fake failure {status}",
        "status": state
        or {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}.get(status, "ERROR"),
    }
    if details:
        body["details"] = details
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return FakeReply(status=status, headers=headers, body=json.dumps({"error": body}).encode())


def error_in_stream(status: int, *, after: str = "so far", message: str = "overloaded") -> FakeReply:
    """A stream that breaks off with an error object."""
    failure = {"error": {"code": status, "message": message, "status": "UNAVAILABLE"}}
    return FakeReply((_chunk([{"text": after}]), failure))


def drop(after: str = "") -> FakeReply:
    """The connection closes: at once, or in the middle of an answer that began with `after`."""
    return FakeReply((_chunk([{"text": after}]),) if after else (), ending="close")


def unfinished(answer: str) -> FakeReply:
    """An answer that ends in good order but without a finish reason."""
    return FakeReply((_chunk([{"text": answer}]),), ending="silent")


def slow(seconds: float, answer: str = "late") -> FakeReply:
    whole = text(answer)
    return FakeReply(whole.chunks, before_s=seconds)


def blocked(reason: str = "SAFETY") -> FakeReply:
    """The prompt was refused: no candidate at all."""
    return FakeReply(({"promptFeedback": {"blockReason": reason}, "usageMetadata": usage(12, 0)},))


def safety(reason: str = "SAFETY", partial: str = "") -> FakeReply:
    """The answer was stopped by a filter, possibly after some text."""
    return FakeReply((_chunk([{"text": partial}] if partial else None, finish=reason, usage=usage(12, 3)),))


def empty() -> FakeReply:
    return FakeReply(({"usageMetadata": usage(12, 0)},))


def max_tokens(answer: str = "", *, thoughts: int = 100) -> FakeReply:
    """The output limit was reached: by default while thinking, with no word said."""
    parts = [{"text": answer}] if answer else None
    return FakeReply((_chunk(parts, finish="MAX_TOKENS", usage=usage(12, 3 if answer else 0, thoughts=thoughts)),))


def default_reply(request: RecordedRequest) -> FakeReply:
    """The same words for the same request, naming the role if the system instruction tells it."""
    found = _ROLE.search(request.system) or _KNOWN_ROLE.search(request.system)
    role = found.group(1) if found else "MODEL"
    digest = hashlib.sha256(json.dumps(request.all_texts).encode()).hexdigest()[:8]
    return text(f"{role} has read {len(request.all_texts)} messages ({digest}).")


HELPERS: dict[str, Callable[..., FakeReply]] = {
    helper.__name__: helper
    for helper in (
        text, function_call, error, error_in_stream, raw, redirect, drop, unfinished, slow, blocked, safety, empty,
        max_tokens,
    )
}  # fmt: skip


def scripted(entries: list[dict[str, Any]]) -> ReplyFunction:
    """A reply function from a `--script` (see the module docstring). Raises ValueError for an entry that cannot be."""
    for entry in entries:
        unknown = set(entry) - {"system", "text", "reply", "with", "times"}
        if unknown or entry.get("reply") not in HELPERS:
            raise ValueError(f"bad script entry {entry!r}: `reply` is one of {', '.join(HELPERS)}; {unknown or ''}")
    left = [int(entry.get("times", 1)) or MAX_RECORDED for entry in entries]
    lock = threading.Lock()

    def reply(request: RecordedRequest) -> FakeReply:
        last = request.all_texts[-1] if request.all_texts else ""
        with lock:
            for at, entry in enumerate(entries):
                if left[at] and entry.get("system", "") in request.system and entry.get("text", "") in last:
                    left[at] -= 1
                    return HELPERS[entry["reply"]](**entry.get("with", {}))
        return default_reply(request)

    return reply


# --- the server -------------------------------------------------------------------------------------------------------


class FakeGemini(FakeServer[RecordedRequest]):
    """As `FakeServer`; `record` gets one JSON line per request."""

    def __init__(self, *, reply: ReplyFunction = default_reply, record: Path | None = None, port: int = 0) -> None:
        self.reply = reply
        self.embed_reply: ReplyFunction = default_vectors
        self.listed: list[dict[str, Any]] = [{"name": "models/gemini-2.5-flash", "inputTokenLimit": 1_048_576}]
        self._record = record
        super().__init__(_Handler, port=port)

    @property
    def url(self) -> str:
        return self.root

    def record_embedding(self, path: str, model: str, body: dict[str, Any], headers: dict[str, str]) -> RecordedRequest:
        key = headers.pop("x-goog-api-key", "")
        return self.keep_embedding(lambda index: RecordedRequest(index, path, model, False, body, key, headers))

    def record(
        self, path: str, model: str, streamed: bool, body: dict[str, Any], headers: dict[str, str]
    ) -> RecordedRequest:
        key = headers.pop("x-goog-api-key", "")

        def written(index: int) -> RecordedRequest:
            if self._record is not None:
                line = {"index": index, "path": path, "model": model, "streamed": streamed, "body": body}
                with self._record.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
            return RecordedRequest(index, path, model, streamed, body, key, headers)

        return self.keep(written)


class _Handler(FakeHandler):
    def do_POST(self) -> None:
        data = self.read_body()
        place = urlsplit(self.path).path
        embeds = _EMBED.match(place)
        found = embeds or _CALL.match(place)
        if found is None:
            return self._send_error(404, f"no such method: {self.path}")
        try:
            body = json.loads(data)
        except ValueError:
            return self._send_error(400, "the body is not JSON")
        headers = self.lowered_headers()
        fake, streamed = self.server.fake, False
        if embeds is not None:
            request, answer = fake.record_embedding(self.path, found["model"], body, headers), fake.embed_reply
        else:
            streamed = found["method"] == "streamGenerateContent"
            request, answer = fake.record(self.path, found["model"], streamed, body, headers), fake.reply
        try:
            reply = answer(request)
        except Exception as exc:  # noqa: BLE001 a mistake in a test's own reply function is to be seen, not to hang
            return self._send_error(500, f"the reply function raised {exc!r}")
        failure = None if streamed else next((chunk for chunk in reply.chunks if "error" in chunk), None)
        if failure is not None:
            return self.send(failure["error"]["code"], json.dumps(failure).encode())
        return self.answer(reply, streamed=streamed)

    def do_GET(self) -> None:
        found = _LIST.match(urlsplit(self.path).path)
        if found is None:
            return self._send_error(404, f"no such page: {self.path}")
        model = {"name": f"models/{found['model']}", "inputTokenLimit": 1_048_576}
        answer: dict[str, Any] = model if found["model"] else {"models": self.server.fake.listed}
        return self.send(200, json.dumps(answer).encode())

    def merged(self, chunks: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        parts: list[dict[str, Any]] = []
        for chunk in chunks:
            for candidate in chunk.get("candidates", []):
                merged = whole.setdefault("candidates", [{}])[0]
                parts += candidate.get("content", {}).get("parts", [])
                merged.update({name: value for name, value in candidate.items() if name != "content"})
                if parts:
                    merged["content"] = {"role": "model", "parts": parts}
            whole.update({name: value for name, value in chunk.items() if name != "candidates"})
        return whole

    def stream(self, reply: FakeReply) -> None:
        for at, chunk in enumerate(reply.chunks):
            if at and reply.between_s and self.server.fake.closing.wait(reply.between_s):
                break
            # An error inside a stream comes as bare JSON lines, not as an event.
            event = json.dumps(chunk) if "error" in chunk else f"data: {json.dumps(chunk)}\r\n"
            self.send_part(f"{event}\r\n".encode())
        if reply.ending == "close":
            self.close_connection = True
        else:
            self.end_parts()

    def _send_error(self, status: int, message: str) -> None:
        body = {"error": {"code": status, "message": message, "status": "NOT_FOUND"}}
        self.send(status, json.dumps(body).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for the Gemini API on 127.0.0.1.")
    parser.add_argument("--port-file", type=Path, required=True, help="gets the port once the server listens")
    parser.add_argument("--record", type=Path, required=True, help="gets one JSON line per request")
    parser.add_argument("--script", type=Path, help="a JSON list of replies")
    parser.add_argument("--max-seconds", type=float, default=600.0, help="ends by itself after that long")
    options = parser.parse_args()
    reply = scripted(json.loads(options.script.read_text(encoding="utf-8"))) if options.script else default_reply
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with FakeGemini(reply=reply, record=options.record) as fake:
        partial = options.port_file.with_name(options.port_file.name + ".part")
        partial.write_text(str(fake.port), encoding="ascii")
        os.replace(partial, options.port_file)
        ended.wait(options.max_seconds)


if __name__ == "__main__":
    main()
