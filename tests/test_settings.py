"""Settings are parsed, bounded and named in one place."""

from typing import Literal

import pytest

from tacit.errors import TacitError
from tacit.settings import Between, Count, CountOrShare, NonNegative, Share, checked, head_count, settings_of


@checked
def method(
    *,
    dim: Count = 20,
    share: Share = 0.5,
    reg: NonNegative = 0.1,
    fill: Literal["average", "hybrid"] = "hybrid",
    clients: CountOrShare = 1.0,
    epsilon: float | None = None,
) -> dict[str, object]:
    return {"dim": dim, "share": share, "reg": reg, "fill": fill, "clients": clients, "epsilon": epsilon}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("dim", "8", 8),
        ("share", "0.25", 0.25),
        ("reg", "0", 0.0),
        ("fill", "average", "average"),
        ("clients", "30", 30),
        ("clients", "0.3", 0.3),
        ("epsilon", "none", None),
        ("epsilon", "2", 2.0),
    ],
)
def test_text_becomes_a_value_of_the_right_kind(name, text, value):
    found = settings_of(method)[name].parsed(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("dim", "0", "at least 1"),
        ("dim", "1.5", "a whole number"),
        ("share", "0", "above 0"),
        ("share", "1.1", "at most 1"),
        ("reg", "nan", "at least 0"),
        ("fill", "mean", "one of average, hybrid"),
        ("epsilon", "much", "a number"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(name, text, said):
    with pytest.raises(TacitError, match=said):
        settings_of(method)[name].parsed(text)


def test_python_callers_are_checked_like_the_command_line():
    assert method(share=1)["share"] == 1.0
    with pytest.raises(TacitError, match="at most 1"):
        method(share=2)
    with pytest.raises(TacitError, match="did you mean 'dim'"):
        method(din=3)
    with pytest.raises(TacitError):
        method(dim=True)


def test_a_bound_excludes_what_is_not_finite():
    assert not Between(0).holds(float("inf"))
    assert not Between().holds(float("nan"))


@pytest.mark.parametrize(("amount", "people"), [(1, 1), (943, 943), (1.0, 943), (0.25, 236), (0.5, 472)])
def test_counts_and_shares(amount, people):
    assert head_count(amount, 943, "clients") == people


@pytest.mark.parametrize("amount", [944, -1, 1.5, -0.1, float("nan")])
def test_impossible_counts_and_shares(amount):
    with pytest.raises(TacitError, match="clients"):
        head_count(amount, 943, "clients")
