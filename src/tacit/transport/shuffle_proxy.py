"""A proxy that breaks links: reports sealed one by one to the server, shuffled with those of many people.

The proxy strips who sent reports, keeps them until enough people's are there, and passes them on in a random
order. It reads nothing; the server learns no sender and cannot tell which reports belong together.

A simulation delivers what the server would open, in a random order, and counts the bytes of what would cross;
``sealing=full`` really seals and opens every report. Who does what with them is in ``sealed_reports``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.account.atoms import pure_epsilon
from tacit.account.claim import Adjacency, Claim, Observer
from tacit.account.events import Event, Nothing, PureLocal, Repeated, Shuffled
from tacit.codec import Parts
from tacit.errors import TacitError
from tacit.kernels.reports import shuffled
from tacit.rng import Keys
from tacit.settings import Count, checked
from tacit.transport.sealed_reports import SEAL_BYTES, Envelope, Opener, Proxy, message_nbytes, sealed
from tacit.transport.transport import Messages, ServerSession, Transport
from tacit.types import Array, Delivers, Long, RoundFacts, Rows

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

HONEST = "proxy honest: it shuffles, keeps senders to itself and does not collude with the server"
ELSE_LOCAL = "if proxy and server collude, only the local epsilon holds: {local:g} per round"


def _reports(arrays: Mapping[str, Array | Rows]) -> NDArray[np.uint32]:
    """A person's reports along the second axis, the words of a report along the third."""
    reports = arrays.get("reports")
    if (
        len(arrays) == 1
        and isinstance(reports, np.ndarray)
        and reports.dtype == np.uint32
        and reports.ndim > 1
    ):
        return reports if reports.ndim == 3 else reports[:, :, np.newaxis]
    raise TacitError(
        "a shuffling proxy carries single reports of one size",
        "let a randomiser that makes reports (such as mechanism=one-bit) come last, or use direct",
    )


def _framed(people: int, each: int, words: int) -> tuple[Long, Parts]:
    """The length of so many people's messages and what is in them: the reports; seals count as headers."""
    nothing = np.zeros(people, dtype=np.int64)
    inside = Parts(nothing, nothing + 4 * words * each, nothing + each)
    return nothing + message_nbytes(each, words), inside


def _server_key(keys: Keys) -> "X25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # loads on first use

    return X25519PrivateKey.from_private_bytes(keys.generator("shuffle-proxy/server key").bytes(32))


class _Shuffling(ServerSession):
    """The simulation's short way: the contents in a random order, once everybody has answered."""

    def __init__(self, n_min: int, seed: int) -> None:
        self._n_min, self._seed = n_min, seed
        self._held: list[NDArray[np.uint32]] = []
        self._people = 0

    def receive(self, messages: Messages) -> Iterable[Messages]:
        reports = _reports(messages.arrays)
        self._held.append(reports.reshape(-1, reports.shape[2]))
        self._people += len(messages.users)
        return ()

    def close(self) -> Iterable[Messages]:
        if self._people < self._n_min or not self._held:
            return
        reports = np.concatenate(self._held)
        self._held.clear()
        if reports.shape[1] == 1:
            yield _anonymous(shuffled(reports[:, 0], self._seed)[:, np.newaxis])
        else:
            yield _anonymous(reports[np.random.default_rng(self._seed).permutation(len(reports))])


class _Sealed(ServerSession):
    """The whole way: sealed reports through a proxy to the server's end."""

    def __init__(self, n_min: int, opener: Opener) -> None:
        self._n_min, self._opener = n_min, opener
        self._proxy: Proxy | None = None

    def receive(self, messages: Messages) -> Iterable[Messages]:
        wires: Any = messages.arrays["sealed"]
        if self._proxy is None:
            self._proxy = Proxy(wires.shape[2], self._n_min, wires.shape[1])
        for user, reports in zip(messages.users.tolist(), wires, strict=True):
            self._proxy.receive(str(user), [report.tobytes() for report in reports])
        return ()

    def close(self) -> Iterable[Messages]:
        batch = self._proxy.batch() if self._proxy is not None else []
        if batch:
            words = (len(batch[0]) - SEAL_BYTES) // 4
            raw = np.frombuffer(b"".join(self._opener.opened(batch)), dtype="<u4")
            yield _anonymous(raw.reshape(-1, words))


def handed_over(opened: Sequence[bytes], people: int, each: int, words: int) -> Messages:
    """What a server's session takes from a proxy's batch, once opened: nobody's reports, from so many people.

    Reports that are not ``words`` 32-bit words long are left out; the difference in length tells how many.

    Example:
        >>> messages = handed_over([b"abcd", b"efgh", b"!"], people=2, each=1, words=1)
        >>> len(messages.users), messages.arrays["reports"].shape, messages.nbytes.tolist()
        (2, (1, 2, 1), [86, 86])
    """
    fitting = [report for report in opened if len(report) == 4 * words]
    reports = np.frombuffer(b"".join(fitting), dtype="<u4").astype(np.uint32).reshape(1, -1, words)
    nobody = np.full(people, -1, dtype=np.int32)
    return Messages(nobody, {"reports": reports}, *_framed(people, each, words))


