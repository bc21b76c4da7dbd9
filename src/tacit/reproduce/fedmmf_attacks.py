"""FedMMF (Yang and others, 2021): Tables 2 and 3, what masked ratings give away.

The paper attacks MovieLens 10M; here it is 100K. ``g`` has no unit there, and no reading of it makes the
attack that the text describes (stretch a person's masked ratings to the person's range) fit the printed
shares. They come near to an attack that writes masked ratings down as they are, on masks that learned their
owner's ratings by heart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.audit.masks import Masked, binned, hit_ratio, recovered, recovery_rate
from tacit.data import load
from tacit.methods.fedmmf import local_fm
from tacit.models.masked_factorisation import MaskedFactorisation
from tacit.reproduce.fedmmf import Choice, Place, Row, chosen, tested
from tacit.reproduce.table import Cell, Options, Reproduction
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.split import split
from tacit.types import Floats

RANGES = ("0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1")
# share of people, in percent, whose rate lies in each range
TABLE_2 = {
    1: (99, 1, 0, 0, 0),
    2: (95, 4, 1, 0, 0),
    3: (66, 28, 5, 1, 0),
    4: (7, 25, 37, 25, 6),
    5: (0, 1, 2, 14, 83),
}
TABLE_3 = {
    0.1: (53, 37, 7, 1, 2),
    0.3: (0, 34, 55, 8, 3),
    0.5: (0, 0, 41, 52, 7),
    0.7: (0, 0, 0, 72, 28),
    0.9: (0, 0, 0, 0, 100),
}
BY_HEART = 0.1
"""A penalty at which a factorisation machine learns its owner's ratings by heart."""


@dataclass(frozen=True)
class Victim:
    """One person's masked and true ratings."""

    masked: Masked
    truth: Floats

    def stretched(self) -> Floats:
        """What the attack of the text writes down: it knows the person's lowest and highest rating."""
        return recovered(self.masked.values, low=self.truth.min(), high=self.truth.max())


@dataclass(frozen=True)
class Masks:
    """Everybody's masked ratings under one kind of mask, and how well its models predict alone."""

    label: str
    reg: float
    rmse: float
    victims: tuple[Victim, ...]


def _place(options: Options) -> Place:
    dataset = load("ml-100k", options.data_dir)
    return Place("ml-100k", dataset, split(dataset, "ratings-5fold:1", seed=1), 1)


def _penalty(place: Place, options: Options) -> Choice:
    """The penalty whose masks make the federation predict best."""
    fixed = {"order": "two", "rate": 0.004, "rounds": 300, "plain": True}
    row = Row("two-order", "fedmmf", fixed, {"mask_reg": (3.0, 10.0, 30.0)})
    return chosen(place, "fedmmf", row.candidates(quick=options.quick), options.threads)


def _masks(options: Options) -> tuple[Masks, Masks]:
    """Two-order masks that serve accuracy, and such as protect better."""
    place = _place(options)
    regs = {"useful mask": _penalty(place, options).settings["mask_reg"], "mask learned by heart": BY_HEART}
    found = []
    for label, reg in regs.items():
        rmse, _ = tested(place, "local-fm", Choice({"reg": reg}, 1, np.nan), options.threads)
        found.append(Masks(label, reg, rmse, tuple(masked_ratings(place, local_fm(reg=reg)))))
    return found[0], found[1]


def masked_ratings(place: Place, method: Method) -> Iterator[Victim]:
    """What is left of everybody's ratings once their devices have taken their own models off."""
    federation = federation_of(place.dataset, place.parts.train)
    world = new_world(method, federation, SeededKeys(place.seed), Execution())
    one_round(world)
    model = world.method.model
    assert isinstance(model, MaskedFactorisation)
    masks = model.mask.values(world.server.shared, world.private, federation.offsets, federation.items)
    left = (federation.values - masks).astype(np.float64)
    for user in federation.people:
        mine = slice(int(federation.offsets[user]), int(federation.offsets[user + 1]))
        yield Victim(Masked(federation.items[mine], left[mine]), federation.values[mine].astype(np.float64))


def table2(options: Options) -> Reproduction:
    """The recovery attack: how many people have how many ratings recovered to within so many stars."""
    both = _masks(options)
    cells: list[Cell] = []
    for masks in both:
        for stars, printed in TABLE_2.items():
            rates = [recovery_rate(victim.masked.values, victim.truth, stars) for victim in masks.victims]
            cells += _shares(f"as it is, {masks.label}, g={stars}", rates, printed)
        for stars in (0.5, 1.0):
            rates = [recovery_rate(victim.stretched(), victim.truth, stars) for victim in masks.victims]
            row = f"stretched, {masks.label}, within {stars:g}"
            cells += _shares(row, rates, None)
            mean = round(100 * float(np.mean(rates)), 1)
            cells.append(Cell(row, "mean", None, mean, "percent of a person's ratings"))
    notes = (
        *_about(both),
        "`as it is`: the guess is the masked rating itself, within g stars; `stretched`: to the person's own "
        "range, as the text has it",
        "within half a star is exact, once rounded: the attack as described recovers most ratings",
    )
    return Reproduction(
        "fedmmf/table2", "Recovery attack on masked ratings (FedMMF, Table 2)", tuple(cells), notes
    )


def table3(options: Options) -> Reproduction:
    """The ranking attack: how many people have how much of their top shown by the top of masked ratings."""
    both = _masks(options)
    cells: list[Cell] = []
    for masks in both:
        for share, printed in TABLE_3.items():
            rates = [hit_ratio(victim.masked.values, victim.truth, share) for victim in masks.victims]
            best = [hit_ratio(victim.truth, victim.truth, share) for victim in masks.victims]
            row = f"{masks.label}, h={share:g}"
            cells += _shares(row, rates, printed)
            told = f"chance {share:g}, the true order {np.mean(best):.2f}: equal ratings tie"
            cells.append(Cell(row, "mean", None, round(float(np.mean(rates)), 3), told))
    return Reproduction(
        "fedmmf/table3", "Ranking attack on masked ratings (FedMMF, Table 3)", tuple(cells), _about(both)
    )


def _shares(row: str, rates: Sequence[float], printed: Sequence[int] | None) -> Iterator[Cell]:
    for place, (column, share) in enumerate(zip(RANGES, binned(rates), strict=True)):
        paper = None if printed is None else float(printed[place])
        yield Cell(row, column, paper, round(100 * float(share), 1), "percent of people")


def _about(both: Sequence[Masks]) -> tuple[str, ...]:
    regs = "; ".join(f"{m.label}: penalty {m.reg:g}, its models alone have RMSE {m.rmse:.3f}" for m in both)
    return ("MovieLens 100K (the paper: 10M), two-order masks", regs)


TABLES = {"fedmmf/table2": table2, "fedmmf/table3": table3}
