"""Noise that devices add to whole numbers, each a share of what their sum needs.

Behind a secure sum the server gets no more than whoever is given the model.

A device clips its update (tables written out, counts beside them), scales the clip norm to ``steps`` whole
steps, rotates all arrays as one vector (so that no number of any of them stands out), rounds at random until
the length is within its bound, and adds its share of the noise
(Kairouz, Liu and Steinke 2021; Agarwal, Kairouz and Liu 2021).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.account.claim import Bound, Claim, Observer, Summed
from tacit.account.events import DiscreteGaussian, Skellam
from tacit.account.skellam import rounded_norm
from tacit.errors import TacitError
from tacit.kernels.rows import materialise
from tacit.protect import integer_noise
from tacit.protect.clip import shrunk
from tacit.protect.protection import Draws, Form, Protection
from tacit.protect.rotation import rotate, rotate_back
from tacit.rng import Keyed, Keys
from tacit.settings import Count, Positive, checked
from tacit.types import Array, Arrays, Long, RankOne, RoundFacts, Rows, Steps

LENGTHENING = math.sqrt(1.01)
"""Rounding may lengthen a vector by half a percent; the claim uses the longer one."""
TRIES = 8
COUNT = ".count"
UNSEEN = "that a person takes part is not hidden: the neighbour sends an empty update"


@dataclass(frozen=True)
class NoiseShares(Protection):
    """Each of at least ``honest`` devices adds its share of noise of ``noise`` clip norms on the sum.

    Tables are sent whole: noise lies on every entry, touched or not, and on how many people stand behind each
    row. Counts weigh ``weight`` in the joint norm; after the sum they are at least twice their noise.

    Formal guarantees:
        Behind a secure sum, a Skellam or discrete Gaussian event for the server and for whoever gets the
        model, with the noise of ``honest`` shares (fewer, if fewer answered). Sent directly, a report carries
        one share only, and that is what the claim says.

    ==============================  ==============================================================
    edge case                       what happens
    ==============================  ==============================================================
    neither clip nor a bound        refused when the chain is built
    shares too small or too large   refused at construction: other steps are needed
    too coarse for the length       refused: more steps are needed for rounding to keep the bound
    unlucky rounding, eight times   rounded towards zero, which never lengthens
    not a number, infinite          an empty update is sent, with its noise
    fewer honest answers possible   the secure sum refuses the round
    ==============================  ==============================================================

    Example:
        >>> NoiseShares("skellam", noise=1.0, honest=500).bound(None)
        Traceback (most recent call last):
        tacit.errors.TacitError: noise without a bound protects nobody; give skellam:1:500:2.0 (a clip norm)
    """

    dense: ClassVar[bool] = True
    kind: Literal["skellam", "discrete-gaussian"]
    noise: float
    honest: int
    clip: float | None = None
    steps_per_clip: int = 1 << 15
    weight: float = 0.25

    def __post_init__(self) -> None:
        """Refuse shares that cannot be drawn."""
        integer_noise.require_drawable(self.share_variance)

    @property
    def noises(self) -> Literal["device"]:
        """Each device adds its share."""
        return "device"

    @property
    def leaves(self) -> Form:
        """Whole steps."""
        return Form.STEPS

    @property
    def reads(self) -> frozenset[Form]:
        """Plain numbers only: its steps are its own."""
        return frozenset()

    def bound(self, incoming: Bound | None) -> Bound:
        """The clip norm, or what was bounded before if that is less, and what rounding may add to it."""
        return Bound(2, self._size(incoming) * LENGTHENING)

    def _size(self, incoming: Bound | None) -> float:
        """What a device clips to."""
        if self.clip is None and (incoming is None or incoming.order > 2):
            raise TacitError(
                "noise without a bound protects nobody",
                f"give {self.kind}:1:500:2.0 (a clip norm)",
            )
        sizes = [self.clip, incoming.size if incoming and incoming.order <= 2 else None]
        return min(size for size in sizes if size is not None)

    @property
    def norm(self) -> float:
        """The longest whole-number vector a device sends before its noise."""
        return self.steps_per_clip * LENGTHENING

    @property
    def share_variance(self) -> float:
        """The variance of one device's noise on each entry."""
        return (self.noise * self.steps_per_clip) ** 2 / self.honest

    def steps(self, incoming: Steps | None) -> Steps:
        """Steps whose size the clip norm decides; rotated, so no entry stands out."""
        if incoming is not None:
            raise TacitError(f"{self.kind} noise on numbers that are rounded already", "leave the grid out")
        std = math.sqrt(self.share_variance)
        return Steps(1.0 / self.steps_per_clip, self.norm, std, self.norm, flat=True, honest=self.honest)

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Clip, scale, rotate, round, add the share."""
        del state
        if not update:
            return update
        size = self._size(bound)
        tables = _whole_tables(update, draws.catalogue, self.weight)
        shapes = {name: table.shape for name, table in tables.items()}
        flat = np.concatenate([tables[name].reshape(len(draws.users), -1) for name in tables], axis=1)
        self._check_steps(flat.shape[1])
        lengths = np.sqrt(np.square(flat).sum(axis=1))
        flat[~np.isfinite(lengths)] = 0
        flat *= (shrunk(lengths, size) * self.steps_per_clip / size)[:, np.newaxis]
        rotate(flat, f"noise shares/{draws.round}")
        words = draws.words(2 * flat.shape[1])
        whole = self._rounded(flat, words[:, : flat.shape[1]], draws)
        whole += self._table().drawn(words[:, flat.shape[1] :])
        return _split(whole, shapes)

    def _check_steps(self, length: int) -> None:
        if rounded_norm(1.0, self.steps_per_clip, length) > self.norm:
            raise TacitError(
                f"{self.steps_per_clip} steps per clip norm are too coarse for {length} numbers",
                "use more steps",
            )

    def _rounded(self, flat: NDArray[np.float64], words: Keyed, draws: Draws) -> Long:
        """Up or down at random, again where the vector became too long."""
        whole = np.floor(flat + _fractions(words)).astype(np.int64)
        for turn in range(TRIES):
            long = self._too_long(whole)
            if not len(long):
                return whole
            again = replace(draws, users=draws.users[long], purpose=f"{draws.purpose}/again {turn}")
            whole[long] = np.floor(flat[long] + _fractions(again.words(flat.shape[1])))
        long = self._too_long(whole)
        whole[long] = np.trunc(flat[long])
        return whole

    def _too_long(self, whole: Long) -> Long:
        return np.flatnonzero(np.sqrt(np.square(whole).sum(axis=1)) > self.norm)

    def _table(self) -> integer_noise.NoiseTable:
        made = integer_noise.skellam if self.kind == "skellam" else integer_noise.discrete_gaussian
        return made(self.share_variance)

    def on_server(
        self, total: Arrays, bound: Bound | None, state: Any, facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, Any]:
        """Rotate the sum back, and turn steps into numbers."""
        del keys
        if not total:
            return total, state
        size = self._size(bound)
        whole: dict[str, Array] = {}
        for name in sorted(total, key=_beside_its_count):
            array = total[name]
            assert not isinstance(array, Rows)
            whole[name] = array[np.newaxis].astype(np.float64)
        flat = np.concatenate([array.reshape(1, -1) for array in whole.values()], axis=1)
        rotate_back(flat, f"noise shares/{facts.round}")
        flat *= size / self.steps_per_clip
        found: dict[str, Array | Rows] = {}
        for name, part in _split(flat, {name: array.shape for name, array in whole.items()}).items():
            least = max(1.0, 2 * self.noise * size / self.weight)
            found[name] = np.maximum(part[0] / self.weight, least) if name.endswith(COUNT) else part[0]
        return found, state

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """One share against whoever sees single messages; all honest shares against whoever sees the sum."""
        del state
        surely = max(1, min(self.honest, facts.answered))
        kept = (f"at least {surely} people who answered added their share of the noise", UNSEEN)
        alone, own = self._event(1, facts), ("each device adds its own noise", UNSEEN)
        claim = claim.with_bound(self.bound(claim.bound)).with_event(Observer.SERVER, alone, own)
        claim = claim.with_event(Observer.RELEASE, alone, (UNSEEN,))
        return replace(claim, summed=Summed(self._event(surely, facts), kept))

    def _event(self, shares: int, facts: RoundFacts) -> Skellam | DiscreteGaussian:
        if self.kind == "skellam":
            # Whole numbers are at most their squares, so the L1 norm is at most the squared L2 norm.
            return Skellam(self.share_variance * shares, self.norm, self.norm**2)
        entries = sum(math.prod(shape) + (shape[0] if shape else 1) for shape in facts.received.values())
        return DiscreteGaussian(math.sqrt(self.share_variance), shares, max(1, entries + 8), self.norm)


def _beside_its_count(name: str) -> tuple[str, bool]:
    """The order in which :func:`_whole_tables` lays arrays out: names rising, tables before their counts."""
    return name.removesuffix(COUNT), name.endswith(COUNT)


def _split(flat: Array, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Rows of numbers as named arrays; the first axis of each shape is the rows'."""
    cuts = np.cumsum([math.prod(shape[1:]) for shape in shapes.values()])[:-1]
    parts = np.split(flat, cuts, axis=1)
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def _fractions(words: Keyed) -> NDArray[np.float64]:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _whole_tables(update: Arrays, catalogue: int, weight: float) -> dict[str, NDArray[np.float64]]:
    """Every array in full, names rising; a table of rows with how many people stand behind each."""
    found: dict[str, NDArray[np.float64]] = {}
    for name in sorted(update):
        array = update[name]
        if not isinstance(array, Rows):
            found[name] = array.astype(np.float64)
            continue
        values = materialise(array) if isinstance(array.values, RankOne) else array.values
        height = len(array.values.table) if isinstance(array.values, RankOne) else catalogue
        ends = np.cumsum(array.lengths)
        clients = np.repeat(np.arange(array.clients), array.lengths)
        at = np.arange(len(clients)) + np.repeat(array.starts - (ends - array.lengths), array.lengths)
        table = np.zeros((array.clients, height, values.shape[1]))
        np.add.at(table, (clients, array.ids[at]), values[at])
        counts = np.zeros((array.clients, height))
        behind = 1 if array.counts is None else array.counts[at]
        np.add.at(counts, (clients, array.ids[at]), weight * behind)
        found |= {name: table, f"{name}{COUNT}": counts}
    return found


@checked
def skellam(
    *,
    noise: Positive = 1.0,
    honest: Count = 1,
    clip: Positive | None = None,
    steps: Count = 1 << 15,
    weight: Positive = 0.25,
) -> NoiseShares:
    """Skellam noise in shares: ``noise`` clip norms on the sum once ``honest`` people have answered.

    Example:
        >>> skellam(noise=1.0, honest=500, clip=2.0).norm > 2**15
        True
    """
    return NoiseShares("skellam", noise, honest, clip, steps, weight)


@checked
def discrete_gaussian(
    *,
    noise: Positive = 1.0,
    honest: Count = 1,
    clip: Positive | None = None,
    steps: Count = 1 << 15,
    weight: Positive = 0.25,
) -> NoiseShares:
    """Discrete Gaussian noise in shares: ``noise`` clip norms on the sum once ``honest`` people answered.

    Example:
        >>> discrete_gaussian(noise=1.0, honest=500, clip=2.0).kind
        'discrete-gaussian'
    """
    return NoiseShares("discrete-gaussian", noise, honest, clip, steps, weight)


PROTECTIONS = {"skellam": skellam, "discrete-gaussian": discrete_gaussian}
