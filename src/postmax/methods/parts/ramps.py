"""Weights that change over the epochs of a training."""

from __future__ import annotations

import math
from collections.abc import Sequence

from postmax.errors import InputError


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


def piecewise(points: Sequence[tuple[float, float]], time: float) -> float:
    """Return the value at a time of a weight that is linear between points.

    Before the first point and after the last one it is constant. At two points with the same time it jumps, and has the
    second value from there on.

    Args:
        points: Each point as (time, value), in the order of time.
        time: The time.

    Example:
        >>> points = [(1, 0.0), (3, 0.5), (3, 1.0), (4, 2.0)]
        >>> [piecewise(points, time) for time in (0, 2, 3, 3.5, 9)]
        [0.0, 0.25, 1.0, 1.5, 2.0]
    """
    before = [point for point in points if point[0] <= time]
    after = [point for point in points if point[0] > time]
    if not before or not after:
        return points[-1][1] if before else points[0][1]
    (start, low), (end, high) = before[-1], after[0]
    return low + (high - low) * (time - start) / (end - start)


def checked_points(given: object, option: str) -> tuple[tuple[float, float], ...]:
    """Return the points of a weight for `piecewise`, after a check.

    Args:
        given: What the option says: a list of [share of the training, weight].
        option: The name of the option, for the message.

    Raises:
        InputError: If it is no such list, a share is not from 0 to 1, the shares fall, or a weight is not a finite
            number of at least 0.

    Example:
        >>> checked_points([[0, 0], [0.5, 2]], "alpha")
        ((0.0, 0.0), (0.5, 2.0))
    """
    try:
        points = tuple((float(share), float(value)) for share, value in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        points = ()
    shares = [share for share, _ in points]
    fine = shares == sorted(shares) and all(0 <= share <= 1 and 0 <= value < math.inf for share, value in points)
    if not points or not fine:
        raise InputError(
            f"method.{option} is a list of points [share of the training, weight], in the order of their shares from 0 "
            f"to 1 and with weights of at least 0, such as [[0.1, 0], [0.4, 1]]; got {given!r}."
        )
    return points
