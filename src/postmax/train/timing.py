"""Measure how long a run takes on this machine, from a few of its steps."""

from __future__ import annotations

import time
from contextlib import suppress
from statistics import fmean
from typing import NamedTuple

import torch
from torch import Tensor

from postmax import data, losses, methods
from postmax.data.shrinking import epochs_of_sides
from postmax.errors import DataError, DivergedError, InputError
from postmax.estimation import TransitionEstimate
from postmax.estimation.cost import measure_estimate_seconds, seconds_with
from postmax.train.build import Built, build
from postmax.train.config import Choice, RunConfig
from postmax.train.estimates import REPLICATES, are_images, is_kept, rows_to_estimate_from
from postmax.train.image_crossfit import measure_cross_fit_seconds
from postmax.train.prepare import prepare
from postmax.train.repeatable import repeatable_torch
from postmax.train.trainer import OneSeedTrainer, Trainer
from postmax.transition import Transition
from postmax.wording import advice

_FEW_IMAGES = 200
_FEW_ROWS, _SHORT_STEP, _STEPS, _SECONDS = 16, 1.0, 5, 2.0
# A forward pass takes about a third of the time of a training step, and held-out rows need no more.
_FORWARD = 1 / 3
_IMAGES = 4  # dimensions of a batch of them
# A method whose epochs differ is measured in the middle of each quarter of the training, in this order.
_QUARTERS = (2, 0, 3, 1)
_BATCHES = 4
# A step of 16 rows that takes longer belongs to a network that is too large for whole epochs, even on few rows. The
# method then trains a narrow network in its place.
_LONG_STEP = 0.1
_NARROW = Choice.model_validate({"name": "small", "width": 4})
# Where an epoch takes no longer than this, whole epochs are measured. Few rows make much of what is done once an epoch.
_SHORT_EPOCH, _SHORT_BY_FEW_ROWS = 1.5, 5.0


class NotHere(DataError):  # noqa: N818  (it is a fact about this machine, not a mistake)
    """The data of a run are not on this machine, so nothing can be measured."""


class Cost(NamedTuple):
    """How many seconds a run takes, in parts.

    Attributes:
        once: Before the first run of a process: reading the data, and what is imported for training.
        start: Before the first epoch of each run: preparing the rows of each seed, and making networks.
        epoch: One epoch with its evaluation, on average.
    """

    once: float
    start: float
    epoch: float


def measure_run(config: RunConfig) -> Cost:
    """Return about how many seconds a run takes on this machine, without the estimates of noise that it needs.

    Only a few steps are measured. Nothing is estimated, downloaded or computed that takes long.

    Raises:
        NotHere: If files of the data set are missing.
        InputError: If the run cannot be started.
    """
    config = _ready(config)
    with torch.random.fork_rng(), repeatable_torch():
        first, built = _timed_build(_small_batches(config))
        start, built = _timed_build(_small_batches(config))
        torch.set_num_threads(built.threads)
        same = methods.describe(config.method.name).one_network_one_loss
        epoch = _from_steps(config, built) if same else _of_a_method(config, built)
        if epoch < (_SHORT_EPOCH if same else _SHORT_BY_FEW_ROWS):
            epoch = _from_whole_epochs(config, 1 if same else len(_QUARTERS)) or epoch
    return Cost(max(0.0, first - start), start, epoch)


def measure_estimates(config: RunConfig) -> float:
    """Return about how many seconds a run needs for its estimates of the noise: those that are not kept yet.

    Raises:
        NotHere: If files of the data set are missing.
        InputError: If the rows cannot be prepared.
    """
    if not needs_estimates(config):
        return 0.0
    config = _ready(config)
    missing, seconds = 0, 0.0
    for seed in config.seeds:
        train = prepare(config, seed).train
        # Images that are read from disk are not compared with what is kept: that would read all of them.
        if not isinstance(train.inputs, Tensor) or not is_kept(train, rows_to_estimate_from(train)):
            missing += 1
            seconds = seconds or _seconds_of_an_estimate(train)
    return missing * seconds


def _seconds_of_an_estimate(train: data.Dataset) -> float:
    some = train if isinstance(train.inputs, Tensor) else train.subset(torch.arange(min(len(train), _FEW_IMAGES)))
    rows = rows_to_estimate_from(some)
    if not are_images(rows):
        return measure_estimate_seconds(rows, some.labels, train.num_classes, replicates=REPLICATES)
    cross_fit = measure_cross_fit_seconds(rows[:_FEW_IMAGES], len(train), train.num_classes)
    return seconds_with(cross_fit, train.labels, train.num_classes, replicates=REPLICATES)


