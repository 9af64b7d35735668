"""Whether a frozen model is still the one that was there before: its answers to a fixed example are compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from postmax.errors import InputError

Probe = tuple[float, ...]
_MOST = 16
# Processors and versions of torch differ by a hundred-thousandth; other weights differ by far more than this.
_TOLERANCE = 0.02


def probe_of(features: npt.NDArray[np.float32]) -> Probe:
    """Return the means of groups of the features of a fixed example: many features of a network are 0.

    Example:
        >>> probe_of(np.arange(64, dtype=np.float32))[:3]
        (1.5, 5.5, 9.5)
    """
    groups = np.array_split(features.astype(np.float64), min(_MOST, len(features)))
    return tuple(float(f"{group.mean():.6g}") for group in groups)


def check_probe(name: str, before: Sequence[float], now: Sequence[float]) -> None:
    """Check that a model gives the features that it gave before.

    Raises:
        InputError: If they differ. What was trained on the old features would predict nonsense.
    """
    old, new = np.asarray(before), np.asarray(now)
    allowed = _TOLERANCE * max(np.abs(old).max(initial=0), 1e-6)
    if old.shape != new.shape or not np.isfinite(new).all() or np.abs(old - new).max(initial=0) > allowed:
        raise InputError(
            f"{name} gives other features here than where the model was trained: its weights, or the package that has "
            "them, are another version. Install the version of then, or train again."
        )
