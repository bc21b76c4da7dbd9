"""Accuracy from randomised bits: unbiased, private, and of an entry that nothing was trained on."""

import itertools
import math

import numpy as np
import pytest

from tacit import codec
from tacit.account.claim import Adjacency, Observer
from tacit.account.events import PureLocal
from tacit.config.experiment import Experiment
from tacit.config.top import best_places
from tacit.deploy.accuracy import NAME, Accuracy, HitCount, RandomisedHit, held_out
from tacit.deploy.channel import Pace
from tacit.deploy.cohort import Owner, federation_held
from tacit.deploy.limits import Limits
from tacit.deploy.operator_view import seen
from tacit.deploy.wire import unframed
from tacit.errors import TacitError
from tacit.rng import SeededKeys
from tacit.testing.deployment import deployed, simulated
from tacit.types import RoundFacts

EXACT = Experiment("fedmf", rounds=5, settings={"sums": "grid"})
SHORT = Pace(deadline=0.3, again=10.0, wait=0.0)
SURE = Accuracy(20.0, every=2)  # the coin lies once in 485 million


@pytest.mark.parametrize("text", ["", "no", "0", "-1", "21", "1:0", "1:x", "1:2:3", "nan"])
def test_what_is_no_epsilon_and_rounds_is_refused(text):
    with pytest.raises(TacitError):
        Accuracy.parsed(text)


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_the_coin_keeps_a_bit_with_odds_e_to_the_epsilon(truth):
    people, epsilon = 200_000, 1.3
    keys = SeededKeys(3).users(np.arange(people, dtype=np.int32), "coin", 0)
    told = RandomisedHit(epsilon, Adjacency.REPLACE_ONE).on_client(
        {"hit": np.full((people, 1), truth, dtype=np.float32)}, None, None, keys
    )["hit"]
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    kept = float((told == truth).mean())
    assert abs(kept - keep) < 5 * math.sqrt(keep * (1 - keep) / people)  # false alarm below 1e-6


def test_the_estimate_is_unbiased_and_its_error_is_what_it_says():
    asked, people, truth = Accuracy(1.0), 400, 0.3
    rng, keep = np.random.default_rng(1), math.exp(1) / (1 + math.exp(1))
    yes = rng.binomial(people, truth * keep + (1 - truth) * (1 - keep), size=4000)
    told = asked.told(np.array([[10, int(hits), people] for hits in yes]))
    values = np.array([line["hr@10"] for line in told])
    assert abs(values.mean() - truth) < 5 * values.std() / math.sqrt(len(values))
    assert np.mean([line["se"] for line in told]) == pytest.approx(values.std(), rel=0.05)


def test_the_entry_left_out_is_everywhere_alike():
    items = [f"i{number}" for number in range(30)]
    drawn = [items.index(held_out(bytes([k]) * 32, "r", items) or "") for k in range(200)]
    assert len(set(drawn)) > 25
    secret = b"s" * 32
    kept = held_out(secret, "r", items[:20])
    longer = held_out(secret, "r", items)
    assert longer == kept or longer in items[20:]


def test_bits_are_counted_whatever_somebody_sends():
    count = HitCount()
    tally = count.start({})
    count.add(tally, {"hit": np.array([[1e30], [1.0], [0.0], [-5.0]], dtype=np.float32)})
    assert count.normalised(count.total(tally), RoundFacts(0, NAME, 4, 4, 4))["counts"].tolist() == [2, 4]


