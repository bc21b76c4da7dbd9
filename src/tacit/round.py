"""The round, written once: the only place where the stages of a method meet.

A method is a frozen composition of typed slots. A round is a tuple of exchanges; an exchange is:
broadcast, local work, protections, transport, aggregation. ``client_side`` serves a simulated cohort of
thousands and a real device, which is a cohort of one. ``OpenExchange`` is the server's half; it does no
input or output, so a simulation and a deployment drive the same object.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from tacit import codec
from tacit.account.claim import Claim, Observer
from tacit.account.events import NonPrivate, Nothing
from tacit.aggregate.aggregator import Aggregator
from tacit.data.interactions import Features
from tacit.errors import TacitError
from tacit.federation.federation import Casting, alike
from tacit.federation.sampling import Sampling
from tacit.kernels.packed import unpacked
from tacit.ledger.record import ExchangeRecord, Traffic
from tacit.local.work import Broadcast, Inbox, Letters, LocalWork
from tacit.models.model import Model
from tacit.protect.clip import Clip
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import Chain, Protection
from tacit.rng import Keys
from tacit.server.step import ServerStep
from tacit.transport.transport import Messages, Transport
from tacit.types import Array, Cohort, Index, Long, RoundFacts


@dataclass(frozen=True)
class Citation:
    """Where a method comes from, and what its authors say of its privacy, in a few words."""

    title: str
    authors: str
    year: int
    says: str = ""


Downlink = tuple[str, ...] | Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One step of communication. Protections and transport have no default: none is written out.

    ``downlink`` names the shared arrays that are sent to everybody asked, or makes what is sent of them (a
    part of a table).
    ``into`` names the tally that this exchange adds to; two exchanges of a round may share one.
    ``exposes`` says, per observer, why nothing is promised while no protection promises it, or that there
    is nothing to see; ``assumes`` what any promise rests on beside what its stages say.
    """

    name: str
    sampling: Sampling
    downlink: Downlink
    local: LocalWork
    protections: Chain
    transport: Transport
    aggregator: Aggregator
    exposes: Mapping[Observer, str | Nothing]
    assumes: tuple[str, ...] = ()
    part: str = "everyone"
    into: str = "round"
    reads_letters: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "transport", self.transport.carrying(self.protections.steps()))
        object.__setattr__(self, "aggregator", self.aggregator.carrying(self.protections.beside))
        self._refuse_noise_that_falls_short()
        if self.transport.delivers not in self.aggregator.accepts:
            accepted = " or ".join(sorted(kind.value for kind in self.aggregator.accepts))
            raise TacitError(
                f"exchange {self.name!r}: its aggregation cannot work on a {self.transport.delivers.value}",
                f"use a transport that delivers {accepted}",
            )

    def _refuse_noise_that_falls_short(self) -> None:
        """Noise is calibrated to one upload: where a person moves a sum by more, it is too little."""
        stages = self.protections.stages
        plain = self.aggregator.linear or all(map(_scales, stages))
        noised = any(stage.noises or stage.dense for stage in stages)
        if noised and (self.reads_letters or self.local.writes_letters):
            raise TacitError(
                f"exchange {self.name!r}: noise on updates beside letters, which are bounded apart from them",
                "use a method without letters, such as fedmf",
            )
        if any(stage.noises == "server" for stage in stages) and not plain:
            raise TacitError(
                f"exchange {self.name!r}: compact uploads that are rounded or cut, and noise at the server",
                "use --set upload=dense, or leave everything but clip and gaussian out",
            )


def _scales(stage: Protection) -> bool:
    """Whether all it does on a client is to scale the whole update down."""
    return isinstance(stage, Clip | GaussianNoise)


@dataclass(frozen=True)
class Surroundings:
    """What is public before the first round: how many people and items there are, what describes them.

    ``about_people`` holds names and labels only, never anybody's values. ``delta`` is the run's;
    ``device`` changes speed alone.
    """

    people: int
    catalogue: int
    items: Features
    about_people: Features
    delta: float = 1e-6
    device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class Method:
    """A recommender for a federation, as its paper composes it.

    ``settle`` completes a method that depends on its surroundings (a network on features, noise for a
    wanted epsilon). ``mode`` is ``as-published`` where the paper is followed to the letter.
    """

    name: str
    paper: Citation
    model: Model
    rounds: int
    exchanges: tuple[Exchange, ...]
    server: ServerStep
    setup: tuple[Exchange, ...] = ()
    casting: Callable[[Index, Keys], Casting] = alike
    predicts_ratings: bool = False
    published_units: Callable[[Mapping[str, tuple[Traffic, int]]], Mapping[str, float]] | None = None
    notes: tuple[str, ...] = ()
    settle: "Callable[[Method, Surroundings], Method] | None" = None
    mode: str = "accounted"

    def settled(self, around: Surroundings) -> "Method":
        """The method as it will run among these people and items."""
        return self if self.settle is None else self.settle(replace(self, settle=None), around)


