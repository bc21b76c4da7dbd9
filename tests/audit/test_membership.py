"""Who took part: plain for undefended models, hidden by noise, and refused loudly where noise is broken."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.audit import linkability, retrained
from tacit.audit.evidence import Skipped
from tacit.audit.grid import DEFENCES, Defence, claimed, grid, rows
from tacit.audit.left_out import Silent
from tacit.audit.linkability import Log, scored, shuffle_linkability
from tacit.audit.membership import one_run_canaries, user_membership
from tacit.audit.other_client import OtherClient
from tacit.audit.suite import every_attack, keep
from tacit.cli.audit import refuted
from tacit.config.experiment import Experiment, resolved
from tacit.federation.sampling import Everyone, FixedSize
from tacit.models.matrix_factorisation import MatrixFactorisation
from tacit.protect.distributed import NoiseShares
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import chain
from tacit.rng import SeededKeys
from tacit.runtime.folder import RunFolder
from tacit.runtime.listener import Listener
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import new_world, set_up

DATA = "demo:users=80,items=60,mean=12"
SHARES = {"transport": "secure-sum:0.1:0.05", "protect": ["skellam:4.0:35:3.0"]}


def plan_of(method, transport="", protect=(), **settings):
    keys = {"method": method, "data": DATA, "settings": settings, "protect": list(protect)}
    return resolved(Experiment.from_mapping({**keys, **({"transport": transport} if transport else {})}))[1]


class Weak(GaussianNoise):
    """Claims its noise and adds a hundredth of it."""

    def on_server(self, total, bound, state, facts, keys):
        """Less than was claimed."""
        return GaussianNoise(self.noise / 100).on_server(total, bound, state, facts, keys)


def weakened(plan):
    """The same plan with the noise on the sum a hundredth of what its event says."""

    def settle(method, around):
        done = replace(method, settle=plan.method.settle).settled(around)
        (exchange,) = done.exchanges
        stages = [
            Weak(stage.noise) if isinstance(stage, GaussianNoise) else stage
            for stage in exchange.protections.stages
        ]
        return replace(done, exchanges=(replace(exchange, protections=chain(*stages)),))

    return replace(plan, method=replace(plan.method, settle=settle))


def test_the_silent_are_asked_and_never_answer():
    people, keys = np.arange(50, dtype="i4"), SeededKeys(1)
    rule = Silent(FixedSize(20), frozenset({3, 4, 5}))
    for round in range(20):
        drawn, heard = FixedSize(20).draw(people, round, keys), rule.draw(people, round, keys)
        assert set(heard.tolist()) == set(drawn.tolist()) - {3, 4, 5}
    assert len(Silent(Everyone(), frozenset()).draw(people, 0, keys)) == 50


def test_a_plain_model_gives_its_people_away():
    found = user_membership(plan_of("fcf", upload="dense"), 4, Listener())["metrics"]
    assert found["advantage"] > 0.8
    assert found["tpr_at_1_percent"] > 0.5
    assert "epsilon_claimed" not in found


def test_another_client_knows_nobodys_own_start(monkeypatch):
    """Other first vectors on the devices of the run change none of the updates that the attacker expects."""
    plan = plan_of("fedmf")
    honest = MatrixFactorisation.private

    def expected():
        world = new_world(plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(plan.seed))
        attackers = []
        monkeypatch.setattr(retrained, "OtherClient", lambda *given: attackers.append(OtherClient(*given)))
        retrained.retrained(plan, 0, Listener(), {"items": (60, 20)}, canaries=False)
        return world.private["user"], attackers[0].updates(world.server)

    def moved(self, users, keys):
        there = honest(self, users, keys)
        return {"user": -there["user"]} if keys.seed == plan.seed else there

    mine, told = expected()
    monkeypatch.setattr(MatrixFactorisation, "private", moved)
    others, again = expected()
    assert not np.allclose(mine, others)
    np.testing.assert_array_equal(told, again)


def test_masks_fitted_to_known_histories_are_taken_off():
    """Who knows a history knows the mask that is fitted to it."""
    plan = plan_of("fedmmf")
    world = new_world(plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(plan.seed))
    people = world.federation.people
    twin = new_world(plan.method, world.federation, SeededKeys(plan.seed + 1))
    blank = {name: array.copy() for name, array in twin.private.items() if name.startswith("mask.")}
    OtherClient(twin, people, {"items": world.server.shared["items"].shape})
    set_up(world)
    assert blank
    for name in blank:
        assert not np.allclose(twin.private[name], blank[name])
        np.testing.assert_allclose(twin.private[name], world.private[name], rtol=1e-3, atol=1e-4)


def test_private_starts_hide_where_rows_point_but_not_which_items_move():
    found = user_membership(plan_of("fedmf", feedback="implicit", rounds=4, clients=1.0), 4, Listener())
    assert found["metrics"]["advantage"] > 0.4
    noisy = plan_of("dp-fedmf", rounds=4, clients=1.0, sigma=4.0)
    # Two samples of 40 from one distribution are that far apart once in a hundred (Kolmogorov, Smirnov).
    assert user_membership(noisy, 4, Listener())["metrics"]["advantage"] < 0.36


@pytest.mark.parametrize("attack", [user_membership, one_run_canaries])
def test_somebody_alone_has_nobody_to_be_compared_with(attack, monkeypatch):
    plan = plan_of("fcf", upload="dense")
    for there in (True, False):
        monkeypatch.setattr(
            retrained, "chosen", lambda *_, there=there: (np.zeros(1, "i4"), np.array([there]))
        )
        told = attack(plan, 1, Listener())
        assert isinstance(told, Skipped)
        assert f"nobody {'out' if there else 'in'}" in told.reason


def test_canaries_are_looked_for_in_rounds_and_not_in_what_is_summed_before_them():
    """The common mean of FedMMF's control is summed before round 1, exactly: nothing is claimed."""
    told = one_run_canaries(plan_of("fedmmf", **SHARES, mask="global-mean"), 2, Listener())
    assert told["metrics"]["rounds"] == 2
    assert "epsilon_claimed" not in told["metrics"]


