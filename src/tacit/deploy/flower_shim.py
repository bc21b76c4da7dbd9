"""What Flower's own programs load: a thin app whose device half answers from a Tacit folder.

``flower-supernode --node-config 'folder="mine" ca="ca.pem"' …`` takes part with the folder's history, limits
and ledger, with the code installed here; the server sends none. Flower starts this anew for every message, so
a method whose answers take several messages (a secure sum) is refused with a name; ``tacit device`` runs it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from tacit.deploy.flower_engine import NODE, frames_in
from tacit.deploy.participation import Participant
from tacit.deploy.proxy_http import reached
from tacit.deploy.store import DeviceStore
from tacit.errors import TacitError

client = ClientApp()
server = ServerApp()


@client.query()
def answered(message: Message, context: Context) -> Message:
    """The answers to a message's frames, from the folder that the node's configuration names."""
    wires = answers(dict(context.node_config), frames_in(message.content.config_records["frames"]))
    told: Any = {NODE: str(context.node_id), **{str(slot): wire for slot, wire in wires.items()}}
    return Message(RecordDict({"frames": ConfigRecord(told)}), reply_to=message)


def answers(node: Mapping[str, Any], frames: Mapping[int, bytes]) -> dict[int, bytes]:
    """Frames in, frames out, by slot."""
    folder, key, ca = (node.get(name) for name in ("folder", "key-file", "ca"))
    if not folder:
        raise TacitError("the node does not say where its folder is", "add --node-config 'folder=\"DIR\"'")
    authority = None if ca is None else Path(str(ca))
    seeded = os.environ.get("TACIT_SEEDED")
    with (
        DeviceStore.opened(Path(str(folder)), None if key is None else Path(str(key))) as store,
        store.taking_part(),
    ):
        participant = Participant(
            store,
            proxy=lambda address: reached(address, authority),
            server=str(node.get("server-key", "")),
            seeded=None if seeded is None else int(seeded),
            lasting=False,
        )
        return {slot: participant.answer(wire) for slot, wire in frames.items()}


@server.main()
def served(grid: Grid, context: Context) -> None:
    """The server of a federation is ``tacit server``, which takes this part itself."""
    del grid, context
    raise TacitError("this app has no server of its own", "run `tacit server` and leave the rest to it")
