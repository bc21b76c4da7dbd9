"""The person's page: a small server on this machine's loopback address, for one person at a time.

Who may look: whoever was given the link, on this machine. It carries a key that works once and is exchanged
for a cookie. A cookie knows no port, so it holds for a path nobody else can guess: other programs that this
browser visits on this machine are not sent it. Requests that name another host are refused (a foreign site
cannot rebind its name to this page), and so are those that a browser says come from elsewhere; changes need a
token that only this page's forms carry, and the browser is told to load and run nothing else.
"""

import hmac
import re
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tacit.deploy.pages import Pages, forgotten, refused
from tacit.deploy.store import DeviceStore
from tacit.errors import TacitError

COOKIE = "tacit_device"
STYLE = files("tacit.deploy").joinpath("page.css").read_text(encoding="utf-8")
MOST_POSTED = 1 << 16
_OURS = re.compile(r'(href|action)="/')  # in a page's text quotes are escaped: these are its own links
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers post our own forms as from nowhere
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Done(Exception):
    """Answer with a redirect, and say something there."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where


class PageServer(ThreadingHTTPServer):
    """The page of one person, answering one request at a time.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from tacit.deploy.history import History
        >>> store = DeviceStore.created(Path(tempfile.mkdtemp()) / "mine")
        >>> _ = store.add_history("ann", History.of([("x", 4.0, None)]))
        >>> with PageServer(store, "ann", 0) as server:
        ...     server.link.startswith("http://127.0.0.1:")
        True
    """

    daemon_threads = True

    def __init__(
        self, store: DeviceStore, person: str, port: int, renewed: Callable[[str], None] | None = None
    ) -> None:
        """Bind to the loopback address; port 0 takes any free one.

        ``renewed`` is told the next link once the present one was used.
        """
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise TacitError(
                f"port {port} cannot be had ({error.strerror})", "give another --port"
            ) from error
        self.store = store
        self.person = person
        self.at = f"/{secrets.token_urlsafe(12)}"
        self.key, self.cookie = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.renewed = renewed or (lambda link: None)  # noqa: ARG005
        self.pages = Pages(store, person, secrets.token_urlsafe(24))
        self.turn = threading.Lock()
        self.said = ""

    @property
    def origin(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def link(self) -> str:
        """The address with the key that lets a browser in, once."""
        return f"{self.origin}{self.at}/?key={self.key}"

    def let_in(self, key: str) -> bool:
        """Whether this is the link's key; then it is no more."""
        with self.turn:
            if not _same(key, self.key):
                return False
            self.key = secrets.token_urlsafe(24)
        self.renewed(self.link)
        return True

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names this page answers to."""
        return tuple(f"{name}:{self.server_address[1]}" for name in ("127.0.0.1", "localhost"))

    def stopping(self) -> None:
        """Stop after the present answer."""
        threading.Thread(target=self.shutdown, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    """One request. Everything is refused that is not plainly the owner's own browser."""

    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = "tacit"
    sys_version = ""
    timeout = 30
    _path = ""
    _within = ""  # in front of the page's own links, for whoever was let in; strangers are not told it

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a log of a person's clicks is one more thing to leak."""

    def do_GET(self) -> None:
        """Pages."""
        self._answer(self._get)

    def do_HEAD(self) -> None:
        """Pages without their body."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Changes."""
        self._answer(self._post)

    def _answer(self, made: Callable[[], str]) -> None:
        if self.headers.get("Host", "") not in self.server.hosts:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, refused("Not here", "This page has another address."))
            return
        if self.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}:
            why = "Another page sent you here. Open the link that the device printed."
            self._send(HTTPStatus.FORBIDDEN, refused("Not from there", why))
            return
        url, at = urlsplit(self.path), self.server.at
        self._path = url.path.removeprefix(at)
        if self._path == "/style.css" and self.command != "POST":
            self._send(HTTPStatus.OK, STYLE, "text/css")
            return
        given = parse_qs(url.query).get("key", [""])[0]
        if given and self.command == "GET" and self.server.let_in(given):
            cookie = f"{COOKIE}={self.server.cookie}; HttpOnly; SameSite=Strict; Path={at}"
            self._send(HTTPStatus.SEE_OTHER, "", extra={"Location": f"{at}/", "Set-Cookie": cookie})
            return
        if not url.path.startswith(f"{at}/") or not _same(self._cookie(), self.server.cookie):
            why = "Open the link that the device printed last: it lets one browser in, once."
            self._send(HTTPStatus.FORBIDDEN, refused("Who is it?", why))
            return
        self._within = at
        with self.server.turn:
            self._made(made)

    def _made(self, made: Callable[[], str]) -> None:
        try:
            self._send(HTTPStatus.OK, made())
        except _Done as done:
            self._send(HTTPStatus.SEE_OTHER, "", extra={"Location": f"{self._within}{done.where}"})
        except _NotFound:
            self._send(HTTPStatus.NOT_FOUND, refused("There is no such page", "Go back to the first one."))
        except _Forged:
            why = "The request did not come from this page, so nothing was changed."
            self._send(HTTPStatus.FORBIDDEN, refused("Nothing was changed", why))
        except TacitError as error:
            why = f"{error.problem.capitalize()}; {error.remedy}."
            self._send(HTTPStatus.CONFLICT, refused("That cannot be done", why))

    def _get(self) -> str:
        url, pages = urlsplit(self.path), self.server.pages
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        said, self.server.said = self.server.said, ""
        start = int(asked["from"]) if asked.get("from", "").isdigit() else 0
        routes: Mapping[str, Callable[[], str]] = {
            "/": lambda: pages.top(said),
            "/have": lambda: pages.have(asked.get("q", ""), start, said),
            "/have/delete": lambda: pages.deletion(asked.get("item", "")),
            "/learned": lambda: pages.learned(asked=asked.get("all") == "yes"),
            "/sent": lambda: pages.sent(start),
            "/settings": lambda: pages.settings(said),
            "/forget": lambda: pages.forgetting(said),
        }
        if self._path not in routes:
            raise _NotFound
        return routes[self._path]()

    def _post(self) -> str:
        posted = self._posted()
        changes: Mapping[str, Callable[[Mapping[str, str]], str]] = {
            "/have/delete": self._delete,
            "/pause": self._pause,
            "/limits": self._limit,
            "/forget": self._forget,
        }
        if self._path not in changes:
            raise _NotFound
        return changes[self._path](posted)

    def _posted(self) -> dict[str, str]:
        """The form, if it is one of ours: same origin, and with the token only our pages hold."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MOST_POSTED:
            raise _Forged
        body = self.rfile.read(int(length)).decode("utf-8", errors="replace")
        posted = {name: values[0] for name, values in parse_qs(body, keep_blank_values=True).items()}
        origin = self.headers.get("Origin")
        ours = [f"http://{host}" for host in self.server.hosts]
        if origin is not None and origin not in ours:
            raise _Forged
        if not _same(posted.get("token", ""), self.server.pages.token):
            raise _Forged
        return posted

    def _done(self, where: str, said: str) -> _Done:
        self.server.said = said
        return _Done(where)

    def _delete(self, posted: Mapping[str, str]) -> str:
        gone = self.server.store.remove_entry(self.server.person, posted.get("item", ""))
        raise self._done("/have", "The entry is erased." if gone else "There was no such entry.")

    def _pause(self, posted: Mapping[str, str]) -> str:
        if posted.get("do") == "resume":
            self.server.store.set_paused("")
            raise self._done("/settings", "This device takes part again when asked.")
        self.server.store.set_paused("paused by its owner")
        raise self._done("/settings", "Paused: this device takes no part.")

    def _limit(self, posted: Mapping[str, str]) -> str:
        limits = self.server.store.limits()
        for name in ("per_run", "runs", "per_day", "separation", "bytes_per_day", "epsilon:server"):
            if name in posted:
                limits = limits.with_setting(f"{name}={posted[name].strip() or 'none'}")
        self.server.store.set_limits(limits)
        raise self._done("/settings", "Limits saved: " + ("; ".join(limits.said()) or "none") + ".")

    def _forget(self, posted: Mapping[str, str]) -> str:
        if posted.get("sure") != "yes" or posted.get("name", "").strip() != self.server.person:
            raise self._done(
                "/forget", "Nothing was erased: tick the box and type the name as it stands there."
            )
        self.server.store.forget(self.server.person)
        self.server.stopping()
        return forgotten()

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def _send(
        self,
        status: HTTPStatus,
        text: str,
        kind: str = "text/html",
        extra: Mapping[str, str] | None = None,
    ) -> None:
        body = _OURS.sub(rf'\1="{self._within}/', text).encode()
        self.send_response(status)
        for name, value in {**HEADERS, **(extra or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _NotFound(Exception):
    """No such page."""


class _Forged(Exception):
    """A change that no form of ours asked for."""


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(), known.encode())


def serve_page(store: DeviceStore, user: str, port: int, *, quiet: bool = False) -> int:
    """Serve the person's page until Ctrl-C, or until they are forgotten."""
    person = store.person_meant(user)

    def renewed(link: str) -> None:
        if not quiet:
            sys.stderr.write(f"a browser was let in; for another one: {link}\n")

    with PageServer(store, person, port, renewed) as server:
        sys.stdout.write(f"{server.link}\n")
        sys.stdout.flush()
        if not quiet:
            sys.stderr.write("open this link in a browser on this machine; Ctrl-C ends it\n")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return 130
    return 0
