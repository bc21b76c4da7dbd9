"""Everything that Tacit uses of Flower's own insides (1.41 and 1.42), in one place: it may move there.

The engine is an unmodified SuperLink. Tacit's server takes the part of a run's ServerApp itself (no process
is started by the engine, no code is delivered), and a device may run its node within itself.
"""

import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.deploy.children import begun, ended
from tacit.errors import TacitError

KIND = "query"
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
    try:
        import flwr  # noqa: F401
    except ImportError as error:
        raise TacitError("Flower is not installed", "install it with: pip install 'tacit[deploy]'") from error


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
        grid = HttpGrid(
            superlink.address, insecure=False, root_certificates=superlink.authority.read_bytes(), token=token
        )
        heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(grid._runtime_client))
        heartbeat.start()
        task = grid._runtime_client.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id, TaskIdentity.run_id = task.task_id, task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        grid.set_run(run_from_proto(task.run))
        return cls(superlink, grid, heartbeat)

    def nodes(self) -> list[int]:
        """The nodes that are there now."""
        return list(self.grid.get_node_ids())

    def push(self, frames: Mapping[int, Mapping[int, bytes]], seconds: float) -> None:
        """Send each node its frames by slot; answers are awaited for so long."""
        from flwr.app import ConfigRecord, Message, RecordDict

        for node, by_slot in frames.items():
            wires = ConfigRecord({str(slot): wire for slot, wire in by_slot.items()})
            message = Message(RecordDict({"frames": wires}), node, KIND, ttl=max(5.0, seconds))
            (number,) = self.grid.push_messages([message])
            if number:
                self.sent[number] = tuple(by_slot)

    def pull(self) -> Iterator[tuple[int, int, bytes]]:
        """Answers that have come: node, slot, frame."""
        if not self.sent:
            return
        for message in self.grid.pull_messages(list(self.sent)):
            self.sent.pop(message.metadata.reply_to_message_id, None)
            if message.has_error():
                continue
            for record in message.content.config_records.values():
                for slot, wire in record.items():
                    if isinstance(wire, bytes) and slot.lstrip("-").isdigit():
                        yield message.metadata.src_node_id, int(slot), wire

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


@contextmanager
def control(superlink: SuperLink) -> Iterator[Any]:
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
def _executor(superlink: SuperLink) -> Iterator[Any]:
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
    """Register a device's public key, so that its node may connect; once is enough."""
    from cryptography.hazmat.primitives import serialization
    from flwr.proto.control_pb2 import RegisterNodeRequest
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes

    key: Any = serialization.load_ssh_public_key(public_text.encode())
    with control(superlink) as client:
        client.RegisterNode(RegisterNodeRequest(public_key=public_key_to_bytes(key)))


def shut_out(superlink: SuperLink, node: int) -> None:
    """Take a node's registration back: it is refused from now on."""
    from flwr.proto.control_pb2 import UnregisterNodeRequest

    with control(superlink) as client:
        client.UnregisterNode(UnregisterNodeRequest(node_id=node))


@dataclass(frozen=True)
class Node:
    """A device's node within the device's own process, speaking the engine's own protocol."""

    address: str
    authority: str | None
    key: Any

    def run(
        self,
        answer: Callable[[Mapping[int, bytes]], Mapping[int, bytes]],
        stopping: Callable[[], bool],
        *,
        poll: float = 1.0,
        patience: float | None = None,
    ) -> None:
        """Take messages and answer them until told to stop."""
        needed()
        from flwr.supernode.fleet_http_connection import http_request_response

        authority = None if self.authority is None else Path(self.authority).read_bytes()
        keys = (self.key, self.key.public_key())
        try:
            with http_request_response(
                self.address,
                insecure=False,
                root_certificates=authority,
                authentication_keys=keys,
                max_wait_time=patience,
            ) as connection:
                while not stopping():
                    if not _served(connection, answer):
                        time.sleep(poll)
        except SystemExit as error:
            raise TacitError(
                "the server does not let this device in (an unknown or revoked key, or another certificate)",
                "give the operator this device's public key, and check --ca",
            ) from error


def _served(connection: Any, answer: Callable[[Mapping[int, bytes]], Mapping[int, bytes]]) -> bool:
    """Answer one message, if there is one."""
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.supercore.inflatable.inflatable_object import (
        get_all_nested_objects,
        get_object_tree,
        iterate_object_tree,
        no_object_id_recompute,
    )
    from flwr.supercore.inflatable.inflatable_utils import (
        inflate_object_from_contents,
        pull_objects,
        push_objects,
    )

    _, receive, send, _, _, pull_object, push_object, confirm = connection
    found = receive()
    if found is None:
        return False
    head, tree = found
    run = head.metadata.run_id
    contents = pull_objects(
        [one.object_id for one in iterate_object_tree(tree)],
        pull_object_fn=lambda name: pull_object(run, name),
    )
    confirm(run, head.metadata.message_id)
    message: Any = inflate_object_from_contents(head.metadata.message_id, contents)
    message.metadata.__dict__["_message_id"] = head.metadata.message_id
    frames = message.content["frames"]
    wires = {int(slot): wire for slot, wire in frames.items()}
    told = ConfigRecord({str(slot): wire for slot, wire in answer(wires).items()})
    reply = Message(RecordDict({"frames": told}), reply_to=message)
    with no_object_id_recompute():
        reply.metadata.__dict__["_message_id"] = reply.object_id
        objects = get_all_nested_objects(reply)
        reply_tree = get_object_tree(reply)
        wanted, session = send(reply, reply_tree, 0.0)
        push_objects(
            objects,
            push_object_fn=lambda name, content: push_object(run, session, name, content),
            object_ids_to_push=wanted,
        )
    return True