def test_noise_hides_who_took_part_and_its_claim_holds():
    plan = plan_of("dp-privrec", epsilon=1.0, clients=20, rounds=4)
    for attack in (user_membership, one_run_canaries):
        told = attack(plan, 4, Listener())
        found = told["metrics"]
        assert found["epsilon_claimed"] == pytest.approx(1.0, abs=0.01)
        assert found["epsilon_lower_bound"] <= found["epsilon_claimed"]
        assert found["allowed_advantage"] < 0.5
        assert "exceeds" not in told


def test_broken_noise_is_refuted_and_says_so_with_exit_1(capsys):
    plan = weakened(plan_of("dp-privrec", epsilon=1.0, clients=1.0, rounds=4, clip_rate=0.0))
    told = one_run_canaries(plan, 4, Listener())
    assert told["metrics"]["epsilon_lower_bound"] > told["metrics"]["epsilon_claimed"]
    line = {"name": "one-run-canaries", "observer": "release", **told}
    assert refuted({"attacks": [line]}) == 1
    error = capsys.readouterr().err
    assert error.startswith("tacit: claim refuted: one-run-canaries: measured epsilon is at least")
    assert error.count("\n") == 1
    assert refuted({"attacks": [{"name": "x", "metrics": {}}]}) == 0


@pytest.mark.parametrize("method", ["fedmf", "fedrec"])
def test_noise_in_shares_behind_a_sum_keeps_its_claim_against_whole_tables(method):
    told = one_run_canaries(plan_of(method, **SHARES), 4, Listener())
    found = told["metrics"]
    assert 1 < found["epsilon_claimed"] < 4
    assert found["epsilon_lower_bound"] <= found["epsilon_claimed"]
    assert "exceeds" not in told


def test_shares_of_too_little_noise_are_refuted(monkeypatch):
    """Each device adds a thousandth of the deviation that its event names; 40 canaries certify 1.02."""
    honest = NoiseShares._table

    def weak(self):
        return honest(replace(self, noise=self.noise / 1000))

    monkeypatch.setattr(NoiseShares, "_table", weak)
    quiet = {**SHARES, "protect": ["skellam:20.0:35:3.0"]}
    told = one_run_canaries(plan_of("fedmf", **quiet), 4, Listener())
    assert told["metrics"]["epsilon_claimed"] < 1 < told["metrics"]["epsilon_lower_bound"]
    assert "exceeds" in told


