"""What all tests share: where real data lie, and skipping with a reason where they do not."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow or busy machine is no wrong result: time is measured by `tacit bench`, not here.
settings.register_profile("tacit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tacit")

WANTED = "real data sets are needed: set TACIT_DATA to the folder that holds them"


def _folder():
    folder = os.environ.get("TACIT_DATA", "")
    return Path(folder) if folder and Path(folder).is_dir() else None


def pytest_runtest_setup(item):
    if item.get_closest_marker("data") and _folder() is None:
        pytest.skip(WANTED)


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data sets; tests that need it are skipped elsewhere."""
    if _folder() is None:
        pytest.skip(WANTED)
    return _folder()
