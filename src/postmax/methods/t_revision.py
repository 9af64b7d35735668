"""T-Revision: after importance reweighting, the transition matrix itself is learnt a little further.

Xia, Liu, Wang, Han, Gong, Niu and Sugiyama, Are anchor points really indispensable in label-noise learning?, NeurIPS
2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Setup, Step
from postmax.methods.parts.corrections import importance, inside, refuse_partial_posterior, true_posterior
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.targets import one_hot
from postmax.methods.two_stage import Reweighting
from postmax.transition.simplex import project_onto_simplex

# Published: 200 epochs of reweighting, then 200 epochs of revision with a rate of 5e-7, in batches of 128 of 45 000
# rows. Adam moves a number by at most about the rate in each step, so a number moves by at most 0.035 in all.
_REVISION_SHARE = 200 / 400
_PUBLISHED_WAY = 5e-7 * 200 * 352
_WEIGHT_DECAY = 1e-4


class TRevision(Reweighting):
    """Train with importance reweighting, then learn the transition matrix T together with the network.

    The first two stages are those of `Reweighting`. In the third one, T moves too, at a tiny rate. The objective stays
    the weighted loss, but now a gradient flows through the weights p_y/(pT)_y, both to T and to the network. After each
    step, the rows of T are set to the nearest distributions, so T stays a transition matrix.

    A loss may have any smallest value, and this value would then pull the weights up or down. So in the third stage the
    smallest value that the loss can have for the label is subtracted. For cross-entropy it is 0.

    Args:
        setup: What the loop offers.
        estimator: Where the first T comes from; see `TwoStage`.
        estimation_epochs: The length of the first stage; see `TwoStage`.
        fresh: Whether the second stage starts with a new network; see `TwoStage`.
        largest_weight: A bound for the weights.
        revision_epochs: The length of the third stage; by default half of the epochs after the first one.
        revision_lr: The learning rate of the third stage, for Adam, for the network and for T. By default it is such
            that a number can move by 0.035 in the whole stage, as published.
        revise: Whether T moves in the third stage. With false, only the network learns; this shows what the revision of
            T itself gives.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        estimator: str = "anchor-97",
        estimation_epochs: int | None = None,
        fresh: bool | None = None,
        largest_weight: float = 10.0,
        revision_epochs: int | None = None,
        revision_lr: float | None = None,
        revise: bool = True,
    ) -> None:
        if revision_epochs is not None:
            check_number(least=0, whole=True, revision_epochs=revision_epochs)
        self._wanted_epochs = revision_epochs
        super().__init__(
            setup,
            "t-revision",
            estimator=estimator,
            estimation_epochs=estimation_epochs,
            fresh=fresh,
            largest_weight=largest_weight,
        )
        refuse_partial_posterior(setup)
        if not isinstance(revise, bool):
            raise InputError(f"method.revise must be true or false, got {revise!r}.")
        if revision_lr is None:
            steps = max(1, setup.epochs - self._end) * math.ceil(len(setup.train) / setup.batch_size)
            revision_lr = _PUBLISHED_WAY / steps
        check_number(above=0, revision_lr=revision_lr)
        self._revise = revise
        classes = setup.train.num_classes
        self._revised = setup.state("revised transition", torch.eye(classes, dtype=torch.float64)).requires_grad_()
        self._estimated = setup.state("estimated transition", torch.eye(classes, dtype=torch.float64))
        self._revisers = [
            setup.optimiser(
                list(self._networks[-1].parameters()),
                "revision",
                kind="adam",
                lr=revision_lr,
                weight_decay=_WEIGHT_DECAY,
                scheduled=False,
            )
        ]
        if revise:
            self._revisers.append(
                setup.optimiser(
                    [self._revised],
                    "transition",
                    kind="adam",
                    lr=revision_lr,
                    weight_decay=0.0,
                    scheduled=False,
                    regularised=False,
                )
            )

    def end_of_second_stage(self) -> int:
        """Return the first epoch of the third stage. The schedule of the second one ends there."""
        length = phase_epochs(self._wanted_epochs, _REVISION_SHARE, self._epochs - self._start)
        return max(self._start + 1, self._epochs - length)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows, in the stage that it is time for."""
        if run.number < self._end:
            yield from super().epoch(run)
            return
        if run.number == self._end:
            with torch.no_grad():
                self._estimated.copy_(self._noise.matrix)
                self._revised.copy_(self._noise.matrix)
        yield from self._revision_epoch(run)

    def _revision_epoch(self, run: Epoch) -> Iterator[Step]:
        """Train the network and T once on all rows."""
        loss = self._loss_at(run.number)
        for batch in run.batches():
            logits = self._networks[-1](batch.inputs)
            value = revision_losses(loss, logits, batch.labels, self._revised, self._largest_weight).mean()
            run.update(value, *self._revisers)
            with torch.no_grad():
                self._revised.copy_(project_onto_simplex(self._revised))
                self._noise.matrix.copy_(self._revised)
                moved = float((self._revised - self._estimated).abs().sum(1).mean())
            yield Step(value, batch.rows, logits, {**self._noise.values, "revision": moved})

    def learnt(self) -> dict[str, Tensor]:
        """Return the transition matrix, and the one that was estimated before the revision."""
        found = super().learnt()
        return {**found, "estimated_transition": self._estimated} if self._revise else found


def revision_losses(loss: Loss, logits: Tensor, labels: Tensor, matrix: Tensor, largest_weight: float) -> Tensor:
    """Return p_y/(pT)_y times the loss of each row, (B,), less the smallest value that this loss can have.

    A gradient flows through the weights, to the logits and to the matrix.

    Args:
        loss: A loss that can express every posterior, with reduction "none".
        logits: (B, K) of a network whose posterior is that of the true class.
        labels: The noisy labels, (B,).
        matrix: T, (K, K).
        largest_weight: A bound for the weights.

    Example:
        >>> import postmax as pm
        >>> matrix = torch.tensor([[0.8, 0.2], [0.4, 0.6]])
        >>> revision_losses(pm.losses.get("ce", reduction="none"), torch.zeros(1, 2), torch.tensor([0]), matrix, 10.0)
        tensor([0.5776])
    """
    weights = importance(inside(true_posterior(loss, logits)), labels, matrix, largest_weight)
    with torch.no_grad():
        least: Tensor = loss(loss.logits_of(inside(one_hot(labels, logits.shape[1]).double())), labels)
    losses: Tensor = loss(logits, labels)
    value: Tensor = weights.to(losses.dtype) * (losses - least.to(losses.dtype))
    return value


_SOURCE = (
    "Xia, Liu, Wang, Han, Gong, Niu, Sugiyama: Are anchor points really indispensable in label-noise learning? "
    "NeurIPS 2019"
)
_TRAINING = {
    "batch_size": 128,
    "optimiser.lr": 0.01,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 1e-4,
    "schedule.name": "step",
}

register(
    "t-revision",
    TRevision,
    "importance reweighting whose transition matrix is learnt a little further in the end",
    Facts(
        idea="The noise is estimated from a first network. Each row then has the weight with which its label would "
        "occur without noise. The estimate is wrong if no row surely belongs to its class. So in the end the "
        "transition matrix itself moves a little, together with the network.",
        source=_SOURCE,
        networks=2,
        posterior="The noise is estimated from posteriors, and they give the weights.",
        deviations="The three stages share the epochs of the run, and the rate of the third one follows its length. "
        "After each step the matrix is set to the nearest transition matrix; in the released code its entries can "
        "become negative. Another row of a batch does not see another matrix; in the released code the revision is "
        "added once for each row before it, and in its vectorised version it never moves. The weights have an upper "
        "bound. The smallest value of the loss is subtracted in the third stage; for cross-entropy it is 0. The last "
        "epoch of each stage counts, not the best one on held-out labels.",
        uses_transition=True,
    ),
    presets={
        name: Preset(
            {"estimator": estimator, "estimation_epochs": first, "fresh": False, "revision_epochs": 200},
            f"{_SOURCE}; released code",
            {**_TRAINING, "epochs": first + 400, "schedule.milestones": (first + 40, first + 80)},
        )
        for name, estimator, first in (("cifar10", "anchor-97", 20), ("cifar100", "anchor", 15))
    },
)
