"""What a user says about the noise, as a transition matrix."""

from __future__ import annotations

from numbers import Real
from typing import Any

from postmax.errors import InputError
from postmax.transition import Transition, parse_noise

ESTIMATED = ("estimate", "symmetric")


def noise_of(noise: Any, classes: tuple[str | int, ...]) -> Transition | str | None:
    """Return what an argument `noise` says: a transition, one of `ESTIMATED`, or None for labels that are right.

    Args:
        noise: None, one of `ESTIMATED`, a rate of symmetric noise, a text such as "pair:0.2", a matrix, or a
            transition.
        classes: The classes, in the order of the rows and columns of the matrix.

    Raises:
        InputError: If it cannot be read, or is for another number of classes.

    Example:
        >>> noise_of(0.3, ("no", "yes"))
        Transition(K=2, noise rate 30.0% under equal classes, condition number 2.5)
    """
    if noise is None or (isinstance(noise, str) and noise in ESTIMATED):
        return noise
    if isinstance(noise, str):
        return parse_noise(noise, len(classes), classes)
    if isinstance(noise, Real):
        most = (len(classes) - 1) / len(classes)
        if not 0 <= float(noise) < most:
            raise InputError(
                f"noise={noise} is not a rate of symmetric noise that can be removed: for {len(classes)} classes it is "
                f"0 or more and below {most:.3g}, where labels would say nothing."
            )
        return Transition.symmetric(len(classes), float(noise))
    found = Transition(noise)
    if found.num_classes != len(classes):
        raise InputError(
            f"noise is a matrix for {found.num_classes} classes, but the labels have {len(classes)}: "
            f"{', '.join(map(str, classes[:8]))}. Its rows and columns are in this order."
        )
    return found
