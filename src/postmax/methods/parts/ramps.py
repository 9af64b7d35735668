"""Weights that rise from 0 to 1 over the epochs of a training."""

from __future__ import annotations


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
