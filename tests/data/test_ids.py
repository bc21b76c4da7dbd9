import numpy as np
import pytest

from tacit.data.ids import Ids
from tacit.errors import TacitError


def test_raw_and_position_are_inverse():
    ids = Ids(np.array(["x", "b", "n"]))
    assert [ids.position(ids.raw(at)) for at in range(3)] == [0, 1, 2]


def test_unknown_id_is_one_line_with_a_hint():
    with pytest.raises(TacitError, match=r"no film 'stalkr' in the data; did you mean 'stalker'\?"):
        Ids(np.array(["stalker", "solaris"]), "film").position("stalkr")
    with pytest.raises(TacitError, match="ids look like 1, 2"):
        Ids(np.array([1, 2])).position(999_999)
