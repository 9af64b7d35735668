"""Networks of which a method needs the features, besides the logits."""

from __future__ import annotations

from typing import cast

from torch import nn

from postmax.errors import InputError
from postmax.models import Network


def with_features(network: nn.Module, method: str) -> Network:
    """Return the network, after a check that it has features and a last linear layer.

    Args:
        network: A network from `Setup.network`.
        method: The name of the method that needs the features, for the message.

    Raises:
        InputError: If the network lacks one of them.

    Example:
        >>> with_features(nn.Linear(3, 2), "ctrr")
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: the method ctrr needs the features of a network, and Linear has none: give it a \
method `features` and a linear layer `fc` on top of them, as postmax.models.Network has.
    """
    # Mixed precision wraps a network, so its class says nothing.
    if not (callable(getattr(network, "features", None)) and isinstance(getattr(network, "fc", None), nn.Linear)):
        raise InputError(
            f"the method {method} needs the features of a network, and {type(network).__name__} has none: give it a "
            "method `features` and a linear layer `fc` on top of them, as postmax.models.Network has."
        )
    return cast("Network", network)
