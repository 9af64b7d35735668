"""How long an estimate takes on this machine, measured from a few of its steps."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from postmax.estimation.crossfit import FOLDS
from postmax.estimation.likelihood import fit
from postmax.estimation.network import Copies, steps_for, train
from postmax.estimation.threads import SMALL_TABLE, one_thread
from postmax.losses import FPMLLoss

_FIRST_STEPS, _STEPS, _SECONDS = 2, 12, 1.0
# The default estimator cross-fits twice, and fits the matrix twice from the counts and once for each replicate.
_CROSS_FITS, _FITS = 2, 2
_ROWS_OF_A_FIT = 5000


def measure_estimate_seconds(features: Tensor, labels: Tensor, num_classes: int, *, replicates: int) -> float:
    """Return about how many seconds `estimate_transition` takes for these rows with its default method.

    A few steps of the networks are measured, and one fit of the matrix to a part of the rows.
    """
    generator = torch.Generator().manual_seed(0)
    network = Copies(FOLDS, features, num_classes, generator)
    rows = torch.arange(len(labels) - len(labels) // FOLDS).expand(FOLDS, -1)
    plan = steps_for(rows.shape[1])
    step = _seconds_of_a_step(network, features, labels, rows)
    cross_fit = step * plan.batches * plan.epochs
    return seconds_with(cross_fit, labels, num_classes, replicates=replicates)


def seconds_with(cross_fit: float, labels: Tensor, num_classes: int, *, replicates: int) -> float:
    """Return about how many seconds an estimate takes if one cross-fit takes this many."""
    generator = torch.Generator().manual_seed(0)
    some = slice(0, _ROWS_OF_A_FIT)
    scores = torch.randn(len(labels[some]), num_classes, generator=generator, dtype=torch.float64)
    with one_thread(labels.numel() * num_classes < SMALL_TABLE):
        start = time.perf_counter()
        fit(scores.log_softmax(1), labels[some])
        one_fit = (time.perf_counter() - start) * len(labels) / len(scores)
    return _CROSS_FITS * cross_fit + (_FITS + replicates / 5) * one_fit


def _seconds_of_a_step(network: Copies, features: Tensor, labels: Tensor, rows: Tensor) -> float:
    """Return the mean seconds of a few steps. The first ones also prepare what the others use, and do not count."""

    def seconds(steps: int) -> float:
        start = time.perf_counter()
        train(network, features, labels, rows, FPMLLoss("kl", "softmax"), most_steps=steps)
        return time.perf_counter() - start

    first = seconds(_FIRST_STEPS)
    few = max(1, min(_STEPS, int(_SECONDS * _FIRST_STEPS / first))) if first else _STEPS
    return seconds(few) / few
