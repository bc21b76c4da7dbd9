"""The server's end of Flower (1.41 and 1.42), with all that Tacit uses of its insides: it may move there.

The engine is an unmodified SuperLink. Tacit's server takes the part of a run's ServerApp itself (no process
is started by the engine, no code is delivered). A device's end is :mod:`tacit.deploy.flower_node`.
"""

import hashlib
import importlib.util
import logging
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.deploy.children import begun, ended
from tacit.errors import TacitError

KIND, NODE = "query", "node"
PATIENCE = 5.0  # seconds after which an engine that does not answer is lost
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
_FAB = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "tacit"
version = "1.0.0"
description = "Runs what is installed, carries no code."
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "tacit"
[tool.flwr.app.components]
serverapp = "tacit.deploy.flower_shim:server"
clientapp = "tacit.deploy.flower_shim:client"
"""


def needed() -> None:
    """One clear line where Flower is not installed."""
    os.environ.update({name: value for name, value in QUIET.items() if name not in os.environ})
    if importlib.util.find_spec("flwr") is None:
        raise TacitError("Flower is not installed", "install it with: pip install 'tacit[deploy]'")
    logging.getLogger("flwr").setLevel(logging.CRITICAL)  # what matters is told in our own words


def frames_in(record: Mapping[str, Any]) -> dict[int, bytes]:
    """The frames in a message's record, by slot; whatever else is in it is left out.

    Example:
        >>> frames_in({"node": "77", "-1": b"hello", "3": b"answer", "4": "no bytes"})
        {-1: b'hello', 3: b'answer'}
    """
    wires = {slot: wire for slot, wire in record.items() if isinstance(wire, bytes)}
    return {int(slot): wire for slot, wire in wires.items() if slot.lstrip("-").isdigit()}


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
    """The engine as a process of its own, in its own process group."""

    address: str
    authority: Path
    secret: bytes
    process: "subprocess.Popen[bytes]"
    log: Path

    @classmethod
    def started(
        cls, folder: Path, certificate: Path, key: Path, authority: Path, host: str, port: int
    ) -> "SuperLink":
        """Start it with TLS and node authentication; its own state lies in ``folder``."""
        needed()
        refuse_taken(host, port)
        folder.mkdir(parents=True, exist_ok=True)
        secret = folder / "engine.secret"
        if not secret.exists():
            secret.touch(mode=0o600)
            secret.write_bytes(secrets.token_hex(32).encode())
        command = [
            *_program("flower-superlink"),
            *("--host", host, "--port", str(port)),
            *("--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)),
            *("--ssl-ca-certfile", str(authority), "--enable-supernode-auth"),
            *("--isolation", "process", "--superexec-auth-secret-file", str(secret)),
            *("--database", str(folder / "engine.sqlite"), "--disable-runtime-dependency-installation"),
        ]
        log = folder / "engine.log"
        environment = {**os.environ, **QUIET, "FLWR_HOME": str(folder / "flwr")}
        process = begun(command, log, environment)
        reached = "127.0.0.1" if host in {"0.0.0.0", "::"} else host
        return cls(f"{reached}:{port}", authority, secret.read_bytes(), process, log)

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

    def stop(self) -> None:
        """End it and whatever it started."""
        ended(self.process)


def _program(name: str) -> list[str]:
    """A program of Flower's beside our own interpreter."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise TacitError(f"{name} is not installed", "install it with: pip install 'tacit[deploy]'")
    return [found]


