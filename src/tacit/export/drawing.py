"""A graph that is drawn operation by operation, and written in the ONNX format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.types import Array

OPSET = 18
IR_VERSION = 9  # readable by every ONNX Runtime since 1.16


def onnx_library() -> Any:
    """The library that writes the format, or one line on how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise TacitError("writing ONNX needs the onnx package", "run: pip install 'tacit[export]'") from error
    return onnx


@dataclass
class Drawing:
    """Inputs, constants and operations, in the order they were added; names of results are given back."""

    inputs: dict[str, int] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = field(default_factory=list)

    def takes(self, name: str, width: int) -> str:
        """One row of ``width`` numbers per person."""
        self.inputs[name] = width
        return name

    def constant(self, name: str, array: Array) -> str:
        """Numbers that the graph carries."""
        kept = np.ascontiguousarray(array, dtype=np.float32 if array.dtype.kind == "f" else array.dtype)
        self.constants[name] = kept
        return name

    def does(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """One operation; the name of its result."""
        name = f"{operation.lower()}{len(self.nodes)}"
        self.nodes.append((operation, inputs, name, attributes))
        return name

    def times(self, left: str, name: str, right: Array) -> str:
        """A matrix product with a constant."""
        return self.does("MatMul", left, self.constant(name, right))

    def written(self, path: Path, scores: str, items: int, about: Mapping[str, str]) -> None:
        """Write the file: ``scores`` is the result to give out, ``about`` is kept as properties."""
        onnx = onnx_library()
        helper, floats = onnx.helper, onnx.TensorProto.FLOAT
        nodes = [
            helper.make_node(operation, list(inputs), [name], **attributes)
            for operation, inputs, name, attributes in (*self.nodes, ("Identity", (scores,), "scores", {}))
        ]
        graph = helper.make_graph(
            nodes,
            "scores",
            [helper.make_tensor_value_info(name, floats, ["people", n]) for name, n in self.inputs.items()],
            [helper.make_tensor_value_info("scores", floats, ["people", items])],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="tacit",
        )
        helper.set_model_props(model, dict(about))
        onnx.checker.check_model(model, full_check=True)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(model.SerializeToString())
        except OSError as error:
            raise TacitError(f"cannot write {path} ({error.strerror})", "choose another file") from error


def column(array: Any) -> Array:
    """A row of numbers as the last axis of a matrix product."""
    return np.asarray(array).reshape(-1, 1)
