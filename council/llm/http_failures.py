"""Failed calls over HTTP, for every provider: their kind, what to say, and what to do. An exchange reads foreign bytes,
so any exception can come out of it. The kind of a refusal follows from its words, then from its status.

`unreachable`: the name of another machine does not resolve, or it refuses, resets, ignores or silently closes the connection.
"""

from __future__ import annotations

import asyncio
import errno
import json
import math
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from council.errors import ModelError, ModelErrorKind
from council.llm.reply_limits import whole_characters
from council.redaction import Redactor, Secret

MESSAGE_CHARS = 300  # of a server's own words; an HTML error page is not a message
PROXY_VARIABLES = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY"
_MAX_CAUSES = 10
CONNECT_TIMEOUT_S = 10.0  # far above any handshake; else a network that swallows packets would pass for a slow model
# No way to the other machine, or one that broke: as when a laptop wakes before its network does.
_NO_WAY = frozenset({
    errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.ETIMEDOUT, errno.ENETDOWN, errno.ENETUNREACH,
    errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH,
})  # fmt: skip


class ProxyUnusable(Exception):
    """The environment names a proxy that cannot be used."""


class CertificatesUnusable(Exception):
    """The environment names certificates that cannot be read."""


class AnswerTooLarge(ValueError):
    """More bytes than any answer has."""


KIND_OF_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "billing",
    403: "auth",
    404: "not_found",
    405: "not_found",  # the address answers, and not to this: as good as absent
    407: "network",  # not the provider: a proxy before it
    408: "timeout",
    409: "server",
    424: "server",  # a router's own provider failed
    425: "overload",
    429: "rate",
    498: "overload",
    499: "server",  # cancelled, and not by us
    503: "overload",
    504: "timeout",
    524: "timeout",
    529: "overload",
}
FIX: dict[ModelErrorKind, str] = {
    "request": "this is refused whenever it is sent: shorten the inputs, or check the model's settings.",
    "server": "the fault is not yours: the provider failed. Try later.",
    "timeout": "try again; if it keeps happening raise the request timeout or shorten the inputs.",
    "blocked": "reword the task or leave out the input that the provider's filter objects to.",
    "length": "raise max_output_tokens: thinking counts towards it.",
    "empty": "try again; if it keeps happening reword the task or name another model.",
}  # what providers have in common

Rule = tuple[tuple[int, ...], re.Pattern[str], ModelErrorKind]  # these words in an answer of such a status: that kind


@dataclass(frozen=True)
class Refusal:
    """An error status, or an error object in an answer of 200 (`status` 0, unless it has its own). `message` is not yet
    fit to be shown; `words` is all that it says. `bare`: no error object, so whoever answered may be no such server.
    `about_context`: prompt and answer do not fit into the window."""

    status: int
    kind: ModelErrorKind
    message: str
    words: str = ""
    retry_after_s: float | None = None
    bare: bool = False
    about_context: bool = False


def connect_timeout_s(request_timeout_s: float) -> float:
    """Half of the request's time at most: when both run out at once, no way there would pass for a slow model."""
    return min(CONNECT_TIMEOUT_S, request_timeout_s / 2)


def kind_of_words(rules: Iterable[Rule], status: int, words: str) -> ModelErrorKind | None:
    """The kind of the first rule that fits; words decide where one status means several things."""
    return next((kind for statuses, said, kind in rules if status in statuses and said.search(words)), None)


