"""Real processes to kill: a server imports torch once and forks a child for each job, which so starts at once."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from postmax.runs import execute
from postmax.runs.checkpoint import Checkpoint, save
from postmax.train import make_config


class ForkServer:
    """Runs one job at a time, each in a process of its own."""

    def __enter__(self):
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )
        self._server.stdout.readline()  # it is ready
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.wait(60)
        self._server.stdout.close()

    def start(self, job, **arguments):
        """Begin a job; the answer is the process id of its child."""
        self._server.stdin.write(json.dumps({"job": job, **arguments}) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def wait(self):
        """Wait for the job's end: (what it said, its exit code, negative for a signal)."""
        self._server.stdin.write("collect\n")
        self._server.stdin.flush()
        said = json.loads(self._server.stdout.readline())
        return said["said"], os.waitstatus_to_exitcode(said["status"])

    def run(self, job, **arguments):
        self.start(job, **arguments)
        return self.wait()

    def stop(self, when, job, *, by=signal.SIGKILL, **arguments):
        """Begin a job and send it a signal after some seconds, or once a condition holds: (what it said, exit code)."""
        pid = self.start(job, **arguments)
        if callable(when):
            end = time.monotonic() + 60
            while not when() and time.monotonic() < end:
                time.sleep(0.002)
        else:
            time.sleep(when)
        os.kill(pid, by)  # until it is collected, nothing else can have its process id
        return self.wait()


def execute_job(config, folder, **options):
    """A run as a process: with a checkpoint after every epoch."""
    execute(make_config(config), folder, **{"checkpoint_seconds": 0, **options})


def save_job(folder, first):
    """Checkpoints of growing epochs, as fast as they can be written, for ever."""
    epoch = first
    while True:
        tensors = {"a": torch.full((20_000,), float(epoch)), "b": torch.full((3, 7), epoch)}
        save(Path(folder), Checkpoint(epoch, tensors, {"epoch_again": epoch}))
        epoch += 1


def limited_job(inner, bytes_a_file, **arguments):
    """Another job, that may write no file larger than this: a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_a_file, bytes_a_file))
    JOBS[inner](**arguments)


def save_once_job(folder, epoch, numbers):
    save(Path(folder), Checkpoint(epoch, {"a": torch.full((numbers,), float(epoch))}))


JOBS = {"execute": execute_job, "save": save_job, "save once": save_once_job, "limited": limited_job}


def _child(request, report):
    """Do the job and say how it ended; nobody hears what a killed child would have said."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests' own shell does about it
    try:
        JOBS[request.pop("job")](**request)
        said, code = "done", 0
    except BaseException as error:
        said, code = f"{type(error).__name__}: {error}", 1
    os.write(report, said.encode())
    os._exit(code)


def _serve():
    # Whatever a library prints on this machine must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warm_up = {"data": {"name": "breast-cancer"}, "epochs": 1, "model": {"hidden": [2]}}
    with tempfile.TemporaryDirectory() as folder:
        execute_job(warm_up, folder)  # everything that is imported on the way

    print("ready", file=answers, flush=True)
    while line := sys.stdin.readline():
        listen, report = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(listen)
            _child(json.loads(line), report)
        os.close(report)
        print(pid, file=answers, flush=True)
        said = b""
        while part := os.read(listen, 65536):
            said += part
        os.close(listen)
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"said": said.decode(), "status": status}), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
