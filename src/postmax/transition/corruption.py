"""Drawing noisy labels: exact counts or one draw a row, for a matrix or for a probability vector a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.random_bits import random_bits

Integers = npt.NDArray[np.int64]

# Probabilities are whole multiples of 2⁻³², so that a rounding error in the last place of a matrix entry, which differs
# from platform to platform, cannot decide a label or break a tie.
_BITS = np.uint64(32)
_ONE = 2**32


def in_steps(probabilities: npt.NDArray[np.float64], own: Integers) -> Integers:
    """Rows of probabilities as integers ≥ 0 that sum to 2³².

    What rounding leaves goes to the row's `own` class, or is taken from its largest entry if that class has too little.
    """
    rows = np.arange(len(probabilities))
    steps = np.rint(probabilities * _ONE).astype(np.int64)
    left = _ONE - steps.sum(1)
    steps[rows, np.where(steps[rows, own] + left < 0, steps.argmax(1), own)] += left
    return steps


def draw_labels(clean: Tensor, matrix: Tensor, seed: int, *, exact: bool) -> Tensor:
    """Return noisy labels for clean ones.

    Args:
        clean: (N,) class indices, int64.
        matrix: The transition matrix, float64.
        seed: The same seed gives the same labels.
        exact: Whether the counts of each class match the matrix to rounding. Otherwise each row is drawn on its own.
    """
    draw = draw_exactly if exact else draw_independently
    return torch.from_numpy(draw(clean.numpy(), matrix.numpy(), seed))


def draw_independently(labels: Integers, matrix: npt.NDArray[np.float64], seed: int) -> Integers:
    """One independent draw a row: label i becomes j with probability matrix[i, j]."""
    k = len(matrix)
    upper = in_steps(matrix, np.arange(k)).cumsum(1).astype(np.uint64)
    rows = np.arange(k, dtype=np.uint64)[:, None] << _BITS
    position = (labels.astype(np.uint64) << _BITS) | (random_bits(len(labels), seed, "independent") >> _BITS)
    # All rows of the cumulative matrix stand one after the other on one line, and so do the draws. Sorted by class, the
    # draws walk along that line, which keeps a K = 1000 table in the cache.
    order = np.argsort(labels.astype(_smallest_unsigned(k)), kind="stable")
    noisy = np.empty_like(labels)
    noisy[order] = np.searchsorted((upper + rows).ravel(), position[order], side="right")
    return noisy - labels * k


def draw_exactly(labels: Integers, matrix: npt.NDArray[np.float64], seed: int) -> Integers:
    """Per-class counts that match the matrix to rounding; which rows change is random."""
    k = len(matrix)
    counts = exact_counts(np.bincount(labels, minlength=k), matrix, seed)
    key = (labels.astype(np.uint64) << _BITS) | (random_bits(len(labels), seed, "exact") >> _BITS)
    order = np.argsort(key, kind="stable")
    noisy = np.empty_like(labels)
    noisy[order] = np.repeat(np.tile(np.arange(k), k), counts.ravel())
    return noisy


def exact_counts(class_sizes: Integers, matrix: npt.NDArray[np.float64], seed: int) -> Integers:
    """How many labels of each class go where: class size × matrix, rounded so that rows keep their sums.

    First how many labels are kept is rounded to the nearest number. Rounding all entries together by their remainders
    would favour the diagonal, whose remainder is the largest where classes are many and small. Then the others are
    shared out, largest remainders first, equal ones in an order drawn from the seed, so that no class is favoured.
    """
    k = len(matrix)
    steps = in_steps(matrix, np.arange(k))
    ties = random_bits(k * k, seed, "ties").reshape(k, k)
    halves = (ties.diagonal() & np.uint64(1)).astype(np.int64)
    share = class_sizes[:, None] * steps
    counts, remainder = share // _ONE, share % _ONE
    np.fill_diagonal(counts, (share.diagonal() + _ONE // 2 - halves) // _ONE)
    np.fill_diagonal(remainder, -1)
    rank = np.argsort(np.lexsort((ties, -remainder), axis=1), axis=1)
    rounded: Integers = counts + (rank < (class_sizes - counts.sum(1))[:, None])
    return rounded


def draw_rowwise(labels: Integers, probabilities: npt.NDArray[np.float64], seed: int) -> Integers:
    """One draw a row from that row's own probabilities."""
    upper = in_steps(probabilities, labels).cumsum(1)
    position = (random_bits(len(labels), seed, "rowwise") >> _BITS).astype(np.int64)
    drawn: Integers = (upper <= position[:, None]).sum(1).astype(np.int64)
    return drawn


def _smallest_unsigned(count: int) -> type[np.unsignedinteger]:
    """Few bits sort faster: numpy sorts up to 16 of them by counting."""
    return np.uint16 if count <= 2**16 else np.uint32
