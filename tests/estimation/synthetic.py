"""Data whose noise is known: Gaussian classes with their exact posterior, and labels drawn from a matrix."""

from typing import NamedTuple

import torch
from torch import Tensor

from postmax import Transition

MATRICES = {
    2: Transition.binary(0.1, 0.3),
    3: Transition([[0.8, 0.15, 0.05], [0.1, 0.9, 0.0], [0.2, 0.1, 0.7]]),
    10: Transition.symmetric(10, 0.3),
}


class Problem(NamedTuple):
    """Everything about `n` rows; `probabilities` is the exact posterior of the noisy label."""

    features: Tensor
    true: Tensor
    clean: Tensor
    labels: Tensor
    probabilities: Tensor
    matrix: Tensor


def problem(transition, n, *, seed=0, separation=5.0, prior=None) -> Problem:
    """Class i is a unit Gaussian around `separation`·e_i."""
    k = transition.num_classes
    generator = torch.Generator().manual_seed(seed)
    prior = torch.full((k,), 1 / k, dtype=torch.float64) if prior is None else torch.tensor(prior, dtype=torch.float64)
    true = torch.multinomial(prior, n, replacement=True, generator=generator)
    features = torch.randn(n, k, generator=generator, dtype=torch.float64)
    features[torch.arange(n), true] += separation
    clean = (separation * features + prior.log()).softmax(1)
    labels = torch.multinomial(transition.matrix[true], 1, generator=generator).flatten()
    return Problem(features, true, clean, labels, clean @ transition.matrix, transition.matrix)


def random_probabilities(n, k, *, seed=0, sharpness=2.0) -> Tensor:
    """Rows of a softmax of Gaussian logits: no ties, no structure."""
    logits = torch.randn(n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (sharpness * logits).softmax(1)
