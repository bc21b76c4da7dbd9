"""Any chain that is accepted keeps its claim: short enough before its noise, and noise enough."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tacit.account.claim import Claim, Observer
from tacit.account.events import Gaussian
from tacit.config.catalogue import protection
from tacit.config.experiment import with_protection
from tacit.errors import TacitError
from tacit.kernels.packed import unpacked
from tacit.methods.fedrec import fedrec_plus_plus
from tacit.protect.clip import norms
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import Chain
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts

SPECS = [
    "clip:1", "clip:0.3", "adaptive-clip:0.5", "gaussian:1", "gaussian:1:device", "grid:1", "grid:6",
    "grid:32", "half", "int8", "int8:random", "svd:2", "topk:0.5", "skellam:1:2:0.5", "row-laplace:2.5",
]  # fmt: skip
CLIENTS, ROWS, WIDTH = 3, 512, 8
USERS = np.arange(CLIENTS, dtype=np.int32)
COHORT = tiny_federation().cohort(USERS)
FACTS = RoundFacts(0, "train", CLIENTS, CLIENTS, CLIENTS, {"w": (ROWS, WIDTH)})


def made(specs):
    return Chain(tuple(protection(spec) for spec in specs))


def sent(guard, update) -> Any:
    return guard.on_client(update, guard.init(), COHORT, SeededKeys(1), "train", 0)


def hard(kind, size, seed):
    """Updates that rounding lengthens most: many entries just above half a step."""
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(CLIENTS, ROWS, WIDTH)).astype("f4")
    if kind == "spike":
        table[:] = 0.501 / 127
        table[:, 0, 0] = 1.0
    elif kind == "steps":
        table[:, ROWS // 8 :] = 0
        table[:, : ROWS // 8] = 0.501 * 2.0 ** -int(generator.integers(1, 12))
        return {"w": table}
    return {"w": size * table / np.linalg.norm(table.reshape(CLIENTS, -1), axis=1)[:, None, None]}


def before_noise(guard, place, update):
    """What each client adds to the sum that the noise at this place is added to."""
    if guard.stages[place].where == "device":
        return norms(unpacked(sent(Chain(guard.stages[:place]), update)))
    later, states, found = guard.stages[place + 1 :], guard.init(), []
    arrays: Any = unpacked(sent(guard, update))
    for client in range(CLIENTS):
        total = {name: array[client] for name, array in arrays.items()}
        for stage, state in reversed(list(zip(later, states[place + 1 :], strict=True))):
            if not stage.noises:
                total, _ = stage.on_server(total, None, state, FACTS, SeededKeys(1))
        found.append(np.sqrt(sum(float(np.square(array, dtype="f8").sum()) for array in total.values())))
    return np.array(found)


def released_std(guard, place):
    """The deviation of what the noise at this place makes of updates of nothing."""
    stage, zeros = guard.stages[place], np.zeros((CLIENTS, ROWS, WIDTH), "f4")
    if stage.where == "device":
        return float(np.std(sent(Chain(guard.stages[: place + 1]), {"w": zeros})["w"][0]))
    total: Any = {"w": np.zeros((ROWS, WIDTH))}
    out, _ = stage.on_server(total, guard.bounds()[place], None, FACTS, SeededKeys(1))
    return float(np.std(out["w"]))


@settings(max_examples=250, deadline=None)
@given(
    specs=st.lists(st.sampled_from(SPECS), min_size=2, max_size=4).map(lambda rest: ["clip:1", *rest]),
    kind=st.sampled_from(["normal", "spike", "steps"]),
    size=st.sampled_from([0.05, 1.0, 40.0]),
    seed=st.integers(0, 99),
)
@example(["clip:1", "grid:32", "gaussian:1"], "normal", 1.0, 0)
@example(["clip:1", "gaussian:1", "grid:1"], "steps", 1.0, 0)
@example(["clip:1", "gaussian:1", "half"], "steps", 1.0, 0)
@example(["clip:1", "gaussian:1", "int8"], "spike", 1.0, 0)
@example(["clip:1", "svd:2", "gaussian:1:device"], "normal", 1.0, 0)
@example(["clip:1", "topk:0.5", "gaussian:1"], "normal", 1.0, 0)
@example(["clip:1", "grid:32", "topk:0.5", "gaussian:1"], "normal", 1.0, 0)
def test_a_chain_is_refused_or_its_noise_is_what_it_claims(specs, kind, size, seed):
    """Deviations over 4,096 numbers: a right one falls 5 % short with a probability below 1e-5."""
    try:
        guard = made(specs)
    except TacitError:
        return
    places = [place for place, stage in enumerate(guard.stages) if isinstance(stage, GaussianNoise)]
    assume(places)
    for place in places:
        stage, bound = guard.stages[place], guard.bounds()[place]
        assert isinstance(stage, GaussianNoise)
        assert bound is not None
        others = (other for other in guard.stages if other is not stage)
        if not any(other.noises == "device" for other in others):  # whose noise would be measured instead
            assert (before_noise(guard, place, hard(kind, size, seed)) <= bound.size * (1 + 1e-6)).all()
        assert released_std(guard, place) >= 0.95 * stage.noise * bound.size
    said = guard.event(Claim.unbounded("raw"), guard.init(), FACTS).event(Observer.RELEASE)
    if isinstance(said, Gaussian):
        sizes = {guard.bounds()[place].size for place in places}  # type: ignore[union-attr]
        assert said.clip in sizes
        if said.noise_std != said.clip:  # everybody's noise: nothing behind it changes uploads one by one
            assert guard.stages[-1].noises == "device"
            assert said.noise_std == pytest.approx(CLIENTS**0.5 * said.clip)
            summed = sent(guard, {"w": np.zeros((CLIENTS, ROWS, WIDTH), "f4")})["w"].sum(axis=0)
            assert np.std(summed) >= 0.95 * said.noise_std


@pytest.mark.parametrize(
    "specs",
    [
        ["clip:1", "gaussian:1", "half"],
        ["clip:1", "gaussian:1", "grid:32"],
        ["clip:1", "gaussian:1", "topk:0.5"],
        ["clip:1", "topk:0.5", "gaussian:1"],
        ["clip:1", "gaussian:1:device", "int8"],
        ["clip:1", "gaussian:1:device", "svd:2"],
        ["clip:1", "gaussian:1:device", "grid:32"],
        ["adaptive-clip", "gaussian:1", "grid:32"],
        ["half", "clip:1", "gaussian:1"],
        ["svd:2", "int8"],
    ],
)
def test_what_is_sound_is_accepted(specs):
    made(specs)


@pytest.mark.parametrize(
    "specs",
    [
        ["clip:1", "grid:32", "gaussian:1"],
        ["clip:1", "grid:32", "gaussian:1:device"],
        ["skellam:1:2:0.5", "gaussian:1"],
        ["clip:1", "int8", "gaussian:1"],
        ["svd:4", "clip:1", "gaussian:1"],
        ["clip:0.5", "gaussian:1", "skellam:1:2:0.5"],
        ["clip:0.5", "gaussian:1", "adaptive-clip"],
        ["clip:2", "gaussian:1", "adaptive-clip"],
        ["adaptive-clip", "adaptive-clip", "gaussian:1"],
        ["grid:32", "row-laplace:2.5"],
    ],
)
def test_what_would_make_a_claim_false_is_refused_when_it_is_built(specs):
    with pytest.raises(TacitError):
        made(specs)


@pytest.mark.parametrize("spec", ["skellam:4:40:0.5", "row-laplace:1", "gaussian:1"])
def test_noise_beside_letters_is_refused(spec):
    """A person's letter and update are clipped one by one: together they may be twice as long."""
    guarded = with_protection(fedrec_plus_plus(), "clip:0.5")
    with pytest.raises(TacitError, match="letters"):
        with_protection(guarded, spec)


def test_normal_noise_is_never_added_to_whole_numbers():
    """The chain refuses it; whoever calls the stage alone is refused as well."""
    keys, claim = SeededKeys(1), protection("clip:1").bound(None)
    with pytest.raises(TacitError, match="whole numbers"):
        GaussianNoise(1.0).on_server({"w": np.ones(3, "i8")}, claim, None, FACTS, keys)
