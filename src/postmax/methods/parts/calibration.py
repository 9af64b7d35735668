"""Posteriors that are as sure of themselves as the labels allow."""

from __future__ import annotations

import math

from torch import Tensor

from postmax.methods.parts.posteriors import safe_log

_LEAST, _MOST, _HALVINGS = 0.05, 50.0, 30
_ENTRIES = 2**24


def calibrated(posterior: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Return p^a divided by its sum, with the power a that makes the labels of some rows most probable.

    A network at the beginning of its training is less sure than it should be, and many robust losses make it too sure
    of the labels. The power corrects both, and it keeps the order of the classes.

    Args:
        posterior: (N, K).
        labels: (N,), as they are given.
        rows: The numbers of the rows that decide about a: best those that the network was not trained on.

    Example:
        >>> import torch
        >>> posterior = torch.tensor([[0.6, 0.4]]).repeat(10, 1)
        >>> labels = torch.tensor([0] * 9 + [1])
        >>> calibrated(posterior, labels, torch.arange(10))[0]
        tensor([0.9000, 0.1000])
    """
    scores = safe_log(posterior)
    rows = rows[: max(1, _ENTRIES // scores.shape[1])]
    some, given = scores[rows], labels[rows, None]
    low, high = math.log(_LEAST), math.log(_MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        expected = ((math.exp(middle) * some).softmax(1) * some).sum(1)
        # This is the slope of the mean cross-entropy in a, and it rises with a.
        if float((expected - some.gather(1, given).squeeze(1)).mean()) > 0:
            high = middle
        else:
            low = middle
    return (math.exp((low + high) / 2) * scores).softmax(1)
