"""An `execute` that does not train. It leaves the files of a real run and records every epoch that it works.

The options of the model say what a configuration does: `epochs` epochs of `seconds` each, then perhaps something else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch

from postmax.errors import DataError, DivergedError
from postmax.runs import DamagedRun, Progress, RunFolder
from postmax.sweep.sweep import sweep
from postmax.tables.cells import Placement
from postmax.tables.cells import TableJob as Job
from postmax.train.config import RunConfig, make_config

MEMORY_ERRORS = {
    "python": MemoryError(),
    "gpu": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
    "cpu": RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"),
}


def job(number: int, *, epochs: int = 3, seconds: float = 0.0, seeds=(0,), **behaviour) -> Job:
    model = {"name": "mlp", "number": number, "seconds": seconds, **behaviour}
    config = make_config({"data": {"name": "digits"}, "epochs": epochs, "model": model, "seeds": seeds})
    return Job(config, f"job {number}", (Placement("panel", f"row {number}", "column"),))


def execute(config: RunConfig, folder: Path, *, progress=None) -> dict:
    run, options = RunFolder(folder), config.model.options
    log = folder.parent / "log.txt"
    with (folder.parent / "pids.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")
    with run.lock():
        if run.state == "done":
            return run.result()
        if (failure := run.failure()) is not None:
            raise DivergedError(failure)
        if run.state != "started":
            run.write("config.yaml", config.to_yaml().encode())
        before = folder / "epoch.txt"
        first = int(before.read_text()) if before.exists() else 0
        # Like a real run: the records of the epochs that count are written again at the beginning.
        run.write("metrics.jsonl", "".join(record(config, epoch) for epoch in range(1, first + 1)).encode())
        for epoch in range(first + 1, config.epochs + 1):
            time.sleep(options["seconds"])
            # A short line that is appended in one write stays whole, also if other processes append at the same time.
            with log.open("a") as file:
                file.write(f"{folder.name} {epoch}\n")
            run.append("metrics.jsonl", record(config, epoch))
            run.write("epoch.txt", str(epoch).encode())
            if progress is not None:
                progress(Progress(epoch, config.epochs, 1 / epoch, 0.5, (config.epochs - epoch) * 0.1))
        misbehave(options, run)
        run.finish(fake_result(config))
        with log.open("a") as file:
            file.write(f"{folder.name} done\n")
    return run.result()


def record(config: RunConfig, epoch: int) -> str:
    """The lines of metrics.jsonl for one epoch."""
    lines = ({"epoch": epoch, "seed": seed, "loss": 1 / epoch, "test_accuracy": 0.5} for seed in config.seeds)
    return "".join(json.dumps({**line, "seconds": 0.1}) + "\n" for line in lines)


def misbehave(options: dict, run: RunFolder) -> None:
    if options.get("diverges"):
        run.write_json("failure.json", {"error": "the loss is not finite"})
        raise DivergedError("the loss is not finite")
    if options.get("damaged"):
        raise DamagedRun(f"{run.path}: the checkpoint is damaged.")
    if memory := options.get("memory"):
        raise MEMORY_ERRORS[memory]
    if options.get("breaks"):
        raise DataError("the disk is full.")
    if options.get("bug"):
        raise KeyError("oops")
    if options.get("killed") and not (run.path / "killed").exists():
        (run.path / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def fake_result(config: RunConfig, accuracy=lambda seed: 0.9, readings=("model",), seconds: float = 1.0) -> dict:
    def evaluation(seed, change):
        return {"epoch": config.epochs, "accuracy": accuracy(seed) + change, "calibration_error": 0.1}

    def reading(seed, change):
        return {
            "last": evaluation(seed, change),
            "oracle": evaluation(seed, change + 0.01),
            "reliability": {"count": [], "confidence": [], "accuracy": []},
        }

    seeds = [
        {
            "seed": seed,
            "noise": {"rows": 1, "rate": None, "sha256": ""},
            "transition": None,
            "readings": {name: reading(seed, -0.1 * place) for place, name in enumerate(readings)},
        }
        for seed in config.seeds
    ]
    result = {"format": 1, "run_id": config.run_id, "classes": ["a", "b"], "epochs": config.epochs, "seeds": seeds}
    rows = {"train_rows": 400, "test_rows": 100}
    return {**result, **rows, "seconds": seconds, "selection": "last", "environment": {}}


def finish(config: RunConfig, store: Path, **options) -> None:
    """The folder of a run that is done."""
    run = RunFolder(store / config.run_id)
    with run.lock():
        run.write("config.yaml", config.to_yaml().encode())
        run.finish(fake_result(config, **options))


def log_of(store: Path) -> list[tuple[str, str]]:
    text = (store / "log.txt").read_text() if (store / "log.txt").exists() else ""
    return [tuple(line.split()) for line in text.splitlines()]


def drive(store: Path, jobs: list[Job], workers: int) -> None:
    """The body of a process that sweeps, like a command in its own terminal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell of the tests may ignore it
    os.setsid()
    with (store / "stderr.txt").open("a") as file:
        os.dup2(file.fileno(), 2)
    try:
        sweep(jobs, store, workers=workers, execute=execute, patience=0.1)
    except KeyboardInterrupt:
        sys.exit(130)


def alive(pid: int) -> bool:
    """Whether a process runs. One that has ended and that its parent has not asked about yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids_of(store: Path) -> set[int]:
    return {int(line) for line in (store / "pids.txt").read_text().split()} if (store / "pids.txt").exists() else set()
