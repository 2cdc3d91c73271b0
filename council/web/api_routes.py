"""The routes of people's programs: what `council …` does, as JSON. They hold no rule: every write is a command, dropped in
the person's name, or a function of the workspace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import new_class
from typing import Annotated, Any, Literal, get_args

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Security
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse, Response
from fastapi.security import APIKeyCookie, APIKeyHeader
from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict, Field

from council.agents.manifest import AgentNotFound
from council.commands.file_formats import read_document
from council.commands.schema import command_schema
from council.commands.types import CommandTypes
from council.desk.agent_memory import remembered, task_json
from council.desk.ask_and_wait import Asking as Question
from council.desk.ask_and_wait import AskReply, reply_of
from council.desk.audit_verification import ChainReport, audit_of, chain_report, record_json
from council.desk.conversations import ConversationEntry, Exchange, conversations, exchange_of, requests_of
from council.desk.cortex_index import ask_index
from council.desk.desk import Desk
from council.desk.drop_and_wait import awaited
from council.desk.overview import HomeState, overview
from council.desk.plan_lookup import find_plan, moment, plan_json, seen_plans, token_of
from council.desk.replays import explained, replayed
from council.desk.run_lookup import find_all, find_seen, raw_page
from council.desk.specialists_desk import find_specialist, listed, rate_uses, report, specialist_json, versions
from council.desk.validation import FileVerdict, judge
from council.desk.window import ordered, require_success
from council.desk.workspace_desk import change, look
from council.engine.ledger import RunEntry
from council.engine.receipts import Receipt
from council.errors import CommandInvalid, CouncilError
from council.events import AnyEvent, Event, SpeechPiece
from council.knowledge.cortex.cortex import CortexAnswer, Scope
from council.plans.plan import State
from council.redaction import Secret
from council.reports.explain import Explanation
from council.specialists.specialist_registry import TelemetryRow
from council.web.json_bodies import JsonRoute
from council.web.live_updates import Broadcast, Listener, LiveStream
from council.web.pagination import Row
from council.web.rate_limits import KEY_HEADER
from council.web.sign_in import COOKIE, Administrator, Asking, DeskHere, Person, person
from council.workspace.functions import ACTIONS, Verb

_MOST = 500
_WAITED_S = 10.0
_NAME = Path("command.json")
_LOCKS = {"lock": "lockNote", "unlock": "unlockNote", "remove-lock": "removeLock"}
Decision = Literal["confirm", "apply", "reject", "undo"]
Lock = Literal["lock", "unlock", "remove-lock"]

Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the end; then the answer is 202.")]
Count = Annotated[int, Query(ge=1, le=_MOST)]
PartNumber = Annotated[int, Query(ge=1, le=1_000_000)]
IdempotencyKey = Annotated[
    str | None, Header(description="The command's `id`: sent again, it is answered by its receipt.")
]


class ListPart:
    """A part of a list, by its number from 1. Every list is read so."""

    def __init__(self, part: PartNumber = 1, limit: Count = 50) -> None:
        self.limit = limit
        self.skip = (part - 1) * limit

    def part_of(self, rows: Sequence[Row]) -> list[Row]:
        return [*rows[self.skip : self.skip + self.limit]]


Paging = Annotated[ListPart, Depends()]


class RunQuery(BaseModel):
    """The runs that a program asks for. `since` is `7d`, a date or a time, as `council runs` takes it."""

    model_config = ConfigDict(extra="forbid")
    words: str = ""
    since: str = ""
    lane: str = ""
    part: PartNumber = 1
    limit: Count = 50


@dataclass(frozen=True)
class Progress:
    """A run that has not ended, as the daemon tells it. `run_id` is empty until it is admitted."""

    run_id: str
    status: str = "queued"
    location: str = ""


@dataclass(frozen=True)
class RunView:
    """A run: its row, and its receipt once it has ended."""

    run: RunEntry
    receipt: Receipt | None


@dataclass(frozen=True)
class RunList:
    """Runs, newest first. `all` counts those that fit, on every page."""

    runs: list[RunEntry]
    all: int


@dataclass(frozen=True)
class PlanOutcome:
    """A plan as it is decided, and the receipt. `token` applies a plan that was confirmed, until then; else both are empty."""

    plan: dict[str, Any]
    receipt: Receipt
    token: str = ""
    until: str = ""


@dataclass(frozen=True)
class WorkspaceChange:
    """A change that was made, and the id of its row."""

    summary: str
    id: str


class Rating(BaseModel):
    """A person's word on the use of a specialist."""

    model_config = ConfigDict(extra="forbid")
    rating: Literal["good", "bad"]


