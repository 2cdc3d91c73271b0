"""Bodies of the JSON routes. A body is read as JSON whatever its `Content-Type` says, as `curl -d` sends a form's.

The type keeps no foreign page out: the gate does that, by `Sec-Fetch-Site` and `Origin`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute

from council.commands.json_faults import fault_of


class JsonRoute(APIRoute):
    """A route whose body is JSON. A key that stands twice in it is refused: one of the values would be lost."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer

        async def answer_json(request: Request) -> Response:
            headers = [header for header in request.scope["headers"] if header[0] != b"content-type"]
            named = {**request.scope, "headers": [*headers, (b"content-type", b"application/json")]}
            asked = Request(named, request.receive)
            body = await asked.body()
            try:
                if body:  # an empty one is a missing one, if it is needed at all
                    json.loads(body, object_pairs_hook=_once)
            except RecursionError:
                raise _fault("is nested too deeply") from None
            except UnicodeDecodeError:
                raise _fault("is not text in UTF-8") from None
            except json.JSONDecodeError as error:
                place = f"line {error.lineno}, column {error.colno}"
                raise _fault(f"is not JSON: {fault_of(body.decode(errors='replace'), error)} ({place})") from None
            except ValueError:  # an integer of thousands of digits
                raise _fault("has a number with too many digits") from None
            return await answer(asked)

        return answer_json


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _fault("this key stands twice", key)
        found[key] = value
    return found


def _fault(words: str, *key: str) -> RequestValidationError:
    return RequestValidationError([{"loc": ("body", *key), "msg": words, "type": "json"}])
