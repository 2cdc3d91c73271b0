"""The routes of the world: phase 1's reading, phase 2's writing, phase 3's votes (Leviathan). Every rule is the book's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Security
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field

from council import __version__
from council.events import WorldChange, WorldRound
from council.sandbox.job import MAX_CODE_BYTES
from council.web.json_bodies import JsonRoute
from council.web.live_updates import Broadcast
from council.web.problems import PROBLEM
from council.world import statements as sql
from council.world.kernel import snapshot, state_hash
from council.world.world_rules import RULES
from council.world.world_store import Book, Late, Player, WorldRefused, deadline_utc

_MOST = 500
_CAPABILITIES = ["read", "register", "act", "messages", "mechanisms", "events", "stream"]
_KEY = APIKeyHeader(name="X-API-Key", auto_error=False, description="`POST /v1/agents/register` gives it once.")

MechanismStatus = Literal["submitted", "pending_vote", "active", "rejected", "lapsed", "rolled_back"]

_HIGHEST = 2**63 - 1  # number that a database holds
Since = Annotated[int, Query(ge=0, le=_HIGHEST)]
Count = Annotated[int, Query(ge=1, le=_MOST)]


class Registration(BaseModel):
    name: str = Field(min_length=1, max_length=80)
    description: str = Field(default="", max_length=1_000)


class Membership(BaseModel):
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


class Acceptance(BaseModel):
    status: Literal["accepted"] = "accepted"
    round_id: int
    submission_id: str


class ProposalRequest(BaseModel):
    """`code` defines `propose_modification(engine)`. The values that it sets in `engine.rules` are the proposal."""

    code: str = Field(min_length=1, max_length=MAX_CODE_BYTES)
    description: str = Field(default="", max_length=1_000)
    idempotency_key: str = Field(min_length=1, max_length=200)


class ProposalReceipt(BaseModel):
    mechanism_id: str
    status: Literal["submitted"] = "submitted"
    round_id: int


class MechanismVote(BaseModel):
    vote: Literal["yes", "no"]
    idempotency_key: str = Field(min_length=1, max_length=200)


class MechanismView(BaseModel):
    """A proposal. `rules` and `canary` are there once its code has run; `yes` and `no` name members, while votes count."""

    mechanism_id: str
    agent_id: int
    round_id: int
    description: str
    status: MechanismStatus
    rules: dict[str, int]
    canary: dict[str, Any]
    error: str
    yes: list[int]
    no: list[int]


class RuleView(BaseModel):
    name: str
    value: int
    least: int
    most: int
    meaning: str


class Deadline(BaseModel):
    round_id: int
    state: str
    deadline_utc: str | None
    seconds_remaining: float


class Rejection(BaseModel):
    """The source document's answer to a submission outside its window."""

    status: Literal["rejected"] = "rejected"
    reason: str
    round_id: int


_LATE: dict[int | str, dict[str, Any]] = {
    409: {
        "description": "Outside the window of the round, or not as the world stands.",
        "content": {"application/json": {"schema": Rejection.model_json_schema()}, **PROBLEM["content"]},
    }
}


async def _book(request: Request) -> Any:
    return request.app.state.book


BookHere = Annotated[Book, Depends(_book)]


def _caller(book: BookHere, key: Annotated[str | None, Security(_KEY)]) -> Player:
    if key is None:
        fix = "send it in the header X-API-Key; POST /v1/agents/register gives one"
        raise WorldRefused("key_missing", "this route needs a key.", fix=fix)
    return book.player_of(key)


Caller = Annotated[Player, Depends(_caller)]
router = APIRouter(route_class=JsonRoute)


@router.get("/.well-known/leviathan-agent.json")
def discovery() -> dict[str, Any]:
    """The name, versions, capabilities and routes of this world."""
    own = [route for route in router.routes if isinstance(route, APIRoute)]
    routes = sorted(f"{method} {route.path}" for route in own for method in route.methods or ())
    return {
        "name": "council",
        "version": __version__,
        "api_version": "v1",
        "capabilities": _CAPABILITIES,
        "endpoints": ["GET /health", *routes],
    }


