"""The gate before every route: who may send what to this server, and the headers of every answer."""

from __future__ import annotations

import re
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from council.commands.models import LINE_PATTERN
from council.settings import Settings
from council.web.problems import problem
from council.web.server import LOOPBACK_NAMES

MAX_BODY_BYTES = 256 << 10
_MAY_UPLOAD = re.compile(r"/chat(?:/[^/]+)?")  # a document may come with a request
_A_LINE = re.compile(LINE_PATTERN)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with none a browser would hide the Origin of its own forms, too
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class RequestGate:
    """Refuses who calls by a foreign name, and what a foreign page sends. Counts what is read of a body. Every answer has the
    headers by which a browser keeps it to itself.

    A browser says from where it sends: `Sec-Fetch-Site`, `Origin`. A program says neither, and has no cookie either.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._hosts = frozenset(map(str.lower, (*LOOPBACK_NAMES, *settings.http_hosts)))
        self._scheme = "https" if settings.behind_tls else "http"
        self._document_bytes = settings.max_document_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                told: Any = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    told.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        is_foreign = site not in (None, "same-origin") or origin not in (None, f"{self._scheme}://{host}")
        is_silent = site is None and origin is None and "cookie" in headers
        refused = None
        if name not in self._hosts:
            fix = "call it by a name in `http_hosts`, or by 127.0.0.1"
            refused = problem(Request(scope), 400, "host_unknown", "this server is not called by that name.", fix=fix)
        elif not _A_LINE.fullmatch(scope["path"]):  # it names nothing, and no database need be asked for it
            refused = problem(Request(scope), 404, "not_found", "Not Found.")
        elif scope["method"] not in ("GET", "HEAD") and (is_foreign or is_silent):
            fix = "send it from a page of this server, or with a key and without cookies"
            refused = problem(Request(scope), 403, "foreign_page", "this was sent by a page of another site.", fix=fix)
        if refused is not None:
            await refused(scope, receive, with_headers)
            return
        length, declared = headers.get("content-length", ""), 0  # a chunked body declares none
        if length.isascii() and length.isdigit():
            declared = int(length[:18])
        read, most = 0, MAX_BODY_BYTES + (self._document_bytes if _MAY_UPLOAD.fullmatch(scope["path"]) else 0)

        async def counting() -> Message:
            nonlocal read
            if max(declared, read) <= most:
                message = await receive()
                read += len(message.get("body", b""))
                if read <= most:
                    return message
            raise HTTPException(413, f"a body has at most {most:,} bytes", {"Connection": "close"})

        await self._app(scope, counting, with_headers)
