import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.events import (
    Composed,
    DiscreteGaussian,
    FixedSize,
    Gaussian,
    Laplace,
    NonPrivate,
    Nothing,
    Poisson,
    PureLocal,
    RandomisedResponse,
    Repeated,
    Sampled,
    Shuffled,
    Skellam,
    UnsupportedEvent,
    from_json,
    to_json,
)
from tacit.errors import TacitError

positive = st.floats(1e-6, 1e6)
whole = st.integers(1, 10**9)
leaves = st.one_of(
    st.builds(NonPrivate, st.text()),
    st.just(Nothing()),
    st.builds(Gaussian, positive, positive),
    st.builds(Laplace, positive, positive, whole),
    st.builds(Skellam, positive, positive, positive),
    st.builds(DiscreteGaussian, positive, whole, whole, positive),
    st.builds(PureLocal, positive),
    st.builds(RandomisedResponse, positive, whole),
    st.builds(Shuffled, positive, whole, st.booleans()),
)
samplings = st.one_of(
    st.builds(Poisson, st.floats(1e-6, 1.0)),
    whole.flatmap(lambda n: st.builds(FixedSize, st.integers(1, n), st.just(n))),
)
any_event = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Sampled, inner, samplings),
        st.builds(Composed, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Repeated, inner, whole),
    ),
    max_leaves=4,
)


@given(any_event)
def test_json_and_pickle_give_the_same_event_back(event):
    assert from_json(json.loads(json.dumps(to_json(event)))) == event
    assert pickle.loads(pickle.dumps(event)) == event
    assert hash(from_json(to_json(event))) == hash(event)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(0.0, 1.0),
        lambda: Gaussian(1.0, -1.0),
        lambda: Gaussian(math.nan, 1.0),
        lambda: Gaussian(math.inf, 1.0),
        lambda: Laplace(1.0, 1.0, 0),
        lambda: Skellam(-1.0, 1.0, 1.0),
        lambda: DiscreteGaussian(1.0, 0, 1, 1.0),
        lambda: PureLocal(0.0),
        lambda: RandomisedResponse(1.0, 0),
        lambda: Shuffled(1.0, 0),
        lambda: Poisson(0.0),
        lambda: Poisson(1.1),
        lambda: FixedSize(0, 5),
        lambda: FixedSize(6, 5),
        lambda: Repeated(Nothing(), 0),
        lambda: from_json({"kind": "gausian", "noise_std": 1.0, "clip": 1.0}),
        lambda: from_json({"kind": "gaussian", "sigma": 1.0}),
    ],
)
def test_impossible_events_are_refused_in_one_line(make):
    with pytest.raises(TacitError) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_misspelt_kind_names_the_nearest():
    with pytest.raises(TacitError, match="did you mean 'gaussian'"):
        from_json({"kind": "gausian"})


def test_unsupported_survives_processes():
    error = pickle.loads(pickle.dumps(UnsupportedEvent("a", "b")))
    assert isinstance(error, UnsupportedEvent)
    assert str(error) == "a; b"
