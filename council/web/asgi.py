"""The application that the server serves: what stands before every route, and the routes themselves."""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.types import ASGIApp

from council import __version__
from council.desk.desk import Desk
from council.desk.overview import overview
from council.settings import Settings
from council.web import api_routes, sign_in
from council.web.live_updates import Broadcast, Floor
from council.web.navigation import window_of
from council.web.problems import PROBLEM, tell_problems
from council.web.rate_limits import RateGate, RateLimit
from council.web.request_gate import RequestGate
from council.web.sign_in import ask_to_sign_in
from council.web.world_routes import late, router
from council.world.world_store import Book, Late


class CompanionState(BaseModel):
    """A companion of the daemon. `reason` says why it does not run as it should; empty while it does."""

    name: str
    reason: str


class Health(BaseModel):
    """The state of the daemon: `state` is the word of Protocol 95, or `WAITING` while no run is at work and one waits. `status`
    is `degraded` while a companion is."""

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
        status, runs = "degraded" if seen.degraded else "ok", len(seen.runs)
        return Health(status=status, version=__version__, state=seen.state, active_runs=runs, companions=companions)

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
        return RequestGate(super().build_middleware_stack(), self._settings)
