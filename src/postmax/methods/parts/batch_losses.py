"""Losses that are one number for a whole batch cannot tell rows apart."""

from __future__ import annotations

from postmax.errors import InputError
from postmax.losses import Loss


def refuse_batch_loss(method: str, loss: Loss) -> None:
    """Check that a loss has a value for each row, for methods that choose rows by their losses.

    Raises:
        InputError: If the loss is one number for a batch.
    """
    if loss.is_of_whole_batch:
        raise InputError(
            f"the method {method} chooses rows by their losses, and this loss is one number for a whole batch: choose "
            "another loss."
        )
