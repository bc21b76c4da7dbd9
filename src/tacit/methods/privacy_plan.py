"""From a wanted epsilon to protections: how much noise, how it is split, how many rounds fit."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tacit.account.adaptive import NoiseSplit, default_bit_std, published_split, split_noise
from tacit.account.calibrate import Schedule, noise_for, rounds_within
from tacit.account.claim import Adjacency
from tacit.errors import TacitError
from tacit.federation.sampling import FixedSize, Poisson, Sampling
from tacit.protect.adaptive_clip import AdaptiveClip
from tacit.protect.clip import Clip
from tacit.protect.distributed import NoiseShares
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import Chain, chain
from tacit.round import Method, Surroundings
from tacit.settings import head_count
from tacit.transport.secure_sum.carrier import SecureSum
from tacit.transport.secure_sum.plan import plan_for

DEFAULT_EPSILON = 4.0
TOO_SMALL = 1e-6
"""How likely a run may be to meet a cohort smaller than what was planned for."""


@dataclass(frozen=True)
class Budget:
    """What a run may spend, and how it bounds people's contributions.

    With ``epsilon`` alone the noise is calibrated for the planned rounds, and with neither for an epsilon of
    :data:`DEFAULT_EPSILON`; with both, the run ends before it would exceed ``epsilon``. ``clip_rate=0`` keeps
    the clip norm where it starts, and no bit is sent.
    ``published`` holds DP-PrivRec's z and h, for Algorithm 2 to the letter.
    """

    clients: int | float
    clip: float
    quantile: float
    clip_rate: float
    bit_noise: float | None
    sampler: str
    noise: float | None = None
    epsilon: float | None = None
    published: tuple[float, float] | None = None
    meta_rate: float = 1.0

    def __post_init__(self) -> None:
        if self.published and (self.noise or self.epsilon):
            raise TacitError(
                "as-published sets its noise by z and h", "leave epsilon and noise out, or use mode=corrected"
            )

    def sampling(self) -> Sampling:
        """Poisson's rule, or a cohort of fixed size."""
        return Poisson(self.clients) if self.sampler == "poisson" else FixedSize(self.clients)

    def reported_mode(self) -> str:
        """How the report calls it."""
        return "as-published" if self.published else "accounted"

    def schedule(self, around: Surroundings, rounds: int) -> Schedule:
        """The run as the accountant sees it."""
        cohort = max(1, head_count(self.clients, around.people, "clients"))
        adjacency = Adjacency.ADD_REMOVE if self.sampler == "poisson" else Adjacency.REPLACE_ONE
        return Schedule(around.people, cohort, rounds, around.delta, self.sampler, adjacency)

    def protections(self, noise: float, cohort: int) -> Chain:
        """Clip and noise; ``noise`` counts everything that one round releases."""
        if self.clip_rate == 0:
            return chain(Clip(self.clip), GaussianNoise(noise))
        split, literal = self._split(noise, cohort), self.published is not None
        clipping = AdaptiveClip(
            self.clip,
            self.clients,
            self.quantile,
            self.clip_rate,
            weight=split.update_noise / split.bit_std,
            rule="arithmetic" if literal else "geometric",
            bits="clipped" if literal else "before",
        )
        return chain(clipping, GaussianNoise(split.total))

    def _split(self, noise: float, cohort: int) -> NoiseSplit:
        if self.published:  # Algorithm 2 adds its noise outside the meta rate, ours goes through it
            split = published_split(*self.published)
            return replace(split, update_noise=split.update_noise / self.meta_rate)
        return split_noise(noise, self.bit_noise or default_bit_std(noise, cohort))


