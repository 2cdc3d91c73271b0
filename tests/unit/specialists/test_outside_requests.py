"""The sender of outside requests, against a real HTTPS server: where it goes, what it carries, what it brings back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from council.errors import CredentialRefused
from council.redaction import Secret
from council.specialists import outside_requests
from council.specialists.outside_requests import OutsideRefused, OutsideReply, is_public, send
from council.specialists.request_templates import fill
from council.specialists.specialist_spec import CredentialHeader, RequestParameter, RequestTemplate
from tests.outside import PUBLIC, Answer, OutsideHost, reroute

HOST = "api.sms.example"
KEY = "canary-7Qx0pWz3kd"
POST = RequestTemplate(
    "sms",
    "POST",
    f"https://{HOST}/v1/messages",
    (RequestParameter("to"), RequestParameter("count", "integer")),
    (CredentialHeader("Authorization", "sms_key", "Bearer "),),
    {"to": "{to}", "count": "{count}", "text": "for {to}"},
)
GET = RequestTemplate("look", "GET", f"https://{HOST}/v1/look?q={{q}}", (RequestParameter("q"),))
WEATHER = {"q": "Sofia & more/.."}


async def key(name: str) -> Secret:
    return Secret(KEY)


async def no_key(name: str) -> Secret:
    raise CredentialRefused(f"{name} is not in the vault.", reason="absent", fix="set it")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideHost]:
    with OutsideHost(tmp_path_factory.mktemp("outside"), [HOST]) as host:
        yield host


Reach = Callable[..., OutsideHost]


@pytest.fixture
def reach(served: OutsideHost, monkeypatch: pytest.MonkeyPatch) -> Reach:
    """The server with a new answer, behind the resolver's answers."""

    def reached(answer: Answer | None = None, resolved: Sequence[Sequence[str]] = ([PUBLIC],)) -> OutsideHost:
        served.requests.clear()
        served.answer = answer or Answer()
        monkeypatch.setenv("SSL_CERT_FILE", str(served.authority))
        reroute({HOST: resolved}, {PUBLIC: served.port}, monkeypatch.setattr)
        return served

    return reached


async def test_a_post_carries_its_credential_and_its_parameters_and_nothing_of_the_key_comes_back(reach: Reach) -> None:
    host = reach(Answer({"id": 7, "echo": f"key={KEY}", KEY: [f"Bearer {KEY}"], "big": 10**30}))
    reply = await send(fill(POST, {"to": "+359 88", "count": 2}), key)
    [got] = host.requests
    assert (got.method, got.path) == ("POST", "/v1/messages")
    assert got.headers["authorization"] == f"Bearer {KEY}"
    assert got.headers["host"] == HOST
    assert got.body == {"to": "+359 88", "count": 2, "text": "for +359 88"}
    assert reply.is_ok
    assert reply.body["id"] == 7
    assert reply.body["big"] == str(10**30)
    assert KEY not in repr(reply)
    assert "cookie" not in got.headers


async def test_a_parameter_stays_one_value_of_the_address(reach: Reach) -> None:
    host = reach(Answer(b"plain words"))
    reply = await send(fill(GET, WEATHER), no_key)
    assert host.requests[0].path == "/v1/look?q=Sofia%20%26%20more%2F.."
    assert reply.body == "plain words"


async def test_nothing_is_sent_without_the_asker_s_credential(reach: Reach) -> None:
    host = reach()
    with pytest.raises(CredentialRefused):
        await send(fill(POST, {"to": "1", "count": 1}), no_key)
    assert host.requests == []


async def test_a_key_that_no_header_can_hold_is_not_sent(reach: Reach) -> None:
    host = reach()

    async def broken(name: str) -> Secret:
        return Secret("a\r\nX-Other: b")

    with pytest.raises(OutsideRefused, match="does not fit into a header"):
        await send(fill(POST, {"to": "1", "count": 1}), broken)
    assert host.requests == []


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.7"],
        ["192.168.1.1"],
        ["169.254.169.254"],
        ["::1"],
        ["fe80::1"],
        ["fd00::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["100.64.0.1"],
        ["224.0.0.1"],
        ["0.0.0.0"],
        ["198.18.0.1"],
        ["192.0.0.8"],
        ["240.0.0.1"],
        ["::127.0.0.1"],
        ["ff0e::1"],
        [PUBLIC, "10.0.0.7"],  # one is enough
    ],
)
async def test_a_name_that_leads_inside_is_refused_before_anything_is_sent(
    reach: Reach, addresses: Sequence[str]
) -> None:
    host = reach(resolved=[addresses])
    with pytest.raises(OutsideRefused, match="not a public address"):
        await send(fill(GET, WEATHER), no_key)
    assert host.requests == []


