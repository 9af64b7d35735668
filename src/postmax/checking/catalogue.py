"""The detectors, each of which looks for one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.registry import LAST, Registry

Detector = Callable[[Examined], Iterable[Finding]]

_DETECTORS: Registry[Detector] = Registry("detector", package="postmax.checking.detectors")


def register(name: str, detector: Detector, *, order: int = LAST) -> None:
    """Make a detector known.

    Every module of `postmax.checking.detectors` is imported before the first check, so a new file that calls
    `register` adds a detector. Modules of other packages call it when they are imported.

    Args:
        name: What it looks for, in a word or two.
        detector: A pure function of the data that returns or yields what it has found.
        order: The place of its findings among those of the same severity.

    Raises:
        InputError: If the name is taken.
    """
    _DETECTORS.add(detector, name, order=order)


def names() -> tuple[str, ...]:
    """Return the names of all detectors, in the order of their findings."""
    return _DETECTORS.names()


def get(name: str) -> Detector:
    """Return a detector.

    Raises:
        InputError: If there is none of this name. The message suggests the nearest one.
    """
    return _DETECTORS.get(name)
