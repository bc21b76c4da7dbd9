"""How this room compiles: one decorator, and a type that carries the dimension into the machine code."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.core.datamodel import models
from numba.extending import NativeValue, intrinsic, register_model, unbox

from tacit.errors import TacitError

Number: TypeAlias = float | np.number
Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def kernel(function: Compiled) -> Compiled:
    """Compile a function of plain arrays: no GIL, cached on disk where there is a place to cache.

    Floating point stays strict, so that the same inputs give the same bits.

    Example:
        >>> @kernel
        ... def twice(x):
        ...     return 2 * x
        >>> twice(21)
        42
    """
    try:
        return cast(Compiled, njit(nogil=True, cache=True, error_model="numpy")(function))
    except RuntimeError:  # neither the package nor the user's cache folder can be written to
        return cast(Compiled, njit(nogil=True, error_model="numpy")(function))


@cache
def _code() -> str:
    """A digest of this room's sources.

    Numba looks at one file only when it asks whether cached machine code is stale; kernels are made of
    several. The digest is part of the type of every kernel's first argument, hence of its cache key.
    """
    whole = hashlib.blake2b(digest_size=6)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


class SpanType(types.Type):
    """The Numba type of a :class:`Span`: a different one for each dimension and each state of the sources."""

    def __init__(self, dim: int, code: str) -> None:
        self.dim = dim
        super().__init__(name=f"Span(dim={dim}, code={code})")


register_model(SpanType)(models.OpaqueModel)


@unbox(SpanType)
def _unboxed(typ: SpanType, value: Any, context: Any) -> NativeValue:
    del typ, value
    return NativeValue(context.context.get_dummy_value())


class Span:
    """How many numbers a row has, known when a kernel is compiled.

    Example:
        >>> Span(20).dim
        20
    """

    def __init__(self, dim: int) -> None:
        if dim < 1:
            raise TacitError(f"a row of {dim} numbers", "give a dimension of at least 1")
        self.dim = dim
        self._numba_type_ = SpanType(dim, _code())


@cache
def span(dim: int) -> Span:
    """The one span of a dimension.

    Example:
        >>> span(8) is span(8)
        True
    """
    return Span(dim)


def operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that writes LLVM instructions callable from kernels, without its first argument.

    Example:
        >>> @operation
        ... def three(context):
        ...     def generate(context, builder, signature, arguments):
        ...         return context.get_constant(types.intp, 3)
        ...
        ...     return types.intp(), generate
        >>> @kernel
        ... def six():
        ...     return 2 * three()
        >>> six()
        6
    """
    return cast(Callable[..., Any], intrinsic(function))


@operation
def dim_of(context: Any, shape: Any) -> Any:
    """The dimension of a span, as a constant inside a kernel."""
    del context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del builder, arguments
        return context.get_constant(types.intp, signature.args[0].dim)

    return types.intp(shape), generate
