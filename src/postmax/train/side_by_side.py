"""The training loop for several seeds side by side: one network and one loss for each seed, all in one call.

Only methods that are nothing but one network and one loss can be trained side by side: see
`Method.one_network_one_loss`. Other methods never see this loop.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from postmax.data import generator_for
from postmax.errors import NotFiniteError
from postmax.losses import Loss
from postmax.methods.method import loss_readings
from postmax.methods.parts.answers import Composition
from postmax.train.config import RunConfig
from postmax.train.ema import Average
from postmax.train.evaluation import Evaluator
from postmax.train.lanes import LaneBatch, LaneBatches
from postmax.train.metrics import Scores, Truth, epoch_records
from postmax.train.optimisers import (
    add_l1,
    make_optimiser,
    optimiser_state,
    restore_optimiser,
    set_rate,
    weights_rate,
)
from postmax.train.predictions import Predictions
from postmax.train.randomness import set_random_numbers
from postmax.train.records import EpochRecord
from postmax.train.resources import on_device
from postmax.train.schedules import rate
from postmax.train.stacked_networks import StackedNetworks
from postmax.train.state import State, named
from postmax.train.watch import LossWatch
from postmax.train.work import WITH_GRADIENT

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class SideBySideTrainer:
    """Trains several seeds of the standard method in one stack.

    Args:
        config: The configuration of the run.
        networks: The stacked networks.
        losses: One loss for all seeds, or one for each seed where the seeds know different noise.
        fabric: Puts the networks on their device, in their precision.
        batches: The stacked batches.
        truth: The training labels as given and, where known, the clean ones.
    """

    def __init__(
        self,
        config: RunConfig,
        networks: StackedNetworks,
        losses: Sequence[Loss],
        fabric: Fabric,
        batches: LaneBatches,
        truth: Truth,
    ) -> None:
        self.batches = batches
        self._config, self._losses, self._fabric, self._truth = config, tuple(losses), fabric, truth
        self._stack = networks
        self._networks = on_device(fabric, networks, config.precision)
        self._parameters = list(networks.parameters())
        fused = fabric.device.type in ("cpu", "cuda")
        self._optimiser = make_optimiser(config.optimiser, self._parameters, biases=networks.biases, fused=fused)
        self._watch = LossWatch(config, self._losses[0], len(batches))
        self._average = Average(networks, config.ema) if config.ema is not None else None
        self.updates = 0

    @property
    def parameters(self) -> int:
        """How many numbers the network of one seed learns."""
        return sum(parameter.numel() for parameter in self._parameters) // len(self._config.seeds)

    @property
    def networks(self) -> int:
        """How many networks are trained for each seed."""
        return 1

    @property
    def is_over(self) -> bool:
        """Whether the method has stopped early: never, because only the standard method is trained side by side."""
        return False

    def learnt(self, lane: int) -> dict[str, Tensor]:  # noqa: ARG002  (the standard method learns its answer alone)
        """Return nothing: see `is_over`."""
        return {}

    def epoch(self, number: int) -> list[EpochRecord]:
        """Train for one epoch; see `postmax.train.trainer.Trainer`."""
        start = time.perf_counter()
        predictions = Predictions(self._readings, self._truth.labels.shape, self._truth.labels.device)
        passes = 0
        for batch, logits in self.steps(number):
            predictions.add(batch.rows, logits)
            passes += batch.rows.shape[1]
        losses = self._watch.finish()
        seconds = time.perf_counter() - start
        last_rate = weights_rate(self._optimiser)
        records = epoch_records(
            number, self._config.seeds, losses, last_rate, self._truth, predictions.finish(), seconds
        )
        for record in records:
            record["passes"], record["operations"] = passes, WITH_GRADIENT * passes * self._stack.flops
        return records

    def steps(self, number: int) -> Iterator[tuple[LaneBatch, Tensor]]:
        """Train for one epoch, step by step; yield each batch with its logits (S, B, K)."""
        # Dropout draws from torch's global generator. It is set for each epoch, so it is never saved.
        set_random_numbers(generator_for(*self._config.seeds, "epoch", number).initial_seed())
        self._networks.train()
        self._watch.start(number)
        share = number / self._config.epochs
        losses = [loss.at(share) for loss in self._losses]
        for place, batch in enumerate(self.batches.epoch(number)):
            try:
                logits = self._networks(batch.inputs)
                value = _lane_means(losses, logits, batch.labels)
            except NotFiniteError as error:
                if self._watch.is_first_step:
                    raise
                raise self._watch.diverged(str(error)) from error
            self._update(number, place, value)
            self.updates += 1
            self._watch.add(value.detach())
            yield batch, logits.detach()

    def _update(self, number: int, place: int, value: Tensor) -> None:
        config, steps = self._config, len(self.batches)
        share = rate(config.schedule, number * steps + place, steps, config.epochs)
        set_rate(self._optimiser, config.optimiser.lr * share)
        for parameter in self._parameters:
            parameter.grad = None
        self._fabric.backward(value.sum())
        if config.optimiser.l1:
            add_l1(self._parameters, config.optimiser.l1)
        if config.optimiser.clip_norm is not None:
            clip_lanes(self._parameters, config.optimiser.clip_norm)
        self._optimiser.step()
        if self._average is not None:
            self._average.update()

    def judge(self, evaluator: Evaluator, records: list[EpochRecord]) -> dict[str, Scores]:
        """Judge the networks on held-out rows; see `postmax.train.trainer.Trainer`."""
        self._networks.eval()
        try:
            return evaluator.judge(self._networks, self._readings, self._label_posterior, records)
        except NotFiniteError as error:
            raise self._watch.diverged(str(error), len(self.batches) - 1) from error

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the networks have their averaged weights, if the run averages weights."""
        return nullcontext() if self._average is None else self._average.in_place()

    def composition(self) -> Composition:
        """Return what the answer of each seed consists of: one network."""
        return {"kind": "network", "outputs": self._stack.outputs, "labels": "loss"}

    def weights(self, lane: int) -> dict[str, Tensor]:
        """Return the weights of one seed."""
        return self._stack.lane_state(lane)

    def save(self) -> State:
        """Return everything a checkpoint must know."""
        optimiser, values = optimiser_state(self._optimiser)
        average = {} if self._average is None else self._average.state()
        tensors = named("networks", self._stack.state_dict())
        tensors |= named("optimiser", optimiser) | named("average", average)
        return State(tensors, {"optimiser": values, "first_loss": self._watch.first_loss, "updates": self.updates})

    def restore(self, state: State) -> None:
        """Put back what `save` returned."""
        self._stack.load_state_dict(state.part("networks"))
        restore_optimiser(self._optimiser, state.part("optimiser"), state.values["optimiser"])
        self._watch.first_loss, self.updates = state.values["first_loss"], state.values["updates"]
        if self._average is not None:
            self._average.restore(state.part("average"))

    def _readings(self, outputs: Tensor) -> dict[str, Tensor]:
        lanes = [loss_readings(loss, lane) for loss, lane in self._lanes(outputs)]
        return {name: torch.stack([lane[name] for lane in lanes]) for name in lanes[0]}

    def _label_posterior(self, outputs: Tensor) -> Tensor:
        return torch.stack([loss.label_posterior(lane) for loss, lane in self._lanes(outputs)])

    def _lanes(self, outputs: Tensor) -> Iterator[tuple[Loss, Tensor]]:
        losses = self._losses if len(self._losses) > 1 else self._losses * len(outputs)
        return zip(losses, outputs, strict=True)


def _lane_means(losses: Sequence[Loss], logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss (S,) of each lane."""
    if len(losses) == 1 and not losses[0].mixes_rows:
        rows = losses[0](logits.flatten(0, 1), labels.flatten()).view_as(labels)
    else:
        # Rows of different seeds must not meet in a loss that mixes rows, nor in one that knows another noise.
        each = losses if len(losses) > 1 else [losses[0]] * len(logits)
        rows = torch.stack([loss(*lane) for loss, *lane in zip(each, logits, labels, strict=True)])
    means: Tensor = rows.mean(1)
    return means


def clip_lanes(parameters: Iterable[Tensor], max_norm: float) -> None:
    """Scale the gradient of each lane down to `max_norm`, so that no seed is changed by the gradient of another."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norms = torch.stack([gradient.reshape(len(gradient), -1).square().sum(1) for gradient in gradients]).sum(0).sqrt()
    scale = (max_norm / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scale.view(-1, *(1,) * (gradient.dim() - 1)))
