"""How many epochs a phase of a training takes, and what each phase is trained with."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from postmax.methods.method import Setup


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


def early_epochs(published: int, epochs: int) -> int:
    """Return the fewest epochs of an early phase: as many as published, but at most a quarter of the training.

    A network needs a number of epochs, and not a share of the training, before its losses tell right labels from wrong
    ones. In a short training the published share would end before that.

    Args:
        published: The published number of epochs.
        epochs: How many epochs the training has.

    Example:
        >>> [early_epochs(10, epochs) for epochs in (300, 30, 8, 2)]
        [10, 7, 2, 1]
    """
    return max(1, min(published, epochs // 4))


def share_of_span(epoch: int, span: tuple[int, int]) -> float:
    """Return the share of a span of epochs that is over when an epoch begins.

    A method that trains one network after the other hands it to `Loss.at`, so that each network sees the whole course
    of the loss.

    Args:
        epoch: The number of the epoch, counted from 0.
        span: The first epoch of the span, and the epoch after its last one.

    Example:
        >>> [share_of_span(epoch, (4, 8)) for epoch in (4, 6, 7)]
        [0.0, 0.5, 0.75]
    """
    start, end = span
    return (epoch - start) / (end - start)


def optimisers_of_phases(setup: Setup, network: nn.Module, change: int) -> tuple[Optimizer, Optimizer]:
    """Return two optimisers of one network: for the epochs before a change, and for those from the change on.

    The schedule of the learning rate runs once for each.

    Args:
        setup: What the loop offers.
        network: The network.
        change: The number of the first epoch of the second phase. One of the phases may have no epoch.
    """
    weights = list(network.parameters())
    # The run records the rate of the optimiser that was made first. When a stopped run goes on in the second phase, the
    # optimiser of the first one has no rate any more.
    second = setup.optimiser(weights, "second phase", span=(change, max(setup.epochs, change + 1)))
    return setup.optimiser(weights, "first phase", span=(0, max(1, change))), second
