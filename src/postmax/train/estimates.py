"""Estimates of the noise, kept in files: the same labels of the same rows are estimated only once."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from postmax.data import Dataset
from postmax.data.files import data_root
from postmax.errors import DataError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.files import atomic_write
from postmax.once import alone_with
from postmax.transition import Transition
from postmax.transition.noisy_labels import sha256_of_labels

# Raise this number when the estimate for the same rows changes.
_GENERATION = 1
# Enough for an interval, by Student's t, and little beside the time that the estimate itself takes.
REPLICATES = 20


def estimated_noise(train: Dataset, features: Tensor) -> TransitionEstimate:
    """Return the noise of the training labels with its intervals, estimated from the training rows alone.

    An estimate takes a minute for 50 000 rows, so it is kept in the folder of the data sets. If several processes need
    the same estimate, one of them estimates.

    Raises:
        InputError: If no estimate is possible from these rows.
        DataError: If the kept estimate is damaged or cannot be read.
    """
    path = kept_at(train, features)
    with ExitStack() as stack:
        kept = _read(path, train.num_classes)
        if not _is_whole(kept):
            # If the folder cannot be written, the run goes on, and the next one estimates again.
            with suppress(OSError, DataError):
                stack.enter_context(alone_with(path, what="an estimate of the noise"))
            kept = _read(path, train.num_classes)
        if not _is_whole(kept):
            found = estimate_transition(
                None, train.labels, features=features, classes=train.classes, replicates=REPLICATES, seed=0
            )
            # A matrix that was kept stays, so that a run that used it before goes on with exactly the same numbers.
            # The text is read back, so that a resumed run uses exactly the same numbers as this one.
            kept = json.loads(json.dumps({**found.to_dict(), **kept}))
            _write(path, kept)
    return _with_names(TransitionEstimate.from_dict(kept, "the training labels"), train.classes)


def is_kept(train: Dataset, features: Tensor) -> bool:
    """Return whether a run finds an estimate for these rows and labels, so that it makes none.

    A damaged one is found too: the run stops there and names it.
    """
    try:
        return _is_whole(_read(kept_at(train, features), train.num_classes))
    except DataError:
        return True


def kept_at(train: Dataset, features: Tensor) -> Path:
    """Return the file in which the estimate for these rows and labels is kept."""
    rows = hashlib.sha256(features.contiguous().numpy().tobytes()).hexdigest()
    key = json.dumps([_GENERATION, rows, sha256_of_labels(train.labels), train.num_classes])
    return data_root() / "estimates" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def _is_whole(kept: dict[str, Any]) -> bool:
    """Return whether this is an estimate with its intervals. An older version kept the matrix alone."""
    return "format" in kept


def _read(path: Path, num_classes: int) -> dict[str, Any]:
    """Return a kept estimate, checked; nothing if none is kept."""
    if not path.exists():
        return {}
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = Transition(kept["matrix"]).num_classes
        if "format" in kept:
            TransitionEstimate.from_dict(kept, str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, str(error)) from error
    if found != num_classes:
        raise _damaged(path, f"it is about {found} classes, not {num_classes}")
    return kept


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(f"{path} is damaged ({reason}); delete it, and the noise is estimated again.")


def _write(path: Path, kept: dict[str, Any]) -> None:
    # If the folder cannot be written, the run goes on, and the next one estimates again.
    with suppress(OSError, DataError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(json.dumps(kept).encode())


def _with_names(found: TransitionEstimate, classes: tuple[str, ...]) -> TransitionEstimate:
    """Return the estimate with the names of these classes: the same rows may have been read with other names."""
    names = dict(zip(found.classes, classes, strict=True))
    unidentified: dict[str | int, str] = {names[name]: reason for name, reason in found.unidentified.items()}
    return replace(found, classes=classes, unidentified=unidentified)
