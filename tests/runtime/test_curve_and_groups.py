"""Curves follow the same people in every round; groups add up to everybody."""

import json

import numpy as np
import pytest

from tacit.config.experiment import Experiment
from tacit.config.session import started
from tacit.data.load import load
from tacit.rng import SeededKeys
from tacit.runtime.curve import PEOPLE, Watched
from tacit.runtime.listener import Listener
from tacit.split import split


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """A finished run of a ranking method."""
    out = tmp_path_factory.mktemp("runs") / "fcf"
    experiment = Experiment.from_mapping(
        {"method": "fcf", "data": "demo:users=60,items=80,mean=12", "rounds": 4, "seed": 3}
    )
    return started(experiment, out, None, 1).finished(Listener(), 0.0), out


def test_a_ranking_run_has_a_curve_that_ends_where_the_result_is(ranked):
    result, out = ranked
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [1, 2, 3, 4]
    assert lines[-1]["metrics"] == {name: result["metrics"][name] for name in ("hr@10", "ndcg@10")}


def test_groups_of_people_average_to_the_whole(ranked):
    result, _ = ranked
    people = [line for line in result["groups"] if line["group"].endswith("users")]
    total = sum(line["value"] * line["users"] for line in people) / sum(line["users"] for line in people)
    assert {line["metric"] for line in people} == {"hr@10"}
    assert total == pytest.approx(result["metrics"]["hr@10"], abs=1e-5)


def test_the_run_says_what_it_was_computed_with(ranked):
    assert {"tacit", "python", "numpy"} <= set(ranked[0]["versions"])


def test_few_people_stand_for_many_and_are_the_same_again():
    parts = split(load(f"demo:users={PEOPLE + 200},items=80,mean=12", None), "leave-one-out", seed=1)
    first = Watched.of(parts, ("hr@10", "ndcg@10", "mrr"), SeededKeys(1))
    again = Watched.of(parts, ("hr@10", "ndcg@10", "mrr"), SeededKeys(1))
    assert first.metrics == ("hr@10", "ndcg@10")
    assert len(first.people) == PEOPLE
    assert np.array_equal(first.people, again.people)
    assert np.array_equal(np.unique(first.split.test.users), first.people)
    assert len(first.split.train) == len(parts.train)
    rated = Watched.of(parts, ("rmse", "hr@10"), SeededKeys(1))
    assert (rated.metrics, rated.people) == (("rmse",), None)
