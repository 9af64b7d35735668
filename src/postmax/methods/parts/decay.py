"""The decay of a moving average of weights, for a training of any length."""

from __future__ import annotations

import math
from typing import Any

from postmax.methods.method import Setup
from postmax.methods.parts.options import check_number


def average_decay(setup: Setup, given: float | None, share: float, option: str) -> float:
    """Return the decay of each step: the given one, or one with which the average remembers a share of the training.

    A decay of 0.999 remembers about 1000 steps. Published decays are for long trainings. In a short one, such an
    average would consist of the random initial weights to the end.

    Args:
        setup: What the loop offers.
        given: The value of the option; None to use the share.
        share: The share of the training that the published decay remembers.
        option: The name of the option, for messages.

    Raises:
        InputError: If the given decay is not from 0 to below 1.
    """
    if given is None:
        steps = setup.epochs * math.ceil(len(setup.train) / setup.batch_size)
        return decay_for(share * steps)
    named: dict[str, Any] = {option: given}
    check_number(least=0, below=1, **named)
    return float(given)


def decay_for(steps: float) -> float:
    """Return the decay of an average that remembers about this many steps.

    Example:
        >>> decay_for(1000), decay_for(0.3)
        (0.999, 0.0)
    """
    return 1 - 1 / max(1.0, steps)
