"""The training loop: one epoch after the other, each a function of the state at its start and the seeds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from postmax.data import generator_for
from postmax.errors import InputError
from postmax.methods import Method, Step
from postmax.train.config import RunConfig
from postmax.train.ema import Average
from postmax.train.evaluation import Evaluator, NotFiniteError
from postmax.train.metrics import Scores, learnt
from postmax.train.optimisers import add_l1, clip_lanes, make_optimiser, set_rate
from postmax.train.records import EpochRecord
from postmax.train.schedules import rate
from postmax.train.side_by_side import LaneBatch, LaneBatches

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_EXPLODED = 1e4
# On other devices than the CPU looking at a loss stops the pipeline, so it is done for some batches at a time.
_LOOK_EVERY = 20
_LOGITS_AT_ONCE = 4_000_000


class Diverged(InputError):  # noqa: N818  (says what it is)
    """The loss is no number any more, or grows without bound."""


@dataclass(frozen=True)
class Truth:
    """Training labels of every lane, (S, N): as given, and as they should be where that is known."""

    labels: Tensor
    clean: Tensor | None


class Trainer:
    """A method with its optimiser on its device."""

    def __init__(self, config: RunConfig, method: Method, fabric: Fabric, batches: LaneBatches, truth: Truth) -> None:
        self.config, self.method, self.batches, self.truth = config, method, batches, truth
        self._fabric = fabric
        self._parameters = list(method.parameters())
        fused = fabric.device.type in ("cpu", "cuda")
        self.optimiser: Optimizer = make_optimiser(config.optimiser, self._parameters, fused=fused)
        self.module, self._wrapped = fabric.setup(method, self.optimiser)
        self._autocast = fabric.autocast if config.precision != "32-true" else nullcontext
        self.average = Average(method, config.ema) if config.ema is not None else None
        self._scale: float | None = None

    def epoch(self, number: int) -> list[EpochRecord]:
        """Train for one epoch, counted from 0, and say what happened, one record for each seed.

        Raises:
            Diverged: With the batch, and what to try.
        """
        start = time.perf_counter()
        # Whatever draws random numbers, such as dropout, draws those of this epoch: there is nothing to save.
        set_random_numbers(generator_for(*self.config.seeds, "epoch", number).initial_seed())
        self.module.train()
        losses: list[Tensor] = []
        predictions = Predictions(self.method, self.truth.labels.shape, self.truth.labels.device)
        for position, batch in enumerate(self.batches.epoch(number)):
            step = self.step(number, position, batch)
            losses.append(step.loss.detach())
            if step.logits is not None:
                predictions.add(batch.rows, step.logits)
            self._check(losses, number, position)
        self._check(losses, number, len(losses) - 1, last=True)
        mean = torch.stack(losses).mean(0).tolist()
        return self._records(number, mean, predictions.finish(), time.perf_counter() - start)

    def step(self, number: int, position: int, batch: LaneBatch) -> Step:
        """One batch: loss, gradient, and a step against it."""
        config = self.config
        share = rate(config.schedule, number * len(self.batches) + position, len(self.batches), config.epochs)
        set_rate(self.optimiser, config.optimiser.lr * share)
        for parameter in self._parameters:
            parameter.grad = None
        try:
            with self._autocast():
                step = self.method.training_step(batch, number)
        except InputError as error:
            if number + position == 0:  # the first batch fails for what it was given, not for what became of it
                raise
            raise self._diverged(number, position, str(error)) from error
        self._fabric.backward(step.loss.sum())
        if config.optimiser.l1:
            add_l1(self._parameters, config.optimiser.l1)
        if config.optimiser.clip_norm is not None:
            if len(config.seeds) == 1:
                # What is no number shows in the next loss, and is reported from there.
                self._fabric.clip_gradients(
                    self.module, self._wrapped, max_norm=config.optimiser.clip_norm, error_if_nonfinite=False
                )
            else:
                clip_lanes(self._parameters, config.optimiser.clip_norm)
        self._wrapped.step()
        if self.average is not None:
            self.average.update()
        return step

    def _check(self, losses: Sequence[Tensor], number: int, position: int, *, last: bool = False) -> None:
        """Stop where the loss is no number, or thousands of times what it was at first."""
        on_cpu = losses[-1].device.type == "cpu"
        if on_cpu and last:  # it was looked at when it came
            return
        if not (on_cpu or last or position % _LOOK_EVERY == _LOOK_EVERY - 1):
            return
        start = position if on_cpu else position - position % _LOOK_EVERY
        found = [losses[-1].tolist()] if on_cpu else torch.stack(list(losses[start:])).tolist()
        for place, values in enumerate(found, start):
            if self._scale is None:
                self._scale = max(1.0, *(abs(value) for value in values if math.isfinite(value)), 1.0)
            for seed, value in zip(self.config.seeds, values, strict=True):
                if not abs(value) <= _EXPLODED * self._scale:  # NaN is not either
                    raise self._diverged(number, place, f"the loss of seed {seed} is {value:.4g}")

    def _diverged(self, number: int, position: int, what: str) -> Diverged:
        config = self.config
        hints = [f"a smaller learning rate (optimiser.lr is {config.optimiser.lr:g})"]
        if config.optimiser.clip_norm is None:
            hints.append("optimiser.clip_norm=1")
        if config.loss.name == "fpml" and not config.loss.options.get("floor"):
            hints.append("a floor under the posterior (loss.floor=0.05)")
        return Diverged(
            f"training diverged in epoch {number + 1}, batch {position + 1} of {len(self.batches)}: "
            f"{what.rstrip('.')}. Try {' or '.join(hints)}."
        )

    def _records(self, number: int, losses: list[float], predicted: Tensor | None, seconds: float) -> list[EpochRecord]:
        known = None if predicted is None else learnt(predicted, self.truth.labels, self.truth.clean)
        records: list[EpochRecord] = []
        for lane, seed in enumerate(self.config.seeds):
            record: dict[str, Any] = {"epoch": number + 1, "seed": seed, "loss": losses[lane]}
            record["lr"] = self.optimiser.param_groups[0]["lr"]
            if known is not None:
                record["train_accuracy"] = known.given[lane]
                for name in ("right_labels", "wrong_labels"):
                    record[f"{name}_learnt"] = _of(getattr(known, name), lane)
                record["wrong_labels_recovered"] = _of(known.recovered, lane)
            record["seconds"] = seconds
            records.append({key: value for key, value in record.items() if value is not None})  # type: ignore[arg-type]
        return records

    def judge(self, evaluator: Evaluator, number: int, records: list[EpochRecord]) -> dict[str, Scores]:
        """Judge the networks on held-out rows.

        Raises:
            Diverged: If they give no numbers any more, which a loss taken before the last step cannot show.
        """
        try:
            return evaluator.judge(self.module, self.method, records)
        except NotFiniteError as error:
            raise self._diverged(number, len(self.batches) - 1, str(error)) from error

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the networks are those to be judged: with their averaged weights, if there are any."""
        return self.average.in_place() if self.average is not None else nullcontext()

    def values(self) -> dict[str, Any]:
        """What a checkpoint must know beside parameters and averages."""
        return {"scale": self._scale}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Put back what `values` gave."""
        self._scale = values["scale"]


class Predictions:
    """What was predicted for each training row while training, gathered without a second pass."""

    def __init__(self, method: Method, shape: torch.Size, device: torch.device) -> None:
        self._method = method
        self._predicted = torch.full(shape, -1, dtype=torch.int64, device=device)
        self._waiting: list[tuple[Tensor, Tensor]] = []
        self._size = 0
        self._any = False

    def add(self, rows: Tensor, logits: Tensor) -> None:
        """Logits (S, B, K) of training rows (S, B)."""
        self._waiting.append((rows, logits))
        self._size += logits.numel()
        self._any = True
        if self._size > _LOGITS_AT_ONCE:  # what a logit means is worked out for many rows at once, but not for all
            self._work()

    def finish(self) -> Tensor | None:
        """The predicted class of every row (S, N), −1 for rows that were not seen; None if none was."""
        self._work()
        return self._predicted if self._any else None

    def _work(self) -> None:
        if not self._waiting:
            return
        rows = torch.cat([rows for rows, _ in self._waiting], dim=1)
        logits = torch.cat([logits for _, logits in self._waiting], dim=1)
        finite = logits.isfinite().all(-1)
        answer = self._method.readings(logits.nan_to_num())["model"].argmax(-1)
        self._predicted.scatter_(1, rows, torch.where(finite, answer, -1))
        self._waiting, self._size = [], 0


def _of(values: list[float], lane: int) -> float | None:
    """The figure of a lane; None where it was not measured or there was nothing to measure."""
    return values[lane] if values and math.isfinite(values[lane]) else None


def seeded(seeds: Sequence[int], number: int = 0) -> Iterator[int]:
    """For each seed in turn, set torch's random numbers to those its network of this number is initialised from."""
    for seed in seeds:
        set_random_numbers(generator_for(seed, "network", *([number] if number else [])).initial_seed())
        yield seed


def set_random_numbers(seed: int) -> None:
    """What `torch.manual_seed` does, at a hundredth of its cost where there is no GPU to tell."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
