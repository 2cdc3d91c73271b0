"""What the adapter of each real provider keeps, before a server of its own. A server that misbehaves leads to an error that
says what happened and what to do, or to a reply whose counts can be true. Nothing is read without a bound."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from email.utils import format_datetime
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
from tests.fake_server import no_way_in

KEY = "sk-0123456789abcdef"
ASK = [Message("user", "Tape or disk?")]
BOTH_WAYS = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
GZIP = (("Content-Encoding", "gzip"),)


@dataclass
class Stage:
    """A provider: its adapter, the server behind it, and how that server's replies are made. The helpers that make them have
    the same names for each provider."""

    name: str
    key_env: str
    fake: Any
    replies: Any
    model: Callable[..., Model]

    def answers(self, reply: Any) -> None:
        self.fake.reply = lambda asked: reply

    def says(self, body: bytes, status: int = 200, headers: Any = (), content_type: str = "application/json") -> None:
        self.answers(self.replies.FakeReply(status=status, headers=headers, content_type=content_type, body=body))

    def counted(self, prompt: int, output: int) -> None:
        self.answers(self.replies.text("Tape.", prompt=prompt, output=output))

    async def ask(self, *, streamed: bool = False, at: str = "", **settings: Any) -> Reply:
        model = BoundedModel(self.model(at or self.fake.root, **settings))
        try:
            return await model.generate(ASK, system="Be brief.", on_text=ignore if streamed else None)
        finally:
            await model.aclose()

    async def fails(self, *, streamed: bool = False, at: str = "", **settings: Any) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask(streamed=streamed, at=at, **settings)
        return caught.value


def ignore(piece: str) -> None:
    """Hears a piece of a stream."""


def gemini(root: str, *, key: str = KEY, **settings: Any) -> Model:
    return GeminiModel("gemini-x", api_key=Secret(key), base_url=root, **{"request_timeout_s": 20, **settings})


def openai(root: str, *, key: str = KEY, **settings: Any) -> Model:
    own = Server("own", f"{root}/v1", key_env="OWN_KEY")
    return OpenAICompatibleModel("x", server=own, api_key=Secret(key), **{"request_timeout_s": 20, **settings})


@pytest.fixture(params=["gemini", "openai"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    if request.param == "gemini":
        with FakeGemini() as google:
            yield Stage("gemini:gemini-x", "GEMINI_API_KEY", google, fake_gemini, gemini)
    else:
        with FakeOpenAI() as server:
            yield Stage("own:x", "OWN_KEY", server, fake_openai, openai)


@pytest.fixture
async def model(stage: Stage) -> AsyncIterator[Model]:
    model = stage.model(stage.fake.root)
    yield model
    await model.aclose()


# ── what is read ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def bomb() -> bytes:
    return gzip.compress(b'{"a": "' + b"A" * (64 << 20) + b'"}')


@BOTH_WAYS
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


@BOTH_WAYS
async def test_uncounted_tokens_are_unknown_and_not_zero(stage: Stage, model: Model, streamed: bool) -> None:
    for reply in (stage.replies.text("Tape.", counted=False), stage.replies.text("Tape.", prompt=0, output=0)):
        stage.answers(reply)
        assert (await model.generate(ASK, system="", on_text=ignore if streamed else None)).usage is None


async def test_a_stream_that_ends_in_good_order_without_an_end_is_no_reply(stage: Stage) -> None:
    stage.answers(stage.replies.unfinished("Tap"))
    error = await stage.fails(streamed=True)
    assert (error.kind, error.retryable) == ("protocol", True)


async def test_a_page_is_cut_to_one_short_line(stage: Stage) -> None:
    stage.says(b"<p>\nbusy\n</p>" * 5000, status=503, content_type="text/html")
    message = (await stage.fails()).message
    assert len(message) < 400
    assert "\n" not in message


@BOTH_WAYS
async def test_a_retry_after_date_is_counted_from_now(stage: Stage, streamed: bool) -> None:
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    stage.answers(stage.replies.error(429, retry_after=format_datetime(later, usegmt=True)))
    wait_s = (await stage.fails(streamed=streamed)).retry_after_s
    assert wait_s is not None
    assert 3500 < wait_s <= 3600


# ── how long is waited ───────────────────────────────────────────────────────────────────────────────────────────────


@BOTH_WAYS
async def test_silence_beyond_the_limit_is_a_timeout(stage: Stage, streamed: bool) -> None:
    stage.answers(stage.replies.slow(30))
    error = await stage.fails(streamed=streamed, request_timeout_s=0.2)
    assert (error.kind, error.retryable) == ("timeout", True)


async def test_the_limit_bounds_the_whole_call_and_not_each_chunk(stage: Stage) -> None:
    stage.answers(stage.replies.text("x" * 1000, pieces=1000, between_s=0.05))
    error = await stage.fails(streamed=True, request_timeout_s=0.5)
    assert error.kind == "timeout"
    assert "0.5 s" in error.message


async def test_a_connection_that_is_not_made_is_unreachable_within_a_short_limit(stage: Stage) -> None:
    with no_way_in() as root:
        assert (await stage.fails(at=root, request_timeout_s=1)).kind == "unreachable"


# ── how it is reached ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_is_named_and_not_followed(stage: Stage, status: int) -> None:
    with FakeOpenAI() as elsewhere:
        stage.says(b"", status=status, headers=(("Location", f"{elsewhere.root}/v1/x"),))
        error = await stage.fails()
        assert elsewhere.requests == []
    assert (error.kind, error.retryable) == ("network", True)
    words = f"a redirect to {elsewhere.root}/v1/x, which is not followed because the key would go along"
    assert words in error.message
    assert "base_url" in error.fix
    assert len(stage.fake.requests) == 1


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


async def test_calls_elsewhere_go_through_the_proxy_of_the_environment(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", stage.fake.root)
    monkeypatch.setenv("no_proxy", "")
    await stage.ask(at="http://models.invalid")
    [asked] = stage.fake.requests
    assert asked.path.startswith("http://models.invalid/v1/")


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


# ── the key ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("given", [KEY, f" {KEY}\n"], ids=["plain", "with white space"])
async def test_a_server_that_repeats_the_key_does_not_get_it_into_the_message(stage: Stage, given: str) -> None:
    stage.answers(stage.replies.error(401, message="x" * 290 + KEY + " is not valid"))
    error = await stage.fails(key=given)
    assert error.kind == "auth"
    assert KEY[:8] not in str(error)
    assert stage.key_env in error.fix


@pytest.mark.parametrize("key", ["abc\ndefghijklmnop", "schlüssel-0123456789", "two words 0123456789"])
async def test_a_key_that_cannot_be_one_is_an_auth_error_before_any_call(stage: Stage, key: str) -> None:
    error = await stage.fails(key=key)
    assert error.kind == "auth"
    assert "abc" not in error.message
    assert "schl" not in error.message
    assert stage.fake.requests == []


async def test_no_cause_hangs_on_the_error_that_could_quote_the_key(stage: Stage) -> None:
    stage.answers(stage.replies.error(500))
    error = await stage.fails()
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_the_key_is_not_in_the_repr(stage: Stage) -> None:
    assert KEY not in repr(vars(stage.model(stage.fake.root)))


# ── its life ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "mistake", [RuntimeError("listener"), ValueError("listener"), TypeError("listener"), TimeoutError("listener")]
)
async def test_a_mistake_of_the_listener_is_not_taken_for_the_providers(model: Model, mistake: Exception) -> None:
    def listen(piece: str) -> None:
        raise mistake

    with pytest.raises(type(mistake), match="listener"):
        await model.generate(ASK, system="", on_text=listen)


async def test_calls_at_the_same_time_get_their_own_answers(stage: Stage, model: Model) -> None:
    together = threading.Barrier(5)

    def reply(request: Any) -> Any:
        together.wait(timeout=10)
        return stage.replies.text(f"to {request.texts[0]}")

    stage.fake.reply = reply
    replies = await asyncio.gather(*(model.generate([Message("user", str(n))], system="") for n in range(5)))
    assert [reply.text for reply in replies] == [f"to {n}" for n in range(5)]


async def test_after_closing_a_call_opens_the_connection_again(model: Model) -> None:
    await model.generate(ASK, system="")
    await model.aclose()
    assert (await model.generate(ASK, system="")).finish == "stop"


def test_one_model_serves_several_event_loops_one_after_the_other(stage: Stage) -> None:
    model = stage.model(stage.fake.root)

    async def call() -> str:
        return (await model.generate(ASK, system="")).text

    assert asyncio.run(call()) == asyncio.run(call())
    asyncio.run(model.aclose())
    assert len(stage.fake.requests) == 2


@pytest.mark.parametrize("adapter", ["gemini", "openai_compatible"])
def test_importing_an_adapter_imports_no_http_client(adapter: str) -> None:
    code = f"import sys, council.llm.{adapter}; print(sorted({{'google.genai', 'httpx2'}} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
