"""A run of Flower's engine (1.41 and 1.42), in which Tacit's server takes the part of the ServerApp itself.

No process is started by the engine and no code is delivered.
"""

import hashlib
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tacit.deploy.flower_engine import KIND, NODE, SuperLink, control, frames_in
from tacit.errors import TacitError

PATIENCE = 5.0  # seconds after which an engine that does not answer is lost, and a message that does not come
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
        from flwr.proto.runtime_pb2 import PullAppMessagesRequest

        wanted = PullAppMessagesRequest(message_ids=list(self.sent))
        found = self.grid._runtime_client.PullMessages(wanted)
        for told, tree in zip(found.messages_list, found.message_object_trees, strict=True):
            self.sent.pop(told.metadata.reply_to_message_id, None)
            for slot, wire in self._frames(told, tree).items():
                yield told.metadata.src_node_id, slot, wire

    def _frames(self, told: Any, tree: Any) -> dict[int, bytes]:
        """The frames of an answer; none where it did not come whole within a few seconds, or is no answer.

        Whoever is killed in the middle of sending, or sends junk, keeps nobody else waiting.
        """
        import httpx  # comes with Flower
        from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
        from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
        from flwr.supercore.inflatable.inflatable_protobuf_utils import make_pull_object_fn_protobuf
        from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, pull_objects

        client, node, run = self.grid._runtime_client, self.grid.node, told.metadata.run_id
        name = told.metadata.message_id
        try:
            contents = pull_objects(
                [one.object_id for one in iterate_object_tree(tree)],
                make_pull_object_fn_protobuf(client.PullObject, node, run),
                max_time=PATIENCE,
                initial_backoff=0.1,
                backoff_cap=1.0,
            )
            got = ConfirmMessageReceivedRequest(node=node, run_id=run, message_object_id=name)
            client.ConfirmMessageReceived(got)
            message: Any = inflate_object_from_contents(name, contents)
            records = {} if message.has_error() else message.content.config_records
            return {slot: wire for record in records.values() for slot, wire in frames_in(record).items()}
        except httpx.HTTPError:
            raise  # the engine itself is lost
        except Exception:
            return {}

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
