"""Checks of the options of methods."""

from __future__ import annotations

import math

from postmax.errors import InputError


def check_number(
    *,
    least: float | None = None,
    above: float | None = None,
    below: float = math.inf,
    whole: bool = False,
    **options: object,
) -> None:
    """Check that options are finite numbers in a range.

    Args:
        least: The smallest value that is allowed.
        above: A bound that is not allowed itself.
        below: An upper bound that is not allowed itself.
        whole: Whether the options must be whole numbers.
        options: The options, by name.

    Raises:
        InputError: If an option is not such a number; the message names it.

    Example:
        >>> check_number(least=0, below=1, forget_rate=1.5)
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: method.forget_rate must be a number of at least 0 and below 1, got 1.5.
    """
    parts = [f"of at least {least}"] if least is not None else []
    parts += [f"above {above}"] if above is not None else []
    parts += [f"below {below}"] if below != math.inf else []
    wanted = " and ".join(parts)
    for name, value in options.items():
        kind = int if whole else int | float
        fine = isinstance(value, kind) and not isinstance(value, bool) and -math.inf < value < below
        if fine and isinstance(value, int | float):
            fine = (least is None or value >= least) and (above is None or value > above)
        if not fine:
            raise InputError(f"method.{name} must be a {'whole ' if whole else ''}number {wanted}, got {value!r}.")
