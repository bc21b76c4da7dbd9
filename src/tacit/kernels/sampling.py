"""Items a client has nothing to do with, drawn without replacement from the client's own key."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.types import Index, Long, Segment

if TYPE_CHECKING:
    from tacit.rng import Keyed

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)


def draw_fillers(offsets: Long, items: Index, keys: "Keyed", rho: float, catalogue: int) -> Segment:
    """Draw for each client ``min(round(rho * own), catalogue - own)`` items it has not got.

    Every set of that size out of the client's complement is equally likely, and a client's draw depends
    on its key and its items alone, however clients are grouped. The ``items`` of one client are distinct.

    Example:
        >>> offsets, items = np.array([0, 2]), np.array([1, 3], "i4")
        >>> drawn = draw_fillers(offsets, items, np.array([7], "u8"), 1.5, 5)
        >>> sorted(drawn.ids.tolist())
        [0, 2, 4]
    """
    own = np.diff(offsets).astype(np.int64)
    if rho < 0 or not np.isfinite(rho):
        raise TacitError(f"rho is {rho}", "give the number of fillers per own item, zero or more")
    if len(keys) != len(own):
        raise TacitError(f"{len(keys)} keys for {len(own)} clients", "give one key per client")
    if not 0 < catalogue < 2**31:
        raise TacitError(f"a catalogue of {catalogue} items", "give a size between 1 and 2^31 - 1")
    if len(items) and items.view(np.uint32).max() >= catalogue:
        raise TacitError(f"an item outside the catalogue of {catalogue}", "number items from 0")
    if len(own) and own.max() > catalogue:
        raise TacitError("a client with more items than there are", "give each client distinct items")
    lengths = np.minimum(np.rint(rho * own).astype(np.int64), catalogue - own)
    starts = np.cumsum(lengths) - lengths
    ids = np.empty(int(lengths.sum()), dtype=np.int32)
    _draw(offsets, items, keys, lengths, starts, np.zeros(catalogue, dtype=np.int32), ids)
    return Segment(starts, lengths, ids)


@kernel
def _word(key: np.uint64, counter: np.uint64) -> np.uint64:
    """The word number ``counter`` of the splitmix64 stream of a key."""
    word = key + counter * _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@kernel
def _below(bound: np.uint64, key: np.uint64, counter: np.uint64) -> tuple[np.uint64, np.uint64]:
    """An exactly uniform number below ``bound`` and the counter after it.

    The high half of a product of 32-bit numbers is uniform once the few low halves that would favour
    some results are drawn again.
    """
    counter += np.uint64(1)
    product = (_word(key, counter) >> np.uint64(32)) * bound
    if product & _LOW < bound:
        least = (np.uint64(1) << np.uint64(32)) % bound
        while product & _LOW < least:
            counter += np.uint64(1)
            product = (_word(key, counter) >> np.uint64(32)) * bound
    return product >> np.uint64(32), counter


@kernel
def _draw(
    offsets: Long,
    items: Index,
    keys: "Keyed",
    lengths: Long,
    starts: Long,
    seen: NDArray[np.int32],
    ids: Index,
) -> None:
    catalogue = len(seen)
    for client in range(len(lengths)):
        wanted = lengths[client]
        if wanted == 0:
            continue
        mark = np.int32(client + 1)
        for position in range(offsets[client], offsets[client + 1]):
            seen[np.uint32(items[position])] = mark
        own = offsets[client + 1] - offsets[client]
        # Drawing again and again is cheap while most draws are new; beyond, a pass over the
        # catalogue costs no more than twice what the client holds and draws anyway.
        if 2 * (own + wanted) <= catalogue:
            _draw_rejecting(keys[client], mark, seen, ids, starts[client], wanted)
        else:
            _draw_passing(keys[client], mark, seen, ids, starts[client], wanted, catalogue - own)


@kernel
def _draw_rejecting(
    key: np.uint64, mark: np.int32, seen: NDArray[np.int32], ids: Index, start: int, wanted: int
) -> None:
    bound, counter, at, end = np.uint64(len(seen)), np.uint64(0), start, start + wanted
    while at < end:
        item, counter = _below(bound, key, counter)
        # Write first, keep only if new: no branch that would be mispredicted.
        ids[at] = np.int32(item)
        at += seen[item] != mark
        seen[item] = mark


@kernel
def _draw_passing(
    key: np.uint64, mark: np.int32, seen: NDArray[np.int32], ids: Index, start: int, wanted: int, free: int
) -> None:
    """Take each free item with probability (still wanted) / (still free): all sets are equally likely."""
    counter, at = np.uint64(0), start
    for item in range(len(seen)):
        if wanted == 0:
            return
        # Drawn for items that are not free as well, and then not used: no branch that would be mispredicted.
        is_free = seen[item] != mark
        number, after = _below(np.uint64(free), key, counter)
        taken = is_free & (number < np.uint64(wanted))
        ids[at] = item
        at += taken
        wanted -= taken
        free -= is_free
        counter = after if is_free else counter
