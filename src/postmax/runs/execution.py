"""Run a configuration in its folder: start, continue after a crash, and finish."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from postmax.errors import DivergedError, InputError
from postmax.runs import checkpoint
from postmax.runs.checkpoint import Checkpoint, DamagedRun
from postmax.runs.details import write_details
from postmax.runs.environment import environment
from postmax.runs.folder import RunFolder
from postmax.runs.remedies import start_again
from postmax.runs.saved import save_learnt, save_weights
from postmax.train.build import Built, build
from postmax.train.config import RunConfig
from postmax.train.confusions import Confusions
from postmax.train.own_files import resolve
from postmax.train.records import EpochRecord, RunResult
from postmax.train.repeatable import repeatable_torch
from postmax.train.selection import Keeper, summarise
from postmax.train.state import State, named

_FORMAT = 1
_LARGEST_MATRIX = 100
# Between two checkpoints a run trains at least this many times as long as writing one takes.
_TRAINING_PER_CHECKPOINT = 50


@dataclass(frozen=True)
class Progress:
    """How far a run is. Loss and accuracy are means over its seeds; the accuracy is None if it was not measured."""

    epoch: int
    epochs: int
    loss: float
    accuracy: float | None
    seconds_left: float


def execute(
    config: RunConfig,
    folder: str | Path,
    *,
    progress: Callable[[Progress], None] | None = None,
    checkpoint_seconds: float = 2.0,
    previous: bool = False,
    restart: bool = False,
) -> RunResult:
    """Run a configuration in a folder. A run that was killed continues, and a run that is done is not run again.

    Args:
        config: The configuration.
        folder: The folder of the run; by convention its name is `config.run_id`.
        progress: A function that is called after every epoch.
        checkpoint_seconds: The least time between two checkpoints. Training also takes at least fifty times as long as
            writing a checkpoint, so that checkpoints take at most two per cent of the time. The result does not depend
            on this setting.
        previous: Continue from the checkpoint before the last one.
        restart: Delete what was trained, and start again.

    Raises:
        DivergedError: If the training diverges. The folder remembers it.
        BusyError: If another process works on the run.
        DataError: If the data or the folder cannot be used. Nothing that was in the folder is lost then.
    """
    run = RunFolder(folder)
    if run.state == "done" and not restart and run.config() == config:  # then the data may be missing
        run.tidy()
        return run.result()
    config = resolve(config)
    if run.state == "done" and not restart:
        _check_identity(run, config)
        run.tidy()
        return run.result()
    with run.lock(), torch.random.fork_rng(), repeatable_torch():
        if run.state == "done" and not restart:  # another process finished it while this one waited
            return run.result()
        built = build(config)  # before anything is written: a run that cannot be built leaves no folder
        torch.set_num_threads(built.threads)
        _claim(run, config, restart)
        if (failure := run.failure()) is not None:
            raise DivergedError(failure)
        try:
            return _Execution(run, config, built, progress, checkpoint_seconds, previous).finish()
        except DivergedError as error:
            run.write_json("failure.json", {"error": str(error)})
            raise


def _check_identity(run: RunFolder, config: RunConfig) -> None:
    if run.config().run_id != config.run_id:
        raise InputError(f"{run.path} holds another run; give an empty folder.")


def _claim(run: RunFolder, config: RunConfig, restart: bool) -> None:
    """Write the configuration into the folder, and delete files that killed processes left half written."""
    if (run.path / "config.yaml").exists():
        _check_identity(run, config)
        run.sweep_up()
    else:
        run.write("config.yaml", config.to_yaml().encode())
    if restart:
        run.clear()
    threads = run.threads()
    if threads is None:
        run.write_json("environment.json", environment())
    else:
        # Sums depend on how they are divided among threads, so the run continues with as many threads as before.
        torch.set_num_threads(threads)


class _Execution:
    """A run while it is running."""

    def __init__(
        self,
        run: RunFolder,
        config: RunConfig,
        built: Built,
        progress: Callable[[Progress], None] | None,
        checkpoint_seconds: float,
        previous: bool,
    ) -> None:
        self.run, self.config, self.built, self.progress = run, config, built, progress
        self.checkpoint_seconds = checkpoint_seconds
        self.keeper = Keeper(config)
        self.confusions = Confusions(len(config.seeds))
        self.records: list[EpochRecord] = []
        self.done, self.seconds = 0, 0.0
        if previous:
            checkpoint.go_back(run.path)
        saved = checkpoint.load(run.path)
        if saved is not None:
            self._restore(saved)
        self._write_records()

    def finish(self) -> RunResult:
        """Train to the end, and write the result."""
        started, trained_before, first = time.perf_counter(), self.seconds, self.done
        last_save, pause = started, self.checkpoint_seconds
        for epoch in range(first, self.config.epochs):
            self._epoch(epoch)
            now = time.perf_counter()
            self.seconds = trained_before + now - started
            left = 0 if self.built.trainer.is_over else self.config.epochs - epoch - 1
            self._tell((now - started) / (epoch + 1 - first) * left)
            if not left:
                break
            if now - last_save >= pause:
                self.run.sync("metrics.jsonl")  # a checkpoint must not have epochs that the metrics lack
                self._save()
                last_save = time.perf_counter()
                pause = (
                    max(self.checkpoint_seconds, _TRAINING_PER_CHECKPOINT * (last_save - now))
                    if self.checkpoint_seconds
                    else 0.0
                )
        result = self._result()
        if self.config.save_model:
            save_weights(self.run, self.config, self.built, self.keeper.weights)
        save_learnt(self.run, self.built)
        write_details(
            self.run,
            self.built,
            [
                {"seed": seed["seed"], "readings": self.confusions.of(lane, seed["readings"])}
                for lane, seed in enumerate(result["seeds"])
            ],
        )
        self.run.finish(result)
        return result

    def _epoch(self, epoch: int) -> None:
        trainer = self.built.trainer
        records = trainer.epoch(epoch)
        last = epoch + 1 == self.config.epochs or trainer.is_over
        if last or (epoch + 1) % self.config.evaluate_every == 0:
            with trainer.averaged():
                scores = trainer.judge(self.built.evaluator, records)
                self.keeper.look(trainer.weights, records, scores, last=last)
                self.confusions.look(records, scores, last=last)
        self.run.append("metrics.jsonl", "".join(map(_line, records)))
        self.records += records
        self.done = epoch + 1

    def _tell(self, seconds_left: float) -> None:
        if self.progress is None:
            return
        records = self.records[-len(self.config.seeds) :]
        loss = sum(record["loss"] for record in records) / len(records)
        found = [record["test_accuracy"] for record in records if "test_accuracy" in record]
        accuracy = sum(found) / len(found) if found else None
        self.progress(Progress(self.done, self.config.epochs, loss, accuracy, seconds_left))

    def _write_records(self) -> None:
        """Write the records up to the checkpoint. Lines of epochs that will be run again are dropped."""
        self.run.write("metrics.jsonl", "".join(map(_line, self.records)).encode())

    def _save(self) -> None:
        trainer, kept, confusions = self.built.trainer.save(), self.keeper.save(), self.confusions.save()
        tensors = named("trainer", trainer.tensors) | named("kept", kept.tensors)
        tensors |= named("confusions", confusions.tensors)
        values = {
            "run_id": self.config.run_id,
            "seconds": self.seconds,
            "trainer": dict(trainer.values),
            "kept": dict(kept.values),
            "confusions": dict(confusions.values),
        }
        checkpoint.save(self.run.path, Checkpoint(self.done, tensors, values))

    def _restore(self, saved: Checkpoint) -> None:
        if saved.values["run_id"] != self.config.run_id:
            raise DamagedRun(f"{self.run.path}: the checkpoint belongs to another run. {start_again(self.run.path)}")
        try:
            self.built.trainer.restore(State(saved.part("trainer"), saved.values["trainer"]))
        except (KeyError, RuntimeError, ValueError) as error:
            raise DamagedRun(
                f"{self.run.path}: the checkpoint does not fit the method as it is now ({error}). "
                f"{start_again(self.run.path)}"
            ) from error
        self.keeper.restore(saved.part("kept"), saved.values["kept"])
        if "confusions" in saved.values:  # checkpoints of older versions lack them
            self.confusions.restore(State(saved.part("confusions"), saved.values["confusions"]))
        self.done, self.seconds = saved.epoch, saved.values["seconds"]
        self.records = [record for record in self.run.metrics() if record["epoch"] <= self.done]
        if len(self.records) != self.done * len(self.config.seeds):
            raise DamagedRun(
                f"{self.run.path}: metrics.jsonl has lost epochs that the checkpoint of epoch {self.done} knows. "
                f"{start_again(self.run.path)}"
            )

    def _result(self) -> RunResult:
        built, config = self.built, self.config
        seeds: list[Any] = []
        for lane, part in enumerate(built.data):
            mine = [record for record in self.records if record["seed"] == part.seed]
            matrix = None if part.transition is None else part.transition.matrix
            seeds.append(
                {
                    "seed": part.seed,
                    "noise": part.noise,
                    "transition": matrix.tolist() if matrix is not None and len(matrix) <= _LARGEST_MATRIX else None,
                    "readings": summarise(mine, self.keeper.reliability[lane]),
                }
            )
        return {
            "format": _FORMAT,
            "run_id": config.run_id,
            "classes": list(built.data[0].train.classes),
            "parameters": built.trainer.parameters,
            "networks": built.trainer.networks,
            "train_rows": len(built.data[0].train),
            "test_rows": len(built.data[0].test),
            "epochs": config.epochs,
            "steps": built.trainer.updates,
            "selection": config.selection,
            "seconds": self.seconds,
            "seeds": seeds,
            "environment": environment(built.device),
        }


def _line(record: EpochRecord) -> str:
    return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
