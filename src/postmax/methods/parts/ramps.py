"""Weights that rise from 0 to 1 over the epochs of a training."""

from __future__ import annotations


def ramp(number: int, start: int, length: float) -> float:
    """Return how far a linear ramp is: 0 up to epoch `start`, 1 from `length` epochs later on.

    Args:
        number: The number of the epoch, counted from 0.
        start: The epoch up to which the ramp is 0.
        length: How many epochs the ramp takes; 0 for a jump.

    Example:
        >>> [ramp(number, 1, 2) for number in range(5)]
        [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    if number <= start:
        return 0.0
    return 1.0 if length <= 0 else min(1.0, (number - start) / length)