def kind_of_status(status: int) -> ModelErrorKind:
    if status in KIND_OF_STATUS:
        return KIND_OF_STATUS[status]
    of_hundred: dict[int, ModelErrorKind] = {3: "network", 4: "request", 5: "server"}
    return of_hundred.get(status // 100, "protocol")


def tls_context() -> ssl.SSLContext:
    """By what this machine trusts, or SSL_CERT_FILE and SSL_CERT_DIR. Raises CertificatesUnusable."""
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        raise CertificatesUnusable(error.strerror or str(error)) from None


def _words(exc: Exception) -> str:
    return brief(str(exc)).rstrip(".") or type(exc).__name__


def brief(text: str) -> str:
    """A server's words as one short line; the tags of an HTML page are dropped, and half characters."""
    line = " ".join(re.sub(r"<[^>]{0,500}>", " ", whole_characters(text)).split())
    return line if len(line) <= MESSAGE_CHARS else f"{line[:MESSAGE_CHARS]}…"


def seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        try:
            value = (parsedate_to_datetime(text).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return max(0.0, value) if math.isfinite(value) else None


def redirect_words(location: str) -> str:
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


def proxy_before(url: str) -> str | None:
    """The address of the proxy that the environment names for `url`; None for a direct connection."""
    parts = urlsplit(url)
    host, proxies = parts.hostname or "", getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or is_loopback(host) or proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_elsewhere(url: str) -> bool:
    """True where what is connected to for `url`, a proxy perhaps, is another machine."""
    try:
        host = urlsplit(proxy_before(url) or url).hostname
    except ValueError:
        return False
    return bool(host) and not is_loopback(host or "")


class Failures:
    """Makes the errors of one model, by its name. Its key stands in none of them."""

    def __init__(
        self, model: str, key: Secret | None, fix_of: Callable[[ModelErrorKind], str], *, url: str, address_fix: str
    ) -> None:
        """`fix_of` says what to do about a kind, `address_fix` about an address that no request can be sent to."""
        self.model = model
        self._url = url
        self._redactor = Redactor([key] if key is not None else [])
        self._fix_of = fix_of
        self._address_fix = address_fix

    def error(
        self,
        kind: ModelErrorKind,
        message: str,
        fix: str = "",
        *,
        retry_after_s: float | None = None,
        **data: object,
    ) -> ModelError:
        return ModelError(
            kind,
            self._redactor.redact(message),
            fix=fix or self._fix_of(kind),
            retry_after_s=retry_after_s,
            model=self.model,
            **data,
        )

    def malformed(self, reason: str) -> ModelError:
        return self.error("protocol", f"the answer of {self.model} is not what the API promises: {self.quote(reason)}.")

    def quote(self, words: str) -> str:
        """A server's words, safe to show. The key goes first: cut through its middle, it would not be found."""
        return brief(self._redactor.redact(words))

    def of_exchange(self, exc: Exception) -> ModelError:
        import httpx2

        match exc:
            case httpx2.ConnectTimeout() if _is_elsewhere(self._url):
                return self.error("unreachable", f"the connection to {self.model} was not made in time.", unsent=True)
            case httpx2.TimeoutException() | TimeoutError():
                return self.error("timeout", f"{self.model} did not answer in time.")
            case ProxyUnusable() | httpx2.ProxyError():
                words = f"the connection to {self.model} failed: the proxy cannot be used ({_words(exc)})."
                return self.error("network", words, f"check the proxy variables ({PROXY_VARIABLES}).")
            case CertificatesUnusable():
                words = f"{self.model} was not called: the certificates that are trusted here cannot be read ({_words(exc)})."
                return self.error("network", words, "correct SSL_CERT_FILE or SSL_CERT_DIR, or unset it.")
            case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
                # Its words quote what it did not like: a header's value, an address with its password.
                return self.error(
                    "request",
                    f"the request to {self.model} could not be built ({type(exc).__name__}).",
                    self._address_fix,
                )
            case AnswerTooLarge():
                return self.error("protocol", f"the answer of {self.model} is too large: {exc}.")
            case httpx2.DecodingError():
                return self.error("protocol", f"the answer of {self.model} could not be decompressed.")
            case httpx2.TransportError() | OSError():
                causes: list[BaseException] = [exc]  # and what it came of, the members of groups included
                for cause in causes:
                    causes += cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
                    causes += [each for each in (cause.__cause__, cause.__context__) if each is not None]
                    if len(causes) > _MAX_CAUSES:
                        break
                causes, why, fix = causes[:_MAX_CAUSES], "", ""
                kind: ModelErrorKind = "network"
                for cause in causes:
                    if isinstance(cause, socket.gaierror):
                        why, fix = "no such host is known", "check the host's name in the address, and the network."
                        kind = "unreachable"
                    elif isinstance(cause, ssl.SSLCertVerificationError):
                        told = brief(cause.verify_message or str(cause)).rstrip(".")
                        why = f"the server's certificate is not accepted ({told})"
                        fix = "name the authority that signed it in SSL_CERT_FILE, or use the address that it was made for."
                    elif isinstance(cause, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(cause):
                        why, fix = "the server there does not use TLS", "write http:// in the address, or another port."
                if not why:
                    number = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), 0)
                    why = os.strerror(number).lower() if number > 0 else _words(exc)
                    hung_up = isinstance(exc, httpx2.RemoteProtocolError) and "without sending a response" in str(exc)
                    kind = "unreachable" if number in _NO_WAY or hung_up else kind
                if not _is_elsewhere(self._url):
                    kind = "network"
                unsent = isinstance(exc, httpx2.ConnectError)
                return self.error(kind, f"the connection to {self.model} failed: {why}.", fix, unsent=unsent)
            case ValueError() | TypeError() | KeyError() | AttributeError() | IndexError() | RecursionError():
                flaw = "it is nested too deeply" if isinstance(exc, RecursionError) else "it has an unexpected form"
                if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
                    flaw = "it is not JSON"
                return self.malformed(flaw)
            case _:
                return self.error("protocol", f"the exchange with {self.model} failed ({type(exc).__name__}).")

    def of_refusal(self, refusal: Refusal, fix: str = "") -> ModelError:
        words = self.quote(refusal.message).rstrip(".")
        if refusal.status == 407:
            fix = f"check the proxy variables ({PROXY_VARIABLES})."
        return self.error(
            refusal.kind,
            f"{self.model} answered {refusal.status or 'an error'}{words and f': {words}'}.",
            fix,
            retry_after_s=refusal.retry_after_s,
            status=refusal.status,
        )

    def require_sendable(self, key: str) -> None:
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise self.error("auth", f"{self.model} was not called: the API key holds characters no key can hold.")

    @asynccontextmanager
    async def whole_call(self, timeout_s: float, lacking: str = "gave no whole answer") -> AsyncIterator[None]:
        """Raises ModelError for a call that takes longer; `lacking` says what the model did not do by then."""
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise  # a listener's own
            raise self.error("timeout", f"{self.model} {lacking} within {timeout_s:g} s.") from None
