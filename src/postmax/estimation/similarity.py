"""Measure how much the noise follows the similarity of the classes, as the mistakes of people do."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# A slope must exceed this many standard errors to count.
_SIGNIFICANT = 2.0
# With less noise than this its pattern has little meaning.
_FAINT = 0.01


def share_that_follows_similarity(matrix: Tensor, posterior: Tensor) -> float:
    """Return how much of the noise goes to similar classes, from 0 (nothing) to 1 (all of it).

    The similarity of classes i and j is how often they are probable together, S[i, j] = Σ_x D_i·D_j / Σ_x D_i. The
    entries off the diagonal of the matrix are regressed on it, T[i, j] ≈ α + β·S[i, j] with α, β ≥ 0. The result is the
    share s of the noise that β explains, moved towards 0 or 1 by 3s² − 2s³, because a small share is mostly estimation
    error. For two classes it is 0, because there is only one pair of classes.

    Args:
        matrix: (K, K) transition matrix.
        posterior: (N, K) probabilities of the true class.
    """
    k = len(matrix)
    if k == 2:
        return 0.0
    together = posterior.T @ posterior
    off = ~torch.eye(k, dtype=torch.bool)
    noise, similarity = matrix[off], (together / together.sum(1, keepdim=True).clamp_min(1e-300))[off]
    slope, error = _slope(similarity, noise)
    if not slope > _SIGNIFICANT * error:
        return 0.0
    share = min(1.0, slope * float(similarity.sum()) / (float(noise.sum()) + _FAINT * k))
    return share**2 * (3 - 2 * share)


def _slope(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Return the slope of y over x and its standard error. The line goes through the origin if α would be negative."""
    dx, dy = x - x.mean(), y - y.mean()
    spread = float(dx @ dx)
    if not spread > 0:
        return 0.0, math.inf
    slope = float(dx @ dy) / spread
    residual = dy - slope * dx
    error = math.sqrt(float(residual @ residual) / (len(x) - 2) / spread)
    if float(y.mean()) < slope * float(x.mean()):
        slope = float(x @ y) / float(x @ x)
    return slope, error
