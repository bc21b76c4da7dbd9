"""The client's half of a secure sum: messages in, messages out, no input or output of its own.

Whatever a message makes the client refuse ends its session for good: a server gets one try. The client works
everything out again that a server could lie about: plan, graph, signatures, who counts.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.transport.secure_sum import wire as messages
from tacit.transport.secure_sum.masks import RINGS, Ring, Sign, add_masks, agreed, keypair
from tacit.transport.secure_sum.shares import Entropy, SharePair, opened, sealed, split
from tacit.transport.secure_sum.terms import Reason, SumAborted, Terms
from tacit.transport.secure_sum.wire import Advert, Roster
from tacit.types import Long


@dataclass(frozen=True)
class Advertised:
    """Keys are out, the roster is due."""

    advert: Advert
    letters_key: bytes
    masks_key: bytes


@dataclass(frozen=True)
class Shared:
    """Shares are out, the others' are due."""

    keys: Advertised
    roster: Roster
    position: int
    seed: bytes


@dataclass(frozen=True)
class Masked:
    """The masked vector is out, the list of survivors is due. The keys are forgotten: shares are left."""

    roster: Roster
    position: int
    sharers: Long
    held: Mapping[int, SharePair]


@dataclass(frozen=True)
class Voted:
    """The vote is out, the others' are due."""

    roster: Roster
    position: int
    sharers: Long
    survivors: Long
    held: Mapping[int, SharePair]


@dataclass(frozen=True)
class Ended:
    """Nothing more will be said."""

    why: str


State = Advertised | Shared | Masked | Voted | Ended
_NEW = Ended("it has not started")


