"""The one mechanism of the window: a page is a path, a documented value, a function that builds it, and a template.

The value is also the page's `.json`. A page that grows has a stream at `.live`, which sends its inside again whenever it has
changed. The stream ends with the reason once the person may not see the page any more. A form is a command that a page gives;
refused, the page is shown again with the reason.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.sse import format_sse_event
from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from council import __version__
from council.desk.desk import Desk
from council.desk.workspace_desk import project_of
from council.errors import CouncilError
from council.events import Event, SpeechPiece
from council.reports.agent_markdown import AgentMarkdown
from council.reports.explain import ExplainedRun
from council.reports.html_report import REPORT_TEMPLATES, report_environment, report_values
from council.safety.untrusted import spelled_out
from council.web.forms import faults_of, texts_of
from council.web.live_updates import STILL_S, Broadcast, Floor, Listener, LiveStream
from council.web.sign_in import Person, administrator, person
from council.web.window_pictures import FIGURES, course_picture, land_picture, suite_picture
from council.web.window_words import word_filters

Shown = TypeVar("Shown")
Filters = Mapping[str, str]

_HERE = Path(__file__).parent
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".txt": "text/plain", ".svg": "image/svg+xml"}
_CACHED = {"Cache-Control": "public, max-age=86400"}  # the address has the version
_PLACES = {"projectId", "taskId", "noteId"}  # filters by which the panel knows its project
_TOGETHER_S = 0.25  # changes within this time are sent once
_SETTLED_S = 1.2  # the state file of a crowded daemon is that late


@dataclass(frozen=True)
class WindowPage(Generic[Shown]):
    """A page. `path` may hold parameters, which `build` finds among the filters of the URL.

    `label` is its word in the navigation, empty for a page that is reached from others. `hears`: true for an event that
    may change it; None: it does not grow. `connects`: the frame opens its stream; else its template does. `speaking` names
    the runs whose words it shows while they are said.
    """

    path: str
    label: str
    template: str
    build: Callable[[Desk, Person, Filters], Shown]
    is_for: Literal["everybody", "administrators"] = "everybody"
    hears: Callable[[Event, Filters], bool] | None = None
    connects: bool = True
    speaking: Callable[[Shown], Collection[str]] = lambda shown: ()


class OwnAddress(Exception):
    """The run asked for has a page of its own, under this id."""


@dataclass(frozen=True)
class PageAction:
    """The action behind a form of `page`. `obey` returns the address to go on to, and raises CouncilError to refuse."""

    path: str
    page: WindowPage[Any]
    obey: Callable[[Desk, Person, Filters, FormData], str]


@dataclass(frozen=True)
class FormRefusal:
    """A form that was refused, shown above the page: the error, and what was typed."""

    error: CouncilError
    typed: Mapping[str, str]


@dataclass(frozen=True)
class Window:
    """All pages and their actions over one desk."""

    desk: Desk
    pages: Sequence[WindowPage[Any]]
    actions: Sequence[PageAction]
    broadcast: Broadcast
    floor: Floor

    def routes(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/", lambda: RedirectResponse(self.pages[0].path, 303))
        router.add_api_route("/static/{name}", static_file)
        for page in self.pages:
            for route in (self._json(page), *([self._live(page, page.hears)] if page.hears else ()), self._page(page)):
                router.add_api_route(*route)
        for action in self.actions:
            router.add_api_route(action.path, self._obeyed(action), methods=["POST"])
        return router

    def _page(self, page: WindowPage[Any]) -> tuple[str, Callable[[Request], Response]]:
        def shown(request: Request) -> Response:
            return self._html(page, request, _asked(request))

        return page.path, shown

    def _json(self, page: WindowPage[Any]) -> tuple[str, Callable[[Request], Response]]:
        def told(request: Request) -> Response:
            value = self._built(page, request, _asked(request))[1]
            return Response(msgspec.json.encode(value), media_type="application/json")

        return f"{page.path}.json", told

    def _obeyed(self, action: PageAction) -> Callable[[Request], Any]:
        async def obeyed(request: Request) -> Response:
            asking = await asyncio.to_thread(person, request)  # before anything is read of the body
            if action.page.is_for == "administrators":
                administrator(asking)
            told = Message()
            told["Content-Type"] = request.headers.get("content-type", "")
            if told.get_content_charset("utf-8") != "utf-8":
                raise HTTPException(400, "a form is sent as UTF-8, and this one names another encoding")
            fields, asked = await request.form(max_files=1), _asked(request)
            try:
                return RedirectResponse(await asyncio.to_thread(action.obey, self.desk, asking, asked, fields), 303)
            except CouncilError as error:
                refusal = FormRefusal(error, texts_of(fields))
                return await asyncio.to_thread(self._html, action.page, request, asked, refusal)

        return obeyed

    def _live(
        self, page: WindowPage[Any], hears: Callable[[Event, Filters], bool]
    ) -> tuple[str, Callable[[Request], Response]]:
        def stream(request: Request) -> Response:
            asked = _asked(request)
            self._built(page, request, asked)  # refused before it begins

            def look() -> tuple[Any, str]:
                asking, value = self._built(page, request, asked)
                return value, self._rendered(page.template, "inside.html", value, asking, page, asked, None, "")

            async def content(listener: Listener) -> AsyncIterator[bytes]:
                sent = request.headers.get("last-event-id", "")
                changed, pause_s, speaking = True, 0.0, set[str]()
                try:
                    while not listener.is_over.is_set():
                        if changed:
                            value, html = await asyncio.to_thread(look)
                            digest = hashlib.sha256(html.encode()).hexdigest()[:16]
                            speaking = set(page.speaking(value))
                            if digest != sent:
                                sent = digest
                                yield format_sse_event(data_str=html, id=digest)
                        heard = await listener.next(pause_s or STILL_S)
                        if heard is None:  # quiet: once the state has settled it is looked at again
                            changed, pause_s = bool(pause_s), 0.0
                            if not changed:
                                await asyncio.to_thread(person, request)  # a session that is over ends its streams
                                yield b": still here\n\n"
                            continue
                        await asyncio.sleep(_TOGETHER_S)
                        events = [heard[1], *(event for _, event in listener.rest())]
                        changed = any(hears(event, asked) for event in events if not isinstance(event, SpeechPiece))
                        pause_s = _SETTLED_S if changed else pause_s
                        spoken = {event.run_id for event in events if isinstance(event, SpeechPiece)} & speaking
                        for run_id in () if changed else spoken:
                            words = self.templates.get_template("words.html").render(words=self.floor.words_in(run_id))
                            said = f'<hx-partial hx-target="#said-{escape(run_id)}" hx-swap="innerHTML">{words}</hx-partial>'
                            yield format_sse_event(data_str=said)
                except CouncilError as gone:  # the session is over, or what the page shows is not there any more
                    if page.connects:
                        error = self.templates.get_template("error.html").render(layout="inside.html", shown=gone)
                        yield format_sse_event(data_str=error, id="gone")

            return LiveStream(self.broadcast, "", content)

        return f"{page.path}.live", stream

    def _built(self, page: WindowPage[Any], request: Request, asked: Filters) -> tuple[Person, Any]:
        asking = person(request)
        if page.is_for == "administrators":
            administrator(asking)
        try:
            return asking, page.build(self.desk, asking, asked)
        except OwnAddress as own:
            ending = next((end for end in (".json", ".live") if request.url.path.endswith(end)), "")
            to = f"{page.path.format(**{**asked, 'run': own.args[0]})}{ending}"
            raise HTTPException(303, headers={"Location": f"{to}?{request.url.query}".rstrip("?")}) from None

    def _html(
        self, page: WindowPage[Any], request: Request, asked: Filters, refusal: FormRefusal | None = None
    ) -> Response:
        asking, status = person(request), refusal.error.http_status if refusal else 200
        template = page.template
        try:
            value = self._built(page, request, asked)[1]
        except CouncilError as error:
            value, template, status = error, "error.html", error.http_status
        live = ""
        if page.hears and page.connects and request.method == "GET" and template != "error.html":
            live = f"{request.url.path}.live?{urlencode(request.query_params)}".rstrip("?")
        return HTMLResponse(self._rendered(template, "frame.html", value, asking, page, asked, refusal, live), status)

    def _rendered(
        self, template: str, layout: str, value: Any, asking: Person, page: WindowPage[Any], asked: Filters,
        refusal: FormRefusal | None, live: str,
    ) -> str:  # fmt: skip
        seen = [one for one in self.pages if one.label and (one.is_for == "everybody" or asking.is_administrator)]
        return self.templates.get_template(template).render(
            layout=layout, shown=value, person=asking, here=page, asked=asked, refusal=refusal, live=live, menu=seen,
            version=__version__, now=datetime.now(UTC),
            about=project_of(self.desk, asking.id, asked) if _PLACES & asked.keys() else "",
        )  # fmt: skip

    @cached_property
    def templates(self) -> Environment:
        return environment()


def environment() -> Environment:
    """The templates of the window, and those of the report that it shares."""
    made = report_environment(_HERE / "templates")
    made.filters.update(word_filters())
    made.filters["moment"] = lambda time: f"{str(time)[:16].replace('T', ' ')} UTC"
    made.globals.update(query=with_filters, faults_of=faults_of, FIGURES=FIGURES)
    made.globals.update(land_picture=land_picture, course_picture=course_picture, suite_picture=suite_picture)
    made.filters["markdown"] = AgentMarkdown({})
    made.filters["spelled"] = spelled_out

    def of_report(name: str, explained: ExplainedRun) -> Markup:
        return Markup(made.get_template(name).render(**report_values(explained)))  # noqa: S704  escaped by the template

    for name in ("run_head", "run_body"):
        made.globals[name] = partial(of_report, f"{name}.html")
    return made


def with_filters(asked: Filters, path: str, **changed: str) -> str:
    """The address of `path` with the filters as they are, and those that are changed; an empty one goes."""
    kept = {name: value for name, value in {**asked, **changed}.items() if value and f"{{{name}}}" not in path}
    return f"{path}?{urlencode(kept)}" if kept else path


def _asked(request: Request) -> Filters:
    return {**request.query_params, **request.path_params}


def static_file(name: str) -> Response:
    """A file of ours. The style sheet of the window is that of the report, and what only a window has."""
    path = _HERE / "static" / Path(name).name
    if path.suffix not in _MEDIA_TYPES or not path.is_file():
        raise HTTPException(404)
    data = (REPORT_TEMPLATES / "report.css").read_bytes() if name == "window.css" else b""
    return Response(data + path.read_bytes(), 200, _CACHED, _MEDIA_TYPES[path.suffix])
