import pytest

from tacit.data.load import load
from tacit.data.sources.netflix import published_parts
from tacit.errors import TacitError


def made():
    rows = {"train": "3 8\n1 9\n", "valid": "1 8\n", "test": "3 9\n"}
    return {
        f"Netflix5K5K-TXT-FORAMT/NF5kUsers5kItemsHalfHalf-copy{copy}-{part}": (text, "ascii")
        for copy in "123"
        for part, text in rows.items()
    }


def test_parts_are_joined_and_can_be_had_apart(packed):
    folder = packed("netflix5k5k.zip", made())
    data = load("netflix5k5k:check=no,copy=2", folder)
    log = data.interactions
    assert list(zip(log.users.tolist(), log.items.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert log.values.tolist() == [1, 1, 1, 1]
    assert "copy 2" in data.notes[0]
    train, valid, test = published_parts(data, "2", folder)
    assert (train.items.tolist(), valid.items.tolist(), test.items.tolist()) == ([1, 0], [0], [1])
    with pytest.raises(TacitError, match="no copy '4'"):
        published_parts(data, "4", folder)
