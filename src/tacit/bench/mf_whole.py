"""The same round through the whole library: sampling, claims, bytes, chunks, the server's step."""

from collections.abc import Callable
from typing import Any

from tacit.federation.federation import Federation
from tacit.methods.fedrec import fedrec
from tacit.rng import SeededKeys
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.types import Index, Long


def whole_rounds(
    offsets: Long, items: Index, values: object, catalogue: int, dim: int, local_steps: int
) -> dict[str, Callable[[], object]]:
    """A round of FedRec with one filler a rating, per kind of filling; each call is one more round.

    The step size is small so that any number of rounds can be timed: it changes no amount of work.

    Example:
        >>> import numpy as np
        >>> rounds = whole_rounds(np.array([0, 2]), np.array([0, 3], "i4"), np.ones(2, "f4"), 6, 4, 2)
        >>> sorted(rounds)
        ['average', 'predicted']
    """
    federation = Federation(offsets, items, values, catalogue)  # type: ignore[arg-type]
    common: dict[str, Any] = {
        "dim": dim,
        "rate": 1e-4,
        "decay": 1.0,
        "rho": 1.0,
        "spread": 0.3,
        "t_local": local_steps,
    }
    methods = {
        "average": fedrec(**common, filling="average"),
        "predicted": fedrec(**common, filling="hybrid", t_predict=0),
    }
    jobs: dict[str, Callable[[], object]] = {}
    for kind, method in methods.items():
        world = new_world(method, federation, SeededKeys(1), Execution())
        one_round(world)  # rounds count from 0 and prediction starts after t_predict
        jobs[kind] = lambda world=world: one_round(world)
    return jobs
