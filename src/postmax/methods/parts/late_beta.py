"""Another first decay rate of Adam in the last part of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.optim import Optimizer

from postmax.methods.method import Setup
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs

# Co-teaching was published with a change after 80 of 200 epochs.
_LATE_SHARE = 120 / 200


@dataclass(frozen=True)
class LateBeta:
    """A change of Adam's first decay rate.

    Attributes:
        beta: The decay rate from the change on; None for no change.
        start: The first epoch with it, counted from 0.

    Example:
        >>> import torch
        >>> adam = torch.optim.Adam([torch.zeros(1)])
        >>> LateBeta(0.1, start=2).set_in(1, [adam])
        >>> adam.param_groups[0]["betas"]
        (0.9, 0.999)
        >>> LateBeta(0.1, start=2).set_in(2, [adam])
        >>> adam.param_groups[0]["betas"]
        (0.1, 0.999)
    """

    beta: float | None
    start: int

    def set_in(self, epoch: int, optimisers: Sequence[Optimizer]) -> None:
        """Change the optimisers if it is time. Only Adam and AdamW have such a rate; others stay as they are."""
        if self.beta is None or epoch < self.start:
            return
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                if "betas" in group:
                    group["betas"] = (self.beta, group["betas"][1])


def late_beta_of(setup: Setup, late_beta: float | None, late_epochs: int | None) -> LateBeta:
    """Return the change that the options of a method describe.

    Args:
        setup: What the loop offers.
        late_beta: The decay rate in the end; None for no change.
        late_epochs: How many epochs have it; None for the last 60 % of the training.

    Raises:
        InputError: If an option cannot be.
    """
    if late_beta is not None:
        check_number(least=0, below=1, late_beta=late_beta)
    if late_epochs is not None:
        check_number(least=0, whole=True, late_epochs=late_epochs)
    return LateBeta(late_beta, max(0, setup.epochs - phase_epochs(late_epochs, _LATE_SHARE, setup.epochs)))
