"""Certificates of one's own: made once, made anew before they end, vouched for by the same authority."""

import datetime
import sqlite3
import ssl

import pytest

from tacit.deploy.certificates import Authority, own_certificate
from tacit.errors import TacitError


def ends(file):
    from cryptography import x509

    return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc


def test_a_certificate_is_made_once_and_its_authority_outlives_it(tmp_path):
    first = own_certificate(tmp_path, "server", ["127.0.0.1", "localhost"])
    before = first.certificate.read_bytes()
    assert own_certificate(tmp_path, "server", ["127.0.0.1", "localhost"]).certificate.read_bytes() == before
    left = ends(first.authority) - ends(first.certificate)
    assert left > datetime.timedelta(days=8 * 365)
    for private in (first.key, tmp_path / "ca.key"):
        assert private.stat().st_mode & 0o077 == 0
    ssl.create_default_context(cafile=str(first.authority))


def test_keys_take_no_old_files_permissions(tmp_path):
    for name in ("ca.key", "server.key"):
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(0o666)
    Authority.made(tmp_path).vouched("server", ["127.0.0.1"])
    for name in ("ca.key", "server.key"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("why", ["ends soon", "another address", "damaged"])
def test_it_is_made_anew_by_the_same_authority(tmp_path, why):
    authority = Authority.made(tmp_path)
    authority.vouched("server", ["127.0.0.1"], days=20 if why == "ends soon" else 300)
    known, addresses = authority.certificate.read_bytes(), ["127.0.0.1"]
    if why == "another address":
        addresses = ["127.0.0.1", "recommender.example"]
    if why == "damaged":
        (tmp_path / "server.pem").write_text("nothing")
    before = (tmp_path / "server.pem").read_bytes()
    found = own_certificate(tmp_path, "server", addresses)
    assert found.certificate.read_bytes() != before
    assert ends(found.certificate) - datetime.datetime.now(datetime.UTC) > datetime.timedelta(days=300)
    assert authority.certificate.read_bytes() == known


def test_a_certificate_somebody_else_vouched_for_is_left_alone(tmp_path):
    Authority.made(tmp_path).vouched("server", ["127.0.0.1"], days=3)
    (tmp_path / "ca.key").unlink()
    before = (tmp_path / "server.pem").read_bytes()
    assert own_certificate(tmp_path, "server", ["elsewhere"]).certificate.read_bytes() == before


def test_a_full_disk_on_the_server_is_one_line(tmp_path, monkeypatch):
    from tacit.config.experiment import Experiment
    from tacit.deploy import flower_server
    from tacit.deploy.running import found, served

    found(tmp_path / "here", Experiment("fedrec", data="demo:users=20,items=30,mean=10", rounds=1), 2, "", "")
    monkeypatch.setattr("tacit.deploy.running.refuse_nobody", lambda _: None)

    def full(*given):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(flower_server, "_served_on", full)
    with pytest.raises(TacitError, match=r"cannot be written .*disk is full.*; free some space"):
        served(tmp_path / "here", "127.0.0.1", 9, None, (), 60.0, flower_server.Unwatched())


def test_the_engines_secret_is_made_anew_at_each_start(tmp_path, monkeypatch):
    from tacit.deploy import flower_engine

    own = Authority.made(tmp_path).vouched("server", ["127.0.0.1"])
    for name in ("needed", "begun", "_program"):
        monkeypatch.setattr(flower_engine, name, lambda *_: [])
    secrets = set()
    for _ in range(2):
        port = flower_engine.free_port()
        started = flower_engine.SuperLink.started(
            tmp_path / "engine", own.certificate, own.key, "127.0.0.1", port
        )
        started.gate.server_close()
        file = tmp_path / "engine" / "engine.secret"
        assert file.read_bytes() == started.secret
        assert file.stat().st_mode & 0o077 == 0
        secrets.add(started.secret)
    assert len(secrets) == 2
