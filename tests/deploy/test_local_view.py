"""What a device tells its owner without a network equals what the simulation would have told them."""

import socket

import numpy as np
import pytest

from tacit.config.top import top
from tacit.data.interactions import Features, Scale
from tacit.deploy.about import RunAbout
from tacit.deploy.cohort import Owner, federation_held, people_features, profile_of
from tacit.deploy.history import History
from tacit.deploy.importing import imported, owners_of, taken_in
from tacit.deploy.local_view import LocalView
from tacit.deploy.store import DeviceStore
from tacit.errors import TacitError
from tacit.testing.device import device_of, simulated

USER = 8


@pytest.fixture(scope="module")
def told():
    return simulated("fedrec", rounds=20)


@pytest.fixture(scope="module")
def device(told, tmp_path_factory):
    with device_of(tmp_path_factory.mktemp("view") / "device", told, USER) as store:
        yield store


def test_the_list_is_the_simulations_list(told, device, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", None)  # no network
    view = LocalView.of(device, device.people()[0])
    scores = told.world.method.model.scorer(told.world.server.shared, told.world.private).scores(
        np.array([USER], dtype=np.int32)
    )[0]
    seen = told.world.federation.cohort(np.array([USER], dtype=np.int32)).items
    theirs = top(scores, seen, 10, [str(raw) for raw in told.data.item_ids.values.tolist()], None)
    assert view.trained
    assert [line.item for line in view.top(10)] == [line.item for line in theirs]
    assert [line.score for line in view.top(10)] == [line.score for line in theirs]
    assert all(line.title for line in view.top(10))


def test_the_devices_cohort_is_the_simulations(told, device):
    view = LocalView.of(device, device.people()[0])
    theirs = told.world.federation.cohort(np.array([USER], dtype=np.int32))
    assert view.cohort.items.tolist() == theirs.items.tolist()
    assert view.cohort.values.tolist() == theirs.values.tolist()
    assert {name: value.tolist() for name, value in view.cohort.extras.items()} == {
        name: value.tolist() for name, value in theirs.extras.items()
    }


def test_an_entrys_influence_is_what_leaving_it_out_does(told, device, tmp_path):
    view = LocalView.of(device, device.people()[0])
    found = view.influences(5)
    assert {line.item for line in found} == {told.about.items[at] for at in view.cohort.items}
    assert [(-line.changed, -abs(line.lift)) for line in found] == sorted(
        (-line.changed, -abs(line.lift)) for line in found
    )
    strongest = found[0]
    with DeviceStore.created(tmp_path / "without") as other:
        person = device.people()[0]
        other.add_history(person, device.history(person).without(strongest.item))
        other.keep_run(told.about)
        other.keep_model(told.about.run, 20, told.world.server.shared)
        without = LocalView.of(other, person)  # never took part: folded in from the shorter history
        assert not without.trained
        whole = view.refolded()
        seen = view.cohort.items
        best = np.argsort(-np.where(np.isin(np.arange(len(whole)), seen), -np.inf, whole), kind="stable")[:5]
        assert strongest.lift == pytest.approx(whole[best].mean() - without.scores[best].mean(), rel=1e-5)


def test_a_model_that_adapts_is_adapted_on_the_device(tmp_path):
    told = simulated("privrec", rounds=2, clients=20)
    with device_of(tmp_path / "device", told, USER) as store:
        view = LocalView.of(store, store.people()[0])
        cohort = told.world.federation.cohort(np.array([USER], dtype=np.int32))
        shared = told.world.server.shared
        theirs = told.world.method.model.scorer(shared, told.world.method.model.folded_in(shared, cohort))
        assert not view.trained
        assert view.scores == pytest.approx(theirs.scores(np.zeros(1, dtype=np.int32))[0], abs=1e-6)
        assert view.nearest(3) == []
        assert len(view.influences(5)) == len(cohort.items)


def test_what_cannot_be_shown_says_why(told, tmp_path):
    with DeviceStore.created(tmp_path / "empty") as store:
        store.add_history("ann", History.of([("no-such-item", 3.0, None)]))
        with pytest.raises(TacitError, match="no model yet"):
            LocalView.of(store, "ann")
        store.keep_run(told.about)
        store.keep_model(told.about.run, 1, told.world.server.shared)
        with pytest.raises(TacitError, match="in the catalogue"):
            LocalView.of(store, "ann")
        store.add_history("ann", History.of([("1", 9.0, None)]))
        with pytest.raises(TacitError, match="outside 1 to 5"):
            LocalView.of(store, "ann")


def test_profiles_there_and_back(told):
    features = told.data.user_features
    profiles = [profile_of(features, row) for row in range(told.data.users)]
    back = people_features(told.about.about_people, profiles)
    for name, codes in features.categories.items():
        assert back.categories[name].tolist() == codes.tolist()
    with pytest.raises(TacitError, match="not among"):
        people_features(told.about.about_people, [{"age": "no such age"}])


def test_flags_and_numbers_of_a_profile():
    about = Features(
        flags={"likes": np.zeros((0, 3), "u1")},
        numbers={"height": np.zeros(0, "f4")},
        categories={"code": np.zeros(0, "i4")},
        labels={"likes": ("a", "b", "c")},
    )
    found = people_features(about, [{"likes": ["c", "a"], "height": "1.75", "code": "3"}, {}])
    assert found.flags["likes"].tolist() == [[1, 0, 1], [0, 0, 0]]
    assert found.numbers["height"].tolist() == [1.75, 0.0]
    assert found.categories["code"].tolist() == [3, -1]
    assert profile_of(found, 0) == {"code": 3, "likes": ["a", "c"], "height": 1.75}
    with pytest.raises(TacitError, match="not a number"):
        people_features(about, [{"height": "tall"}])


def test_items_outside_the_catalogue_take_no_part():
    about = RunAbout("r", {}, ("b", "a"), 2, scale=Scale(1, 5, 1))
    held = federation_held(
        about, [Owner(History.of([("a", 5.0, 1), ("x", 99.0, 2), ("b", 1.0, 3)])), Owner(History.empty())]
    )
    assert held.items.tolist() == [0, 1]
    assert held.values.tolist() == [1.0, 5.0]
    assert held.people.tolist() == [0]


def test_importing_keeps_one_folder_one_persons(tmp_path, told):
    table = tmp_path / "log.csv"
    table.write_text("user,item,rating\nann,x,4\nbob,x,1\nann,y,5\nann,y,2\n")
    mine = tmp_path / "mine.csv"
    mine.write_text("item,rating\nz,3\n")
    with DeviceStore.created(tmp_path / "device") as store:
        with pytest.raises(TacitError, match="2 people"):
            taken_in(store, str(table), "", everyone=False, data_dir=None)
        with pytest.raises(TacitError, match="nothing of user 'eve'"):
            taken_in(store, str(table), "eve", everyone=False, data_dir=None)
        assert taken_in(store, str(table), "ann", everyone=False, data_dir=None) == {"ann": 2}
        assert taken_in(store, str(table), "ann", everyone=False, data_dir=None) == {"ann": 0}
        assert taken_in(store, str(mine), "", everyone=False, data_dir=None) == {"ann": 1}
        assert store.history("ann").rows() == [("x", 4.0, None), ("y", 2.0, None), ("z", 3.0, None)]
        with pytest.raises(TacitError, match="somebody else"):
            taken_in(store, str(table), "bob", everyone=False, data_dir=None)
        assert taken_in(store, str(table), "", everyone=True, data_dir=None)["bob"] == 1
        assert store.people() == ("ann", "bob")
    assert set(imported("demo:users=20,items=30,mean=5")) == set(owners_of(told.data)) & set(
        map(str, range(1, 21))
    )