def test_everybody_is_asked_in_due_rounds_about_an_entry_nothing_was_trained_on(tmp_path):
    whole = deployed(tmp_path, EXACT, users=10, accuracy=SURE)
    held, models = {}, {}
    for slot, device in whole.devices.items():
        items = device.store.history(f"u{slot}").items
        held[slot] = held_out(device.store.secret(), f"run/u{slot}", items)

    def coming(slot, wire):
        frame = unframed(wire, 1 << 30)
        if frame.head["exchange"] != NAME:
            rows = codec.decode(frame.parts[0]).arrays["items"]
            assert int(str(held[slot])[1:]) not in rows.ids.tolist()
        else:
            models.setdefault(frame.head["round"], whole.coordinator.state.shared)
        return wire

    assert whole.run(coming=coming)
    told = seen(tmp_path / "server")["accuracy"]
    assert [line["round"] for line in told] == [2, 4]
    model, about, first = whole.coordinator.method.model, whole.coordinator.charter.about, np.zeros(1, "i4")
    for line in told:
        hits, shared = 0, models[line["round"]]
        for slot, left in held.items():
            history = whole.devices[slot].store.history(f"u{slot}").without(left)
            cohort = federation_held(about, [Owner(history)]).cohort(first)
            scores = model.scorer(shared, model.folded_in(shared, cohort)).scores(first)[0]
            hits += about.position(left) in best_places(np.asarray(scores, dtype=float), cohort.items, 10)
        assert line["hr@10"] == pytest.approx(hits / 10, abs=1e-3)
        assert line["people"] == 10
    records = whole.journal.records()
    assert [r.facts.exchange for r in records].count(NAME) == 2
    assert len(records) == 7
    lines = whole.devices[0].store.sent("u0")
    assert [line.round for line in lines if line.exchange == NAME] == [2, 4]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fedrec++", {"denoisers": 2}), ("fmf-ldp", {"n_min": 10}), ("privrec", {"clients": 6}),
        ("fedmmf", {}),
    ],
)  # fmt: skip
def test_any_method_can_be_asked(name, settings, tmp_path):
    experiment = Experiment(name, rounds=3, settings=settings)
    whole = deployed(tmp_path, experiment, seeded=None, accuracy=Accuracy(1.0, every=1))
    assert whole.run()
    view = seen(tmp_path / "server")
    assert [line["round"] for line in view["accuracy"]] == [1, 2]
    assert view["refusals"] == {}
    asked = [record for record in whole.journal.records() if record.facts.exchange == NAME]
    assert [record.facts.answered for record in asked] == [12, 12]
    claim = asked[0].claim
    assert claim.event(Observer.SERVER) == PureLocal(1.0)
    others = [
        r.claim.adjacency for r in whole.journal.records() if r.facts.exchange != NAME and r.facts.round >= 0
    ]
    assert claim.adjacency in others


def test_the_model_is_the_one_without_asking_over_what_is_left(tmp_path):
    whole = deployed(tmp_path, EXACT, users=10, accuracy=SURE)
    assert whole.run()
    people = []
    for slot, device in whole.devices.items():
        history = device.store.history(f"u{slot}")
        left = held_out(device.store.secret(), f"run/u{slot}", history.items)
        people.append(Owner(history.without(left)))
    rest = federation_held(whole.coordinator.charter.about, people)
    world, _ = simulated(EXACT, rest)
    np.testing.assert_array_equal(world.server.shared["items"], whole.coordinator.state.shared["items"])


def test_a_server_killed_in_between_asks_once(tmp_path):
    whole = deployed(tmp_path, EXACT, users=6, accuracy=SURE)
    told = {}

    def coming(slot, wire):
        frame = unframed(wire, 1 << 30)
        key = (slot, frame.head["round"], frame.head["exchange"])
        assert told.setdefault(key, wire) == wire  # the same coin
        return wire

    stops = itertools.count()

    class Often:
        def stopping(self):
            return next(stops) % 5 == 4  # in the middle of a round, and between two

        def round(self, coordinator, seconds):
            pass

    from tacit.deploy.channel import InMemory, drive

    while not drive(whole.coordinator, InMemory(whole.devices, coming=coming), SHORT, Often()):
        whole.restart_server()
    assert [line["people"] for line in seen(tmp_path / "server")["accuracy"]] == [6, 6]


def test_a_limit_on_epsilon_counts_the_bits(tmp_path):
    experiment = Experiment("fmf-ldp", rounds=4, settings={"n_min": 2, "k": 1, "epsilon": 0.1})
    whole = deployed(tmp_path, experiment, users=4, seeded=None, accuracy=Accuracy(1.0, every=1))
    whole.devices[1].store.set_limits(Limits(epsilon={"server": 2.45}))
    assert whole.run(SHORT)
    assert [line["people"] for line in seen(tmp_path / "server")["accuracy"]] == [4, 4, 3]
    assert whole.journal.refusals() == {"device": {"limit": 1}}
