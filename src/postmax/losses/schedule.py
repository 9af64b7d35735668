"""Losses that change during training: checks and formulas for the share of the training that is over.

The share is epoch/epochs, counted in finished epochs: it is 0 in the first epoch and below 1 in the last one.
"""

from __future__ import annotations

import math

from postmax.errors import InputError


def is_share(value: object) -> bool:
    """Return whether `value` is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def check_share(share: object) -> None:
    """Raise an error if `share` is not a share of the training, for example if it is the number of an epoch."""
    if not is_share(share):
        raise InputError(f"at(share) takes the share of the training that is over, epoch/epochs, got {share!r}.")


def check_start(start: object) -> None:
    """Raise an error if a warm-up does not end within the training."""
    if not is_share(start):
        raise InputError(f"start is a share of the training, from 0 to 1, got {start!r}.")


def checked_ramp(ramp: object) -> tuple[float, float]:
    """Return the ramp as a pair of floats, after checking that it is two shares of the training in ascending order."""
    try:
        start, end = (float(share) for share in ramp)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise InputError(f"ramp is two shares of the training, such as (0.1, 0.4), got {ramp!r}.") from error
    if not 0 <= start <= end <= 1:
        raise InputError(f"ramp is two shares of the training with 0 ≤ start ≤ end ≤ 1, got {ramp!r}.")
    return start, end


def ramped(share: float, ramp: tuple[float, float]) -> float:
    """Return 0 before the ramp, 1 after it, and a linear function of the share in between."""
    start, end = ramp
    return 1.0 if share >= end else max(0.0, (share - start) / (end - start))


def cosine(share: float, first: float, last: float) -> float:
    """Return a value that moves from `first` to `last` along half a cosine."""
    return last + (first - last) * (1 + math.cos(math.pi * share)) / 2
