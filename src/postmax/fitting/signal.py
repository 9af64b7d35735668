"""Whether features say anything about labels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def surprise(posterior: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]) -> float:
    """Return by how many standard errors labels are foreseen better than by the shares of their classes.

    Args:
        posterior: P(label | row), (N, K), by networks that did not see the row.
        labels: The labels as given, (N,).

    Example:
        >>> labels = np.arange(100) % 2
        >>> surprise(np.full((100, 2), 0.5), labels), surprise(0.2 + 0.6 * np.eye(2)[labels], labels) > 100
        (0.0, True)
    """
    rows = np.arange(len(labels))
    shares = np.bincount(labels, minlength=posterior.shape[1]) / len(labels)
    gain = np.log(np.maximum(posterior[rows, labels], 1e-12)) - np.log(shares[labels])
    error = max(float(gain.std(ddof=1)) / math.sqrt(len(gain)), 1e-9) if len(gain) > 1 else 1.0
    found = float(gain.mean()) / error
    return 0.0 if abs(found) < 1e-6 else found
