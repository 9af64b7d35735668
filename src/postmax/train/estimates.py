"""Estimates of the noise, kept in files: the same labels of the same rows are estimated only once."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack, suppress
from pathlib import Path

from torch import Tensor

from postmax.data import Dataset
from postmax.data.files import data_root
from postmax.errors import DataError
from postmax.estimation import estimate_transition
from postmax.files import atomic_write
from postmax.once import alone_with
from postmax.transition import Transition
from postmax.transition.noisy_labels import sha256_of_labels

# Raise this number when the estimate for the same rows changes.
_GENERATION = 1
# A run needs the matrix and no intervals, so there are as few replicates as possible.
REPLICATES = 2


def estimated_transition(train: Dataset, features: Tensor) -> Transition:
    """Return the noise of the training labels, estimated from the training rows alone.

    An estimate takes a minute for 50 000 rows, so it is kept in the folder of the data sets. If several processes need
    the same estimate, one of them estimates.

    Raises:
        InputError: If no estimate is possible from these rows.
        DataError: If the kept estimate is damaged or cannot be read.
    """
    path = kept_at(train, features)
    with ExitStack() as stack:
        if not path.exists():
            # If the folder cannot be written, the run goes on, and the next one estimates again.
            with suppress(OSError, DataError):
                stack.enter_context(alone_with(path, what="an estimate of the noise"))
        if path.exists():
            return _read(path, train.num_classes)
        estimate = estimate_transition(
            None, train.labels, features=features, classes=train.classes, replicates=REPLICATES, seed=0
        )
        text = json.dumps({"matrix": estimate.transition.matrix.tolist()})
        with suppress(OSError, DataError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(text.encode())
    # The text is read back, so that a resumed run uses exactly the same numbers as this one.
    return _from_text(text, train.num_classes)


def kept_at(train: Dataset, features: Tensor) -> Path:
    """Return the file in which the estimate for these rows and labels is kept."""
    rows = hashlib.sha256(features.contiguous().numpy().tobytes()).hexdigest()
    key = json.dumps([_GENERATION, rows, sha256_of_labels(train.labels), train.num_classes])
    return data_root() / "estimates" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def _read(path: Path, num_classes: int) -> Transition:
    try:
        return _from_text(path.read_text(encoding="utf-8"), num_classes)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it, and the noise is estimated again.") from error


def _from_text(text: str, num_classes: int) -> Transition:
    transition = Transition(json.loads(text)["matrix"], definition="estimated")
    if transition.num_classes != num_classes:
        raise ValueError(f"it is about {transition.num_classes} classes, not {num_classes}")
    return transition
