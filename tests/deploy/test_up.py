"""A trial's folder: its own while it runs, gone afterwards, and swept up if somebody was killed."""

import fcntl
import tempfile

import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.up import _LOCK, _PREFIX, Trial, _place


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


TRIAL = Trial(Experiment("fedrec"), 2)


def left_behind(here, name):
    folder = here / f"{_PREFIX}{name}"
    (folder / "devices").mkdir(parents=True)
    (folder / _LOCK).touch()
    return folder


def test_a_folder_is_removed_however_the_trial_ends(here):
    with _place(TRIAL) as folder:
        assert folder.parent == here
        assert folder.stat().st_mode & 0o077 == 0
    assert list(here.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), _place(TRIAL):
        raise KeyboardInterrupt
    assert list(here.iterdir()) == []


def test_what_a_killed_trial_left_is_removed_and_what_runs_is_not(here):
    dead, alive, other = left_behind(here, "dead"), left_behind(here, "alive"), here / f"{_PREFIX}other"
    other.mkdir()  # none of ours: it has no lock
    with (alive / _LOCK).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with _place(TRIAL) as folder:
            assert {one.name for one in here.iterdir()} == {alive.name, other.name, folder.name}
    assert not dead.exists()
    assert alive.exists()


def test_a_kept_folder_is_left_alone(here):
    with _place(Trial(Experiment("fedrec"), 2, keep=here / "kept")) as folder:
        (folder / "server").mkdir(parents=True)
    assert (here / "kept" / "server").exists()
