"""A device's node within the device's own process, speaking Flower's protocol (1.41 and 1.42) itself.

The shipped node starts a Python process for every message, ends the whole process when it is not let in and
cannot be stopped while its server is away. This one takes messages, answers them, and says what is wrong.
"""

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.deploy.flower_engine import NODE, frames_in, needed
from tacit.errors import TacitError

BEAT = 30.0  # seconds; the engine takes a node for gone after twice as long
SLOWEST = 10.0  # seconds between two attempts to reach a server that is away
LINGER = 3.0  # seconds between the last answer and leaving
Answers = Callable[[Mapping[int, bytes]], Mapping[int, bytes]]


@dataclass(frozen=True)
class Place:
    """Where a node connects: ``host:port``, the certificate that vouches for it, the node's private key."""

    address: str
    authority: Path | None
    key: Any


@dataclass
class Node:
    """A node. ``known`` is its number from an earlier time; ``found`` is told the number.

    ``told`` hears a line when the server cannot be reached, and another when it can again.
    """

    place: Place
    told: Callable[[str], None]
    stopping: Callable[[], bool]
    known: int | None = None
    found: Callable[[int], None] = lambda number: None  # noqa: ARG005
    poll: float = 1.0
    patience: float = 10.0
    _away: int = field(default=0, init=False)
    _answered: float = field(default=-LINGER, init=False)

    def run(self, answer: Answers) -> None:
        """Take messages and answer them until told to stop; let in anew where the engine was started anew."""
        needed()
        with _client(self.place) as client:
            while (number := self._let_in(client)) is not None:
                self.known = number
                self.found(number)
                with suppress(_Unknown):
                    self._take_part(client, number, answer)
                    return
                self._wait(self.poll)

    def _take_part(self, client: Any, number: int, answer: Answers) -> None:
        with _heart(client, number):
            while not self.stopping():
                if self._asked(lambda: _served(client, number, answer)):
                    self._answered = time.monotonic()
                else:
                    self._wait(self.poll)
            self._linger()
        with suppress(Exception):
            _deactivate(client, number)

    def _linger(self) -> None:
        """The engine drops answers of a node that has left: the last one is given time to be fetched."""
        time.sleep(max(0.0, self._answered + LINGER - time.monotonic()))

    def _let_in(self, client: Any) -> int | None:
        """The node's number; ``None`` if stopped before. A key nobody registered is refused in the end."""
        end = time.monotonic() + self.patience
        while not self.stopping():
            number = self._asked(lambda: _activated(client, self.place.key, self.known))
            if number:
                return int(number)
            if number == 0 and time.monotonic() > end:
                raise _stranger()
            if self._away:
                end = time.monotonic() + self.patience
            self._wait(self.poll)
        return None

    def _asked(self, question: Callable[[], Any]) -> Any:
        """What the server says; ``None`` while it cannot be reached."""
        import httpx  # comes with Flower

        try:
            found = question()
        except httpx.HTTPStatusError as error:
            if error.response.status_code < 500:
                raise _Unknown from error
            return self._missed()
        except httpx.TransportError as error:
            if any(word in str(error).lower() for word in ("certificate", "ssl", "tls")):
                raise TacitError(
                    f"the certificate of {self.place.address} is not one that --ca vouches for",
                    "give the server's own ca.pem with --ca, and the address it was made for",
                ) from error
            return self._missed()
        except _lost_objects():
            return None  # the question is asked again
        if self._away:
            self._away = 0
            self.told("the server is there again")
        return found

    def _missed(self) -> None:
        if not self._away:
            self.told(f"{self.place.address} cannot be reached; trying again until it can (Ctrl-C stops)")
        self._away += 1

    def _wait(self, seconds: float) -> None:
        """Longer while the server is away; cut short when told to stop."""
        end = time.monotonic() + min(seconds * 2 ** min(self._away, 8), max(seconds, SLOWEST))
        while not self.stopping() and time.monotonic() < end:
            time.sleep(min(0.1, seconds))


class _Unknown(Exception):
    """The server does not know this node, now."""


def _stranger() -> TacitError:
    return TacitError(
        "the server does not let this device in (its key is not on the operator's list, or was taken off it)",
        "give the operator what `tacit device DIR --key` prints, and check this machine's clock",
    )


def _lost_objects() -> tuple[type[BaseException], ...]:
    from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectPushError

    return (ObjectPullError, ObjectPushError)


@contextmanager
def _client(place: Place) -> Generator[Any]:
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
    from flwr.supernode.fleet_http_client import FleetHttpClient
    from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

    signed = NodeAuthHttpInterceptor(place.key, place.key.public_key())
    version = RuntimeVersionHttpInterceptor(component_name="SuperNode")
    try:
        root = None if place.authority is None else place.authority.read_bytes()
        client = FleetHttpClient.from_server_address(
            place.address, insecure=False, root_certificates=root, interceptors=[version, signed]
        )
    except (OSError, ValueError) as error:
        raise TacitError(
            f"{place.authority} is no certificate that can be used", "give the server's ca.pem with --ca"
        ) from error
    with client:
        yield client


