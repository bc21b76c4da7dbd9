import zipfile

import pytest

from tacit.data import known, load
from tacit.errors import TacitError


@pytest.fixture(autouse=True)
def _nothing_on_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def tiny_1m(path):
    ratings = "1::10::5::100\n1::20::3::110\n2::10::1::90\n"
    people = "1::F::25::7::94110\n2::M::1::10::10001\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-1m/ratings.dat", ratings)
        archive.writestr("ml-1m/movies.dat", "10::A (1990)::Drama\n20::B (1991)::Comedy\n")
        archive.writestr("ml-1m/users.dat", people)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ml-1n", "no data set is called 'ml-1n'; did you mean 'ml-1m'"),
        ("ml-1m:catalog=ids", "ml-1m has no option 'catalog'; did you mean 'catalogue'"),
        ("ml-1m:catalogue=idz", "did you mean 'ids'"),
        ("demo:users=none", "not a whole number"),
        ("demo:users", "write demo:option=value,option=value"),
        ("missing.csv", "does not exist"),
        ("some/where", "does not exist"),
    ],
)
def test_mistakes_are_one_line(spec, message):
    with pytest.raises(TacitError, match=message):
        load(spec)


def test_not_found_says_where_and_what_to_run(tmp_path):
    with pytest.raises(TacitError) as caught:
        load("ml-1m", tmp_path)
    assert str(tmp_path) in caught.value.problem
    assert str(tmp_path / "cache" / "tacit" / "data") in caught.value.problem
    assert caught.value.remedy == "run: tacit data get ml-1m"


def test_the_order_of_the_places(tmp_path, monkeypatch):
    for place in ("given", "named", "cache/tacit/data"):
        (tmp_path / place).mkdir(parents=True)
    tiny_1m(tmp_path / "cache/tacit/data/ml-1m.zip")
    assert len(load("ml-1m:check=no").interactions) == 3
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "named"))
    (tmp_path / "named" / "ml-1m.zip").write_bytes(b"broken")
    with pytest.raises(TacitError, match="named"):
        load("ml-1m:check=no")
    tiny_1m(tmp_path / "given" / "ml-1m.zip")
    assert len(load("ml-1m:check=no", tmp_path / "given").interactions) == 3


def test_a_shortened_copy_is_refused_by_its_counts(tmp_path):
    tiny_1m(tmp_path / "ml-1m.zip")
    with pytest.raises(TacitError, match=r"holds 3 interactions instead of 1,000,209; get ml-1m again"):
        load("ml-1m", tmp_path)


def test_an_archive_given_as_a_path_is_explained(tmp_path):
    tiny_1m(tmp_path / "ml-1m.zip")
    with pytest.raises(TacitError, match="name the data set"):
        load(str(tmp_path / "ml-1m.zip"))


def test_a_path_may_look_like_options(tmp_path):
    odd = tmp_path / "mine:part=2.csv"
    odd.write_text("user,item,rating\n1,2,3\n1,3,4\n")
    assert len(load(str(odd)).interactions) == 2
    assert load(f"{odd}:scale=1-5").scale.high == 5


def test_known_lists_the_contract_and_what_is_there(tmp_path):
    tiny_1m(tmp_path / "ml-1m.zip")
    listed = {entry.name: entry for entry in known(tmp_path)}
    assert set(listed) >= {
        "demo", "ml-100k", "ml-1m", "ml-10m", "ml-20m", "ml-latest-small", "lastfm-2k", "frappe",
        "netflix5k5k",
    }  # fmt: skip
    assert {name for name, entry in listed.items() if entry.available} == {"demo", "ml-1m"}
    assert all(entry.line and "\n" not in entry.line for entry in listed.values())
