"""Servers that misbehave, before each real provider: what comes of it is an error that says what happened and what to do, or a
reply whose counts can be true. Nothing is read without a bound."""

from __future__ import annotations

import datetime
import gzip
import ipaddress
import json
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from council.errors import ModelError
from council.llm.base import Message, Model, Reply
from council.llm.gemini import GeminiModel
from council.llm.openai_compatible import OpenAICompatibleModel
from council.llm.openai_dialect import Server
from council.llm.reply_limits import BoundedModel
from council.redaction import Secret
from tests import fake_gemini, fake_openai
from tests.fake_gemini import FakeGemini
from tests.fake_openai import FakeOpenAI

KEY = Secret("sk-0123456789abcdef")
GZIP = (("Content-Encoding", "gzip"),)


@dataclass
class Stage:
    """A provider and the server behind it. `says` lets the server answer with these bytes; `counted` with those tokens."""

    name: str
    says: Callable[..., None]
    counted: Callable[[int, int], None]
    model_at: Callable[[str], Model]
    root: str
    asked: Callable[[], int]

    async def ask(self, *, streamed: bool = False, at: str = "") -> Reply:
        model = self.model_at(at or self.root)
        try:
            on_text = (lambda piece: None) if streamed else None
            return await model.generate([Message("user", "Tape or disk?")], system="Be brief.", on_text=on_text)
        finally:
            await model.aclose()

    async def fails(self, *, streamed: bool = False, at: str = "") -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask(streamed=streamed, at=at)
        return caught.value


@pytest.fixture(params=["gemini", "openai"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    if request.param == "gemini":
        with FakeGemini() as google:

            def says_google(
                body: bytes, status: int = 200, headers: Any = (), content_type: str = "application/json"
            ) -> None:
                answer = fake_gemini.FakeReply(status=status, headers=headers, content_type=content_type, body=body)
                google.reply = lambda asked: answer

            def counts(prompt: int, output: int) -> None:
                google.reply = lambda asked: fake_gemini.text("Tape.", prompt=prompt, output=output)

            def gemini_at(root: str) -> Model:
                return BoundedModel(GeminiModel("gemini-x", api_key=KEY, base_url=root, request_timeout_s=20))

            yield Stage("gemini:gemini-x", says_google, counts, gemini_at, google.url, lambda: len(google.requests))
        return
    with FakeOpenAI() as server:

        def says(body: bytes, status: int = 200, headers: Any = (), content_type: str = "application/json") -> None:
            answer = fake_openai.FakeReply(status=status, headers=headers, content_type=content_type, body=body)
            server.reply = lambda asked: answer

        def counted(prompt: int, output: int) -> None:
            server.reply = lambda asked: fake_openai.text("Tape.", prompt=prompt, output=output)

        def model_at(root: str) -> Model:
            own = Server("own", f"{root}/v1", key_env="OWN_KEY")
            return BoundedModel(OpenAICompatibleModel("x", server=own, api_key=KEY, request_timeout_s=20))

        yield Stage("own:x", says, counted, model_at, server.root, lambda: len(server.requests))


# ── what is read ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def bomb() -> bytes:
    return gzip.compress(b'{"a": "' + b"A" * (64 << 20) + b'"}')


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_that_unpacks_without_an_end_is_broken_off(stage: Stage, bomb: bytes, streamed: bool) -> None:
    stage.says(bomb, headers=GZIP, content_type="text/event-stream" if streamed else "application/json")
    error = await stage.fails(streamed=streamed)
    assert error.kind == "protocol"
    assert any(words in error.message for words in ("is too large", "could not be decompressed"))


async def test_a_packed_answer_that_is_none_is_said(stage: Stage) -> None:
    stage.says(b"no gzip at all", headers=GZIP)
    error = await stage.fails()
    assert (error.kind, error.message) == ("protocol", f"the answer of {stage.name} could not be decompressed.")


async def test_an_error_in_an_answer_of_200_is_that_error(stage: Stage) -> None:
    stage.says(json.dumps({"error": {"code": 503, "message": "all lines are busy", "status": "UNAVAILABLE"}}).encode())
    error = await stage.fails()
    assert (error.kind, error.message) == ("overload", f"{stage.name} answered 503: all lines are busy.")


@pytest.mark.parametrize("body", [b"[1]", b'"yes"', b"[" * 100_000, b""], ids=["list", "string", "deep", "empty"])
async def test_an_answer_of_another_form_names_no_type_of_python(stage: Stage, body: bytes) -> None:
    stage.says(body)
    error = await stage.fails()
    assert error.kind == "protocol"
    assert f"the answer of {stage.name} is not what the API promises: it " in error.message
    assert "Error" not in error.message


@pytest.mark.parametrize(("prompt", "output"), [(-5, 7), (12, -1), (10**12, 7), (12, 10**12)])
async def test_counts_that_cannot_be_true_are_unknown(stage: Stage, prompt: int, output: int) -> None:
    stage.counted(prompt, output)
    assert (await stage.ask()).usage is None
    stage.counted(12, 7)
    assert (await stage.ask()).usage is not None


# ── how it is reached ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_redirect_is_named_and_not_followed(stage: Stage) -> None:
    stage.says(b"", status=301, headers=(("Location", "https://elsewhere.test/v1/x"),))
    error = await stage.fails()
    assert error.kind == "network"
    assert (
        "a redirect to https://elsewhere.test/v1/x, which is not followed because the key would go along"
        in error.message
    )
    assert "base_url" in error.fix
    assert stage.asked() == 1


async def test_a_proxy_that_wants_a_password_is_no_malformed_request(stage: Stage) -> None:
    stage.says(b"Proxy authentication required", status=407, content_type="text/html")
    error = await stage.fails()
    assert (error.kind, "HTTPS_PROXY" in error.fix) == ("network", True)


@pytest.mark.parametrize("proxy", ["ftp://proxy.test", "socks5://127.0.0.1:9"])
async def test_a_proxy_of_a_kind_that_cannot_be_used_is_named(
    stage: Stage, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    error = await stage.fails(at="http://api.provider.test")
    assert (error.kind, "HTTPS_PROXY" in error.fix) == ("network", True)
    assert "the proxy cannot be used (" in error.message


async def test_a_server_on_this_machine_is_asked_without_the_proxy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    stage.counted(12, 7)
    assert (await stage.ask()).text == "Tape."


async def test_a_host_that_nobody_knows_and_a_port_that_nobody_serves(stage: Stage) -> None:
    unknown = await stage.fails(at="http://no-such-host.invalid")
    assert (unknown.kind, "no such host is known" in unknown.message) == ("unreachable", True)
    refused = await stage.fails(at="http://127.0.0.1:9")
    assert (refused.kind, "connection refused" in refused.message) == ("network", True)


async def test_a_certificate_that_is_not_trusted_is_said_and_can_be_named(
    stage: Stage, tls: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, certificate = tls
    error = await stage.fails(at=root)
    assert (error.kind, "the server's certificate is not accepted (" in error.message) == ("network", True)
    assert "SSL_CERT_FILE" in error.fix
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    trusted = await stage.fails(at=root)
    assert "answered 503" in trusted.message
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("gone.pem")))
    gone = await stage.fails(at=root)
    assert (gone.kind, "SSL_CERT_FILE" in gone.fix) == ("network", True)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server with a certificate that it signed itself, and that certificate."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Busy)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  a client that hangs up is what is tested
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}", folder / "certificate.pem"
    server.shutdown()
    server.server_close()
    thread.join(5)


class _Busy(BaseHTTPRequestHandler):
    timeout = 5

    def do_POST(self) -> None:
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
