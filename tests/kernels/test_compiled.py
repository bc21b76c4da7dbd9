"""Machine code on disk: found again by another process, and not when the sources have changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from tacit.errors import TacitError
from tacit.kernels.compiled import Span, span

PROBE = """
import numpy as np
from tacit.kernels import pairs
one = np.ones((2, 3), "f4")
print(pairs.predict_pairs(one, one, np.array([0], "i4"), np.array([1], "i4"), 3)[0])
print(sum(pairs._predict.stats.cache_hits.values()), sum(pairs._predict.stats.cache_misses.values()))
"""


def probe(home):
    environment = os.environ | {"PYTHONPATH": str(home), "NUMBA_CACHE_DIR": str(home / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_code_is_cached_between_processes_until_any_file_of_the_room_changes(tmp_path):
    source = Path(tacit.__file__).parent
    shutil.copytree(source, tmp_path / "tacit", ignore=shutil.ignore_patterns("__pycache__"))
    assert probe(tmp_path) == ["3.0", "0", "1"]
    assert probe(tmp_path) == ["3.0", "1", "0"]
    with (tmp_path / "tacit" / "kernels" / "vectors.py").open("a") as file:
        file.write("\n# changed\n")
    assert probe(tmp_path) == ["3.0", "0", "1"]


def test_a_span_needs_a_dimension():
    assert span(3).dim == 3
    with pytest.raises(TacitError, match="a row of 0 numbers"):
        Span(0)
