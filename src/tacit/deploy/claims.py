"""What is left of a claim where the noise is no secret."""

from tacit.account.claim import Claim, Observer
from tacit.account.events import NonPrivate, Nothing

DERIVABLE = "the run was started with --seeded: whoever reads its charter can derive every device's noise"


def derivable(claim: Claim) -> Claim:
    """A claim about noise that anybody can derive: nothing is promised to those who saw something.

    Example:
        >>> told = derivable(Claim.unbounded("raw").with_event(Observer.PEER, Nothing()))
        >>> told.event(Observer.SERVER).reason == DERIVABLE, told.event(Observer.PEER)
        (True, Nothing())
    """
    for observer in Observer:
        if not isinstance(claim.event(observer), Nothing):
            claim = claim.with_event(observer, NonPrivate(DERIVABLE))
    return claim
