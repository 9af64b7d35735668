"""Estimated noise, kept: the same labels of the same rows are estimated once, whatever is trained on them."""

from __future__ import annotations

import contextlib
import hashlib
import json

from torch import Tensor

from postmax.data import Dataset
from postmax.data.files import data_root
from postmax.errors import DataError
from postmax.files import atomic_write
from postmax.transition import Transition
from postmax.transition.noisy_labels import sha256_of_labels

# Raise it when estimates of the same rows become others.
_GENERATION = 1


def estimated_transition(train: Dataset, features: Tensor) -> Transition:
    """The noise of the training labels, estimated from the training rows alone.

    Cross-fitting takes a minute for 50 000 rows, so the answer is kept in the folder of the data sets.

    Raises:
        InputError: If the rows cannot carry an estimate.
        DataError: If what was kept is damaged or cannot be read.
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
    from postmax.estimation import estimate_transition  # noqa: PLC0415  (only here)

    estimate = estimate_transition(None, train.labels, features=features, classes=train.classes, replicates=2, seed=0)
    text = json.dumps({"matrix": estimate.transition.matrix.tolist()})
    with contextlib.suppress(OSError, DataError):  # a folder that cannot be written to costs time, not the run
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(text.encode())
    # Rows that are normalised again may change in the last bit, and a run that is resumed must go on with the same.
    return _from_text(text, train.num_classes)


def _from_text(text: str, num_classes: int) -> Transition:
    transition = Transition(json.loads(text)["matrix"], definition="estimated")
    if transition.num_classes != num_classes:
        raise ValueError(f"it is about {transition.num_classes} classes, not {num_classes}")
    return transition
