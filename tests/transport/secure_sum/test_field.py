"""The field is one; polynomials come back from enough of their values and from no fewer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.transport.secure_sum.field import PRIME, at_zero, evaluated


def test_the_modulus_is_the_first_prime_above_every_secret():
    def passes(number, base):
        odd, twos = number - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        power = pow(base, odd, number)
        return power in {1, number - 1} or any(
            (power := power * power % number) == number - 1 for _ in range(twos - 1)
        )

    def prime(number):
        return all(passes(number, base) for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41))

    assert [k for k in range(1, 298) if prime(2**256 + k)] == [297]
    assert PRIME == 2**256 + 297


@given(st.lists(st.integers(0, PRIME - 1), min_size=1, max_size=9), st.data())
def test_any_values_at_enough_points_give_the_constant_term(coefficients, data):
    points = data.draw(
        st.lists(st.integers(1, 2000), min_size=len(coefficients), max_size=len(coefficients), unique=True)
    )
    values = [sum(c * pow(x, k, PRIME) for k, c in enumerate(coefficients)) % PRIME for x in points]
    assert [evaluated(coefficients, x) for x in points] == values
    assert at_zero(points, values) == coefficients[0]


@pytest.mark.parametrize("points", [[1, 1], [0, 1], [PRIME, 1]])
def test_points_must_differ_and_lie_above_zero(points):
    with pytest.raises(TacitError, match="different points"):
        at_zero(points, [5, 6])
