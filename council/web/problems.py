"""Errors as HTTP tells them: `application/problem+json` (RFC 9457) from the error tree, never with a traceback. A browser gets a
page with the same words."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from council.commands.file_formats import problems_of
from council.commands.parsing import fault_in_words
from council.errors import CommandInvalid, CouncilError, GivenCode
from council.web.window_words import word_filters

log = logging.getLogger(__name__)

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_FAULTS = 20  # of one request
WebCode = Literal[
    "bad_request", "content_too_large", "foreign_page", "host_unknown", "internal", "method_not_allowed", "not_found",
    "rate_limited", "request_invalid",
]  # fmt: skip
"""The codes of what no error of the tree tells."""

_CODES: dict[int, WebCode] = {
    400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "content_too_large",
}  # fmt: skip


_FIXES: dict[str, str] = {
    "not_found": "see /openapi.json for the paths, or begin at /now",
    "method_not_allowed": "see /openapi.json for the methods of this path",
}


class ProblemBody(BaseModel):
    """The body of every error."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    fix: str = ""


PROBLEM: dict[str, Any] = {
    "description": "What is wrong, and how to mend it.",
    "content": {"application/problem+json": {"schema": ProblemBody.model_json_schema()}},
}


def problem(
    request: Request,
    status: int,
    code: WebCode | GivenCode,
    detail: str,
    *,
    fix: str = "",
    headers: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
) -> Response:
    """A response whose body says what is wrong, and how to mend it; `data` are further keys of the body. A browser gets a page
    with the same words."""
    fix = fix or _FIXES.get(code, "")
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/"):
        page = templates().get_template("trouble.html").render(status=status, detail=detail, fix=fix)
        return HTMLResponse(page, status, headers)
    told = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code, "detail": detail}
    body = {**(data or {}), **told, **({"fix": fix} if fix else {})}
    return JSONResponse(body, status, headers, media_type="application/problem+json")


@cache
def templates() -> Environment:
    """The templates of pages that nobody needs to be signed in for."""
    made = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined)
    made.filters.update(word_filters())
    return made


def tell_problems(app: FastAPI) -> None:
    """Every error that leaves a route becomes a problem."""

    @app.exception_handler(CouncilError)
    async def council_error(request: Request, error: CouncilError) -> Response:
        data: dict[str, Any] = {}
        for key, value in error.data.items():
            with contextlib.suppress(TypeError, ValueError):  # what is no JSON is left out
                json.dumps(value, allow_nan=False)
                data[key] = value
        if isinstance(error, CommandInvalid):
            data["problems"] = [asdict(found) for found in problems_of(error)]
        headers = {"WWW-Authenticate": "ApiKey"} if error.http_status == HTTPStatus.UNAUTHORIZED else None
        code = GivenCode(error.code)
        return problem(request, error.http_status, code, error.message, fix=error.fix, data=data, headers=headers)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code) or GivenCode(HTTPStatus(error.status_code).name.lower())
        return problem(request, error.status_code, code, f"{str(error.detail).rstrip('.')}.", headers=error.headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        # Nobody reads it, and it is no defect.
        return problem(request, 400, "bad_request", "the request ended too early.")

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        found: list[Any] = [{**fault} for fault in error.errors()[:_MOST_FAULTS]]
        for fault in found:
            fault.pop("input", None)  # it may be a secret
        faults = [{"where": ".".join(map(str, one["loc"])), "problem": fault_in_words(one)[0]} for one in found]
        fix = "see /openapi.json for what fits"
        return problem(request, 422, "request_invalid", "the request does not fit.", fix=fix, data={"faults": faults})

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        log.exception("%s %s met a defect", request.method, request.url.path)
        detail = f"an internal error ({type(error).__name__}); the log has the details."
        return problem(request, 500, "internal", detail)
