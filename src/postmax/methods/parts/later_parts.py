"""The later parts of a network: find them, give them new weights, and train them alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn

from postmax.methods.parts.teacher import follow
from postmax.models import Network

Part = Sequence[nn.Module]
"""Modules that follow each other in a network. The first of them has weights."""


def parts_of(network: Network) -> list[Part]:
    """Return the parts of a network, the first one first. The last one is the layer `fc` alone.

    The modules of the network are taken in the order in which it defines them. A part begins at each module with
    weights; what follows without weights of its own, such as an activation, belongs to it too. Batch normalisation has
    a scale and a shift for each channel, but no weights between channels, so it begins no part. If all weights before
    `fc` are in one `nn.Sequential`, the modules inside it are taken.

    Args:
        network: A network, as `with_features` returns it.

    Example:
        >>> from postmax import models
        >>> network = models.get("mlp", num_classes=3, input_shape=(5,), hidden=(8, 4))
        >>> [[type(module).__name__ for module in part] for part in parts_of(network)]
        [['Linear', 'ReLU'], ['Linear', 'ReLU'], ['Linear']]
    """
    last = network.fc
    # Mixed precision wraps a network, so the modules may be one level deeper.
    owner = next(module for module in network.modules() if any(child is last for child in module.children()))
    before = [child for child in owner.children() if child is not last]
    while True:
        learning = [module for module in before if _has_weights(module)]
        if len(learning) != 1 or not isinstance(learning[0], nn.Sequential):
            break
        before = list(learning[0].children())
    parts: list[list[nn.Module]] = []
    for module in before:
        if _has_weights(module):
            parts.append([module])
        elif parts:
            parts[-1].append(module)
    return [*parts, [last]]


def begin_anew(parts: Sequence[Part], fresh: Sequence[Part]) -> None:
    """Give parts of a network the weights and statistics of the same parts of a network that was never trained."""
    for part, source in zip(parts, fresh, strict=True):
        for module, other in zip(part, source, strict=True):
            follow(module, other, 0)


@contextmanager
def these_alone(network: nn.Module, parts: Sequence[Part]) -> Iterator[None]:
    """Inside, only these parts of a network are trained.

    The other parts get no gradient, which saves its computation. They are in evaluation mode, so that the statistics of
    their batch normalisation stay too. Afterwards the whole network is in training mode.

    Example:
        >>> network = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
        >>> with these_alone(network, [[network[1]]]):
        ...     [parameter.requires_grad for parameter in network.parameters()], network[0].training
        ([False, False, True, True], False)
    """
    modules = [module for part in parts for module in part]
    mine = {id(parameter) for module in modules for parameter in module.parameters()}
    others = [p for p in network.parameters() if p.requires_grad and id(p) not in mine]
    network.eval()
    for module in modules:
        module.train()
    for parameter in others:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in others:
            parameter.requires_grad_(True)
        network.train()


def _has_weights(module: nn.Module) -> bool:
    return any(parameter.ndim > 1 and parameter.requires_grad for parameter in module.parameters())
