"""The secure sum as a way for messages to travel: the server is handed one sum and nothing else."""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from tacit.account.claim import Claim, Observer
from tacit.account.events import NonPrivate, Nothing
from tacit.errors import TacitError
from tacit.ledger.record import Traffic
from tacit.rng import Keys
from tacit.settings import Between, Count, checked
from tacit.transport.secure_sum.in_process import summed
from tacit.transport.secure_sum.layout import Layout, refuse_points, ring_for
from tacit.transport.secure_sum.masks import Ring
from tacit.transport.secure_sum.plan import Plan, Rates, plan_for
from tacit.transport.secure_sum.terms import Reason, SumAborted, Terms
from tacit.transport.secure_sum.wire import everybody_answers
from tacit.transport.transport import Messages, ServerSession, Transport
from tacit.types import Delivers, RoundFacts, Steps

EXACT = (
    "the server sees exact sums: a row that one person of a cohort adds alone is that person's, and rows of "
    "one person can be linked; without noise nothing bounds it"
)


@dataclass(frozen=True)
class SecureSum(Transport):
    """Pairwise masks and shared secrets (Bonawitz and others; Bell and others): see ``docs/secure-sum.md``.

    Each client sends whole tables, whatever it touched, and how many people stand behind each row inside the
    mask. ``masks="cancelled"`` leaves the masks out where everybody answers, as a simulation's clients do:
    they cancel to the last bit, and the bytes are those of the protocol. ``"full"`` runs the protocol.

    Formal guarantees:
        No ε of its own. If at most the stated share of a cohort colludes with the server and enrolled
        identities are people, the server learns the sum over all honest survivors and nothing else, even if
        it lies. Noise that clients add to whole numbers (skellam) then counts in full against the server.

    ================================  ====================================================
    edge case                         what happens
    ================================  ====================================================
    numbers with a point              refused when the exchange is built
    sums that might wrap around       refused before the round
    no safe degree and threshold      refused before the round
    too few survivors                 the round is aborted; nothing is opened
    ================================  ====================================================
    """

    delivers: ClassVar[Delivers] = Delivers.SUM
    rates: Rates
    masks: Literal["cancelled", "full"] = "cancelled"
    steps: Steps | None = None

    def carrying(self, steps: Steps | None) -> "SecureSum":
        """Whole numbers only."""
        if steps is None:
            raise TacitError(
                "a secure sum adds whole numbers, and these updates are not rounded",
                "put grid (such as --protect grid:32:1024) or skellam last in the chain",
            )
        return replace(self, steps=steps)

    def sent(self, messages: Messages, exchange: str, round: int, keys: Keys) -> Messages:
        """What crosses is masked and always of one size; it is counted when the sum closes."""
        del exchange, round, keys
        return replace(messages, nbytes=np.zeros_like(messages.nbytes), parts=None)

    def server_session(self, facts: RoundFacts, keys: Keys) -> ServerSession:
        """Plan, ring and overflow are settled before anything is sent."""
        del keys
        assert self.steps is not None
        plan = plan_for(facts.invited, self.rates)
        ring_for(self.steps, facts.invited, sum(math.prod(shape) for shape in facts.received.values()))
        if self.steps.honest > plan.honest:
            raise TacitError(
                f"the noise counts on {self.steps.honest} honest answers and the sum closes at {plan.honest}",
                f"tell the noise honest={plan.honest}, {self._later(facts.invited)}or ask more people",
            )
        return _Summing(facts, plan, self)

    def _later(self, invited: int) -> str:
        """The crowd that would close the sum with enough honest people, where it still leaves drop-outs."""
        assert self.steps is not None
        plan = plan_for(invited, self.rates)
        crowd = self.steps.honest + plan.corrupt
        return f"close later (crowd={crowd}), " if crowd <= invited - plan.dropped else ""

    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """The server sees what the sum shows; an exact one, where no message was private by itself either."""
        del facts
        alone = claim.event(Observer.SERVER)
        if isinstance(alone, Nothing):
            return claim
        assumes = (
            f"at most {self.rates.adversary:.0%} of a cohort collude with the server",
            "every enrolled identity is a person",
        )
        if claim.summed is not None:
            return claim.with_event(Observer.SERVER, claim.summed.event, (*claim.summed.assumes, *assumes))
        exact = NonPrivate(EXACT) if isinstance(alone, NonPrivate) else alone
        return claim.with_event(Observer.SERVER, exact, assumes)