@router.post("/v1/agents/register")
async def register(book: BookHere, asked: Registration) -> Membership:
    """A member and a key for a new player. Needs no key. 409 when every living member has a player."""
    joined, key = await book.register(asked.name, asked.description)
    return Membership(agent_id=joined.agent_id, api_key=key, member_id=joined.member_id)


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


@router.post("/v1/world/actions", responses=_LATE)
async def act(book: BookHere, caller: Caller, asked: Submission) -> Acceptance:
    """Code for the open round. It runs in a sandbox after the deadline."""
    submission_id = await book.act(caller, asked.code, asked.idempotency_key)
    return Acceptance(round_id=_round_of(submission_id), submission_id=submission_id)


@router.post("/v1/world/mechanisms/propose", responses=_LATE)
async def propose(book: BookHere, caller: Caller, asked: ProposalRequest) -> ProposalReceipt:
    """A change of rules. The code runs once, in a sandbox, when the round is settled; then the players vote."""
    mechanism_id = await book.propose(caller, asked.code, asked.description, asked.idempotency_key)
    return ProposalReceipt(round_id=_round_of(mechanism_id), mechanism_id=mechanism_id)


@router.get("/v1/world/mechanisms")
def mechanisms(book: BookHere, status: MechanismStatus | None = None, limit: Count = 100) -> list[MechanismView]:
    """The newest proposals, newest first."""
    return [MechanismView(**told) for told in book.mechanisms(status or "", limit)]


@router.get("/v1/world/mechanisms/{mechanism_id}")
def mechanism(book: BookHere, mechanism_id: str) -> MechanismView:
    return MechanismView(**book.mechanism(mechanism_id))


@router.post("/v1/world/mechanisms/{mechanism_id}/vote", responses=_LATE)
async def vote(book: BookHere, caller: Caller, mechanism_id: str, asked: MechanismVote) -> Acceptance:
    """Your member's vote. Its last one counts, when a round is settled."""
    submission_id = await book.vote(caller, mechanism_id, asked.vote, asked.idempotency_key)
    return Acceptance(round_id=_round_of(submission_id), submission_id=submission_id)


@router.get("/v1/world/rules")
def rules(book: BookHere) -> list[RuleView]:
    """The rules that a mechanism may change, with their values now and their bounds. Quantities and shares are thousandths."""
    now = book.world()[0].rules
    return [
        RuleView(name=name, value=now[name], least=rule.least, most=rule.most, meaning=rule.meaning)
        for name, rule in RULES.items()
    ]


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
    now = book.require_round()
    last = book.receipts(now.round_id - 2, 1)
    return {"round_id": now.round_id, "state": now.phase, "last_receipt": last[-1] if last else None}


@router.get("/v1/world/rounds/current/deadline")
def deadline(book: BookHere) -> Deadline:
    """The window of the open round. Needs no key."""
    now = book.require_round()
    ends, left_s = deadline_utc(now), round(book.left_s(now), 3)
    return Deadline(round_id=now.round_id, state=now.phase, deadline_utc=ends, seconds_remaining=left_s)


@router.get("/v1/world/rounds/{round_id}")
def settled(book: BookHere, round_id: Annotated[int, Path(le=_HIGHEST)]) -> dict[str, Any]:
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
    request: Request, book: BookHere, last_event_id: Annotated[int, Header(ge=0, le=_HIGHEST)] = 0
) -> AsyncIterator[ServerSentEvent]:
    """Events as they come, after `Last-Event-ID`. It ends when the server stops."""
    broadcast: Broadcast = request.app.state.broadcast
    after = last_event_id
    with broadcast.listening() as listener:
        while True:
            found = await asyncio.to_thread(book.events, sql.EVENTS_AFTER, after, _MOST)
            for event in found:
                after = event["event_id"]
                yield ServerSentEvent(data=event, event=event["event_type"], id=str(after))
            if listener.is_over.is_set():
                return
            if not found and not await listener.news(WorldRound, WorldChange):
                yield ServerSentEvent(comment="still here")


async def late(request: object, error: Exception) -> JSONResponse:
    """The answer that the source document gives to a submission outside its window, as 409."""
    assert isinstance(error, Late)
    return JSONResponse(Rejection(reason=error.message, round_id=error.round_id).model_dump(), 409)


def _round_of(submission_id: str) -> int:
    return int(submission_id.split("-")[0])
