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


@kernel
def _word(key: np.uint64, counter: np.uint64) -> np.uint64:
    """The word number ``counter`` of the splitmix64 stream of a key."""
    word = key + counter * _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


def draw_entries(words: "Keyed", entries: int) -> Words:
    """One entry below ``entries`` per random word: uniform to within ``entries / 2^53``.

    Example:
        >>> draw_entries(np.array([[0, 2**63, 2**64 - 1]], "u8"), 10)
        array([[0, 5, 9]], dtype=uint32)
    """
    if not 0 < entries < MOST_ENTRIES:
        raise TacitError(
            f"a gradient of {entries} entries", "use fewer items or factors: below 2^31 entries fit a report"
        )
    drawn = np.empty(words.shape, dtype=np.uint32)
    _draw(words, float(entries), drawn)
    return drawn


@kernel
def _draw(words: "Keyed", entries: float, drawn: Words) -> None:
    for client in range(len(words)):
        for report in range(words.shape[1]):
            drawn[client, report] = np.uint32((words[client, report] >> np.uint64(11)) * 2.0**-53 * entries)


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


def one_bit_reports(words: "Keyed", entries: Words, values: Floats, *, epsilon: float, scale: float) -> Words:
    """One randomised bit about each value, a random word for each.

    With ``t = scale * value`` projected on [-1, 1], the bit is one with probability
    ``(t (e^eps - 1) + e^eps + 1) / (2 e^eps + 2)``.

    Example:
        >>> value, entry = np.array([[1.0, -1.0]], "f4"), np.array([[6, 7]], "u4")
        >>> codes = one_bit_reports(np.full((1, 2), 2**63, "u8"), entry, value, epsilon=60.0, scale=1.0)
        >>> codes >> 1, codes & 1
        (array([[6, 7]], dtype=uint32), array([[1, 0]], dtype=uint32))
    """
    if epsilon <= 0 or scale <= 0:
        raise TacitError(f"epsilon={epsilon} and scale={scale}", "give both above 0")
    codes = np.empty(entries.shape, dtype=np.uint32)
    _randomise(words, entries, values, float(np.tanh(epsilon / 2)), float(scale), codes)
    return codes


@kernel
def _randomise(
    words: "Keyed", entries: Words, values: Floats, slope: float, scale: float, codes: Words
) -> None:
    for client in range(len(words)):
        for report in range(words.shape[1]):
            t = min(max(scale * values[client, report], -1.0), 1.0)
            uniform = (words[client, report] >> np.uint64(11)) * 2.0**-53
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
    ends, bits = np.zeros(257, dtype=np.int64), np.uint64(0)
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