@dataclass(frozen=True)
class ServerState:
    """All the server remembers between rounds."""

    round: int
    shared: Mapping[str, Array]
    optimiser: Mapping[str, Array]
    protections: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outgoing:
    """What one call of local work sends and keeps."""

    messages: Messages
    private: Mapping[str, Array]
    letters: Letters | None
    letter_bytes: Long
    diagnostics: Mapping[str, float]


def first_state(method: Method, catalogue: int, keys: Keys) -> ServerState:
    """The server before the first round."""
    shared = method.model.shared(catalogue, keys)
    states = {exchange.name: exchange.protections.init() for exchange in (*method.setup, *method.exchanges)}
    return ServerState(0, shared, method.server.init(shared), states)


def broadcast_of(exchange: Exchange, state: ServerState) -> Broadcast:
    """What the server sends to everybody it asks."""
    if callable(exchange.downlink):
        return Broadcast(state.round, exchange.downlink(state.shared))
    return Broadcast(state.round, {name: state.shared[name] for name in exchange.downlink})


def client_side(
    exchange: Exchange,
    states: tuple[Any, ...],
    received: Broadcast,
    private: Mapping[str, Array],
    cohort: Cohort,
    inbox: Inbox | None,
    keys: Keys,
) -> Outgoing:
    """Everything that happens on devices: n clients in a simulation, one on a device.

    Updates and letters both go through the protections: nothing leaves around them.
    """
    guard, name = exchange.protections, exchange.name
    cohort = guard.on_cohort(cohort, keys, received.round)
    work = exchange.local.run(received, private, cohort, inbox, keys)
    update = guard.on_client(work.update, states, cohort, keys, name, received.round)
    inside = codec.parts(update, len(cohort))
    messages = Messages(cohort.users, update, codec.nbytes(update, len(cohort), inside), inside)
    sent = exchange.transport.sent(messages, name, received.round, keys)
    if work.letters is None:
        return Outgoing(sent, work.private, None, np.zeros(0, dtype=np.int64), work.diagnostics)
    rows = guard.on_client(
        {"rows": work.letters.rows}, states, cohort, keys, f"{name}/letters", received.round
    )
    told: Any = unpacked(rows)["rows"]
    letters = replace(work.letters, rows=told)
    return Outgoing(sent, work.private, letters, codec.nbytes(rows, len(cohort)), work.diagnostics)


class Onlooker(Protocol):
    """An audit: it is shown what is handed over while a simulation runs, and changes nothing."""

    def delivered(self, exchange: Exchange, state: ServerState, delivery: Messages) -> None:
        """What the transport hands to the server."""

    def read(self, exchange: Exchange, state: ServerState, users: Index, inbox: Inbox) -> None:
        """The letters that some clients find in their inboxes."""


