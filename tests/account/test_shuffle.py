import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from tacit.account import accountant, losses, shuffle
from tacit.account.claim import Adjacency
from tacit.account.events import Shuffled
from tacit.account.gaussian import epsilon_of
from tacit.errors import TacitError

GOLDEN = json.loads((Path(__file__).parent / "goldens" / "shuffled.json").read_text())


def brute_force_delta(event, epsilon):
    """The hockey-stick divergence of the clones pair, summed over all counts."""
    others, clone = event.reports - 1, shuffle.clone_probability(event)
    keep = math.exp(event.local_epsilon) / (1 + math.exp(event.local_epsilon))
    upper, lower = {}, {}
    for clones in range(others + 1):
        for first in range(clones + 1):
            chance = binom.pmf(clones, others, clone) * binom.pmf(first, clones, 0.5)
            for bit, odds in ((1, keep), (0, 1 - keep)):
                seen, swapped = (
                    (first + bit, clones - first + 1 - bit),
                    (first + 1 - bit, clones - first + bit),
                )
                upper[seen] = upper.get(seen, 0) + chance * odds
                lower[swapped] = lower.get(swapped, 0) + chance * odds
    return sum(max(0.0, upper.get(seen, 0) - math.exp(epsilon) * lower.get(seen, 0)) for seen in upper)


@pytest.mark.parametrize(
    ("local", "reports", "one_bit"), [(1.0, 2, False), (2.5, 12, True), (2.5, 25, False), (0.3, 20, True)]
)
def test_one_shuffle_is_the_pair_of_the_paper(local, reports, one_bit):
    event = Shuffled(local, reports, one_bit)
    values, masses = shuffle.losses(event)
    assert masses.sum() == pytest.approx(1.0)
    for epsilon in (0.0, 0.1, 0.7, 0.99 * local):
        found = np.sum(masses * np.maximum(0.0, -np.expm1(epsilon - values)))
        assert found == pytest.approx(brute_force_delta(event, epsilon), abs=1e-12)


@pytest.mark.parametrize(
    "row", GOLDEN["rows"], ids=lambda row: f"{row['reports']}-{row['times']}-{row['one_bit']}"
)
def test_whole_runs_match_the_table(row):
    event = Shuffled(GOLDEN["local_epsilon"], row["reports"], row["one_bit"])
    whole = losses.composed({event: row["times"]}, Adjacency.REPLACE_ONE, 1e-4)
    found = [whole.get_epsilon_for_delta(delta) for delta in GOLDEN["deltas"]]
    wanted = [epsilon - row["times"] * GOLDEN["rounding"] for epsilon in row["epsilons"]]
    assert found == pytest.approx(wanted, rel=2e-3)


@pytest.mark.parametrize(("reports", "times"), [(75_040, 2000), (50_000, 5000), (10_000, 2000)])
def test_closed_form_agrees_within_a_percent(reports, times):
    event = Shuffled(2.5, reports, one_bit=True)
    exact = losses.epsilon({event: times}, 1e-6, Adjacency.REPLACE_ONE, 2e-4)
    assert epsilon_of(shuffle.gaussian_mu(event, times), 1e-6) == pytest.approx(exact, rel=0.01)


def test_documented_bracket_of_another_implementation():
    found = losses.epsilon({Shuffled(4.0, 100_000): 1}, 1e-6, Adjacency.REPLACE_ONE)
    assert 0.1675 <= found <= 0.1728


def test_only_marked_mechanisms_get_the_stronger_clones():
    for local, reports in itertools.product((0.5, 2.0, 4.0), (10, 10_000)):
        strong = shuffle.clone_probability(Shuffled(local, reports, one_bit=True))
        assert shuffle.clone_probability(Shuffled(local, reports)) == pytest.approx(math.exp(-local))
        assert strong == pytest.approx(2 / (math.exp(local) + 1))


def test_a_shuffle_of_one_report_hides_nothing():
    values, masses = shuffle.losses(Shuffled(2.0, 1))
    kept = masses > 1e-12
    assert sorted(values[kept]) == pytest.approx([-2.0, 2.0])


def test_no_shuffle_is_refused():
    with pytest.raises(TacitError):
        shuffle.gaussian_mu(Shuffled(1.0, 10), 0)


@pytest.mark.parametrize("local", [29.9, 30.1, 37.0, 250.0, 800.0])
@pytest.mark.parametrize("one_bit", [False, True])
def test_a_report_of_any_epsilon_is_accounted_and_never_worse_than_unshuffled(local, one_bit):
    """At most the local epsilon; less the mass delta can pay for, where clones are too rare to matter."""
    found = accountant.epsilon([Shuffled(local, 400, one_bit)], 1e-6, Adjacency.REPLACE_ONE).value
    assert 0.9 * local <= found <= local * (1 + 1e-9)
    assert shuffle.clone_probability(Shuffled(local, 400, one_bit)) <= 2 * math.exp(-local)
