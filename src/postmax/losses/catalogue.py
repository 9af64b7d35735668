"""Losses by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from postmax.errors import InputError
from postmax.losses.fpml import FPMLLoss
from postmax.registry import Registry, unknown_name
from postmax.transition import Transition


class PosteriorLoss(Protocol):
    """A loss that knows what the logits it trains mean."""

    def __call__(self, logits: Tensor, target: Tensor, /) -> Tensor:
        """The loss."""
        ...

    def posterior(self, logits: Tensor, /) -> Tensor:
        """P(class | x)."""
        ...

    def predict(self, logits: Tensor, /) -> Tensor:
        """The most probable class."""
        ...


@dataclass(frozen=True)
class Entry:
    """A named loss: how it is made, and what it is in a line."""

    build: Callable[..., nn.Module]
    summary: str


_LOSSES: Registry[Entry] = Registry("loss")


def register(name: str, build: Callable[..., nn.Module], summary: str, *, aliases: tuple[str, ...] = ()) -> None:
    """Make a loss known under `name`; its options are the keyword arguments of `build`."""
    _LOSSES.add(Entry(build, summary), name, aliases=aliases)


def get(name: str, *, transition: Transition | None = None, **options: Any) -> nn.Module:
    """The loss called `name`.

    Args:
        name: One of `names()`.
        transition: The label noise, for losses and corrections that use it; others pass over it.
        options: Options of the loss.

    Raises:
        InputError: If there is no such loss or option; the nearest known one is named.

    Example:
        >>> get("fpml", divergence="sl")
        FPMLLoss(divergence='sl', link='sigmoid')
        >>> get("fpml", divergense="sl")
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: unknown option of the loss fpml 'divergense'. Did you mean 'divergence'? ...
    """
    build = _LOSSES.get(name).build
    known = inspect.signature(build).parameters
    for option in options:
        if option not in known or option == "transition":
            raise unknown_name(f"option of the loss {name}", option, [key for key in known if key != "transition"])
    needs_noise = "transition" in known and options.get("correction") is not None
    if needs_noise and transition is None:
        raise InputError(f"the loss {name} with correction={options['correction']!r} needs the label noise.")
    return build(**options, **({"transition": transition} if needs_noise else {}))


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    return _LOSSES.names()


def summary(name: str) -> str:
    """What a loss is, in a line."""
    return _LOSSES.get(name).summary


def _cross_entropy(*, reduction: str = "mean", label_smoothing: float = 0.0, weight: Tensor | None = None) -> FPMLLoss:
    return FPMLLoss("kl", "softmax", reduction=reduction, label_smoothing=label_smoothing, weight=weight)


register("fpml", FPMLLoss, "f-divergence posterior maximisation: any divergence, link and correction", aliases=("pml",))
register("ce", _cross_entropy, "cross-entropy, which is f-PML with KL and softmax", aliases=("cross-entropy",))
