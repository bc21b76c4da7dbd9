"""The device's store: what is promised to person and run must survive kills, copies and thieves."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.interactions import Features, Scale
from tacit.deploy import given as given_answers
from tacit.deploy.about import RunAbout
from tacit.deploy.history import History
from tacit.deploy.identity import Identity, verified
from tacit.deploy.limits import Limits, Sent
from tacit.deploy.sealing import Sealing, written_key
from tacit.deploy.store import DeviceStore
from tacit.errors import TacitError

ABOUT = RunAbout("r1", {"method": "fedrec"}, items=("7", "42"), people=3)
SECRET = "The-Very-Secret-Film-1984"


def line(round=0, person="ann", exchange="train", **more):
    told = {"to": "server", "up_bytes": 10, "down_bytes": 20, "claim": None, "time": 1000, **more}
    return Sent(person, "r1", round, exchange, **told)


@pytest.fixture
def store(tmp_path):
    made = DeviceStore.created(tmp_path / "device")
    made.add_history("ann", History.of([("7", 4.0, 100), ("42", 2.5, None)]))
    made.keep_run(ABOUT)
    with made:
        yield made


def test_everything_comes_back_after_closing(tmp_path, store):
    store.keep_model("r1", 3, {"items": np.arange(6, dtype="f4").reshape(2, 3)})
    store.commit(run="r1", private={"ann": {"user": np.ones((1, 3))}}, sent=[line()], answer=b"bytes")
    store.set_limits(Limits(per_run=4, epsilon={"server": 2.0}))
    store.set_profile("ann", {"age": "25-34"})
    store.keep_note("r1", "session", b"half-way")
    store.close()
    with DeviceStore.opened(tmp_path / "device") as again:
        assert again.people() == ("ann",)
        assert again.history("ann").rows() == [("7", 4.0, 100), ("42", 2.5, None)]
        assert again.run("r1") == ABOUT
        assert again.model("r1")[0] == 3
        assert again.model("r1")[1]["items"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert again.private("ann", "r1")["user"].tolist() == [[1, 1, 1]]
        assert again.answered("ann", "r1", 0, "train") == b"bytes"
        assert again.sent() == [line()]
        assert again.limits() == Limits(per_run=4, epsilon={"server": 2.0})
        assert again.profile("ann") == {"age": "25-34"}
        assert again.note("r1", "session") == b"half-way"


def test_files_are_the_owners_alone(store):
    assert store.folder.stat().st_mode & 0o077 == 0
    assert (store.folder / "device.sqlite").stat().st_mode & 0o077 == 0


def test_a_repeat_is_answered_with_the_same_bytes_and_never_computed_anew(store):
    store.commit(run="r1", private={"ann": {"user": np.zeros((1, 2))}}, sent=[line()], answer=b"first")
    with pytest.raises(TacitError, match="answered before"):
        store.commit(run="r1", private={"ann": {"user": np.ones((1, 2))}}, sent=[line()], answer=b"second")
    assert store.answered("ann", "r1", 0, "train") == b"first"
    assert store.private("ann", "r1")["user"].sum() == 0  # the refused commit left nothing behind
    assert store.answered("ann", "r1", 1, "train") is None


def test_old_answers_make_room_but_their_rounds_stay_answered(store, monkeypatch):
    monkeypatch.setattr(given_answers, "KEPT_ANSWERS", 100)
    for round in range(4):
        store.commit(run="r1", private={}, sent=[line(round)], answer=bytes(60))
    assert store.answered("ann", "r1", 3, "train") == bytes(60)
    with pytest.raises(TacitError, match="not kept"):
        store.answered("ann", "r1", 0, "train")
    assert len(store.sent()) == 4


def test_private_arrays_that_did_not_change_stay(store):
    store.commit(run="r1", private={"ann": {"a": np.ones((1, 1)), "b": np.ones((1, 1))}}, sent=[], answer=b"")
    store.commit(run="r1", private={"ann": {"b": np.zeros((1, 1))}}, sent=[], answer=b"")
    kept = store.private("ann", "r1")
    assert (kept["a"][0, 0], kept["b"][0, 0]) == (1, 0)


def test_a_run_may_not_change_under_its_name(store):
    store.keep_run(ABOUT)
    with pytest.raises(TacitError, match="changed its configuration"):
        store.keep_run(RunAbout("r1", {"method": "fedrec", "rounds": 9}, ("7", "42"), 3))


def test_one_process_takes_part_at_a_time(store):
    with store.taking_part(), pytest.raises(TacitError, match="another process"), store.taking_part():
        pass


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda folder: folder.mkdir(), "holds no device"),
        (lambda folder: (folder.mkdir(), (folder / "device.sqlite").write_bytes(b"x" * 8192)), "no readable"),
        (lambda folder: (folder.mkdir(), sqlite3.connect(folder / "device.sqlite").close()), "no readable"),
    ],
)
def test_what_is_no_store_is_said_to_be_none(tmp_path, make, wrong):
    make(tmp_path / "it")
    with pytest.raises(TacitError, match=wrong):
        DeviceStore.opened(tmp_path / "it")


def test_another_versions_store_is_refused(store):
    store.close()
    raw = sqlite3.connect(store.folder / "device.sqlite")
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(TacitError, match="another version"):
        DeviceStore.opened(store.folder)
    with pytest.raises(TacitError, match="already"):
        DeviceStore.created(store.folder)


def test_a_sealed_store_opens_with_its_key_alone(tmp_path):
    key, other = tmp_path / "key", tmp_path / "other"
    folder = tmp_path / "device"
    with DeviceStore.created(folder, key) as store:
        store.add_history("ann", History.of([(SECRET, 4.0, None)]))
        store.keep_run(ABOUT)
        store.commit(
            run="r1",
            private={"ann": {"user": np.full((1, 4), 1.2345)}},
            sent=[line(to="somewhere-telling")],
            answer=b"an-answer-in-clear",
        )
        Identity.of(store)
    assert key.stat().st_mode & 0o077 == 0
    written_key(other)
    with pytest.raises(TacitError, match="--key-file"):
        DeviceStore.opened(folder)
    with pytest.raises(TacitError, match="another key"):
        DeviceStore.opened(folder, other)
    with DeviceStore.opened(folder, key) as again:
        assert again.history("ann").items == (SECRET,)
    raw = b"".join(file.read_bytes() for file in folder.iterdir())
    hidden = (SECRET.encode(), b"ann", b"somewhere-telling", b"an-answer-in-clear", b"PRIVATE KEY")
    for told in (*hidden, np.float64(1.2345).tobytes() * 2):
        assert told not in raw
    with pytest.raises(TacitError, match="folder it protects"):
        DeviceStore.created(tmp_path / "next", tmp_path / "next" / "key")


def test_sealed_values_cannot_be_swapped_or_altered():
    sealing = Sealing(bytes(range(32)))
    sealed = sealing.sealed(b"mine", "history/1")
    for written, place in ((sealed, "history/2"), (sealed[:-1] + b"x", "history/1"), (b"", "history/1")):
        with pytest.raises(TacitError, match="cannot be opened"):
            sealing.opened(written, place)


def bytes_of(folder):
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_forgetting_leaves_no_byte_of_the_person(tmp_path):
    """Unsealed on purpose: what is not in the clear file is not there at all."""
    with DeviceStore.created(tmp_path / "gateway") as store:
        store.keep_run(ABOUT)
        for person, item in (("ann-the-person", SECRET), ("bob-who-stays", "7")):
            store.add_history(person, History.of([(f"{item}-{n}", 4.0, 1) for n in range(300)]))
            private = {"user": np.frombuffer(f"taste-of-{person}".ljust(32).encode(), dtype="f4")[np.newaxis]}
            store.commit(
                run="r1",
                private={person: private},
                sent=[line(person=person, to=f"told-{person}")],
                answer=f"answer-of-{person}".encode(),
            )
        store.set_profile("ann-the-person", {"job": "very-telling-job"})
        store.set_wish("ann-the-person", 17)
        store.set_wish("bob-who-stays", 18)
        traces = (SECRET, "ann-the-person", "taste-of-ann", "answer-of-ann", "told-ann", "very-telling-job")
        assert all(trace.encode() in bytes_of(store.folder) for trace in traces)
        store.forget("ann-the-person")
        left = bytes_of(store.folder)
        assert not [trace for trace in traces if trace.encode() in left]
        assert store.people() == ("bob-who-stays",)
        assert store.wish("bob-who-stays") == 18
        facts = [name for (name,) in store._vault.run("SELECT name FROM facts WHERE name LIKE '%wish%'")]
        assert facts == ["wish/2"]
        assert store.answered("bob-who-stays", "r1", 0, "train") == b"answer-of-bob-who-stays"
        with pytest.raises(TacitError, match="was forgotten"):
            store.add_history("ann-the-person", History.of([("7", 1.0, None)]))
        with pytest.raises(TacitError, match="nobody called"):
            store.history("ann-the-person")


def test_a_deleted_entry_leaves_the_file_too(store):
    store.add_history("ann", History.of([(SECRET, 1.0, None)]))
    assert SECRET.encode() in bytes_of(store.folder)
    assert store.remove_entry("ann", SECRET)
    assert not store.remove_entry("ann", SECRET)
    assert SECRET.encode() not in bytes_of(store.folder)
    assert store.history("ann").items == ("7", "42")


KILLED = """
import os, sys, numpy as np
from pathlib import Path
from tacit.deploy.limits import Sent
from tacit.deploy.store import DeviceStore
store = DeviceStore.opened(Path(sys.argv[1]))
round = len(store.sent())
print("ready", flush=True)
while True:
    line = Sent("ann", "r1", round, "train", "server", 1, 1, None, 0)
    state = np.full((1, 20000), float(round))
    store.commit(run="r1", private={"ann": {"user": state}}, sent=[line], answer=b"%d," % round * 20000)
    round += 1
