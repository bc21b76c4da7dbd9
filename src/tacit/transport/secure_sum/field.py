"""Arithmetic for secret sharing: polynomials over the prime field just above 256 bits."""

from collections.abc import Sequence
from math import prod

from tacit.errors import TacitError

PRIME = 2**256 + 297
"""The smallest prime above ``2**256``: every 32-byte secret is one of its numbers."""


def evaluated(coefficients: Sequence[int], point: int) -> int:
    """The polynomial's value, constant term first.

    Example:
        >>> evaluated([7, 2, 1], 3)
        22
    """
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % PRIME
    return value


def at_zero(points: Sequence[int], values: Sequence[int]) -> int:
    """The constant term of the polynomial of least degree through these values (Lagrange).

    Points are small positive numbers; all denominators are inverted at once.

    Example:
        >>> at_zero([1, 2, 3], [evaluated([7, 2, 1], x) for x in (1, 2, 3)])
        7
    """
    if len(set(points)) != len(points) or any(not 0 < x < PRIME for x in points):
        raise TacitError("shares of one secret need different points above zero", "collect them anew")
    below = [prod(other - x for other in points if other != x) * x % PRIME for x in points]
    whole = prod(points) % PRIME
    inverses = _inverted(below)
    return whole * sum(value * inverse for value, inverse in zip(values, inverses, strict=True)) % PRIME


def _inverted(numbers: Sequence[int]) -> list[int]:
    """Every inverse for the price of one (Montgomery's trick)."""
    running = [1]
    for number in numbers:
        running.append(running[-1] * number % PRIME)
    inverse = pow(running[-1], -1, PRIME)
    inverses = []
    for number, before in zip(reversed(numbers), reversed(running[:-1]), strict=True):
        inverses.append(inverse * before % PRIME)
        inverse = inverse * number % PRIME
    return inverses[::-1]
