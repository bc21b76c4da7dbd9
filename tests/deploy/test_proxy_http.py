"""The proxy over HTTPS before strangers: how much it reads of them, for how long, who is still answered."""

import socket
import ssl
import time
from contextlib import ExitStack, suppress

import pytest

from tacit.config.experiment import Experiment
from tacit.deploy import https, proxy_http
from tacit.deploy.certificates import Authority
from tacit.deploy.https import in_background
from tacit.deploy.proxy import SMALL
from tacit.deploy.proxy_http import listening, reached
from tacit.deploy.wire import MAX_HEAD, Kind, framed, unframed
from tacit.testing.deployment import deployed

PATIENCE = 10.0
REPORTS = Experiment("fmf-ldp", rounds=1, settings={"k": 4, "n_min": 5})
BUDGET = 1 << 16


class Outside:
    """A proxy with an exchange open, and callers of it; every call ends by itself."""

    def __init__(self, folder, stack):
        self.whole = deployed(folder / "all", REPORTS, users=6)
        own = Authority.made(folder / "keys").vouched("proxy", ["127.0.0.1"])
        server = listening(self.whole.proxy, "127.0.0.1", 0, own.certificate, own.key)
        stack.enter_context(in_background(server))
        self.port, self._stack = server.server_address[1], stack
        self.context = ssl.create_default_context(cafile=str(own.authority))
        self.send = reached(f"https://127.0.0.1:{self.port}", own.authority)

    def call(self, said):
        raw = self._stack.enter_context(socket.create_connection(("127.0.0.1", self.port), PATIENCE))
        line = self._stack.enter_context(self.context.wrap_socket(raw, server_hostname="127.0.0.1"))
        line.sendall(said)
        return line

    def post(self, start, length):
        return self.call(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + start)


@pytest.fixture
def outside(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy_http, "OTHERS", BUDGET)
    monkeypatch.setattr(proxy_http, "KNOWING", BUDGET)
    with ExitStack() as stack:
        yield Outside(tmp_path, stack)


def status(line):
    """The status of an answer; nothing where the caller was let go without one."""
    try:
        told = line.recv(1 << 12)
    except ConnectionError:
        return None
    return int(told.split()[1]) if told else None


def first_answered(lines):
    """The status that one of these callers is told first; the caller is taken out."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for line in list(lines):
            line.settimeout(0.1)
            try:
                found = status(line)
            except TimeoutError:
                line.settimeout(PATIENCE)
                continue
            lines.remove(line)
            return found
    return None


def beginning(whole, kind, length, **changed):
    """The first bytes of a frame so long."""
    head = {**whole.coordinator.step.place.head(), "slot": 0, "readers": [], **changed}
    return framed(kind, head, [bytes(length)], bytes(32))[:SMALL]


@pytest.mark.parametrize(("kind", "nonce"), [(Kind.POST, "guessed"), (Kind.FETCH, None), (Kind.FORGET, None)])
def test_a_long_message_that_nobody_waits_for_is_refused_after_its_beginning(outside, kind, nonce):
    whole = outside.whole
    start = beginning(whole, kind, 1 << 20, **({"nonce": nonce} if nonce else {}))
    assert status(outside.post(start, 1 << 25)) == 413
    assert status(outside.post(bytes(SMALL), 10**17)) == 413
    assert status(outside.post(beginning(whole, Kind.OPEN, SMALL), SMALL + MAX_HEAD + 1)) == 413


def test_strangers_together_hold_little_and_keep_no_device_out(outside):
    whole = outside.whole
    start = beginning(whole, Kind.OPEN, 1 << 20)
    each = SMALL + BUDGET // 4
    held = [outside.post(start, each) for _ in range(5)]  # a quarter each, so one of them does not fit
    assert first_answered(held) == 503
    whole.to_proxy = outside.send
    assert whole.run()
    assert whole.proxy.refusals() == {}
    for line in held:
        line.close()


def test_one_message_longer_than_the_budget_is_taken_alone(outside):
    whole = outside.whole
    place, people = whole.coordinator.step.place, {0: whole.coordinator.devices[0].identity}
    link = whole.link()
    link.forget(place)
    link.open(place, people, [0], 0, 0, 1, 4 * BUDGET)
    start = beginning(whole, Kind.POST, 3 * BUDGET)
    held = [outside.post(start, 3 * BUDGET) for _ in range(2)]
    assert first_answered(held) == 503
    (left,) = held
    left.sendall(bytes(3 * BUDGET - SMALL))
    assert status(left) == 200


@pytest.mark.parametrize("body", [False, True])
def test_a_caller_who_drips_is_let_go(outside, body, monkeypatch):
    monkeypatch.setattr(https, "SECONDS", 0.6)
    line = outside.post(b"", 1000) if body else outside.call(b"POST / HTTP/1.1\r\nX: ")
    began = time.monotonic()
    with suppress(OSError):  # whichever way the system says that nobody listens
        while time.monotonic() - began < PATIENCE:
            line.sendall(b"x")
            time.sleep(0.1)
    assert time.monotonic() - began < 5.0


def test_a_head_without_end_is_let_go(outside):
    line = outside.call(b"POST / HTTP/1.1\r\n" + b"X: y\r\n" * 10 + b"Y: " + b"z" * (https.HEAD - 1000))
    line.sendall(b"z" * 2000)
    assert status(line) is None


def test_more_callers_than_there_is_room_for_are_let_go(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy_http, "AT_ONCE", 2)
    with ExitStack() as stack:
        outside = Outside(tmp_path, stack)
        held = [outside.call(b"POST / HTTP/1.1\r\n") for _ in range(2)]
        with pytest.raises(OSError):  # noqa: PT011 - whichever way the system says it
            outside.call(b"POST / HTTP/1.1\r\n")
        held.pop().close()
        waiting = time.monotonic() + PATIENCE
        while True:
            try:
                answer = unframed(outside.send(b"junk"), 1 << 20)
                break
            except proxy_http.ProxyLost:
                assert time.monotonic() < waiting
        assert answer.head["no"] == "truncated"