def test_rows_by_item_have_no_canaries_and_entries_no_direction():
    assert isinstance(one_run_canaries(plan_of("fedmf"), 2, Listener()), Skipped)
    assert isinstance(user_membership(plan_of("fmf-ldp", k=4, n_min=10), 2, Listener()), Skipped)
    assert isinstance(shuffle_linkability(plan_of("fedmf"), 2, Listener()), Skipped)


@pytest.mark.parametrize(
    ("method", "reason"), [("fcf", "'gram'"), ("dplcf", "'bits'"), ("local-lr", "nothing leaves a device")]
)
def test_what_is_no_direction_of_the_model_is_named(method, reason):
    told = user_membership(plan_of(method), 2, Listener())
    assert isinstance(told, Skipped)
    assert reason in told.reason


def test_shuffled_reports_are_not_linked_beyond_chance():
    found = shuffle_linkability(plan_of("fmf-ldp", k=8, n_min=10), 1, Listener())["metrics"]
    assert found["distinct_sizes"] == 1
    assert found["repeated_bytes"] == 0
    assert found["linked_by_size"] == found["prior_linked_by_size"]
    # One in a million: five standard errors.
    assert abs(found["linked_by_order"] - found["prior_linked_by_order"]) < 5 * found["standard_error"]


def test_a_proxy_that_forgets_to_shuffle_is_seen(monkeypatch):
    monkeypatch.setattr(linkability.Proxy, "batch", lambda self: self.waiting)
    found = shuffle_linkability(plan_of("fmf-ldp", k=8, n_min=10), 1, Listener())["metrics"]
    assert found["linked_by_order"] == pytest.approx(7 * 50 / 399, abs=1e-6)


def test_sizes_that_differ_link():
    told = scored(Log(np.array([1, 1, 2, 2], "i4"), 0, np.array([7, 7, 8, 8], "i4")))
    assert told["linked_by_size"] == 1.0
    assert told["prior_linked_by_size"] == pytest.approx(1 / 3)


def test_the_grid_has_a_cell_for_every_attack_and_protection():
    columns = (
        Defence("plain", Experiment.from_mapping({"method": "fedmf"})),
        Defence("fillers", Experiment.from_mapping({"method": "fedrec"})),
    )
    found = grid(["rated-set-one-upload", "shuffle-linkability"], DATA, 2, None, Listener(), columns)
    names, table = rows(found)
    assert names == ["attack", "plain", "fillers"]
    assert [row[0] for row in table] == [
        "ε server",
        "ε release",
        "rated-set-one-upload",
        "shuffle-linkability",
    ]
    assert table[0][1:] == ["∞", "∞"]
    assert table[2][1].startswith("1 (")
    assert table[3][1:] == ["–", "–"]


def test_every_protection_of_the_grid_can_be_set_up_and_sums_with_noise_are_one():
    told = {column.name: claimed(resolved(column.experiment)[1]) for column in DEFENCES}
    assert 1 < told["noise in shares in a secure sum (fedmf)"]["server"] < 8
    assert told["secure sum (fedmf)"]["server"] is None


def test_an_audit_is_kept_in_the_folder_and_parts_of_it_replaced(tmp_path):
    folder = RunFolder.created(tmp_path / "run", {"method": "fedmf"})
    plan = plan_of("fedmf")
    both = every_attack(plan, ["rated-set-one-upload", "shuffle-linkability"], 2, Listener())
    keep(folder, {"run": "run", "privacy": [], "attacks": both})
    one = every_attack(plan, ["rated-set-one-upload"], 2, Listener())
    keep(folder, {"run": "run", "privacy": [], "attacks": one})
    import json

    names = [line["name"] for line in json.loads((tmp_path / "run" / "audit.json").read_text())["attacks"]]
    assert names == ["rated-set-one-upload", "shuffle-linkability"]
