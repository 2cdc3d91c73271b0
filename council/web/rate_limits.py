"""The limits on who may ask how often: a token bucket per address and per key, in a bounded table.

A bucket holds a minute's worth of requests and fills at an even pace. The table forgets who asked longest ago: that one's
bucket is full again, or nearly so. Requests that are refused cost as much as those that are answered, so that keys cannot
be guessed faster.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from council.web.problems import problem

KEY_HEADER = "x-api-key"
_MOST_BUCKETS = 10_000
_PUBLIC = ("/health",)  # asked by whoever keeps the daemon alive, as often as they like


class RateLimit:
    """`per_minute` requests for each name, at most so many at once."""

    def __init__(self, per_minute: int, now_s: Callable[[], float]) -> None:
        self._most = float(per_minute)
        self._per_s = per_minute / 60
        self._now_s = now_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when that was

    def wait_s(self, name: str) -> float:
        """Takes one request from the bucket of `name`: 0, or the seconds until there is one again."""
        now_s = self._now_s()
        left, since_s = self._buckets.pop(name, (self._most, now_s))
        left = min(self._most, left + (now_s - since_s) * self._per_s)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now_s)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._per_s


class RateGate:
    """Answers 429 with `Retry-After` once an address or a key has asked too often."""

    def __init__(self, app: ASGIApp, limit: RateLimit) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _PUBLIC:
            await self._app(scope, receive, send)
            return
        key = Headers(scope=scope).get(KEY_HEADER, "")
        names = [f"address {scope['client'][0] if scope.get('client') else ''}"]
        names += [f"key {hashlib.sha256(key.encode()).hexdigest()}"] if key else []
        wait_s = max(self._limit.wait_s(name) for name in names)
        if not wait_s:
            await self._app(scope, receive, send)
            return
        retry_s = math.ceil(wait_s)
        refused = problem(
            Request(scope), 429, "rate_limited", "too many requests from this address or with this key.",
            fix=f"ask again in {retry_s} s", headers={"Retry-After": str(retry_s)},
        )  # fmt: skip
        await refused(scope, receive, send)
