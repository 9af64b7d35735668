"""The detectors that need a model's opinion of each row, or rows as scaled features."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from postmax.auditing.judged import Judged
from postmax.checking import Finding
from postmax.progress import Stage, tell
from postmax.registry import LAST, Registry

Detector = Callable[[Judged], Iterable[Finding]]

_DETECTORS: Registry[Detector] = Registry("audit detector", package="postmax.auditing.detectors")


def register(name: str, detector: Detector, *, order: int = LAST) -> None:
    """Make a detector known. A new file in `postmax.auditing.detectors` that calls this adds one.

    Args:
        name: What it looks for, in a word or two.
        detector: A pure function of the judged rows that returns or yields what it has found.
        order: The place of its findings.

    Raises:
        InputError: If the name is taken.
    """
    _DETECTORS.add(detector, name, order=order)


def names() -> tuple[str, ...]:
    """Return the names of all detectors, in the order of their findings."""
    return _DETECTORS.names()


def find_all(judged: Judged) -> list[Finding]:
    """Return what all detectors have found."""
    found: list[Finding] = []
    for place, name in enumerate(names()):
        tell(Stage("looking at the rows", place, len(names()), "checks"))
        found += _DETECTORS.get(name)(judged)
    return found
