"""The messages of a secure sum as bytes. Reading trusts nobody; lengths follow from the roster alone.

=========  =================  ==========================================================================
kind       way                body
=========  =================  ==========================================================================
advert     client to server   user, key for letters, key for masks, signature
roster     server to all      every advert, users rising
shares     client to server   one sealed letter per neighbour, positions rising
delivery   server to client   bitmap of who shared, and the letters of the client's neighbours among them
masked     client to server   the masked vector
survivors  server to all      bitmap of whose vectors arrived
vote       client to server   signature over the lists of sharers and survivors
votes      server to all      positions and signatures
openings   client to server   bitmap over the neighbours that shared, and one share for each bit set
=========  =================  ==========================================================================
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from tacit.errors import TacitError
from tacit.transport.secure_sum.plan import Graph, Plan, as_bitmap, members, plan_for
from tacit.transport.secure_sum.shares import SEALED_BYTES, SHARE_BYTES
from tacit.transport.secure_sum.terms import Reason, SumAborted, Terms
from tacit.types import Long


class Kind(IntEnum):
    """What a message is; the first byte after the mark.

    Example:
        >>> Kind(1).name
        'ADVERT'
    """

    ADVERT = 1
    ROSTER = 2
    SHARES = 3
    DELIVERY = 4
    MASKED = 5
    SURVIVORS = 6
    VOTE = 7
    VOTES = 8
    OPENINGS = 9


_MARK = b"TSS1"
HEAD = len(_MARK) + 1
_ADVERT = struct.Struct("<I32s32s64s")
_VOTE = struct.Struct("<I64s")
SIGNATURE_BYTES = 64


def framed(kind: Kind, body: bytes) -> bytes:
    """A message with its mark.

    Example:
        >>> unframed(Kind.VOTE, framed(Kind.VOTE, b"body"))
        b'body'
    """
    return _MARK + bytes([kind]) + body


def unframed(kind: Kind, wire: bytes) -> bytes:
    """The body of a message that must be of this kind."""
    if wire[: len(_MARK)] != _MARK or len(wire) < HEAD:
        raise malformed("a message without our mark")
    if wire[len(_MARK)] != kind:
        raise SumAborted(Reason.OUT_OF_TURN, f"a message of kind {wire[len(_MARK)]} where {kind.name} is due")
    return wire[HEAD:]


def malformed(problem: str) -> SumAborted:
    """The error for bytes that cannot be ours."""
    return SumAborted(Reason.MALFORMED, problem, "both sides need the same version; the sum is aborted")


@dataclass(frozen=True)
class Advert:
    """A person's fresh public keys, signed with the identity enrolled beforehand."""

    user: int
    letters: bytes
    masks: bytes
    signature: bytes

    @property
    def raw(self) -> bytes:
        """The bytes on the wire."""
        return _ADVERT.pack(self.user, self.letters, self.masks, self.signature)

    def signed_part(self, terms: Terms) -> bytes:
        """What the signature covers: these keys, for these terms."""
        return b"keys" + terms.digest + self.raw[:-SIGNATURE_BYTES]

    @classmethod
    def read(cls, raw: bytes) -> "Advert":
        """One advert."""
        if len(raw) != _ADVERT.size:
            raise malformed(f"an advert of {len(raw)} bytes")
        return cls(*_ADVERT.unpack(raw))


@dataclass(frozen=True)
class Roster:
    """Everybody who takes part, users rising, with the plan and the graph that follow from it."""

    adverts: tuple[Advert, ...]
    plan: Plan
    graph: Graph
    digest: bytes

    @classmethod
    def of(cls, adverts: Sequence[Advert], terms: Terms) -> "Roster":
        """The roster of these adverts; refused where no plan is safe."""
        users = [advert.user for advert in adverts]
        if users != sorted(set(users)):
            raise SumAborted(Reason.DUPLICATE, "a roster that names somebody twice, or out of order")
        if len({key for advert in adverts for key in (advert.letters, advert.masks)}) != 2 * len(adverts):
            raise SumAborted(Reason.DUPLICATE, "a roster on which one key appears twice")
        if len(adverts) > terms.invited:
            raise SumAborted(Reason.STRANGER, f"{len(adverts)} people, and {terms.invited} were invited")
        try:
            plan = plan_for(terms.invited, terms.rates, len(adverts))
        except TacitError as error:
            raise SumAborted(Reason.TOO_FEW_KEYS, error.problem, error.remedy) from error
        hashed = hashlib.sha256(b"roster" + terms.digest)
        for advert in adverts:
            hashed.update(advert.raw)
        digest = hashed.digest()
        return cls(tuple(adverts), plan, Graph.drawn(digest, plan.clients, plan.degree), digest)

    @property
    def wire(self) -> bytes:
        """The roster as a message."""
        return framed(Kind.ROSTER, b"".join(advert.raw for advert in self.adverts))

    @classmethod
    def read(cls, wire: bytes, terms: Terms) -> "Roster":
        """A roster from its message."""
        body = unframed(Kind.ROSTER, wire)
        if len(body) % _ADVERT.size:
            raise malformed("a roster that ends within an advert")
        return cls.of(
            [Advert.read(body[at : at + _ADVERT.size]) for at in range(0, len(body), _ADVERT.size)], terms
        )

    def view(self, sharers: Long) -> bytes:
        """A digest of the roster and of those who shared: pair masks are bound to it."""
        return hashlib.sha256(b"view" + self.digest + as_bitmap(sharers, self.plan.clients)).digest()

    def vote(self, sharers: Long, survivors: Long) -> bytes:
        """What a vote signs: one list of sharers and one of survivors, for this roster."""
        return b"vote" + self.view(sharers) + as_bitmap(survivors, self.plan.clients)


