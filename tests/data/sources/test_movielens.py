import numpy as np
import pytest

from tacit.data.interactions import Scale
from tacit.data.load import load
from tacit.data.source import sources
from tacit.errors import TacitError

GENRES = ("unknown", "Action", "Comedy", "Drama")


def made_100k():
    films = [
        "1|Amélie à Paris (1995)|01-Jan-1995||http://x|0|0|1|1",
        "2|Second (1990)|||http://x|0|1|0|0",
        "3|unknown||||1|0|0|0",
    ]
    return {
        "ml-100k/u.data": ("2\t1\t5\t200\n1\t3\t2\t150\n1\t1\t4\t100\n", "ascii"),
        "ml-100k/u.item": ("\n".join(films) + "\n", "latin-1"),
        "ml-100k/u.user": ("1|17|M|student|02139\n2|50|F|writer|T8H1N\n", "latin-1"),
        "ml-100k/u.genre": ("".join(f"{genre}|{at}\n" for at, genre in enumerate(GENRES)) + "\n", "latin-1"),
    }


def made_1m():
    return {
        "ml-1m/ratings.dat": ("4::30::5::300\n4::10::3::310\n1::30::1::290\n", "ascii"),
        "ml-1m/movies.dat": (
            "10::Über: A Film (1990)::Drama|War\n20::B (1991)::Comedy\n30::C (2000)::Drama\n",
            "latin-1",
        ),
        "ml-1m/users.dat": ("1::F::1::10::48067\n4::M::45::7::02460-1234\n", "latin-1"),
    }


def made_10m():
    return {
        "ml-10M100K/ratings.dat": (
            "1::122::5::838985046\n1::185::0.5::838983525\n3::122::3.5::838983392\n",
            "ascii",
        ),
        "ml-10M100K/movies.dat": ("122::Ça (1992)::Comedy\n185::Net, The (1995)::Action|Thriller\n", "utf-8"),
    }


def made_csv(folder):
    films = 'movieId,title,genres\r\n7,"Île, The (2001)",Drama|War\r\n9,Untitled,(no genres listed)\r\n'
    return {
        f"{folder}/ratings.csv": (
            "userId,movieId,rating,timestamp\r\n1,7,4.0,1000\r\n1,9,3.5,1100\r\n2,7,0.5,900\r\n",
            "ascii",
        ),
        f"{folder}/movies.csv": (films, "utf-8"),
        f"{folder}/README.txt": ("read me", "ascii"),
    }


def triples(data):
    log = data.interactions
    users, items = data.user_ids.values[log.users], data.item_ids.values[log.items]
    return list(zip(users.tolist(), items.tolist(), log.values.tolist(), log.times.tolist(), strict=True))


def test_100k_ratings_films_and_people(packed):
    data = load("ml-100k:check=no", packed("ml-100k.zip", made_100k()))
    assert triples(data) == [(1, 1, 4.0, 100), (1, 3, 2.0, 150), (2, 1, 5.0, 200)]
    assert data.scale == Scale(1, 5, 1)
    films = data.item_features
    assert films.texts["title"].tolist() == ["Amélie à Paris (1995)", "unknown"]
    np.testing.assert_array_equal(films.numbers["year"], [1995, np.nan])
    assert films.labels["genres"] == ("Action", "Comedy", "Drama")
    assert films.flags["genres"].tolist() == [[0, 1, 1], [0, 0, 0]]
    people = data.user_features
    assert people.numbers["age"].tolist() == [17, 50]
    assert [people.labels["age"][code] for code in people.categories["age"]] == ["under 18", "50-55"]
    assert [people.labels["gender"][code] for code in people.categories["gender"]] == ["M", "F"]
    assert [people.labels["occupation"][code] for code in people.categories["occupation"]] == [
        "student",
        "writer",
    ]
    assert people.texts["zip"].tolist() == ["02139", "T8H1N"]


def test_1m_ratings_films_and_people(packed):
    data = load("ml-1m:check=no", packed("ml-1m.zip", made_1m()))
    assert triples(data) == [(1, 30, 1.0, 290), (4, 10, 3.0, 310), (4, 30, 5.0, 300)]
    assert data.item_features.texts["title"].tolist() == ["Über: A Film (1990)", "C (2000)"]
    assert data.item_features.numbers["year"].tolist() == [1990, 2000]
    people = data.user_features
    assert [people.labels["age"][code] for code in people.categories["age"]] == ["under 18", "45-49"]
    jobs = [people.labels["occupation"][code] for code in people.categories["occupation"]]
    assert jobs == ["K-12 student", "executive/managerial"]


