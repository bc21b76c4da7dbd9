"""What all tests share: where real data lie, and skipping with a reason where they do not."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data sets; tests that need it are skipped elsewhere."""
    folder = os.environ.get("TACIT_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data sets are needed: set TACIT_DATA to the folder that holds them")
    return Path(folder)