def letters_message(letters: Sequence[bytes]) -> bytes:
    """A client's sealed letters."""
    return framed(Kind.SHARES, b"".join(letters))


def read_letters(wire: bytes, count: int) -> list[bytes]:
    """Exactly ``count`` sealed letters."""
    body = unframed(Kind.SHARES, wire)
    return _pieces(body, count, SEALED_BYTES)


def delivery(sharers: Long, letters: Sequence[bytes], clients: int) -> bytes:
    """Who shared, and one client's letters."""
    return framed(Kind.DELIVERY, as_bitmap(sharers, clients) + b"".join(letters))


def read_delivery(wire: bytes, roster: Roster, position: int) -> tuple[Long, dict[int, bytes]]:
    """Who shared, and the letters by the position of their sender."""
    body, clients = unframed(Kind.DELIVERY, wire), roster.plan.clients
    cut = -(-clients // 8)
    sharers = members(body[:cut], clients)
    present = set(sharers.tolist())
    senders = [other for other in roster.graph.neighbours(position) if other in present]
    return sharers, dict(zip(senders, _pieces(body[cut:], len(senders), SEALED_BYTES), strict=True))


def survivors_message(survivors: Long, clients: int) -> bytes:
    """Whose vectors arrived."""
    return framed(Kind.SURVIVORS, as_bitmap(survivors, clients))


def read_survivors(wire: bytes, clients: int) -> Long:
    """Whose vectors are said to have arrived."""
    return members(unframed(Kind.SURVIVORS, wire), clients)


def votes_message(votes: Mapping[int, bytes]) -> bytes:
    """Positions and their signatures."""
    return framed(Kind.VOTES, b"".join(_VOTE.pack(position, votes[position]) for position in sorted(votes)))


def read_votes(wire: bytes) -> list[tuple[int, bytes]]:
    """Positions and their signatures, as they were sent."""
    body = unframed(Kind.VOTES, wire)
    if len(body) % _VOTE.size:
        raise malformed("votes that end within a signature")
    return [_VOTE.unpack_from(body, at) for at in range(0, len(body), _VOTE.size)]


def openings_message(shares: Sequence[bytes | None]) -> bytes:
    """One share for each neighbour that shared, where the client has it."""
    held = [place for place, share in enumerate(shares) if share is not None]
    return framed(Kind.OPENINGS, as_bitmap(held, len(shares)) + b"".join(filter(None, shares)))


def read_openings(wire: bytes, count: int) -> list[bytes | None]:
    """The shares that :func:`openings_message` wrote for ``count`` neighbours."""
    body, cut = unframed(Kind.OPENINGS, wire), -(-count // 8)
    held = members(body[:cut], count)
    shares: list[bytes | None] = [None] * count
    for place, share in zip(held, _pieces(body[cut:], len(held), SHARE_BYTES), strict=True):
        shares[place] = share
    return shares


def _pieces(body: bytes, count: int, size: int) -> list[bytes]:
    if len(body) != count * size:
        raise malformed(f"{len(body)} bytes where {count} pieces of {size} are due")
    return [body[at : at + size] for at in range(0, len(body), size)]


@dataclass(frozen=True)
class Crossing:
    """Bytes between clients and server in one sum, all clients together.

    Example:
        >>> terms = Terms(b"a run", 0, "train", bytes(32), length=74_120, ring=32, invited=1000)
        >>> crossing = everybody_answers(terms)
        >>> crossing.up // 1000, crossing.down // 1000
        (315812, 181650)
    """

    up: int
    down: int


def everybody_answers(terms: Terms) -> Crossing:
    """What crosses when nobody drops out, without sending anything."""
    plan = plan_for(terms.invited, terms.rates)
    clients, degree, bitmap = plan.clients, plan.degree, -(-plan.clients // 8)
    letters = degree * SEALED_BYTES
    held = -(-degree // 8) + degree * SHARE_BYTES
    up = 5 * HEAD + _ADVERT.size + letters + terms.nbytes + SIGNATURE_BYTES + held
    down = 4 * HEAD + clients * _ADVERT.size + bitmap + letters + bitmap + plan.quorum * _VOTE.size
    return Crossing(clients * up, clients * down)
