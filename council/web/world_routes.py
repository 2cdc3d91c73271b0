"""The routes of the world: phase 1's reading, phase 2's writing, phase 3's votes (Leviathan). Every rule is the book's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field

from council import __version__
from council.sandbox.job import MAX_CODE_BYTES
from council.web.problems import problem
from council.web.server import Stopping
from council.world import statements as sql
from council.world.book import ACT, Book, Late, OpenRound, Player, deadline_utc, no_world
from council.world.kernel import snapshot, state_hash

_MOST = 500
_LOOK_S = 0.5  # for a new event
_STILL_S = 15.0  # between two signs of life on a stream that is quiet
_CAPABILITIES = ["read", "register", "act", "messages", "events", "stream"]

Since = Annotated[int, Query(ge=0)]
Count = Annotated[int, Query(ge=1, le=_MOST)]


class Registration(BaseModel):
    name: str = Field(min_length=1, max_length=80)
    description: str = Field(default="", max_length=1_000)


class Registered(BaseModel):
    """`api_key` is shown this once."""

    agent_id: int
    api_key: str
    member_id: int


class Profile(BaseModel):
    agent_id: int
    name: str
    member_id: int
    registered_at: str
    alive: bool


class Submission(BaseModel):
    """`code` defines `agent_action(engine, member_id)`. The same key in one round gives the same answer."""

    code: str = Field(min_length=1, max_length=MAX_CODE_BYTES)
    idempotency_key: str = Field(min_length=1, max_length=200)


class Accepted(BaseModel):
    status: Literal["accepted"] = "accepted"
    round_id: int
    submission_id: str


class Deadline(BaseModel):
    round_id: int
    state: str
    deadline_utc: str | None
    seconds_remaining: float


class KeyMissing(Exception):
    """A request without a key where one is needed."""


def _book(request: Request) -> Book:
    book: Book = request.app.state.book
    return book


BookHere = Annotated[Book, Depends(_book)]


def _caller(book: BookHere, x_api_key: Annotated[str | None, Header()] = None) -> Player:
    if x_api_key is None:
        raise KeyMissing
    return book.player_of(x_api_key)


Caller = Annotated[Player, Depends(_caller)]
router = APIRouter()


@router.get("/.well-known/leviathan-agent.json")
def discovery() -> dict[str, Any]:
    """The name, versions, capabilities and routes of this world."""
    routes = sorted(
        f"{method} {route.path}"
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in sorted(route.methods or ())
    )
    return {
        "name": "council",
        "version": __version__,
        "api_version": "v1",
        "capabilities": _CAPABILITIES,
        "endpoints": ["GET /health", *routes],
    }


@router.post("/v1/agents/register")
async def register(book: BookHere, asked: Registration) -> Registered:
    """A member and a key for a new player. Needs no key. 409 when every living member has a player."""
    joined, key = await book.register(asked.name, asked.description)
    return Registered(agent_id=joined.agent_id, api_key=key, member_id=joined.member_id)


@router.get("/v1/agents/me")
def me(book: BookHere, caller: Caller) -> Profile:
    world, _ = book.world()
    return Profile(
        agent_id=caller.agent_id,
        name=caller.name,
        member_id=caller.member_id,
        registered_at=caller.registered_at,
        alive=caller.member_id in world.members,
    )


@router.get("/v1/agents/me/messages")
def messages(book: BookHere, caller: Caller, since_round: Since = 0, limit: Count = 100) -> list[dict[str, Any]]:
    """The messages to your member, oldest first."""
    return book.letters(caller.member_id, since_round, limit)


@router.get("/v1/agents/me/submissions")
def submissions(book: BookHere, caller: Caller, since_round: Since = 0, limit: Count = 100) -> list[dict[str, Any]]:
    """Your submissions, each with what went wrong in its code."""
    return book.outcomes(caller.agent_id, since_round, limit)


@router.post("/v1/world/actions", responses={409: {"description": "Late, or the member is dead."}})
async def act(book: BookHere, caller: Caller, asked: Submission) -> Accepted:
    """Code for the open round. It runs in a cage after the deadline."""
    submission_id = await book.submit(caller, ACT, asked.code, asked.idempotency_key)
    return Accepted(round_id=int(submission_id.split("-")[0]), submission_id=submission_id)


@router.get("/v1/world")
def world(book: BookHere) -> dict[str, Any]:
    state, _ = book.world()
    return {
        "world_id": state.world_id,
        "round_id": state.round_id,
        "member_count": len(state.members),
        "state_hash": state_hash(state),
    }


@router.get("/v1/world/snapshot")
def whole(book: BookHere) -> dict[str, Any]:
    """The state after the last settled round. `state_hash` is the SHA-256 of all the rest in canonical JSON."""
    state, _ = book.world()
    return {**snapshot(state), "state_hash": state_hash(state)}


@router.get("/v1/world/rounds/current")
def current(book: BookHere) -> dict[str, Any]:
    now = _open(book)
    last = book.receipts(now.round_id - 2, 1)
    return {"round_id": now.round_id, "state": now.phase, "last_receipt": last[-1] if last else None}


@router.get("/v1/world/rounds/current/deadline")
def deadline(book: BookHere) -> Deadline:
    """The window of the open round. Needs no key."""
    now = _open(book)
    until = deadline_utc(now)
    left_s = max(0.0, now.deadline_ms / 1000 - datetime.now(UTC).timestamp()) if until else 0.0
    return Deadline(round_id=now.round_id, state=now.phase, deadline_utc=until, seconds_remaining=round(left_s, 3))


@router.get("/v1/world/rounds/{round_id}")
def settled(book: BookHere, round_id: int) -> dict[str, Any]:
    """The receipt of a settled round."""
    return book.receipt(round_id)


@router.get("/v1/world/metrics")
def metrics(book: BookHere, since_round: Since = 0, limit: Count = 100) -> list[dict[str, Any]]:
    """The figures of the newest settled rounds, oldest first."""
    return [{"round_id": told["round_id"], **told["round_metrics"]} for told in book.receipts(since_round, limit)]


@router.get("/v1/world/events")
def events(book: BookHere, since_round: Since = 0, limit: Count = 100) -> list[dict[str, Any]]:
    """The events of rounds after `since_round`, oldest first."""
    return book.events(sql.EVENTS_SINCE_ROUND, since_round, limit)


@router.get("/v1/world/events/stream", response_class=EventSourceResponse)
async def stream(
    request: Request, book: BookHere, last_event_id: Annotated[int, Header(ge=0)] = 0
) -> AsyncIterator[ServerSentEvent]:
    """Events as they come, after `Last-Event-ID`. It ends when the server stops."""
    stopping: Stopping = request.app.state.stopping
    after, still_s = last_event_id, 0.0
    while True:
        found = await asyncio.to_thread(book.events, sql.EVENTS_AFTER, after, _MOST)
        for event in found:
            after, still_s = event["event_id"], 0.0
            yield ServerSentEvent(data=event, event=event["event_type"], id=str(after))
        if await stopping.wait(_LOOK_S):
            return
        still_s += _LOOK_S
        if still_s >= _STILL_S:
            still_s = 0.0
            yield ServerSentEvent(comment="still here")


async def key_missing(request: object, error: Exception) -> JSONResponse:
    """401, and where to get a key."""
    fix = "send it in the header X-API-Key; POST /v1/agents/register gives one"
    return problem(401, "key_missing", "this route needs a key.", fix=fix, headers={"WWW-Authenticate": "ApiKey"})


async def late(request: object, error: Exception) -> JSONResponse:
    """The answer that the source document gives to a submission outside its window, as 409."""
    assert isinstance(error, Late)
    return JSONResponse({"status": "rejected", "reason": error.message, "round_id": error.round_id}, 409)


def _open(book: Book) -> OpenRound:
    now = book.open_round()
    if now is None:
        raise no_world()
    return now
