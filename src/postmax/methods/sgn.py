"""SGN: regression to the log-ratios of the labels, with noise that the network learns for each row.

Englesson and Azizpour, Robust classification via regression for learning with noisy labels, ICLR 2024.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from postmax.errors import InputError
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.decay import average_decay
from postmax.methods.parts.log_ratios import log_ratio_basis
from postmax.methods.parts.options import check_number
from postmax.methods.parts.outputs import LogRatioLogits
from postmax.methods.parts.targets import one_hot
from postmax.methods.parts.teacher import follow

# Published for 600 epochs: the trust in a label is 0.995 after one epoch.
_TRUST, _PUBLISHED_EPOCHS = 0.995, 600
# The published decay of 0.9999 remembers 10 000 of the 211 200 steps of the training.
_REMEMBERED = 10_000 / 211_200


class SGN(Method):
    """Predict the log-ratios of the label with a normal distribution whose mean and covariance the network gives.

    The given label, smoothed a little, becomes a point t of K − 1 dimensions (see `parts/log_ratios.py`). The network
    has 2·(K − 1) outputs for a row: the mean μ of t, and a vector r, which says in which direction t may be off. The
    covariance is S·Sᵀ with S = I + r·rᵀ. So a wrong label can be explained by a large r.

    The mean is also shifted by a share of t − μ_average, where μ_average comes from the moving average of the weights.
    The shift explains the label where the average disagrees with it. The share is 0 at first and rises.

    The likelihood is the objective, so there is no other loss. The answer is the distribution whose log-ratios are μ:
    the softmax of the outputs, as for cross-entropy. This is why a run must say loss=ce.

    Args:
        setup: What the loop offers.
        smoothing: The share of a label that is spread over all classes. Without it, log-ratios would be infinite.
        trust: How much of the distance between a label and the average is left to the network after one epoch, as a
            factor for each epoch. By default 0.995 for 600 epochs, and the same in the end for fewer.
        decay: The decay of the moving average of the weights. By default the average remembers 5 % of the training.
        answer: "network" for the network that is trained, "average" for the moving average of its weights.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        smoothing: float = 0.001,
        trust: float | None = None,
        decay: float | None = None,
        answer: str = "network",
    ) -> None:
        super().__init__(setup)
        _check_cross_entropy(setup)
        check_number(above=0, below=1, smoothing=smoothing)
        if trust is not None:
            check_number(above=0, below=1, trust=trust)
        if answer not in ("network", "average"):
            raise InputError(f"method.answer must be one of network, average, got {answer!r}.")
        self._trust = _TRUST ** (_PUBLISHED_EPOCHS / setup.epochs) if trust is None else trust
        self._decay = average_decay(setup, decay, _REMEMBERED, "decay")
        self._classes = setup.train.num_classes
        self._basis = log_ratio_basis(self._classes).to(setup.device)
        self._smoothing = smoothing
        outputs = 2 * (self._classes - 1)
        self._network, self._average = setup.network(outputs=outputs), setup.network(outputs=outputs)
        follow(self._average, self._network, 0.0)
        self._optimiser = setup.optimiser(list(self._network.parameters()))
        self.answer = LogRatioLogits(self._network if answer == "network" else self._average, self._basis)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        self._average.eval()
        for index, batch in enumerate(run.batches()):
            outputs = self._network(batch.inputs)
            mean, spread = outputs.chunk(2, -1)
            with torch.no_grad():
                average_mean = self._average(batch.inputs).chunk(2, -1)[0]
            target = smoothed_log_ratios(batch.labels, self._basis, self._smoothing)
            share = 1 - self._trust ** (run.number + index / run.steps)
            shifted = mean + share * (target - average_mean)
            value = negative_log_density(target, shifted, spread).mean()
            run.update(value, self._optimiser)
            follow(self._average, self._network, self._decay)
            size = spread.detach().square().sum(-1).mean()
            yield Step(value, batch.rows, mean @ self._basis, {"shift": share, "spread": float(size)})


def smoothed_log_ratios(labels: Tensor, basis: Tensor, smoothing: float) -> Tensor:
    """Return the log-ratios (B, K − 1) of labels (B,), of which a share is spread over all classes.

    Example:
        >>> smoothed_log_ratios(torch.tensor([0, 1]), log_ratio_basis(2), 0.5)  # log(0.75 / 0.25) / √2
        tensor([[ 0.7768],
                [-0.7768]])
    """
    classes = basis.shape[1]
    smoothed = (1 - smoothing) * one_hot(labels, classes) + smoothing / classes
    return smoothed.log() @ basis.T


def negative_log_density(target: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """Return −log N(t; μ, S·Sᵀ) with S = I + r·rᵀ for each row, in time O(K).

    The inverse of S is I − r·rᵀ/(1 + |r|²), and its determinant is 1 + |r|².

    Args:
        target: t, (B, D).
        mean: μ, (B, D).
        spread: r, (B, D).

    Example:
        >>> negative_log_density(torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1))  # log √(2π)
        tensor([0.9189])
    """
    rest, size = target - mean, 1 + spread.square().sum(-1)
    along = (spread * rest).sum(-1) / size
    whitened = rest - spread * along[:, None]
    constant = 0.5 * target.shape[-1] * math.log(2 * math.pi)
    return constant + size.log() + 0.5 * whitened.square().sum(-1)


def _check_cross_entropy(setup: Setup) -> None:
    """Refuse a loss that would not be used, and whose name would say the wrong thing about the outputs."""
    logits = torch.linspace(-1, 1, setup.train.num_classes, device=setup.device)[None]
    labels = torch.zeros(1, dtype=torch.int64, device=setup.device)
    value = setup.loss.at(0.0)(logits, labels)
    if setup.loss.transition is not None or not torch.allclose(value, F.cross_entropy(logits, labels)):
        raise InputError(
            "the method sgn has a loss of its own, so the loss of the run would not be used. Its outputs mean what "
            "those of cross-entropy mean: set loss=ce."
        )


_TRAINING = {
    "epochs": 600,
    "batch_size": 128,
    "optimiser.lr": 0.01,
    "optimiser.momentum": 0.9,
    "optimiser.nesterov": True,
    "schedule.name": "constant",
}

register(
    "sgn",
    SGN,
    "regression to the log-ratios of the labels, with noise that the network learns for each row",
    Facts(
        idea="Labels become points, and a network predicts them with a normal distribution. A wrong label is explained "
        "by a wide distribution, or by a shift where the moving average of the weights disagrees with the label.",
        source="Englesson and Azizpour, Robust classification via regression for learning with noisy labels, ICLR 2024",
        posterior="Nowhere: the method has a likelihood of its own, and its outputs are logits of a softmax. It takes "
        "no other loss than cross-entropy, which is not used either.",
        deviations="The moving average also averages the statistics of batch normalisation, and is evaluated with "
        "them; the released code computes them anew from each batch. Weight decay is that of the run; the released "
        "code adds 2.5e-4 times the squared weights. For trainings of another length, the trust in labels and the "
        "decay of the average are scaled.",
    ),
    presets={
        "cifar": Preset(
            {"smoothing": 0.001, "trust": 0.995, "decay": 0.9999},
            "the paper, and its released code: CIFAR-10, CIFAR-100 and CIFAR-N with a WRN-28-2",
            _TRAINING,
        ),
    },
)