"""


def test_a_kill_at_any_moment_leaves_state_ledger_and_answer_of_the_same_round(store):
    wait = np.random.default_rng(0)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(store.folder)], stdout=subprocess.PIPE, env=os.environ
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.05 + 0.15 * wait.random())
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        lines = store.sent("ann")
        assert [one.round for one in lines] == list(range(len(lines)))
        if lines:
            last = lines[-1].round
            assert (store.private("ann", "r1")["user"] == last).all()
            assert store.answered("ann", "r1", last, "train") == b"%d," % last * 20000
        assert not store.paused  # the counter is never ahead of the database
    assert lines


def test_an_older_database_put_back_pauses_the_device(tmp_path, store):
    store.commit(run="r1", private={}, sent=[line(0)], answer=b"0")
    store.close()
    shutil.copy(store.folder / "device.sqlite", tmp_path / "yesterday")
    with DeviceStore.opened(store.folder) as today:
        for round in (1, 2):
            today.commit(run="r1", private={}, sent=[line(round)], answer=b"x")
    shutil.copy(tmp_path / "yesterday", store.folder / "device.sqlite")
    with DeviceStore.opened(store.folder) as back:
        assert back.missing == 2
        assert "older copy" in back.paused
        assert back.lost_until("r1") == -2
        back.set_paused("")
        assert (back.paused, back.lost_until("r1")) == ("", 2)
        assert [(one.round, one.known, one.claim) for one in back.sent()][1:] == [
            (1, False, None),
            (2, False, None),
        ]
        back.commit(run="r1", private={}, sent=[line(3)], answer=b"y")
    with DeviceStore.opened(store.folder) as later:
        assert (later.missing, later.paused, later.lost_until("r1")) == (0, "", 2)


def test_a_run_that_an_older_copy_does_not_know_is_counted_when_it_comes_back(tmp_path, store):
    store.close()
    shutil.copy(store.folder / "device.sqlite", tmp_path / "yesterday")
    with DeviceStore.opened(store.folder) as today:
        today.keep_run(replace(ABOUT, run="r2"))
        today.commit(run="r2", private={}, sent=[replace(line(5), run="r2")], answer=b"x")
    shutil.copy(tmp_path / "yesterday", store.folder / "device.sqlite")
    with DeviceStore.opened(store.folder) as back:
        back.set_paused("")
        assert (back.lost_until("r2"), back.sent()) == (5, [])
        back.keep_run(replace(ABOUT, run="r2"))
        assert [(one.run, one.round, one.known) for one in back.sent()] == [("r2", 5, False)]


def test_a_full_disk_is_one_clear_line_and_half_nothing(store):
    store.commit(run="r1", private={"ann": {"user": np.ones((1, 4))}}, sent=[line(0)], answer=b"0")
    pages = store._vault.row("PRAGMA page_count")[0]
    store._vault.run(f"PRAGMA max_page_count = {pages + 2}")
    big = {"ann": {"user": np.random.default_rng(0).random((1, 1 << 18))}}
    with pytest.raises(TacitError, match="no space left"):
        store.commit(run="r1", private=big, sent=[line(1)], answer=bytes(1 << 20))
    assert len(store.sent()) == 1
    assert store.private("ann", "r1")["user"].shape == (1, 4)
    store._vault.run(f"PRAGMA max_page_count = {1 << 20}")
    store.commit(run="r1", private=big, sent=[line(1)], answer=bytes(1 << 20))
    assert len(store.sent()) == 2


rows = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.integers(1, 5).map(float),
        st.one_of(st.none(), st.integers(1, 50)),
    ),
    max_size=12,
    unique_by=lambda row: row[0],
)


@settings(deadline=None)
@given(rows, rows)
def test_merging_is_idempotent_and_the_later_wins(old, new):
    first = History.of(old)
    both, changed = first.merged(History.of(new))
    again, nothing = both.merged(History.of(new))
    assert (again.rows(), nothing) == (both.rows(), 0)
    kept = {item: (value, when) for item, value, when in both.rows()}
    assert set(kept) == {row[0] for row in (*old, *new)}
    before = {item: (value, when) for item, value, when in old}
    for item, value, when in new:
        then = before.get(item)
        stale = then is not None and when is not None and then[1] is not None and when < then[1]
        assert kept[item] == (then if stale else (value, when))
    assert changed == sum(kept[item] != before.get(item) for item in kept)


def test_what_a_server_says_of_a_run_survives_the_wire():
    features = Features(
        categories={"year": np.array([0, -1], "i4")},
        flags={"genres": np.array([[1, 0], [0, 1]], "u1")},
        numbers={"length": np.array([0.1, 95.5], "f4")},
        texts={"title": np.array(["Ärger & Söhne", "B"])},
        labels={"genres": ("x", "y")},
    )
    nobody = Features(flags={"likes": np.zeros((0, 2), "u1")}, labels={"likes": ("a", "b")})
    about = RunAbout("r", {"method": "fedrec"}, ("1", "2"), 5, "s", Scale(1, 5, 0.5), features, nobody)
    back = RunAbout.decoded(about.encoded())
    assert back == about
    assert back.features.numbers["length"].tobytes() == features.numbers["length"].tobytes()
    assert back.about_people.flags["likes"].shape == (0, 2)
    assert back.titles() == ("Ärger & Söhne", "B")


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b'{"format":1}', b"\xff\xfe", b'{"format":1,"items":3}'])
def test_what_cannot_be_read_of_a_run_is_one_clear_line(raw):
    with pytest.raises(TacitError, match="cannot be read"):
        RunAbout.decoded(raw)


def test_an_identity_signs_and_stays(store):
    mine = Identity.of(store)
    assert Identity.of(store) == mine
    assert verified(mine.public_text, b"m", mine.signature(b"m"))
    assert not verified(mine.public_text, b"n", mine.signature(b"m"))
    assert not verified("nonsense AAAA", b"m", b"")
    file = mine.written(store.folder / "node.key")
    assert file.stat().st_mode & 0o077 == 0


def test_a_private_key_takes_neither_an_old_files_permissions_nor_a_links_place(store, tmp_path):
    mine, file, elsewhere = Identity.of(store), tmp_path / "node.key", tmp_path / "elsewhere"
    file.write_text("old")
    file.chmod(0o644)
    with file.open("rb") as reader:  # who opened the old file reads the old file
        mine.written(file)
        assert reader.read() == b"old"
    assert file.stat().st_mode & 0o077 == 0
    elsewhere.write_text("old")
    file.unlink()
    file.symlink_to(elsewhere)
    mine.written(file)
    assert elsewhere.read_text() == "old"
    assert not file.is_symlink()
    assert file.read_bytes() == mine.private_pem
    with pytest.raises(TacitError, match="cannot write"):
        mine.written(tmp_path)
    assert sorted(found.name for found in tmp_path.glob(".*")) == []
