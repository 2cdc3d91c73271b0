"""The HTTP transport of the Gemini SDK, which by itself reads whatever comes, of whatever size. An error object in an
answer of 200, as gateways send it, gets its own status, so that the SDK raises it. Imported when a call is made: httpx2
comes with it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

import httpx2

from council.llm.http_failures import AnswerTooLarge, ProxyUnusable, connect_timeout_s, proxy_before

if TYPE_CHECKING:
    import ssl

MAX_ANSWER_BYTES = 16 * 1024 * 1024  # far above any answer, with all the frames of a stream around each word
MAX_LINE_BYTES = 4 * 1024 * 1024  # of a stream: an event is a line, and the SDK puts it together piece by piece
_ERROR_BEGINS_WITHIN = 200  # bytes, of an answer that is an error
_BODY_HEADERS = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Reads up to MAX_ANSWER_BYTES; beyond that it raises AnswerTooLarge."""

    def __init__(self, url: str, tls: ssl.SSLContext) -> None:
        """Raises ProxyUnusable when the environment names a proxy that cannot be used."""
        try:
            self._inner = httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy_before(url))
        except (ValueError, ImportError) as error:
            raise ProxyUnusable(str(error)) from None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        timeouts = request.extensions["timeout"]  # the SDK gives one for all operations
        request.extensions["timeout"] = {**timeouts, "connect": connect_timeout_s(timeouts["connect"])}
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            await response.aclose()
            raise httpx2.DecodingError("it is compressed, which was not asked for")
        headers = [pair for pair in response.headers.raw if pair[0].lower() not in _BODY_HEADERS]
        is_json = "json" in response.headers.get("content-type", "")
        body = _Body(
            cast(httpx2.AsyncByteStream, response.stream),
            max_line_bytes=MAX_ANSWER_BYTES if is_json else MAX_LINE_BYTES,
        )
        if response.status_code != 200 or not is_json:
            return httpx2.Response(
                response.status_code, headers=headers, stream=body, extensions=response.extensions, request=request
            )
        try:
            data = b"".join([piece async for piece in body])
        finally:
            await body.aclose()
        # Gateways send errors in an answer of 200. Nothing here but a JSON object is an answer.
        beginning = data[:_ERROR_BEGINS_WITHIN].lstrip()
        if not beginning.startswith(b"{"):
            json.loads(data)
            raise TypeError("no object")
        status = 200
        if b'"error"' in beginning and (error := json.loads(data).get("error")):
            code = error.get("code") if isinstance(error, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
        return httpx2.Response(status, headers=headers, content=data, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, *, max_line_bytes: int) -> None:
        self._inner = inner
        self._max_line_bytes = max_line_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        async for piece in self._inner:
            total += len(piece)
            ends = piece.rfind(b"\n")
            line = line + len(piece) if ends < 0 else len(piece) - ends - 1
            if total > MAX_ANSWER_BYTES:
                raise AnswerTooLarge(f"more than {MAX_ANSWER_BYTES} bytes")
            if line > self._max_line_bytes:
                raise AnswerTooLarge(f"a line of more than {self._max_line_bytes} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
