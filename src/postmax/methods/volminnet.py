"""VolMinNet: a network and the transition matrix of the noise are trained together, from the first step on.

Li, Liu, Han, Niu and Sugiyama, Provably end-to-end label-noise learning without anchor points, ICML 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import Tensor

from postmax.estimation.diagonal_form import initial_parameters, log_volume, matrix_of
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.corrections import (
    forward_losses,
    refuse_known_noise,
    refuse_partial_posterior,
    true_posterior,
)
from postmax.methods.parts.options import check_number

_PUBLISHED_LR = 0.01
# How far the parameters of T can move in a training, at least. They start at −2 for ten classes.
_LEAST_WAY = 5.0


class VolMinNet(Method):
    """Minimise loss(pT, label) + λ·log|det T| over the network p and the matrix T.

    Many pairs of a posterior and a matrix explain the same labels. Among them, the matrix with the smallest volume
    leaves the least of the noise to the posterior. The posterior p of the network is that of the true class.

    Args:
        setup: What the loop offers.
        volume_weight: λ, the weight of the volume.
        transition_lr: The learning rate of the parameters of T. It follows the schedule of the run. By default it is
            the published 0.01, or more in a training of fewer than 500 steps, so that T has the time to change.
        transition_optimiser: The optimiser of T: "sgd" with a momentum of 0.9, "adam" or "adamw".
    """

    def __init__(
        self,
        setup: Setup,
        *,
        volume_weight: float = 1e-4,
        transition_lr: float | None = None,
        transition_optimiser: str = "adam",
    ) -> None:
        super().__init__(setup)
        check_number(least=0, volume_weight=volume_weight)
        if transition_lr is not None:
            check_number(above=0, transition_lr=transition_lr)
        refuse_known_noise("volminnet", setup.loss)
        refuse_partial_posterior(setup)
        self._volume_weight = volume_weight
        steps = setup.epochs * math.ceil(len(setup.train) / setup.batch_size)
        self.answer = setup.network()
        self._off = setup.state("transition parameters", initial_parameters(setup.train.num_classes)).requires_grad_()
        self._optimisers = (
            setup.optimiser(list(self.answer.parameters())),
            setup.optimiser(
                [self._off],
                "transition",
                kind=transition_optimiser,
                lr=transition_lr or max(_PUBLISHED_LR, _LEAST_WAY / steps),
                momentum=0.9 if transition_optimiser == "sgd" else 0.0,
                weight_decay=0.0,
                regularised=False,
            ),
        )

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        for batch in run.batches():
            logits, matrix = self.answer(batch.inputs), matrix_of(self._off)
            volume = log_volume(matrix)
            value = forward_losses(loss, logits, batch.labels, matrix).mean() + self._volume_weight * volume
            run.update(value, *self._optimisers)
            kept = float(matrix.detach().diagonal().mean())
            yield Step(value, batch.rows, logits, {"kept_labels": kept, "log_volume": float(volume.detach())})

    def label_noise(self) -> Tensor:
        """Return the transition matrix."""
        return matrix_of(self._off.detach().double())

    def learnt(self) -> dict[str, Tensor]:
        """Return the transition matrix."""
        return {"transition": self.label_noise()}

    def label_posterior(self, outputs: Tensor) -> Tensor:
        """Return the posterior of the labels as they are given: that of the true class, sent through the noise."""
        return (true_posterior(self.loss, outputs) @ self.label_noise()).to(outputs.dtype)


_SOURCE = (
    "Li, Liu, Han, Niu, Sugiyama: Provably end-to-end label-noise learning without anchor points. ICML 2021; "
    "released code"
)
_TRAINING = {
    "epochs": 80,
    "batch_size": 128,
    "optimiser.lr": 0.01,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 1e-4,
    "schedule.name": "step",
    "schedule.milestones": (30, 60),
}
register(
    "volminnet",
    VolMinNet,
    "a network and the transition matrix of the noise, trained together",
    Facts(
        idea="The posterior of the network, sent through a transition matrix, must fit the labels. Network and matrix "
        "learn at the same time. A small penalty for the volume of the matrix makes the answer unique.",
        source=_SOURCE.removesuffix("; released code"),
        posterior="The posterior is sent through the matrix.",
        deviations="The matrix is learnt with Adam, as published for CIFAR-100 and MNIST; the preset cifar10 takes "
        "SGD. In short trainings it learns faster. The determinant of a singular matrix has a tiny lower bound. The "
        "last epoch answers, not the best one on held-out labels.",
    ),
    presets={
        "cifar10": Preset({"transition_optimiser": "sgd", "transition_lr": 0.01}, _SOURCE, _TRAINING),
        "cifar100": Preset({"transition_optimiser": "adam", "transition_lr": 0.01}, _SOURCE, _TRAINING),
    },
)