def _anonymous(reports: NDArray[np.uint32]) -> Messages:
    """Reports without senders; their bytes were counted when they were sent."""
    return Messages(np.zeros(0, dtype=np.int32), {"reports": reports}, np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class ShuffleProxy(Transport):
    """Single sealed reports, from at least ``n_min`` people, without senders and in a random order.

    One batch per exchange: the proxy waits for everybody who answers, so each of a person's reports hides
    among those of all of them. ``sealing="simulated"`` skips the cryptography, never its bytes.

    Formal guarantees:
        Reports that are local randomisers' are amplified: to the server the exchange is worth what shuffling
        one report each of everybody is worth, once per report of a person (Feldman, McMillan, Talwar). It
        holds as long as the proxy is honest; if it colludes with the server only the local guarantee is
        left. Other messages gain nothing. The proxy sees who takes part and sizes that are the same for all.

    ================================  ====================================================
    edge case                         what happens
    ================================  ====================================================
    fewer than ``n_min`` asked        refused before anything is sent
    fewer than ``n_min`` answer       nothing is passed on; the round adds nothing
    a report altered, or seen before  refused and counted
    ================================  ====================================================
    """

    delivers: ClassVar[Delivers] = Delivers.SHUFFLED
    n_min: int = 100
    sealing: Literal["simulated", "full"] = "simulated"

    def sent(self, messages: Messages, exchange: str, round: int, keys: Keys) -> Messages:
        """Seal each report (or only count what it would take)."""
        reports = _reports(messages.arrays)
        people, each, words = reports.shape
        nbytes, inside = _framed(people, each, words)
        if self.sealing == "simulated":
            return Messages(messages.users, messages.arrays, nbytes, inside)
        server, envelope = _server_key(keys).public_key(), Envelope(exchange, round)
        wires = [sealed(row.tobytes(), server, envelope) for row in reports.reshape(-1, words)]
        packed = np.frombuffer(b"".join(wires), dtype=np.uint8).reshape(people, each, -1)
        return Messages(messages.users, {"sealed": packed}, nbytes, inside)

    def server_session(self, facts: RoundFacts, keys: Keys) -> ServerSession:
        """Proxy and server in one object: what comes out is what the server may see."""
        if facts.invited < self.n_min:
            raise TacitError(
                f"the proxy passes nothing on below {self.n_min} people, and {facts.invited} were asked",
                "lower n_min (it is what hides a person) or ask more people",
            )
        if self.sealing == "full":
            return _Sealed(self.n_min, Opener(_server_key(keys), Envelope(facts.exchange, facts.round)))
        draw = keys.generator(f"shuffle-proxy/{facts.exchange}", facts.round)
        return _Shuffling(self.n_min, int(draw.integers(0, 2**63)))

    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """The proxy sees seals; the server sees shuffled reports."""
        claim = claim.with_event(Observer.PROXY, Nothing())
        if facts.answered < self.n_min:
            return claim.with_event(Observer.SERVER, Nothing())
        before = claim.event(Observer.SERVER)
        after = amplified(before, facts.answered, one_bit=_one_bit(claim.event(Observer.RELEASE)))
        if after == before:
            return claim
        local = ELSE_LOCAL.format(local=pure_epsilon(before, Adjacency.REPLACE_ONE))
        return claim.with_event(Observer.SERVER, after, (HONEST, local))


def amplified(event: Event, people: int, *, one_bit: bool) -> Event:
    """What local reports are worth to somebody who sees them shuffled among ``people``.

    Example:
        >>> amplified(Repeated(PureLocal(2.5), 100), 75_040, one_bit=False)
        Repeated(event=Shuffled(local_epsilon=2.5, reports=75040, one_bit=False), times=100)
    """
    if isinstance(event, Repeated):
        return Repeated(amplified(event.event, people, one_bit=one_bit), event.times)
    return Shuffled(event.epsilon, people, one_bit) if isinstance(event, PureLocal) else event


def _one_bit(release: Event) -> bool:
    """Whether the randomiser said, for those who see only the sum, that the stronger bound covers it."""
    if isinstance(release, Repeated):
        return _one_bit(release.event)
    return isinstance(release, Shuffled) and release.one_bit


@checked
def shuffle_proxy(*, n_min: Count = 100, sealing: Literal["simulated", "full"] = "simulated") -> ShuffleProxy:
    """Reports sealed one by one, passed on without senders and in a random order once enough people sent.

    Example:
        >>> shuffle_proxy(n_min=50).delivers.value
        'shuffled'
    """
    return ShuffleProxy(n_min, sealing)


TRANSPORTS = {"shuffle-proxy": shuffle_proxy}
