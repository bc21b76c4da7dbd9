"""How a federation begins: the server's folder with fresh keys and the charter that everybody is told."""

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.interactions import Features, Scale
from tacit.deploy.about import RunAbout
from tacit.deploy.accuracy import Accuracy
from tacit.deploy.charter import Charter
from tacit.deploy.journal import Journal
from tacit.deploy.wire import public_identity
from tacit.errors import TacitError
from tacit.rng import SeededKeys
from tacit.round import OpenExchange, first_state


def founded(
    folder: Path,
    about: RunAbout,
    *,
    identity: bytes | None = None,
    proxy: bytes = b"",
    proxy_address: str = "",
    vouching: bytes = b"",
    seeded: int | None = None,
    allowed: Sequence[str] | None = None,
    accuracy: Accuracy | None = None,
) -> Journal:
    """A new server's journal. What cannot run on devices is refused before anything is written.

    ``vouching`` is the certificate of who vouches for the proxy, where that is not who does for the server.
    ``allowed`` are the fingerprints of the devices that may enrol; without it whoever the engine lets in.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # loads on first use

    identity, opener = identity or secrets.token_bytes(32), secrets.token_bytes(32)
    sealed_to = X25519PrivateKey.from_private_bytes(opener).public_key().public_bytes_raw()
    charter = Charter(about, public_identity(identity), sealed_to, proxy, proxy_address, seeded, accuracy)
    refuse_too_few(charter)
    facts = {
        "identity": identity,
        "opener": opener,
        "kept": secrets.token_bytes(32),
        "charter": charter.announced.encoded(),
        "proxy ca": vouching,
    }
    if allowed is not None:
        facts["allowed"] = json.dumps(sorted(allowed)).encode()
    return Journal.created(folder, facts)


def refuse_too_few(charter: Charter) -> None:
    """Refuse a crowd too small for the method's transport at the start, in the transport's own words."""
    method, people = charter.method, charter.about.people
    if people < 1:
        raise TacitError("a federation of nobody", "give --people 2 or more")
    state = first_state(method, len(charter.about.items), SeededKeys(0))
    casting = method.casting(np.arange(people, dtype=np.int32), SeededKeys(0))
    for exchange in (*method.setup, *method.exchanges):
        invited = len(exchange.sampling.draw(casting.parts[exchange.part], 0, SeededKeys(0)))
        opened = OpenExchange(
            exchange, state, invited=invited, population=people, keys=SeededKeys(0), tally=None
        )
        del opened


def announced(
    run: str,
    config: Mapping[str, Any],
    items: Sequence[str],
    people: int,
    *,
    scale: Scale | None = None,
    features: Features | None = None,
    about_people: Features | None = None,
) -> RunAbout:
    """The public facts of a run; of people's own features only names and labels."""
    theirs = about_people or Features()
    nobody = np.zeros(0, dtype=np.int32)
    return RunAbout(
        run=run,
        config={name: list(value) if isinstance(value, tuple) else value for name, value in config.items()},
        items=tuple(map(str, items)),
        people=people,
        scale=scale,
        features=features or Features(),
        about_people=Features(
            categories=dict.fromkeys(theirs.categories, nobody),
            flags={
                name: np.zeros((0, flags.shape[1]), dtype=np.uint8) for name, flags in theirs.flags.items()
            },
            numbers=dict.fromkeys(theirs.numbers, nobody.astype(np.float32)),
            labels=theirs.labels,
        ),
    )
