"""What ``tacit server`` does: founding, admitting, serving, in the server's folder."""

import json
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tacit.config.experiment import Experiment, method_of
from tacit.data import load
from tacit.deploy.accuracy import Accuracy
from tacit.deploy.certificates import Certified, certificate_in, own_certificate
from tacit.deploy.channel import Pace, Unwatched
from tacit.deploy.flower_server import Listening, admitted, refuse_no_key, serve, shut_out
from tacit.deploy.folders import appearing, made
from tacit.deploy.founding import announced, founded
from tacit.deploy.journal import DATABASE, Journal
from tacit.deploy.proxy_http import host_and_port
from tacit.deploy.up import needs_proxy
from tacit.deploy.wire import key_told, public_identity
from tacit.errors import TacitError
from tacit.round import Method

KEY = "server.key"


def server_key(folder: Path) -> bytes:
    """The public half of a server's key; made at first use, so that a proxy can be told it."""
    return public_identity(_kept(_identity(folder), folder))


def _identity(folder: Path) -> bytes:
    """The server's key, a fresh one where the folder has none yet."""
    file = folder / KEY
    if file.exists():
        return bytes.fromhex(file.read_text(encoding="ascii").strip())
    if (folder / DATABASE).is_file():  # whoever founded it was killed before the key's file was written
        with closing(Journal.opened(folder)) as journal:
            return journal.fact("identity") or secrets.token_bytes(32)
    return secrets.token_bytes(32)


def _kept(identity: bytes, folder: Path) -> bytes:
    """The key, now in its file, which its owner alone can read."""
    file = made(folder) / KEY
    if not file.exists():
        with appearing(file) as draft:
            draft.write_text(identity.hex() + "\n", encoding="ascii")
    return identity


def found(
    folder: Path,
    experiment: Experiment,
    people: int,
    proxy: str,
    proxy_key: str,
    data_dir: Path | None = None,
    proxy_ca: Path | None = None,
    accuracy: str = "",
) -> None:
    """Write a new federation into the folder; whatever cannot work is refused before that."""
    if people < 2:
        raise TacitError("how many people will take part is not said", "give --people, 2 or more")
    method = method_of(experiment)
    if not isinstance(method, Method):
        raise TacitError(f"{experiment.method} sees all data in one place", "run it with `tacit run`")
    key, asked = _proxy_key(proxy, proxy_key), Accuracy.parsed(accuracy) if accuracy else None
    vouching = b"" if proxy_ca is None else certificate_in(proxy_ca)
    dataset = load(experiment.data, data_dir)
    complete = replace(experiment, rounds=experiment.rounds or method.rounds, seed=0)
    facts = announced(
        secrets.token_hex(6),
        {**complete.to_mapping(), "data": Path(experiment.data).name},
        [str(raw) for raw in dataset.item_ids.values.tolist()],
        people,
        scale=dataset.scale,
        features=dataset.item_features,
        about_people=dataset.user_features,
    )
    wanted, identity = needs_proxy(method), _identity(folder)
    journal = founded(
        folder,
        facts,
        identity=identity,
        proxy=key if wanted else b"",
        proxy_address=proxy if wanted else "",
        vouching=vouching,
        allowed=(),
        accuracy=asked,
    )
    journal.close()
    _kept(identity, folder)


def _proxy_key(address: str, text: str) -> bytes:
    """The key of the proxy at an address; nothing where there is no proxy."""
    if bool(address) != bool(text):
        raise TacitError("a proxy has an address and a key", "give --proxy and --proxy-key together")
    if not address:
        return b""
    host_and_port(address, "a proxy")
    return key_told(text, "--proxy-key", "give what `tacit proxy DIR --init` printed")


def keys_in(files: Sequence[Path]) -> list[str]:
    """The public keys in these files, one a line; ``#`` begins a remark."""
    keys: list[str] = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TacitError(
                f"{file} cannot be read", "give a text file with one public key a line"
            ) from error
        keys += [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for key in keys:
        refuse_no_key(key)
    return keys


def admit(folder: Path, keys: Sequence[str]) -> None:
    """Put public keys on the operator's list."""
    journal = Journal.opened(folder)
    try:
        admitted(journal, keys)
    finally:
        journal.close()


def revoked(folder: Path, print_: str) -> int:
    """Shut a device out; how many of its people had enrolled. A fingerprint nobody has is refused."""
    journal = Journal.opened(folder)
    try:
        return shut_out(journal, print_)
    finally:
        journal.close()


def served(
    folder: Path,
    host: str,
    port: int,
    certificates: Path | None,
    names: Sequence[str],
    deadline: float,
    watcher: Unwatched,
) -> bool:
    """Serve until the federation's last round; certificates of one's own are made where none are given."""
    refuse_nobody(folder)
    place = certificates or folder / "certificates"
    if certificates is None:
        own_certificate(place, "server", sorted({host, "127.0.0.1", "localhost", *names}))
    own = Certified(place / "server.pem", place / "server.key", place / "ca.pem")
    for file in (own.certificate, own.key, own.authority):
        if not file.is_file():
            raise TacitError(f"{file} is missing", "put server.pem, server.key and ca.pem into that folder")
    trust = trusted(folder, own.authority)
    pace = Pace(deadline=deadline, again=min(20.0, max(5.0, deadline / 3)), wait=0.3)

    def ready(address: str) -> None:
        watcher.warn(f"listening on {address}; devices are given {trust} to trust")

    return serve(Listening(folder, host, port, own, pace, trust), watcher, ready)


def refuse_nobody(folder: Path) -> None:
    """One clear line where no device could get in."""
    journal = Journal.opened(folder)
    try:
        listed = json.loads(journal.fact("public keys") or b"[]")
    finally:
        journal.close()
    if not listed:
        raise TacitError("nobody's key is on the list", "give a file of devices' keys with --devices")


def trusted(folder: Path, authority: Path) -> Path:
    """What devices are given to trust: whoever vouches for the server, and for the proxy if another does."""
    journal = Journal.opened(folder)
    try:
        also = journal.fact("proxy ca") or b""
    finally:
        journal.close()
    if not also:
        return authority
    both = folder / "trusted.pem"
    both.write_bytes(authority.read_bytes().rstrip() + b"\n" + also)
    return both
