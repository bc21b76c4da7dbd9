"""Fewer bits per number: half precision, or whole steps in a byte."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.kernels.packed import SCALE
from tacit.kernels.rows import materialise
from tacit.protect.protection import Form, Protection
from tacit.rng import Keyed, uniforms
from tacit.settings import checked
from tacit.types import Array, Arrays, RankOne, RoundFacts, Rows, Steps

_STEPS = 127
_LARGEST = 65504.0


def _floats(name: str, array: Array | Rows) -> Any:
    values = array
    if isinstance(array, Rows):
        values = materialise(array) if isinstance(array.values, RankOne) else array.values
    if not np.issubdtype(values.dtype, np.floating):  # type: ignore[union-attr]
        raise TacitError(f"{name!r} holds whole numbers already", "quantise once, and not after a grid")
    return values


@dataclass(frozen=True)
class Half(Protection):
    """16-bit floating-point numbers: two bytes each.

    The error of a number is at most ``2**-11`` of its size (``2**-25`` below ``2**-14``); numbers beyond
    65504 are held there. Where a bound is set on what a client sends, numbers are rounded towards zero (an
    error twice as large), so that nothing becomes longer than it was clipped to.

    Formal guarantees:
        None of its own. After noise it takes nothing away from what the noise promises.
    """

    @property
    def reads(self) -> frozenset[Form]:
        """Numbers and factors; whole numbers have their bits already."""
        return frozenset({Form.CHOSEN, Form.FACTORS})

    def steps(self, incoming: Steps | None) -> None:
        """Not whole numbers that could be added up under masks."""
        del incoming

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Round every number."""
        del state, keys
        found: dict[str, Array | Rows] = {}
        for name, array in update.items():
            values = np.clip(_floats(name, array), -_LARGEST, _LARGEST)
            short = values.astype(np.float16)
            if bound is not None:
                further = np.abs(short.astype(values.dtype)) > np.abs(values)
                short = np.where(further, np.nextafter(short, np.float16(0)), short)
            found[name] = replace(array, values=short) if isinstance(array, Rows) else short
        return found

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Rounding proves nothing and spoils nothing that noise promised."""
        del state, facts
        return claim


@dataclass(frozen=True)
class Int8(Protection):
    """One byte per number: whole steps of the largest size in the client's array over 127.

    ``rounding="nearest"`` is off by at most half a step; ``"random"`` goes up or down in proportion, so that
    the mean over many clients is right, and is off by less than a step.

    Formal guarantees:
        None of its own; the step is told in the clear. After noise on every entry it takes nothing away from
        what the noise promises. Before noise it is refused, and so it is behind noise that the server adds:
        half a step more in each of many small entries makes a longer vector than was clipped.

    ===========================  =========================
    edge case                    what happens
    ===========================  =========================
    an array of zeros            a step of zero
    whole numbers (a grid)       refused
    ===========================  =========================
    """

    rounding: Literal["nearest", "random"] = "nearest"

    @property
    def leaves(self) -> Form:
        """Bytes, and the size of a step for each array."""
        return Form.BYTES

    @property
    def reads(self) -> frozenset[Form]:
        """Numbers and factors; whole numbers have their bits already."""
        return frozenset({Form.CHOSEN, Form.FACTORS})

    def steps(self, incoming: Steps | None) -> None:
        """Not whole numbers that could be added up under masks."""
        del incoming

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Count steps."""
        del bound, state
        found: dict[str, Array | Rows] = {}
        for name, array in update.items():
            values = _floats(name, array)
            steps = np.zeros((len(keys), 1), dtype=np.float32)
            counted = np.zeros(values.shape, dtype=np.int8)
            for client, mine in enumerate(_owned(array)):
                steps[client] = np.abs(values[mine]).max(initial=0) / _STEPS
                if steps[client, 0] > 0:
                    counted[mine] = self._counted(values[mine] / steps[client, 0], keys[client : client + 1])
            found[name] = replace(array, values=counted) if isinstance(array, Rows) else counted
            found[name + SCALE] = steps
        return found

    def _counted(self, steps: Any, key: Keyed) -> Any:
        if self.rounding == "random":
            steps = np.floor(steps + uniforms(key, steps.size).reshape(steps.shape))
        return np.clip(np.rint(steps), -_STEPS, _STEPS).astype(np.int8)

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Rounding proves nothing and spoils nothing that noise promised."""
        del state, facts
        return claim


def _owned(array: Array | Rows) -> list[Any]:
    """Where each client's numbers are."""
    if isinstance(array, Rows):
        ends = array.starts + array.lengths
        return [slice(int(a), int(b)) for a, b in zip(array.starts, ends, strict=True)]
    return list(range(len(array)))


@checked
def half() -> Half:
    """Send 16-bit floating-point numbers.

    Example:
        >>> half()
        Half()
    """
    return Half()


@checked
def int8(*, rounding: Literal["nearest", "random"] = "nearest") -> Int8:
    """Send one byte per number, in steps of each array's largest size over 127.

    Example:
        >>> int8(rounding="random")
        Int8(rounding='random')
    """
    return Int8(rounding)


PROTECTIONS = {"half": half, "int8": int8}
