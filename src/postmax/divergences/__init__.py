"""f-divergences by name, by family, or from a function of your own.

Example:
    >>> import torch
    >>> from postmax import divergences
    >>> divergences.names()
    ('kl', 'gan', 'sl', 'js', 'rkl', 'pearson', 'neyman', 'hellinger', 'jeffreys', 'lecam', 'alpha')
    >>> divergences.get("shifted log") == divergences.get("sl") == divergences.ShiftedLog(k=1)
    True
    >>> divergences.get("alpha:1.5").score(torch.zeros(1))  # a family member, its parameter after a colon
    tensor([0.])
    >>> divergences.get("tv")
    Traceback (most recent call last):
    ...
    postmax.errors.InputError: divergence 'tv' is refused: total variation, f(u) = |u − 1|/2, is not strictly convex: \
f' takes two values only, so a score tells whether the posterior is above a threshold but never what it is.
"""

from __future__ import annotations

from collections.abc import Callable

from postmax.divergences.base import Divergence
from postmax.divergences.families import Alpha, ShiftedLog
from postmax.divergences.members import (
    GAN,
    Jeffreys,
    JensenShannon,
    KullbackLeibler,
    LeCam,
    Neyman,
    Pearson,
    ReverseKL,
    SquaredHellinger,
)
from postmax.divergences.tempered import Tempered
from postmax.errors import InputError
from postmax.registry import Registry, resolve

__all__ = [
    "GAN",
    "Alpha",
    "Divergence",
    "Jeffreys",
    "JensenShannon",
    "KullbackLeibler",
    "LeCam",
    "Neyman",
    "Pearson",
    "ReverseKL",
    "ShiftedLog",
    "SquaredHellinger",
    "Tempered",
    "get",
    "names",
]

_REGISTRY: Registry[Callable[..., Divergence]] = Registry("divergence")
_PARAMETERS: dict[object, str] = {ShiftedLog: "k", Alpha: "α"}

for _make, _name, _aliases in (
    (KullbackLeibler, "kl", ("kullback-leibler", "forward kl")),
    (GAN, "gan", ()),
    (ShiftedLog, "sl", ("shifted log",)),
    (JensenShannon, "js", ("jensen-shannon",)),
    (ReverseKL, "rkl", ("reverse kl",)),
    (Pearson, "pearson", ("chi2", "chi-squared", "pearson chi2")),
    (Neyman, "neyman", ("neyman chi2",)),
    (SquaredHellinger, "hellinger", ("squared hellinger",)),
    (Jeffreys, "jeffreys", ("jeffrey",)),
    (LeCam, "lecam", ("le cam",)),
    (Alpha, "alpha", ()),
):
    _REGISTRY.add(_make, _name, aliases=_aliases)
_REGISTRY.refuse(
    "total variation, f(u) = |u − 1|/2, is not strictly convex: f' takes two values only, so a score tells whether "
    "the posterior is above a threshold but never what it is.",
    "tv",
    "total variation",
)


def get(name: str | Divergence) -> Divergence:
    """The divergence called `name`; `"sl:0.5"` and `"alpha:1.5"` pick a member of a family.

    Raises:
        InputError: If nobody knows the name (the nearest known one is suggested) or its parameter is not a number.
    """
    return resolve(name, Divergence, _named)


def _named(name: str) -> Divergence:
    base, colon, parameter = name.partition(":")
    make = _REGISTRY.get(base)
    if not colon:
        return make()
    if make not in _PARAMETERS:
        raise InputError(f"divergence {base!r} takes no parameter, got {name!r}.")
    try:
        value = float(parameter)
    except ValueError:
        raise InputError(
            f"divergence {name!r}: the {_PARAMETERS[make]} after the colon must be a number, got {parameter!r}."
        ) from None
    return make(value)


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    return _REGISTRY.names()
