"""Experiments: complete, typed, written out, and equal after a trip through a file."""

import pytest
import tomli_w

from tacit.config.catalogue import protection, resolved_settings, transport
from tacit.config.experiment import Experiment, resolved, with_protection
from tacit.errors import TacitError
from tacit.methods.fedrec import fedrec
from tacit.protect.grid import Grid

TINY = "demo:users=40,items=30,mean=12"


def test_everything_is_resolved_and_survives_the_file(tmp_path):
    complete, plan = resolved(Experiment("fedrec", data=TINY, settings={"rho": "2", "preset": "paper"}))
    assert complete.split == "ratings-5fold:1"
    assert complete.settings["rho"] == 2.0
    assert complete.settings["rate"] == 0.8
    assert plan.method.rounds == complete.rounds == 100
    file = tmp_path / "config.toml"
    file.write_text(tomli_w.dumps(complete.to_mapping()))
    again, _ = resolved(Experiment.from_file(file))
    assert again == complete


def test_what_is_given_wins_over_the_preset_and_the_preset_over_the_default():
    settings = resolved_settings("fedrec", {"preset": "paper", "rate": "0.5"}, "ml-1m")
    assert (settings["rate"], settings["decay"], settings["t_local"]) == (0.5, 0.9, 15)
    assert resolved_settings("fedrec", {}, "ml-1m")["rate"] == 0.4


def test_the_papers_recipe_depends_on_the_data_as_the_paper_says():
    def steps(data, rho):
        found = resolved_settings("fedrec", {"preset": "paper", "rho": rho}, data)
        return found["t_predict"], found["t_local"]

    assert steps("ml-100k", 1.0) == (10, 10)
    assert steps("ml-100k", 2.0) == steps("ml-100k", 3.0) == (5, 15)
    assert steps("ml-1m", 1.0) == steps("ml-1m", 3.0) == (10, 15)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"method": "fedrec", "datta": "demo"}, "did you mean 'data'"),
        ({"data": "demo"}, "without a method"),
        ({"method": "fedrec", "seed": "one"}, "wrong kind"),
        ({"method": "fedrec", "settings": ["rho"]}, "wrong kind"),
    ],
)
def test_unknown_and_wrong_keys_are_refused(values, said):
    with pytest.raises(TacitError, match=said):
        Experiment.from_mapping(values)


def test_an_unknown_preset_names_those_there_are():
    with pytest.raises(TacitError, match="paper"):
        resolved_settings("fedrec", {"preset": "papr"}, "demo")


def test_stages_are_made_from_their_text():
    assert protection("grid:16") == Grid(16)
    assert transport("direct").delivers.value == "reports"
    for text, said in (("grid:16:3:1", "too many"), ("grid:zero", "whole number"), ("grid:99", "at most 48")):
        with pytest.raises(TacitError, match=said):
            protection(text)


def test_a_protection_is_added_at_the_end_of_every_chain():
    method = with_protection(fedrec(rho=1.0), "grid:20")
    assert method.exchanges[0].protections.stages[-1] == Grid(20)


def test_a_baseline_refuses_what_only_a_federation_has():
    with pytest.raises(TacitError, match="one place"):
        resolved(Experiment("pop", data=TINY, protect=("grid",)))