def test_public_addresses_are_public() -> None:
    assert all(map(is_public, (PUBLIC, "1.1.1.1", "2606:2800:220:1::1")))
    assert not is_public("fe80::1%eth0")


async def test_the_address_that_was_judged_is_the_one_that_is_connected_to(reach: Reach) -> None:
    host = reach(resolved=[[PUBLIC], ["127.0.0.1"]])  # a second look-up would lead inside
    assert (await send(fill(GET, WEATHER), no_key)).is_ok
    assert len(host.requests) == 1
    with pytest.raises(OutsideRefused, match=r"127\.0\.0\.1"):
        await send(fill(GET, WEATHER), no_key)
    assert len(host.requests) == 1


async def test_an_address_that_cannot_be_reached_gives_way_to_the_next(
    served: OutsideHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.requests.clear()
    served.answer = Answer()
    monkeypatch.setenv("SSL_CERT_FILE", str(served.authority))
    reroute({HOST: [["1.1.1.1", PUBLIC]]}, {"1.1.1.1": 1, PUBLIC: served.port}, monkeypatch.setattr)
    assert (await send(fill(GET, WEATHER), no_key)).is_ok
    reroute({HOST: [["1.1.1.1"]]}, {"1.1.1.1": 1}, monkeypatch.setattr)
    with pytest.raises(OutsideRefused, match="cannot be reached"):
        await send(fill(GET, WEATHER), no_key)
    assert len(served.requests) == 1


@pytest.mark.parametrize("to", [f"https://{HOST}/v1/other", "https://evil.example/", "http://127.0.0.1:1/"])
async def test_no_redirect_is_followed(reach: Reach, to: str) -> None:
    host = reach(Answer(status=302, headers={"Location": to}))
    reply = await send(fill(GET, WEATHER), no_key)
    assert "redirect" in reply.error
    assert not reply.is_ok
    assert len(host.requests) == 1


async def test_only_the_authority_that_this_machine_trusts_counts(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = reach()
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(OutsideRefused, match="cannot be reached"):
        await send(fill(POST, {"to": "1", "count": 1}), key)
    assert host.requests == []


async def test_a_certificate_for_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OutsideHost(tmp_path, ["other.example", PUBLIC]) as host:
        monkeypatch.setenv("SSL_CERT_FILE", str(host.authority))
        reroute({HOST: [[PUBLIC]]}, {PUBLIC: host.port}, monkeypatch.setattr)
        with pytest.raises(OutsideRefused, match="cannot be reached"):
            await send(fill(POST, {"to": "1", "count": 1}), key)
        assert host.requests == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(b"x" * (outside_requests.MAX_REPLY_BYTES + 1)), "longer than"),
        (Answer(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}), "compressed"),
        (Answer({"why": "no"}, status=401), "it answered 401"),
    ],
)
async def test_a_reply_that_cannot_be_used_says_why(reach: Reach, answer: Answer, error: str) -> None:
    reach(answer)
    reply = await send(fill(GET, WEATHER), no_key)
    assert error in reply.error
    assert not reply.is_unknown


async def test_deep_json_is_told_as_text(reach: Reach) -> None:
    deep = b"[" * 5_000 + b"]" * 5_000
    reach(Answer(deep))
    assert (await send(fill(GET, WEATHER), no_key)).body == deep.decode()


async def test_of_a_request_that_is_not_answered_in_time_nobody_knows(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        asyncio.run_coroutine_threadsafe(answered.wait(), loop).result(30)

    monkeypatch.setattr(outside_requests, "SEND_TIMEOUT_S", 1.5)
    host = reach(Answer(before=hold))
    reply = await send(fill(POST, {"to": "1", "count": 1}), key)
    answered.set()
    assert reply.is_unknown
    assert "no whole answer" in reply.error
    assert len(host.requests) == 1


async def test_environment_proxies_are_not_asked(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    reach()
    assert (await send(fill(GET, WEATHER), no_key)).is_ok


def test_a_reply_with_an_error_is_not_ok() -> None:
    told: Any = OutsideReply(status=200, error="redirect")
    assert not told.is_ok
