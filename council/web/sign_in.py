"""The person who asks over HTTP: a program by its key, a browser by the cookie of its session.

A session begins with a one-time link (`council ui`) or a key. Roles are looked up at each request, so that a person who
lost them is refused at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from council.desk.desk import Desk
from council.errors import EXIT_REFUSED, CouncilError, GivenCode
from council.ids import Principal, SystemClock
from council.storage.store import Tx
from council.users.api_keys import key_holder
from council.users.people import principal_in
from council.users.sign_in_links import SignInRefused, end_session, open_session, session_holder
from council.web.problems import problem, templates
from council.web.rate_limits import KEY_HEADER

COOKIE = "council_session"
_CLOCK = SystemClock()


class SignInNeeded(CouncilError):
    """Nobody is signed in, or not any more."""

    code = "sign_in_needed"
    exit_code = EXIT_REFUSED
    http_status = 401


class AdministratorNeeded(CouncilError):
    """A page or a route that shows more than one's own."""

    code = "administrator_needed"
    exit_code = EXIT_REFUSED
    http_status = 403


@dataclass(frozen=True)
class Person:
    """The person who asks, with the roles of this moment. `by`: a program's key, or a browser's session."""

    principal: Principal
    by: Literal["key", "session"]

    @property
    def id(self) -> str:
        return self.principal.id

    @property
    def is_administrator(self) -> bool:
        """True for the steward, too."""
        return self.principal.is_administrator

    @property
    def user(self) -> str | None:
        """The key `user` of a command that this person gives. None for the steward."""
        return None if self.principal.kind == "steward" else self.id


class PersonView(BaseModel):
    id: str
    kind: str
    by: str


def desk_of(request: Request) -> Desk:
    """The desk behind the server."""
    desk: Desk = request.app.state.desk
    return desk


def person(request: Request) -> Person:
    """The person who asks. Raises SignInNeeded, NoPrincipal, StorageFailed."""
    key, session = request.headers.get(KEY_HEADER), request.cookies.get(COOKIE)

    def look(tx: Tx) -> Person | None:
        found = session_holder(tx, _CLOCK, session or "") if key is None else key_holder(tx, _CLOCK, key)
        return None if found is None else Person(principal_in(tx, found), "session" if key is None else "key")

    asking = desk_of(request).store.read(look)
    if asking is None:
        fix = "`council ui` signs a browser in; a program sends a key of `council keys add` in the header X-API-Key"
        raise SignInNeeded("you are not signed in.", fix=fix)
    return asking


Asking = Annotated[Person, Depends(person)]


def administrator(asking: Asking) -> Person:
    """The person who asks, if an administrator or the steward. Raises as `person`, and AdministratorNeeded."""
    if not asking.is_administrator:
        fix = f"ask the steward: `council users roles {asking.id} --grant administrator` grants it"
        raise AdministratorNeeded(f"only the steward and administrators see this, and {asking.id} is neither.", fix=fix)
    return asking


Administrator = Annotated[Person, Depends(administrator)]
DeskHere = Annotated[Desk, Depends(desk_of)]
router = APIRouter()


@router.get("/v1/me")
def me(asking: Asking) -> PersonView:
    """The person who asks, and by what they came in."""
    return PersonView(id=asking.id, kind=asking.principal.kind, by=asking.by)


@router.get("/sign-in", include_in_schema=False)
def sign_in_page(link: str = "", to: str = "/") -> HTMLResponse:
    """The page on which a person signs in. A link is used up by its button: programs that fetch links ahead use none up."""
    return _page(200, link=link, to=to)


@router.post("/sign-in", include_in_schema=False)
async def sign_in(request: Request, desk: DeskHere) -> Response:
    """A session for the word of the form, and on to the page that was wanted."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    word, to = (form.get(name, [""])[-1].strip() for name in ("word", "to"))

    def opened() -> str:
        with desk.safe() as safe:
            return open_session(safe.trail.log(), word, desk.settings.session_ttl_s)

    try:
        session = await asyncio.to_thread(opened)
    except SignInRefused as refused:
        return _page(401, to=to, refused=refused)
    answer = RedirectResponse(to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/", 303)
    age_s, secure = int(desk.settings.session_ttl_s), desk.settings.behind_tls
    answer.set_cookie(COOKIE, session, age_s, httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/sign-out", include_in_schema=False)
def sign_out(request: Request, desk: DeskHere) -> Response:
    """Ends the session."""
    with desk.safe() as safe:
        end_session(safe.trail.log(), request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=desk.settings.behind_tls)
    return answer


def ask_to_sign_in(app: FastAPI) -> None:
    """A browser that is not signed in gets the page for it, a program the problem. What a form sent is not kept."""

    @app.exception_handler(SignInNeeded)
    async def needed(request: Request, error: SignInNeeded) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            query = f"?{request.url.query}" if request.url.query else ""
            is_form = request.method != "GET"
            return _page(401, to="/" if is_form else f"{request.url.path}{query}", refused=error if is_form else None)
        by_key = {"WWW-Authenticate": "ApiKey"}
        return problem(request, 401, GivenCode(error.code), error.message, fix=error.fix, headers=by_key)


def _page(status: int, *, link: str = "", to: str = "/", refused: CouncilError | None = None) -> HTMLResponse:
    return HTMLResponse(templates().get_template("sign_in.html").render(link=link, to=to, refused=refused), status)
