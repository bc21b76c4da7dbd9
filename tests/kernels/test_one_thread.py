"""Torch keeps to the thread that asks, whatever happens inside, and is left as it was."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tacit.kernels.one_thread import one_thread


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@one_thread()
def asked():
    return torch.get_num_threads()


@pytest.mark.usefixtures("two_threads")
def test_one_inside_and_as_before_outside():
    assert asked() == 1
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_a_fault_inside_leaves_it_as_it_was():
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_workers_of_a_simulation_each_get_one():
    with ThreadPoolExecutor(4) as workers:
        assert set(workers.map(lambda _: asked(), range(64))) == {1}
