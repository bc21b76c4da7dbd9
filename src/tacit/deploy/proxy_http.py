"""The proxy over HTTPS: one path, frames in, frames out."""

import http.client
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tacit.deploy.proxy import MOST, ProxyService
from tacit.deploy.proxy_calls import ProxyLost, Send
from tacit.errors import TacitError

SECONDS = 60.0


def listening(
    service: ProxyService, host: str, port: int, certificate: Path, key: Path
) -> ThreadingHTTPServer:
    """A server for this proxy; ``serve_forever`` runs it."""

    class Answers(BaseHTTPRequestHandler):
        timeout = SECONDS

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdigit() or int(length) > MOST:
                self.send_error(413)
                return
            wire = self.rfile.read(int(length))
            if len(wire) != int(length):
                self.send_error(400)
                return
            answer = service.received(wire)
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Who calls is nobody's business: nothing is logged."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        server = ThreadingHTTPServer((host, port), Answers)
    except (OSError, ssl.SSLError) as error:
        raise TacitError(
            f"the proxy cannot listen on {host}:{port} ({error})", "choose another port"
        ) from error
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


@contextmanager
def in_background(server: ThreadingHTTPServer) -> Generator[ThreadingHTTPServer]:
    """Serve while something else is done."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def host_and_port(address: str, of: str) -> tuple[str, int]:
    """The two halves of ``https://host:port``; 0 where no port is given.

    Example:
        >>> host_and_port("https://127.0.0.1:9444", "a proxy")
        ('127.0.0.1', 9444)
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:  # no number, or none of a port
        host, port = None, None
    if not host or not address.startswith("https://"):
        raise TacitError(f"{address!r} is not the address of {of}", "write https://host:port")
    return host, port or 0


def reached(address: str, authority: Path | None) -> Send:
    """The way to a proxy at ``https://host:port``; a proxy nobody vouches for is not spoken to."""
    host, given = host_and_port(address, "a proxy")
    port = given or 443
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))

    def send(wire: bytes) -> bytes:
        connection = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)
        try:
            connection.request("POST", "/", body=wire)
            answer = connection.getresponse()
            if answer.status != 200:
                raise ProxyLost
            return answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ProxyLost from error
        finally:
            connection.close()

    return send
