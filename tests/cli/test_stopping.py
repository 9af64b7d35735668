"""Ctrl-C and SIGTERM, at any moment of a command."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from postmax.cli.stopping import Stopped, starting, stoppable

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
# Where the tests run in the background, their shell has told everybody to ignore Ctrl-C. "started" is said when the
# command handles signals: before that they end the process, as they end every other, and a slow machine shows it.
PROGRAM = """
import signal, sys
from contextlib import contextmanager
from postmax import cli

@contextmanager
def announced(stoppable=cli.stoppable):
    with stoppable():
        print("started", flush=True)
        yield

signal.signal(signal.SIGINT, signal.default_int_handler)
cli.stoppable = announced
cli.main(sys.argv[1:])
"""


def begin(*arguments):
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("number", "exit_code"), SIGNALS.items())
def test_a_signal_is_raised_where_the_command_is(number, exit_code):
    with pytest.raises(Stopped) as stop, stoppable():
        os.kill(os.getpid(), number)
    assert stop.value.exit_code == exit_code


def test_the_handlers_of_the_program_come_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with stoppable(), starting():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_signal_that_is_ignored_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stoppable():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_command_may_run_in_another_thread():
    finished = []

    def work():
        with stoppable(), starting():
            finished.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert finished


@pytest.mark.parametrize(("number", "exit_code"), SIGNALS.items())
@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 0.6, 1.0, 1.5])
def test_a_command_that_is_stopped_while_it_starts_shows_no_trace(tmp_path, number, exit_code, seconds):
    process = begin("train", "digits", "epochs=100000", "-o", tmp_path)
    try:
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == exit_code, said
    assert said.startswith("postmax: stopped"), said
    assert said.count("\n") == 1, said


@pytest.mark.parametrize(("number", "exit_code"), SIGNALS.items())
def test_a_sweep_that_is_stopped_leaves_no_worker_and_continues(tmp_path, number, exit_code):
    command = ("reproduce", "breast-cancer", "--rows", "KL", "--seeds", "2", "epochs=3000", "-w", "2", "-o", tmp_path)
    process = begin(*command)
    try:
        deadline = time.monotonic() + 120
        while not any(file.stat().st_size for file in tmp_path.glob("runs/*/metrics.jsonl")):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        workers = children(process.pid)
        assert workers
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == exit_code, said
    assert "postmax: stopped. The same command continues where it was." in said
    assert "Traceback" not in said
    deadline = time.monotonic() + 10
    while any(map(alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(parent):
    """The processes that a process has started; /proc knows them."""
    tasks = f"/proc/{parent}/task/{parent}/children"
    if not os.path.exists(tasks):  # noqa: PTH110
        pytest.skip("this system does not list the children of a process")
    with open(tasks) as file:  # noqa: PTH123
        return [int(number) for number in file.read().split()]


def alive(number):
    try:
        with open(f"/proc/{number}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
