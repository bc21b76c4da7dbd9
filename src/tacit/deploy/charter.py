"""What a federation is, told to every device before the first round, with the keys it is known by.

Both sides build the method from it with the code they have installed; nobody runs code that was sent.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from tacit.deploy.about import RunAbout
from tacit.deploy.accuracy import NAME, Accuracy, measured
from tacit.deploy.wire import Frame, Kind, Reason, Refused
from tacit.errors import TacitError
from tacit.rng import Keys, SeededKeys, SystemKeys
from tacit.round import Exchange, Method
from tacit.types import Delivers

FIRST = -1
"""The number of the round in which set-up happens."""


@dataclass(frozen=True)
class Charter:
    """A federation as its server announces it: public facts, and the server's and the proxy's public keys.

    ``server`` verifies what the server sends, reports are sealed to ``opener``, and ``proxy`` verifies what
    the proxy says. ``seeded`` is a seed where everything drawn shall be repeatable: then noise can be derived
    by anybody who reads this, and nothing is claimed. ``accuracy`` says how people are asked for it, if they
    are.

    Example:
        >>> from tacit.config.experiment import Experiment
        >>> facts = RunAbout("r1", Experiment("fedrec", rounds=2).to_mapping(), items=("7", "42"), people=3)
        >>> charter = Charter(facts, server=b"s" * 32, opener=b"o" * 32)
        >>> Charter.of(charter.announced) == charter, charter.method.name
        (True, 'fedrec')
    """

    about: RunAbout
    server: bytes
    opener: bytes
    proxy: bytes = b""
    proxy_address: str = ""
    seeded: int | None = None
    accuracy: Accuracy | None = None

    @property
    def run(self) -> str:
        """The run's name."""
        return self.about.run

    @property
    def announced(self) -> RunAbout:
        """The facts with the keys among them: what crosses, and what a device keeps."""
        also: dict[str, Any] = {
            "server": self.server.hex(),
            "opener": self.opener.hex(),
            "proxy": self.proxy.hex(),
            "proxy_address": self.proxy_address,
            "seeded": self.seeded,
        }
        if self.accuracy is not None:
            also["accuracy"] = asdict(self.accuracy)
        return replace(self.about, also=also)

    @classmethod
    def of(cls, announced: RunAbout) -> "Charter":
        """The charter in a server's announcement."""
        also = announced.also
        try:
            server, opener, proxy = (bytes.fromhex(also[name]) for name in ("server", "opener", "proxy"))
            seeded = None if also["seeded"] is None else int(also["seeded"])
            accuracy = Accuracy(**also["accuracy"]) if "accuracy" in also else None
            return cls(announced, server, opener, proxy, str(also["proxy_address"]), seeded, accuracy)
        except (KeyError, ValueError, TypeError) as error:
            raise Refused(Reason.MALFORMED, "an announcement without its keys") from error

    def __eq__(self, other: object) -> bool:
        """Equal when they would be announced alike."""
        return isinstance(other, Charter) and self.announced == other.announced

    def __hash__(self) -> int:
        """By the run."""
        return hash(self.run)

    @cached_property
    def method(self) -> Method:
        """The method as it runs here, built with installed code; refused where it cannot run on devices."""
        if self.about.config.get("settings", {}).get("twin") == "central":
            raise TacitError(
                f"{self.about.method_name} as a central twin needs everybody's data in one place",
                "simulate it with `tacit run`",
            )
        method = self.about.method()
        refuse_undeployable(method, proxy=bool(self.proxy))
        return method if self.accuracy is None else measured(method, self.accuracy)

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """Every exchange by name, set-up included."""
        return {exchange.name: exchange for exchange in (*self.method.setup, *self.method.exchanges)}

    def asked(self, round: int) -> tuple[Exchange, ...]:
        """What may be asked in a round: nothing before set-up, nothing after the last one.

        Example:
            >>> from tacit.config.experiment import Experiment
            >>> facts = RunAbout("r1", Experiment("fedrec", rounds=2).to_mapping(), items=("7",), people=3)
            >>> charter = Charter(facts, server=b"s" * 32, opener=b"o" * 32)
            >>> [len(charter.asked(round)) for round in (-2, 0, 1, 2)]
            [0, 1, 1, 0]
        """
        if round == FIRST:
            return self.method.setup
        if not 0 <= round < self.method.rounds:
            return ()
        due = self.accuracy is not None and self.accuracy.due(round)
        return tuple(one for one in self.method.exchanges if due or one.name != NAME)

    def keys(self, kept: bytes) -> Keys:
        """Where this federation's randomness comes from: the system, unless it is a seeded one."""
        return SystemKeys(kept) if self.seeded is None else SeededKeys(self.seeded)


def charter_in(frame: Frame) -> Charter:
    """The charter that a server's first message carries."""
    if frame.kind is not Kind.HELLO or len(frame.parts) != 1:
        raise Refused(Reason.MALFORMED, "it announces nothing")
    try:
        return Charter.of(RunAbout.decoded(frame.parts[0]))
    except TacitError as error:
        raise Refused(Reason.MALFORMED, error.problem) from error


def refuse_undeployable(method: Method, *, proxy: bool) -> None:
    """Say at the start why a method cannot run on devices as it is set."""
    for exchange in (*method.setup, *method.exchanges):
        shuffles = exchange.transport.delivers is Delivers.SHUFFLED
        if (shuffles or exchange.reads_letters) and not proxy:
            what = "sends shuffled reports" if shuffles else "hands letters from people to people"
            raise TacitError(
                f"{method.name}: its exchange {exchange.name!r} {what}, and there is no proxy to carry them",
                "start `tacit proxy` and give its address and key with --proxy and --proxy-key",
            )


def digest(broadcast: bytes) -> str:
    """What a device and the server both know a model by.

    Example:
        >>> digest(b"")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(broadcast).hexdigest()
