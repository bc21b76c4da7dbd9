"""The proxy over HTTPS: one path, frames in, frames out."""

import http.client
import sqlite3
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tacit.deploy.https import SECONDS, Answering, Budget, HttpsServer
from tacit.deploy.proxy import SMALL, ProxyService
from tacit.deploy.proxy_calls import ProxyLost, Send
from tacit.errors import TacitError

AT_ONCE = 512  # callers
KNOWING = 1 << 28  # bytes held at once of callers who name an exchange that is open
OTHERS = 1 << 26  # bytes held at once of all others: of the server, while it opens an exchange


def listening(service: ProxyService, host: str, port: int, certificate: Path, key: Path) -> HttpsServer:
    """A server for this proxy; ``serve_forever`` runs it.

    Nobody's signature can be looked at before their message is there. So a little is read of anybody, and
    more only of a message that begins as one that is waited for, and only while there is room for it.
    """
    knowing, others = Budget(KNOWING), Budget(OTHERS)

    class Answers(Answering):
        def do_POST(self) -> None:
            length = self.body_length(1 << 60)
            if length is None:
                return
            start = self.read(min(length, SMALL))
            most, known = service.expected(start)
            if length > most:
                self.refused(413)
                return
            with (knowing if known else others).taken(length - len(start)) as fits:
                if not fits:
                    self.refused(503)
                    return
                self._answer(start + self.read(length - len(start)))

        def _answer(self, wire: bytes) -> None:
            try:
                answer = service.received(wire)
            except sqlite3.Error as error:  # a full disk: nothing was kept, it is sent again
                sys.stderr.write(f"tacit: the proxy cannot write its file ({error}); free some space\n")
                self.refused(503)
                return
            self.begun(200, len(answer))
            self.wfile.write(answer)

    return HttpsServer(host, port, Answers, certificate, key, "the proxy", AT_ONCE)


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
