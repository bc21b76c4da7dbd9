"""A device's way through the proxy: reports sealed to the server, letters sealed to their readers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit import codec
from tacit.deploy.arriving import empty_inbox
from tacit.deploy.charter import Charter
from tacit.deploy.proxy_calls import ProxyPost
from tacit.deploy.question import Declined, Question
from tacit.deploy.receptions import shuffled_by
from tacit.deploy.wire import Kind, No, Place, framed
from tacit.errors import TacitError
from tacit.local.work import Inbox
from tacit.round import Outgoing
from tacit.transport.sealed_reports import Envelope, Opener, report_nbytes, sealed
from tacit.types import Array, Rows


@dataclass(frozen=True)
class Posted:
    """What goes to the proxy: one signed frame (empty if there is nothing), and the bytes sealed in it."""

    wire: bytes
    nbytes: int


def refuse_small_crowd(question: Question) -> None:
    """Decline to report where fewer are invited than the method says must stand behind a batch."""
    shuffles = shuffled_by(question.exchange)
    if shuffles is not None and question.facts.invited < shuffles.n_min:
        raise Declined(No.SMALL_CROWD)


def posted(done: Outgoing, question: Question, charter: Charter) -> Posted:
    """The frame with a person's sealed reports and letters.

    Its head tells the proxy what the method promises of the reports: how many people must be behind a batch,
    and how each report is cut, so that no two of a person's stay together. The server's word is not enough.
    """
    shuffles = shuffled_by(question.exchange)
    reports = _sealed_reports(done.messages.arrays, charter, question.place) if shuffles else []
    readers, letters = _sealed_letters(done, question)
    if not (reports or letters):
        return Posted(b"", 0)
    head = {
        **question.place.head(),
        "slot": question.slot,
        "readers": readers,
        "n_min": shuffles.n_min if shuffles else 1,
        "size": len(reports[0]) if reports else 0,
        "each": len(reports),
    }
    whole = b"".join(reports)
    wire = framed(Kind.POST, head, [whole, *letters], question.keys.identity)
    return Posted(wire, len(whole) + sum(map(len, letters)))


def _sealed_reports(arrays: Any, charter: Charter, place: Place) -> list[bytes]:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # loads on first use

    reports = arrays["reports"][0]
    words = reports.reshape(len(reports), -1).astype("<u4")
    server = X25519PublicKey.from_public_bytes(charter.opener)
    envelope = Envelope(place.exchange, place.round)
    wires = [sealed(row.tobytes(), server, envelope) for row in words]
    assert all(len(wire) == report_nbytes(words.shape[1]) for wire in wires)
    return wires


def _sealed_letters(done: Outgoing, question: Question) -> tuple[list[int], list[bytes]]:
    if done.letters is None or int(done.letters.to[0]) < 0:
        return [], []
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # loads on first use

    letter = codec.encode({"rows": done.letters.rows}, max(0, question.round))
    reader = X25519PublicKey.from_public_bytes(question.to)
    return [int(done.letters.to[0])], [sealed(letter, reader, _letter(question.place))]


def inbox_of(question: Question, post: ProxyPost, received: Mapping[str, Array]) -> Inbox:
    """The letters that lie at the proxy for this person, opened; what is no letter is left out."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # loads on first use

    words = question.head.get("letters_from", [])
    key, found = X25519PrivateKey.from_private_bytes(question.keys.letters), []
    for exchange, nonce in zip(words[::2], words[1::2], strict=True):
        place = replace(question.place, exchange=exchange, nonce=nonce, leg=0)
        wires = post.letters(place, question.slot, question.keys.identity)
        found += Opener(key, _letter(place)).opened(wires)
    nothing = empty_inbox(question.exchange, received)
    return _gathered([_rows(letter, nothing) for letter in found], nothing)


def _letter(place: Place) -> Envelope:
    return Envelope(f"letter/{place.run}/{place.nonce}/{place.exchange}", place.round)


def _rows(letter: bytes, like: Inbox) -> Rows:
    """One letter's rows, if they look like rows of the table; an empty one otherwise."""
    try:
        rows = codec.decode(letter).arrays.get("rows")
    except TacitError:
        return like.rows
    wanted: Any = like.rows.values
    if not isinstance(rows, Rows) or rows.cells or rows.counts is not None:
        return like.rows
    values: Any = rows.values
    if values.dtype != wanted.dtype or values.shape[1:] != wanted.shape[1:]:
        return like.rows
    return rows if values.dtype.kind != "f" or np.isfinite(values).all() else like.rows


def _gathered(letters: list[Rows], nothing: Inbox) -> Inbox:
    whole = [rows for rows in letters if rows.clients]
    if not whole:
        return nothing
    lengths = np.array([rows.total for rows in whole], dtype=np.int64)
    values: list[Any] = [rows.values for rows in whole]
    rows = Rows(
        np.cumsum(lengths) - lengths,
        lengths,
        np.concatenate([rows.ids for rows in whole]),
        np.concatenate(values),
    )
    return Inbox(np.array([0, len(whole)]), np.arange(len(whole)), rows)
