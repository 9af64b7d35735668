"""DivideMix: rows that are probably labelled wrong lose their labels, and two networks teach each other.

Li, Socher and Hoi, DivideMix: Learning with noisy labels as semi-supervised learning, ICLR 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from postmax.data import Batch
from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.clean_rows import clean_probability
from postmax.methods.parts.ensemble import MeanOutputs
from postmax.methods.parts.mixmatch import Aim, guess, mean_posterior, mix_and_match, one_sidedness, scaled_weight
from postmax.methods.parts.options import check_number
from postmax.methods.parts.pair import two_networks
from postmax.methods.parts.phases import early_epochs, phase_epochs
from postmax.methods.parts.pull import pull
from postmax.methods.parts.ramps import ramp
from postmax.methods.parts.targets import one_hot, sharpen

_VIEWS = ("weak", "weak")
# Batch normalisation cannot use a single row, so a side of the division with one row counts as empty.
_FEWEST = 2


class DivideMix(Method):
    """Train two networks in turn. Each divides the rows for the other into labelled and unlabelled ones.

    1. For some epochs both networks are trained with the loss of the run on all labels.
    2. From then on, in each epoch, a mixture of two distributions is fitted to the losses of each network; it says how
       probable it is that a label is right. Rows below the threshold lose their labels.
    3. Each network is trained on the division that the *other* network made: given labels are mixed with predictions,
       missing labels are predicted by both networks, both are sharpened, and everything goes through mixup.

    Predictions are posteriors of the loss of the run, never a softmax of its logits. The outputs of the two networks
    are averaged to give the answer.

    Args:
        setup: What the loop offers.
        warmup_epochs: How many epochs come before the first division. By default the published share, 10 of 300, but
            at least 10 or a quarter of the training: losses of networks that have learnt nothing divide nothing.
        threshold: How probable a right label must be for a row to keep its label.
        temperature: The temperature of the sharpening.
        alpha: The parameter of mixup's Beta distribution.
        unlabelled_weight: The weight of the unlabelled rows for cross-entropy. By default 25 for ten classes, and in
            proportion for other numbers of classes. Published values depend on the noise; they are in the presets. For
            other losses it is multiplied by how strongly they pull: beside a weak loss such as SL-PML a weight that was
            chosen for cross-entropy would overrule the labels.
        ramp_epochs: Over how many epochs after the warm-up that weight rises from 0. By default the published share, 16
            of 300.
        warmup_penalty: The weight of the negative entropy of predictions in the warm-up; published as 1 for asymmetric
            noise and 0 otherwise. It is multiplied in the same way.
        loss_memory: Over how many epochs the losses of a row are averaged before the rows are divided; published as 5
            for 90 % noise and 1 otherwise.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        warmup_epochs: int | None = None,
        threshold: float = 0.5,
        temperature: float = 0.5,
        alpha: float = 4.0,
        unlabelled_weight: float | None = None,
        ramp_epochs: int | None = None,
        warmup_penalty: float = 0.0,
        loss_memory: int = 1,
    ) -> None:
        super().__init__(setup)
        classes = setup.train.num_classes
        least = early_epochs(10, setup.epochs)
        warmup_epochs = phase_epochs(warmup_epochs, 10 / 300, setup.epochs, least=least)
        ramp_epochs = phase_epochs(ramp_epochs, 16 / 300, setup.epochs)
        if unlabelled_weight is None:
            unlabelled_weight = scaled_weight(25, classes)
        check_number(least=0, below=1, threshold=threshold)
        check_number(above=0, temperature=temperature, alpha=alpha)
        check_number(least=0, unlabelled_weight=unlabelled_weight, warmup_penalty=warmup_penalty)
        check_number(least=0, whole=True, warmup_epochs=warmup_epochs, ramp_epochs=ramp_epochs)
        check_number(least=1, whole=True, loss_memory=loss_memory)
        refuse_batch_loss("divide-mix", setup.loss)
        if setup.epochs <= warmup_epochs:
            raise InputError(
                f"divide-mix divides the rows after method.warmup_epochs = {warmup_epochs} epochs, but the run has "
                f"{setup.epochs}: give more epochs, or a shorter warm-up."
            )
        self._labels, self._classes = setup.train.labels, classes
        self._batch_size = setup.batch_size
        self._warmup_epochs, self._threshold, self._temperature = warmup_epochs, threshold, temperature
        self._alpha, self._weight, self._ramp_epochs = alpha, unlabelled_weight, ramp_epochs
        self._warmup_penalty = warmup_penalty
        self._networks, self._optimisers = two_networks(setup)
        self._memory = tuple(setup.row_state(f"losses of network {place}", (loss_memory,)) for place in (0, 1))
        self.answer = MeanOutputs(self._networks)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Warm both networks up, or divide the rows and train both networks on the divisions."""
        loss = self.loss.at(run.share)
        if run.number < self._warmup_epochs:
            for place in (0, 1):
                yield from self._warm_up(run, loss, place)
            return
        clean = [self._clean_probability(run, loss, place) for place in (0, 1)]
        for place in (0, 1):
            trusted = clean[1 - place] > self._threshold
            if trusted.sum() < _FEWEST:  # without labelled rows there would be nothing to learn from
                yield from self._warm_up(run, loss, place)
            else:
                yield from self._semi_supervised(run, loss, place, clean[1 - place], trusted)

    def _warm_up(self, run: Epoch, loss: Loss, place: int) -> Iterator[Step]:
        network, penalty = self._networks[place], self._warmup_penalty * pull(loss, self._classes)
        for batch in run.batches(stream=f"warm-up {place}"):
            logits = network(batch.inputs)
            value = loss(logits, batch.labels).mean()
            if penalty:
                # A posterior of exactly 0 has no gradient in p·log p.
                p = loss.posterior(logits) + torch.finfo(logits.dtype).tiny
                value = value + penalty * torch.special.xlogy(p, p).sum(-1).mean()
            run.update(value, self._optimisers[place])
            yield Step(value, batch.rows, logits)

    def _clean_probability(self, run: Epoch, loss: Loss, place: int) -> Tensor:
        """Return how probable it is, by the losses of a network, that each training label is right, (N,)."""
        memory, number = self._memory[place], run.number - self._warmup_epochs
        memory[:, number % memory.shape[1]] = loss(run.evaluate(self._networks[place]), self._labels)
        return clean_probability(memory[:, : number + 1].mean(1))

    def _semi_supervised(self, run: Epoch, loss: Loss, place: int, clean: Tensor, trusted: Tensor) -> Iterator[Step]:
        """Train one network on the division that the other network made."""
        labelled, others = trusted.nonzero()[:, 0], (~trusted).nonzero()[:, 0]
        unlabelled: Iterator[Batch] | None = None
        if len(others) >= _FEWEST:
            unlabelled = run.batches(others, views=_VIEWS, stream=f"unlabelled {place}", endless=True)
        count = math.ceil(len(labelled) / self._batch_size)
        generator = run.generator(f"mixup {place}")
        network, other = self._networks[place], self._networks[1 - place]
        strength = pull(loss, self._classes)
        other.eval()
        for index, batch in enumerate(run.batches(labelled, views=_VIEWS, stream=f"labelled {place}")):
            weight = self._weight * ramp(run.number + index / count, self._warmup_epochs, self._ramp_epochs)
            batches = [batch] if unlabelled is None else [batch, next(unlabelled)]
            with torch.no_grad():
                logits = [[network(view) for view in part.views] for part in batches]
                targets = [self._refined(loss, batch, logits[0], clean[batch.rows])]
                if unlabelled is not None:
                    targets.append(self._guessed(loss, batches[1], logits[1], other))
            aims = [Aim(part.views, target) for part, target in zip(batches, targets, strict=True)]
            found = mix_and_match(loss, network, aims[0], aims[1] if len(aims) > 1 else None, self._alpha, generator)
            # The penalty against one-sided answers keeps its published weight beside a weak loss. Such a loss learns
            # some classes late; if all their rows have lost their labels by then, only the penalty brings them back.
            value = found.labelled.mean() + strength * weight * found.unlabelled + one_sidedness(found.posterior)
            run.update(value, self._optimisers[place])
            rows, seen = (torch.cat(parts) for parts in ([b.rows for b in batches], [views[0] for views in logits]))
            yield Step(value, rows, seen, {"labelled": len(labelled) / len(trusted)})
        other.train()

    def _refined(self, loss: Loss, batch: Batch, logits: Sequence[Tensor], clean: Tensor) -> Tensor:
        """Return targets for labelled rows: given labels and predictions, mixed as far as labels are trusted."""
        predicted = mean_posterior(loss, logits)
        trust = clean[:, None]
        return sharpen(trust * one_hot(batch.labels, self._classes) + (1 - trust) * predicted, self._temperature)

    def _guessed(self, loss: Loss, batch: Batch, logits: Sequence[Tensor], other: nn.Module) -> Tensor:
        """Return targets for unlabelled rows: the mean prediction of both networks."""
        return guess(loss, [*logits, *(other(view) for view in batch.views)], self._temperature)


_SOURCE = "Li, Socher and Hoi, DivideMix: Learning with noisy labels as semi-supervised learning, ICLR 2020"
_TRAINING = {
    "epochs": 300,
    "batch_size": 64,
    "optimiser.lr": 0.02,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 5e-4,
    "schedule": "step",
}


def _preset(warmup_epochs: int, unlabelled_weight: float, **options: float) -> Preset:
    given = {"warmup_epochs": warmup_epochs, "unlabelled_weight": unlabelled_weight, "ramp_epochs": 16, **options}
    return Preset(given, f"{_SOURCE}; released code and its authors' answers", _TRAINING)


register(
    "divide-mix",
    DivideMix,
    "two networks that divide the rows for each other and learn with mixup",
    Facts(
        idea=(
            "A mixture of two distributions, fitted to the losses of all rows, says which labels are probably wrong. "
            "These rows lose their labels, and MixMatch learns from both kinds of rows. Each of two networks uses the "
            "division that the other one made, so that neither confirms its own mistakes."
        ),
        source=_SOURCE,
        networks=2,
        remembers="the losses of the last epochs, as many as loss_memory says",
        posterior=(
            "in all targets, in the squared error of unlabelled rows, and in the penalty against one-sided answers"
        ),
        deviations=(
            "Numbers of epochs are shares of the training; the warm-up has at least 10 epochs or a quarter of the "
            "training. The default weight of unlabelled rows grows with the number of classes, over which the squared "
            "error is a mean. This weight and that of the penalty of the warm-up are multiplied by how strongly the "
            "loss pulls, compared with cross-entropy; the penalty against one-sided answers keeps its weight. The "
            "penalty of the warm-up is the negative entropy of the posterior. A division may have an empty side. "
            "A loss that learns slowly needs a longer warm-up. SL-PML on digits with 40 % symmetric noise had 74 to "
            "83 % in three seeds, 92 % with a warm-up of 30 of the 100 epochs, and 93 to 94 % alone."
        ),
    ),
    presets={
        "cifar10-symmetric-20": _preset(10, 0),
        "cifar10-symmetric-50": _preset(10, 25),
        "cifar10-symmetric-80": _preset(10, 25),
        "cifar10-symmetric-90": _preset(10, 50, threshold=0.6, loss_memory=5),
        "cifar10-asymmetric-40": _preset(10, 0, warmup_penalty=1.0),
        "cifar10n": _preset(10, 0),
        "cifar100-symmetric-20": _preset(30, 25),
        "cifar100-symmetric-50": _preset(30, 150),
        "cifar100-symmetric-80": _preset(30, 150),
        "cifar100-symmetric-90": _preset(30, 150, threshold=0.6, loss_memory=5),
    },
)
