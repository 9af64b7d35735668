"""The share of a batch that is left out because of its large losses, and how it rises."""

from __future__ import annotations

from dataclasses import dataclass

from postmax.methods.method import Setup
from postmax.methods.parts.noise_rate import noise_rate
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import early_epochs, phase_epochs
from postmax.methods.parts.ramps import ramp

# Co-teaching was published with a rise over the first 10 of 200 epochs.
_RAMP_EPOCHS = 10
_RAMP_SHARE = _RAMP_EPOCHS / 200


@dataclass(frozen=True)
class Forgetting:
    """A share of left-out rows that rises from 0 in the first epoch.

    A network learns right labels first and wrong ones later, so more and more rows are left out.

    Attributes:
        rate: The share in the end.
        ramp_epochs: The number of the epoch, counted from 1, that reaches it. 0 and 1 both leave rows out from the
            start.

    Example:
        >>> [Forgetting(0.4, 3).kept(epoch) for epoch in range(4)]
        [1.0, 0.8, 0.6, 0.6]
    """

    rate: float
    ramp_epochs: int

    def kept(self, epoch: int) -> float:
        """Return the share of the rows that is kept in an epoch, counted from 0."""
        return 1 - self.rate * ramp(epoch, 0, self.ramp_epochs - 1)


def forgetting(setup: Setup, forget_rate: float | None, ramp_epochs: int | None) -> Forgetting:
    """Return the rise that the options of a method describe.

    Args:
        setup: What the loop offers.
        forget_rate: The share in the end; None for the estimated share of wrong labels.
        ramp_epochs: Over how many epochs it rises; None for the published 5 % of the training, but at least 10 epochs
            or a quarter of the training, and at least two epochs.

    Raises:
        InputError: If an option cannot be, or the share of wrong labels cannot be estimated.
    """
    if ramp_epochs is not None:
        check_number(least=0, whole=True, ramp_epochs=ramp_epochs)
    least = max(2, early_epochs(_RAMP_EPOCHS, setup.epochs))
    epochs = phase_epochs(ramp_epochs, _RAMP_SHARE, setup.epochs, least=least)
    return Forgetting(noise_rate(setup, forget_rate, "forget_rate"), epochs)
