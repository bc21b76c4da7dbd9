"""A small HTTPS server: a thread per connection, so many at once, and no word about who calls."""

import io
import socket
import ssl
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tacit.errors import TacitError

SECONDS = 60.0  # that a caller has for the head of a request, and again for its body
HEAD = 1 << 15  # bytes of a request before its body
SLOWEST = 1 << 14  # bytes a second; so much longer a body may take
AT_ONCE = 4096  # connections; a further one is closed at once


class _Bounded(io.RawIOBase):
    """What a caller says: so many bytes at most, until a moment.

    A socket's own timeout would begin anew with every byte, and a head's hundred lines may be long.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._end, self._room = 0.0, 0

    def allow(self, length: int) -> None:
        """From now on so many bytes, and time for them."""
        self._end, self._room = time.monotonic() + SECONDS + length / SLOWEST, length

    def readable(self) -> bool:
        """It is read from."""
        return True

    def readinto(self, buffer: Any) -> int:
        """What has come, as long as there is time and room."""
        left = self._end - time.monotonic()
        if left <= 0 or not self._room:
            raise TimeoutError
        self._connection.settimeout(left)
        read = self._connection.recv_into(memoryview(buffer)[: self._room])
        self._room -= read
        return read


class Budget:
    """Bytes of several callers that may be held at once; one alone always fits.

    Example:
        >>> budget = Budget(10)
        >>> with budget.taken(30) as first, budget.taken(1) as second:
        ...     first, second
        (True, False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._turn = threading.Lock()

    @contextmanager
    def taken(self, amount: int) -> Generator[bool]:
        """Whether there is room for so many bytes, which is theirs meanwhile."""
        with self._turn:
            fits = not self._held or self._held + amount <= self._most
            self._held += amount if fits else 0
        try:
            yield fits
        finally:
            with self._turn:
                self._held -= amount if fits else 0


class Answering(BaseHTTPRequestHandler):
    """One caller. A request's body has a length that is told; nothing is logged."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = SECONDS
    server_version = "tacit"
    sys_version = ""

    def setup(self) -> None:
        """Read with an end to it."""
        super().setup()
        self.rfile.close()
        self._said = _Bounded(self.connection)
        self.rfile = io.BufferedReader(self._said)

    def handle_one_request(self) -> None:
        """A request's head has one span of time, however it comes in."""
        self._said.allow(HEAD)
        super().handle_one_request()

    def read(self, length: int) -> bytes:
        """So much of the body, or what comes of it in time."""
        self.allow(length)
        return self.rfile.read(length)

    def allow(self, length: int) -> None:
        """So much of the body may come, and has time for it."""
        self._said.allow(length)

    def log_message(self, format: str, *args: Any) -> None:
        """Who calls is nobody's business."""

    def body_length(self, most: int) -> int | None:
        """How long the body is; ``None`` after a refusal: no length, or more than ``most``."""
        told = self.headers.get_all("Content-Length") or [""]
        if len(told) != 1 or not (told[0].isascii() and told[0].isdigit()):
            self.refused(411)
        elif "Transfer-Encoding" in self.headers:
            self.refused(400)
        elif len(told[0]) > 18 or int(told[0]) > most:
            self.refused(413)
        else:
            return int(told[0])
        return None

    def refused(self, status: int) -> None:
        """A status without a word, and the end of the connection."""
        self.close_connection = True
        self.begun(status, 0)

    def begun(self, status: int, length: int, kind: str = "application/octet-stream") -> None:
        """The head of an answer; so many bytes follow."""
        self.connection.settimeout(SECONDS)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


class HttpsServer(ThreadingHTTPServer):
    """Listens at once; ``serve_forever`` answers."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        handler: type[Answering],
        certificate: Path,
        key: Path,
        of: str,
        at_once: int = AT_ONCE,
    ) -> None:
        """Bind with a certificate; ``of`` names what cannot listen where that fails."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._room = threading.BoundedSemaphore(at_once)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise TacitError(
                f"{certificate} and {key} are no certificate with its key", "give files that belong together"
            ) from error
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            raise TacitError(
                f"{of} cannot listen on {host}:{port} ({error.strerror})", "give another --port or --host"
            ) from error
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a caller, if there is room."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The caller's thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that breaks off, or speaks something else, is no event."""


@contextmanager
def in_background(server: ThreadingHTTPServer) -> Generator[ThreadingHTTPServer]:
    """Serve while something else is done."""
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