@pytest.mark.parametrize(
    ("catalogue", "expected"), [("rated", [10, 30]), ("listed", [10, 20, 30]), ("ids", list(range(1, 31)))]
)
def test_the_catalogue_is_the_one_asked_for(packed, catalogue, expected):
    data = load(f"ml-1m:check=no,catalogue={catalogue}", packed("ml-1m.zip", made_1m()))
    assert data.item_ids.values.tolist() == expected
    assert triples(data) == [(1, 30, 1.0, 290), (4, 10, 3.0, 310), (4, 30, 5.0, 300)]
    titles = dict(zip(expected, data.item_features.texts["title"].tolist(), strict=True))
    assert titles[10] == "Über: A Film (1990)"
    if catalogue == "ids":
        assert titles[11] == ""
        assert data.item_features.flags["genres"][10].sum() == 0
        assert np.isnan(data.item_features.numbers["year"][10])
    if catalogue != "rated":
        assert titles[20] == "B (1991)"


def test_10m_half_stars_and_utf_8(packed):
    data = load("ml-10m:check=no", packed("ml-10m.zip", made_10m()))
    assert [value for *_, value, _ in triples(data)] == [5.0, 0.5, 3.5]
    assert data.scale == Scale(0.5, 5, 0.5)
    assert data.item_features.texts["title"].tolist() == ["Ça (1992)", "Net, The (1995)"]


@pytest.mark.parametrize("name", ["ml-20m", "ml-latest-small"])
def test_the_csv_layout(packed, name):
    data = load(f"{name}:check=no", packed(f"{name}.zip", made_csv(name)))
    assert triples(data) == [(1, 7, 4.0, 1000), (1, 9, 3.5, 1100), (2, 7, 0.5, 900)]
    assert data.item_features.texts["title"].tolist() == ["Île, The (2001)", "Untitled"]
    assert data.item_features.flags["genres"].tolist() == [[1, 1], [0, 0]]
    assert data.item_features.labels["genres"] == ("Drama", "War")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("ratings.dat", "4::30::5\n", "ml-1m.zip/ratings.dat, line 1: expected 4 fields, found 3"),
        (
            "ratings.dat",
            "4::30::5::1\n4::10::x::1\n",
            "line 2: expected a finite number for rating, found 'x'",
        ),
        ("ratings.dat", "4::30::6::1\n", "rating 6 in row 1 lies outside 1 to 5"),
        ("movies.dat", "10::A\n", "movies.dat, row 1: expected 3 fields, found 2"),
        ("movies.dat", "ten::A::B\n", "movies.dat, row 1: expected an id, found 'ten'"),
        ("users.dat", "1::F::old::10::48067\n", "users.dat, row 1: expected an age, found 'old'"),
    ],
)
def test_a_spoilt_file_is_named(packed, file, text, message):
    folder = packed("ml-1m.zip", {**made_1m(), f"ml-1m/{file}": (text, "ascii")})
    with pytest.raises(TacitError) as caught:
        load("ml-1m:check=no", folder)
    assert message in str(caught.value)


def test_another_header_is_refused(packed):
    files = made_csv("ml-20m")
    files["ml-20m/ratings.csv"] = ("user,item,stars,when\n1,2,3,4\n", "ascii")
    with pytest.raises(TacitError, match="line 1: expected the header userId,movieId,rating,timestamp"):
        load("ml-20m:check=no", packed("ml-20m.zip", files))


def test_two_unpacked_sets_with_the_same_file_names_are_told_apart(tmp_path):
    for files in (made_1m(), made_10m(), made_csv("ml-20m"), made_csv("ml-latest-small")):
        for path, (text, encoding) in files.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_bytes(text.encode(encoding))
    assert load("ml-10m:check=no", tmp_path).items == 2
    assert load("ml-1m:check=no", tmp_path).user_ids.values.tolist() == [1, 4]
    assert load("ml-20m:check=no", tmp_path).user_ids.values.tolist() == [1, 2]


@pytest.mark.parametrize("name", [name for name in sources() if name.startswith("ml-")])
def test_every_set_states_its_citation_terms_and_address(name):
    source = sources()[name]
    assert "Harper" in source.citation
    assert "without their permission" in source.terms
    assert source.download.url.endswith(f"/{name}.zip")
    assert source.download.md5 or source.download.inner
