"""What a server says of a run before anybody takes part: enough to build the method on the device."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.interactions import Features, Scale
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.round import Method, Surroundings

FORMAT = 1


@dataclass(frozen=True)
class RunAbout:
    """The public facts of one run: its configuration, its catalogue by raw id, and what it promises.

    ``config`` is the resolved experiment (the table in a run folder's ``config.toml``). ``items`` are raw
    ids in the order of their positions, ``features`` what describes them (titles under ``texts``).
    ``people`` counts those who may take part; ``about_people`` holds names and labels of personal features,
    never values. ``claims`` maps an exchange to the claim it is announced with (``Claim.to_json``).
    ``also`` is for whatever else both sides agree on; it must fit into JSON.

    Example:
        >>> about = RunAbout("r1", {"method": "fedrec"}, items=("7", "42"), people=3)
        >>> RunAbout.decoded(about.encoded()) == about, about.position("42")
        (True, 1)
    """

    run: str
    config: Mapping[str, Any]
    items: tuple[str, ...]
    people: int
    server: str = ""
    scale: Scale | None = None
    features: Features = field(default_factory=Features)
    about_people: Features = field(default_factory=Features)
    claims: Mapping[str, Any] = field(default_factory=dict)
    also: Mapping[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Equal when they would be written alike."""
        return isinstance(other, RunAbout) and self.encoded() == other.encoded()

    def __hash__(self) -> int:
        """By the run."""
        return hash(self.run)

    @property
    def method_name(self) -> str:
        """The method's name."""
        return str(self.config.get("method", ""))

    @property
    def delta(self) -> float:
        """The delta at which the run states its epsilon."""
        return float(self.config.get("delta", 1e-6))

    def positions(self) -> dict[str, int]:
        """The position of every raw id."""
        return {raw: place for place, raw in enumerate(self.items)}

    def position(self, raw: str) -> int:
        """The position of one raw id; -1 where the catalogue lacks it."""
        return self.items.index(raw) if raw in self.items else -1

    def titles(self) -> tuple[str, ...]:
        """One title per item, empty where none is known."""
        titles = self.features.texts.get("title")
        return tuple(map(str, titles)) if titles is not None else ("",) * len(self.items)

    def surroundings(self) -> "Surroundings":
        """What the method is settled with; the same on every device and on the server."""
        from tacit.round import Surroundings  # heavy rooms load on first use

        return Surroundings(self.people, len(self.items), self.features, self.about_people, self.delta)

    def method(self) -> "Method":
        """The method as it runs among these people and items, from the installed code alone."""
        from tacit.config.experiment import Experiment, method_of
        from tacit.round import Method

        method = method_of(Experiment.from_mapping(self.config))
        if not isinstance(method, Method):
            raise TacitError(f"{self.method_name} sees all data in one place", "run it with `tacit run`")
        return method.settled(self.surroundings())

    def encoded(self) -> bytes:
        """The facts as bytes: for the wire, and for the store."""
        plain = {
            "format": FORMAT,
            "run": self.run,
            "config": dict(self.config),
            "items": list(self.items),
            "people": self.people,
            "server": self.server,
            "scale": None
            if self.scale is None
            else list(map(float, (self.scale.low, self.scale.high, self.scale.step))),
            "features": _written(self.features),
            "about_people": _written(self.about_people),
            "claims": dict(self.claims),
            "also": dict(self.also),
        }
        return json.dumps(plain, separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decoded(cls, raw: bytes) -> "RunAbout":
        """The facts that :meth:`encoded` wrote; anything else is one clear error."""
        try:
            plain = json.loads(raw)
            if not isinstance(plain, dict) or plain.pop("format", None) != FORMAT:
                raise ValueError("another format")
            scale = plain["scale"]
            plain["scale"] = None if scale is None else Scale(*map(float, scale))
            plain["items"] = tuple(map(str, plain["items"]))
            plain["features"] = _read(plain["features"], len(plain["items"]))
            plain["about_people"] = _read(plain["about_people"], None)
            if int(plain["people"]) < 1 or len(set(plain["items"])) != len(plain["items"]):
                raise ValueError("nobody, or an item twice")
            return cls(**plain)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TacitError(
                f"what the server says of the run cannot be read ({type(error).__name__})",
                "both sides need the same version of Tacit",
            ) from error


def _written(features: Features) -> dict[str, Any]:
    """Features as JSON data, losslessly (32-bit floats are short decimals of doubles)."""
    return {entry.name: _plain(getattr(features, entry.name)) for entry in fields(Features)}


def _plain(known: Any) -> Any:
    if isinstance(known, Mapping):
        return {name: _plain(column) for name, column in known.items()}
    return list(known) if isinstance(known, tuple) else known.tolist()


_TYPES: Mapping[str, Any] = {
    "categories": np.int32,
    "flags": np.uint8,
    "numbers": np.float32,
    "texts": np.str_,
}


def _read(plain: Mapping[str, Any], rows: int | None) -> Features:
    columns: dict[str, dict[str, Any]] = {}
    for kind, dtype in _TYPES.items():
        columns[kind] = {str(name): np.array(column, dtype=dtype) for name, column in plain[kind].items()}
        for name, column in columns[kind].items():
            if rows is not None and len(column) != rows:
                raise ValueError(f"{name} has another length")
    labels = {str(name): tuple(map(str, told)) for name, told in plain["labels"].items()}
    for name, flags in columns["flags"].items():
        if flags.ndim != 2:
            columns["flags"][name] = flags.reshape(len(flags), len(labels.get(name, ())))
    return Features(
        categories=columns["categories"],
        flags=columns["flags"],
        numbers=columns["numbers"],
        texts=columns["texts"],
        labels=labels,
        from_log=tuple(map(str, plain["from_log"])),
    )