class _Summing(ServerSession):
    """Counts who answers, and ends with a sum or without one."""

    def __init__(self, facts: RoundFacts, plan: Plan, transport: SecureSum) -> None:
        self._facts = facts
        self._plan = plan
        self._transport = transport
        self._layout: Layout | None = None
        self._answered = 0
        self._vectors: dict[int, Ring] = {}

    def receive(self, messages: Messages) -> Iterable[Messages]:
        """With the masks left out, hand on: it is added up at once, and nobody looks at it before."""
        layout = self._noted(messages)
        if self._transport.masks == "cancelled":
            return (messages,)
        ring = self._terms(layout).ring
        for client, user in enumerate(messages.users.tolist()):
            self._vectors[user] = layout.vector(messages.arrays, client, ring)
        return ()

    def _noted(self, messages: Messages) -> Layout:
        refuse_points(messages.arrays)
        found = Layout.of(messages.arrays, self._facts)
        if self._layout not in {None, found}:
            raise TacitError("clients of one sum sent arrays of different shapes", "let all run one method")
        self._layout = found
        self._answered += len(messages.users)
        return found

    def close(self) -> Iterable[Messages]:
        """The sum that the protocol opens, unless too few are left."""
        if self._layout is None or self._answered < self._plan.minimum:
            raise SumAborted(
                Reason.TOO_FEW_INPUTS,
                f"{self._answered} of {self._facts.invited} people answered, {self._plan.minimum} are needed",
            )
        if self._transport.masks == "cancelled":
            return ()
        found = summed(self._terms(self._layout), self._vectors)
        self._vectors.clear()
        nobody = np.zeros(0, dtype=np.int32)
        return (Messages(nobody, self._layout.arrays(found.total), np.zeros(0, dtype=np.int64)),)

    def _terms(self, layout: Layout) -> Terms:
        assert self._transport.steps is not None
        # A device takes the digest of the bytes it was sent; in one process there is only one broadcast.
        model = hashlib.sha256(repr((self._facts.round, dict(self._facts.received))).encode()).digest()
        return Terms(
            run=b"simulation",
            round=self._facts.round + 1,
            exchange=self._facts.exchange,
            model=model,
            length=layout.length,
            ring=ring_for(self._transport.steps, self._facts.invited, layout.length),
            rates=self._transport.rates,
            invited=self._facts.invited,
        )

    def carried(self, messages: Messages) -> Traffic:
        """Nothing by itself: the whole protocol is counted when it closes."""
        del messages
        return Traffic()

    def closing(self) -> Traffic:
        """The bytes of every phase, both ways, and the rows of whole tables."""
        assert self._layout is not None
        terms = self._terms(self._layout)
        crossed = everybody_answers(terms)
        numbers = self._facts.invited * self._layout.length
        return Traffic(
            up=crossed.up,
            down=crossed.down,
            rows_up=self._facts.invited * self._layout.table_rows,
            values_up=numbers * terms.ring // 8,
            numbers_up=numbers,
        )


@checked
def secure_sum(
    *,
    dropout: Annotated[float, Between(0, 0.99)] = 0.1,
    adversary: Annotated[float, Between(0, 0.99)] = 0.05,
    crowd: Count = 2,
    masks: Literal["cancelled", "full"] = "cancelled",
) -> SecureSum:
    """The server learns the sum and nothing else; degree and threshold follow from the two rates.

    Example:
        >>> secure_sum(dropout=0.3, adversary=0.1).rates.dropout
        0.3
    """
    return SecureSum(Rates(dropout=dropout, adversary=adversary, crowd=crowd), masks)


TRANSPORTS = {"secure-sum": secure_sum}