class LockedNote(BaseModel):
    """A note and the secret of its lock."""

    model_config = ConfigDict(extra="forbid")
    noteId: str = Field(max_length=64)
    secret: str = Field(default="", max_length=1_000)


def _answers(kind: Any, *, is_list: bool = False, waits: bool = False) -> dict[str, Any]:
    """The OpenAPI's part on a route that answers with this kind."""

    def told(kind: Any, description: str, *, is_list: bool = False) -> dict[str, Any]:
        shape = {"$ref": f"#/components/schemas/{kind.__name__}"}
        schema = {"type": "array", "items": shape} if is_list else shape
        return {"description": description, "content": {"application/json": {"schema": schema}}}

    later = {202: told(Progress, "It goes on.")} if waits else {}
    return {"response_class": Response, "responses": {200: told(kind, "Done.", is_list=is_list), **later}}


def _told(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


_KINDS = (
    Receipt, Progress, RunView, RunList, Explanation, FileVerdict, AskReply, PlanOutcome, WorkspaceChange, CortexAnswer,
    ChainReport, HomeState, ConversationEntry, Exchange, TelemetryRow,
)  # fmt: skip
_KEY = APIKeyHeader(name=KEY_HEADER, scheme_name="Key", auto_error=False, description="`council keys add` makes one.")
_SESSION = APIKeyCookie(name=COOKIE, scheme_name="Session", auto_error=False, description="Signing in sets it.")
router = APIRouter(prefix="/v1", route_class=JsonRoute, dependencies=[Security(_KEY), Security(_SESSION)])

# ── writing: each is the drop that every door makes ──────────────────────────────────────────────────────────────────


async def _ordered(desk: Desk, asking: Person, body: Mapping[str, Any], wait_s: float) -> Receipt | Progress:
    """The receipt of a command, or its run where that goes on. Raises CouncilError where it is refused."""
    errand = await asyncio.to_thread(ordered, desk, asking.user, body)
    if isinstance(errand, Receipt):
        return errand
    if receipt := await awaited(errand.answer, wait_s):
        return receipt
    found: Receipt | dict[str, Any] | None = await awaited(lambda: errand.answer() or errand.run(), _WAITED_S)
    if isinstance(found, Receipt):
        return found
    run_id = str(found["run_id"]) if found else ""
    return Progress(run_id, str(found["status"]) if found else "queued", f"/v1/runs/{run_id}" if run_id else "")


async def _body(request: Request, key: str | None = None, *, may_be_empty: bool = False) -> dict[str, Any]:
    """The command that was sent, read as the inbox reads a file; `key` is its `id`. Raises CommandInvalid."""
    if may_be_empty and not (await request.body()).strip():
        return {}
    value = read_document(_NAME.name, await request.body()).value
    if not isinstance(value, dict):
        raise CommandInvalid("a command is a JSON object.", fix="see /v1/commands/schema")
    if key is None:
        return value
    if value.get("id") not in (None, key):
        raise CommandInvalid("`id` is not the Idempotency-Key.", fix="leave one of them out", field="id")
    return {**value, "id": key}


def _takes(*types: str, required: bool = True) -> dict[str, Any]:
    """The OpenAPI's part on a body: a command, or the keys of one whose type the route names."""
    names = [f"{name}Keys" for name in types] or ["Command"]
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


@router.post("/commands", openapi_extra=_takes(), **_answers(Receipt, waits=True))
async def give_command(
    request: Request, desk: DeskHere, asking: Asking, wait_s: Wait = 0, idempotency_key: IdempotencyKey = None
) -> Response:
    """Drop a command in your name. The answer is its receipt, or 202 with its run while that goes on."""
    found = await _ordered(desk, asking, await _body(request, idempotency_key), wait_s)
    return _told(found, 202 if isinstance(found, Progress) else 200)


@router.post("/commands/validate", openapi_extra=_takes(), **_answers(FileVerdict))
async def validate_command(request: Request, desk: DeskHere, asking: Asking) -> Response:
    """The judgement of `council validate`: what keeps it from becoming a run, and what else to know. Drops nothing."""
    data = json.dumps({**await _body(request), **({"user": asking.user} if asking.user else {})}).encode()
    return _told(await asyncio.to_thread(judge, desk.commands, desk, _NAME, data))


@router.get("/commands/schema")
def schema_of_commands(desk: DeskHere, asking: Asking) -> dict[str, Any]:
    """The JSON Schema of command files."""
    return command_schema(desk.commands)


@router.post("/ask", openapi_extra=_takes("ask"), **_answers(AskReply, waits=True))
async def ask(
    request: Request, desk: DeskHere, asking: Asking, wait_s: Wait = 30, idempotency_key: IdempotencyKey = None
) -> Response:
    """Ask the conductor: the keys of an `ask` command. The answer is a receipt, or the question that it asks back."""
    return await _replied(desk, asking, {**await _body(request, idempotency_key), "type": "ask"}, wait_s)


@router.post("/ask/{run}/answer", openapi_extra=_takes("answer"), **_answers(AskReply, waits=True))
async def answer(request: Request, desk: DeskHere, asking: Asking, run: str, wait_s: Wait = 30) -> Response:
    """Answer the question that a run of yours waits with: the key `answer`. Its answer comes, or its next question."""
    run_id = await asyncio.to_thread(find_seen, desk, run, asking.principal)
    return await _replied(desk, asking, {**await _body(request), "type": "answer", "run": run_id}, wait_s)


async def _replied(desk: Desk, asking: Person, body: Mapping[str, Any], wait_s: float) -> Response:
    errand = await asyncio.to_thread(ordered, desk, asking.user, body)
    if isinstance(errand, Receipt):
        return _told(await asyncio.to_thread(reply_of, desk, errand))
    question = Question(desk, errand, body)
    if reply := await awaited(question.reply, wait_s):
        return _told(reply)
    found: AskReply | str | None = await awaited(lambda: question.reply() or question.run_id or None, _WAITED_S)
    if isinstance(found, AskReply):
        return _told(found)
    return _told(Progress(found, "running", f"/v1/runs/{found}") if found else Progress(""), 202)


@router.post(
    "/plans/{plan}/{verb}",
    openapi_extra=_takes(*get_args(Decision), required=False),
    **_answers(PlanOutcome, waits=True),
)
async def decide(
    request: Request, desk: DeskHere, asking: Asking, plan: str, verb: Decision, wait_s: Wait = _WAITED_S
) -> Response:
    """Decide a plan of yours, with the keys of that command: `edits` and `leave_out`, `token`, `comment`. No body
    is none of them.

    `confirm` returns the token with which a program applies it within ten minutes. `apply` takes it; the person who confirmed
    needs none.
    """
    found = await asyncio.to_thread(find_plan, desk, plan, asking.principal)
    keys = {**await _body(request, may_be_empty=True), "type": verb, "plan": found.plan_id}
    ended = await _ordered(desk, asking, keys, wait_s)
    if isinstance(ended, Progress):
        return _told(ended, 202)
    require_success(ended)

    def decided() -> PlanOutcome:
        now = find_plan(desk, found.plan_id, asking.principal)
        token = token_of(desk, now) if verb == "confirm" else ""
        return PlanOutcome(plan_json(now), ended, token, moment(now.confirmed_until_ms) if token else "")

    return _told(await asyncio.to_thread(decided))


@cache
def _at_once(kind: type[BaseModel], *, is_list: bool) -> Any:
    """The same arguments, of a list with its part, and not built late: of those FastAPI makes a model with a warning."""
    config = ConfigDict(defer_build=False)
    told: dict[str, Any] = {"model_config": config, "__module__": __name__, "__doc__": kind.__doc__}
    if is_list:
        told |= {"__annotations__": {"part": PartNumber, "limit": Count}, "part": 1, "limit": 50}
    return new_class(kind.__name__, (kind,), {}, lambda names: names.update(told))


def _add_workspace_route(action: Verb) -> None:
    """The route of one function of the workspace, with its arguments as the query or the body."""
    is_list, reads = action.name.startswith("list"), action.effect == "read"
    kind = _at_once(action.arguments, is_list=is_list)

    def reading(desk: DeskHere, asking: Asking, asked: Any) -> Response:
        values = asked.model_dump(exclude_unset=True, exclude={"part", "limit"})
        found = look(desk, action.name, asking.id, values)
        return _told(ListPart(asked.part, asked.limit).part_of(found) if is_list else found)

    def changing(desk: DeskHere, asking: Asking, asked: Any) -> Response:
        return _changed(desk, asking, action.name, asked.model_dump(exclude_unset=True))

    route: Any = reading if reads else changing
    route.__doc__ = f"{action.description[:1].upper()}{action.description[1:]}."
    route.__annotations__["asked"] = Annotated[kind, Query()] if reads else kind
    path, method = f"/workspace/{action.spelled.replace(' ', '/')}", "GET" if reads else "POST"
    plain = {"response_class": Response, "responses": {200: {"description": "Plain values."}}}
    how: dict[str, Any] = plain if reads else _answers(WorkspaceChange)
    router.add_api_route(path, route, methods=[method], operation_id=action.name, **how)


def _changed(
    desk: Desk, asking: Person, name: str, values: Mapping[str, Any], secret: Secret | None = None
) -> Response:
    made = change(desk, name, asking.id, values, secret)
    return _told(WorkspaceChange(made.summary, made.row_id))


for _action in ACTIONS.values():
    _add_workspace_route(_action)


@router.post("/workspace/notes/{verb}", **_answers(WorkspaceChange))
def locks(desk: DeskHere, asking: Asking, verb: Lock, asked: LockedNote) -> Response:
    """Lock your note, unlock one for `unlock_ttl_s`, or take your lock off it."""
    return _changed(desk, asking, _LOCKS[verb], {"noteId": asked.noteId}, Secret(asked.secret))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/runs", **_answers(RunList))
def runs(desk: DeskHere, asking: Asking, asked: Annotated[RunQuery, Query()]) -> Response:
    """The runs that you see, newest first: your own, or all for administrators. They have every one of the `words`."""
    found = find_all(desk, asked.words.split(), since=asked.since, lane=asked.lane, user=asking.principal.sees)
    return _told(RunList(ListPart(asked.part, asked.limit).part_of(found), len(found)))


@router.get("/runs/{run}", **_answers(RunView))
def run(desk: DeskHere, asking: Asking, run: str) -> Response:
    """One run, by its id or its first characters, or `last`."""
    run_id = find_seen(desk, run, asking.principal)
    return _told(RunView(desk.ledger.starting_with(run_id, 1)[0], desk.receipts.read(run_id)))


@router.get("/runs/{run}/artifact", response_class=PlainTextResponse)
def artifact(desk: DeskHere, asking: Asking, run: str) -> PlainTextResponse:
    """The page of a run in Markdown, as far as there is one."""
    return PlainTextResponse(raw_page(desk, find_seen(desk, run, asking.principal)))


@router.get("/runs/{run}/explain", **_answers(Explanation))
def explain(desk: DeskHere, asking: Asking, run: str) -> Response:
    """The course of a run, as `council explain --json` tells it."""
    return _told(explained(desk, find_seen(desk, run, asking.principal)).explanation)


@router.get("/runs/{run}/replay", response_class=PlainTextResponse)
def replay(desk: DeskHere, asking: Asking, run: str) -> PlainTextResponse:
    """The page of an ended run, rendered again from its journal. No model is asked."""
    return PlainTextResponse(replayed(desk, find_seen(desk, run, asking.principal)).page.decode("utf-8", "replace"))


@router.get("/plans")
def plans(desk: DeskHere, asking: Asking, paging: Paging, state: State | None = None) -> list[dict[str, Any]]:
    """The plans that you see, newest first: your own, or all for administrators."""
    fitting = [mark for mark in seen_plans(desk, asking.principal) if state in (None, mark.state)]
    return [plan_json(find_plan(desk, mark.plan_id, asking.principal)) for mark in paging.part_of(fitting)]


@router.get("/plans/{plan}")
def plan(desk: DeskHere, asking: Asking, plan: str) -> dict[str, Any]:
    """One plan, by its id or its first characters."""
    return plan_json(find_plan(desk, plan, asking.principal))


@router.get("/ask", **_answers(ConversationEntry, is_list=True))
def history(desk: DeskHere, asking: Asking, paging: Paging) -> Response:
    """Your conversations with the conductor, newest first."""
    return _told(paging.part_of(conversations(desk, asking.id)))


@router.get("/ask/{conversation}", **_answers(Exchange, is_list=True))
def conversation(desk: DeskHere, asking: Asking, paging: Paging, conversation: str) -> Response:
    """The requests of a conversation of yours and their answers, oldest first; the newest ones are part 1."""
    newest = paging.part_of(requests_of(desk, conversation, asking.id))
    return _told([exchange_of(desk, entry) for entry in reversed(newest)])


@router.get("/specialists")
def all_specialists(desk: DeskHere, asking: Asking, paging: Paging) -> list[dict[str, Any]]:
    """The specialists that serve you, with their figures; all for administrators."""
    return [specialist_json(one, desk.settings.model) for one in paging.part_of(listed(desk, asking.id))]


@router.get("/specialists/{name}")
def specialist(desk: DeskHere, asking: Asking, name: str) -> dict[str, Any]:
    """A specialist by its role or its id: its spec, figures and versions, and the audit minister's findings."""
    one = find_specialist(desk, name, asking.id)
    known = [{**msgspec.to_builtins(each), "created_at": moment(each.created_at)} for each in versions(desk, one)]
    may_audit = one.scope == "user" or asking.is_administrator
    findings = list(report(desk, one, asking.id).findings) if may_audit else []
    return {**specialist_json(one, desk.settings.model), "versions": known, "findings": findings}


@router.post("/specialists/uses/{run}", **_answers(TelemetryRow, is_list=True))
def rate(desk: DeskHere, asking: Asking, run: str, asked: Rating) -> Response:
    """Rate what a specialist did for you in a run. A use that you call bad counts as a failure."""
    return _told(rate_uses(desk, find_seen(desk, run, asking.principal), asking.id, is_good=asked.rating == "good"))


@router.get("/cortex", **_answers(CortexAnswer))
def cortex(
    desk: DeskHere,
    asking: Administrator,
    question: str,
    scope: Scope = "files",
    limit: Annotated[int, Query(ge=1, le=50)] = 5,
) -> Response:
    """The passages of the home's files that fit a question best."""
    return _told(ask_index(desk, question, scope, limit))


@router.get("/audit")
def audit(desk: DeskHere, asking: Administrator, paging: Paging) -> list[dict[str, Any]]:
    """The records of the audit, oldest first; the last ones are part 1. `detail` is null where its words are forgotten."""
    with audit_of(desk) as log:
        return [record_json(one) for one in (log.tail(paging.limit, skip=paging.skip) if log is not None else ())]


@router.get("/audit/verify", **_answers(ChainReport))
def audit_verdict(desk: DeskHere, asking: Administrator) -> Response:
    """Every record checked, the end of the chain, and each file that the records name."""
    with audit_of(desk) as log:
        return _told(chain_report(desk, log))


@router.get("/council/status", **_answers(HomeState))
def status(desk: DeskHere, asking: Administrator) -> Response:
    """The state of the home, as `council status --json` tells it."""
    return _told(overview(desk))


@router.get("/council/agents")
def agents(desk: DeskHere, asking: Administrator, paging: Paging) -> list[dict[str, Any]]:
    """The agents of this home: their manifests, without their instructions."""
    found = sorted(desk.personas().values(), key=lambda manifest: manifest.role)
    return [manifest.model_dump(mode="json", exclude={"instructions"}) for manifest in paging.part_of(found)]


@router.get("/council/agents/{role}")
def agent(desk: DeskHere, asking: Administrator, role: str, lane: str = "main") -> dict[str, Any]:
    """An agent: its manifest, its instructions, and what it remembers in a lane. A `memory` command changes that."""
    manifest = desk.personas().get(role.upper())
    if manifest is None:
        raise AgentNotFound(f"there is no agent {role.upper()} here.", fix="GET /v1/council/agents lists them")
    loaded = remembered(desk, manifest.role, lane)
    tasks = list(map(task_json, loaded.session.tasks))
    return {"agent": manifest.model_dump(mode="json"), "damage": loaded.damage, "tasks": tasks}


_STREAM = {"text/event-stream": {"schema": {"$ref": "#/components/schemas/Event"}}}  # of the data of each


@router.get("/council/events", response_class=Response, responses={200: {"content": _STREAM}})
def events(
    request: Request, desk: DeskHere, asking: Asking, last_event_id: Annotated[str, Header(max_length=64)] = ""
) -> LiveStream:
    """The daemon's events as they come, after `Last-Event-ID`. A user hears of their own runs. Who is slow is cut off."""
    broadcast: Broadcast = request.app.state.broadcast
    redactor, owned = desk.keys.redactor, set[str]()

    def hears(event: Event) -> bool:
        now = person(request)  # asked anew: a key is revoked and a role withdrawn while the stream is open
        if now.is_administrator or event.run_id in owned:
            return True
        if event.run_id and desk.ledger.user_of(event.run_id) == now.id:
            owned.add(event.run_id)
        return event.run_id in owned

    async def content(listener: Listener) -> AsyncIterator[bytes]:
        try:
            while not listener.is_over.is_set():
                heard = await listener.next()
                if heard is None:
                    await asyncio.to_thread(person, request)
                    yield b": still here\n\n"
                elif not isinstance(heard[1], SpeechPiece) and await asyncio.to_thread(hears, heard[1]):
                    number, event = heard
                    told = json.dumps(redactor.in_texts(msgspec.to_builtins(event)))
                    yield format_sse_event(data_str=told, event=event.kind, id=f"{broadcast.epoch}-{number}")
        except CouncilError:  # the session is over
            return

    return LiveStream(broadcast, last_event_id, content)


# ── what the OpenAPI says ────────────────────────────────────────────────────────────────────────────────────────────


def describe(app: FastAPI, types: CommandTypes) -> None:
    """The OpenAPI with the values that pydantic does not know: commands, receipts, what `explain` says."""

    @cache
    def whole() -> dict[str, Any]:
        told = get_openapi(title=app.title, version=app.version, routes=app.routes)
        spelled = json.dumps(command_schema(types)).replace("#/definitions/", "#/components/schemas/")
        command = json.loads(spelled)
        kinds = (*_KINDS, AnyEvent)
        (*_, event), defined = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
        for schema in defined.values():
            if "description" in schema:  # as older versions of msgspec leave it
                schema["description"] = cleandoc(schema["description"])
        branches = command.pop("definitions")
        for name in ("ask", "answer", *get_args(Decision)):
            keys = deepcopy(branches[types[name].model.__name__])
            for given in ("type", "run", "plan"):  # by the route
                keys["properties"].pop(given, None)
            keys["required"] = [key for key in keys["required"] if key in keys["properties"]]
            defined[f"{name}Keys"] = keys
        told["components"]["schemas"] |= {**branches, "Command": command, "Event": event, **defined}
        return told

    app.openapi = whole  # type: ignore[method-assign]
