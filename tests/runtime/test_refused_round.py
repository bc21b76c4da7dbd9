"""A round that is refused leaves the last good model, and the ledger of the rounds before it."""

import json

import numpy as np
import pytest

from tacit.account.claim import Observer
from tacit.config.experiment import Experiment
from tacit.config.session import continued, started
from tacit.errors import TacitError
from tacit.runtime.listener import Listener

DIVERGING = {
    "method": "dp-privrec",
    "data": "demo:users=80,items=60,mean=15",
    "split": "by-user",
    "settings": {"preset": "paper"},
}


def test_the_last_good_model_and_what_it_cost_are_kept(tmp_path):
    session = started(Experiment.from_mapping(DIVERGING), tmp_path / "run", None, 1)
    with pytest.raises(TacitError, match="training diverged"):
        session.finished(Listener(), loaded=0.0)
    saved = session.folder.checkpoint()
    assert saved is not None
    done = saved.facts["round"]
    assert 0 < done < 10
    for name, array in saved.group("shared").items():
        assert np.isfinite(array).all(), name
    told = [json.loads(line) for line in (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()]
    assert [line["round"] for line in told] == list(range(done + 1))  # the server has seen the last one too
    shown = [line["claim"]["events"][Observer.RELEASE.value]["kind"] for line in told]
    assert shown == ["sampled"] * done + ["nothing"]
    assert all(line["claim"]["events"][Observer.SERVER.value]["kind"] != "nothing" for line in told)
    with pytest.raises(TacitError, match="training diverged"):  # and it ends in the same round again
        continued(tmp_path / "run", None, 1).finished(Listener(), loaded=0.0)
    again = session.folder.checkpoint()
    assert again is not None
    assert again.facts["round"] == done


def test_a_first_round_that_is_refused_leaves_no_checkpoint(tmp_path):
    settings = {"epochs": 3, "clients": 5, "rate": 1e30, "noise": 1.0}
    session = started(Experiment.from_mapping({**DIVERGING, "settings": settings}), tmp_path / "run", None, 1)
    with pytest.raises(TacitError, match="round 0"):
        session.finished(Listener(), loaded=0.0)
    assert session.folder.checkpoint() is None
