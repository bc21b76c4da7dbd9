import hashlib
import io
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tacit.data.get import fetch, get
from tacit.data.source import Download
from tacit.errors import TacitError


def archive_of(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("set/ratings.dat", content)
    return out.getvalue()


GOOD = archive_of(b"the published ratings" * 5000)
MD5 = hashlib.md5(GOOD).hexdigest()


class Served:
    """What a small server does, and what it was asked for."""

    def __init__(self, body, *, ranges=True, cuts=(), refusals=0):
        self.body, self.ranges, self.cuts, self.refusals = body, ranges, list(cuts), refusals
        self.asked = []


def handler_for(served):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

        def do_GET(self):
            wanted = self.headers.get("Range")
            served.asked.append(wanted)
            if served.refusals:
                served.refusals -= 1
                self.send_error(503)
                return
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and served.ranges else 0
            if start >= len(served.body):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(served.body) - start))
            self.end_headers()
            stop = served.cuts.pop(0) if served.cuts else len(served.body)
            self.wfile.write(served.body[start:stop])

    return Handler


@contextmanager
def serving(served):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(served))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/set.zip"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def fetched(url, folder, **more):
    download = more.pop("download", Download(url, "set.zip", MD5))
    return fetch(download, folder / "set.zip", timeout=5, pause=lambda _: None, **more)


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_download_with_progress(tmp_path):
    seen = []
    with serving(Served(GOOD)) as url:
        path = fetched(url, tmp_path / "new", progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == GOOD
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert left_in(tmp_path / "new") == ["set.zip"]


def test_a_broken_connection_is_resumed_where_it_broke(tmp_path):
    served = Served(GOOD, cuts=[1000, 5000])
    with serving(served) as url:
        assert fetched(url, tmp_path).read_bytes() == GOOD
    assert served.asked == [None, "bytes=1000-", "bytes=5000-"]


def test_a_later_call_continues_an_earlier_piece(tmp_path):
    (tmp_path / "set.zip.part").write_bytes(GOOD[:777])
    served = Served(GOOD)
    with serving(served) as url:
        assert fetched(url, tmp_path).read_bytes() == GOOD
    assert served.asked == ["bytes=777-"]


def test_a_piece_that_is_complete_is_only_verified(tmp_path):
    (tmp_path / "set.zip.part").write_bytes(GOOD)
    with serving(Served(GOOD)) as url:
        assert fetched(url, tmp_path).read_bytes() == GOOD


def test_a_server_without_ranges_starts_anew(tmp_path):
    (tmp_path / "set.zip.part").write_bytes(b"x" * 100)
    with serving(Served(GOOD, ranges=False)) as url:
        assert fetched(url, tmp_path).read_bytes() == GOOD


def test_a_piece_of_another_version_is_thrown_away_and_fetched_again(tmp_path):
    (tmp_path / "set.zip.part").write_bytes(b"old" * 100)
    served = Served(GOOD)
    with serving(served) as url:
        assert fetched(url, tmp_path).read_bytes() == GOOD
    assert served.asked == ["bytes=300-", None]


def test_a_wrong_checksum_leaves_nothing_behind(tmp_path):
    with (
        serving(Served(archive_of(b"something else"))) as url,
        pytest.raises(TacitError, match=r"is not set\.zip: its MD5 is"),
    ):
        fetched(url, tmp_path)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("content", [b"right", b"wrong"])
def test_checksums_of_inner_files(tmp_path, content):
    body = archive_of(content)
    inner = {"ratings.dat": hashlib.md5(b"right").hexdigest()}
    with serving(Served(body)) as url:
        download = Download(url, "set.zip", inner=inner)
        if content == b"right":
            assert fetched(url, tmp_path, download=download).read_bytes() == body
        else:
            with pytest.raises(TacitError, match=r"ratings\.dat in it differs"):
                fetched(url, tmp_path, download=download)
            assert left_in(tmp_path) == []


def test_an_error_page_in_place_of_an_archive(tmp_path):
    with serving(Served(b"<html>moved</html>")) as url, pytest.raises(TacitError, match="not a zip"):
        fetched(url, tmp_path, download=Download(url, "set.zip", inner={"ratings.dat": "0"}))


def test_busy_servers_are_asked_again_and_then_given_up_with_the_piece_kept(tmp_path):
    with serving(Served(GOOD, refusals=2)) as url:
        assert fetched(url, tmp_path, attempts=3).read_bytes() == GOOD
    (tmp_path / "set.zip").unlink()
    (tmp_path / "set.zip.part").write_bytes(GOOD[:9])
    with serving(Served(GOOD, refusals=9)) as url, pytest.raises(TacitError, match="the server answered 503"):
        fetched(url, tmp_path, attempts=2)
    assert left_in(tmp_path) == ["set.zip.part"]


def test_without_a_network_one_line_says_what_to_do(tmp_path):
    with serving(Served(GOOD)) as url:
        pass
    with pytest.raises(TacitError) as caught:
        fetched(url, tmp_path, attempts=2)
    assert caught.value.problem.startswith(f"cannot reach {url}")
    assert caught.value.remedy == f"download set.zip yourself from there and put it into {tmp_path}"


def test_get_verifies_a_mirror_against_the_publisher(tmp_path):
    with serving(Served(GOOD)) as url, pytest.raises(TacitError, match="the publisher's is c4d9eecfca2a"):
        get("ml-1m", tmp_path, url=url, timeout=5)
    assert left_in(tmp_path) == []


def test_get_keeps_what_is_there_and_explains_what_cannot_be_had(tmp_path):
    (tmp_path / "ml-1m.zip").write_bytes(b"mine")
    assert get("ml-1m", tmp_path).read_bytes() == b"mine"
    with pytest.raises(TacitError, match=r"put frappe\.zip into"):
        get("frappe", tmp_path)
    with pytest.raises(TacitError, match="is made, not downloaded"):
        get("demo", tmp_path)
    with pytest.raises(TacitError, match="did you mean 'ml-1m'"):
        get("ml1m", tmp_path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TacitError, match="cannot write"):
        get("ml-1m", tmp_path / "file" / "below")
