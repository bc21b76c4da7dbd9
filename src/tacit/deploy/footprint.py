"""What processes cost: memory and processor time, as the system tells it (Linux; elsewhere nothing)."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def footprint(numbers: Iterable[int]) -> dict[str, Any] | None:
    """What these processes use, each on average; ``None`` where the system does not say.

    ``own_bytes`` would be free if it ended, ``rss_bytes`` counts also what it shares. ``cpu_seconds`` are
    those of all together.

    Example:
        >>> told = footprint([os.getpid()])
        >>> told is None or told["rss_bytes"] > told["own_bytes"] > 0
        True
    """
    found = [one for number in numbers for one in [_one(number)] if one is not None]
    if not found:
        return None
    own, rss, seconds = (sum(values) for values in zip(*found, strict=True))
    count = len(found)
    return {
        "processes": count,
        "own_bytes": int(own / count),
        "rss_bytes": int(rss / count),
        "cpu_seconds": round(seconds, 2),
    }


def _one(number: int) -> tuple[int, int, float] | None:
    """Private bytes, resident bytes and processor seconds of a process."""
    place = Path("/proc") / str(number)
    with suppress(OSError, ValueError, IndexError):
        sizes = {
            line.split()[0]: int(line.split()[1]) << 10
            for line in (place / "smaps_rollup").read_text("ascii").splitlines()[1:]
        }
        times = (place / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        own = sizes["Private_Clean:"] + sizes["Private_Dirty:"]
        return own, sizes["Rss:"], (int(times[11]) + int(times[12])) / _TICKS
    return None


def started_by(number: int) -> list[int]:
    """The processes that a process started and that are still there."""
    found: list[int] = []
    with suppress(OSError, ValueError):
        for thread in (Path("/proc") / str(number) / "task").iterdir():
            found += map(int, (thread / "children").read_text("ascii").split())
    return found
