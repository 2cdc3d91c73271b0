"""A failed connection: who has no way to whom, and whether time alone mends it."""

from __future__ import annotations

import errno
import os
import socket

import httpx2
import pytest

from council.llm.http_failures import Failures

FAR, NEAR = "https://models.example/v1", "http://127.0.0.1:11434/v1"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def of(kind: type[httpx2.TransportError], cause: OSError | None, url: str) -> tuple[str, bool]:
    """The kind of the error that comes of it, and whether nobody can have heard of the call."""
    error = kind("it failed")
    error.__cause__ = cause
    told = Failures("a:model", None, lambda kind: "", url=url, address_fix="").of_exchange(error)
    return told.kind, told.unsent


def system(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    "cause",
    [
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        system(errno.ECONNREFUSED),
        system(errno.ENETUNREACH),
        system(errno.EHOSTUNREACH),
        system(errno.ETIMEDOUT),
    ],
    ids=["name", "refused", "no network", "no host", "timed out"],
)
def test_no_connection_to_another_machine_is_mended_by_time(cause: OSError) -> None:
    assert of(httpx2.ConnectError, cause, FAR) == ("unreachable", True)
    assert of(httpx2.ConnectError, cause, NEAR) == ("network", True)


def test_a_connection_that_is_reset_may_have_been_heard() -> None:
    assert of(httpx2.ReadError, system(errno.ECONNRESET), FAR) == ("unreachable", False)
    assert of(httpx2.ReadError, system(errno.ECONNRESET), NEAR) == ("network", False)


def test_a_network_that_swallows_packets_is_no_slow_model() -> None:
    assert of(httpx2.ConnectTimeout, None, FAR) == ("unreachable", True)
    assert of(httpx2.ConnectTimeout, None, NEAR)[0] == "timeout"
    assert of(httpx2.ReadTimeout, None, FAR)[0] == "timeout"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_what_this_machine_does_not_allow_is_not_waited_for(number: int) -> None:
    assert of(httpx2.ConnectError, system(number), FAR)[0] == "network"


def test_a_server_that_breaks_the_protocol_is_not_waited_for() -> None:
    assert of(httpx2.RemoteProtocolError, None, FAR)[0] == "network"


@pytest.mark.parametrize(
    ("proxy", "kind"), [("http://127.0.0.1:3128", "network"), ("http://proxy.example:3128", "unreachable")]
)
def test_behind_a_proxy_it_is_the_proxy_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, proxy: str, kind: str
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    assert of(httpx2.ConnectError, system(errno.ECONNREFUSED), FAR)[0] == kind
