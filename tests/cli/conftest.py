"""Rules for the tests of commands."""

import signal

import pytest


@pytest.fixture(autouse=True)
def _ctrl_c_is_not_ignored():
    """Where the tests run in the background, their shell has told everybody to ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
