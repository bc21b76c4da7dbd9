"""What faces the network: a gate that lets through what devices' nodes say to the engine, and nothing else.

The engine serves nodes, operators and its own programs on one port, and asks operators for no key: whoever
reached it could list the devices, register a key or take one away. It therefore listens on loopback alone,
and the gate carries the nodes' part to it: requests signed with a key on the operator's list. Nothing is read
of any other. The engine verifies the same signature once more, and that it is fresh.
"""

import http.client
import re
import ssl
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.deploy.https import SECONDS, Answering, HttpsServer

OURS = re.compile(r"/v1/fleet/[a-z-]+")
OF_THE_HOP = {"host", "connection", "keep-alive", "te", "trailer", "upgrade", "content-length", "expect"}
SIGNED = ("flwr-public-key", "flwr-signature", "flwr-timestamp")
MOST = 1 << 30  # bytes of one message: the answers of everybody behind a node
BLOCK = 1 << 16
IDLE = 3.0  # seconds; the engine closes a connection that was silent for five


def gate(
    host: str,
    port: int,
    certificate: Path,
    key: Path,
    inner: str,
    authority: Path,
    known: Mapping[bytes, Any],
) -> HttpsServer:
    """A gate at ``host:port`` to the engine at ``inner`` for whoever has one of the ``known`` keys."""
    context = ssl.create_default_context(cafile=str(authority))

    class Passing(_Passing):
        keys = known

        @staticmethod
        def reach() -> http.client.HTTPSConnection:
            return http.client.HTTPSConnection(inner, timeout=SECONDS, context=context)

    return HttpsServer(host, port, Passing, certificate, key, "the server")


class _Passing(Answering):
    """Requests of one node, over one connection to the engine."""

    keys: Mapping[bytes, Any]
    reach: Callable[[], http.client.HTTPSConnection]
    _there: http.client.HTTPSConnection | None = None
    _used = 0.0

    def do_POST(self) -> None:
        """A node's request."""
        if not OURS.fullmatch(self.path):
            self.refused(404)
            return
        if not self._is_known():
            self.refused(401)
            return
        length = self.body_length(MOST)
        if length is None:
            return
        self.allow(length)
        try:
            answer = self._asked(length)
            whole = answer.read() if answer.length is None else None
        except (OSError, http.client.HTTPException):
            self._drop()
            self.refused(502)
            return
        self._handed_on(answer, whole)

    def do_GET(self) -> None:
        """Nothing is shown here."""
        self.refused(404)

    def _is_known(self) -> bool:
        """Whether the request is signed with a key on the list."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        public, signature, signed = (self.headers.get(name, "") for name in SIGNED)
        try:
            key = self.keys[b64decode(public, validate=True)]
            key.verify(b64decode(signature, validate=True), signed.encode(), ec.ECDSA(hashes.SHA256()))
        except (KeyError, ValueError, InvalidSignature):
            return False
        return True

    def _asked(self, length: int) -> http.client.HTTPResponse:
        if self._there is None or time.monotonic() - self._used > IDLE:
            self._drop()
            self._there = self.reach()
        there, headers = self._there, {"Content-Length": str(length)}
        headers |= {name: told for name, told in self.headers.items() if name.lower() not in OF_THE_HOP}
        there.request("POST", self.path, body=_Body(self.rfile, length) if length else None, headers=headers)
        return there.getresponse()

    def _handed_on(self, answer: http.client.HTTPResponse, whole: bytes | None) -> None:
        length = (answer.length or 0) if whole is None else len(whole)
        self.begun(answer.status, length, answer.headers.get("Content-Type", "application/octet-stream"))
        if whole is not None:
            self.wfile.write(whole)
        while whole is None and (block := answer.read(BLOCK)):
            self.wfile.write(block)
        self._used = time.monotonic()

    def _drop(self) -> None:
        if self._there is not None:
            self._there.close()
            self._there = None

    def finish(self) -> None:
        """The node has gone."""
        self._drop()
        super().finish()


class _Body:
    """So many bytes of a stream, in blocks; one that ends early is an error."""

    def __init__(self, stream: Any, length: int) -> None:
        self._stream = stream
        self._left = length

    def read(self, size: int = BLOCK) -> bytes:
        block = self._stream.read(min(size, self._left)) if self._left else b""
        if self._left and not block:
            raise ConnectionResetError
        self._left -= len(block)
        return block
