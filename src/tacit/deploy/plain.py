"""Values of our own as plain arrays and JSON, and back into a fresh value of the same shape. No pickle."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from tacit.types import Array


def arrays_to_bytes(arrays: Mapping[str, Array], facts: Any) -> bytes:
    """Named arrays and JSON facts as one blob.

    Example:
        >>> arrays, facts = bytes_to_arrays(arrays_to_bytes({"a/b": np.arange(3)}, {"round": 2}))
        >>> arrays["a/b"].tolist(), facts
        ([0, 1, 2], {'round': 2})
    """
    from safetensors.numpy import save  # loads on first use

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(whole, {"tacit": json.dumps(facts)})


def bytes_to_arrays(blob: bytes) -> tuple[dict[str, Array], Any]:
    """What :func:`arrays_to_bytes` wrote."""
    from safetensors.numpy import load  # loads on first use

    length = int.from_bytes(blob[:8], "little")
    facts = json.loads(json.loads(blob[8 : 8 + length])["__metadata__"]["tacit"])
    return load(blob), facts


def flattened(value: Any, at: str = "") -> tuple[dict[str, Array], Any]:
    """The arrays inside a value by their path, and the rest as JSON.

    Example:
        >>> arrays, rest = flattened({"sum": np.ones(2), "seen": [1, None]})
        >>> sorted(arrays), rest
        (['/sum'], {'sum': {'array': '/sum'}, 'seen': [1, None]})
    """
    if isinstance(value, np.ndarray):
        return {at: value}, {"array": at}
    if isinstance(value, np.generic):
        return {}, value.item()
    if is_dataclass(value) and not isinstance(value, type):
        value = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    if isinstance(value, Mapping):
        parts = {str(name): flattened(part, f"{at}/{name}") for name, part in value.items()}
        return _joined(arrays for arrays, _ in parts.values()), {
            name: rest for name, (_, rest) in parts.items()
        }
    if isinstance(value, list | tuple):
        listed = [flattened(part, f"{at}/{place}") for place, part in enumerate(value)]
        return _joined(arrays for arrays, _ in listed), [rest for _, rest in listed]
    return {}, value


def _joined(parts: Any) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for arrays in parts:
        found.update(arrays)
    return found


def restored(like: Any, arrays: Mapping[str, Array], rest: Any) -> Any:
    """The value that :func:`flattened` took apart; ``like`` is a fresh one of the same type.

    Example:
        >>> restored({"sum": np.zeros(2)}, *flattened({"sum": np.ones(2)}))["sum"].tolist()
        [1.0, 1.0]
    """
    if isinstance(rest, dict) and list(rest) == ["array"]:
        return arrays[rest["array"]].copy()
    if is_dataclass(like) and not isinstance(like, type):
        for entry in fields(like):
            whole = restored(getattr(like, entry.name), arrays, rest[entry.name])
            object.__setattr__(like, entry.name, whole)
        return like
    if isinstance(rest, dict):
        known = like if isinstance(like, Mapping) else {}
        return {name: restored(known.get(name), arrays, part) for name, part in rest.items()}
    if isinstance(rest, list):
        known = like if isinstance(like, list | tuple) else ()
        parts = [
            restored(known[place] if place < len(known) else None, arrays, part)
            for place, part in enumerate(rest)
        ]
        return tuple(parts) if isinstance(like, tuple) else parts
    return rest
