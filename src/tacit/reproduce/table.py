"""The shape of a regenerated table, and how tables are found by name."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import tacit.reproduce
from tacit.errors import TacitError, nearest
from tacit.runtime.listener import Listener


@dataclass(frozen=True)
class Cell:
    """One number of a table. ``paper`` is ``None`` where the paper prints none."""

    row: str
    column: str
    paper: float | None
    ours: float | None
    note: str = ""


@dataclass(frozen=True)
class Options:
    """Where the data lie, and whether a quick form will do (fewer folds, smaller settings; it says so)."""

    data_dir: Path | None = None
    quick: bool = False
    threads: int = 1
    listener: Listener = field(default_factory=Listener)


@dataclass(frozen=True)
class Reproduction:
    """A regenerated table with what a reader has to know; ``picture`` draws it to a file, if it can."""

    table: str
    title: str
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()
    picture: Callable[[Path], None] | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON of ``tacit reproduce``."""
        return {
            "table": self.table,
            "title": self.title,
            "cells": [asdict(cell) for cell in self.cells],
            "notes": list(self.notes),
        }


@cache
def tables() -> Mapping[str, Callable[[Options], Reproduction]]:
    """Every table by name, such as ``fedrec/table2``.

    Example:
        >>> "fedrec/table2" in tables()
        True
    """
    found: dict[str, Callable[[Options], Reproduction]] = {}
    for module in pkgutil.iter_modules(tacit.reproduce.__path__):
        found.update(getattr(importlib.import_module(f"tacit.reproduce.{module.name}"), "TABLES", {}))
    return found


def reproduced(name: str, options: Options) -> Reproduction:
    """Regenerate one table."""
    if name not in tables():
        raise TacitError(f"no table is called {name!r}", nearest(name, tables()))
    return tables()[name](options)
