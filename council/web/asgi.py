"""The application that the server serves: what stands before every route, and the routes themselves."""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.datastructures import MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from council import __version__
from council.desk.desk import Desk
from council.desk.overview import overview
from council.settings import Settings
from council.web.problems import tell_problems
from council.web.rate_limits import RateLimit, RateLimited
from council.web.server import LOOPBACK_NAMES, Stopping
from council.web.world_routes import KeyMissing, key_missing, late, router
from council.world.book import Book, Late

MAX_BODY_BYTES = 256 << 10
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
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


def build_application(desk: Desk, settings: Settings, book: Book, stopping: Stopping) -> FastAPI:
    """The routes behind their limits. Interactive pages are off: they would load from elsewhere."""
    app = FastAPI(title="Council", version=__version__, docs_url=None, redoc_url=None, max_body_size=MAX_BODY_BYTES)
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

    app.add_exception_handler(KeyMissing, key_missing)
    app.add_exception_handler(Late, late)
    app.state.book, app.state.stopping = book, stopping
    app.include_router(router)
    app.add_middleware(RateLimited, limit=RateLimit(settings.http_requests_per_minute, time.monotonic))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_NAMES, *settings.http_hosts], www_redirect=False)
    app.add_middleware(_SafeHeaders)
    return app


class _SafeHeaders:
    """Headers by which a browser keeps an answer to itself, on every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: Any = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)