def needs_estimates(config: RunConfig) -> bool:
    """Return whether a run estimates the noise of its labels."""
    return _loss_needs_estimates(config) or _method_needs_estimates(config)


def _loss_needs_estimates(config: RunConfig) -> bool:
    return config.transition == "estimated" and losses.needs_transition(config.loss.name, config.loss.options)


def _method_needs_estimates(config: RunConfig) -> bool:
    entry = methods.describe(config.method.name)
    if entry.facts is None:
        return False
    named = config.transition == "estimated" and entry.facts.uses_transition
    option = entry.facts.estimates_unless
    return named or bool(option and entry.with_preset(config.method.options).get(option) is None)


def _ready(config: RunConfig) -> RunConfig:
    """Return the configuration with a stand-in for noise that would be estimated, if its data are here."""
    for name in filter(None, (config.data.name, *config.data.also_test)):
        if data.absent(name, config.data.root):
            get = advice(python=f'postmax.data.get("{name}")', command=f"postmax data get {name}")
            raise NotHere(f"{name} is not here ({get})")
    return config.model_copy(update={"transition": "symmetric:0.1"}) if _loss_needs_estimates(config) else config


def _small_batches(config: RunConfig) -> RunConfig:
    return config.model_copy(update={"batch_size": min(_FEW_ROWS, config.batch_size)})


def _assumed(train: data.Dataset) -> TransitionEstimate:
    """Return a stand-in for an estimate of the noise, which would take long."""
    transition = Transition.symmetric(train.num_classes, 0.1)
    return TransitionEstimate(
        transition=transition,
        prior=torch.full((train.num_classes,), 1 / train.num_classes, dtype=torch.float64),
        noise_rate=0.1,
        interval=(transition.matrix, transition.matrix),
        sampling_interval=(0.1, 0.1),
        noise_rate_interval=(0.1, 0.1),
        level=0.95,
        method="assumed",
        classes=train.classes,
        rows=len(train),
        unidentified={},
    )


def _timed_build(config: RunConfig) -> tuple[float, Built]:
    begin = time.perf_counter()
    built = build(config, estimate=_assumed)
    return time.perf_counter() - begin, built


def _from_steps(config: RunConfig, built: Built) -> float:
    """Return the seconds of an epoch, from the seconds of a step."""
    trained, last = _seconds_of_a_row(config, built)
    return trained * len(built.data[0].train) + last * _evaluated(config, built)


def _seconds_of_a_row(config: RunConfig, built: Built) -> tuple[float, float]:
    """Return the seconds that a row takes in an epoch: the mean over all epochs, and for images of their whole size."""
    rows, trainer = min(_FEW_ROWS, config.batch_size), built.trainer
    # Epochs with images of the same size take as long, so one of them is measured.
    alike = epochs_of_sides(config.data.small, config.epochs)
    if rows < config.batch_size and _seconds_of_a_step(trainer, max(alike)) * config.batch_size / rows < _SHORT_STEP:
        # Larger batches use a machine better. Where it is quick to do so, they are measured at their real size.
        rows, trainer = config.batch_size, build(config, estimate=_assumed).trainer
    seconds = {number: _seconds_of_a_step(trainer, number) / rows for number in alike}
    return sum(seconds[number] * count for number, count in alike.items()) / config.epochs, seconds[max(alike)]


def _of_a_method(config: RunConfig, built: Built) -> float:
    """Return the mean seconds of epochs of a method whose epochs differ, or that trains more than one network."""
    if _are_images(built.data[0].train):
        standard = config.model_copy(update={"method": Choice(name="standard")})
        plain = build(_small_batches(standard), estimate=_assumed)
        step = _seconds_of_a_step(plain.trainer, config.epochs - 1)
        # Where many rows take as long as few, as on a GPU, small batches would say nothing.
        if step > _LONG_STEP or built.device.type != "cpu":
            # A method may need layers that the narrow network does not have.
            with suppress(InputError):
                return _from_operations(config, built, _seconds_of_a_row(standard, plain))
    return _from_few_rows(config, built)


def _are_images(train: data.Dataset) -> bool:
    return not isinstance(train.inputs, Tensor) or train.inputs.dim() == _IMAGES


def _from_few_rows(config: RunConfig, built: Built) -> float:
    """Return the mean seconds of epochs from all parts of the training, from whole epochs on few rows.

    This counts what a method does beside its steps, such as going over all rows, and how many networks it trains.
    """
    first = built.data[0]
    rows = min(len(first.train), max(_BATCHES * _FEW_ROWS, 2 * first.train.num_classes))
    times = _quarters(_on_rows(_small_batches(config), built, rows), patience=2 * _SECONDS)[0]
    return fmean(times) / rows * (len(first.train) + _evaluated(config, built))


