import pytest

from tacit.data.load import load
from tacit.data.sources.lastfm import tags
from tacit.errors import TacitError


def made():
    return {
        "user_artists.dat": ("userID\tartistID\tweight\r\n5\t9\t300\r\n2\t7\t11\r\n2\t9\t4\r\n", "ascii"),
        "artists.dat": (
            "id\tname\turl\tpictureURL\n7\tSigur Rós\tu\tp\n9\tMúm\tu\tp\n12\tNobody\tu\tp\n",
            "utf-8",
        ),
        "tags.dat": ("tagID\ttagValue\r\n4\tcafé\r\n1\tambient\r\n", "latin-1"),
        "user_taggedartists.dat": (
            "userID\tartistID\ttagID\tday\tmonth\tyear\r\n"
            "2\t9\t1\t1\t4\t2009\r\n5\t9\t1\t1\t4\t2009\r\n5\t7\t4\t1\t4\t1956\r\n5\t99\t4\t1\t4\t2009\r\n",
            "ascii",
        ),
    }


def test_counts_are_values_and_names_are_known(packed):
    data = load("lastfm-2k:check=no", packed("hetrec2011-lastfm-2k.zip", made()))
    assert data.scale is None
    assert data.interactions.times is None
    assert data.user_ids.values.tolist() == [2, 5]
    assert data.item_ids.values.tolist() == [7, 9]
    assert data.interactions.values.tolist() == [11, 4, 300]
    assert data.item_features.texts["name"].tolist() == ["Sigur Rós", "Múm"]


def test_tags_are_counted_per_artist_and_strangers_left_out(packed):
    folder = packed("hetrec2011-lastfm-2k.zip", made())
    found = tags(load("lastfm-2k:check=no", folder), folder)
    assert found.names == ("ambient", "café")
    assert found.counts.toarray().tolist() == [[0, 1], [2, 0]]


def test_another_header_is_refused(packed):
    files = {**made(), "user_artists.dat": ("user\tartist\tweight\n1\t2\t3\n", "ascii")}
    with pytest.raises(TacitError, match="expected the columns userID artistID weight"):
        load("lastfm-2k:check=no", packed("lastfm-2k.zip", files))
