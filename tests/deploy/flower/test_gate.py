"""What faces the network: only requests of nodes, signed with a key on the list, reach the engine."""

import datetime
import http.client
import socket
import ssl
from base64 import b64encode
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tacit.deploy.certificates import Authority
from tacit.deploy.flower_gate import MOST, SIGNED, gate
from tacit.deploy.https import Answering, HttpsServer, in_background

PULL = "/v1/fleet/pull-messages"


def fresh_key():
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP384R1())
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return private, private.public_key().public_bytes(*form)


def signed(private, public, when="now"):
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    when = datetime.datetime.now(datetime.UTC).isoformat() if when == "now" else when
    told = private.sign(when.encode(), ec.ECDSA(hashes.SHA256()))
    return dict(zip(SIGNED, (b64encode(public).decode(), b64encode(told).decode(), when), strict=True))


class Engine(Answering):
    """Says what it was asked, and remembers it."""

    seen: ClassVar[list[Any]] = []

    def do_POST(self):
        body = self.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, body, self.headers))
        answer = b"engine:" + body
        self.send_response(200 if body != b"fail" else 503)
        self.send_header("Content-Type", "application/protobuf")
        if body == b"chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"6\r\nchunks\r\n0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@dataclass
class Place:
    """A gate before an engine, and a caller of it."""

    port: int
    known: dict[bytes, Any]
    context: ssl.SSLContext
    engine: HttpsServer

    def __post_init__(self):
        self.line = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=self.context)

    def __call__(self, path=PULL, body=b"hello", headers=None):
        self.line.request("POST", path, body=body, headers=headers or {})
        answer = self.line.getresponse()
        return answer.status, answer.read()


@pytest.fixture
def place(tmp_path):
    outside = Authority.made(tmp_path / "out")
    inside = Authority.made(tmp_path / "in").vouched("engine", ["127.0.0.1"])
    own = outside.vouched("server", ["127.0.0.1"])
    known, context = {}, ssl.create_default_context(cafile=str(own.authority))
    Engine.seen.clear()
    with ExitStack() as stack:
        engine = HttpsServer("127.0.0.1", 0, Engine, inside.certificate, inside.key, "the engine")
        stack.enter_context(in_background(engine))
        inner = f"127.0.0.1:{engine.server_address[1]}"
        server = gate("127.0.0.1", 0, own.certificate, own.key, inner, inside.authority, known)
        stack.enter_context(in_background(server))
        whole = Place(server.server_address[1], known, context, engine)
        yield whole
        whole.line.close()


def test_a_listed_key_is_carried_to_the_engine_and_its_answer_back(place):
    private, public = fresh_key()
    place.known[public] = private.public_key()
    headers = {**signed(private, public), "Content-Type": "application/protobuf", "Connection": "close"}
    for body in (b"hello", b"", bytes(1 << 20), b"chunks"):
        assert place(body=body, headers=headers) == (
            200,
            b"chunks" if body == b"chunks" else b"engine:" + body,
        )
    assert place(body=b"fail", headers=headers) == (503, b"engine:fail")
    path, body, told = Engine.seen[0]
    assert (path, body, told["Content-Type"]) == (PULL, b"hello", "application/protobuf")
    assert told[SIGNED[0]] == headers[SIGNED[0]]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/control/list-nodes", "/v1/control/register-node", "/v1/runtime/acquire-task", "/", "/docs",
        "/health", "/v1/fleet/../control/list-nodes", "/v1/fleet/%2e%2e/control/list-nodes",
        "/v1/fleet/", "/v1/fleet/pull-messages?x=1", "https://127.0.0.1/v1/control/list-nodes",
    ],
)  # fmt: skip
def test_what_is_no_nodes_business_is_not_there_even_for_a_device(place, path):
    private, public = fresh_key()
    place.known[public] = private.public_key()
    assert place(path, headers=signed(private, public)) == (404, b"")
    assert Engine.seen == []


def test_nobody_without_a_listed_key_reaches_the_engine(place):
    private, public = fresh_key()
    other, stranger = fresh_key()
    place.known[public] = private.public_key()
    mixed = {**signed(other, stranger), SIGNED[0]: b64encode(public).decode()}
    later = {**signed(private, public), SIGNED[2]: "2030-01-01T00:00:00+00:00"}
    junk = dict.fromkeys(SIGNED, "\x7f%")
    for headers in ({}, signed(other, stranger), mixed, later, junk, {SIGNED[0]: b64encode(public).decode()}):
        assert place(headers=headers) == (401, b"")
    assert Engine.seen == []
    assert place(headers=signed(private, public))[0] == 200
    del place.known[public]  # revoked
    assert place(headers=signed(private, public)) == (401, b"")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": str(MOST + 1)}, 413),
        ({"Content-Length": "9" * 30}, 413),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": "²"}, 411),
        ({"Transfer-Encoding": "chunked", "Content-Length": "5"}, 400),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_a_body_of_no_honest_length_is_not_read(place, headers, status):
    private, public = fresh_key()
    place.known[public] = private.public_key()
    lines = [f"POST {PULL} HTTP/1.1", "Host: x"]
    lines += [f"{name}: {told}" for name, told in {**signed(private, public), **headers}.items()]
    plain = socket.create_connection(("127.0.0.1", place.port), 10)
    with place.context.wrap_socket(plain, server_hostname="127.0.0.1") as line:
        line.sendall("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
        assert line.recv(1 << 16).split()[1] == str(status).encode()
    assert Engine.seen == []


def test_a_body_that_breaks_off_and_an_engine_that_is_gone_do_no_harm(place, capfd):
    private, public = fresh_key()
    place.known[public] = private.public_key()
    lines = [f"POST {PULL} HTTP/1.1", "Host: x", "Content-Length: 100"]
    lines += [f"{name}: {told}" for name, told in signed(private, public).items()]
    plain = socket.create_connection(("127.0.0.1", place.port), 10)
    with place.context.wrap_socket(plain, server_hostname="127.0.0.1") as line:
        line.sendall("\r\n".join([*lines, "", "short"]).encode())
    with socket.create_connection(("127.0.0.1", place.port), 10) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")  # no TLS
    assert place(headers=signed(private, public))[0] == 200
    place.engine.server_close()
    place.engine.shutdown()
    assert place("/v1/fleet/get-run", headers={**signed(private, public)})[0] in {200, 502}
    assert capfd.readouterr() == ("", "")  # who calls is written nowhere
