"""Estimates of the noise, kept in files: the same labels of the same rows are estimated only once."""

from __future__ import annotations

import contextlib
import hashlib
import json

from torch import Tensor

from postmax.data import Dataset
from postmax.data.files import data_root
from postmax.errors import DataError
from postmax.estimation import estimate_transition
from postmax.files import atomic_write
from postmax.transition import Transition
from postmax.transition.noisy_labels import sha256_of_labels

# Raise this number when the estimate for the same rows changes.
_GENERATION = 1


def estimated_transition(train: Dataset, features: Tensor) -> Transition:
    """Return the noise of the training labels, estimated from the training rows alone.

    An estimate takes a minute for 50 000 rows, so it is kept in the folder of the data sets.

    Raises:
        InputError: If no estimate is possible from these rows.
        DataError: If the kept estimate is damaged or cannot be read.
    """
    rows = hashlib.sha256(features.contiguous().numpy().tobytes()).hexdigest()
    key = json.dumps([_GENERATION, rows, sha256_of_labels(train.labels), train.num_classes])
    path = data_root() / "estimates" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    if path.exists():
        try:
            return _from_text(path.read_text(encoding="utf-8"), train.num_classes)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path} is damaged ({error}); delete it, and the noise is estimated again.") from error
    estimate = estimate_transition(None, train.labels, features=features, classes=train.classes, replicates=2, seed=0)
    text = json.dumps({"matrix": estimate.transition.matrix.tolist()})
    with contextlib.suppress(
        OSError, DataError
    ):  # if the folder cannot be written, the run goes on, and the next one estimates again
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(text.encode())
    # The text is read back, so that a resumed run uses exactly the same numbers as this one.
    return _from_text(text, train.num_classes)


def _from_text(text: str, num_classes: int) -> Transition:
    transition = Transition(json.loads(text)["matrix"], definition="estimated")
    if transition.num_classes != num_classes:
        raise ValueError(f"it is about {transition.num_classes} classes, not {num_classes}")
    return transition