def planned(method: Method, budget: Budget, around: Surroundings) -> Method:
    """The method with its noise, and with as many rounds as the budget allows."""
    shares = [
        stage for e in method.exchanges for stage in e.protections.stages if isinstance(stage, NoiseShares)
    ]
    schedule = budget.schedule(around, method.rounds)
    if shares:
        if budget.sampler == "poisson":
            _refuse_small_cohorts(method, shares[0].honest, schedule)
        return _in_shares(method, budget, shares[0].noise, schedule.cohort)
    noise = budget.noise
    notes = method.notes
    if budget.published:
        noise = published_split(*budget.published).total
        notes = (
            *notes,
            "Algorithm 2 to the letter (mode=as-published); its text's epsilon is in Tables 3 and 4",
        )
    elif noise is None:
        wanted = budget.epsilon or DEFAULT_EPSILON
        noise = noise_for(wanted, schedule)
        notes = (
            *notes,
            f"noise of {noise:.4g} clip norms on the sum: epsilon {wanted:g}, {method.rounds} rounds",
        )
    elif budget.epsilon is not None:
        fit = rounds_within(
            budget.epsilon, schedule.event(noise), schedule.delta, schedule.adjacency, limit=method.rounds
        )
        if fit == 0:
            raise TacitError(
                f"one round with noise {noise:g} exceeds epsilon {budget.epsilon:g}",
                "give more noise or a larger epsilon",
            )
        if fit < method.rounds:
            notes = (
                *notes,
                f"stopped at {fit} of {method.rounds} rounds: one more exceeds epsilon {budget.epsilon:g}",
            )
        method = replace(method, rounds=fit)
    return _guarded(replace(method, notes=notes), budget.protections(noise, schedule.cohort))


@dataclass(frozen=True)
class OwnNoise:
    """Noise on devices, as much as keeps a person's epsilon against whoever gets the model within a budget.

    The model shows sums, which carry the noise of everybody who answered (one upload's alone where a later
    stage changes uploads one by one); the server sees one upload's.
    """

    epsilon: float
    then: Callable[[Method, Surroundings], Method] | None = None

    def __call__(self, method: Method, around: Surroundings) -> Method:
        """The method with that noise in place of its own."""
        (train,) = method.exchanges
        assert isinstance(train.sampling, FixedSize)
        cohort = head_count(train.sampling.amount, around.people, "clients")
        run = Schedule(
            around.people, max(1, cohort), method.rounds, around.delta, "fixed", Adjacency.REPLACE_ONE
        )
        stages = train.protections.stages
        (place,) = (n for n, stage in enumerate(stages) if isinstance(stage, GaussianNoise))
        counted = run.cohort if all(stage.additive for stage in stages[place + 1 :]) else 1
        noise = noise_for(self.epsilon, run) / math.sqrt(counted)
        stages = (*stages[:place], GaussianNoise(noise, "device"), *stages[place + 1 :])
        told = (
            f"noise of {noise:.4g} clip norms on each upload: epsilon {self.epsilon:g} against whoever gets "
            f"the model, {method.rounds} rounds; against the server each upload has its own noise alone"
        )
        found = replace(
            method,
            exchanges=(replace(train, protections=chain(*stages)),),
            notes=(*method.notes, told),
        )
        return found if self.then is None else self.then(found, around)


def _refuse_small_cohorts(method: Method, honest: int, schedule: Schedule) -> None:
    """Coins make cohorts of many sizes: the smallest one likely in the whole run must do for the noise."""
    from scipy.stats import binom  # loads on first use

    least = int(binom.ppf(TOO_SMALL / method.rounds, schedule.users, schedule.cohort / schedule.users))
    for exchange in method.exchanges:
        if not isinstance(exchange.transport, SecureSum):
            continue
        closes = plan_for(least, exchange.transport.rates).honest
        if honest > closes:
            raise TacitError(
                f"coins may ask only {least} people in one of {method.rounds} rounds, whose sum closes at "
                f"{closes} honest answers; the noise counts on {honest}",
                f"tell the noise honest={closes}, or use sampler=fixed",
            )


def _in_shares(method: Method, budget: Budget, noise: float, cohort: int) -> Method:
    """Devices add the noise themselves, as much of it as they were asked for: the server adds none."""
    if budget.published or budget.noise:
        raise TacitError(
            "noise in shares, and noise at the server beside it",
            "leave noise out and use mode=corrected: the shares' own NOISE counts",
        )
    if budget.epsilon is not None:
        raise TacitError(
            f"epsilon={budget.epsilon:g} with noise in shares",
            "leave epsilon out: it follows from the shares' own NOISE and the rounds, and the report says it",
        )
    clipped = chain(
        *(s for s in budget.protections(noise, cohort).stages if not isinstance(s, GaussianNoise))
    )
    note = f"devices add noise of {noise:g} clip norms in shares, the server none; epsilon follows from it"
    return _guarded(replace(method, notes=(*method.notes, note)), clipped)


def _guarded(method: Method, guard: Chain) -> Method:
    """The method with these protections before what was asked for, which stays."""
    guarded = (
        replace(e, protections=replace(guard, stages=(*guard.stages, *e.protections.stages)))
        for e in method.exchanges
    )
    return replace(method, exchanges=tuple(guarded))
