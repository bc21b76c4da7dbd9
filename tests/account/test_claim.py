import json
import math
import pickle

import pytest

from tacit.account.claim import Adjacency, Bound, Claim, Observer, Unit
from tacit.account.events import Gaussian, NonPrivate, Nothing
from tacit.errors import TacitError


def test_silence_means_non_private_for_every_observer():
    claim = Claim.unbounded("raw")
    assert claim.bound is None
    assert {observer: claim.event(observer) for observer in Observer} == dict.fromkeys(
        Observer, NonPrivate("raw")
    )
    silent = Claim(Unit.USER, Adjacency.ADD_REMOVE, None, {}, {})
    assert isinstance(silent.event(Observer.PEER), NonPrivate)


def test_a_new_claim_leaves_the_old_one_alone():
    old = Claim.unbounded("raw")
    new = old.with_event(Observer.PEER, Nothing(), ("a",)).with_bound(Bound(2, 1.0))
    assert old == Claim.unbounded("raw")
    assert new.event(Observer.PEER) == Nothing()
    assert new.event(Observer.SERVER) == NonPrivate("raw")
    assert new.bound == Bound(2, 1.0)


def test_assumptions_pile_up_once_and_per_observer():
    claim = Claim.unbounded("raw").with_event(Observer.RELEASE, Gaussian(1, 1), ("a", "b"))
    claim = claim.with_event(Observer.RELEASE, Gaussian(2, 1), ("b", "c", "c"))
    assert claim.assumes == {Observer.RELEASE: ("a", "b", "c")}


@pytest.mark.parametrize("bound", [None, Bound(2, 0.5), Bound(math.inf, 2.0), Bound(1, 3.0)])
def test_json_and_pickle_round_trip(bound):
    claim = Claim.unbounded("raw", Unit.INTERACTION, Adjacency.REPLACE_ONE).with_bound(bound)
    claim = claim.with_event(Observer.SERVER, Gaussian(1.5, 1.0), ("a",))
    assert Claim.from_json(json.loads(json.dumps(claim.to_json(), allow_nan=False))) == claim
    assert pickle.loads(pickle.dumps(claim)) == claim


@pytest.mark.parametrize(("order", "size"), [(3, 1.0), (0, 1.0), (2, 0.0), (2, math.inf), (2, math.nan)])
def test_impossible_bounds_are_refused(order, size):
    with pytest.raises(TacitError):
        Bound(order, size)


def test_words_of_the_contract():
    assert [observer.value for observer in Observer] == ["server", "proxy", "peer", "release"]
    assert [relation.value for relation in Adjacency] == ["add-remove", "replace-one"]
    assert [unit.value for unit in Unit] == ["user", "interaction"]
