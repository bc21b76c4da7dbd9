"""The person's page as programs and foreign sites meet it: who gets in, who changes what, what is said."""

import http.client
import re
import threading
from urllib.parse import urlencode

import pytest

from tacit.deploy.history import History
from tacit.deploy.limits import Limits
from tacit.deploy.store import DeviceStore
from tacit.deploy.web import PageServer
from tacit.errors import TacitError
from tacit.testing.device import device_of, simulated


class Visitor:
    """A plain client that keeps one cookie, as a browser would."""

    def __init__(self, server):
        self.server, self.cookie, self.within = server, "", True

    def ask(self, method, path, body=None, host=None, **headers):
        port = self.server.server_address[1]
        if self.within:
            path = self.server.at + path
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        sent = {"Host": host or f"127.0.0.1:{port}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self.cookie:
            sent["Cookie"] = self.cookie
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        line.request(method, path, body, sent)
        answer = line.getresponse()
        text = answer.read().decode()
        if "Set-Cookie" in answer.headers:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        line.close()
        return answer.status, answer.headers, text

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, **fields):
        return self.ask("POST", path, urlencode(fields))

    def let_in(self):
        status, headers, _ = self.get(f"/?key={self.server.key}")
        assert (status, headers["Location"]) == (303, f"{self.server.at}/")
        return self

    def token(self):
        return re.search(r'name="token" value="([^"]+)"', self.get("/settings")[2])[1]


@pytest.fixture(scope="module")
def told():
    return simulated("fedrec", rounds=3)


@pytest.fixture
def served(told, tmp_path):
    store = device_of(tmp_path / "device", told, 8)
    with PageServer(store, "9", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server, store
        server.shutdown()
        thread.join()
    store.close()


def test_nobody_gets_in_without_the_key(served):
    server, _ = served
    for path in ("/", "/have", "/learned", "/sent", "/settings", "/forget", "/?key=wrong", "/nothing"):
        status, _, text = Visitor(server).get(path)
        assert status == 403
        assert "film" not in text.lower()
        assert "rating" not in text.lower()
    stranger = Visitor(server)
    stranger.cookie = "tacit_device=wrong"
    assert stranger.get("/")[0] == 403
    stranger.cookie = "tacit_device"
    assert stranger.post("/pause", do="pause")[0] == 403


def test_a_foreign_name_for_this_machine_gets_nothing(served):
    """DNS rebinding: the browser would send the foreign name as host, with any cookie."""
    server, _ = served
    port = server.server_address[1]
    owner = Visitor(server).let_in()
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"0.0.0.0:{port}",
    ):
        status, _, text = owner.get("/have", host=host)
        assert status == 421
        assert "Search" not in text
    assert owner.get("/have", host=f"localhost:{port}")[0] == 200