def _activated(client: Any, key: Any, known: int | None) -> int:
    """The node's number, 0 if it is not let in.

    After a kill the engine still counts the old process as there and refuses a second activation; a
    heartbeat under the number it had proves that it is the same key, and nothing else is needed.
    """
    import httpx
    from flwr.proto.fleet_pb2 import ActivateNodeRequest
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes

    wanted = ActivateNodeRequest(public_key=public_key_to_bytes(key.public_key()), heartbeat_interval=BEAT)
    try:
        return int(client.ActivateNode(wanted).node_id)
    except httpx.HTTPStatusError as error:
        if error.response.status_code >= 500:
            raise
    if known is None:
        return 0
    try:
        return known if _beat(client, known) else 0
    except httpx.HTTPStatusError:
        return 0


def _beat(client: Any, number: int) -> bool:
    from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
    from flwr.proto.node_pb2 import Node as Told

    return bool(
        client.SendNodeHeartbeat(
            SendNodeHeartbeatRequest(node=Told(node_id=number), heartbeat_interval=BEAT)
        ).success
    )


@contextmanager
def _heart(client: Any, number: int) -> Generator[None]:
    """Beats while the block runs; a beat that is missed is followed by another."""
    stop = threading.Event()

    def beats() -> None:
        while not stop.wait(BEAT * 0.6):
            with suppress(Exception):
                _beat(client, number)

    thread = threading.Thread(target=beats, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _deactivate(client: Any, number: int) -> None:
    from flwr.proto.fleet_pb2 import DeactivateNodeRequest

    client.DeactivateNode(DeactivateNodeRequest(node_id=number))


def _served(client: Any, number: int, answer: Answers) -> bool:
    """Answer one message, if there is one."""
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.proto.node_pb2 import Node as Told

    node = Told(node_id=number)
    message = _pulled(client, node)
    if message is None:
        return False
    wires = answer(frames_in(message.content["frames"]))
    told: Any = {NODE: str(number), **{str(slot): wire for slot, wire in wires.items()}}
    _push(client, node, Message(RecordDict({"frames": ConfigRecord(told)}), reply_to=message))
    return True


def _pulled(client: Any, node: Any) -> Any:
    """The next message with everything in it, confirmed; ``None`` if there is none."""
    from flwr.common.serde import message_from_proto
    from flwr.proto.fleet_pb2 import PullMessagesRequest
    from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
    from flwr.supercore.inflatable.inflatable_protobuf_utils import (
        make_confirm_message_received_fn_protobuf,
        make_pull_object_fn_protobuf,
    )
    from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, pull_objects

    found = client.PullMessages(PullMessagesRequest(node=node))
    if not found.messages_list:
        return None
    head = message_from_proto(found.messages_list[0]).metadata
    tree = iterate_object_tree(found.message_object_trees[0])
    contents = pull_objects(
        [one.object_id for one in tree], make_pull_object_fn_protobuf(client.PullObject, node, head.run_id)
    )
    confirm = make_confirm_message_received_fn_protobuf(client.ConfirmMessageReceived, node, head.run_id)
    confirm(head.message_id)
    message: Any = inflate_object_from_contents(head.message_id, contents)
    message.metadata.__dict__["_message_id"] = head.message_id
    return message


def _push(client: Any, node: Any, reply: Any) -> None:
    """Send a reply: its head first, then the objects that the server lacks."""
    from flwr.app.message import remove_content_from_message
    from flwr.common.serde import message_to_proto
    from flwr.proto.fleet_pb2 import PushMessagesRequest
    from flwr.supercore.inflatable.inflatable_object import (
        get_all_nested_objects,
        get_object_tree,
        no_object_id_recompute,
    )
    from flwr.supercore.inflatable.inflatable_protobuf_utils import make_push_object_fn_protobuf
    from flwr.supercore.inflatable.inflatable_utils import push_objects

    with no_object_id_recompute():
        reply.metadata.__dict__["_message_id"] = reply.object_id
        objects, tree = get_all_nested_objects(reply), get_object_tree(reply)
        sent = client.PushMessages(
            PushMessagesRequest(
                node=node,
                messages_list=[message_to_proto(remove_content_from_message(reply))],
                message_object_trees=[tree],
                clientapp_runtime_list=[0.0],
            )
        )
        run = reply.metadata.run_id
        put = make_push_object_fn_protobuf(client.PushObject, node, run, sent.session_id)
        push_objects(objects, put, object_ids_to_push=set(sent.objects_to_push))