@dataclass
class Run:
    """One run of the engine, in which this process takes the ServerApp's part."""

    superlink: SuperLink
    grid: Any
    heartbeat: Any
    sent: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def begun(cls, superlink: SuperLink, seconds: float = 30.0) -> "Run":
        """Start a run and take its task."""
        from flwr.cli.build import build_fab_from_files
        from flwr.common.serde import fab_to_proto, run_from_proto
        from flwr.proto.control_pb2 import StartRunRequest
        from flwr.proto.runtime_pb2 import AcquireTaskRequest, PullTaskInputRequest
        from flwr.supercore.constant import TaskType
        from flwr.supercore.fab import Fab
        from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
        from flwr.supercore.task_identity import TaskIdentity
        from flwr.superlink.grid import HttpGrid

        raw, _ = build_fab_from_files({"pyproject.toml": _FAB.encode()})
        fab = Fab(hashlib.sha256(raw).hexdigest(), raw, {})
        with control(superlink) as client:
            client.StartRun(StartRunRequest(fab=fab_to_proto(fab)))
        token, end = "", time.monotonic() + seconds
        with _executor(superlink) as client:
            while not token:
                wanted = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
                found = client.AcquireTask(wanted)
                token = found.token
                if not token and time.monotonic() > end:
                    raise TacitError("the engine does not start a run", f"see {superlink.log}")
                if not token:
                    time.sleep(0.05)
        grid: Any = HttpGrid(
            superlink.address, insecure=False, root_certificates=superlink.authority.read_bytes(), token=token
        )
        grid._retry_invoker = _soon_lost()
        heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(grid._runtime_client))
        heartbeat.start()
        task = grid._runtime_client.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id, TaskIdentity.run_id = task.task_id, task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        grid.set_run(run_from_proto(task.run))
        return cls(superlink, grid, heartbeat)

    def nodes(self) -> list[int]:
        """The nodes that are there now."""
        if self.superlink.process.poll() is not None:
            raise ConnectionError("its process ended")
        return list(self.grid.get_node_ids())

    def push(self, frames: Mapping[int, Mapping[int, bytes]], seconds: float) -> None:
        """Send each node its frames by slot; answers are awaited for so long.

        The node's number keeps what two nodes are sent apart: the engine stores equal contents once.
        """
        from flwr.app import ConfigRecord, Message, RecordDict

        for node, by_slot in frames.items():
            wires: Any = {NODE: str(node), **{str(slot): wire for slot, wire in by_slot.items()}}
            message = Message(RecordDict({"frames": ConfigRecord(wires)}), node, KIND, ttl=max(5.0, seconds))
            (number,) = self.grid.push_messages([message])
            if number:
                self.sent[number] = tuple(by_slot)

    def pull(self) -> Iterator[tuple[int, int, bytes]]:
        """Answers that have come: node, slot, frame."""
        if self.superlink.process.poll() is not None:
            raise ConnectionError("its process ended")
        if not self.sent:
            return
        for message in self.grid.pull_messages(list(self.sent)):
            self.sent.pop(message.metadata.reply_to_message_id, None)
            if message.has_error():
                continue
            for record in message.content.config_records.values():
                for slot, wire in frames_in(record).items():
                    yield message.metadata.src_node_id, slot, wire

    def drop(self) -> None:
        """Wait for nothing that was sent before."""
        self.sent.clear()

    def finish(self, *, completed: bool) -> None:
        """Tell the engine how the run ended."""
        from flwr.common.constant import SubStatus
        from flwr.proto.runtime_pb2 import PushTaskOutputRequest

        status = SubStatus.COMPLETED if completed else SubStatus.STOPPED
        with suppress(Exception):
            self.grid._retry_invoker.max_tries = 1
            self.grid._runtime_client.PushTaskOutput(PushTaskOutputRequest(sub_status=status, details=""))
        if self.heartbeat.is_running:
            self.heartbeat.stop()
        self.grid.close()


def _soon_lost() -> Any:
    """Retries for a few seconds: an engine that is gone is started again, not waited for."""
    import httpx
    from flwr.supercore.retry import RetryInvoker
    from flwr.supercore.retry.retry_invoker import exponential

    return RetryInvoker(
        lambda: exponential(max_delay=1), httpx.TransportError, max_tries=None, max_time=PATIENCE
    )


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


@contextmanager
def _executor(superlink: SuperLink) -> Generator[Any]:
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor, SuperExecAuthHttpInterceptor
    from flwr.supercore.runtime import RuntimeHttpClient

    client = RuntimeHttpClient.from_server_address(
        superlink.address,
        insecure=False,
        root_certificates=superlink.authority.read_bytes(),
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="SuperExec"),
            SuperExecAuthHttpInterceptor(
                master_secret=superlink.secret, protected_methods={"/flwr.proto.Runtime/AcquireTask"}
            ),
        ],
    )
    try:
        yield client
    finally:
        client.close()


def let_in(superlink: SuperLink, public_text: str) -> None:
    """Register a device's public key, so that its node may connect; a second time changes nothing."""
    import httpx  # comes with Flower
    from cryptography.hazmat.primitives import serialization
    from flwr.proto.control_pb2 import RegisterNodeRequest
    from flwr.supercore.error import ApiErrorCode, FlowerError
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes

    key: Any = serialization.load_ssh_public_key(public_text.encode())
    try:
        with control(superlink) as client:
            client.RegisterNode(RegisterNodeRequest(public_key=public_key_to_bytes(key)))
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