class OpenExchange:
    """The server's half of one exchange while answers come in. It sums and forgets; it never stores.

    Example:
        ``opened = OpenExchange(exchange, state, invited=3, population=3, keys=keys, tally=None)``, then
        ``opened.receive(messages)`` for whatever arrives, then ``opened.close()``.
    """

    def __init__(
        self,
        exchange: Exchange,
        state: ServerState,
        *,
        invited: int,
        population: int,
        keys: Keys,
        tally: Any | None,
        onlooker: Onlooker | None = None,
    ) -> None:
        self.exchange = exchange
        self._onlooker = onlooker
        self.received = broadcast_of(exchange, state)
        self.tally = exchange.aggregator.start(state.shared) if tally is None else tally
        self._state = state
        sizes = {name: array.shape for name, array in self.received.arrays.items()}
        expected = exchange.sampling.expected(population)
        self._facts = RoundFacts(state.round, exchange.name, population, invited, 0, sizes, expected)
        self._session = exchange.transport.server_session(self._facts, keys)
        self._down = codec.broadcast_nbytes(self.received.arrays)
        self._traffic = Traffic()
        self._answered = 0
        self._diagnostics: dict[str, float] = {}

    def receive(self, messages: Messages) -> None:
        """Take some clients' messages."""
        self._answered += len(messages.users)
        self._traffic += self._session.carried(messages)
        if messages.parts is not None:
            ids, values, numbers = (int(part.sum()) for part in messages.parts)
            self._traffic += Traffic(ids_up=ids, values_up=values, numbers_up=numbers)
        for delivery in self._session.receive(messages):
            self._add(delivery)

    def _add(self, delivery: Messages) -> None:
        if self._onlooker is not None:
            self._onlooker.delivered(self.exchange, self._state, delivery)
        self.exchange.aggregator.add(self.tally, unpacked(delivery.arrays))

    def note(self, traffic: Traffic, diagnostics: Mapping[str, float]) -> None:
        """Count what crossed elsewhere (letters), and add up what was diagnosed."""
        self._traffic += traffic
        for name, value in diagnostics.items():
            self._diagnostics[name] = self._diagnostics.get(name, 0.0) + value

    def close(self) -> ExchangeRecord:
        """Nobody else answers: the record of the exchange, with the claim over who really did."""
        for delivery in self._session.close():
            self._add(delivery)
        facts = replace(self._facts, answered=self._answered)
        traffic = self._traffic + self._session.closing() + self._sent_down(facts.invited)
        return ExchangeRecord(facts, claim_of(self.exchange, self._state, facts), traffic, self._diagnostics)

    def _sent_down(self, clients: int) -> Traffic:
        """What so many clients got: numbers, and whole-number arrays that say which rows are meant."""
        values = [array for array in self.received.arrays.values() if array.dtype.kind == "f"]
        ids = sum(array.nbytes for array in self.received.arrays.values()) - sum(v.nbytes for v in values)
        return Traffic(
            down=self._down * clients,
            numbers_down=sum(array.size for array in values) * clients,
            ids_down=ids * clients,
            values_down=sum(array.nbytes for array in values) * clients,
        )


def claim_of(exchange: Exchange, state: ServerState, facts: RoundFacts) -> Claim:
    """What can be said of one exchange: unbounded, then improved by each stage in turn."""
    claim = Claim.unbounded("nothing was proved for this observer")
    for observer, reason in exchange.exposes.items():
        if isinstance(reason, Nothing):
            claim = claim.with_event(observer, reason)
        else:
            claim = claim.with_event(observer, NonPrivate(reason), exchange.assumes)
    claim = exchange.protections.event(claim, state.protections[exchange.name], facts)
    claim = replace(exchange.transport.event(claim, facts), summed=None)
    return exchange.sampling.event(claim, facts)


def server_side(
    method: Method,
    state: ServerState,
    tallies: Mapping[str, Any],
    records: Sequence[ExchangeRecord],
    keys: Keys,
) -> ServerState:
    """After the last exchange of a round: protect the totals, normalise them, take one step."""
    totals: dict[str, Mapping[str, Array]] = {}
    protections = dict(state.protections)
    for exchange, record in zip(method.exchanges, records, strict=True):
        if exchange.into in totals:
            continue
        total = exchange.aggregator.total(tallies[exchange.into])
        total, protections[exchange.name] = exchange.protections.on_server(
            total, state.protections[exchange.name], record.facts, keys
        )
        totals[exchange.into] = exchange.aggregator.normalised(total, record.facts)  # type: ignore[arg-type]
    refuse_broken(totals, state.round)
    refuse_diverged(records, state.round)
    shared, optimiser = method.server.step(state.shared, totals, dict(state.optimiser), state.round)
    return ServerState(state.round + 1, shared, optimiser, protections)


def refuse_broken(totals: Mapping[str, Mapping[str, Array]], round: int) -> None:
    """A total that is not finite is never averaged into the model."""
    for gradients in totals.values():
        for name, gradient in gradients.items():
            if np.issubdtype(gradient.dtype, np.floating) and not np.isfinite(gradient).all():
                raise TacitError(
                    f"round {round}: the total for {name!r} is not finite (training diverged)",
                    "lower the step size or the noise; the last good model is kept",
                )


def refuse_diverged(records: Sequence[ExchangeRecord], round: int) -> None:
    """A round in which most devices' own training broke down says that the model itself has."""
    for record in records:
        broken = int(record.diagnostics.get("diverged", 0))
        if 2 * broken > record.facts.answered:
            raise TacitError(
                f"round {round}: training diverged on {broken} of {record.facts.answered} devices; "
                "their updates are not numbers and were refused",
                "lower the noise, the clip norm or the local step; the last good model is kept",
            )
