"""Letters reach exactly their recipients, whatever the chunks they were posted in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.local.work import Letters
from tacit.runtime.post import PostOffice
from tacit.types import RankOne, Rows


def letters_of(to, lengths, generator, *, dense):
    lengths = np.array(lengths, dtype=np.int64)
    gap = 2  # rows before each letter that are not part of it
    starts = np.cumsum(lengths + gap) - lengths
    total = int((lengths + gap).sum())
    ids = generator.integers(0, 9, total).astype("i4")
    coef = generator.standard_normal(total).astype("f4")
    factors = generator.standard_normal((len(to), 2)).astype("f4")
    values = np.repeat(coef[:, None], 2, 1) if dense else RankOne(coef, factors, np.zeros((9, 2), "f4"), 0.0)
    return Letters(np.array(to, "i4"), Rows(starts, lengths, ids, values)), coef, factors


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 5)), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.integers(0, 99),
)
def test_every_letter_arrives_once(chunks, dense, seed):
    generator, post, sent, bytes_in = np.random.default_rng(seed), PostOffice(), {}, 0
    for chunk in chunks:
        letters, coef, factors = letters_of(*zip(*chunk, strict=True), generator, dense=dense)
        traffic = post.add(letters, np.arange(len(chunk)) + 10)
        bytes_in += traffic.letters_out
        for client, (to, length) in enumerate(chunk):
            if to >= 0:
                rows = slice(letters.rows.starts[client], letters.rows.starts[client] + length)
                who = None if dense else tuple(factors[client])
                sent.setdefault(to, []).append((letters.rows.ids[rows].tolist(), coef[rows].tolist(), who))
    if not sent:
        with pytest.raises(TacitError, match="nobody wrote"):
            post.sort()
        return
    post.sort()
    recipients = np.arange(5, dtype="i4")
    inbox, traffic = post.read(recipients)
    assert traffic.letters_in == bytes_in
    for place, recipient in enumerate(recipients):
        got = []
        for member in inbox.members[inbox.offsets[place] : inbox.offsets[place + 1]]:
            rows = slice(inbox.rows.starts[member], inbox.rows.starts[member] + inbox.rows.lengths[member])
            values = inbox.rows.values
            coef = values[rows, 0] if dense else values.coef[rows]
            who = None if dense else tuple(values.factors[member])
            got.append((inbox.rows.ids[rows].tolist(), coef.tolist(), who))
        assert got == sent.get(int(recipient), [])


def test_reading_before_sorting_is_refused():
    with pytest.raises(TacitError, match="sort"):
        PostOffice().read(np.zeros(1, "i4"))
