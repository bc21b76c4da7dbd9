"""State between rounds survives a trip to disk, and a write that fails leaves the old file."""

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.runtime.checkpoint import Checkpoint, load, save, written_whole


def test_arrays_and_facts_come_back(tmp_path):
    arrays = {"shared/items": np.arange(6, dtype="f4").reshape(2, 3), "private/bits": np.array([1, 0], "u1")}
    save(tmp_path / "state", Checkpoint(arrays, {"round": 7, "sizes": {"a": 1}}))
    found = load(tmp_path / "state")
    assert found.facts == {"round": 7, "sizes": {"a": 1}}
    assert list(found.group("shared")) == ["items"]
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert np.array_equal(found.arrays[name], array)


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path):
    target = tmp_path / "note"
    written_whole(target, lambda path: path.write_text("old"))

    def broken(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(TacitError, match="no space left"):
        written_whole(target, broken)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_checkpoint_is_one_clear_error(tmp_path, damage):
    path = tmp_path / "state"
    save(path, Checkpoint({"a": np.ones(1000)}, {}))
    path.write_bytes(path.read_bytes()[:900] if damage is None else damage)
    with pytest.raises(TacitError, match="cannot be read"):
        load(path)


def test_another_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.runtime.checkpoint.FORMAT", 99)
    save(tmp_path / "state", Checkpoint({}, {}))
    monkeypatch.undo()
    with pytest.raises(TacitError, match="another version"):
        load(tmp_path / "state")
