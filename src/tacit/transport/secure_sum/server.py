"""The server's half of a secure sum: it carries, adds up and opens one sum; it sees no single vector.

``receive`` takes whatever arrives in a phase; ``advance`` closes the phase and says what to send to whom.
Whoever has not answered by then has dropped out. A message that is refused is one person's drop-out, noted in
``ignored``; a phase that too few survive aborts the sum.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import Enum

import numpy as np

from tacit.errors import TacitError
from tacit.transport.secure_sum import wire as messages
from tacit.transport.secure_sum.client import pair_seed, verified
from tacit.transport.secure_sum.masks import RINGS, Ring, Sign, add_masks, keypair, usable
from tacit.transport.secure_sum.shares import joined
from tacit.transport.secure_sum.terms import Reason, SumAborted, Terms
from tacit.transport.secure_sum.wire import Advert, Kind, Roster
from tacit.types import Long


class Phase(Enum):
    """What the server is waiting for.

    Example:
        >>> [phase.value for phase in Phase][:2]
        ['keys', 'shares']
    """

    KEYS = "keys"
    SHARES = "shares"
    INPUTS = "inputs"
    VOTES = "votes"
    OPENINGS = "openings"
    DONE = "done"


class Server:
    """One sum from the server's side.

    Example:
        >>> server = Server(Terms(b"run", 0, "train", bytes(32), 2, invited=2), {}, invited=[1, 2])
        >>> server.advance()
        Traceback (most recent call last):
        tacit.transport.secure_sum.terms.SumAborted: secure sum: no people sent keys; the sum is aborted
    """

    def __init__(self, terms: Terms, directory: Mapping[int, bytes], invited: Collection[int]) -> None:
        self.phase = Phase.KEYS
        self.ignored: dict[int, str] = {}
        self.total: Ring = np.zeros(terms.length, dtype=RINGS[terms.ring])
        self._terms = terms
        self._directory = directory
        self._invited = frozenset(invited)
        self._adverts: dict[int, Advert] = {}
        self._letters: dict[int, dict[int, bytes]] = {}
        self._votes: dict[int, bytes] = {}
        self._openings: dict[int, dict[int, bytes]] = {}
        self._inputs: set[int] = set()
        self._sharers: Long = np.zeros(0, dtype=np.int64)
        self._survivors: Long = np.zeros(0, dtype=np.int64)

    @property
    def survivors(self) -> list[int]:
        """The users whose vectors the sum holds."""
        return [self._roster.adverts[position].user for position in self._survivors]

    def receive(self, user: int, wire: bytes) -> None:
        """Take one person's message of the present phase."""
        try:
            if self.phase is Phase.KEYS:
                self._take_advert(user, wire)
            else:
                self._take(self._position(user), wire)
        except TacitError as error:
            self.ignored[user] = error.problem

    def advance(self) -> dict[int, bytes]:
        """Close the phase: what to send to whom next; nothing after the last phase, when ``total`` holds."""
        close = {
            Phase.KEYS: self._close_keys,
            Phase.SHARES: self._close_shares,
            Phase.INPUTS: self._close_inputs,
            Phase.VOTES: self._close_votes,
            Phase.OPENINGS: self._close_openings,
        }
        if self.phase is Phase.DONE:
            raise SumAborted(Reason.OUT_OF_TURN, "the sum is over")
        return close[self.phase]()

    def _position(self, user: int) -> int:
        position = self._places.get(user)
        if position is None:
            raise SumAborted(Reason.STRANGER, f"user {user} is not on the roster")
        return position

    def _take_advert(self, user: int, wire: bytes) -> None:
        advert = Advert.read(messages.unframed(Kind.ADVERT, wire))
        if user not in self._invited or user not in self._directory or advert.user != user:
            raise SumAborted(Reason.STRANGER, f"user {user} was not invited")
        if not verified(self._directory[user], advert.signature, advert.signed_part(self._terms)):
            raise SumAborted(
                Reason.UNSIGNED, f"the keys of user {user} are not signed for this round and model"
            )
        if not (usable(advert.letters) and usable(advert.masks)):
            raise SumAborted(Reason.MALFORMED, f"a key of user {user} is of small order")
        keys = {key for known in self._adverts.values() for key in (known.letters, known.masks)}
        if user in self._adverts or {advert.letters, advert.masks} & keys:
            raise SumAborted(Reason.DUPLICATE, f"user {user} sent keys that are known already")
        self._adverts[user] = advert

    def _close_keys(self) -> dict[int, bytes]:
        self._need(len(self._adverts), 1, Reason.TOO_FEW_KEYS, "people sent keys")
        self._roster = Roster.of([self._adverts[user] for user in sorted(self._adverts)], self._terms)
        self._places = {advert.user: place for place, advert in enumerate(self._roster.adverts)}
        self.phase = Phase.SHARES
        wire = self._roster.wire
        return {advert.user: wire for advert in self._roster.adverts}

    def _take(self, position: int, wire: bytes) -> None:
        roster = self._roster
        if self.phase is Phase.SHARES and position not in self._letters:
            neighbours = roster.graph.neighbours(position)
            letters = messages.read_letters(wire, len(neighbours))
            self._letters[position] = dict(zip(neighbours, letters, strict=True))
        elif self.phase is Phase.INPUTS and position in self._sharers and position not in self._inputs:
            body = messages.unframed(Kind.MASKED, wire)
            if len(body) != self._terms.nbytes:
                raise messages.malformed(f"a masked vector of {len(body)} bytes")
            self._inputs.add(position)
            self.total += np.frombuffer(body, dtype=self.total.dtype)
        elif self.phase is Phase.VOTES and position in self._survivors:
            vote = messages.unframed(Kind.VOTE, wire)
            identity = self._directory[roster.adverts[position].user]
            if not verified(identity, vote, roster.vote(self._sharers, self._survivors)):
                raise SumAborted(Reason.UNSIGNED, "a vote that its sender did not sign for these lists")
            self._votes[position] = vote
        elif self.phase is Phase.OPENINGS and position in self._survivors and position not in self._openings:
            sharing = set(self._sharers.tolist())
            asked = [other for other in roster.graph.neighbours(position) if other in sharing]
            shares = messages.read_openings(wire, len(asked))
            self._openings[position] = {
                other: share for other, share in zip(asked, shares, strict=True) if share is not None
            }
        else:
            raise SumAborted(
                Reason.OUT_OF_TURN, f"a message that is not due while waiting for {self.phase.value}"
            )

    def _close_shares(self) -> dict[int, bytes]:
        roster = self._roster
        self._sharers = np.array(sorted(self._letters), dtype=np.int64)
        self._need(len(self._sharers), roster.plan.minimum, Reason.TOO_FEW_SHARERS, "people shared")
        self.phase = Phase.INPUTS
        sent = {}
        for position in self._sharers.tolist():
            senders = [other for other in roster.graph.neighbours(position) if other in self._letters]
            letters = [self._letters[other][position] for other in senders]
            sent[roster.adverts[position].user] = messages.delivery(
                self._sharers, letters, roster.plan.clients
            )
        self._letters.clear()
        return sent

    def _close_inputs(self) -> dict[int, bytes]:
        roster = self._roster
        self._survivors = np.array(sorted(self._inputs), dtype=np.int64)
        self._need(
            len(self._survivors), roster.plan.minimum, Reason.TOO_FEW_INPUTS, "people sent their vector"
        )
        self.phase = Phase.VOTES
        wire = messages.survivors_message(self._survivors, roster.plan.clients)
        return dict.fromkeys(self.survivors, wire)

    def _close_votes(self) -> dict[int, bytes]:
        quorum = self._roster.plan.quorum
        self._need(len(self._votes), quorum, Reason.TOO_FEW_VOTES, "people voted")
        enough = dict(sorted(self._votes.items())[:quorum])
        self.phase = Phase.OPENINGS
        wire = messages.votes_message(enough)
        return {self._roster.adverts[position].user: wire for position in sorted(self._votes)}

    def _close_openings(self) -> dict[int, bytes]:
        opened = np.zeros_like(self.total)
        add_masks(opened, self._masks_left())
        self.total += opened
        self._openings.clear()
        self.phase = Phase.DONE
        return {}

    def _masks_left(self) -> Iterator[tuple[bytes, Sign]]:
        """What still lies on the sum: every survivor's own mask, and halves of pairs with the dropped."""
        roster, alive = self._roster, set(self._survivors.tolist())
        view = roster.view(self._sharers)
        for position in self._sharers.tolist():
            secret = self._put_together(position)
            if position in alive:
                yield secret, -1
                continue
            if keypair(secret)[1] != roster.adverts[position].masks:
                raise SumAborted(Reason.WRONG_SHARE, "the shares of a mask key do not fit its public half")
            for other in roster.graph.neighbours(position):
                if other in alive:
                    # What the dropped one would have added takes away what the survivor did add.
                    yield pair_seed(secret, roster.adverts[other].masks, view, position, other)

    def _put_together(self, position: int) -> bytes:
        """The one secret of this person that its neighbours opened shares of."""
        roster, threshold = self._roster, self._roster.plan.threshold
        told = [
            (other + 1, self._openings[other][position])
            for other in roster.graph.neighbours(position)
            if position in self._openings.get(other, {})
        ]
        self._need(len(told), threshold, Reason.TOO_FEW_OPENINGS, "shares of one secret were opened")
        tries = [told[:threshold], told[len(told) - threshold :]][: 1 + (len(told) > threshold)]
        try:
            found = {joined([x for x, _ in few], [share for _, share in few]) for few in tries}
        except TacitError as error:
            raise SumAborted(Reason.WRONG_SHARE, error.problem) from error
        if len(found) > 1:
            raise SumAborted(Reason.WRONG_SHARE, "the shares of one secret contradict one another")
        return found.pop()

    def _need(self, found: int, needed: int, reason: Reason, what: str) -> None:
        if found < needed:
            raise SumAborted(reason, f"{found} {what}, {needed} are needed" if found else f"no {what}")
