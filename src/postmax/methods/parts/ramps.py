"""Weights that rise from 0 to 1 over the epochs of a training."""

from __future__ import annotations

import math


def ramp(time: float, start: float, length: float) -> float:
    """Return how far a linear ramp is: 0 up to `start`, 1 from `length` later on.

    Args:
        time: How many epochs are over, also in fractions.
        start: The time up to which the ramp is 0.
        length: How many epochs the ramp takes. Without a length the ramp jumps to 1 at `start`.

    Example:
        >>> [ramp(time, 1, 2) for time in range(5)]
        [0.0, 0.0, 0.5, 1.0, 1.0]
        >>> ramp(0, 0, 0)
        1.0
    """
    if length <= 0:
        return float(time >= start)
    return min(1.0, max(0.0, (time - start) / length))


def gentle_ramp(time: float, length: float) -> float:
    """Return how far a ramp is that rises slowly at first: exp(−5·(1 − time/length)²), and 1 after its length.

    It comes from Laine and Aila, Temporal ensembling for semi-supervised learning, ICLR 2017.

    Args:
        time: How many epochs are over, also in fractions.
        length: How many epochs the ramp takes. Without a length it is always 1.

    Example:
        >>> [round(gentle_ramp(time, 2), 4) for time in range(4)]
        [0.0067, 0.2865, 1.0, 1.0]
        >>> gentle_ramp(0, 0)
        1.0
    """
    return math.exp(-5 * (1 - ramp(time, 0, length)) ** 2)
