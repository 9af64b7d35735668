"""Divergences by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from postmax.divergences.base import Divergence
from postmax.errors import InputError
from postmax.registry import LAST, Registry, first_line, resolve


@dataclass(frozen=True)
class Entry:
    """A registered divergence.

    Attributes:
        make: Makes the divergence. If it is a family, it takes the parameter.
        parameter: What the parameter of a family is called; None for a single divergence.
        summary: What it is, in a line.
    """

    make: Callable[..., Divergence]
    parameter: str | None
    summary: str


_DIVERGENCES: Registry[Entry] = Registry("divergence", package="postmax.divergences")
_DIVERGENCES.refuse(
    "total variation, f(u) = |u − 1|/2, is not strictly convex: f' takes two values only, so a score tells whether "
    "the posterior is above a threshold but never what it is.",
    "tv",
    "total variation",
)


def register(
    name: str,
    make: Callable[..., Divergence],
    *,
    aliases: Iterable[str] = (),
    parameter: str | None = None,
    summary: str = "",
    order: int = LAST,
) -> None:
    """Make a divergence known under `name`.

    Every module of `postmax.divergences` is imported before the first lookup, so a new file that calls `register` adds
    a divergence. Modules of other packages call it when they are imported.

    Args:
        name: The name for `get`.
        make: Returns the divergence when it is called without arguments: a class, or a function.
        aliases: Other names.
        parameter: For a family: what its parameter is called. `get("name:0.5")` then calls `make(0.5)`.
        summary: What it is, in a line; by default the first line of the docstring of `make`.
        order: Its place in `names()`; divergences with the same place come in the order of registration.

    Raises:
        InputError: If a name is taken.
    """
    entry = Entry(make, parameter, summary or first_line(make))
    _DIVERGENCES.add(entry, name, aliases=aliases, order=order)


def get(name: str | Divergence) -> Divergence:
    """Return the divergence called `name`; `"sl:0.5"` and `"alpha:1.5"` are members of a family.

    Raises:
        InputError: If the name is unknown (the message suggests the nearest known one), or if the parameter is not a
            number.
    """
    return resolve(name, Divergence, _named)


def _named(name: str) -> Divergence:
    base, colon, text = name.partition(":")
    entry = _DIVERGENCES.get(base)
    if not colon:
        return entry.make()
    if entry.parameter is None:
        raise InputError(f"divergence {base!r} takes no parameter, got {name!r}.")
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"divergence {name!r}: the {entry.parameter} after the colon must be a number, got {text!r}."
        ) from None
    return entry.make(value)


def names() -> tuple[str, ...]:
    """Return the names that `get` knows.

    Example:
        >>> names()[:4]
        ('kl', 'gan', 'sl', 'js')
    """
    return _DIVERGENCES.names()


def summary(name: str) -> str:
    """Return what a divergence is, in a line."""
    return _DIVERGENCES.get(name).summary


def parameter(name: str) -> str | None:
    """Return what the parameter of a family is called; None if `name` is a single divergence."""
    return _DIVERGENCES.get(name).parameter
