"""How many epochs a phase of a training takes."""

from __future__ import annotations


def phase_epochs(given: int | None, share: float, epochs: int, *, least: int = 1) -> int:
    """Return the epochs of a phase: as many as are given, or a share of the whole training.

    Published numbers of epochs are for one length of training. As a share they also suit a shorter or longer one.

    Args:
        given: The number of epochs that an option says; None if it says none.
        share: The published share of the training that the phase takes.
        epochs: How many epochs the training has.
        least: The fewest epochs of the phase where the option says none. One epoch of the training is always left.

    Example:
        >>> phase_epochs(None, 10 / 300, 12), phase_epochs(None, 0.25, 12), phase_epochs(5, 0.25, 12)
        (1, 3, 5)
    """
    if given is not None:
        return given
    return max(0, min(max(least, round(share * epochs)), epochs - 1))
