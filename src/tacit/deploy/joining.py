"""What a device needs to know to take part: where the server is and which certificate to trust."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Joining:
    """The networking half of ``tacit device``: :func:`tacit.deploy.participation.participate` takes it.

    ``serve`` answers for everybody in the folder (an edge gateway); otherwise it hosts one person. ``ca`` is
    the certificate that vouches for server and proxy; without it the system's are trusted. ``charter`` is the
    fingerprint of the server's key, where the person was told it. ``rounds`` stops after so many answered
    rounds (0: until the run ends).
    """

    folder: Path
    key_file: Path | None
    server: str
    ca: Path | None = None
    charter: str = ""
    serve: bool = False
    rounds: int = 0
    quiet: bool = False
    as_json: bool = False
