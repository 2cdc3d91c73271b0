"""What a failed exchange over HTTP means, for every provider that is asked so: its kind, what to say, and what to do.

Foreign bytes are read during an exchange, so that any exception can come out of it; each gets a kind here. The causes are
told in the words of the operating system where it has some. Also what all such providers quote, how they
say to wait, and whom a proxy cannot reach.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address

from council.errors import ModelErrorKind
from council.llm.bounds import whole_characters

MESSAGE_CHARS = 300  # of a server's own words; an HTML error page is not a message
PROXY_VARIABLES = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY"
_ALTERED = "try again; if it keeps happening something between here and the provider alters the answers."
_MAX_CAUSES = 10


class ProxyUnusable(Exception):
    """The environment names a proxy that cannot be used."""


class CertificatesUnusable(Exception):
    """The environment names certificates that cannot be read."""


class AnswerTooLarge(ValueError):
    """More bytes than any answer has."""


@dataclass(frozen=True)
class Failure:
    """An empty `fix` leaves it to the provider, by the kind."""

    kind: ModelErrorKind
    message: str
    fix: str = ""


def tls_context() -> ssl.SSLContext:
    """What this machine trusts, or SSL_CERT_FILE and SSL_CERT_DIR. Raises CertificatesUnusable."""
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        raise CertificatesUnusable(error.strerror or str(error)) from None


def failure_of(exc: Exception, name: str) -> Failure:
    """What an exception of the HTTP client, or of reading what it brought, means when `name` was asked."""
    import httpx2

    match exc:
        case httpx2.TimeoutException() | TimeoutError():
            return Failure("timeout", f"{name} did not answer in time.")
        case ProxyUnusable() | httpx2.ProxyError():
            words = f"the connection to {name} failed: the proxy cannot be used ({_words(exc)})."
            return Failure("network", words, f"check the proxy variables ({PROXY_VARIABLES}).")
        case CertificatesUnusable():
            words = f"{name} was not called: the certificates that are trusted here cannot be read ({_words(exc)})."
            return Failure("network", words, "mend SSL_CERT_FILE or SSL_CERT_DIR, or unset it.")
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            # Its words quote what it did not like: a header's value, an address with its password.
            return Failure("request", f"the request to {name} could not be built ({type(exc).__name__}).")
        case AnswerTooLarge():
            return Failure("protocol", f"the answer of {name} is larger than any answer: {exc}.")
        case httpx2.DecodingError():
            return Failure("protocol", f"the answer of {name} could not be decompressed.")
        case httpx2.TransportError() | OSError():
            return _connection(exc, name)
        case ValueError() | TypeError() | KeyError() | AttributeError() | IndexError() | RecursionError():
            return Failure("protocol", f"the answer of {name} is not what the API promises: {_flaw(exc)}.")
        case _:
            return Failure("protocol", f"the exchange with {name} failed ({type(exc).__name__}).")


def _flaw(exc: Exception) -> str:
    match exc:
        case json.JSONDecodeError() | UnicodeDecodeError():
            return "it is no JSON"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return "it has another form"


def _connection(exc: Exception, name: str) -> Failure:
    causes = list(_causes(exc))
    why, fix = "", ""
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            why, fix = "no such host is known", "check the host's name in the address, and the network."
        elif isinstance(cause, ssl.SSLCertVerificationError):
            why = f"the server's certificate is not accepted ({brief(cause.verify_message or str(cause)).rstrip('.')})"
            fix = "name the authority that signed it in SSL_CERT_FILE, or use the address that it was made for."
        elif isinstance(cause, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(cause):
            why, fix = "what answers there speaks no TLS", "write http:// in the address, or another port."
    if not why:
        number = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), 0)
        why = os.strerror(number).lower() if number > 0 else _words(exc)
    return Failure("network", f"the connection to {name} failed: {why}.", fix)


def _words(exc: Exception) -> str:
    return brief(str(exc)).rstrip(".") or type(exc).__name__


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """It and what it came of, the members of groups included."""
    found: list[BaseException] = [exc]
    for _ in range(_MAX_CAUSES):
        if not found:
            return
        first = found.pop(0)
        yield first
        found += first.exceptions if isinstance(first, BaseExceptionGroup) else ()
        found += [cause for cause in (first.__cause__, first.__context__) if cause is not None]


def brief(text: str) -> str:
    """A server's words as one short line; the tags of an HTML page are dropped, and half characters."""
    line = " ".join(re.sub(r"<[^>]{0,500}>", " ", whole_characters(text)).split())
    return line if len(line) <= MESSAGE_CHARS else f"{line[:MESSAGE_CHARS]}…"


def seconds(text: str) -> float | None:
    """A Retry-After header: seconds, or a date."""
    try:
        value = float(text)
    except ValueError:
        try:
            value = (parsedate_to_datetime(text).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return max(0.0, value) if math.isfinite(value) else None


def redirect_words(location: str) -> str:
    """What is to be said of a redirect to there."""
    to = f" to {brief(location)}" if location else ""
    return f"a redirect{to}, which is not followed because the key would go along"


def is_loopback(host: str) -> bool:
    """Whether this is an address of this machine itself, which a proxy cannot reach."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
