"""Fixtures for tests that start worker processes."""

import multiprocessing
from multiprocessing import forkserver

import pytest


@pytest.fixture
def quick_workers(monkeypatch):
    """Workers that do not spend seconds on importing torch, for tests that do not depend on how workers start."""
    multiprocessing.set_forkserver_preload(["postmax.sweep.sweep"])
    # The launcher holds back signals while it starts a worker. The server, which other tests use too, must not inherit
    # that.
    forkserver.ensure_running()
    monkeypatch.setattr("postmax.sweep.launchers.local_processes.START_METHOD", "forkserver")
