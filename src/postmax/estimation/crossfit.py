"""Cross-fitting: probabilities for every row from networks that were not trained on it."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.estimation.network import Copies, train
from postmax.losses import FPMLLoss

FOLDS = 5


class CrossFit(Protocol):
    """Trains networks on some rows, and returns what they say about the rows that they were not trained on.

    `cross_fit` with its first argument bound is one. Rows that it cannot take, such as images, need one of their own.
    """

    def __call__(
        self, labels: Tensor, num_classes: int, *, loss: FPMLLoss | None = None, seed: int = 0, what: str = ...
    ) -> Tensor:
        """Return out-of-sample log-posteriors (N, K), float64. The arguments are those of `cross_fit`."""
        ...


def cross_fit(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    *,
    loss: FPMLLoss | None = None,
    seed: int = 0,
    what: str = "cross-fitting networks",
) -> Tensor:
    """Return out-of-sample log-posteriors (N, K), float64, of small f-PML networks trained on the other folds.

    Args:
        features: (N, d).
        labels: (N,) class indices.
        num_classes: K.
        loss: The loss; KL with softmax by default. With a forward correction the posteriors are those of the true
            label.
        seed: The seed of folds, initial weights, order and dropout.
        what: What the work is called when its progress is told.
    """
    if len(labels) < 2 * FOLDS:
        raise InputError(f"{len(labels)} rows are too few for {FOLDS} folds; give probabilities instead of features.")
    loss = FPMLLoss("kl", "softmax") if loss is None else loss
    generator = torch.Generator().manual_seed(seed)
    fold = folds_of(labels, generator)
    network = Copies(FOLDS, features, num_classes, generator)
    outside = [(fold != f).nonzero().flatten() for f in range(FOLDS)]
    shortest = min(map(len, outside))
    train(network, features, labels, torch.stack([rows[:shortest] for rows in outside]), loss, what=what)
    log_posterior = torch.empty(len(labels), num_classes, dtype=torch.float64)
    with torch.no_grad():
        for rows in torch.arange(len(labels)).split(4096):
            logits = network(features[rows].expand(FOLDS, -1, -1))
            own = logits[fold[rows], torch.arange(len(rows))]
            log_posterior[rows] = loss.posterior(own.double()).clamp_min(1e-300).log()
    return log_posterior


def folds_of(labels: Tensor, generator: torch.Generator, folds: int = FOLDS) -> Tensor:
    """Return a fold for each row. Every label is spread evenly over the folds."""
    shuffled = torch.randperm(len(labels), generator=generator)
    by_label = shuffled[labels[shuffled].argsort(stable=True)]
    fold = torch.empty_like(labels)
    fold[by_label] = torch.arange(len(labels)) % folds
    return fold
