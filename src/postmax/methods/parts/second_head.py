"""A second last layer beside that of a network."""

from __future__ import annotations

from torch import nn

from postmax.errors import InputError
from postmax.methods.method import Setup


def second_head(setup: Setup, network: nn.Module, name: str) -> nn.Module:
    """Return a new linear layer with one output for each class, which takes the features of a network.

    Args:
        setup: What the loop offers.
        network: A network with `features` and `fc`, as all networks of postmax have them.
        name: A name that no other module of the method has.

    Raises:
        InputError: If the network does not say what its features are.
    """
    width = getattr(getattr(network, "fc", None), "in_features", None)
    if not hasattr(network, "features") or not isinstance(width, int):
        raise InputError(
            f"{type(network).__name__} must say what its features are, because a second head is put on them: derive it "
            "from postmax.models.Network, with a method `features` and a linear last layer `fc`."
        )
    return setup.module(name, lambda: nn.Linear(width, setup.train.num_classes))
