"""A small HTTPS server: a thread per connection, so many at once, and no word about who calls."""

import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tacit.errors import TacitError

SECONDS = 60.0  # after which a caller that says nothing is let go
AT_ONCE = 4096  # connections; a further one is closed at once


class Answering(BaseHTTPRequestHandler):
    """One caller. A request's body has a length that is told; nothing is logged."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = SECONDS
    server_version = "tacit"
    sys_version = ""

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
        self, host: str, port: int, handler: type[Answering], certificate: Path, key: Path, of: str
    ) -> None:
        """Bind with a certificate; ``of`` names what cannot listen where that fails."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._room = threading.BoundedSemaphore(AT_ONCE)
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
