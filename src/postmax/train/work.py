"""How much arithmetic a method does: rows through networks, counted while it trains."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from postmax.models import flops

# Forward once, backward to the inputs of each layer and to its weights.
WITH_GRADIENT = 3
_FEATURES = "features"


def unwatch(network: nn.Module) -> None:
    """Stop counting what goes through a network and its parts, for use outside of the loop: it can be pickled again."""
    for module in network.modules():
        module._forward_pre_hooks.clear()
        vars(module).pop(_FEATURES, None)


class Work:
    """Counts the passes of rows through networks, and the operations that they take.

    A pass whose gradient is recorded counts as three: one forward, and two backward. What lies outside the networks,
    such as losses, augmentation and heads, is not counted; it is little beside them.

    Attributes:
        passes: How many rows went through a network, with or without a gradient.
        operations: The floating-point operations of these passes, by the rule of `postmax.models.flops`.
    """

    def __init__(self) -> None:
        self.passes = 0
        self.operations = 0
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._measuring = False

    def watch(self, network: nn.Module) -> None:
        """Count what goes through a network from now on, also where only its features are asked for."""
        features = getattr(network, _FEATURES, None)
        if features is None:
            network.register_forward_pre_hook(lambda module, inputs: self._count(module, inputs[0]))
            return

        def counted(module: nn.Module, inputs: Tensor, *more: Any, **options: Any) -> Any:
            self._count(module, inputs)
            return features(inputs, *more, **options)

        # An attribute of this network hides the method of its class. Fabric asks whether it is a method, too.
        setattr(network, _FEATURES, MethodType(counted, network))

    def take(self) -> tuple[int, int]:
        """Return passes and operations, and begin again at 0."""
        found = self.passes, self.operations
        self.passes = self.operations = 0
        return found

    def _count(self, network: nn.Module, inputs: Tensor) -> None:
        if self._measuring:
            return
        self.passes += len(inputs)
        factor = WITH_GRADIENT if torch.is_grad_enabled() else 1
        self.operations += factor * len(inputs) * self._operations_of(network, tuple(inputs.shape[1:]))

    def _operations_of(self, network: nn.Module, shape: tuple[int, ...]) -> int:
        key = (id(network), shape)
        if key not in self._known:
            self._measuring = True
            try:
                self._known[key] = flops(network, shape)
            finally:
                self._measuring = False
        return self._known[key]