class Client:
    """One person's part in one sum: ``start`` once, then ``receive`` four times; the package says how.

    Its state is plain data: a device may store it between messages, before the answer leaves.
    ``directory`` holds the public identity of everybody enrolled; ``identity`` is the private half of this
    person's. ``last_round`` is the latest round in which this device sent a masked vector for this run and
    exchange: a second sum over the same round would let a server subtract one from the other. ``entropy`` is
    the operating system's; anything else is for tests.

    Example:
        >>> terms = Terms(b"run", 0, "train", bytes(32), 2, invited=9)
        >>> client = Client(terms, 7, b"i" * 32, {}, np.zeros(2, "<u8"), entropy=bytes)
        >>> len(client.start())
        137
    """

    def __init__(
        self,
        terms: Terms,
        user: int,
        identity: bytes,
        directory: Mapping[int, bytes],
        vector: Ring,
        *,
        last_round: int = -1,
        entropy: Entropy = secrets.token_bytes,
    ) -> None:
        if vector.dtype != RINGS[terms.ring] or vector.shape != (terms.length,):
            raise SumAborted(
                Reason.OVERFLOW, f"a vector of {vector.shape} {vector.dtype} for {terms.length} numbers"
            )
        if terms.round <= last_round:
            raise SumAborted(
                Reason.ROUND_REUSED,
                f"round {terms.round} was summed before",
                "two sums of one round could be subtracted; wait for the next round",
            )
        self._terms = terms
        self._user = user
        self._identity = identity
        self._directory = directory
        self._vector = vector
        self._entropy = entropy
        self.state: State = _NEW

    def start(self) -> bytes:
        """Fresh keys for this sum alone, signed; once."""
        if self.state != _NEW:
            raise SumAborted(Reason.OUT_OF_TURN, "this client has started already")
        letters_key, letters = keypair(self._entropy(32))
        masks_key, masks = keypair(self._entropy(32))
        unsigned = Advert(self._user, letters, masks, bytes(messages.SIGNATURE_BYTES))
        advert = Advert(self._user, letters, masks, signed(self._identity, unsigned.signed_part(self._terms)))
        self.state = Advertised(advert, letters_key, masks_key)
        return messages.framed(messages.Kind.ADVERT, advert.raw)

    def receive(self, wire: bytes) -> bytes:
        """The answer to the next message of the server; a refusal ends the session."""
        before, self.state = self.state, Ended("a message was refused")
        step = _STEPS.get(type(before))
        if step is None:
            assert isinstance(before, Ended)
            raise SumAborted(Reason.OUT_OF_TURN, f"nothing more is said: {before.why}")
        try:
            self.state, answer = step(self, before, wire)
        except SumAborted:
            raise
        except TacitError as error:
            raise SumAborted(Reason.MALFORMED, error.problem) from error
        return answer

    def _share(self, state: Advertised, wire: bytes) -> tuple[State, bytes]:
        roster = Roster.read(wire, self._terms)
        position = self._checked_position(roster, state.advert)
        plan, neighbours = roster.plan, roster.graph.neighbours(position)
        seed = self._entropy(32)
        points = [other + 1 for other in neighbours]
        pairs = zip(
            split(seed, points, plan.threshold, self._entropy),
            split(state.masks_key, points, plan.threshold, self._entropy),
            strict=True,
        )
        letters = []
        for other, pair in zip(neighbours, pairs, strict=True):
            binding = _letter(roster, position, other)
            key = agreed(state.letters_key, roster.adverts[other].letters, binding)
            letters.append(sealed(key, SharePair(*pair), binding))
        return Shared(state, roster, position, seed), messages.letters_message(letters)

    def _checked_position(self, roster: Roster, mine: Advert) -> int:
        """Where this client stands on a roster on which every name is enrolled and every key signed."""
        for advert in roster.adverts:
            if advert.user not in self._directory:
                raise SumAborted(Reason.STRANGER, f"user {advert.user} was never enrolled")
            if not verified(self._directory[advert.user], advert.signature, advert.signed_part(self._terms)):
                raise SumAborted(
                    Reason.UNSIGNED, f"the keys of user {advert.user} are not signed for this round and model"
                )
        if mine not in roster.adverts:
            raise SumAborted(Reason.LEFT_OUT, "the roster does not hold the keys this client sent")
        return roster.adverts.index(mine)

    def _mask(self, state: Shared, wire: bytes) -> tuple[State, bytes]:
        roster, position = state.roster, state.position
        sharers, letters = messages.read_delivery(wire, roster, position)
        if position not in sharers:
            raise SumAborted(Reason.LEFT_OUT, "this client's shares were not counted")
        if len(sharers) < roster.plan.minimum:
            raise SumAborted(
                Reason.TOO_FEW_SHARERS, f"{len(sharers)} people shared, {roster.plan.minimum} are needed"
            )
        if len(letters) < roster.plan.threshold:
            raise SumAborted(Reason.LONELY, f"{len(letters)} neighbours, {roster.plan.threshold} are needed")
        held = {}
        for other, letter in letters.items():
            binding = _letter(roster, other, position)
            key = agreed(state.keys.letters_key, roster.adverts[other].letters, binding)
            if (pair := opened(key, letter, binding)) is not None:
                held[other] = pair
        view, total = roster.view(sharers), self._vector.copy()
        add_masks(total, [(state.seed, 1), *self._pair_seeds(state, letters, view)])
        self._vector = self._vector[:0]  # what was masked is not needed any more
        return Masked(roster, position, sharers, held), messages.framed(messages.Kind.MASKED, total.tobytes())

    def _pair_seeds(
        self, state: Shared, others: Mapping[int, bytes], view: bytes
    ) -> list[tuple[bytes, Sign]]:
        adverts, position = state.roster.adverts, state.position
        return [
            pair_seed(state.keys.masks_key, adverts[other].masks, view, position, other) for other in others
        ]

    def _vote(self, state: Masked, wire: bytes) -> tuple[State, bytes]:
        roster = state.roster
        survivors = messages.read_survivors(wire, roster.plan.clients)
        if np.setdiff1d(survivors, state.sharers).size:
            raise SumAborted(Reason.REVIVED, "a survivor who never shared")
        if state.position not in survivors:
            raise SumAborted(Reason.LEFT_OUT, "this client's vector was not counted")
        if len(survivors) < roster.plan.minimum:
            raise SumAborted(
                Reason.TOO_FEW_INPUTS, f"{len(survivors)} people are left, {roster.plan.minimum} are needed"
            )
        vote = signed(self._identity, roster.vote(state.sharers, survivors))
        after = Voted(roster, state.position, state.sharers, survivors, state.held)
        return after, messages.framed(messages.Kind.VOTE, vote)

    def _open(self, state: Voted, wire: bytes) -> tuple[State, bytes]:
        roster = state.roster
        agreed_on, people = roster.vote(state.sharers, state.survivors), set(state.survivors.tolist())
        voters = set()
        for position, signature in messages.read_votes(wire):
            if position not in people:
                raise SumAborted(Reason.STRANGER, "a vote of somebody who is no survivor")
            identity = self._directory[roster.adverts[position].user]
            if not verified(identity, signature, agreed_on):
                raise SumAborted(
                    Reason.SPLIT_VIEW, f"user {roster.adverts[position].user} voted for other lists"
                )
            voters.add(position)
        if len(voters) < roster.plan.quorum:
            raise SumAborted(
                Reason.TOO_FEW_VOTES,
                f"{len(voters)} people voted for these lists, {roster.plan.quorum} are needed",
            )
        sharing = set(state.sharers.tolist())
        shares = [
            _released(state.held.get(other), alive=other in people)
            for other in roster.graph.neighbours(state.position)
            if other in sharing
        ]
        return Ended("the sum is done"), messages.openings_message(shares)


_STEPS: dict[type, Callable[[Client, Any, bytes], tuple[State, bytes]]] = {
    Advertised: Client._share,
    Shared: Client._mask,
    Masked: Client._vote,
    Voted: Client._open,
}


def _released(pair: SharePair | None, *, alive: bool) -> bytes | None:
    """The one share that may be told: of the seed if its owner is alive, of the mask key if not."""
    if pair is None:
        return None
    return pair.seed if alive else pair.key


def _letter(roster: Roster, sender: int, recipient: int) -> bytes:
    return b"letter" + roster.digest + sender.to_bytes(4, "big") + recipient.to_bytes(4, "big")


def pair_seed(private: bytes, public: bytes, view: bytes, mine: int, other: int) -> tuple[bytes, Sign]:
    """The seed of the mask between two positions, and the sign with which ``mine`` adds it."""
    low, high = sorted((mine, other))
    seed = agreed(private, public, b"mask" + view + low.to_bytes(4, "big") + high.to_bytes(4, "big"))
    return seed, 1 if mine < other else -1


def signed(identity: bytes, statement: bytes) -> bytes:
    """An Ed25519 signature.

    Example:
        >>> verified(public_identity(b"i" * 32), signed(b"i" * 32, b"statement"), b"statement")
        True
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(identity).sign(statement)


def verified(identity: bytes, signature: bytes, statement: bytes) -> bool:
    """Whether the owner of this public identity signed this statement."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_identity(identity: bytes) -> bytes:
    """The half of an identity that is enrolled."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(identity).public_key().public_bytes_raw()
