import zipfile
from pathlib import Path

import pytest

from tacit.data.archive import Wanted, cache_folder, find, places
from tacit.errors import TacitError

WANTED = Wanted(("set.zip", "other.zip"), ("set-1",), ("ratings.dat", "movies.dat"))


def zipped(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def unpacked(folder, mark):
    folder.mkdir(parents=True)
    (folder / "ratings.dat").write_text(mark)
    (folder / "movies.dat").write_text("films")


@pytest.mark.parametrize("name", ["set.zip", "other.zip", "a/b/set.zip"])
@pytest.mark.parametrize("inner", ["", "set-1/", "x/y/z/"])
def test_files_are_found_at_any_depth_of_a_zip_at_any_depth(tmp_path, name, inner):
    zipped(
        tmp_path / name, {f"{inner}ratings.dat": "1", f"{inner}movies.dat": "2", "__MACOSX/ratings.dat": "no"}
    )
    files = find(WANTED, tmp_path)
    assert files.read("ratings.dat") == b"1"
    assert "movies.dat" in files


@pytest.mark.parametrize("where", [".", "set-1", "deep/er/set-1", "set-1/inner/more", "any name"])
def test_unpacked_files_are_found_at_any_depth(tmp_path, where):
    unpacked(tmp_path / "data" / where, "here")
    assert find(WANTED, tmp_path / "data").read("ratings.dat") == b"here"


def test_files_of_another_data_set_are_left_alone(tmp_path):
    unpacked(tmp_path / "foreign", "not these")
    assert find(WANTED, tmp_path, frozenset({"foreign"})) is None
    assert find(WANTED, tmp_path / "foreign", frozenset({"foreign"})) is None
    unpacked(tmp_path / "set-1", "these")
    assert find(WANTED, tmp_path, frozenset({"foreign"})).read("ratings.dat") == b"these"


def test_two_loose_copies_are_not_guessed_between(tmp_path):
    unpacked(tmp_path / "a", "1")
    unpacked(tmp_path / "b", "2")
    with pytest.raises(TacitError, match="lies in both"):
        find(WANTED, tmp_path)


def test_nothing_there(tmp_path):
    (tmp_path / "ratings.dat").write_text("alone")
    assert find(WANTED, tmp_path) is None


def test_a_zip_without_the_files_and_one_that_is_none(tmp_path):
    path = zipped(tmp_path / "set.zip", {"ratings.dat": "1"})
    with pytest.raises(TacitError, match=r"holds no file movies\.dat"):
        find(WANTED, tmp_path)
    path.write_bytes(b"not a zip")
    with pytest.raises(TacitError, match="not a readable zip"):
        find(WANTED, tmp_path)


def test_a_damaged_zip_is_told(tmp_path):
    path = zipped(tmp_path / "set.zip", {"ratings.dat": "precious" * 50, "movies.dat": "2"})
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"precious")] ^= 1
    path.write_bytes(raw)
    with pytest.raises(TacitError, match="is damaged at"):
        find(WANTED, tmp_path).read("ratings.dat")


def test_places_are_in_order(monkeypatch, tmp_path):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert places(Path("mine")) == [Path("mine"), tmp_path / "named", tmp_path / "cache" / "tacit" / "data"]
    monkeypatch.delenv("TACIT_DATA")
    assert places() == [cache_folder()]
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "tacit" / "data"
