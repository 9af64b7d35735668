"""PES: the later parts of a network memorise wrong labels first, so they are stopped first and trained anew.

Bai, Yang, Han, Yang, Li, Mao, Niu and Liu, Understanding and improving early stopping for learning with noisy labels,
NeurIPS 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from postmax.data import Batch
from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.agreement import agreeing_rows, class_weights
from postmax.methods.parts.features import with_features
from postmax.methods.parts.later_parts import Part, begin_anew, parts_of, these_alone
from postmax.methods.parts.mixmatch import Aim, guess, mean_posterior, mix_and_match, scaled_weight
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.pull import pull
from postmax.methods.parts.ramps import ramp
from postmax.methods.parts.targets import one_hot

# Published: 200 or 300 epochs, in which the epochs of the parts that are trained anew are not counted.
_EPOCHS, _SEMI_EPOCHS = 200 + 7 + 5, 300 + 5
_WARMUP, _BLOCK, _LAYER = 25 / _EPOCHS, 7 / _EPOCHS, 5 / _EPOCHS
_SEMI_WARMUP, _SEMI_LAYER, _SEMI_RAMP = 20 / _SEMI_EPOCHS, 5 / _SEMI_EPOCHS, 16 / _SEMI_EPOCHS
# Published are steps of Adam of 1e-4, 7 and 5 epochs with 352 batches each. A weight can move that far in all of them.
_RATE, _STEPS = 1e-4, 352
_DISTANCES = (7 * _STEPS * _RATE, 5 * _STEPS * _RATE)
_LARGEST_RATE = 0.05
_VIEWS = ("weak", "weak")
# From this share of the training on, mixup has its second parameter.
_LATE = 0.5
# The squared error is a mean over rows without labels. If they are few, each of them would count much more than a row
# with a label. So its weight is full from this share of a batch on, and falls in proportion below.
_FULL_WEIGHT = 1 / 8
# Batch normalisation cannot use a single row, so fewer than two rows count as none.
_FEWEST = 2


class PES(Method):
    """Stop the parts of a network one after the other, and learn from the rows that it then agrees with.

    1. The whole network learns all labels for a short time, in which it memorises few wrong labels. The last block
       and the last layer have memorised most by then.
    2. The last block and the last layer get new random weights, and are trained on all labels for a few epochs, while
       the earlier parts stay as they are. Then the same is done with the last layer alone, for fewer epochs.
    3. At the beginning of each further epoch, the network predicts the class of each row, from the mean posterior of
       two views. The rows whose label is the predicted class are *confident*. The network learns from them, with a
       weight for each class; or from all rows with MixMatch, where the other rows lose their labels.

    The last block is the last part of the network with weights before the last layer: the last stage of a residual
    network, the last hidden layer of a perceptron. A part is only trained anew if an earlier part stays. So a network
    with one hidden layer has a new last layer alone, and for a linear model the second phase is left out.

    Args:
        setup: What the loop offers.
        warmup_epochs: How many epochs the first phase takes. By default 12 % of the training, or 7 % with MixMatch.
        block_epochs: How many epochs the last block and layer are trained anew. By default 3 % of the training, or none
            with MixMatch.
        layer_epochs: How many epochs the last layer alone is trained anew. By default 2 % of the training.
        refine_lr: The learning rate of Adam in the second phase. By default a weight can move as far as with the
            published rate of 1e-4, but the rate is at most 0.05.
        semi_supervised: Whether the third phase uses MixMatch. It takes about three times as long.
        temperature: The temperature with which MixMatch sharpens the predictions of rows without labels.
        alpha: The parameter of the Beta distribution of mixup in the first half of the training.
        late_alpha: The same for the second half.
        unlabelled_weight: The weight of rows without labels. By default 15 for ten classes, in proportion for other
            numbers of classes, and times the strength of the loss (`parts/pull.py`). It is lowered if they are fewer
            than an eighth of a batch.
        ramp_epochs: Over how many epochs of the third phase that weight rises. By default 5 % of the training.
    """

    name = "pes"

    def __init__(
        self,
        setup: Setup,
        *,
        warmup_epochs: int | None = None,
        block_epochs: int | None = None,
        layer_epochs: int | None = None,
        refine_lr: float | None = None,
        semi_supervised: bool = False,
        temperature: float = 0.5,
        alpha: float = 4.0,
        late_alpha: float = 0.75,
        unlabelled_weight: float | None = None,
        ramp_epochs: int | None = None,
    ) -> None:
        super().__init__(setup)
        if not isinstance(semi_supervised, bool):
            raise InputError(f"method.semi_supervised must be true or false, got {semi_supervised!r}.")
        epochs, classes = setup.epochs, setup.train.num_classes
        warmup = phase_epochs(warmup_epochs, _SEMI_WARMUP if semi_supervised else _WARMUP, epochs)
        if semi_supervised and block_epochs is None:
            block_epochs = 0
        block = phase_epochs(block_epochs, _BLOCK, epochs)
        layer = phase_epochs(layer_epochs, _SEMI_LAYER if semi_supervised else _LAYER, epochs)
        ramp_epochs = phase_epochs(ramp_epochs, _SEMI_RAMP, epochs)
        if unlabelled_weight is None:
            unlabelled_weight = scaled_weight(15, classes) * pull(setup.loss, classes)
        check_number(least=0, whole=True, warmup_epochs=warmup, block_epochs=block, layer_epochs=layer)
        check_number(least=0, whole=True, ramp_epochs=ramp_epochs)
        check_number(least=0, unlabelled_weight=unlabelled_weight)
        check_number(above=0, temperature=temperature, alpha=alpha, late_alpha=late_alpha)
        if refine_lr is not None:
            check_number(above=0, refine_lr=refine_lr)
        self._warmup_epochs, self._semi_supervised = warmup, semi_supervised
        self._temperature, self._alphas = temperature, (alpha, late_alpha)
        self._weight, self._ramp_epochs = unlabelled_weight, ramp_epochs
        self._labels, self._classes, self._batch_size = setup.train.labels, classes, setup.batch_size
        self._network, fresh = (with_features(setup.network(), self.name) for _ in range(2))
        self.answer = self._network
        # The loop records the learning rate of the first optimiser, so that of the longest phase is made first. The
        # first phase has another one: the momentum of weights that were thrown away would disturb the new ones.
        self._optimiser = setup.optimiser(list(self._network.parameters()), "confident rows")
        self._early_optimiser = setup.optimiser(list(self._network.parameters()), "all labels")
        self._parts = parts_of(self._network)
        steps = math.ceil(len(self._labels) / setup.batch_size)
        self._refinements = refinements(
            setup, self._parts, parts_of(fresh), warmup, (block, layer), steps=steps, lr=refine_lr
        )
        self._refined = max([warmup, *(one.end for one in self._refinements)])
        # Rows with whose label the network does not agree. At first there are none, because none was compared.
        self._doubted = setup.row_state("doubted", dtype=torch.bool)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Train in the phase that it is time for."""
        loss = self.loss.at(run.share)
        if run.number < self._warmup_epochs:
            return self._learn_early(run, loss)
        for one in self._refinements:
            if run.number < one.end:
                return self._refine(run, loss, one)
        return self._learn_from_confident_rows(run, loss)

    def learnt(self) -> dict[str, Tensor]:
        """Return which rows were confident in the last epoch; all of them if there was no third phase."""
        return {"confident": ~self._doubted}

    def _learn_early(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        """Train the whole network on all labels."""
        return self._pass(run, loss, self._early_optimiser)

    def _pass(self, run: Epoch, loss: Loss, optimiser: Optimizer) -> Iterator[Step]:
        for batch in run.batches():
            logits = self._network(batch.inputs)
            value = loss(logits, batch.labels).mean()
            run.update(value, optimiser)
            yield Step(value, batch.rows, logits)

    def _refine(self, run: Epoch, loss: Loss, one: Refinement) -> Iterator[Step]:
        """Train some parts on all labels, from new random weights."""
        if run.number == one.start:
            begin_anew(one.parts, one.fresh)
        with these_alone(self._network, one.parts):
            yield from self._pass(run, loss, one.optimiser)

    def _learn_from_confident_rows(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        """Choose the confident rows, and train on them, or on all rows with MixMatch."""
        confident, rows, outputs = self._choose(run, loss)
        self._doubted.copy_(~confident)
        weights = class_weights(self._labels[confident], self._classes)
        losses = self._mixed_losses if self._semi_supervised else self._weighted_losses
        values = {"confident": float(confident.float().mean())}
        for index, value in enumerate(losses(run, loss, confident, weights)):
            run.update(value, self._optimiser)
            # Training metrics are about all rows, as they were before the epoch, and not about confident rows alone.
            yield Step(value, rows, outputs, values) if index == 0 else Step(value, values=values)

    @torch.no_grad()
    def _choose(self, run: Epoch, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        """Return which rows are confident, (N,), the rows that were seen, (n,), and outputs of one view, (n, K)."""
        predicted = torch.full_like(self._labels, -1)
        outputs = torch.zeros(len(self._labels), self._classes, device=self._labels.device)
        self._network.eval()
        for batch in run.batches(views=_VIEWS, stream="choice"):
            logits = [self._network(view) for view in batch.views]
            predicted[batch.rows] = mean_posterior(loss, logits).argmax(1)
            outputs[batch.rows] = logits[0].float()
        self._network.train()
        seen = (predicted >= 0).nonzero()[:, 0]
        return agreeing_rows(predicted, self._labels, self._classes), seen, outputs[seen]

    def _weighted_losses(self, run: Epoch, loss: Loss, confident: Tensor, weights: Tensor) -> Iterator[Tensor]:
        """Yield the loss of each batch of confident rows."""
        for batch in run.batches(confident.nonzero()[:, 0]):
            losses = loss(self._network(batch.inputs), batch.labels)
            yield weighted_mean(loss, losses, weights[batch.labels])

    def _mixed_losses(self, run: Epoch, loss: Loss, confident: Tensor, weights: Tensor) -> Iterator[Tensor]:
        """Yield the loss of each batch of confident rows and rows without labels, mixed with each other."""
        chosen, others = confident.nonzero()[:, 0], (~confident).nonzero()[:, 0]
        size, other_size = shared_batch(len(chosen), len(others), self._batch_size)
        labelled = run.batches(chosen, views=_VIEWS, size=size, stream="confident", endless=True)
        unlabelled: Iterator[Batch] | None = None
        if other_size:
            unlabelled = run.batches(others, views=_VIEWS, size=other_size, stream="doubted", endless=True)
        alpha, generator = self._alphas[int(run.share >= _LATE)], run.generator("mixup")
        full = self._weight * min(1.0, other_size / (_FULL_WEIGHT * self._batch_size))
        for index in range(run.steps):
            batch = next(labelled)
            aim, other_aim = Aim(batch.views, one_hot(batch.labels, self._classes)), None
            if unlabelled is not None:
                views = next(unlabelled).views
                with torch.no_grad():
                    targets = guess(loss, [self._network(view) for view in views], self._temperature)
                other_aim = Aim(views, targets)
            found = mix_and_match(loss, self._network, aim, other_aim, alpha, generator)
            weight = full * ramp(run.number + index / run.steps, self._refined, self._ramp_epochs)
            counts = found.targets[: len(batch.views) * len(batch.rows)] @ weights
            yield weighted_mean(loss, found.labelled, counts) + weight * found.unlabelled


class Refinement(NamedTuple):
    """Some epochs in which the later parts of a network are trained anew.

    Attributes:
        start: The first of these epochs, counted from 0.
        end: The epoch after the last one.
        parts: The parts that are trained.
        fresh: The same parts of a network that is never trained, for the new weights.
        optimiser: Moves the parts.
    """

    start: int
    end: int
    parts: list[Part]
    fresh: list[Part]
    optimiser: Optimizer


def refinements(
    setup: Setup,
    parts: list[Part],
    fresh: list[Part],
    start: int,
    lengths: tuple[int, int],
    *,
    steps: int,
    lr: float | None,
) -> list[Refinement]:
    """Return the second phase: the last block and layer, then the last layer alone.

    Args:
        setup: What the loop offers.
        parts: The parts of the network.
        fresh: The same parts of a network that is never trained.
        start: The first epoch of the phase. At least one epoch of the training is left after the phase.
        lengths: How many epochs each of the two takes.
        steps: How many steps an epoch has.
        lr: The learning rate; None for one with which a weight can move as far as published.
    """
    found = []
    for count, length, distance in zip((2, 1), lengths, _DISTANCES, strict=True):
        end = min(start + length, setup.epochs - 1)
        if count >= len(parts) or end <= start:
            continue
        rate = refining_rate(distance, (end - start) * steps) if lr is None else lr
        mine = parts[-count:]
        moved = [parameter for part in mine for module in part for parameter in module.parameters()]
        optimiser = setup.optimiser(
            moved, f"refinement of {count}", kind="adam", lr=rate, weight_decay=0.0, scheduled=False
        )
        found.append(Refinement(start, end, mine, fresh[-count:], optimiser))
        start = end
    return found


def refining_rate(distance: float, steps: int) -> float:
    """Return the learning rate with which Adam can move a weight by a distance in some steps, but at most 0.05.

    Example:
        >>> refining_rate(0.2464, 2464), refining_rate(0.2464, 1)
        (0.0001, 0.05)
    """
    return min(_LARGEST_RATE, distance / steps)


def shared_batch(chosen: int, others: int, size: int) -> tuple[int, int]:
    """Return how many rows of a batch are confident, and how many are not.

    A batch has as large a share of either kind as the training rows have, but at least half of it is confident. Fewer
    than two rows of a kind, which batch normalisation could not use, become none.

    Args:
        chosen: How many confident rows there are.
        others: How many other rows there are.
        size: How many rows a batch has.

    Example:
        >>> shared_batch(75, 25, 128), shared_batch(10, 90, 128), shared_batch(99, 1, 128), shared_batch(1, 1, 1)
        ((96, 32), (64, 64), (128, 0), (1, 0))
    """
    wanted = min(size // 2, round(size * others / (chosen + others)))
    rest = wanted if min(wanted, others) >= _FEWEST else 0
    return size - rest, rest


def weighted_mean(loss: Loss, losses: Tensor, weights: Tensor) -> Tensor:
    """Return the mean of losses (B,) with weights (B,). A loss that is one number for a batch has no weights.

    Example:
        >>> from postmax import losses
        >>> weighted_mean(losses.get("ce", reduction="none"), torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
        tensor(2.)
    """
    if loss.is_of_whole_batch:
        return losses.mean()
    return (weights * losses).sum() / weights.sum().clamp_min(torch.finfo(weights.dtype).tiny)


SOURCE = "Bai et al. 2021, released code"
_SGD = {"batch_size": 128, "optimiser.name": "sgd", "optimiser.momentum": 0.9}
# Published milestones are 100 and 150, without the 12 epochs of the second phase.
TRAINING = {
    **_SGD,
    "epochs": _EPOCHS,
    "optimiser.lr": 0.1,
    "optimiser.weight_decay": 1e-4,
    "schedule.name": "step",
    "schedule.milestones": [112, 162],
}
SEMI_TRAINING = {
    **_SGD,
    "epochs": _SEMI_EPOCHS,
    "optimiser.lr": 0.02,
    "optimiser.weight_decay": 5e-4,
    "schedule.name": "cosine",
}


def _plain(warmup: int) -> Preset:
    options = {"warmup_epochs": warmup, "block_epochs": 7, "layer_epochs": 5, "refine_lr": 1e-4}
    return Preset(options, SOURCE, TRAINING)


def _semi(warmup: int | None, weight: float) -> Preset:
    options: dict[str, Any] = {"layer_epochs": 5, "refine_lr": 1e-4, "ramp_epochs": 16, "unlabelled_weight": weight}
    if warmup is not None:
        options["warmup_epochs"] = warmup
    return Preset({"semi_supervised": True, **options}, SOURCE, SEMI_TRAINING)


register(
    "pes",
    PES,
    "one network whose later parts are trained anew, and which then learns from rows it agrees with",
    Facts(
        idea="Later parts of a network memorise wrong labels sooner than earlier parts. So the whole network is "
        "stopped early, its last block and its last layer are trained anew for a short time, and rows whose label is "
        "then the predicted class are taken for right.",
        source="Bai et al., Understanding and improving early stopping for learning with noisy labels, NeurIPS 2021",
        remembers="whether its label was the predicted class in the last epoch",
        posterior="The predicted class is that of the mean posterior of two views. With MixMatch, so are the targets "
        "of rows without labels, and their squared error is that of the posterior.",
        deviations="All parts are trained in the last phase; in the released code the optimiser still holds the "
        "weights that were thrown away, so that the new ones never change after the second phase. Parts that stay are "
        "in evaluation mode, so their statistics of batch normalisation stay too. A class keeps all its rows if none "
        "or very few of them agree, and class weights are at most 3 in both variants; the released code loses such a "
        "class, gives NaN without any confident row, and fails with too few other rows. With MixMatch, a class weight "
        "counts for a mixture as a whole, and few rows without labels have a smaller weight. The epochs of the second "
        "phase count as epochs of the training, and all phases are shares of it.",
    ),
    presets={
        "cifar10": _plain(25),
        "cifar100": _plain(30),
        "cifar10-mixmatch": _semi(20, 150),
        "cifar10-instance-40-mixmatch": _semi(20, 15),
        "cifar10n-mixmatch": _semi(None, 5),
        "cifar100-mixmatch": _semi(35, 150),
        "cifar100-pair-45-mixmatch": _semi(35, 50),
        "cifar100n-mixmatch": _semi(None, 75),
    },
)
