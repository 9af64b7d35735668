"""Estimators of the transition matrix by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from postmax.estimation.estimator import TransitionEstimator
from postmax.registry import LAST, Registry, first_line

DEFAULT = "fpml"


@dataclass(frozen=True)
class Entry:
    """A registered estimator, and what it is in a line."""

    estimator: TransitionEstimator
    summary: str


_ESTIMATORS: Registry[Entry] = Registry("transition estimator", package="postmax.estimation")


def register(
    name: str,
    estimator: TransitionEstimator,
    *,
    summary: str = "",
    aliases: Iterable[str] = (),
    order: int = LAST,
) -> None:
    """Make an estimator of the transition matrix known under `name`.

    Every module of `postmax.estimation` is imported before the first lookup, so a new file that calls `register` adds
    an estimator. Modules of other packages call it when they are imported.

    Args:
        name: The name for `estimate_transition(..., method=name)`.
        estimator: The estimator, configured and ready to use.
        summary: What it is, in a line; by default the first line of the docstring of its class.
        aliases: Other names.
        order: Its place in `names()`; estimators with the same place come in the order of registration.

    Raises:
        InputError: If a name is taken.
    """
    _ESTIMATORS.add(Entry(estimator, summary or first_line(type(estimator))), name, aliases=aliases, order=order)


def get(name: str) -> TransitionEstimator:
    """Return the estimator called `name`.

    Raises:
        InputError: If the name is unknown. The message suggests the nearest known one.
    """
    return _ESTIMATORS.get(name).estimator


def names() -> tuple[str, ...]:
    """Return the names that `get` knows. The default is the first.

    Example:
        >>> names()[0]
        'fpml'
    """
    return _ESTIMATORS.names()


def summary(name: str) -> str:
    """Return what an estimator is, in a line."""
    return _ESTIMATORS.get(name).summary
