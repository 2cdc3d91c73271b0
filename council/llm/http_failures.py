"""Failed exchanges over HTTP, read for every provider: their kind, what to say, and what to do.

An exchange reads foreign bytes, so any exception can come out of it; each gets a kind here. Causes are told in the
words of the operating system where it has some. Also here: quoting a server's words, reading Retry-After, and telling
loopback addresses, which a proxy cannot reach.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address

from council.errors import ModelError, ModelErrorKind
from council.llm.bounds import whole_characters
from council.redaction import Redactor, Secret

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
class HttpFailure:
    """An empty `fix` leaves it to the provider, by the kind."""

    kind: ModelErrorKind
    message: str
    fix: str = ""


def tls_context() -> ssl.SSLContext:
    """Builds a context from the certificates that this machine trusts, or from SSL_CERT_FILE and SSL_CERT_DIR. Raises
    CertificatesUnusable."""
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        raise CertificatesUnusable(error.strerror or str(error)) from None


def failure_of(exc: Exception, name: str) -> HttpFailure:
    """Reads an exception of the HTTP client, or of parsing what it brought; `name` is the model that was asked."""
    import httpx2

    match exc:
        case httpx2.TimeoutException() | TimeoutError():
            return HttpFailure("timeout", f"{name} did not answer in time.")
        case ProxyUnusable() | httpx2.ProxyError():
            words = f"the connection to {name} failed: the proxy cannot be used ({_words(exc)})."
            return HttpFailure("network", words, f"check the proxy variables ({PROXY_VARIABLES}).")
        case CertificatesUnusable():
            words = f"{name} was not called: the certificates that are trusted here cannot be read ({_words(exc)})."
            return HttpFailure("network", words, "mend SSL_CERT_FILE or SSL_CERT_DIR, or unset it.")
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            # Its words quote what it did not like: a header's value, an address with its password.
            return HttpFailure("request", f"the request to {name} could not be built ({type(exc).__name__}).")
        case AnswerTooLarge():
            return HttpFailure("protocol", f"the answer of {name} is larger than any answer: {exc}.")
        case httpx2.DecodingError():
            return HttpFailure("protocol", f"the answer of {name} could not be decompressed.")
        case httpx2.TransportError() | OSError():
            causes: list[BaseException] = [exc]  # and what it came of, the members of groups included
            for cause in causes:
                causes += cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
                causes += [each for each in (cause.__cause__, cause.__context__) if each is not None]
                if len(causes) > _MAX_CAUSES:
                    break
            causes, why, fix = causes[:_MAX_CAUSES], "", ""
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
            return HttpFailure("network", f"the connection to {name} failed: {why}.", fix)
        case ValueError() | TypeError() | KeyError() | AttributeError() | IndexError() | RecursionError():
            flaw = "it is nested too deeply" if isinstance(exc, RecursionError) else "it has another form"
            if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
                flaw = "it is no JSON"
            return HttpFailure("protocol", f"the answer of {name} is not what the API promises: {flaw}.")
        case _:
            return HttpFailure("protocol", f"the exchange with {name} failed ({type(exc).__name__}).")


def _words(exc: Exception) -> str:
    return brief(str(exc)).rstrip(".") or type(exc).__name__


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
    """The words for a redirect to `location`."""
    to = f" to {brief(location)}" if location else ""
    return f"a redirect{to}, which is not followed because the key would go along"


def is_loopback(host: str) -> bool:
    """Recognises an address of this machine itself, which a proxy cannot reach."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Failures:
    """Makes the errors of one model, by its name. Its key stands in none of them."""

    def __init__(self, model: str, key: Secret | None, fix_of: Callable[[ModelErrorKind], str]) -> None:
        """`fix_of` says what to do about a kind of failure, where the error itself does not suggest anything."""
        self.model = model
        self._redactor = Redactor([key] if key is not None else [])
        self._fix_of = fix_of

    def error(
        self, kind: ModelErrorKind, message: str, *, fix: str = "", retry_after_s: float | None = None, **data: object
    ) -> ModelError:
        return ModelError(
            kind,
            self._redactor.redact(message),
            fix=fix or self._fix_of(kind),
            retry_after_s=retry_after_s,
            model=self.model,
            **data,
        )

    def quote(self, words: str) -> str:
        """A server's words, safe to show. The key goes first: cut through its middle, it would not be found."""
        return brief(self._redactor.redact(words))

    def require_sendable(self, key: str) -> None:
        """Raises ModelError for a key that does not fit into a header."""
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise self.error("auth", f"{self.model} was not called: the API key holds characters no key can hold.")

    @asynccontextmanager
    async def whole_call(self, timeout_s: float, lacking: str = "gave no whole answer") -> AsyncIterator[None]:
        """A call, from its first byte to its last. Raises ModelError when it takes longer than `timeout_s`; `lacking`
        says what the model did not do by then."""
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise  # a listener's own
            raise self.error("timeout", f"{self.model} {lacking} within {timeout_s:g} s.") from None
