"""The Python surface: the same numbers as the command line, in scikit-learn's shape."""

import copy
import gc
import pickle
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import Recommender, TacitError
from tacit.cli.main import main
from tacit.data import load

TINY = "demo:users=60,items=50,mean=15"


@pytest.fixture(scope="module")
def frame():
    data = load(TINY)
    log = data.interactions
    return pd.DataFrame(
        {
            "user": data.user_ids.values[log.users],
            "item": data.item_ids.values[log.items],
            "rating": log.values,
            "timestamp": log.times,
        }
    )


@pytest.fixture(scope="module")
def fitted(frame):
    return Recommender("fedrec++", rho=2, rounds=4, seed=3).fit(frame)


def test_the_package_itself_is_quick_to_import():
    began = time.perf_counter()
    said = subprocess.run(
        [sys.executable, "-c", "import sys, tacit; print({'torch', 'numba', 'numpy'} & set(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "set()"
    assert time.perf_counter() - began < 5  # a process; the import itself is a few milliseconds


def test_public_names_are_there():
    assert set(tacit.__all__) <= set(dir(tacit))
    assert all(getattr(tacit, name) for name in tacit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Recomender'"):
        tacit.Recomender  # noqa: B018


def test_a_frame_trains_to_the_same_numbers_as_the_command_line(frame, tmp_path, capsys):
    ours = Recommender("fedrec++", rho=2, rounds=4, seed=3, split="ratings-5fold:1").fit(frame)
    asked = ["--set", "rho=2", "--rounds", "4", "--seed", "3", "--split", "ratings-5fold:1", "--quiet"]
    assert main(["run", "fedrec++", "--data", TINY, *asked, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    theirs = Recommender.load(tmp_path / "run")
    assert ours.metrics == theirs.metrics
    assert ours.privacy == theirs.privacy
    assert ours.traffic == theirs.traffic
    assert ours.recommend(7) == [row._replace(title="") for row in theirs.recommend(7)]


def test_nothing_is_held_out_unless_asked(fitted, frame):
    assert fitted.metrics == {}
    assert fitted.result["split"] == "all"
    seen = set(frame.item[frame.user == 7])
    assert not seen & {row.item for row in fitted.recommend(7, k=50)}
    assert len(fitted.recommend(7, k=50)) == 50 - len(seen)


def test_several_people_at_once(fitted):
    both = fitted.recommend([7, 8], k=3)
    assert list(both) == [7, 8]
    assert both[8] == fitted.recommend(8, k=3) == fitted.recommend("8", k=3)
    assert list(fitted.recommend(np.array([7]), k=1)) == [7]


def test_a_newcomer_in_every_shape(fitted, tmp_path):
    history = {3: 5, 8: 1, 11: 4}
    file = tmp_path / "mine.csv"
    file.write_text("user,item,rating\n" + "".join(f"me,{item},{value}\n" for item, value in history.items()))
    from_file = fitted.recommend_for(file, k=5)
    frame = pd.DataFrame({"item": list(history), "rating": list(history.values())})
    assert from_file == fitted.recommend_for(history, k=5) == fitted.recommend_for(frame, k=5)
    with pytest.raises(TacitError, match="outside 1 to 5"):
        fitted.recommend_for({3: 50})
    with pytest.raises(TacitError, match="none of its 1 items is in the catalogue"):
        fitted.recommend_for({"nothing": 5})


def test_saved_moved_and_loaded_it_is_the_same(fitted, tmp_path):
    saved = fitted.save(tmp_path / "first")
    assert (saved / "report.html").exists()
    moved = saved.rename(tmp_path / "second")
    again = Recommender.load(moved)
    assert again.recommend(7) == fitted.recommend(7)
    assert again.privacy == fitted.privacy
    assert again.get_params()["rho"] == 2
    with pytest.raises(TacitError, match="exists already"):
        fitted.save(moved)


def test_the_command_line_opens_what_was_saved(fitted, tmp_path, capsys):
    saved = str(fitted.save(tmp_path / "mine"))
    assert main(["recommend", saved, "--user", "7", "--k", "2", "--json"]) == 0
    assert str(fitted.recommend(7, k=1)[0].item) in capsys.readouterr().out
    again = str(tmp_path / "again")
    assert main(["run", f"{saved}/config.toml", "--out", again, "--quiet"]) == 0
    capsys.readouterr()
    assert Recommender.load(again).recommend(7) == fitted.recommend(7)


def test_scores_are_the_protocols_numbers(frame):
    newest = frame.sort_values("timestamp").groupby("user").tail(1)
    rest = frame.drop(newest.index)
    for method in ("pop", "fedmf"):
        held = Recommender(method, split="leave-last-out", metrics=("hr@10", "ndcg@10"), seed=1).fit(frame)
        ours = Recommender(method, seed=1).fit(rest)
        assert ours.score(newest, "hr@10") == pytest.approx(held.metrics["hr@10"], abs=1e-6), method
        assert ours.score(newest) == pytest.approx(held.metrics["ndcg@10"], abs=1e-6), method


def test_rating_errors_use_the_scale(frame):
    kept = frame.sample(frac=0.8, random_state=1)
    ours = Recommender("fedmf", rounds=30).fit(kept, scale="1-5")
    assert 0.3 < ours.score(frame.drop(kept.index), "rmse") < 2
    with pytest.raises(TacitError, match="none of the 1 interactions"):
        ours.score([(10**6, 3, 4)], "rmse")


def test_clones_and_parameters():
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    original = Recommender("fedmf", dim=8, seed=5, protect=("grid:32",))
    clone = base.clone(original)
    assert clone is not original
    assert clone.get_params() == original.get_params()
    assert repr(clone.set_params(dim=4)) == "Recommender('fedmf', seed=5, protect=('grid:32',), dim=4)"
    assert original.get_params()["dim"] == 8
    assert copy.deepcopy(clone).get_params() == pickle.loads(pickle.dumps(clone)).get_params()


def test_a_grid_search(frame):
    selection = pytest.importorskip("sklearn.model_selection", reason="scikit-learn is not installed")
    search = selection.GridSearchCV(
        Recommender("fedmf", rounds=2), {"dim": [2, 4]}, cv=selection.KFold(2, shuffle=True, random_state=0)
    )
    search.fit(frame)
    assert search.best_params_["dim"] in {2, 4}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Recommender("fedrec+++"), "no method is called"),
        (lambda: Recommender("fedmf", dimension=3), "dimension"),
        (lambda: Recommender("fedmf", dim=0), "dim=0 is not possible"),
        (lambda: Recommender("fedmf", rounds=-1), "negative number of rounds"),
        (lambda: Recommender("fedmf").set_params(method="fcff"), "no method is called"),
        (lambda: Recommender("fedmf").recommend(1), "not fitted"),
        (lambda: Recommender("fedmf").privacy, "not fitted"),
        (lambda: Recommender("pop").fit(TINY).recommend_for([1]), "knows only whom it was fitted on"),
    ],
)
def test_what_is_wrong_is_one_line(make, says):
    with pytest.raises(TacitError) as refused:
        make()
    assert says in str(refused.value)


def test_refused_parameters_change_nothing():
    ours = Recommender("fedmf", dim=8)
    with pytest.raises(TacitError):
        ours.set_params(dim=16, seed="x")
    assert ours.get_params()["dim"] == 8


def test_a_fitted_one_is_saved_not_pickled_and_leaves_nothing_behind(frame):
    ours = Recommender("pop").fit(frame)
    with pytest.raises(TacitError, match="use save"):
        pickle.dumps(ours)
    home = ours._run.parent
    assert home.exists()
    del ours
    gc.collect()
    assert not home.exists()


@pytest.mark.parametrize("method", ["dplcf", "ldp-popularity", "local-lr"])
def test_a_method_without_rounds_can_be_opened_again(method, tmp_path):
    settings = {"n_min": 2} if method == "ldp-popularity" else {}
    ours = Recommender(method, **settings).fit(TINY)
    again = Recommender.load(ours.save(tmp_path / "run"))
    assert again.recommend(7) == ours.recommend(7)
