"""From a configuration to everything that trains: data, networks, loss, method."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from postmax import losses, methods, models
from postmax.data import Augment, Dataset
from postmax.errors import InputError
from postmax.extras import need
from postmax.methods import Method
from postmax.train.config import Choice, RunConfig
from postmax.train.evaluation import Evaluator
from postmax.train.prepare import SeedData, augmentation, prepare
from postmax.train.side_by_side import LaneBatches, Lanes
from postmax.train.trainer import Trainer, Truth, seeded
from postmax.transition import Transition

if TYPE_CHECKING:
    from lightning_fabric import Fabric


_SMALL_NETWORK = 100_000  # parameters


@dataclass(frozen=True)
class Built:
    """A run, ready to start."""

    data: tuple[SeedData, ...]
    method: Method
    trainer: Trainer
    evaluator: Evaluator
    augment: Augment | None
    device: torch.device

    @property
    def parameters(self) -> int:
        """How many numbers the networks of one seed learn."""
        return sum(p.numel() for p in self.method.parameters()) // len(self.data)

    @property
    def threads(self) -> int:
        """How many are of use: to a small network a second one brings nothing, and on a busy machine costs a lot."""
        small = self.device.type == "cpu" and self.parameters < _SMALL_NETWORK
        return 1 if small else torch.get_num_threads()


def build(config: RunConfig) -> Built:
    """Prepare a run.

    Raises:
        InputError: If the parts do not fit together.
        DataError: If the data cannot be read.
    """
    fabric = _fabric(config)
    data = tuple(prepare(config, seed) for seed in config.seeds)
    trains, seeds = [part.train for part in data], config.seeds
    augment = augmentation(config.data, trains[0])
    batches = LaneBatches(trains, seeds, config.batch_size, augment=augment, device=fabric.device)
    _refuse(config.method.options, "method", ("setting",))
    _refuse(config.model.options, "model", ("num_classes", "input_shape"))
    loss = _losses(config.loss, [part.transition for part in data])
    numbers = itertools.count()
    setting = methods.Setting(
        networks=lambda: _networks(config, trains[0], augment, next(numbers)),
        loss=loss,
        num_classes=trains[0].num_classes,
        rows=len(trains[0]),
        epochs=config.epochs,
    )
    method = methods.get(config.method.name, setting, **config.method.options)
    method.to(fabric.device)
    truth = Truth(_stack([t.labels for t in trains], fabric.device), _clean(trains, fabric.device))
    trainer = Trainer(config, method, fabric, batches, truth)
    validations = [part.validation for part in data if part.validation is not None]
    also = {name: [part.also[name] for part in data] for name in config.data.also_test}
    evaluator = Evaluator([part.test for part in data], validations or None, seeds, augment, fabric.device, also)
    return Built(data, method, trainer, evaluator, augment, fabric.device)


def check_loss(loss: Choice, *, where: str = "the configuration") -> None:
    """Make the loss and forget it, to know before anything is read or trained that it can be made.

    Raises:
        InputError: If its name, its preset or an option is unknown, or a value makes no sense.
    """
    try:
        _loss(loss, Transition.identity(2))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _loss(loss: Choice, transition: Transition | None) -> nn.Module:
    """The loss; `preset` is an option like the others."""
    _refuse(loss.options, "loss", ("reduction", "transition", "weight", "num_classes"))
    return losses.get(loss.name, transition=transition, reduction="none", **loss.options)


def _losses(loss: Choice, transitions: Sequence[Transition | None]) -> nn.Module:
    """The loss, or one for each seed where each has its own estimate of the noise."""
    first = transitions[0]
    same = all(
        (other is None and first is None) or (other and first and torch.equal(other.matrix, first.matrix))
        for other in transitions
    )
    return _loss(loss, first) if same else nn.ModuleList(_loss(loss, noise) for noise in transitions)


def _refuse(options: Mapping[str, object], section: str, taken: Sequence[str]) -> None:
    for name in taken:
        if name in options:
            raise InputError(f"{section}.{name} is not a setting: it follows from the data and the loop.")


def _fabric(config: RunConfig) -> Fabric:
    # Imported here, because it takes as long to import as torch itself.
    make: type[Fabric] = need("lightning_fabric", "train").Fabric
    try:
        return make(accelerator=config.accelerator, devices=1, precision=config.precision)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"accelerator={config.accelerator}, precision={config.precision}: {error}") from error


def _networks(config: RunConfig, train: Dataset, augment: Augment | None, number: int) -> Lanes:
    row = train.inputs[torch.tensor([0])]
    shape = tuple((row if augment is None else augment.evaluation()(row)).shape[1:])
    batch_rows = min(config.batch_size, len(train))
    networks = []
    for _ in seeded(config.seeds, number):
        network = models.get(
            config.model.name, num_classes=train.num_classes, input_shape=shape, **config.model.options
        )
        if models.describe(config.model.name).channels_last:
            network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        networks.append(network)
    norms = (nn.BatchNorm1d, nn.BatchNorm2d)
    if batch_rows < 2 and any(isinstance(module, norms) for module in networks[0].modules()):
        raise InputError(
            f"{config.model.name} has batch normalisation, which needs at least two rows in a batch; "
            f"there is {batch_rows}."
        )
    return Lanes(networks)


def _clean(trains: Sequence[Dataset], device: torch.device) -> Tensor | None:
    clean = [train.clean_labels for train in trains if train.clean_labels is not None]
    return _stack(clean, device) if clean else None


def _stack(labels: Sequence[Tensor], device: torch.device) -> Tensor:
    return torch.stack(list(labels)).to(device)
