"""The server's end of Flower (1.41 and 1.42), with all that Tacit uses of its insides: it may move there.

The engine is an unmodified SuperLink on a loopback port, behind a :mod:`tacit.deploy.flower_gate`. The rounds
run in :mod:`tacit.deploy.flower_run`, a device's end is :mod:`tacit.deploy.flower_node`.
"""

import importlib.util
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.deploy.certificates import Authority
from tacit.deploy.children import begun, ended
from tacit.deploy.flower_gate import gate
from tacit.deploy.folders import appearing
from tacit.deploy.https import HttpsServer, in_background
from tacit.errors import TacitError

KIND, NODE = "query", "node"
LOOPBACK = "127.0.0.1"
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
_SLOT = re.compile(r"-?[0-9]{1,9}")


def needed() -> None:
    """One clear line where Flower is not installed."""
    os.environ.update({name: value for name, value in QUIET.items() if name not in os.environ})
    if importlib.util.find_spec("flwr") is None:
        raise TacitError("Flower is not installed", "install it with: pip install 'tacit[deploy]'")
    logging.getLogger("flwr").setLevel(logging.CRITICAL)  # what matters is told in our own words


def frames_in(record: Mapping[str, Any]) -> dict[int, bytes]:
    """The frames in a message's record, by slot; whatever else is in it is left out.

    Example:
        >>> frames_in({"node": "77", "-1": b"hello", "3": b"answer", "4": "no bytes", "--5": b"no slot"})
        {-1: b'hello', 3: b'answer'}
    """
    wires = {slot: wire for slot, wire in record.items() if isinstance(wire, bytes)}
    return {int(slot): wire for slot, wire in wires.items() if _SLOT.fullmatch(slot)}


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def refuse_taken(host: str, port: int, patience: float = 5.0) -> None:
    """One clear line where somebody else listens; whoever was just killed is given a moment to go."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    end = time.monotonic() + patience
    while True:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                if time.monotonic() > end:
                    problem = f"cannot listen on {host}:{port} ({error.strerror})"
                    raise TacitError(problem, "give another --port or --host") from error
                time.sleep(0.2)
            else:
                return


@dataclass
class SuperLink:
    """The engine as a process of its own, in its own process group, and the gate that devices reach it by.

    ``address`` and ``authority`` are the engine's own, on loopback; ``public`` is the gate's address, and
    ``known`` the devices' public keys that it lets through.
    """

    address: str
    public: str
    authority: Path
    secret: bytes
    process: "subprocess.Popen[bytes]"
    log: Path
    known: dict[bytes, Any]
    gate: HttpsServer
    _open: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def started(cls, folder: Path, certificate: Path, key: Path, host: str, port: int) -> "SuperLink":
        """Start both with TLS; the engine's log lies in ``folder``, its state in memory."""
        needed()
        refuse_taken(host, port)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        secret = folder / "engine.secret"
        with appearing(secret) as draft:
            draft.write_bytes(secrets.token_hex(32).encode())
        own = Authority.made(folder / "loopback").vouched("engine", [LOOPBACK])
        inner = f"{LOOPBACK}:{free_port()}"
        command = [
            *_program("flower-superlink"),
            *("--host", LOOPBACK, "--port", inner.rpartition(":")[2]),
            *("--ssl-certfile", str(own.certificate), "--ssl-keyfile", str(own.key)),
            *("--ssl-ca-certfile", str(own.authority), "--enable-supernode-auth"),
            *("--isolation", "process", "--superexec-auth-secret-file", str(secret)),
            "--disable-runtime-dependency-installation",  # and no --database: answers touch no disk
        ]
        known: dict[bytes, Any] = {}
        server = gate(host, port, certificate, key, inner, own.authority, known)
        log = folder / "engine.log"
        process = begun(command, log, {**os.environ, **QUIET, "FLWR_HOME": str(folder / "flwr")})
        public = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return cls(inner, public, own.authority, secret.read_bytes(), process, log, known, server)

    def ready(self, seconds: float = 60.0) -> None:
        """Wait until it listens."""
        host, _, port = self.address.rpartition(":")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise TacitError(f"the engine ended with status {self.process.returncode}", f"see {self.log}")
            with suppress(OSError), socket.create_connection((host, int(port)), 1.0):
                return
            time.sleep(0.05)
        raise TacitError(f"the engine does not listen on {self.address}", f"see {self.log}")

    def open_gate(self) -> None:
        """From now on devices are answered; they waited until the engine knows their keys."""
        self._open.enter_context(in_background(self.gate))

    def stop(self) -> None:
        """End it and whatever it started, and close the gate."""
        with self._open:
            ended(self.process)
        self.gate.server_close()


def _program(name: str) -> list[str]:
    """A program of Flower's beside our own interpreter."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise TacitError(f"{name} is not installed", "install it with: pip install 'tacit[deploy]'")
    return [found]


@contextmanager
def control(superlink: SuperLink) -> Generator[Any]:
    """The engine's operator interface."""
    from flwr.supercore.control.control_http_client import ControlHttpClient
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

    client = ControlHttpClient.from_server_address(
        superlink.address,
        insecure=False,
        root_certificates=superlink.authority.read_bytes(),
        interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr CLI")],
    )
    try:
        yield client
    finally:
        client.close()


def let_in(superlink: SuperLink, public_texts: Collection[str]) -> None:
    """These devices' nodes may connect, and no others: the gate knows their keys, and so does the engine."""
    from cryptography.hazmat.primitives import serialization
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes

    keys: list[Any] = [serialization.load_ssh_public_key(text.encode()) for text in public_texts]
    listed = {public_key_to_bytes(key): key for key in keys}
    for gone in superlink.known.keys() - listed.keys():
        del superlink.known[gone]
    for public in listed.keys() - superlink.known.keys():
        _register(superlink, public)
        superlink.known[public] = listed[public]


def _register(superlink: SuperLink, public: bytes) -> None:
    """The engine takes a key up; a second time changes nothing."""
    import httpx  # comes with Flower
    from flwr.proto.control_pb2 import RegisterNodeRequest
    from flwr.supercore.error import ApiErrorCode, FlowerError

    try:
        with control(superlink) as client:
            client.RegisterNode(RegisterNodeRequest(public_key=public))
    except httpx.HTTPStatusError as error:
        told = FlowerError.from_json(error.response.text)
        if told is None or told.code != ApiErrorCode.PUBLIC_KEY_ALREADY_IN_USE:
            raise


def shut_out(superlink: SuperLink, node: int) -> None:
    """Take a node's registration back: it is refused from now on; a second time changes nothing."""
    import httpx  # comes with Flower
    from flwr.proto.control_pb2 import UnregisterNodeRequest
    from flwr.supercore.error import ApiErrorCode, FlowerError

    try:
        with control(superlink) as client:
            client.UnregisterNode(UnregisterNodeRequest(node_id=node))
    except httpx.HTTPStatusError as error:
        told = FlowerError.from_json(error.response.text)
        if told is None or told.code != ApiErrorCode.NODE_NOT_FOUND:
            raise
