"""CTRR: rows whose predictions agree must have similar representations.

Yi, Liu, She, McLeod and Wang, On learning contrastive representations for learning with noisy labels, CVPR 2022.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.data import Batch
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.contrast import FEWEST_ROWS, directions, head
from postmax.methods.parts.features import with_features
from postmax.methods.parts.options import check_number
from postmax.methods.parts.pull import pull
from postmax.methods.parts.teacher import follow

_VIEWS = ("weak", "contrast", "contrast")
_PROJECTION = 128
# The hidden layer of a head is this many times as wide as what goes in: published as 512 to 2048 and 128 to 512.
_WIDER = 4
# How many times the odds of two uniform predictions to agree must be exceeded. It gives the published 0.4 for ten
# classes and about the published 0.05 for a hundred.
_AGREEMENT_ODDS = 6.0
# Pairs that are more similar than this are similar enough: the logarithm of 1 − similarity has no value at 1.
_MOST_SIMILAR = 1 - 1e-4


def usual_threshold(num_classes: int) -> float:
    """Return how probable it must be that two rows are of one class, for them to count as a pair.

    Two uniform predictions agree with probability 1/K. The threshold is therefore relative to K: the odds must be six
    times those of uniform predictions.

    Example:
        >>> [round(usual_threshold(classes), 3) for classes in (2, 10, 100)]
        [0.857, 0.4, 0.057]
    """
    return _AGREEMENT_ODDS / (_AGREEMENT_ODDS + num_classes - 1)


def pair_weights(posterior: Tensor, threshold: float) -> Tensor:
    """Return how much each pair of rows of a batch counts, (B, B); each row of it sums to 1.

    Args:
        posterior: The predictions (B, K). The probability that rows i and j are of one class is their scalar product.
        threshold: Pairs with a smaller probability do not count. A row always counts as a pair with itself.

    Example:
        >>> pair_weights(torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), 0.5)
        tensor([[0.6667, 0.3333, 0.0000],
                [0.2500, 0.5000, 0.2500],
                [0.0000, 0.3333, 0.6667]])
    """
    posterior = posterior.detach().float()
    agree = posterior @ posterior.T
    agree = agree.where(agree >= threshold, 0.0).fill_diagonal_(1.0)
    return agree / agree.sum(1, keepdim=True)


def regulariser(student: Tensor, teacher: Tensor, weights: Tensor) -> Tensor:
    """Return the contrastive regulariser of a batch: small if pairs that count have similar projections.

    Args:
        student: The predicted projections of one view, (B, d).
        teacher: The projections of the other view by the teacher, (B, d).
        weights: How much each pair counts, (B, B), from `pair_weights`.

    Returns:
        The mean over rows of the weighted sum of 2 − s for a row with itself, and of 2 + log(1 − s) for two different
        rows, where s is the cosine similarity; a scalar.
    """
    similarity = directions(student) @ directions(teacher).T
    itself = torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)
    alike = 2 + torch.log1p(-similarity.clamp_max(_MOST_SIMILAR))
    return (weights * torch.where(itself, 2 - similarity, alike)).sum(1).mean()


class CTRR(Method):
    """Train one network on the labels, and make the representations of rows alike whose predictions agree.

    Three views of each row go through the network. The first one is trained on the label with the loss of the run. The
    other two are compared: a predictor on top of the projected features of one view must give the projection of the
    other view, and of other rows that are probably of the same class. The projection to be given is that of a teacher,
    a network that follows the first one slowly.

    Whether two rows are of the same class is decided by the posteriors of the loss of the run.

    Args:
        setup: What the loop offers.
        weight: The weight of the regulariser for cross-entropy, published as 50 to 170, larger for more noise. For
            other losses it is multiplied by how strongly they pull. For ten classes and GCE that gives 10 from 50, and
            the published weights with GCE are 4 to 8.
        threshold: How probable it must be that two rows are of one class, for them to count as a pair; by default it
            depends on the number of classes, see `usual_threshold`.
        decay: The share of its old weights that the teacher keeps in each step.
    """

    def __init__(
        self, setup: Setup, *, weight: float = 50.0, threshold: float | None = None, decay: float = 0.99
    ) -> None:
        super().__init__(setup)
        check_number(least=0, weight=weight)
        check_number(least=0, below=1, decay=decay)
        if threshold is not None:
            check_number(least=0, below=1, threshold=threshold)
        self._threshold = usual_threshold(setup.train.num_classes) if threshold is None else threshold
        self._weight, self._decay, self._classes = weight, decay, setup.train.num_classes
        self._network, self._teacher = (with_features(setup.network(), "ctrr") for _ in range(2))
        self.answer = self._network
        width = self._network.fc.in_features
        self._projector, self._teacher_projector = (
            setup.module(name, lambda: head(width, _WIDER * width, _PROJECTION))
            for name in ("projector", "teacher's projector")
        )
        self._predictor = setup.module("predictor", lambda: head(_PROJECTION, _WIDER * _PROJECTION, _PROJECTION))
        self._follow(0.0)
        trained = (self._network, self._projector, self._predictor)
        self._optimiser = setup.optimiser([parameter for part in trained for parameter in part.parameters()])

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        weight = self._weight * pull(loss, self._classes)
        for batch in run.batches(views=_VIEWS):
            logits = self._network(batch.inputs)
            value = loss(logits, batch.labels).mean()
            values = {}
            if len(batch.rows) >= FEWEST_ROWS:
                weights = pair_weights(loss.posterior(logits), self._threshold)
                term = self._contrast(batch, weights)
                value = value + weight * term
                pairs = (weights > 0).float().mean() * len(weights)
                values = {"regulariser": term.item(), "rows of the same class": pairs.item()}
            run.update(value, self._optimiser)
            self._follow(self._decay)
            yield Step(value, batch.rows, logits, values)

    def _contrast(self, batch: Batch, weights: Tensor) -> Tensor:
        """Return the regulariser of the second and third view of a batch."""
        _, first, second = batch.views
        predicted = self._predictor(self._projector(self._network.features(first)))
        with torch.no_grad():
            wanted = self._teacher_projector(self._teacher.features(second))
        return regulariser(predicted, wanted, weights)

    def _follow(self, decay: float) -> None:
        """Move the teacher and its projector towards the network and its projector."""
        follow(self._teacher, self._network, decay)
        follow(self._teacher_projector, self._projector, decay)


_TRAINING = {
    "model": "preact-resnet18",
    "epochs": 550,
    "batch_size": 256,
    "optimiser.lr": 0.02,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 5e-4,
    "schedule.name": "cosine",
}
_ASYMMETRIC = {**_TRAINING, "optimiser.lr": 0.04}
_SOURCE = "Yi et al. 2022, released code, with cross-entropy"


def _preset(weight: float, threshold: float, training: dict[str, object] = _TRAINING) -> Preset:
    return Preset({"weight": weight, "threshold": threshold}, _SOURCE, training)


register(
    "ctrr",
    CTRR,
    "one network; rows whose predictions agree get similar representations",
    Facts(
        idea=(
            "A contrastive regulariser makes the representations of rows alike whose predictions agree. "
            "Representations then hold what rows of a class have in common, and little that could explain a wrong "
            "label. A teacher, which follows the network slowly, gives the representations to learn from."
        ),
        source="Yi et al., On learning contrastive representations for learning with noisy labels, CVPR 2022",
        posterior="Two rows count as a pair if the scalar product of their posteriors is large.",
        deviations=(
            "The released code limits each coordinate of a projection to positive numbers, so that negative ones get "
            "no gradient; here the similarity of two rows is limited instead, to 0.9999, before the logarithm. The "
            "released code multiplies the logarithm for a row with itself by 0, which gives NaN if both projections "
            "are equal; here it is not used at all. The default threshold depends on the number of classes. The weak "
            "view is the usual augmentation of the data set, and not a resized crop. The weight is multiplied by how "
            "strongly the loss pulls, compared with cross-entropy."
        ),
    ),
    presets={
        "cifar10-clean": _preset(50, 0.8),
        "cifar10-symmetric20": _preset(50, 0.4),
        "cifar10-symmetric40": _preset(90, 0.4),
        "cifar10-symmetric60": _preset(170, 0.8),
        "cifar10-symmetric80": _preset(130, 0.4),
        "cifar10-symmetric90": _preset(170, 0.4),
        "cifar10-asymmetric40": _preset(50, 0.4, _ASYMMETRIC),
        "cifar100-clean": _preset(50, 0.05),
        "cifar100-symmetric": _preset(130, 0.05),
        "cifar100-asymmetric40": _preset(170, 0.05, _ASYMMETRIC),
    },
)
