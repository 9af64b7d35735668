"""Instance-dependent noise: rows with similar features are mislabelled in a similar way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.labels import class_indices
from postmax.random_bits import random_normal, random_uniform
from postmax.transition.corruption import draw_rowwise
from postmax.transition.noisy_labels import NoisyLabels

_SPREAD = 0.1


def corrupt_by_features(
    features: Tensor | Any, labels: Tensor | Any, num_classes: int, eta: float, seed: int
) -> NoisyLabels:
    """Return labels with instance-dependent noise: the chance of a wrong label, and the wrong class, depend on the row.

    Row n is wrong with probability q_n drawn from a normal distribution around `eta` (standard deviation 0.1, truncated
    to [0, 1], so the realised rate is above a small `eta`), and its wrong class is drawn from softmax(x_n·W) without
    the true class, where W is a standard normal matrix. This is the definition used with CORES, whose images are
    normalised. So the features should be standardised.

    Args:
        features: (N, …), finite; everything after the first dimension is flattened.
        labels: (N,) class indices.
        num_classes: K ≥ 2.
        eta: The mean share of wrong labels.
        seed: The same seed gives the same labels.

    Example:
        >>> rows = torch.linspace(-1, 1, 400).reshape(100, 4)
        >>> noisy = corrupt_by_features(rows, torch.arange(100) % 5, num_classes=5, eta=0.3, seed=0)
        >>> noisy.rate
        0.41
    """
    if num_classes < 2:
        raise InputError(f"label noise needs at least two classes, got {num_classes}.")
    if not 0 <= eta <= 1:
        raise InputError(f"eta is a probability and must lie in [0, 1], got {eta}.")
    rows_of_features = torch.as_tensor(features).detach().cpu().double()
    if rows_of_features.ndim < 2:
        shape = tuple(rows_of_features.shape)
        raise InputError(f"features must have one row for each label, got shape {shape}.")
    x = rows_of_features.flatten(1).numpy()
    y = class_indices(labels, num_classes)
    if len(x) != len(y):
        raise InputError(f"{len(x)} rows of features but {len(y)} labels.")
    if not np.isfinite(x).all():
        raise InputError(f"features: index {int((~np.isfinite(x)).any(1).argmax())} is not finite.")
    n, rows = len(y), np.arange(len(y))
    wrong = _truncated_normal(n, eta, seed) if eta > 0 else np.zeros(n)
    scores = x @ random_normal(x.shape[1] * num_classes, seed, "instance/projection").reshape(-1, num_classes)
    scores[rows, y] = -np.inf
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances *= (wrong / chances.sum(1))[:, None]
    chances[rows, y] = 1 - wrong
    return NoisyLabels(
        labels=torch.from_numpy(draw_rowwise(y.numpy(), chances, seed)),
        clean=y,
        num_classes=num_classes,
        definition=f"instance-dependent, eta={eta:g}",
        seed=seed,
        exact=None,
        nominal=None,
    )


def _truncated_normal(count: int, mean: float, seed: int) -> npt.NDArray[np.float64]:
    """Return normal numbers in [0, 1], by the inverse of the distribution function."""
    low, high = torch.special.ndtr(torch.tensor([-mean, 1 - mean], dtype=torch.float64) / _SPREAD)
    share = torch.from_numpy(random_uniform(count, seed, "instance/rate"))
    drawn: npt.NDArray[np.float64] = (mean + _SPREAD * torch.special.ndtri(low + share * (high - low))).numpy()
    return np.clip(drawn, 0, 1)