def _from_operations(config: RunConfig, built: Built, row: tuple[float, float]) -> float:
    """Return the mean seconds of epochs of a method with a large network.

    The method trains a narrow network on few rows, in all quarters of the training. The counted operations tell how
    much it computes, compared with a training that is nothing but steps; one step of that with the large network was
    measured. The seconds tell how long everything else takes, such as augmentation and mixtures.

    Args:
        config: The run.
        built: The same, ready to start.
        row: The seconds that a row takes in a training that is nothing but steps; see `_seconds_of_a_row`.
    """
    first, narrow = built.data[0], config.model_copy(update={"model": _NARROW})
    rows = min(len(first.train), max(_BATCHES * _FEW_ROWS, 2 * config.batch_size, 2 * first.train.num_classes))
    plain = _on_rows(narrow.model_copy(update={"method": Choice(name="standard")}), built, rows)
    one = fmean(_quarters(plain, 1)[1])
    times, operations = _quarters(_on_rows(narrow, built, rows))
    trained = fmean(operations) / one * row[0] + fmean(times) / rows
    return trained * len(first.train) + row[1] * _evaluated(config, built)


def _on_rows(config: RunConfig, built: Built, rows: int) -> OneSeedTrainer:
    """Return the loop of a run that has so many training rows."""
    first = built.data[0]
    available = len(first.train) + (0 if first.validation is None else len(first.validation))
    with_validation = min(available, round(rows / (1 - config.data.validation_share)))
    few = config.data.model_copy(update={"train_rows": with_validation})
    trainer = build(config.model_copy(update={"data": few}), estimate=_assumed).trainer
    if not isinstance(trainer, OneSeedTrainer):
        raise TypeError("a run with several seeds side by side is measured from its steps")
    return trainer


def _quarters(
    trainer: OneSeedTrainer, count: int = len(_QUARTERS), patience: float = float("inf")
) -> tuple[list[float], list[int]]:
    """Return the seconds and the operations of one epoch in each of some quarters of the training.

    Args:
        trainer: The loop of a run.
        count: In how many quarters.
        patience: After how many seconds no further quarter is measured.
    """
    for _ in zip(range(2), trainer.steps(0), strict=False):
        pass  # the very first steps also prepare what the others use
    times: list[float] = []
    operations: list[int] = []
    for quarter in _QUARTERS[:count]:
        trainer.resources.work.take()
        begin = time.perf_counter()
        for _ in trainer.steps(_epoch_in(quarter, trainer.epochs)):
            pass
        times.append(time.perf_counter() - begin)
        operations.append(trainer.resources.work.take()[1])
        if sum(times) > patience:
            break
    return times, operations


def _from_whole_epochs(config: RunConfig, quarters: int) -> float | None:
    """Return the mean seconds of whole epochs with their evaluation; None if the training diverges at once."""
    built = build(config, estimate=_assumed)
    times = []
    try:
        built.trainer.epoch(0)
        for quarter in _QUARTERS[:quarters]:
            begin = time.perf_counter()
            records = built.trainer.epoch(_epoch_in(quarter, config.epochs))
            trained = time.perf_counter()
            built.trainer.judge(built.evaluator, records)
            times.append(trained - begin + (time.perf_counter() - trained) / config.evaluate_every)
            if sum(times) > 2 * _SECONDS:
                break
    except DivergedError:
        return None
    return fmean(times)


def _epoch_in(quarter: int, epochs: int) -> int:
    return min(epochs - 1, int((quarter + 0.5) * epochs / len(_QUARTERS)))


def _evaluated(config: RunConfig, built: Built) -> float:
    """Return the work of evaluating held-out rows after an epoch, in rows that are trained on."""
    first = built.data[0]
    held_out = len(first.test) + sum(map(len, first.also.values()))
    return _FORWARD * held_out / config.evaluate_every


def _seconds_of_a_step(trainer: Trainer, epoch: int) -> float:
    """Return the seconds of the fastest of a few steps of an epoch. The first also prepares what the others use."""
    times = []
    start = time.perf_counter()
    for _, _ in zip(range(1 + _STEPS), trainer.steps(epoch), strict=False):
        now = time.perf_counter()
        times.append(now - start)
        start = now
        if sum(times) > _SECONDS:
            break
    return min(times)
