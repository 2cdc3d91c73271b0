"""The application that the server serves: what stands before every route, and the routes themselves."""

from __future__ import annotations

import re
import time
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from council import __version__
from council.desk.desk import Desk
from council.desk.overview import overview
from council.settings import Settings
from council.web import api_routes, sign_in
from council.web.live_updates import Broadcast, Floor
from council.web.navigation import window_of
from council.web.problems import PROBLEM, problem, tell_problems
from council.web.rate_limits import RateGate, RateLimit
from council.web.server import LOOPBACK_NAMES
from council.web.sign_in import ask_to_sign_in
from council.web.world_routes import late, router
from council.world.world_store import Book, Late

MAX_BODY_BYTES = 256 << 10
_MAY_UPLOAD = re.compile(r"/chat(?:/[^/]+)?")  # a document may come with a request
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


class CompanionState(BaseModel):
    """A companion of the daemon. `reason` says why it does not run as it should; empty while it does."""

    name: str
    reason: str


class Health(BaseModel):
    """The state of the daemon: `state` is the word of Protocol 95, `status` is `degraded` while a companion is."""

    status: str
    version: str
    state: str
    active_runs: int
    companions: list[CompanionState]


def build_application(desk: Desk, settings: Settings, book: Book, broadcast: Broadcast, floor: Floor) -> FastAPI:
    """The routes behind their limits. Interactive pages are off: they would load from elsewhere."""
    app = _Application(
        settings,
        title="Council",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        responses={"default": PROBLEM, 422: PROBLEM},
    )
    tell_problems(app)

    @app.get("/health")
    def health() -> Health:
        """The daemon and its companions. Needs no key."""
        seen = overview(desk)
        companions = [CompanionState(name=name, reason=seen.degraded.get(name, "")) for name in seen.companions]
        return Health(
            status="degraded" if seen.degraded else "ok",
            version=__version__,
            state=seen.state,
            active_runs=len(seen.runs),
            companions=companions,
        )

    app.add_exception_handler(Late, late)
    app.state.desk, app.state.book, app.state.broadcast = desk, book, broadcast
    ask_to_sign_in(app)
    app.include_router(router)
    app.include_router(sign_in.router)
    app.include_router(api_routes.router)
    api_routes.describe(app, desk.commands)
    app.include_router(window_of(desk, broadcast, floor).routes())
    app.add_middleware(RateGate, limit=RateLimit(settings.http_requests_per_minute, time.monotonic))
    return app


class _Application(FastAPI):
    """Stands behind the gate with all that it answers, also to a defect, which no middleware sees."""

    def __init__(self, settings: Settings, **how: Any) -> None:
        super().__init__(**how)
        self._settings = settings

    def build_middleware_stack(self) -> ASGIApp:
        return _Gate(super().build_middleware_stack(), self._settings)


class _Gate:
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
        if name not in self._hosts:
            fix = "call it by a name in `http_hosts`, or by 127.0.0.1"
            told = "this server is not called by that name."
            await problem(Request(scope), 400, "host_unknown", told, fix=fix)(scope, receive, with_headers)
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        is_foreign = site not in (None, "same-origin") or origin not in (None, f"{self._scheme}://{host}")
        is_silent = site is None and origin is None and "cookie" in headers
        if scope["method"] not in ("GET", "HEAD") and (is_foreign or is_silent):
            fix = "send it from a page of this server, or with a key and without cookies"
            told = "this was sent by a page of another site."
            await problem(Request(scope), 403, "foreign_page", told, fix=fix)(scope, receive, with_headers)
            return
        length = headers.get("content-length", "")
        declared = (
            int(length[:18]) if length.isascii() and length.isdigit() else 0
        )  # bytes; a chunked body declares none
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
