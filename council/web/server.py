"""The HTTP server as a companion of the daemon, in its loop: uvicorn, with the daemon's signals left to the daemon.

At a stop the streams that are open end first, then the requests under way, within a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI

from council.errors import ConfigError
from council.settings import Settings
from council.web.live_updates import Broadcast

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")  # a request by another name was sent by a foreign page
MAX_CONNECTIONS = 512
_MAX_HEAD_BYTES = 32 << 10
_KEEP_ALIVE_S = 10
_STOP_S = 5.0  # for requests under way


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn would raise a caught signal again at its end, here the second SIGTERM, which ends the daemon at once."""
        yield


class HttpServer:
    """Serves `application` at `address` until it is cancelled."""

    name = "http"

    def __init__(self, settings: Settings, application: FastAPI, broadcast: Broadcast, *, has_keys: bool) -> None:
        """`has_keys`: somebody's program may call. Raises ConfigError for an address that others reach where something is
        missing that keeps strangers out."""
        self._host, _, port = settings.http.rpartition(":")
        self._port = int(port)
        self._behind_proxy = settings.behind_tls
        if not 0 < self._port < 1 << 16:
            raise ConfigError(f"`http` names the port {port}.", fix="use one from 1 to 65535", field="http")
        wanted = {
            "name the host by which they call it in `http_hosts`": bool(settings.http_hosts),
            "set `behind_tls = true` behind a proxy that speaks TLS": settings.behind_tls,
            "make a key with `council keys add`": has_keys,
        }
        missing = [fix for fix, is_there in wanted.items() if not is_there]
        if self._host not in LOOPBACK_NAMES and missing:
            fix = f"{'; '.join(missing)}; or use 127.0.0.1"
            raise ConfigError(f"`http` is {settings.http!r}, which other machines may reach.", fix=fix, field="http")
        self._application = application
        self._broadcast = broadcast

    async def run(self) -> None:
        """Raises ConfigError when the address cannot be had."""
        family = socket.AF_INET6 if self._host.startswith("[") else socket.AF_INET
        # asyncio sets TCP_NODELAY only where TCP is named; without it each answer waits 40 ms for an acknowledgement.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self._host.strip("[]"), self._port))
        except OSError as error:
            listening.close()
            fix, why = "end what listens there, or choose another `http` address", error.strerror or error
            message = f"the HTTP server cannot have {self._host}:{self._port} ({why})."
            raise ConfigError(message, fix=fix, field="http") from error
        config = uvicorn.Config(
            self._application,
            log_config=None,
            access_log=False,
            proxy_headers=self._behind_proxy,  # else anybody here could name another address than their own
            server_header=False,
            lifespan="off",
            ws="none",
            limit_concurrency=MAX_CONNECTIONS + 1,  # it refuses the connection with which it has so many
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=int(_STOP_S),
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await asyncio.shield(serving)
        finally:
            self._broadcast.stop()
            server.should_exit = True
            await asyncio.wait([serving], timeout=_STOP_S + 1)
            listening.close()