def test_pages_load_and_run_nothing(served):
    server, _ = served
    owner = Visitor(server).let_in()
    for path in ("/", "/have", "/learned", "/sent", "/settings", "/forget", "/have/delete?item=2", "/none"):
        _, headers, text = owner.get(path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script" not in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"
        assert not re.search(r"<script|\son\w+=|javascript:|@import|style=", text)
        links = set(re.findall(r'(?:src|href|action)=["\']([^"\'#]+)["\']', text)) - {"data:,"}
        assert all(link.startswith(f"{server.at}/") for link in links)
        assert {link.removeprefix(server.at) for link in links} <= {
            *(
                "/",
                "/have",
                "/learned",
                "/sent",
                "/settings",
                "/forget",
                "/style.css",
                "/pause",
                "/limits",
            ),
            *re.findall(r"/have/delete\?item=\d+", text),
            *("/have/delete",),
        }
    cookie = Visitor(server).get(f"/?key={server.key}")[1]["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert cookie.endswith(f"; Path={server.at}")


def test_the_link_lets_one_browser_in_once_and_its_key_is_no_cookie(served):
    server, _ = served
    link = server.link
    assert link.startswith(f"{server.origin}{server.at}/?key=")
    path, told = link.removeprefix(server.origin + server.at), []
    server.renewed = told.append
    owner, later = Visitor(server), Visitor(server)
    assert owner.get(path)[0] == 303
    assert owner.get("/have")[0] == 200
    assert told == [server.link]
    assert told != [link]
    assert later.get(path)[0] == 403  # out of the history
    assert later.cookie == ""
    key = path.partition("=")[2]
    for guess in (key, server.key):
        later.cookie = f"tacit_device={guess}"
        assert later.get("/have")[0] == 403
    assert key not in owner.cookie
    assert Visitor(server).get(told[0].removeprefix(server.origin + server.at))[0] == 303


def test_a_cookie_that_another_program_was_sent_is_of_no_use_without_the_path(served):
    """Cookies know no port; the path in front is what keeps this one from others on this machine."""
    server, _ = served
    thief = Visitor(server)
    thief.within, thief.cookie = False, f"tacit_device={server.cookie}"
    for path in ("/", "/have", "/settings", f"/?key={server.key[:-1]}x", f"{server.at}x/have", server.at):
        status, headers, text = thief.get(path)
        assert status == 403
        assert server.at not in text + str(headers)
    assert thief.get("/style.css")[0] == 200


@pytest.mark.parametrize(
    ("site", "status"), [("none", 200), ("same-origin", 200), ("same-site", 403), ("cross-site", 403)]
)
def test_requests_that_a_browser_says_come_from_elsewhere_are_refused(served, site, status):
    server, store = served
    owner = Visitor(server).let_in()
    assert owner.get("/have", Sec_Fetch_Site=site)[0] == status
    token = owner.token()
    form = urlencode({"do": "pause", "token": token})
    assert owner.ask("POST", "/pause", form, Sec_Fetch_Site=site)[0] == (303 if status == 200 else 403)
    assert bool(store.paused) == (status == 200)
    if status == 403:
        key = server.key
        assert owner.get(f"/?key={key}", Sec_Fetch_Site=site)[0] == 403
        assert server.key == key


def test_changes_need_the_forms_token_and_origin(served):
    server, store = served
    owner = Visitor(server).let_in()
    token = owner.token()
    assert owner.post("/pause", do="pause")[0] == 403
    assert owner.post("/pause", do="pause", token="wrong")[0] == 403
    foreign = owner.ask(
        "POST", "/pause", urlencode({"do": "pause", "token": token}), Origin="http://evil.example"
    )
    assert foreign[0] == 403
    assert owner.ask("POST", "/pause", "x" * 100_000)[0] == 403
    assert owner.post("/forget", sure="yes", name="9")[0] == 403
    assert (store.paused, store.people()) == ("", ("9",))
    assert owner.post("/pause", do="pause", token=token)[0] == 303
    assert store.paused == "paused by its owner"
    assert owner.get("/pause")[0] == 404


def test_pausing_limiting_deleting_forgetting(served):
    server, store = served
    owner = Visitor(server).let_in()
    token = owner.token()
    owner.post("/pause", do="pause", token=token)
    assert "Paused: this device takes no part" in owner.get("/settings")[2]
    owner.post("/pause", do="resume", token=token)
    assert store.paused == ""
    owner.post("/limits", token=token, per_run="7", **{"epsilon:server": "2.5"})
    assert store.limits() == Limits(per_run=7, epsilon={"server": 2.5})
    status, _, text = owner.post("/limits", token=token, per_run="many")
    assert (status, "not a number" in text) == (409, True)
    item = store.history("9").items[0]
    owner.post("/have/delete", token=token, item=item)
    assert item not in store.history("9").items
    owner.post("/forget", token=token, sure="yes", name="someone else")
    assert store.people() == ("9",)
    status, _, text = owner.post("/forget", token=token, sure="yes", name="9")
    assert (status, "You are forgotten" in text) == (200, True)
    assert store.people() == ()


def test_the_pages_say_what_the_store_holds(served):
    server, store = served
    owner = Visitor(server).let_in()
    assert owner.get("/")[2].count("<li><span") == 10
    have = owner.get("/have")[2]
    assert f"{len(store.history('9'))} entries" in have
    assert "No entry of it is ever sent as it is" in have
    found = owner.get("/have?q=the")[2]
    assert "matching “the”" in found
    assert "0 entries matching" in owner.get("/have?q=%3Cb%3Enot")[2]
    assert "<b>not" not in owner.get("/have?q=%3Cb%3Enot")[2]
    sent = owner.get("/sent")[2]
    assert "∞" in sent
    assert "one upload reveals the ratings" in sent  # the reason stands beside it
    assert "3 messages" in sent
    assert sum(line.up_bytes for line in store.sent("9")) == 3 * store.sent("9")[0].up_bytes
    learned = owner.get("/learned")[2]
    assert "trained here while taking part" in learned
    assert "Nearest to your taste" in learned
    assert "left out in turn" in learned
    assert owner.get("/have/delete?item=nothing-such")[0] == 409
    assert owner.ask("HEAD", "/sent")[2] == ""


def test_titles_and_ids_are_escaped(tmp_path):
    with DeviceStore.created(tmp_path / "device") as store:
        store.add_history("<i>eve</i>", History.of([('"><script>alert(1)</script>', 3.0, None)]))
        with PageServer(store, "<i>eve</i>", 0) as server:
            for text in (server.pages.have("", 0), server.pages.forgetting(), server.pages.top()):
                assert "<script" not in text
                assert "<i>eve" not in text


def test_a_long_history_is_read_in_parts(tmp_path):
    with DeviceStore.created(tmp_path / "device") as store:
        store.add_history("ann", History.of([(f"item-{n:03}", 3.0, 1000 + n) for n in range(250)]))
        with PageServer(store, "ann", 0) as server:
            first, last = server.pages.have("", 0), server.pages.have("", 200)
    assert first.count("/have/delete?item=") == 100
    assert last.count("/have/delete?item=") == 50
    assert "item-249" in first
    assert "Older" in first
    assert "Older" not in last
    assert "from=100" in last


def test_a_taken_port_is_one_clear_line(served):
    server, store = served
    with pytest.raises(TacitError, match="cannot be had"):
        PageServer(store, "9", server.server_address[1])
