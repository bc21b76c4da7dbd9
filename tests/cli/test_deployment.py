"""``tacit server``, ``proxy``, ``device``, ``up`` as their users get them wrong: one line, and what to do."""

import json

import pytest

from tacit.cli.main import main
from tacit.config.experiment import Experiment
from tacit.deploy.about import RunAbout
from tacit.deploy.certificates import Authority
from tacit.deploy.charter import Charter
from tacit.deploy.identity import Identity
from tacit.deploy.journal import Journal
from tacit.deploy.running import found, keys_in, server_key
from tacit.deploy.store import DeviceStore

KEY = "ab" * 32
SMALL = "demo:users=20,items=30,mean=10"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a device that knows one person, junk, and an authority."""
    monkeypatch.chdir(tmp_path)
    with DeviceStore.created(tmp_path / "mine") as store:
        (tmp_path / "keys.txt").write_text(f"# ours\n{Identity.of(store).public_text}\n")
    with DeviceStore.created(tmp_path / "empty"):
        pass
    (tmp_path / "history.csv").write_text("item,rating\n1,5\n4,3\n")
    assert main(["device", "mine", "--import", "history.csv", "--user", "ann", "--quiet"]) == 0
    (tmp_path / "junk").write_bytes(bytes(range(200)))
    Authority.made(tmp_path / "certificates").vouched("server", ["localhost"])
    return tmp_path


def words(line):
    return [word.replace("KEY", KEY) for word in line.split()]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("device nowhere --status", "nowhere holds no device"),
        ("device mine --init", "holds a device already"),
        ("device junk --init", "junk"),
        ("device mine --limit per_moon=3", "did you mean 'per_run'"),
        ("device mine --pause --resume-taking-part", "give one of them"),
        ("device mine --serve", "give --server URL"),
        ("device empty --server localhost:9", "holds nobody's history"),
        ("device mine --server ftp://localhost", "write https://host:port"),
        ("device mine --server https://localhost:port", "write https://host:port"),
        ("device mine --server https://localhost:99999", "write https://host:port"),
        ("device mine --server localhost:9 --ca none.pem", "none.pem is no certificate"),
        ("device mine --server localhost:9 --ca junk", "junk is no certificate"),
        ("device mine --charter zz --server localhost:9", "--charter is not a key"),
        ("server new", "new holds no server"),
        (f"server new fedrec --data {SMALL}", "give --people"),
        (f"server new nothing --people 3 --data {SMALL}", "nothing"),
        (f"server new ease --people 3 --data {SMALL}", "run it with `tacit run`"),
        (f"server new fedrec --people 3 --data {SMALL} --devices junk", "junk"),
        ("server new fedrec --people 3 --devices history.csv", "not a device's key"),
        (f"server new fedrec++ --people 3 --data {SMALL}", "start `tacit proxy`"),
        (f"server new fedrec++ --people 3 --data {SMALL} --proxy https://localhost:1", "together"),
        ("server new fedrec++ --people 3 --proxy http://localhost:1 --proxy-key KEY", "https://host:port"),
        ("server new fedrec++ --people 3 --proxy https://localhost:1 --proxy-key ab", "--proxy-key"),
        (
            "server new fedrec++ --people 3 --proxy https://localhost:1 --proxy-key KEY --proxy-ca junk",
            "junk holds no certificate",
        ),
        ("server new fmf-ldp --people 3 --proxy https://localhost:1 --proxy-key KEY", "below"),
        ("proxy new", "new holds no proxy"),
        ("proxy new --init", "--server-key"),
        ("proxy new --init --server-key zz", "--server-key"),
        ("proxy junk --init --server-key KEY", "junk"),
        ("up fedrec --devices 1", "--devices"),
        (f"up fedrec --data {SMALL} --devices 400", "ask for fewer"),
        (f"up fmf-ldp --data {SMALL} --devices 4", "below"),
        (f"up fedrec --data {SMALL} --devices 4 --keep junk", "junk"),
        ("up ease --devices 4", "run it with `tacit run`"),
        ("recommend --device mine", "no model"),
    ],
)
def test_a_mistake_is_one_line_and_makes_no_folder(line, said, here, capsys):
    before = sorted(here.iterdir())
    assert main(words(line)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tacit: ")
    assert told.err.count("\n") == 1
    assert said in told.err
    assert sorted(here.iterdir()) == before


def test_a_federation_needs_keys_before_it_listens(here, capsys):
    assert main(["server", "new", "fedrec", "--people", "2", "--data", SMALL, "--rounds", "1"]) == 2
    assert "give a file of devices' keys with --devices" in capsys.readouterr().err
    assert main(["server", "new", "--devices", "keys.txt", "--status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == {"expected": 2, "enrolled": 0, "revoked": 0}
    assert main(["server", "new", "--certificates", "nowhere"]) == 2
    assert "put server.pem, server.key and ca.pem into that folder" in capsys.readouterr().err


def test_a_second_founding_and_other_settings_are_refused(here, capsys):
    found(here / "new", Experiment("fedrec", data=SMALL, rounds=1), 2, "", "")
    assert main(["server", "new", "fedrec", "--people", "2", "--data", SMALL]) == 2
    assert "holds a server already" in capsys.readouterr().err
    assert main(["server", "new", "--rounds", "5"]) == 2
    assert "goes on as it was founded" in capsys.readouterr().err
    assert main(["server", "new", "--revoke", "SHA256:nobody"]) == 2
    assert "no device here has the key" in capsys.readouterr().err


def test_a_revoked_key_stays_out(here, capsys):
    found(here / "new", Experiment("fedrec", data=SMALL, rounds=1), 2, "", "")
    with DeviceStore.opened(here / "mine") as store:
        print_ = Identity.of(store).fingerprint
    assert main(["server", "new", "--devices", "keys.txt", "--status", "--json"]) == 0
    assert main(["server", "new", "--revoke", print_]) == 0
    capsys.readouterr()
    assert main(["server", "new", "--devices", "keys.txt"]) == 2
    assert "was revoked, and that is for good" in capsys.readouterr().err
    journal = Journal.opened(here / "new")
    assert json.loads(journal.fact("public keys")) == []
    journal.close()


def test_the_servers_key_is_made_once_and_is_its_identity(here):

    key = server_key(here / "new")
    found(here / "new", Experiment("fedrec", data=SMALL, rounds=1), 2, "", "")
    assert server_key(here / "new") == key
    journal = Journal.opened(here / "new")
    assert Charter.of(RunAbout.decoded(journal.fact("charter"))).server == key
    journal.close()
    assert (here / "new" / "server.key").stat().st_mode & 0o077 == 0


def test_a_founding_killed_before_the_keys_file_was_written_keeps_the_servers_key(here, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*given):
        raise Killed

    monkeypatch.setattr("tacit.deploy.running._kept", killed)
    vouching, wanted = (
        Authority.made(here / "proxys").certificate,
        Experiment("fedrec++", data=SMALL, rounds=1),
    )
    with pytest.raises(Killed):
        found(here / "new", wanted, 2, "https://localhost:1", KEY, None, vouching)
    monkeypatch.undo()
    journal = Journal.opened(here / "new")
    assert Charter.of(RunAbout.decoded(journal.fact("charter"))).server == server_key(here / "new")
    assert journal.fact("proxy ca") == vouching.read_bytes()
    journal.close()


def test_devices_are_given_both_certificates_where_another_vouches_for_the_proxy(here):
    from tacit.deploy.running import trusted

    proxy = Authority.made(here / "proxys")
    wanted = Experiment("fedrec++", data=SMALL, rounds=1)
    found(here / "new", wanted, 2, "https://localhost:1", KEY, None, proxy.certificate)
    own = here / "certificates" / "ca.pem"
    text = trusted(here / "new", own).read_text()
    assert own.read_text().strip() in text
    assert proxy.certificate.read_text().strip() in text
    found(here / "other", Experiment("fedrec", data=SMALL, rounds=1), 2, "", "")
    assert trusted(here / "other", own) == own


def test_a_list_of_keys_may_hold_remarks(here):
    assert len(keys_in([here / "keys.txt"])) == 1
