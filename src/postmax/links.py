"""Links: how the network's outputs z become s = log D.

The paper writes `T = g_f(v)` or changes the variable to `T = r(D)`. Both are a choice of the map from logits to the
posterior estimate, and any divergence can be used with any of them:

| link     | D            | range  | in the paper |
|----------|--------------|--------|--------------|
| exp      | e^z          | (0, ∞) | f-GAN's g_f for GAN, SL and JS, and for KL up to the shift v = z + 1 |
| softmax  | e^z / Σ e^z  | simplex| with KL this is cross-entropy |
| softplus | log(1 + e^z) | (0, ∞) | the change of variable T = r(D) for KL |
| sigmoid  | σ(z)         | (0, 1) | a posterior is never above one, so this range is enough |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from postmax.registry import Registry, resolve

__all__ = ["DEFAULT", "Link", "get", "names"]

DEFAULT = "sigmoid"
"""The link with the best measured accuracy for every divergence, with and without noise; see docs/links.md."""


@dataclass(frozen=True)
class Link:
    """A monotone map from logits to log D, with the classes in the last dimension.

    Attributes:
        name: Its name.
        log_ratio: The map z ↦ log D.
        logits: The inverse map log D ↦ z; for the softmax, one of the inverse maps.
        gives_probabilities: Whether the link models the posterior c·D, which is at most one, instead of D.
        normalised: Whether D sums to one over the classes.
    """

    name: str
    log_ratio: Callable[[Tensor], Tensor]
    logits: Callable[[Tensor], Tensor]
    gives_probabilities: bool = False
    normalised: bool = False


def _identity(z: Tensor) -> Tensor:
    return z


def _softmax(z: Tensor) -> Tensor:
    return z.log_softmax(-1)


def _softplus(z: Tensor) -> Tensor:
    # For very negative z softplus underflows. Its logarithm is then z − e^z/2 + 5e^(2z)/24 − e^(3z)/8 + …
    left = z < -10
    e = torch.where(left, z, -10.0).exp()
    near = (-logsigmoid(-torch.where(left, 0.0, z))).log()
    return torch.where(left, z - e * (1 / 2 - e * (5 / 24 - e / 8)), near)


def _softplus_inverse(log_d: Tensor) -> Tensor:
    return log_d.exp().expm1().log()


def _sigmoid(z: Tensor) -> Tensor:
    return logsigmoid(z)


def _sigmoid_inverse(log_d: Tensor) -> Tensor:
    return log_d - (-log_d.exp()).log1p()


_REGISTRY: Registry[Link] = Registry("link")
for _link in (
    Link("exp", _identity, _identity),
    Link("softmax", _softmax, _identity, gives_probabilities=True, normalised=True),
    Link("softplus", _softplus, _softplus_inverse),
    Link("sigmoid", _sigmoid, _sigmoid_inverse, gives_probabilities=True),
):
    _REGISTRY.add(_link, _link.name)


def get(name: str | Link) -> Link:
    """Return the link called `name`.

    Example:
        >>> get("softmax").log_ratio(torch.zeros(2)).exp()
        tensor([0.5000, 0.5000])
    """
    return resolve(name, Link, _REGISTRY.get)


def names() -> tuple[str, ...]:
    """Return the names that `get` knows."""
    return _REGISTRY.names()
