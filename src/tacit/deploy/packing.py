"""Named arrays and histories as bytes, for the store."""

import json
from collections.abc import Mapping

import numpy as np

from tacit.deploy.history import History
from tacit.errors import TacitError
from tacit.types import Array


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Named arrays as one safetensors value.

    Example:
        >>> unpacked(packed({"user": np.ones((1, 2), "f4")}))["user"].tolist()
        [[1.0, 1.0]]
    """
    from safetensors.numpy import save  # loads on first use

    return save({name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()})


def unpacked(raw: bytes) -> dict[str, Array]:
    """The arrays that :func:`packed` wrote, free to be changed."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return {name: array.copy() for name, array in load(raw).items()}
    except SafetensorError as error:
        raise TacitError(
            "stored arrays are damaged", "put a good copy of the device's folder back"
        ) from error


def packed_history(history: History) -> bytes:
    """A history as JSON lines of item, value, time."""
    return json.dumps(history.rows(), separators=(",", ":")).encode()


def unpacked_history(raw: bytes) -> History:
    """The history that :func:`packed_history` wrote."""
    return History.of([(item, value, when) for item, value, when in json.loads(raw)])
