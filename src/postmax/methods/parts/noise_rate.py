"""The share of wrong labels, for methods that must know it."""

from __future__ import annotations

from typing import Any

from postmax.errors import InputError
from postmax.methods.method import Setup
from postmax.methods.parts.options import check_number


def noise_rate(setup: Setup, given: float | None, option: str, example: float = 0.2) -> float:
    """Return the share of wrong labels: the option of the method, or an estimate from the training rows.

    Args:
        setup: What the loop offers.
        given: The value of the option; None to estimate the share.
        option: The name of the option to set where the share cannot be estimated, for messages.
        example: A value of that option.

    Raises:
        InputError: If the given share is not from 0 to 1, or none is given and it cannot be estimated.
    """
    if given is None:
        try:
            found = setup.estimate().noise_rate
        except InputError as error:
            raise InputError(
                f"{error} Without an estimate of the share of wrong labels, set the option yourself, such as "
                f"method.{option}={example}."
            ) from error
        return min(max(found, 0.0), 1.0)
    named: dict[str, Any] = {option: given}
    check_number(least=0, below=1, **named)
    return float(given)
