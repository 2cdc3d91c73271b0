"""A host outside, for tests: an HTTPS server with an authority of its own, and the way to it.

`reroute` is the test's own resolver: a name has a public address, and whoever connects to that address reaches the server.
Nothing in the product knows of this, so every rule of the sender is on. `python -m tests.faults` does the same for a process
whose environment has COUNCIL_TEST_OUTSIDE (`host=address=port`, several with commas).
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PUBLIC = "93.184.216.34"


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """`before` is called once the request was read, before anything is answered."""

    body: Any = field(default_factory=lambda: {"ok": True})
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None


class OutsideHost:
    """The server; `requests` is what it got. `authority` is the file of the authority that signed for its `hosts`."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        self.requests: list[Received] = []
        self.answer = Answer()
        self.authority = folder / "authority.pem"
        certificate = folder / "host.pem"
        _sign(hosts, self.authority, certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.requests.append(Received(self.command, self.path, headers, json.loads(data) if data else None))
                answer = outer.answer
                answer.before()
                said = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  a client that hangs up
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def __enter__(self) -> OutsideHost:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def environment(self, *hosts: str) -> dict[str, str]:
        """What a process needs to reach it by these names: see tests/faults.py."""
        routes = ",".join(f"{host}={PUBLIC}={self.port}" for host in hosts)
        return {"COUNCIL_TEST_OUTSIDE": routes, "SSL_CERT_FILE": str(self.authority)}


def reroute(
    names: Mapping[str, Iterable[Sequence[str]]],
    ports: Mapping[str, int],
    put: Callable[[object, str, Any], object] = setattr,
) -> None:
    """`names` are the answers of the resolver, one after the other (the last one stays), each a list of addresses. `ports` says
    where on this machine an address leads to."""
    known, connect = socket.getaddrinfo, asyncio.BaseEventLoop.create_connection
    answers = {name: list(each) for name, each in names.items()}

    def getaddrinfo(host: Any, port: Any, *arguments: Any, **keywords: Any) -> Any:
        left = answers.get(host)
        if left is None:
            return known(host, port, *arguments, **keywords)
        addresses = left.pop(0) if len(left) > 1 else left[0]
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        return [
            (family, socket.SOCK_STREAM, 6, "", (address, port))
            for family, address in zip(families, addresses, strict=True)
        ]

    async def create_connection(self: Any, factory: Any, host: Any = None, port: Any = None, **keywords: Any) -> Any:
        if host in ports and port == 443:
            host, port = "127.0.0.1", ports[host]
        return await connect(self, factory, host, port, **keywords)

    put(socket, "getaddrinfo", getaddrinfo)
    put(asyncio.BaseEventLoop, "create_connection", create_connection)


def reroute_as(told: str) -> None:
    """Reroutes as COUNCIL_TEST_OUTSIDE tells."""
    routes = [each.split("=") for each in told.split(",")]
    reroute({host: [[address]] for host, address, _ in routes}, {address: int(port) for _, address, port in routes})


def _sign(hosts: Sequence[str], authority: Path, certificate: Path) -> None:
    now = datetime.now(UTC)

    def build(name: str, key: Any, issuer: str) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=2))
        )

    root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    own = build("Test authority", root, "Test authority")
    own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    own = own.add_extension(usage, critical=True)
    own = own.add_extension(x509.SubjectKeyIdentifier.from_public_key(root.public_key()), critical=False)
    authority.write_bytes(own.sign(root, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts if not _is_address(host)]
    names += [x509.IPAddress(ipaddress.ip_address(host)) for host in hosts if _is_address(host)]
    signed = build(hosts[0], leaf, "Test authority").add_extension(x509.SubjectAlternativeName(names), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key())
    signed = signed.add_extension(identifier, critical=False)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    key = leaf.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    certificate.write_bytes(key + signed.sign(root, hashes.SHA256()).public_bytes(pem))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
