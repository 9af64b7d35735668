"""From a configuration to everything that trains: data, networks, loss, method and loop."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from postmax import losses, methods, models
from postmax.data import Batches, Dataset, Views, generator_for
from postmax.data.shrinking import shrunk_size, side_at
from postmax.errors import InputError
from postmax.estimation.threads import SMALL_NETWORK
from postmax.extras import need
from postmax.losses import Loss
from postmax.train.config import Choice, RunConfig
from postmax.train.evaluation import ROWS_AT_ONCE, Evaluator
from postmax.train.lanes import LaneBatches
from postmax.train.memory import keep_freed_memory
from postmax.train.method_noise import Estimate, MethodNoise, NoiseAnswers, estimate_from_rows
from postmax.train.metrics import Truth
from postmax.train.precision import check_precision
from postmax.train.prepare import SeedData, prepare, views_of
from postmax.train.randomness import seed_network, set_random_numbers
from postmax.train.resources import Resources
from postmax.train.side_by_side import SideBySideTrainer
from postmax.train.stacked_networks import StackedNetworks
from postmax.train.trainer import OneSeedTrainer, Trainer
from postmax.transition import Transition

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# A network looks at as many values as 5,000 images of CIFAR have, so that large images do not fill the memory.
_VALUES_LOOKED_AT, _FEWEST_LOOKED_AT = 5000 * 3 * 32 * 32, 100
_SET_BY_THE_LOOP = ("reduction", "transition", "weight", "num_classes")


@dataclass(frozen=True)
class Built:
    """A run that is ready to start.

    Attributes:
        data: The rows of each seed.
        trainer: The training loop.
        evaluator: The held-out rows.
        views: The views of the rows: how images are cropped, normalised and augmented.
        device: Where the networks are.
    """

    data: tuple[SeedData, ...]
    trainer: Trainer
    evaluator: Evaluator
    views: Views
    device: torch.device

    @property
    def threads(self) -> int:
        """How many threads torch should use. A second thread does not help a small network on a CPU, it slows it."""
        small = self.device.type == "cpu" and self.trainer.parameters < SMALL_NETWORK
        return 1 if small else torch.get_num_threads()


def build(config: RunConfig, *, estimate: Estimate = estimate_from_rows) -> Built:
    """Prepare a run.

    Args:
        config: The configuration.
        estimate: Estimates the noise of training rows, for methods that ask for it.

    Raises:
        InputError: If the parts of the configuration do not fit together.
        DataError: If the data cannot be read.
    """
    check_names(config.loss)
    fabric = make_fabric(config)
    if fabric.device.type == "cpu":
        keep_freed_memory()
    data = tuple(prepare(config, seed) for seed in config.seeds)
    views = views_of(config.data, data[0].train)
    _refuse(config.method.options, "method", ("setup",))
    _refuse(config.model.options, "model", ("num_classes", "input_shape"))
    trainer: Trainer
    if len(data) == 1:
        noise = MethodNoise(config, data[0], estimate)
        trainer = _one_seed(config, data, views, fabric, noise)
        data = (noise.record(),)
    else:
        trainer = _side_by_side(config, data, views, fabric)
    validations = [part.validation for part in data if part.validation is not None]
    also = {name: [part.also[name] for part in data] for name in config.data.also_test}
    tests = [part.test for part in data]
    evaluator = Evaluator(tests, validations or None, config.seeds, views, fabric.device, also)
    return Built(data, trainer, evaluator, views, fabric.device)


def check_names(loss: Choice) -> None:
    """Check the name of a loss and the names in its options, before any data is read or any noise is asked for.

    Raises:
        UnknownNameError: If one of them is unknown.
        InputError: If an option is set that is not a setting.
    """
    _refuse(loss.options, "loss", _SET_BY_THE_LOOP)
    losses.check_names(loss.name, loss.options)


def check_loss(loss: Choice, *, where: str = "the configuration") -> None:
    """Check that a loss can be made, before any data is read and anything is trained.

    Raises:
        InputError: If its name, its preset or an option is unknown, or a value cannot be used.
    """
    try:
        _loss(loss, Transition.identity(2))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _one_seed(
    config: RunConfig, data: Sequence[SeedData], views: Views, fabric: Fabric, noise: MethodNoise
) -> OneSeedTrainer:
    part, seed = data[0], config.seeds[0]

    def new_network(number: int, outputs: int | None) -> nn.Module:
        return _network(config, part.train, views, seed, number, outputs)

    return one_seed_trainer(config, part.train, views, fabric, _loss(config.loss, part.transition), new_network, noise)


def one_seed_trainer(
    config: RunConfig,
    train: Dataset,
    views: Views,
    fabric: Fabric,
    loss: Loss,
    new_network: Callable[[int, int | None], nn.Module],
    noise: NoiseAnswers,
) -> OneSeedTrainer:
    """Return the training loop for one seed of any method, on rows that may come from anywhere.

    Args:
        config: The settings. Those about data, model and loss are not read, except the sizes of small images.
        train: The training rows with their noisy labels.
        views: How rows are augmented.
        fabric: Computes gradients.
        loss: The loss, with reduction "none".
        new_network: Makes network `number` of the seed, with so many outputs; None for one output for each class.
        noise: Answers what the method asks about the noise.
    """
    seed, size = config.seeds[0], min(config.batch_size, len(train))
    batches = Batches(
        train,
        size,
        augment=views,
        side_in=lambda number: side_at(config.data.small, number / config.epochs),
        drop_single=True,
        seed=seed,
        device=fabric.device,
    )
    plain = Batches(train, ROWS_AT_ONCE, augment=views, views=("none",), shuffle=False, device=fabric.device)

    def seed_module(name: str) -> None:
        set_random_numbers(generator_for(seed, "module", name).initial_seed())

    resources = Resources(config, fabric, new_network, seed_module, len(train), train.num_classes)
    setup = methods.Setup(
        train=replace(train, labels=train.labels.to(fabric.device), clean_labels=None),
        loss=loss,
        epochs=config.epochs,
        batch_size=size,
        device=fabric.device,
        network=resources.network,
        module=resources.module,
        optimiser=resources.optimiser,
        row_state=resources.row_state,
        state=resources.state,
        generator=lambda key: generator_for(seed, "setup", key),
        estimate=noise.estimate,
        transition=noise.transition,
    )
    method = methods.get(config.method.name, setup, **config.method.options)
    return OneSeedTrainer(config, method, resources, fabric, batches, plain, _truth([train], fabric.device))


def _side_by_side(config: RunConfig, data: Sequence[SeedData], views: Views, fabric: Fabric) -> SideBySideTrainer:
    method = methods.describe(config.method.name)
    if not method.one_network_one_loss:
        raise InputError(f"the method {config.method.name} trains one seed at a time: start one run for each seed.")
    method.check_options(config.method.options)
    trains = [part.train for part in data]
    batches = LaneBatches(trains, config.seeds, config.batch_size, augment=views, device=fabric.device)
    networks = StackedNetworks([_network(config, trains[0], views, seed) for seed in config.seeds])
    losses = _losses(config.loss, [part.transition for part in data])
    return SideBySideTrainer(config, networks, losses, fabric, batches, _truth(trains, fabric.device))


def _loss(loss: Choice, transition: Transition | None) -> Loss:
    _refuse(loss.options, "loss", _SET_BY_THE_LOOP)
    return losses.get(loss.name, transition=transition, reduction="none", **loss.options)


def _losses(loss: Choice, transitions: Sequence[Transition | None]) -> list[Loss]:
    """Return one loss for all seeds, or one for each seed where each has its own estimate of the noise."""
    first = transitions[0]
    same = all(
        (other is None and first is None) or (other and first and torch.equal(other.matrix, first.matrix))
        for other in transitions
    )
    return [_loss(loss, noise) for noise in (transitions[:1] if same else transitions)]


def _refuse(options: Mapping[str, object], section: str, taken: Sequence[str]) -> None:
    for name in taken:
        if name in options:
            raise InputError(f"{section}.{name} is not a setting: it follows from the data and the loop.")


def make_fabric(config: RunConfig) -> Fabric:
    """Return what puts networks on the device of a run, in its precision, and computes gradients.

    Raises:
        InputError: If this machine does not have the device or the precision.
    """
    # Fabric takes as long to import as torch itself, so it is imported when a run is built.
    make: type[Fabric] = need("lightning_fabric", "train").Fabric
    if not logging.getLogger().handlers:  # then Fabric writes to standard error, in each run, what the user asked for
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    try:
        fabric = make(accelerator=config.accelerator, devices=1, precision=config.precision)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"accelerator={config.accelerator}, precision={config.precision}: {error}") from error
    check_precision(config.precision, fabric.device)
    return fabric


def _network(
    config: RunConfig, train: Dataset, views: Views, seed: int, number: int = 0, outputs: int | None = None
) -> nn.Module:
    """Return network `number` of a seed, with random weights that depend on both."""
    first = next(iter(Batches(train.subset(torch.tensor([0])), 1, augment=views, views=("none",))))
    shape = tuple(first.inputs.shape[1:])
    seed_network(seed, number)
    network: nn.Module = models.get(
        config.model.name, num_classes=outputs or train.num_classes, input_shape=shape, **config.model.options
    )
    if isinstance(network, models.Network) and network.rows_before_training:
        network.look_at(_some_rows(train, views, _rows_to_look_at(network.rows_before_training, shape)))
    _check_small_images(config, network, shape)
    if models.describe(config.model.name).channels_last:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    norms = (nn.BatchNorm1d, nn.BatchNorm2d)
    batch_rows = min(config.batch_size, len(train))
    if batch_rows < 2 and any(isinstance(module, norms) for module in network.modules()):
        raise InputError(
            f"{config.model.name} has batch normalisation, which needs at least two rows in a batch; "
            f"there is {batch_rows}."
        )
    return network


def _check_small_images(config: RunConfig, network: nn.Module, shape: Sequence[int]) -> None:
    """Refuse images that are smaller than the network can take, before the training gets to them."""
    if config.data.small and len(shape) != 3:
        raise InputError("data.small is for images, and these rows are features.")
    for _, side in config.data.small:
        small = shrunk_size(shape[1:], side)
        try:
            with torch.no_grad():
                network.eval()(torch.zeros(1, shape[0], *small))
        except RuntimeError:
            raise InputError(
                f"data.small: the network {config.model.name}, made for images of {shape[1]}×{shape[2]} pixels, cannot "
                f"take images of {small[0]}×{small[1]}. Choose a larger side, or a network such as fast."
            ) from None
        finally:
            network.train()


def _rows_to_look_at(wanted: int, shape: Sequence[int]) -> int:
    """Return how many rows a network looks at: fewer of large images, which have more patches each."""
    values = math.prod(shape)
    return min(wanted, max(_FEWEST_LOOKED_AT, _VALUES_LOOKED_AT // values))


def _some_rows(train: Dataset, views: Views, count: int) -> Tensor:
    """Return rows from all parts of the training set, without augmentation."""
    rows = torch.linspace(0, len(train) - 1, min(count, len(train))).long()
    (batch,) = Batches(train.subset(rows), len(rows), augment=views, views=("none",), shuffle=False).epoch(0)
    return batch.inputs


def _truth(trains: Sequence[Dataset], device: torch.device) -> Truth:
    clean = [train.clean_labels for train in trains if train.clean_labels is not None]
    return Truth(_stack([train.labels for train in trains], device), _stack(clean, device) if clean else None)


def _stack(labels: Sequence[Tensor], device: torch.device) -> Tensor:
    return torch.stack(list(labels)).to(device)
