"""Torch on the thread that asks, and no others."""

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Generator[None]:
    """Torch computes on the calling thread alone; afterwards it may do as before.

    Threads of the simulation take clients apart already. Torch's own, in products as small as a client's,
    mostly wait for each other, and on a busy machine they wait for long; how they split a sum would move last
    digits, too.

    Example:
        >>> import torch
        >>> before = torch.get_num_threads()
        >>> with one_thread():
        ...     alone = torch.get_num_threads()
        >>> alone, torch.get_num_threads() == before
        (1, True)
    """
    import torch  # loads on first use

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
