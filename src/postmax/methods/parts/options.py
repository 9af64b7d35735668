"""Checks of the options of methods."""

from __future__ import annotations

import math

from postmax.errors import InputError


def check_share(**options: float) -> None:
    """Check that options are shares, from 0 to below 1.

    Raises:
        InputError: If one is not; the message names it.
    """
    for name, value in options.items():
        if not 0 <= value < 1:
            raise InputError(f"method.{name} is a share from 0 to below 1, got {value!r}.")


def check_not_negative(**options: float) -> None:
    """Check that options are finite numbers that are not negative.

    Raises:
        InputError: If one is not; the message names it.
    """
    for name, value in options.items():
        if not 0 <= value < math.inf:
            raise InputError(f"method.{name} must be a number that is not negative, got {value!r}.")


def check_positive(**options: float) -> None:
    """Check that options are finite numbers above 0.

    Raises:
        InputError: If one is not; the message names it.
    """
    for name, value in options.items():
        if not 0 < value < math.inf:
            raise InputError(f"method.{name} must be a positive number, got {value!r}.")
