"""Sums depend on how they are divided among threads: everything here runs on one."""

import pytest
import torch
from forked_runs import ForkServer


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def forks():
    """A process that has imported everything and forks for each run that is to be killed."""
    with ForkServer() as server:
        yield server
