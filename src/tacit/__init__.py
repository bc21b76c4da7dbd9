"""Tacit: recommendations learned from people whose taste nobody gets to see."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.errors import TacitError
    from tacit.recommender import Recommender

__version__ = "0.1.0"
__all__ = ["Recommender", "TacitError", "__version__"]


def __getattr__(name: str) -> Any:
    """Public names load on first use, so that ``import tacit`` is quick."""
    if name == "Recommender":
        from tacit.recommender import Recommender

        return Recommender
    if name == "TacitError":
        from tacit.errors import TacitError

        return TacitError
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
