"""The sender of outside requests: outside the cage, to the host that the template names, and nowhere else.

The name is looked up once. Every address must be public, and the one that was judged is connected to. No redirect is
followed, no proxy is asked, no cookie is kept. The credential is put in here, and taken out of the reply.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from council import __version__
from council.errors import CouncilError
from council.llm.http_failures import CONNECT_TIMEOUT_S, CertificatesUnusable, tls_context
from council.redaction import MASK, Redactor, Secret
from council.specialists.request_templates import FilledRequest
from council.typed_json import parts_of

if TYPE_CHECKING:
    import httpx2

MAX_REQUEST_BYTES = 64 << 10
MAX_REPLY_BYTES = 256 << 10
SEND_TIMEOUT_S = 20.0
_PORT = 443
_MAX_DEPTH = 32  # of a reply's JSON
_ADDRESSES = 4  # tried, of those that a name has
_GLOBAL_V6 = ipaddress.ip_network("2000::/3")
_V4_INSIDE = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))  # 6to4, Teredo: they lead on
_OF_PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")

CredentialOf = Callable[[str], Awaitable[Secret]]
"""The asker's credential of a name. Raises CredentialRefused for one that is not there."""


class OutsideRefused(CouncilError):
    """A request that was not sent: nothing left this machine."""

    code = "outside_refused"
    http_status = 502


class OutsideReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to a request that was sent, without credentials. `body` is its JSON, else its text. `error` says what is wrong
    with it. `is_unknown`: nobody knows whether the request arrived."""

    status: int = 0
    body: Any = None
    error: str = ""
    is_unknown: bool = False

    @property
    def is_ok(self) -> bool:
        return not self.error and 200 <= self.status < 300


_LOST = "the process ended while it was sent: nobody knows whether it arrived"
UNKNOWN = OutsideReply(error=_LOST, is_unknown=True)  # what a resumed run says


async def send(filled: FilledRequest, credential_of: CredentialOf) -> OutsideReply:
    """Sends a request now, once. Raises OutsideRefused or CredentialRefused where nothing was sent."""
    import httpx2

    addresses = await public_addresses(filled.host)
    secrets = {header.credential: await credential_of(header.credential) for header in filled.headers}
    headers = {"Accept-Encoding": "identity", "User-Agent": f"council/{__version__}", "Host": filled.host}
    for header in filled.headers:
        value = header.prefix + secrets[header.credential].reveal()
        if not (value.isascii() and value.isprintable()):
            fix = f"set the credential {header.credential} again, in one line of plain letters"
            raise OutsideRefused(f"The credential {header.credential} does not fit into a header.", fix=fix)
        headers[header.name] = value
    content = None
    if filled.body is not None:
        headers["Content-Type"] = "application/json"
        content = json.dumps(filled.body, ensure_ascii=False, allow_nan=False).encode()
        if len(content) > MAX_REQUEST_BYTES:
            fix = "shorten its template"
            raise OutsideRefused(f"The request {filled.name} is longer than {MAX_REQUEST_BYTES} bytes.", fix=fix)
    try:
        context = tls_context()
    except CertificatesUnusable as error:
        fix = "correct SSL_CERT_FILE or SSL_CERT_DIR, or unset it"
        raise OutsideRefused(f"The certificates that are trusted here cannot be read: {error}.", fix=fix) from None
    parts, reply = urlsplit(filled.url), OutsideReply()
    async with httpx2.AsyncClient(
        verify=context, trust_env=False, follow_redirects=False, timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)
    ) as client:
        for address in addresses[:_ADDRESSES]:
            at = f"[{address}]" if ":" in address else address
            url = urlunsplit(parts._replace(netloc=f"{at}:{_PORT}"))
            way = {"sni_hostname": filled.host}
            sent = client.stream(filled.method, url, headers=headers, content=content, extensions=way)
            try:
                async with asyncio.timeout(SEND_TIMEOUT_S), sent as response:
                    reply = await reply_of(response)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:  # before a byte of it was sent
                reply = OutsideReply(error=f"{filled.host} cannot be reached ({type(error).__name__}: {error})")
                continue
            except TimeoutError:
                told = f"{filled.host} gave no whole answer within {SEND_TIMEOUT_S:g} s"
                reply = OutsideReply(error=told, is_unknown=True)
            except httpx2.HTTPError as error:
                told = f"the exchange with {filled.host} broke off ({type(error).__name__})"
                reply = OutsideReply(error=told, is_unknown=True)
            break
        else:
            raise OutsideRefused(f"{_without(reply, secrets).error}.", fix="try again later")
    return _without(reply, secrets)


async def public_addresses(host: str) -> list[str]:
    """All addresses of a host, in the order of the system. Raises OutsideRefused unless each of them is public."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, _PORT, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        fix = "check the host in the template, and the network"
        raise OutsideRefused(f"The address of {host} is not known ({error}).", fix=fix) from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if inside := [address for address in addresses if not is_public(address)]:
        message = f"{host} is at {inside[0]}, which is not a public address. Nothing was sent."
        raise OutsideRefused(message, fix="an outside request may only go to a public host; name another one")
    return addresses


def is_public(address: str) -> bool:
    """False for addresses of this machine, of its networks, of groups, and for those that lead on to others."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # with a zone: of a link
        return False
    if isinstance(found, ipaddress.IPv6Address):
        return found.is_global and found in _GLOBAL_V6 and not any(found in network for network in _V4_INSIDE)
    return found.is_global and not found.is_multicast and found not in _OF_PROTOCOLS


async def reply_of(response: httpx2.Response) -> OutsideReply:
    """The reply as it can be recorded, or what is wrong with it. A number of many digits becomes text."""
    status, data = response.status_code, b""
    if response.is_redirect:
        return OutsideReply(status, error="it answered with a redirect, which is not followed")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return OutsideReply(status, error="its reply is compressed, though this was not asked for")
    async for piece in response.aiter_raw():
        data += piece
        if len(data) > MAX_REPLY_BYTES:
            return OutsideReply(status, error=f"its reply is longer than {MAX_REPLY_BYTES} bytes")
    text = data.decode("utf-8", "replace")
    try:
        body = json.loads(text, parse_constant=str, parse_int=lambda said: int(said) if len(said) < 19 else said)
        parts_of(body, _MAX_DEPTH)  # what is deeper is told as text
    except (ValueError, RecursionError):
        body = text
    return OutsideReply(status, body, "" if response.is_success else f"it answered {status}")


def _without(reply: OutsideReply, secrets: Mapping[str, Secret]) -> OutsideReply:
    """The reply without the values of the credentials, short ones too."""
    redactor = Redactor(list(secrets.values()))
    values = sorted((secret.reveal() for secret in secrets.values()), key=len, reverse=True)

    def plain(part: Any) -> Any:
        if isinstance(part, str):
            part = redactor.redact(part.encode("utf-8", "replace").decode())
            for value in values:
                part = part.replace(value, MASK)
            return part
        if isinstance(part, list):
            return [plain(one) for one in part]
        return {plain(key): plain(value) for key, value in part.items()} if isinstance(part, dict) else part

    return msgspec.structs.replace(reply, body=plain(reply.body), error=plain(reply.error))
