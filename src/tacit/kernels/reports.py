"""Single entries of a gradient, one bit about each, and their sum: nothing of size users times items.

A report is a 32-bit word: the entry's number, then one bit. Entry ``item * dim + factor`` is one number of a
user's gradient of the item table; only the entries asked for are ever computed.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.types import Floats, Index, Long

if TYPE_CHECKING:
    from tacit.rng import Keyed

Words = NDArray[np.uint32]
MOST_ENTRIES = 1 << 31
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def _word(key: np.uint64, counter: np.uint64) -> np.uint64:
    """The word number ``counter`` of the splitmix64 stream of a key."""
    word = key + counter * _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


def draw_entries(keys: "Keyed", count: int, entries: int) -> Words:
    """``count`` entries per key, each exactly uniform below ``entries``, with replacement.

    Example:
        >>> drawn = draw_entries(np.arange(3, dtype="u8"), 4, 10)
        >>> drawn.shape, bool((drawn < 10).all())
        ((3, 4), True)
    """
    if count < 1:
        raise TacitError(f"{count} reports", "send at least 1")
    if not 0 < entries < MOST_ENTRIES:
        raise TacitError(
            f"a gradient of {entries} entries", "use fewer items or factors: below 2^31 entries fit a report"
        )
    drawn = np.empty((len(keys), count), dtype=np.uint32)
    _draw(keys, np.uint64(entries), drawn)
    return drawn


@kernel
def _draw(keys: "Keyed", bound: np.uint64, drawn: Words) -> None:
    least = (np.uint64(1) << np.uint64(32)) % bound
    for client in range(len(keys)):
        key, counter = keys[client], np.uint64(0)
        for report in range(drawn.shape[1]):
            counter += np.uint64(1)
            product = (_word(key, counter) >> np.uint64(32)) * bound
            while product & _LOW < least:
                counter += np.uint64(1)
                product = (_word(key, counter) >> np.uint64(32)) * bound
            drawn[client, report] = product >> np.uint64(32)


def entry_values(
    offsets: Long, items: Index, entries: Words, factors: Floats, table: Floats, *, alpha: float
) -> Floats:
    """The asked entries of each client's gradient ``-2 c (p - x . v_item) x_factor``.

    Costs a client its own items (to know which it rated) and ``dim`` per entry.

    Example:
        >>> table, x = np.array([[1, 0], [0, 1]], "f4"), np.array([[0.5, 0.25]], "f4")
        >>> asked = np.array([[0, 3]], "u4")  # item 0's first number and item 1's second
        >>> entry_values(np.array([0, 1]), np.array([0], "i4"), asked, x, table, alpha=0.0)
        array([[-0.5  ,  0.125]], dtype=float32)
    """
    values = np.empty(entries.shape, dtype=np.float32)
    _values(offsets, items, entries, factors, table, float(alpha), np.zeros(len(table), np.int32), values)
    return values


@kernel
def _values(
    offsets: Long,
    items: Index,
    entries: Words,
    factors: Floats,
    table: Floats,
    alpha: float,
    seen: NDArray[np.int32],
    values: Floats,
) -> None:
    dim = np.uint32(table.shape[1])
    for client in range(len(entries)):
        mark = np.int32(client + 1)
        for position in range(offsets[client], offsets[client + 1]):
            seen[items[position]] = mark
        for report in range(entries.shape[1]):
            entry = entries[client, report]
            item = entry // dim
            score = np.float32(0.0)
            for f in range(dim):
                score += factors[client, f] * table[item, f]
            residual = (1.0 + alpha) * (1.0 - score) if seen[item] == mark else -score
            values[client, report] = -2.0 * residual * factors[client, entry - item * dim]


def one_bit_reports(keys: "Keyed", entries: Words, values: Floats, *, epsilon: float, scale: float) -> Words:
    """One randomised bit about each value: ``t = scale * value`` projected on [-1, 1] is one with probability
    ``(t (e^eps - 1) + e^eps + 1) / (2 e^eps + 2)``.

    Example:
        >>> value = np.array([[1.0, -1.0]], "f4")
        >>> codes = one_bit_reports(
        ...     np.ones(1, "u8"), np.array([[6, 7]], "u4"), value, epsilon=60.0, scale=1.0
        ... )
        >>> codes >> 1, codes & 1
        (array([[6, 7]], dtype=uint32), array([[1, 0]], dtype=uint32))
    """  # noqa: D205 - one formula
    if epsilon <= 0 or scale <= 0:
        raise TacitError(f"epsilon={epsilon} and scale={scale}", "give both above 0")
    codes = np.empty(entries.shape, dtype=np.uint32)
    _randomise(keys, entries, values, float(np.tanh(epsilon / 2)), scale, codes)
    return codes


@kernel
def _randomise(
    keys: "Keyed", entries: Words, values: Floats, slope: float, scale: float, codes: Words
) -> None:
    for client in range(len(keys)):
        key = keys[client]
        for report in range(entries.shape[1]):
            t = min(max(scale * values[client, report], -1.0), 1.0)
            uniform = (_word(key, np.uint64(report + 1)) >> np.uint64(11)) * 2.0**-53
            bit = np.uint32(uniform < 0.5 + 0.5 * slope * t)
            codes[client, report] = (entries[client, report] << np.uint32(1)) | bit


def add_reports(net: Long, codes: Words) -> int:
    """Add every report's bit, as plus or minus one, to its entry; returns how many named no entry.

    Example:
        >>> net = np.zeros(3, dtype=np.int64)
        >>> add_reports(net, np.array([1, 1, 4, 99], "u4")), net.tolist()
        (1, [2, 0, -1])
    """
    return int(_add(net, codes.reshape(-1)))


@kernel
def _add(net: Long, codes: Words) -> int:
    refused = 0
    for position in range(len(codes)):
        entry = codes[position] >> np.uint32(1)
        if entry < len(net):
            net[entry] += 2 * np.int64(codes[position] & np.uint32(1)) - 1
        else:
            refused += 1
    return refused


def shuffled(words: Words, seed: int) -> Words:
    """A uniformly random order of 32-bit words.

    Each word goes to one of 256 heaps at random; each heap is then shuffled in place. That is as uniform as
    one shuffle of everything, and the heaps fit the cache.

    Example:
        >>> sorted(shuffled(np.arange(5, dtype="u4"), 7).tolist())
        [0, 1, 2, 3, 4]
    """
    mixed = np.empty_like(words)
    _shuffle(words, np.uint64(seed), np.empty(len(words), dtype=np.uint8), mixed)
    return mixed


@kernel
def _shuffle(words: Words, key: np.uint64, heap_of: NDArray[np.uint8], mixed: Words) -> None:
    ends = np.zeros(257, dtype=np.int64)
    for position in range(len(words)):
        if position % 8 == 0:
            bits = _word(key, np.uint64(position // 8 + 1))
        heap_of[position] = np.uint8(bits & np.uint64(255))
        bits >>= np.uint64(8)
        ends[heap_of[position] + 1] += 1
    for heap in range(256):
        ends[heap + 1] += ends[heap]
    starts = ends[:256].copy()
    for position in range(len(words)):
        heap = heap_of[position]
        mixed[starts[heap]] = words[position]
        starts[heap] += 1
    counter = np.uint64(len(words) + 1)
    for heap in range(256):
        low = ends[heap]
        for left in range(ends[heap + 1] - low, 1, -1):
            counter += np.uint64(1)
            # The bias of a 64-bit product's high half is below heap size / 2^32.
            chosen = ((_word(key, counter) >> np.uint64(32)) * np.uint64(left)) >> np.uint64(32)
            last, other = low + left - 1, low + np.int64(chosen)
            mixed[last], mixed[other] = mixed[other], mixed[last]
