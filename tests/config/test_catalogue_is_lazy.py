"""Asking for one method loads what that one needs: a device with a factorisation holds no network library."""

import subprocess
import sys

import pytest

from tacit.config import catalogue
from tacit.errors import TacitError

ASKED = """
import sys
from tacit.config.experiment import Experiment, method_of
assert method_of(Experiment({name!r}, rounds=2)).name == {name!r}
print("torch" in sys.modules)
"""


def test_one_method_loads_its_own_module_alone():
    told = subprocess.run(
        [sys.executable, "-c", ASKED.format(name="fedrec++")], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "False"


def test_every_method_asked_for_alone_is_the_one_in_the_list():
    for name, maker in dict(catalogue.methods()).items():
        assert catalogue.methods()[name] is maker
        assert name in catalogue.methods()


@pytest.mark.parametrize("name", ["", "items", 'x"y', "fedrec+"])
def test_a_word_that_is_quoted_somewhere_is_no_method(name):
    assert name not in catalogue.methods()
    with pytest.raises(TacitError, match="no method is called"):
        catalogue.built(name, {})
