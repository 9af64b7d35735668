"""Draw noisy labels, with exact counts or independently for each row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.random_bits import random_bits

Integers = npt.NDArray[np.int64]

# Probabilities are rounded to whole multiples of 2⁻³². The last digit of a matrix entry can differ between platforms,
# and this way it cannot change a label.
_BITS = np.uint64(32)
_ONE = 2**32


def in_steps(probabilities: npt.NDArray[np.float64], own: Integers) -> Integers:
    """Return rows of probabilities as whole numbers ≥ 0 that sum to 2³².

    The remainder of the rounding goes to the class `own` of the row. If that class has too little to take it from, it
    is taken from the largest entry.
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
    """Return labels that are drawn independently for each row: i becomes j with probability matrix[i, j]."""
    k = len(matrix)
    upper = in_steps(matrix, np.arange(k)).cumsum(1).astype(np.uint64)
    rows = np.arange(k, dtype=np.uint64)[:, None] << _BITS
    position = (labels.astype(np.uint64) << _BITS) | (random_bits(len(labels), seed, "independent") >> _BITS)
    # The rows of the cumulative matrix are put one after the other on one line, and so are the draws. Draws that are
    # sorted by class move along this line, which keeps the parts of a large matrix in the cache.
    order = np.argsort(labels.astype(_smallest_unsigned(k)), kind="stable")
    noisy = np.empty_like(labels)
    noisy[order] = np.searchsorted((upper + rows).ravel(), position[order], side="right")
    return noisy - labels * k


def draw_exactly(labels: Integers, matrix: npt.NDArray[np.float64], seed: int) -> Integers:
    """Return labels whose counts for each class match the matrix to rounding. Which rows change is random."""
    k = len(matrix)
    counts = exact_counts(np.bincount(labels, minlength=k), matrix, seed)
    key = (labels.astype(np.uint64) << _BITS) | (random_bits(len(labels), seed, "exact") >> _BITS)
    order = np.argsort(key, kind="stable")
    noisy = np.empty_like(labels)
    noisy[order] = np.repeat(np.tile(np.arange(k), k), counts.ravel())
    return noisy


def exact_counts(class_sizes: Integers, matrix: npt.NDArray[np.float64], seed: int) -> Integers:
    """Return (K, K) how many labels of class i become j: class size × matrix, rounded so that row sums stay the same.

    The number of labels that are kept is rounded to the nearest whole number first. (Rounding all entries together by
    their remainders would favour the diagonal, which has the largest remainder if there are many small classes.) Then
    the others are distributed by the largest remainders. Equal remainders are ordered at random from the seed, so that
    no class is favoured.
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
    """Return labels that are drawn for each row from its own probabilities."""
    upper = in_steps(probabilities, labels).cumsum(1)
    position = (random_bits(len(labels), seed, "rowwise") >> _BITS).astype(np.int64)
    drawn: Integers = (upper <= position[:, None]).sum(1).astype(np.int64)
    return drawn


def _smallest_unsigned(count: int) -> type[np.unsignedinteger]:
    """Return the smallest type for this many classes. numpy sorts numbers of up to 16 bits faster, by counting."""
    return np.uint16 if count <= 2**16 else np.uint32
