"""Negative label smoothing: after a warm-up, other classes than the label get a negative weight.

Wei et al., To smooth or not? When label smoothing meets noisy labels, ICML 2022.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.corrections import (
    backward_losses,
    refuse_known_noise,
    refuse_mixed_rows,
    refuse_partial_posterior,
)
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import optimisers_of_phases, phase_epochs

# Published: 120 epochs of warm-up, then 100 with a negative rate.
_WARMUP_SHARE = 120 / 220


class NegativeSmoothing(Method):
    """Train with the loss of the run first, then with labels that are smoothed by a negative rate.

    A rate r gives the label y the weights (1 − r)·1_y + r/K. If r is negative, the label weighs more than 1 and all
    other classes weigh less than 0. The loss of a row is the sum of the losses of all classes with these weights.

    This is the backward correction for symmetric noise: a share −r/(1 − r) of the labels is drawn anew, from all
    classes. So a rate of −1 suits labels half of which were drawn anew.

    1. The network minimises the loss of the run, with labels as they are or smoothed by a positive rate.
    2. It goes on with the negative rate and a small learning rate, whose schedule starts again.

    Args:
        setup: What the loop offers.
        smoothing: The rate r of the second phase, below 1.
        warmup_smoothing: The rate of the first phase, from 0 to below 1.
        warmup_epochs: How many epochs the first phase has; by default 55 % of the training.
        second_rate: The learning rate of the second phase, as a share of that of the run.
        floor: The probability below which a class with a negative weight is not made less probable, times the number of
            classes. Without it the loss would have no lower bound. 0 is the published form.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        smoothing: float = -1.0,
        warmup_smoothing: float = 0.0,
        warmup_epochs: int | None = None,
        second_rate: float = 0.1,
        floor: float = 0.1,
    ) -> None:
        super().__init__(setup)
        check_number(below=1, smoothing=smoothing)
        check_number(least=0, below=1, warmup_smoothing=warmup_smoothing, floor=floor)
        check_number(above=0, second_rate=second_rate)
        if warmup_epochs is not None:
            check_number(least=0, whole=True, warmup_epochs=warmup_epochs)
        refuse_known_noise("negative-label-smoothing", setup.loss)
        refuse_mixed_rows("negative-label-smoothing", setup.loss)
        if floor:
            refuse_partial_posterior(setup)
        classes = setup.train.num_classes
        self._floor, self._second_rate = floor / classes, second_rate
        self._warmup_weights = smoothing_weights(classes, warmup_smoothing)
        self._weights = smoothing_weights(classes, smoothing)
        self._change = phase_epochs(warmup_epochs, _WARMUP_SHARE, setup.epochs)
        self.answer = setup.network()
        self._first, self._second = optimisers_of_phases(setup, self.answer, self._change)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows, in the phase that it is time for."""
        loss, warm = self.loss.at(run.share), run.number < self._change
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            weights = self._warmup_weights if warm else self._weights
            value = smoothed_losses(loss, logits, batch.labels, weights, self._floor).mean()
            run.update(value, self._first if warm else self._second, rate=1.0 if warm else self._second_rate)
            yield Step(value, batch.rows, logits)


def smoothing_weights(classes: int, rate: float) -> Tensor:
    """Return the weights of all classes for each label, (K, K): (1 − r)·1_y + r/K.

    Example:
        >>> smoothing_weights(2, -1.0)
        tensor([[ 1.5000, -0.5000],
                [-0.5000,  1.5000]], dtype=torch.float64)
    """
    return (1 - rate) * torch.eye(classes, dtype=torch.float64) + rate / classes


def smoothed_losses(loss: Loss, logits: Tensor, labels: Tensor, weights: Tensor, floor: float) -> Tensor:
    """Return the sum of the losses of all classes, with the weights of the label, for each row, (B,).

    Args:
        loss: The loss of the run, with reduction "none".
        logits: The outputs of the network, (B, K).
        labels: The given labels, (B,).
        weights: The weights, (K, K), from `smoothing_weights`.
        floor: The probability below which a class with a negative weight is not made less probable.

    Example:
        >>> from postmax import losses
        >>> logits, loss = torch.tensor([[0.9, 0.1]]).log(), losses.get("ce", reduction="none")
        >>> smoothed_losses(loss, logits, torch.tensor([0]), smoothing_weights(2, -1.0), 0.0)
        tensor([-0.9933])
        >>> round(float(1.5 * -torch.tensor(0.9).log() - 0.5 * -torch.tensor(0.1).log()), 4)
        -0.9933
    """
    if not (weights < 0).any():
        plain: Tensor = loss(logits, weights.to(logits)[labels])
        return plain
    return backward_losses(loss, logits, labels, weights, floor)


_SOURCE = "Wei et al. 2022, released code"
_TRAINING = {
    "epochs": 220,
    "model.name": "resnet34",
    "batch_size": 128,
    "optimiser.name": "sgd",
    "optimiser.lr": 0.1,
    "optimiser.momentum": 0.0,
    "optimiser.weight_decay": 0.0,
}

register(
    "negative-label-smoothing",
    NegativeSmoothing,
    "a warm-up, then labels smoothed by a negative rate with a small learning rate",
    Facts(
        idea="Smoothing by a negative rate gives other classes than the label a negative weight, so that the network "
        "becomes more confident than the labels are. That undoes symmetric noise. It needs a network that already "
        "knows the classes, so a warm-up comes first.",
        source="Wei et al., To smooth or not? When label smoothing meets noisy labels, ICML 2022",
        posterior="Classes whose posterior is below the floor are not made less probable. This bounds the loss, "
        "whatever it is.",
        deviations="Any loss takes the place of cross-entropy. The released loss has no lower bound, and a user "
        "reports that it diverges without a warm-up; here a floor bounds it. The released code therefore "
        "takes a learning rate of 1e-6 after one of 0.1, with which hardly anything changes in a short training; by "
        "default it is a tenth here. It starts the second phase from the network that is best on the test rows; here "
        "it goes on with the last one, because test rows must not be looked at. Both phases are in one run.",
    ),
    presets={
        "cifar10": Preset(
            {"smoothing": -1.0, "warmup_smoothing": 0.1, "second_rate": 1e-5, "floor": 0.0}, _SOURCE, _TRAINING
        ),
    },
)
