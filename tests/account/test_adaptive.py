import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.adaptive import NoiseSplit, default_bit_std, published_split, split_noise
from tacit.errors import TacitError


@pytest.mark.parametrize(
    ("target", "bit_std", "add_remove", "replace_one"),
    [(1.0, 1.5, 1.061, 1.342), (1.0, 3.0, 1.014, 1.061), (1.0, 5.0, 1.005, 1.021)],
)
def test_both_adjacencies_of_the_literature(target, bit_std, add_remove, replace_one):
    assert split_noise(target, bit_std).update_noise == pytest.approx(add_remove, abs=5e-4)
    # There z counts in sensitivities of two clip norms.
    assert split_noise(2 * target, bit_std).update_noise / 2 == pytest.approx(replace_one, abs=6e-4)


@given(st.floats(0.1, 50.0), st.floats(0.51, 20.0))
def test_a_split_costs_what_it_was_asked_to(noise, factor):
    split = split_noise(noise, factor * noise)
    assert split.total == pytest.approx(noise, rel=1e-9)
    assert split.update_noise >= noise
    costs = sum((event.clip / event.noise_std) ** 2 for event in split.event(clip=3.0).events)
    assert costs == pytest.approx(noise**-2, rel=1e-9)


@pytest.mark.parametrize("bit_std", [0.5, 0.1])
def test_no_noise_on_the_update_can_pay_for_a_bare_bit(bit_std):
    with pytest.raises(TacitError, match=r"raise it above 0\.5"):
        split_noise(1.0, bit_std)


@given(st.floats(0.2, 10.0), st.integers(1, 10_000))
def test_the_default_always_has_a_solution_and_costs_little(noise, cohort):
    assert split_noise(noise, default_bit_std(noise, cohort)).update_noise <= 1.1548 * noise


def test_the_published_split_composes_to_z_in_its_own_sensitivities():
    for h in (0.1, 0.7):
        split = published_split(1.3, h)
        update, bit = (
            split.update_noise / 2,
            split.bit_std / 2,
        )  # sensitivities 2S and, as the paper has it, 2
        assert update**-2 + bit**-2 == pytest.approx(1.3**-2)
    assert published_split(1.0, 0.7).update_noise / 2 == pytest.approx(1.826, abs=5e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: split_noise(0.0, 1.0),
        lambda: split_noise(1.0, -1.0),
        lambda: published_split(1.0, 1.0),
        lambda: published_split(0.0, 0.5),
        lambda: default_bit_std(1.0, 0),
        lambda: NoiseSplit(0.0, 1.0),
    ],
)
def test_impossible_splits_are_refused(make):
    with pytest.raises(TacitError):
        make()
