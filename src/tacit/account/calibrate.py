"""The planner: noise for a budget, budget for a noise, and how many rounds a budget lasts.

``noise`` is the deviation of the noise on the **sum** divided by the clip norm, under both adjacencies.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from tacit.account.accountant import Epsilon
from tacit.account.accountant import epsilon as epsilon_of_events
from tacit.account.atoms import atoms
from tacit.account.claim import Adjacency
from tacit.account.events import Event, FixedSize, Gaussian, NonPrivate, Poisson, Repeated, Sampled
from tacit.account.gaussian import check_delta, check_epsilon, check_noise, mu_of
from tacit.errors import TacitError, nearest

SAMPLERS = ("poisson", "fixed", "none")
MOST_ROUNDS = 1_000_000
"""Of sampled rounds; unsampled ones have a closed form."""
MOST_EPSILON = 1e6


@dataclass(frozen=True)
class Schedule:
    """Who takes part, how often, and what neighbours are.

    ``sampler`` is ``poisson`` (everybody with probability cohort / users), ``fixed`` (exactly ``cohort``,
    without replacement, replace-one only) or ``none`` (no secret about who takes part).

    Example:
        >>> Schedule(users=4832, cohort=200, rounds=300, delta=1e-6).event(1.2)
        Sampled(event=Gaussian(noise_std=1.2, clip=1.0), sampling=Poisson(rate=0.041390728476821195))
    """

    users: int
    cohort: int
    rounds: int
    delta: float
    sampler: str = "poisson"
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        for name in ("users", "cohort", "rounds"):
            value = getattr(self, name)
            if value < 1 or value != int(value):
                raise TacitError(f"{name} is {value}", "give a whole number of at least 1")
        if self.cohort > self.users:
            raise TacitError(
                f"a cohort of {self.cohort} out of {self.users} users", "ask for at most all of them"
            )
        check_delta(self.delta)
        if self.sampler != "none" and self.rounds > MOST_ROUNDS:
            raise TacitError(
                f"{self.rounds} rounds of a sample", f"give {MOST_ROUNDS} at most, or --sampler none"
            )
        if self.sampler not in SAMPLERS:
            raise TacitError(f"no sampler is called {self.sampler!r}", nearest(self.sampler, SAMPLERS))
        if self.sampler == "fixed" and self.adjacency is Adjacency.ADD_REMOVE:
            raise TacitError(
                "a cohort of fixed size has no add-remove analysis", "use replace-one, or the poisson sampler"
            )

    def event(self, noise: float) -> Event:
        """What one round releases with this noise."""
        check_noise(noise)
        match self.sampler:
            case "poisson":
                return Sampled(Gaussian(noise, 1.0), Poisson(self.cohort / self.users))
            case "fixed":
                return Sampled(Gaussian(noise, 1.0), FixedSize(self.cohort, self.users))
            case _:
                return Gaussian(noise, 1.0)


@lru_cache(maxsize=1024)
def epsilon_for(noise: float, schedule: Schedule) -> Epsilon:
    """The epsilon of a whole run with this noise.

    Example:
        >>> run = Schedule(users=4800, cohort=30, rounds=1000, delta=1e-6)
        >>> round(epsilon_for(2.0, run).value, 3)
        0.436
    """
    return epsilon_of_events(
        [Repeated(schedule.event(noise), schedule.rounds)], schedule.delta, schedule.adjacency
    )


def check_budget(epsilon: float) -> float:
    """Return an epsilon that may be planned for.

    Example:
        >>> check_budget(4.0)
        4.0
    """
    if check_epsilon(epsilon) > MOST_EPSILON:
        raise TacitError(
            f"a budget of epsilon {epsilon:g}", f"give {MOST_EPSILON:g} at most, usually below 10"
        )
    return epsilon


def noise_for(epsilon: float, schedule: Schedule) -> float:
    """The least noise, to about four digits, with which a whole run stays within ``epsilon``.

    Example:
        >>> round(noise_for(4.0, Schedule(users=4832, cohort=200, rounds=300, delta=1e-6)), 2)
        1.17
    """
    check_budget(epsilon)
    reach, rate = schedule.adjacency.reach, schedule.cohort / schedule.users
    mu = mu_of(epsilon, schedule.delta) / math.sqrt(schedule.rounds)
    if schedule.sampler == "none" or rate == 1:
        return reach / mu * (1 + 1e-9)
    guess = reach / math.sqrt(math.log1p((mu / rate) ** 2))  # central limit of a sampled Gaussian
    return _polished(epsilon, schedule, _coarse_root(epsilon, schedule, guess))


def _polished(epsilon: float, schedule: Schedule, noise: float) -> float:
    """Secant steps in logarithms until the exact accountant is at most a thousandth below ``epsilon``."""
    slope, before, best = -1.5, (0.0, 0.0), math.inf
    for turn in range(12):
        here = (math.log(noise), math.log(max(_on_grid(noise, schedule, epsilon), 1e-12) / epsilon))
        if here[1] <= 0:
            best = min(best, noise)
            if here[1] > -1e-3:
                break
        if turn and abs(here[0] - before[0]) > 1e-9:
            slope = min(-0.3, max(-30.0, (here[1] - before[1]) / (here[0] - before[0])))
        before = here
        noise = math.exp(here[0] - (here[1] + 2e-4) / slope)
    while math.isfinite(best):
        if epsilon_for(best, schedule).value <= epsilon:  # on the grid that a report would choose
            return best
        best *= 1 + 1e-4
    raise TacitError(f"no noise was found for epsilon {epsilon}", "ask for a larger epsilon or fewer rounds")


def _on_grid(noise: float, schedule: Schedule, expected: float, points: int | None = None) -> float:
    """The epsilon of a whole run, on one grid made for about ``expected``."""
    from tacit.account import losses

    counts = {schedule.event(noise): schedule.rounds}
    step = losses.step_for(counts, schedule.adjacency, expected, points or losses.POINTS)
    return losses.epsilon(counts, schedule.delta, schedule.adjacency, step)


def _coarse_root(epsilon: float, schedule: Schedule, guess: float) -> float:
    """Where the run reaches ``epsilon`` on a cheap grid."""
    from scipy.optimize import brentq

    @lru_cache
    def excess(log_noise: float) -> float:
        value = _on_grid(math.exp(log_noise), schedule, epsilon, points=500)
        return math.log(max(value, 1e-9) / epsilon) if math.isfinite(value) else 700.0

    low, high = _bracket(excess, math.log(guess))
    return math.exp(cast("float", brentq(excess, low, high, xtol=1e-3)))


def _bracket(falling: Callable[[float], float], start: float) -> tuple[float, float]:
    """Two points around the zero of a falling function."""
    stride = 0.05
    low = high = start
    if falling(start) > 0:
        while falling(high) > 0:
            low, high, stride = high, high + stride, 2 * stride
    else:
        while falling(low) <= 0:
            low, high, stride = low - stride, low, 2 * stride
    return low, high


def rounds_within(
    epsilon: float,
    event: Event,
    delta: float,
    adjacency: Adjacency,
    spent: Sequence[Event] = (),
    limit: int = 1_000_000,
) -> int:
    """How many more rounds like ``event`` stay within ``epsilon`` after what was ``spent``.

    At most ``limit``; where a grid is involved, a thousandth less rather than one too many.

    Example:
        >>> run = Schedule(users=4832, cohort=200, rounds=1, delta=1e-6)
        >>> rounds_within(4.0, run.event(1.18), run.delta, run.adjacency)
        305
    """
    check_budget(epsilon)
    check_delta(delta)
    counts = atoms([event])
    if not counts:
        return limit
    if any(isinstance(part, NonPrivate) for part in atoms([event, *spent])):
        return 0

    fits = _fits(epsilon, event, delta, adjacency, spent)
    rounds = _largest(fits, limit)
    while rounds and epsilon_of_events([*spent, Repeated(event, rounds)], delta, adjacency).value > epsilon:
        rounds -= max(1, rounds // 10_000)
    return max(0, rounds)


def _fits(
    epsilon: float, event: Event, delta: float, adjacency: Adjacency, spent: Sequence[Event]
) -> Callable[[int], bool]:
    """Whether so many rounds fit, with everything computed once that does not depend on their number."""
    from tacit.account import losses

    before, each = atoms(spent), atoms([event])
    counts = {**before, **each}
    plain = all(isinstance(part, Gaussian) for part in counts)
    if plain or not all(losses.supported(part, adjacency) for part in counts):
        return lambda rounds: (
            epsilon_of_events(
                [*spent, *([Repeated(event, rounds)] if rounds else [])], delta, adjacency
            ).value
            <= epsilon
        )
    step = losses.step_for(counts, adjacency, epsilon)
    past = losses.composed(before, adjacency, step) if before else None
    one = losses.composed(each, adjacency, step)

    def fits(rounds: int) -> bool:
        future = one.self_compose(rounds) if rounds else None
        whole = future if past is None else past if future is None else past.compose(future)
        return whole is None or losses.epsilon_at(whole, delta) <= epsilon

    return fits


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest number up to ``limit`` that fits, where every smaller one does too."""
    low, high = 0, 1
    while high <= limit and fits(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class PlanRow:
    """One line of a plan: the noise a budget asks for, and what it does to one coordinate of the mean."""

    rounds: int
    cohort: int
    epsilon: float
    noise: float
    noise_on_mean: float


def plan(
    schedule: Schedule, cohorts: Iterable[int], rounds: Iterable[int], epsilons: Iterable[float]
) -> tuple[PlanRow, ...]:
    """The noise for every combination of cohort size, number of rounds and budget.

    Example:
        >>> grid = plan(Schedule(4832, 30, 100, 1e-6), cohorts=[30, 200], rounds=[100], epsilons=[2.0])
        >>> [(row.cohort, round(row.noise, 2), round(row.noise_on_mean, 4)) for row in grid]
        [(30, 0.73, 0.0244), (200, 1.31, 0.0066)]
    """
    cohorts, epsilons = tuple(cohorts), tuple(epsilons)
    cases = [replace(schedule, rounds=turns, cohort=cohort) for turns in rounds for cohort in cohorts]
    return tuple(_plan_row(case, epsilon) for case in cases for epsilon in epsilons)


def _plan_row(case: Schedule, epsilon: float) -> PlanRow:
    noise = noise_for(epsilon, case)
    return PlanRow(case.rounds, case.cohort, epsilon, noise, noise / case.cohort)


def budget(
    users: int,
    cohort: int,
    rounds: int,
    delta: float,
    sampler: str = "poisson",
    adjacency: str | Adjacency = Adjacency.ADD_REMOVE,
    noise: float | None = None,
    epsilon: float | None = None,
) -> dict[str, Any]:
    """What ``tacit budget`` prints: give either the noise or the epsilon, and get the other.

    Example:
        >>> answer = budget(4800, 30, 1000, 1e-6, sampler="fixed", adjacency="replace-one", noise=2.0)
        >>> round(answer["epsilon"], 3), answer["accountant"]
        (1.524, 'privacy loss distribution')
    """
    if (noise is None) == (epsilon is None):
        raise TacitError("a budget needs the noise or the epsilon, and not both", "give --noise or --epsilon")
    schedule = Schedule(users, cohort, rounds, delta, sampler, _adjacency(adjacency))
    noise = noise_for(epsilon, schedule) if noise is None and epsilon is not None else noise
    assert noise is not None
    spent = epsilon_for(noise, schedule)
    return {
        "noise": noise,
        "noise_on_mean": noise / cohort,
        **spent.to_json(),
        "unit": "user",
        "adjacency": schedule.adjacency.value,
        "sampler": sampler,
        "users": users,
        "cohort": cohort,
        "rounds": rounds,
    }


def _adjacency(name: str | Adjacency) -> Adjacency:
    try:
        return Adjacency(name)
    except ValueError as error:
        known = [relation.value for relation in Adjacency]
        raise TacitError(f"no adjacency is called {name!r}", nearest(str(name), known)) from error
